"""Clicks that only pairs of categories explain, as a feed of two slots and a dense column."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.arrays import SlotRows
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.ids.ranking import ranks_of


def pair_feed(rows: int = 600, seed: int = 1, kinds: int = 6, ranked: bool = True) -> Feed:
    """Label 1 where the categories of both slots are both even or both odd, and a number that says nothing."""
    random = np.random.default_rng(seed)
    drawn = random.integers(0, kinds, (rows, 2))
    targets = (drawn.sum(axis=1) % 2 == 0).astype(np.float32)
    own = (drawn + np.array([0, kinds])).reshape(-1).astype(np.int32)
    rank, original = ranks_of(np.bincount(own, minlength=2 * kinds))
    ids = rank[own] if ranked else own
    samples: Any = SlotRows(
        np.arange(rows + 1, dtype=np.int64) * 2, ids, np.tile(np.arange(2, dtype=np.uint16), rows),
        random.standard_normal((rows, 1)).astype(np.float32), targets, np.ones(rows, np.float32),
    )  # fmt: skip
    names = {"slots": ["left", "right"], "dense": ["noise"]}
    return Feed(samples, 2 * kinds, original if ranked else None, schema=names).check()
