"""One row as features, for serving: what it is made into, and rows whose features are numbers already."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats, Ids
from hogwild.errors import InputError, brief

LARGEST = float(np.finfo(np.float32).max)


class OneRow(NamedTuple):
    """The features of one row. slots: of each id, where rows have them; dense: the numbers beside them."""

    ids: Sequence[int] | Ids
    values: Sequence[float] | Floats
    slots: Sequence[int] | None = None
    dense: Sequence[float] = ()

    def flat(self, features: int, slots: int) -> OneRow:
        """The same with each dense column a feature and a slot, numbered from these on."""
        columns = range(len(self.dense))
        owners = [*(self.slots or ()), *(slots + k for k in columns)]
        return OneRow([*self.ids, *(features + k for k in columns)], [*self.values, *self.dense], owners)


RowEncoder = Callable[[Any], OneRow]


def finite(value: Any, name: str) -> float:
    """A number that float32 can hold. Raises InputError that names its column."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not abs(number) <= LARGEST:
        raise InputError(f"column `{name}`: {brief(value)} is not a finite number; give one, or None if it is missing.")
    return number


class NumberedRow:
    """Rows of features that have numbers and no names: {number: value}, or all values in order.

    Examples
    --------
    >>> NumberedRow(4)({2: 0.5}), NumberedRow(3)([0.0, 2.0, 0.0]).ids
    (OneRow(ids=[2], values=[0.5], slots=None, dense=()), [1])
    """

    def __init__(self, features: int, means: Sequence[float] = ()) -> None:
        self.features, self._means = features, means

    def __call__(self, row: Any) -> OneRow:
        if isinstance(row, Mapping):
            found = {int(ident): finite(value, str(ident)) for ident, value in row.items()}
            if found and min(found) < 0:
                raise InputError(f"feature {min(found)} does not exist; features are numbered from 0.")
            known = {ident: value for ident, value in found.items() if ident < self.features}
            return OneRow(list(known), list(known.values()))
        values = values_of(row, self.features, "features", self._means)
        there = [k for k, value in enumerate(values) if value]
        return OneRow(there, [values[k] for k in there])


class MatrixRow:
    """Rows of a matrix whose columns are numbers for dense layers."""

    def __init__(self, columns: int, means: Sequence[float] = ()) -> None:
        self.columns, self._means = columns, means

    def __call__(self, row: Any) -> OneRow:
        return OneRow([], [], [], values_of(row, self.columns, "columns", self._means))


def values_of(row: Any, count: int, noun: str, means: Sequence[float] = ()) -> list[float]:
    """So many numbers. means: what stands for those that are missing, if there is such a thing."""
    try:
        values = row.tolist() if isinstance(row, np.ndarray) else list(row)
    except TypeError:
        raise InputError(f"a row is asked for, not {type(row).__name__}; give {count} numbers.") from None
    if len(values) != count:
        raise InputError(f"a row has {len(values)} values, but the model has {count} {noun}.")
    if means:
        values = [means[k] if value is None or value != value else value for k, value in enumerate(values)]
    return [finite(value, str(k)) for k, value in enumerate(values)]
