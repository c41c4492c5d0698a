"""How the cost of a linear model grows: with rows, with nonzeros a row, with threads. Million nonzeros a second.

Runs take turns and the best of each counts. The base is a zipf problem of 2^20 features with one and two threads.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from linear import synthetic

import hogwild

ROUNDS = 5
EPOCHS = 3


def speed(feed: Any, threads: int) -> float:
    """Nonzeros a second of one run."""
    executor = hogwild.AsyncExecutor(threads=threads, sharing="hot" if threads > 1 else "all")
    *_, finished = executor.run(hogwild.Linear(loss="logistic"), feed, epochs=EPOCHS, lr=0.3)
    return float(finished.units_per_second)


def main() -> None:
    """Measure, print and, if asked, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    shapes = [(rows, 100) for rows in (10_000, 50_000, 200_000)] + [(50_000, nonzeros) for nonzeros in (10, 30, 300)]
    cases: dict[tuple[int, int, int], float] = {}
    feeds = {}
    for rows, nonzeros in shapes:
        split = synthetic("zipf", rows, nonzeros)
        feeds[rows, nonzeros] = hogwild.feed_of(split.rows, split.labels)
    for _ in range(ROUNDS):
        for (rows, nonzeros), feed in feeds.items():
            for threads in (1, 2, 4):
                case = rows, nonzeros, threads
                cases[case] = max(cases.get(case, 0.0), speed(feed, threads))
    print(f"{'rows':>10}{'nonzeros':>10}{'1 thread':>12}{'2 threads':>12}{'4 threads':>12}   million nonzeros/s")
    for rows, nonzeros in feeds:
        found = [cases[rows, nonzeros, threads] / 1e6 for threads in (1, 2, 4)]
        print(f"{rows:10,}{nonzeros:10}" + "".join(f"{value:12.0f}" for value in found))
    if arguments.json:
        arguments.json.write_text(json.dumps([[*case, value] for case, value in cases.items()], indent=1) + "\n")


if __name__ == "__main__":
    main()
