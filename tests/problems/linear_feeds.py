"""Small sparse problems as feeds, and linear programs trained on them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from hogwild.arrays import Rows
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.sparse.feed import Feed

FEATURES = 30
ROWS = 400
CONSTANT = {"schedule": "constant", "lr": 0.2}


def make_feed(classes=2, seed=0, features=FEATURES, rows=ROWS, ranked=False, labels=(), importance=None):
    """A learnable sparse problem; with `ranked`, ids are shuffled ranks and `original` names the features."""
    random = np.random.default_rng(seed)
    truth = np.random.default_rng(77).normal(0, 2, (200, max(classes, 1)))[:features]
    matrix = sp.random(rows, features, 0.2, "csr", np.float32, rng=random)
    matrix.sort_indices()
    if classes > 1:
        targets = (matrix @ truth + random.normal(0, 0.1, (rows, classes))).argmax(axis=1)
    else:
        targets = (matrix @ truth)[:, 0] + 0.5
    weights = np.ones(rows) if importance is None else importance
    ids, original = matrix.indices.astype(np.int32), None
    if ranked:
        original = random.permutation(features).astype(np.int32)
        back = np.empty_like(original)
        back[original] = np.arange(features, dtype=np.int32)
        ids = back[ids]
    samples = Rows(
        matrix.indptr.astype(np.int64), ids, matrix.data, targets.astype(np.float32), weights.astype(np.float32)
    )
    return Feed(samples, features, original=original, labels=labels, source="toy.svm").check()


def dense(feed):
    """The feed's matrix with columns in the features' own order."""
    rows = feed.samples
    own = rows.ids if feed.original is None else feed.original[rows.ids]
    return sp.csr_matrix((rows.values, own, rows.offsets), shape=(len(feed), feed.features)).toarray()


def fit(program, feed, epochs=5, mode="serial", **options):
    executor = AsyncExecutor(threads=options.pop("threads", 1), mode=mode, **{**CONSTANT, **options})
    return list(executor.run(program, feed, epochs=epochs))
