"""Keys of features to numbers: a hash table with open addressing, in parts that several threads fill side by side.

A key belongs to one part, whichever thread meets it. So counts and first places do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Ids, Offsets
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.ids.templates import NONE, Keys

_PART = np.uint64(48)  # bits of a key below those that choose its part; the lowest choose its slot


class KeyTable(NamedTuple):
    """Distinct keys, in the order of their first places. slots: number + 1 (0: free), at most half in use.

    keys, counts, firsts: of each number; size[0]: how many there are.
    """

    slots: Ids
    keys: Keys
    counts: Offsets
    firsts: Offsets
    size: Offsets


def make_table(room: int) -> KeyTable:
    """An empty table with room for so many keys, a power of two."""
    return KeyTable(
        slots=np.zeros(2 * room, np.int32),
        keys=np.zeros(room, np.uint64),
        counts=np.zeros(room, np.int64),
        firsts=np.zeros(room, np.int64),
        size=np.zeros(1, np.int64),
    )


def grown(table: KeyTable) -> KeyTable:
    """The same table with twice the room."""
    larger = make_table(2 * len(table.keys))
    size = int(table.size[0])
    for old, new in ((table.keys, larger.keys), (table.counts, larger.counts), (table.firsts, larger.firsts)):
        new[:size] = old[:size]
    larger.size[0] = size
    _fill_slots(larger.keys, size, larger.slots)
    return larger


@kernel
def _slot_of(keys: Any, slots: Any, key: Any) -> int:
    """The slot that holds a key, or the free one where it belongs."""
    mask = len(slots) - 1
    slot = np.int64(key & np.uint64(mask))
    while slots[slot] != 0 and keys[slots[slot] - 1] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def _fill_slots(keys: Any, size: int, slots: Any) -> None:
    for number in range(size):
        slots[_slot_of(keys, slots, keys[number])] = number + 1


@kernel
def count_keys(table: Any, keys: Any, start: int, base: int, part: Any, parts: Any, numbers: Any) -> int:
    """Count the keys of one part from number `start` on; numbers[k] becomes number * parts + part, or -1 for NONE.

    base: the place of keys[0] in the whole text. Returns where it stands: before the end if the table is full.
    """
    slots, known, size = table.slots, table.keys, table.size[0]
    for k in range(start, len(keys)):
        key = keys[k]
        if np.int64(key >> _PART) % parts != part:
            continue
        if key == NONE:
            numbers[k] = -1
            continue
        slot = _slot_of(known, slots, key)
        if slots[slot] == 0:
            if size == len(known):
                table.size[0] = size
                return k
            known[size] = key
            table.counts[size] = 0
            table.firsts[size] = base + k
            size += 1
            slots[slot] = size
        number = slots[slot] - 1
        table.counts[number] += 1
        numbers[k] = number * parts + part
    table.size[0] = size
    return len(keys)


@kernel
def find_keys(table: Any, keys: Any, numbers: Any) -> int:
    """The number of each key, or -1; returns how many keys are not in the table."""
    unknown = 0
    for k in range(len(keys)):
        number = -1
        if keys[k] != NONE:
            number = table.slots[_slot_of(table.keys, table.slots, keys[k])] - 1
            unknown += number < 0
        numbers[k] = number
    return unknown


@kernel
def settle(numbers: Any, width: int, final: Any, starts: Any) -> int:
    """Replace the numbers of each token, `width` of them, by final[number] in rising order, where not negative.

    They are moved together to the front of the same array; starts[t] is where those of token t begin. Returns how many
    there are.
    """
    written, tokens = 0, len(starts) - 1
    for token in range(tokens):
        starts[token] = written
        first = written
        for k in range(token * width, (token + 1) * width):
            if numbers[k] >= 0 and final[numbers[k]] >= 0:
                ident = final[numbers[k]]
                at = written
                while at > first and numbers[at - 1] > ident:
                    numbers[at] = numbers[at - 1]
                    at -= 1
                numbers[at] = ident
                written += 1
    starts[tokens] = written
    return written


@kernel
def settle_valued(numbers: Any, values: Any, final: Any, begins: Any, starts: Any) -> int:
    """As `settle`, for rows of any length with values: that of token t begins at begins[t].

    Values of the same feature at one token are added.
    """
    written, tokens = 0, len(starts) - 1
    for token in range(tokens):
        starts[token] = written
        first = written
        for k in range(begins[token], begins[token + 1]):
            ident, value = final[numbers[k]], values[k]
            if ident < 0:
                continue
            at = written
            while at > first and numbers[at - 1] > ident:
                at -= 1
            if at > first and numbers[at - 1] == ident:
                values[at - 1] += value
                continue
            for j in range(written, at, -1):
                numbers[j] = numbers[j - 1]
                values[j] = values[j - 1]
            numbers[at] = ident
            values[at] = value
            written += 1
    starts[tokens] = written
    return written
