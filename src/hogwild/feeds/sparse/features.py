"""Rows as arrays: keep some of them, put the features of two readings of the same rows side by side; columns of numbers
scaled, and what is missing in them filled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets
from hogwild.errors import InputError

TOO_LARGE = "a number is too large for float32 once it is scaled as in training"
SCALED = "Numbers are divided by the root mean square of their column without its zeros (not with --no-scale)."


class Features(NamedTuple):
    """Features of a run of rows: row i has lengths[i] of them. `values` is empty when all are 1."""

    lengths: Offsets
    ids: Ids
    values: Floats


def keep_rows(features: Features, keep: npt.NDArray[np.bool_]) -> Features:
    """The rows that are marked.

    >>> few = keep_rows(Features(np.array([1, 2]), np.array([7, 8, 9]), np.empty(0)), np.array([False, True]))
    >>> few.lengths.tolist(), few.ids.tolist()
    ([2], [8, 9])
    """
    if keep.all():
        return features
    entries = np.repeat(keep, features.lengths)
    values = features.values[entries] if len(features.values) else features.values
    return Features(features.lengths[keep], features.ids[entries], values)


def join_rows(left: Features, right: Features) -> Features:
    """Row i of the result has the features of row i of `left`, then those of row i of `right`.

    >>> both = join_rows(Features(np.array([1, 0]), np.array([5]), np.empty(0)),
    ...                  Features(np.array([1, 1]), np.array([8, 9]), np.array([2.0, 3.0])))
    >>> both.ids.tolist(), both.values.tolist()
    ([5, 8, 9], [1.0, 2.0, 3.0])
    """
    lengths = left.lengths + right.lengths
    starts = np.cumsum(lengths) - lengths
    ids = np.empty(len(left.ids) + len(right.ids), np.int32)
    plain = not len(left.values) and not len(right.values)
    values = np.empty(0 if plain else len(ids), np.float32)
    for part, firsts in ((left, starts), (right, starts + left.lengths)):
        places = _places(firsts, part.lengths)
        ids[places] = part.ids
        if not plain:
            values[places] = part.values if len(part.values) else 1
    return Features(lengths, ids, values)


def _places(firsts: Offsets, lengths: Offsets) -> Offsets:
    """firsts[0], firsts[0] + 1, … for lengths[0] places, and so on for every row."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(firsts - before, lengths) + np.arange(int(lengths.sum()))


def all_ones(values: Floats) -> Floats:
    """The values, or nothing if all are 1."""
    return values[:0] if len(values) and bool((values == 1).all()) else values


class Scales:
    """Factors that bring columns of numbers to a like size: as the schema says, else measured if that is asked for.

    factors: what numbers are multiplied by while they are read; 1 where that is known only at the end.

    Examples
    --------
    >>> scales = Scales(3, {}, asked=True)
    >>> scales.add(np.array([8.0, 0.0, 1e-90]), np.array([2, 0, 1]))
    >>> scales.final()
    [0.5, 1.0, 1.0]
    """

    def __init__(self, columns: int, schema: Mapping[str, Any], asked: bool) -> None:
        self.factors = np.array(schema.get("scales", [1.0] * columns), np.float32).reshape(columns)
        self.measured = asked and not schema
        self._squares, self._present = np.zeros(columns), np.zeros(columns, np.int64)

    def add(self, squares: npt.NDArray[np.float64], present: Offsets) -> None:
        """Of each column of some rows the sum of squares, and how many numbers are other than 0."""
        self._squares += squares
        self._present += present

    def final(self) -> list[float]:
        """1 / root mean square of each column without its zeros; 1 where there is none, or none that float32 can
        hold."""
        if not self.measured:
            return [float(factor) for factor in self.factors]
        sizes = np.sqrt(self._squares / np.maximum(self._present, 1))
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            factors = (1 / sizes).astype(np.float32)
        return [float(factor) if np.isfinite(factor) and factor > 0 else 1.0 for factor in factors]

    def apply(self, numbers: Floats, place_of: Callable[[int], str]) -> None:
        """Multiply columns by their factors, in place. Raises InputError at the first row that overflows."""
        with np.errstate(over="ignore"):
            numbers *= self.factors
        finite = np.isfinite(numbers)
        if not finite.all():
            row = int(np.argmin(finite.all(1)))
            raise InputError(f"{place_of(row)}: {TOO_LARGE}; correct it, or train on numbers of this size too.")


class Fills:
    """What missing numbers of each column are: as the schema says, else measured.

    kind: `mean` (with a feature beside it that says so), `zero` or `error`. values: of each column, before scaling; NaN
    where that is known only at the end. A model that was saved before there were means leaves missing numbers out.

    Examples
    --------
    >>> fills = Fills(2, {}, "mean")
    >>> fills.add(np.array([6.0, 0.0]), np.array([3, 0]))
    >>> fills.values.tolist(), fills.final()
    ([nan, nan], [2.0, 0.0])
    """

    def __init__(self, columns: int, schema: Mapping[str, Any], kind: str) -> None:
        self.kind: str = schema.get("missing_numbers", "zero") if schema else kind
        self.measured = self.kind == "mean" and not schema
        self.values = np.zeros(columns, np.float32)
        if self.measured:
            self.values[:] = np.nan
        elif self.kind == "mean":
            self.values[:] = np.array(schema["means"], np.float32).reshape(columns)
        self._sums, self._counts = np.zeros(columns), np.zeros(columns, np.int64)

    def add(self, sums: npt.NDArray[np.float64], counts: Offsets) -> None:
        """Of each column of some rows the sum, and how many numbers there are."""
        self._sums += sums
        self._counts += counts

    def final(self) -> list[float]:
        """The value of each column, as float32 has it."""
        if not self.measured:
            return [float(value) for value in self.values]
        return [float(mean) for mean in (self._sums / np.maximum(self._counts, 1)).astype(np.float32)]


def settle(values: Floats, columns: npt.NDArray[np.integer[Any]], fills: Floats, scales: Floats) -> None:
    """Fill and scale, in place, values whose columns are known by number; those past the last one stay as they are.

    >>> values = np.array([2.0, np.nan, 1.0], np.float32)
    >>> settle(values, np.array([0, 1, 2]), np.array([0.0, 5.0], np.float32), np.array([0.5, 2.0], np.float32))
    >>> values.tolist()
    [1.0, 10.0, 1.0]
    """
    if len(fills):
        holes = np.flatnonzero(np.isnan(values))
        values[holes] = fills[columns[holes]]
    if len(scales):
        covered = columns < len(scales)
        values[covered] *= scales[columns[covered]]
