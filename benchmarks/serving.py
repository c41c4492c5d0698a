"""One row at a time: microseconds of `predict_one` from what a server has, the median of 2,000 calls after the first.

Clicks: a dict of 26 categories and 13 numbers through 400-400-400; a factorization machine and a linear model on the
same rows; a text of 200 words through a text classifier and a linear model; a pair of user and item. All models are
trained for a moment on made data: what they know does not matter here.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import hogwild

ROWS, CALLS = 2000, 2000
LIMITS = {"clicks": 100.0, "linear": 20.0, "linear of text": 20.0, "text": 20.0}  # microseconds that issue 16 asks for


def made_clicks(random: np.random.Generator) -> list[dict[str, Any]]:
    """Rows as a log has them."""
    columns: dict[str, list[Any]] = {f"I{k}": random.lognormal(1, 1, ROWS).round(2).tolist() for k in range(1, 14)}
    columns |= {f"C{k}": [f"{key:08x}" for key in random.zipf(1.3, ROWS) % 5000] for k in range(1, 27)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def made_texts(random: np.random.Generator) -> list[str]:
    """Texts of 200 words."""
    return [" ".join(f"w{word}" for word in random.zipf(1.2, 200) % 30_000) for _ in range(400)]


def trained(program: Any, data: Any, labels: Any, **reading: Any) -> Any:
    """A program that has seen the data once."""
    config = hogwild.FeedConfig(**reading)
    feed = hogwild.feed_of(data, labels, config=config)
    return hogwild.train(program, feed, epochs=1, lr=0.01, threads=1, quiet=True)


def microseconds(ask: Callable[[Any], Any], rows: list[Any]) -> float:
    """The median of a call."""
    ask(rows[0])
    times = []
    for k in range(CALLS):
        row = rows[k % len(rows)]
        began = time.perf_counter()
        ask(row)
        times.append(time.perf_counter() - began)
    return float(np.median(times) * 1e6)


def main() -> None:
    """Measure and print."""
    random = np.random.default_rng(16)
    clicks, texts = made_clicks(random), made_texts(random)
    few = [{name: row[name] for name in ("I1", "I2", "C1", "C2", "C3")} for row in clicks]
    clicked, liked = random.integers(0, 2, ROWS), random.choice(["good", "bad"], len(texts))
    pairs = [(f"u{user}", f"i{item}", 1.0) for user, item in random.integers(0, 500, (ROWS, 2))]
    asked = {
        "clicks": (trained(hogwild.SparseMLP(hidden=(400, 400, 400)), clicks, clicked, layout="slots"), clicks),
        "factorization machine": (trained(hogwild.FactorizationMachine(), clicks, clicked), clicks),
        "linear, 39 columns": (trained(hogwild.Linear(), clicks, clicked), clicks),
        "linear": (trained(hogwild.Linear(), few, clicked), few),
        "linear of text": (trained(hogwild.Linear(), texts, liked), texts),
        "text": (trained(hogwild.TextClassifier(), texts, liked), texts),
    }
    found = {name: microseconds(program.predict_one, rows) for name, (program, rows) in asked.items()}
    recommender = hogwild.train(hogwild.MatrixFactorization(), pairs, epochs=1, threads=1, quiet=True)
    found["recommender"] = microseconds(recommender.predict_one, [pair[:2] for pair in pairs])
    for name, value in found.items():
        limit = f"  (at most {LIMITS[name]:.0f})" if name in LIMITS else ""
        print(f"{name:22} {value:7.1f} microseconds{limit}")
    print(json.dumps({"machine": platform.processor() or platform.machine(), "microseconds": found}))


if __name__ == "__main__":
    main()
