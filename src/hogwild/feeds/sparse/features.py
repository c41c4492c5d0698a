"""Rows as arrays: keep some of them, put the features of two readings of the same rows side by side; columns of numbers
scaled, and what is missing in them filled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets, Slots
from hogwild.errors import InputError

TOO_LARGE = "a number is too large for float32 once it is scaled as in training"
SCALED = "Numbers are divided by the root mean square of their column without its zeros (not with --no-scale)."
CENTRED = "Numbers are centred on the mean of their column and divided by its standard deviation (not with --no-scale)."


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


class Moments(NamedTuple):
    """Of each column of some rows how many numbers there are, their mean, and the sum of squares about it."""

    counts: Offsets
    means: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]

    @classmethod
    def of(cls, numbers: npt.NDArray[np.float64]) -> Moments:
        """Of a matrix; NaN is no number."""
        numbers = np.ascontiguousarray(numbers)  # sums depend on the order, by a little
        there = ~np.isnan(numbers)
        counts = there.sum(0)
        means = np.where(there, numbers, 0.0).sum(0) / np.maximum(counts, 1)
        apart = np.where(there, numbers - means, 0.0)
        return cls(counts, means, (apart * apart).sum(0))

    def with_others(self, other: Moments) -> Moments:
        """Of the rows of both. Sums about each mean: the difference of two large sums would be noise."""
        counts = self.counts + other.counts
        apart, share = other.means - self.means, other.counts / np.maximum(counts, 1)
        squares = self.squares + other.squares + apart * apart * share * self.counts
        return Moments(counts, self.means + apart * share, squares)


class Standards:
    """What centres columns of numbers and brings them to spread 1: as the schema says, else measured if that is asked
    for. A model that was saved before there were shifts has factors alone.

    shifts, factors: what is taken from numbers while they are read, and what they are then multiplied by; 0 and 1
    where that is known only at the end.

    Examples
    --------
    >>> standards = Standards(2, {}, asked=True)
    >>> standards.add(Moments.of(np.array([[2.0, 5.0], [4.0, np.nan]])))
    >>> standards.add(Moments.of(np.array([[6.0, 5.0], [8.0, 5.0]])))
    >>> shifts, scales = standards.final()
    >>> shifts, [round(scale, 4) for scale in scales]
    ([5.0, 5.0], [0.4472, 1.0])
    """

    def __init__(self, columns: int, schema: Mapping[str, Any], asked: bool) -> None:
        self.shifts = np.array(schema.get("shifts", [0.0] * columns), np.float32).reshape(columns)
        self.factors = np.array(schema.get("scales", [1.0] * columns), np.float32).reshape(columns)
        self.measured = asked and not schema
        self.told = not schema or "shifts" in schema
        self._moments = Moments(np.zeros(columns, np.int64), np.zeros(columns), np.zeros(columns))

    def add(self, moments: Moments) -> None:
        """Count more rows in."""
        self._moments = self._moments.with_others(moments)

    def final(self) -> tuple[list[float], list[float]]:
        """Mean and 1 / standard deviation of each column, as float32 has them; 1 where there is none that it can
        hold."""
        if self.measured:
            counts, means, squares = self._moments
            with np.errstate(divide="ignore", over="ignore", under="ignore"):
                factors = (1 / np.sqrt(squares / np.maximum(counts, 1))).astype(np.float32)
                shifts = means.astype(np.float32)
                # What float32 cannot tell from the mean is no spread.
                noise = np.sqrt(squares / np.maximum(counts, 1)) <= 1e-6 * np.abs(means)
            usable = np.isfinite(factors) & (factors > 0) & ~noise
            return [float(shift) for shift in shifts], [float(scale) for scale in np.where(usable, factors, 1)]
        return [float(shift) for shift in self.shifts], [float(factor) for factor in self.factors]

    def schema(self) -> dict[str, Any]:
        """JSON values from which these are made again; an old model is told of as it was."""
        shifts, scales = self.final()
        return {"shifts": shifts, "scales": scales} if self.told else {"scales": scales}

    def standardized(self, numbers: Floats) -> Floats:
        """Numbers less the shifts, times the factors; all in float32, so that it is the same wherever it is done."""
        with np.errstate(over="ignore"):
            found: Floats = (numbers - self.shifts) * self.factors
        return found

    def apply(self, numbers: Floats, place_of: Callable[[int], str]) -> None:
        """Standardize columns in place. Raises InputError at the first row that overflows."""
        numbers[:] = self.standardized(numbers)
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


def settle(
    values: Floats, columns: npt.NDArray[np.integer[Any]], fills: Floats, scales: Floats, shifts: Floats | None = None
) -> None:
    """Fill, centre and scale, in place, values whose columns are known by number; those past the last one stay as they
    are.

    >>> values = np.array([2.0, np.nan, 1.0], np.float32)
    >>> settle(values, np.array([0, 1, 2]), np.array([0.0, 5.0], np.float32), np.array([0.5, 2.0], np.float32))
    >>> values.tolist()
    [1.0, 10.0, 1.0]
    """
    if len(fills):
        holes = np.flatnonzero(np.isnan(values))
        values[holes] = fills[columns[holes]]
    if shifts is not None and len(shifts):
        values -= shifts[columns]
    if len(scales):
        covered = columns < len(scales)
        values[covered] *= scales[columns[covered]]


# -- tables as samples of slots ---------------------------------------------------------------------------------------
# Each column of categories is a slot, then each column of several values, then a column of text, and columns of numbers
# are those of the dense matrix. What says that a number is missing is in the last slot.

class SlotCells(NamedTuple):
    """Rows of a table."""

    features: Features
    slots: Slots
    dense: Floats


def slot_cells(
    numbers: npt.NDArray[np.float64], named: Ids, others: Sequence[Features], fills: Floats, marks: Ids
) -> SlotCells:
    """Rows from numbers (NaN: missing), ids of categories (-1: none) and the features of columns that have several.

    fills: what a missing number of each column is; marks: ids of the features that say so, -1 for none.

    >>> named = np.array([[5, -1], [6, 7]], np.int32)
    >>> cells = slot_cells(np.array([[2.0], [np.nan]]), named, [], np.array([4.0]), np.array([8]))
    >>> cells.features.ids.tolist(), cells.slots.tolist(), cells.dense.tolist()
    ([5, 6, 7, 8], [0, 0, 1, 2], [[2.0], [4.0]])
    """
    missing = np.isnan(numbers)
    known = named >= 0
    slots = np.nonzero(known)[1].astype(np.uint16)
    features, owners = _of_ids(named, known), named.shape[1]
    for other in others:
        features, slots = _with_slot(features, slots, other, owners)
        owners += 1
    marked = missing & (marks >= 0) if len(marks) else missing[:, :0]
    if marked.any():
        features, slots = _with_slot(features, slots, _of_ids(np.broadcast_to(marks, marked.shape), marked), owners)
    dense = np.where(missing, fills, numbers).astype(np.float32)
    return SlotCells(features, slots, dense)


def _of_ids(ids: Ids, there: npt.NDArray[np.bool_]) -> Features:
    """The ids of each row that are there."""
    return Features(there.sum(1).astype(np.int64), ids[there].astype(np.int32), np.empty(0, np.float32))


def _with_slot(left: Features, slots: Slots, right: Features, slot: int) -> tuple[Features, Slots]:
    """Rows with one slot more."""
    features = join_rows(left, right)
    owners = np.full(len(features.ids), slot, np.uint16)
    firsts = np.cumsum(features.lengths) - features.lengths
    within = np.arange(len(owners)) - np.repeat(firsts, features.lengths)
    owners[within < np.repeat(left.lengths, features.lengths)] = slots
    return features, owners
