"""The weighted samples of small data in one order, however they were written."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SMALL = 10_000  # rows up to which data is brought into one order
_REPEATS = 10  # rows that whole weights may make of one, on average


def canonical(X: Any, y: Array, weight: Array) -> tuple[Any, Array, Array]:
    """The same weighted samples in an order of their own: sorted, and with rows of a whole weight repeated.

    So a model of small data depends neither on the order of its rows nor on whether a row is repeated or weighed.
    """
    rows = len(y)
    whole = bool((weight == np.round(weight)).all()) and float(weight.sum()) <= _REPEATS * rows
    order = np.lexsort((weight, np.unique(y, return_inverse=True)[1], _keys(X)))
    if whole:
        order = np.repeat(order, weight[order].astype(np.int64))
    return X[order], y[order], np.ones(len(order), np.float32) if whole else weight[order]


def _keys(X: Any) -> npt.NDArray[np.uint64]:
    """A number for each row: equal for equal rows, dense or sparse, and hardly ever for others. Exact, modulo 2^64."""
    multipliers = np.random.default_rng(0).integers(0, 2**64, X.shape[1], np.uint64)
    if isinstance(X, np.ndarray):
        return np.asarray((X + np.float32(0)).view(np.uint32) @ multipliers)  # plus zero: -0 becomes 0
    terms = (X.data + np.float32(0)).view(np.uint32) * multipliers[X.indices]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
