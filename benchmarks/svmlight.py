"""Reading svmlight files: ours against scikit-learn's load_svmlight_file, interleaved, the best of several rounds.

`parse` makes arrays of the text, as scikit-learn does. `open, cold` is all that a first run pays: hash of the content,
parsing, ranking, and writing to the cache with fsync; `open, warm` is what every later run pays.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from hogwild.config import FeedConfig
from hogwild.feeds.io.source import open_sources
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.svmlight import SvmlightEncoder
from hogwild.feeds.storage import cache

KINDS = {"six digits": "{:.6g}", "sixteen digits": "{:.16g}", "ones": "1"}
FEATURES = 1 << 20
NONZEROS = 50


def write_file(path: Path, megabytes: float, value: str) -> None:
    """Rows with about 50 entries; ids from a skewed distribution, as words have."""
    rng = np.random.default_rng(1)
    with open(path, "w") as file:
        while file.tell() < megabytes * 1e6:
            lines = []
            for _ in range(1000):
                ids = np.unique((FEATURES ** rng.random(rng.poisson(NONZEROS))).astype(int)).tolist()
                values = rng.normal(size=len(ids)).tolist()
                entries = [f"{i}:{value.format(v)}" for i, v in zip(ids, values, strict=True)]
                lines.append(f"{rng.choice(['+1', '-1'])} {' '.join(entries)}\n")
            file.writelines(lines)


def parse(path: Path, threads: int) -> int:
    """All entries of a file as arrays, with our parser; returns how many there are."""
    encoder = SvmlightEncoder(FeedConfig(), threads=threads)
    return sum(len(chunk.ids) for chunk in encoder.chunks(open_sources(path)))


def open_cold(path: Path) -> int:
    """As on a first run."""
    cache.clear()
    return open_feed(path).nonzeros


def compare(path: Path, rounds: int) -> dict[str, Any]:
    """Megabytes a second of every way to read the file."""
    ways: dict[str, Callable[[], int]] = {
        "scikit-learn": lambda: int(load_svmlight_file(str(path))[0].nnz),
        "parse, 1 thread": lambda: parse(path, 1),
        "parse, 2 threads": lambda: parse(path, 2),
        "open, cold": lambda: open_cold(path),
        "open, warm": lambda: open_feed(path).nonzeros,
    }
    entries = {name: way() for name, way in ways.items()}  # compiles, and fills the page cache
    if len(set(entries.values())) != 1:
        raise SystemExit(f"the readers disagree: {entries}")
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            begun = time.perf_counter()
            way()
            best[name] = min(best[name], time.perf_counter() - begun)
    size = path.stat().st_size / 1e6
    speeds = {name: size / seconds for name, seconds in best.items()}
    ratios = {name: speed / speeds["scikit-learn"] for name, speed in speeds.items()}
    return {"megabytes": size, "entries": entries["scikit-learn"], "megabytes_per_second": speeds, "ratio": ratios}


def main() -> None:
    """Print a table; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=50, help="size of each file")
    parser.add_argument("--rounds", type=int, default=5, help="the best of so many is taken")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    found: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count(), "files": {}}
    with tempfile.TemporaryDirectory() as directory:
        os.environ["HOGWILD_CACHE"] = directory  # after the import of the kernels: compiled code stays where it is
        for kind, value in KINDS.items():
            path = Path(directory) / "file.svm"
            write_file(path, options.megabytes, value)
            result = found["files"][kind] = compare(path, options.rounds)
            print(f"{kind}: {result['megabytes']:.0f} MB, {result['entries']:,} entries")
            for name, speed in result["megabytes_per_second"].items():
                print(f"  {name:18} {speed:10,.0f} MB/s {result['ratio'][name]:8.1f}x")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
