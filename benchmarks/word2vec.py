"""Word vectors against gensim and fastText: words a second in one run, interleaved, and quality at equal epochs.

Speed: every system trains one epoch in each round, in turns; the best round counts. Seconds are those of training,
without vocabulary and compiler; fastText does not tell them apart, so its vocabulary is in. `--quality` trains three
epochs with each of three seeds, ours and gensim's, and measures word similarity and analogies on both with our
`evaluate`, whose values are tested to be gensim's.
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

import hogwild
from hogwild.executor.events import Finished
from hogwild.programs.words.evaluation import evaluate_test, read_tests

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LINE = 1000  # words: gensim cuts longer lines
RATES = {"skip-gram": 0.025, "cbow": 0.15}
GENSIM_RATES = {"skip-gram": 0.025, "cbow": 0.05}
TESTS = ("EN-WS-353-ALL.txt", "EN-SIMLEX-999.txt", "EN-MEN-TR-3k.txt")


def ours(corpus: Any, model: str, dim: int, threads: int, epochs: int = 1, seed: int = 1) -> Any:
    """Words a second of training, and the program."""
    program = hogwild.Word2Vec(dim=dim, cbow=model == "cbow")
    executor = hogwild.AsyncExecutor(
        threads=threads, epochs=epochs, seed=seed, lr=RATES[model], lr_end=0.17, shuffle=False, sharing="all"
    )
    for event in executor.run(program, corpus):
        if isinstance(event, Finished):
            return corpus.total * epochs / event.train_seconds, program
    raise AssertionError("a run ends with Finished")


def gensim(path: Path, model: str, dim: int, threads: int, epochs: int = 1, seed: int = 1) -> Any:
    """Words a second of training, and the model."""
    from gensim.models import Word2Vec

    peer = Word2Vec(
        vector_size=dim, window=5, negative=5, sg=int(model == "skip-gram"), workers=threads, min_count=5, sample=1e-4,
        epochs=epochs, alpha=GENSIM_RATES[model], seed=seed,
    )  # fmt: skip
    peer.build_vocab(corpus_file=str(path))
    begun = time.perf_counter()
    peer.train(
        corpus_file=str(path), total_examples=peer.corpus_count, total_words=peer.corpus_total_words, epochs=epochs
    )
    return peer.corpus_total_words * epochs / (time.perf_counter() - begun), peer


def fasttext(path: Path, model: str, dim: int, threads: int, words: int) -> float:
    """Words a second, vocabulary included; 0 where it gives up, as with "Encountered NaN" on this text."""
    import fasttext as peer

    begun = time.perf_counter()
    try:
        peer.train_unsupervised(
            str(path), model="skipgram" if model == "skip-gram" else "cbow", dim=dim, ws=5, neg=5, t=1e-4, minCount=5,
            epoch=1, lr=0.025, thread=threads, minn=0, maxn=0, bucket=1, verbose=0,
        )  # fmt: skip
    except RuntimeError as error:
        print(f"fastText: {error}")
        return 0.0
    return words / (time.perf_counter() - begun)


def speed(path: Path, corpus: Any, model: str, dim: int, rounds: int, peers: list[str]) -> dict[str, float]:
    """Best words a second of each system."""
    ways: dict[str, Callable[[], float]] = {
        "hogwild, 2 threads": lambda: ours(corpus, model, dim, 2)[0],
        "hogwild, 1 thread": lambda: ours(corpus, model, dim, 1)[0],
    }
    if "gensim" in peers:
        ways["gensim, 2 threads"] = lambda: gensim(path, model, dim, 2)[0]
    if "fasttext" in peers:
        ways["fastText, 2 threads"] = lambda: fasttext(path, model, dim, 2, corpus.total)
    best = dict.fromkeys(ways, 0.0)
    for _ in range(rounds):
        for name, way in ways.items():
            best[name] = max(best[name], way())
    return best


def quality(path: Path, corpus: Any, tests: Path, model: str, epochs: int, seeds: int) -> dict[str, Any]:
    """Scores of both systems, a list over the seeds for each test."""
    found: dict[str, dict[str, list[float]]] = {"hogwild": {}, "gensim": {}}
    for seed in range(1, seeds + 1):
        peer = gensim(path, model, 100, 2, epochs, seed)[1]
        vectors = {
            "hogwild": ours(corpus, model, 100, 2, epochs, seed)[1].vectors,
            "gensim": hogwild.Vectors(peer.wv.index_to_key, peer.wv.vectors),
        }
        for name, known in vectors.items():
            for test, score in scores(known, tests).items():
                found[name].setdefault(test, []).append(score)
    return found


def scores(vectors: Any, tests: Path) -> dict[str, float]:
    """Spearman and analogies, in percent."""
    found = {}
    for test in read_tests([tests / name for name in (*TESTS, "questions-words.txt")]):
        score = evaluate_test(vectors, test, 30_000)
        assert score.pairs or score.total
        found[Path(test.name).stem] = 100 * (score.pairs.spearman if score.pairs else score.total.accuracy)
    return found


def prepare(directory: Path) -> tuple[Path, Path]:
    """The text in lines, and the tests unpacked."""
    with lzma.open(DATA / "wiki" / "wiki100m.txt.xz", "rt") as file:
        words = file.read().split()
    path = directory / "wiki.txt"
    with open(path, "w") as file:
        for start in range(0, len(words), LINE):
            file.write(" ".join(words[start : start + LINE]) + "\n")
    for name in TESTS:
        (directory / name).write_bytes((DATA / "wordsim" / name).read_bytes())
    with lzma.open(DATA / "wordsim" / "questions-words.txt.xz") as packed:
        (directory / "questions-words.txt").write_bytes(packed.read())
    return path, directory


def main() -> None:
    """Print tables; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many is taken")
    parser.add_argument("--models", nargs="*", default=["skip-gram", "cbow"], choices=list(RATES))
    parser.add_argument("--dims", nargs="*", type=int, default=[100, 300])
    parser.add_argument("--peers", nargs="*", default=["gensim", "fasttext"], choices=["gensim", "fasttext"])
    parser.add_argument("--quality", action="store_true", help="train three epochs with three seeds, and measure")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"{DATA} is not there: this benchmark needs its text.")
    found: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count(), "speed": {}, "quality": {}}
    with tempfile.TemporaryDirectory() as directory:
        path, tests = prepare(Path(directory))
        corpus = hogwild.open_corpus(path)
        for model in options.models:
            for dim in options.dims:
                best = speed(path, corpus, model, dim, options.rounds, options.peers)
                found["speed"][f"{model} {dim}"] = best
                print(f"{model}, dim {dim}")
                for name, rate in best.items():
                    ratio = best["hogwild, 2 threads"] / rate if rate else float("nan")
                    print(f"  {name:22} {rate / 1e6:7.2f} million words/s  {ratio:6.2f}x")
            if options.quality:
                found["quality"][model] = quality(path, corpus, tests, model, epochs=3, seeds=3)
                for name, by_test in found["quality"][model].items():
                    means = {test: float(np.mean(values)) for test, values in by_test.items()}
                    text = ", ".join(f"{test} {value:.1f}" for test, value in means.items())
                    print(f"  {name}: {text}; mean {np.mean(list(means.values())):.2f}")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
