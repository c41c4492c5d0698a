"""Rows as arrays: keep some of them, and put the features of two readings of the same rows side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets


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
