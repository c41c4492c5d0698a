"""Ids ranked by how often they occur: the most frequent feature gets id 0. Hot rows of weights are then a prefix."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids
from hogwild.kernels.compiler.jit import kernel

_COMMON = 1 << 16  # counts from here on are sorted one against the other: few ids have them
_FEW = 1 << 14  # ids that are as soon sorted without compiled code


def ranks_of(counts: npt.NDArray[np.int64]) -> tuple[Ids, Ids]:
    """The rank of each id, and the id of each rank, by falling count; equal counts stay in the order of ids.

    Examples
    --------
    >>> rank, original = ranks_of(np.array([1, 5, 0, 5]))
    >>> rank.tolist(), original.tolist()
    ([2, 0, 3, 1], [1, 3, 0, 2])
    """
    if len(counts) <= _FEW:
        original = np.argsort(-counts, kind="stable").astype(np.int32)
        rank = np.empty(len(counts), np.int32)
        rank[original] = np.arange(len(counts), dtype=np.int32)
        return rank, original
    original = np.empty(len(counts), np.int32)
    common = int(order_by_count(counts, np.zeros(_COMMON + 2, np.int64), original))
    head = original[:common]
    head[:] = head[np.argsort(-counts[head], kind="stable")]
    rank = np.empty(len(counts), np.int32)
    invert(original, rank)
    return rank, original


@kernel
def count_ids(ids: Any, counts: Any) -> None:
    """Add the occurrences of each id to its count."""
    for k in range(len(ids)):
        counts[ids[k]] += 1


@kernel
def order_by_count(counts: Any, starts: Any, original: Any) -> int:
    """Counting sort of ids by falling count; returns how many ids share the first bucket, of the largest counts.

    starts: zeros, for where each bucket begins.
    """
    for ident in range(len(counts)):
        starts[_COMMON - min(counts[ident], _COMMON) + 1] += 1
    common = starts[1]
    for bucket in range(_COMMON):
        starts[bucket + 1] += starts[bucket]
    for ident in range(len(counts)):
        bucket = _COMMON - min(counts[ident], _COMMON)
        original[starts[bucket]] = ident
        starts[bucket] += 1
    return common


@kernel
def invert(original: Any, rank: Any) -> None:
    """The rank of each id from the id of each rank."""
    for k in range(len(original)):
        rank[original[k]] = k


@kernel
def replace_ids(ids: Any, rank: Any, first: int) -> None:
    """Replace ids by their ranks, in place; `first` is the id of feature 0."""
    for k in range(len(ids)):
        ids[k] = rank[ids[k] - first]
