"""A problem for two processes: both must see the same data."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse

import hogwild
from hogwild.feeds.sparse.feed import Feed


def linear_feed(rows: int = 2000) -> Feed:
    """Two classes that a linear model can tell apart, mostly; sparse."""
    random = np.random.default_rng(0)
    matrix = sparse.random(rows, 400, 0.05, format="csr", random_state=0, dtype=np.float32)
    return hogwild.feed_of(matrix, (matrix @ random.normal(size=400) > 0).astype(int), rank=False)
