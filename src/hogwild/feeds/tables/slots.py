"""Tables as samples of slots: each column of categories is a slot, a column of text the last one, and columns of
numbers are those of the dense matrix, where a missing number is 0."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets, Slots
from hogwild.feeds.sparse.features import Features, join_rows
from hogwild.feeds.tables.columns import Plan


class SlotCells(NamedTuple):
    """Rows of a table. squares, present: of each column of numbers, and how many are other than 0."""

    features: Features
    slots: Slots
    dense: Floats
    squares: npt.NDArray[np.float64]
    present: Offsets


def slot_schema(plan: Plan) -> dict[str, Any]:
    """Names of slots and dense columns."""
    return {"slots": [*plan.categorical, *((plan.text,) if plan.text else ())], "dense": list(plan.numeric)}


def slot_cells(numbers: npt.NDArray[np.float64], named: Ids, text: Features | None) -> SlotCells:
    """Rows from numbers (NaN: missing), ids of categories (-1: none) and the features of a text column.

    >>> cells = slot_cells(np.array([[2.0], [np.nan]]), np.array([[5, -1], [6, 7]], np.int32), None)
    >>> cells.features.ids.tolist(), cells.slots.tolist(), cells.dense.tolist()
    ([5, 6, 7], [0, 0, 1], [[2.0], [0.0]])
    """
    filled = np.where(np.isnan(numbers), 0.0, numbers)
    known = named >= 0
    slots = np.nonzero(known)[1].astype(np.uint16)
    features = Features(known.sum(1).astype(np.int64), named[known], np.empty(0, np.float32))
    if text is not None:
        lengths = features.lengths
        features = join_rows(features, text)
        owners = np.full(len(features.ids), named.shape[1], np.uint16)
        firsts = np.cumsum(features.lengths) - features.lengths
        within = np.arange(len(owners)) - np.repeat(firsts, features.lengths)
        owners[within < np.repeat(lengths, features.lengths)] = slots
        slots = owners
    return SlotCells(
        features, slots, filled.astype(np.float32), (filled * filled).sum(0), np.count_nonzero(filled, 0)
    )
