"""Names of rows of weights that all processes share, whatever order each ranks its words in: 64-bit hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hogwild.arrays import Ids, Offsets
from hogwild.errors import ConfigError, brief
from hogwild.feeds.io.source import Bytes
from hogwild.kernels.ids.hashing import hash_strings
from hogwild.programs.program import RowIds

_SEED = np.uint64(0x726F7773)  # all processes have the same


def hash_names(names: Sequence[str], what: str) -> RowIds:
    """A hash of each name; ConfigError where two have the same.

    Examples
    --------
    >>> one, other = hash_names(["to", "be"], "words"), hash_names(["be", "or", "to"], "words")
    >>> bool(one[0] == other[2]), bool(one[1] == other[0])
    (True, True)
    """
    parts = [name.encode("utf-8", "surrogatepass") for name in names]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return _hashed(np.frombuffer(bytearray(b"".join(parts)), np.uint8), ends, names.__getitem__, what)


def hash_pairs(ids: RowIds, numbers: Ids, name_of: Callable[[int], str], what: str) -> RowIds:
    """A hash of each id with its row of numbers; `name_of` tells one from its place where two have the same."""
    whole = np.concatenate([column.view(np.uint8) for column in (ids[:, None], np.ascontiguousarray(numbers))], axis=1)
    return _hashed(whole.reshape(-1), np.arange(len(whole) + 1) * whole.shape[1], name_of, what)


def _hashed(data: Bytes, ends: Offsets, name_of: Callable[[int], str], what: str) -> RowIds:
    hashes = np.empty(len(ends) - 1, np.uint64)
    with np.errstate(over="ignore"):
        hash_strings(data, ends, _SEED, hashes)
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(np.diff(hashes[order]) == 0)
    if len(same):
        one, other = (brief(name_of(int(row))) for row in order[same[0] : same[0] + 2])
        raise ConfigError(f"the {what} {one} and {other} have the same hash of 64 bits; rename one of them.")
    return hashes.view(np.int64)
