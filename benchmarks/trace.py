"""What a trace costs: seconds of a visit with and without it, in one process, in turns.

    python benchmarks/trace.py [--only linear,crf,words,own] [--threads 2] [--rounds 9] [--json FILE]

One line a program: processor time of a visit untraced and traced, the medians of the rounds; their ratio (the aim: at
most 1.5); and what was found. Processor time, not seconds: other programs disturb it less. Data is made up.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse

import hogwild
from hogwild.executor.trace import KINDS, add_up

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import own_program

RANDOM = np.random.default_rng(0)


def skewed(count: int, size: int | tuple[int, ...]) -> Any:
    """Numbers below `count`, the small ones often."""
    return np.minimum((count * RANDOM.random(size) ** 3).astype(int), count - 1)


def rows() -> Any:
    """50 features a row, of 5,000."""
    count, features, each = 20_000, 5_000, 50
    places = np.repeat(np.arange(count), each), skewed(features, count * each)
    matrix = scipy.sparse.csr_matrix((np.ones(count * each, np.float32), places), shape=(count, features))
    return hogwild.feed_of(matrix, (matrix @ RANDOM.normal(size=features) > 0).astype(int))


def sentences() -> Any:
    """322 of them, tagged by their words."""
    numbers = [skewed(2_000, int(length)) for length in RANDOM.integers(5, 40, 322)]
    tokens = [[{"w": f"w{n}", "last": str(n % 10)} for n in sentence] for sentence in numbers]
    return hogwild.tagging_of(tokens, [[f"tag{n % 5}" for n in sentence] for sentence in numbers])


def words() -> Any:
    """3,000 sentences of 20 words."""
    return hogwild.corpus_of([[f"w{n}" for n in skewed(2_000, 20)] for _ in range(3_000)])


CASES: dict[str, tuple[Callable[[], Any], Callable[[], Any], float]] = {
    "linear": (hogwild.Linear, rows, 0.1),
    "crf": (hogwild.CRF, sentences, 0.1),
    "words": (lambda: hogwild.Word2Vec(dim=50), words, 0.025),
    "own": (own_program.make_program, lambda: own_program.make_ratings(50_000, seed=1), 0.1),
}


def run(name: str, feed: Any, threads: int, trace: bool) -> tuple[float, dict[str, Any]]:
    """Seconds of processor time a visit, and what was found."""
    make, _, lr = CASES[name]
    executor = hogwild.AsyncExecutor(threads=threads, sharing="all", trace=trace, epochs=2, lr=lr)
    began, found = 0.0, []
    for event in executor.run(make(), feed):
        if event.kind == "started":
            began = time.process_time()
        elif event.kind == "epoch":
            found += event.trace
    return (time.process_time() - began) / event.samples, add_up(tuple(found))


def main() -> None:
    """All programs, in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json")
    options = parser.parse_args()
    results = {}
    for name in options.only.split(","):
        feed = CASES[name][1]()
        times: dict[bool, list[float]] = {False: [], True: []}
        for number in range(options.rounds + 1):
            for trace, seconds in times.items():
                spent, found = run(name, feed, options.threads, trace)
                if number:  # the first compiles
                    seconds.append(spent)
        plain, traced = (1e6 * median(seconds) for seconds in times.values())
        counts = {kind: found[kind] for kind in ("gradients", "looked_at", *KINDS)}
        results[name] = {"untraced_us": plain, "traced_us": traced, "ratio": traced / plain, **counts}
        print(f"{name:8} {plain:9.3f} us untraced {traced:9.3f} us traced  ratio {traced / plain:.2f}  {counts}")
    if options.json:
        Path(options.json).write_text(json.dumps({"threads": options.threads, "programs": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
