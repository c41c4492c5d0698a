"""Ids to ranks: counting over chunks."""

from __future__ import annotations

import numpy as np

from hogwild.arrays import Ids, Offsets
from hogwild.errors import InputError
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.ids.ranking import count_ids, ranks_of
from hogwild.machine import memory

MOST = 2**31 - 1       # features that int32 ids can name, 0 included
_BYTES = 8 + 4 + 4     # memory that a feature takes while it is ranked: its count, its rank, its place in the order


class Frequencies:
    """How often each id occurs, over any number of chunks.

    Examples
    --------
    >>> seen = Frequencies()
    >>> seen.add(np.array([3, 1, 3], np.int32))
    >>> seen.rank(features=4)[1].tolist()
    [3, 1, 0, 2]
    """

    def __init__(self) -> None:
        self._counts = np.zeros(1 << 16, np.int64)
        self.largest = -1

    @property
    def counts(self) -> Offsets:
        """Of each id up to the largest."""
        return self._counts[: self.largest + 1]

    def add_counts(self, counts: Offsets) -> None:
        """Those of other chunks."""
        if len(counts):
            self.largest = max(self.largest, len(counts) - 1)
            self._grow(len(counts))
            self._counts[: len(counts)] += counts

    def add(self, ids: Ids) -> None:
        """Count the ids of a chunk."""
        if not len(ids):
            return
        if int(ids.min()) < 0:
            raise InputError(f"feature id {int(ids.min())} is below 0; ids must be 0 or more.")
        self.largest = max(self.largest, int(ids.max()))
        self._grow(self.largest + 1)
        ready(count_ids, len(ids))(ids, self._counts)

    def rank(self, features: int, first: int = 0, remap: Ids | None = None) -> tuple[Ids, Ids]:
        """The rank of each feature and the feature of each rank; `first` is the id that stands for feature 0.

        remap: the feature of each id; then the ranks are those of ids.
        """
        check_features(max(features, self.largest + 1 - first))
        if remap is not None:
            self._grow(len(remap))
            counts = np.zeros(features, np.int64)
            np.add.at(counts, remap, self._counts[: len(remap)])
            rank, original = ranks_of(counts)
            return rank[remap], original
        self._grow(features + first)
        return ranks_of(self._counts[first : features + first])

    def _grow(self, size: int) -> None:
        if size > len(self._counts):
            check_features(size)
            counts = np.zeros(max(size, min(2 * len(self._counts), MOST + 1)), np.int64)
            counts[: len(self._counts)] = self._counts
            self._counts = counts


def check_features(features: int) -> None:
    """Raise InputError if so many features cannot be numbered, or not in the memory of this machine."""
    if features > MOST + 1:
        raise InputError(f"there are {features} features; at most {MOST + 1} can be numbered. Hash them to fewer.")
    if features * _BYTES > memory():
        raise InputError(
            f"the largest feature id is {features - 1}: ranking so many takes {features * _BYTES >> 30} GB, more than"
            " the memory of this machine. Number the features without gaps, or hash them to fewer."
        )
