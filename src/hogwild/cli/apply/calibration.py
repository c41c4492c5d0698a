"""Whether predicted chances come true: a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hogwild.feeds.sparse.feed import Feed
from hogwild.machine import cores
from hogwild.programs.sparse.metrics import Bin, calibration_table
from hogwild.programs.sparse.supervised import number_targets


def calibration_of(program: Any, feed: Feed) -> list[Bin]:
    """Predictions in bins, against what came; none for models that give no probability of one of two classes."""
    classes = getattr(program, "classes", None) or ()
    if len(classes) != 2 or getattr(program, "loss", "") != "logistic":
        return []
    importance = feed.samples.importance
    weight = None if bool((importance == 1).all()) else importance
    chances = program.predict_proba(feed, cores())[:, 1]
    return calibration_table(chances, number_targets(feed, program.classes) == 1, weight)


def print_table(table: Sequence[Bin]) -> None:
    """A line for each bin."""
    print(f"{'predicted':>17} {'samples':>12} {'mean':>8} {'real':>8}")
    for each in table:
        span = f"{each.low:.4f} - {each.high:.4f}"
        print(f"{span:>17} {each.rows:>12,} {each.predicted:>8.4f} {each.positive:>8.4f}")
