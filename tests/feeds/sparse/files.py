"""Feeds as plain Python values, under the features' own ids."""

from __future__ import annotations

from itertools import pairwise

from hogwild.arrays import Rows
from hogwild.feeds.sparse.feed import Feed


def rows_of(feed: Feed) -> list[dict[int, float]]:
    """Value of each feature of each row."""
    samples = feed.samples
    assert feed.original is not None
    ids = feed.original[samples.ids].tolist()
    values = samples.values.tolist() if isinstance(samples, Rows) else [1.0] * len(ids)
    rows = [dict(zip(ids[a:b], values[a:b], strict=True)) for a, b in pairwise(samples.offsets.tolist())]
    assert sum(map(len, rows)) == len(ids), "a feature stands twice in a row"
    return rows


def targets_of(feed: Feed) -> list[float]:
    """Target of each row."""
    return [float(target) for target in feed.samples.targets]


def lines_of(feed: Feed) -> list[int]:
    """Line of each row."""
    assert feed.lines is not None
    return [int(line) for line in feed.lines]
