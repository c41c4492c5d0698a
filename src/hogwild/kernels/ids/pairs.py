"""Pairs of neighbouring words: counted in a hash table, and joined to phrases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import PAD, Offsets
from hogwild.kernels.compiler.jit import exact, kernel
from hogwild.kernels.compiler.rng import mix

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
ABSENT = -1


class PairTable(NamedTuple):
    """Pairs with a number each: how often they occur, or the id of their phrase. At most half of the slots are in use.

    A key is (first id + 1) * 2^32 + second id, 0 where a slot is free. state[0]: pairs in the table.
    """

    keys: npt.NDArray[np.uint64]
    numbers: Offsets
    state: Offsets


def make_pairs(room: int) -> PairTable:
    """An empty table with room for so many pairs (a power of two)."""
    return PairTable(np.zeros(2 * room, np.uint64), np.zeros(2 * room, np.int64), np.zeros(PAD, np.int64))


@kernel
def _key(first: Any, second: Any) -> Any:
    return (np.uint64(first + 1) << _HALF) | np.uint64(second)


@kernel
def _slot_of(keys: Any, key: Any) -> int:
    """The slot of a pair, or the free one where it belongs."""
    mask = len(keys) - 1
    slot = np.int64(mix(key) & np.uint64(mask))
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def _add(table: Any, key: Any, number: int) -> bool:
    """Add to the number of a pair; False if it is new and there is no room."""
    keys, numbers, state = table.keys, table.numbers, table.state
    slot = _slot_of(keys, key)
    if keys[slot] == 0:
        if 2 * state[0] >= len(keys):
            return False
        keys[slot] = key
        state[0] += 1
    numbers[slot] += number
    return True


@kernel
def count_pairs(ids: Any, first: int, last: int, table: Any) -> int:
    """Count the pairs that begin at first … last - 1; returns where to go on (before `last` if the table is full)."""
    for k in range(first, min(last, len(ids) - 1)):
        if ids[k] >= 0 and ids[k + 1] >= 0 and not _add(table, _key(ids[k], ids[k + 1]), 1):
            return k
    return last


@kernel
def move_pairs(table: Any, first: int, least: int, target: Any) -> int:
    """Add the pairs from slot `first` on that have a number of `least` or more to another table; returns as above."""
    keys, numbers = table.keys, table.numbers
    for slot in range(first, len(keys)):
        if keys[slot] != 0 and numbers[slot] >= least and not _add(target, keys[slot], numbers[slot]):
            return slot
    return len(keys)


@exact
def best_pairs(table: Any, counts: Any, limits: Any, found: Any) -> int:
    """Put the slots of pairs whose score is above the threshold into `found`; returns how many.

    limits: occurrences that do not count, the factor N, the threshold. The score is
    (count(ab) - least) / (count(a) count(b)) * N, in float64 and in this order.
    """
    written = 0
    for slot in range(len(table.keys)):
        key = table.keys[slot]
        if key != 0:
            first, second = np.int64(key >> _HALF) - 1, np.int64(key & _LOW)
            both = np.float64(counts[first]) * np.float64(counts[second])
            if (table.numbers[slot] - limits[0]) / both * limits[1] > limits[2]:
                found[written] = slot
                written += 1
    return written


@kernel
def phrase_at(ids: Any, k: int, phrases: Any) -> int:
    """The id of the phrase that words k and k + 1 are, or ABSENT."""
    if k + 1 >= len(ids) or ids[k] < 0 or ids[k + 1] < 0:
        return ABSENT
    key = _key(ids[k], ids[k + 1])
    slot = _slot_of(phrases.keys, key)
    return phrases.numbers[slot] if phrases.keys[slot] == key else ABSENT


@kernel
def next_break(ids: Any, k: int, phrases: Any) -> int:
    """The first place from k on before which no phrase can begin: text can be cut there, and joined in parts."""
    while 0 < k < len(ids) and phrase_at(ids, k - 1, phrases) != ABSENT:
        k += 1
    return k


@kernel
def join_pairs(ids: Any, first: int, last: int, phrases: Any, joined: Any) -> int:
    """Join words first … last - 1 from left to right; returns how many ids there are then."""
    k, written = first, 0
    while k < last:
        phrase = phrase_at(ids, k, phrases) if k + 1 < last else ABSENT
        if phrase != ABSENT:
            joined[written] = phrase
            k += 2
        else:
            joined[written] = ids[k]
            k += 1
        written += 1
    return written
