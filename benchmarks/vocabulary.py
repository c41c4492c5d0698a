"""Counting the words of a text: ours against gensim's build_vocab, interleaved, the best of several rounds.

`open, cold` is all that a first run pays: hash of the content, counting, encoding, and writing to the cache with fsync;
`open, no cache` does the same without keeping it; `open, warm` is what every later run pays. gensim only counts: it
encodes the text again in every epoch. Lines have 1,000 words, because gensim drops what follows after 10,000.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gensim.models import Word2Vec

from hogwild.config import CorpusConfig
from hogwild.feeds.corpus.open import open_corpus
from hogwild.feeds.storage import cache

WIKI = Path(__file__).resolve().parents[2] / "shared" / "data" / "wiki" / "wiki100m.txt.xz"
LINE = 1000
MIN_COUNT = 5


def write_text(path: Path, megabytes: float) -> str:
    """The first megabytes of Wikipedia if it is there, else words made up with frequencies like those of a language."""
    size = int(megabytes * 1e6)
    if WIKI.exists():
        with lzma.open(WIKI) as file:
            words, name = file.read(size).split(), "Wikipedia"
    else:
        ranks = np.random.default_rng(1).zipf(1.3, size // 6) % 1_000_000
        words, name = [b"%x" % (k * 2654435761 % 2**32 >> k.bit_length()) for k in ranks.tolist()], "made-up words"
    with open(path, "wb") as file:
        for start in range(0, len(words), LINE):
            file.write(b" ".join(words[start : start + LINE]) + b"\n")
    return name


def count_gensim(path: Path) -> int:
    """Words that stay, by gensim."""
    model = Word2Vec(min_count=MIN_COUNT, workers=2)
    model.build_vocab(corpus_file=str(path))
    return len(model.wv)


def open_with(path: Path, threads: int = 2, keep: bool = False) -> int:
    """Words that stay, by ours."""
    return len(open_corpus(path, CorpusConfig(min_count=MIN_COUNT, cache=keep), threads=threads).words)


def open_cold(path: Path) -> int:
    """As on a first run."""
    cache.clear()
    return open_with(path, keep=True)


def compare(path: Path, rounds: int) -> dict[str, Any]:
    """Megabytes a second of every way to count the words."""
    ways: dict[str, Callable[[], int]] = {
        "gensim build_vocab": lambda: count_gensim(path),
        "open, no cache, 1 thread": lambda: open_with(path, 1),
        "open, no cache, 2 threads": lambda: open_with(path, 2),
        "open, cold": lambda: open_cold(path),
        "open, warm": lambda: open_with(path, keep=True),
    }
    words = {name: way() for name, way in ways.items()}  # compiles, and fills the page cache
    if len(set(words.values())) != 1:
        raise SystemExit(f"the counts disagree: {words}")
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            begun = time.perf_counter()
            way()
            best[name] = min(best[name], time.perf_counter() - begun)
    size = path.stat().st_size / 1e6
    speeds = {name: size / seconds for name, seconds in best.items()}
    ratios = {name: speed / speeds["gensim build_vocab"] for name, speed in speeds.items()}
    return {"megabytes": size, "words": words["open, cold"], "megabytes_per_second": speeds, "ratio": ratios}


def main() -> None:
    """Print a table; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100, help="size of the text")
    parser.add_argument("--rounds", type=int, default=5, help="the best of so many is taken")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.environ["HOGWILD_CACHE"] = directory  # after the import of the kernels: compiled code stays where it is
        path = Path(directory) / "text.txt"
        name = write_text(path, options.megabytes)
        found = {"machine": platform.machine(), "cores": os.cpu_count(), "text": name, **compare(path, options.rounds)}
    print(f"{name}: {found['megabytes']:.0f} MB, {found['words']:,} words occur {MIN_COUNT} times")
    for way, speed in found["megabytes_per_second"].items():
        print(f"  {way:26} {speed:10,.0f} MB/s {found['ratio'][way]:8.1f}x")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
