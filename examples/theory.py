"""The convergence theorem of AsynGrad, put to the test: measure its constants, train as it says, compare.

Logistic regression with 64 dense features, of which everything is known: its optimum is found by Newton's method. Two
and four workers overwrite each other's weights all the time; the errors are measured, the theorem gives a learning rate
and a number of updates, and the runs must end within epsilon of the optimum. docs/theory.md explains every number.
Run it: python examples/theory.py [theory.png]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import hogwild
from hogwild import theory

EPSILON = 5e-5  # how near to the least loss


def make_feed(rows: int = 1000, features: int = 64, seed: int = 0) -> hogwild.Feed:
    """Rows of length one, and labels that a linear model explains in part."""
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(rows, features)) * np.linspace(0.5, 1.5, features)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    chances = 1 / (1 + np.exp(-matrix @ random.normal(size=features)))
    return hogwild.feed_of(matrix, random.random(rows) < chances)


def main(picture: str = "theory.png") -> None:
    """Measure, train, compare; write a picture and, beside it, all numbers as JSON."""
    program = hogwild.Linear(loss="logistic", l2=0.1, bias=False)
    objective = theory.objective_of(program, make_feed())

    checks = []
    for threads in (2, 4):
        engine = theory.Measured(objective, threads)
        known = theory.estimate(engine, EPSILON)
        checks.append(theory.experiment(engine, EPSILON, known))
    checks.append(theory.experiment(theory.Trained(objective, threads=2), EPSILON, checks[0].estimates))
    for check in checks:
        print(check)

    numbers = Path(picture).with_suffix(".json")
    numbers.write_text(json.dumps([check.record() for check in checks], indent=1) + "\n", encoding="utf-8")
    print(numbers)
    if not all(check.problem for check in checks):
        theory.draw(checks, picture)
        print(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
