"""Cells of a table to sparse rows, in one pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets
from hogwild.kernels.compiler.jit import exact


class Cells(NamedTuple):
    """numbers[i, k]: row i of column k, NaN if missing; named[i, c]: id of a category, -1 if missing.

    scales[k]: factor of column k.
    """

    numbers: npt.NDArray[np.float64]
    named: Ids
    scales: Floats


class Filled(NamedTuple):
    """Features of the rows, one after another.

    For each column of numbers: the sum of squares, how many are other than 0, how many are missing.
    """

    lengths: Offsets
    ids: Ids
    values: Floats
    squares: npt.NDArray[np.float64]
    present: Offsets
    missing: Offsets


def make_filled(rows: int, columns: int, categories: int) -> Filled:
    """Room for the features of so many rows."""
    most = rows * (columns + categories)
    counts = np.zeros((2, columns), np.int64)
    ids, values = np.empty(most, np.int32), np.empty(most, np.float32)
    return Filled(np.zeros(rows, np.int64), ids, values, np.zeros(columns), counts[0], counts[1])


@exact
def fill_rows(cells: Any, filled: Any) -> int:
    """The features of every row: numbers other than 0, then categories; returns how many in all.

    The value is scaled in float32, after rounding, as it is where the factor is known only later.
    """
    numbers, named, scales = cells.numbers, cells.named, cells.scales
    lengths, ids, values = filled.lengths, filled.ids, filled.values
    total = 0
    for row in range(numbers.shape[0]):
        first = total
        for k in range(numbers.shape[1]):
            number = numbers[row, k]
            value = np.float32(number)
            if np.isnan(number):
                filled.missing[k] += 1
            elif value != 0:
                filled.squares[k] += number * number
                filled.present[k] += 1
                ids[total] = k
                values[total] = value * scales[k]
                total += 1
        for c in range(named.shape[1]):
            if named[row, c] >= 0:
                ids[total] = named[row, c]
                values[total] = np.float32(1)
                total += 1
        lengths[row] = total - first
    return total
