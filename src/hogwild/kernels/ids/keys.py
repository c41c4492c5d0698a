"""Keys to numbers: a hash table of (group, key) with open addressing. A group, such as a slot, has numbers of its own.

A kernel that finds the table full returns where it stands; the caller gives it a larger one and goes on. Looking up a
cell that is not in the cache costs more than all else, so some are asked for ahead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Keys, Offsets
from hogwild.kernels.compiler.jit import kernel, ready
from hogwild.kernels.compiler.prefetch import prefetch
from hogwild.kernels.compiler.rng import mix
from hogwild.kernels.ids.hashing import fold, to_id

AHEAD = 16           # cells that are asked for before the first of them is looked at
NONE = np.uint64(0)  # no key; tables of counts leave it out

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_NUMBER = np.uint64(0xFFFFFFFF)
_PART = np.uint64(48)  # bits of a key below those that choose its part


class KeyTable(NamedTuple):
    """Distinct (group, key) pairs, numbered as they come.

    cells: two words each, the key, and group and number + 1 (0: free), at most half in use. keys, groups: of each
    number. size[0]: how many there are.
    """

    cells: Keys
    keys: Keys
    groups: npt.NDArray[np.uint16]
    size: Offsets


def make_table(room: int) -> KeyTable:
    """An empty table with room for so many pairs, a power of two."""
    return KeyTable(
        cells=np.zeros(4 * room, np.uint64),
        keys=np.empty(room, np.uint64),
        groups=np.zeros(room, np.uint16),
        size=np.zeros(1, np.int64),
    )


def grown(table: KeyTable) -> KeyTable:
    """The same table with twice the room."""
    size = int(table.size[0])
    return table_of(table.keys[:size], table.groups[:size], 2 * len(table.keys))


def table_of(keys: Keys, groups: npt.NDArray[np.uint16], room: int = 0) -> KeyTable:
    """A table that holds these pairs; room: for how many, by default not many more."""
    table = make_table(room or 1 << max(len(keys).bit_length(), 4))
    table.keys[: len(keys)], table.groups[: len(keys)] = keys, groups
    table.size[0] = len(keys)
    ready(fill_cells, len(table.cells))(table)
    return table


@kernel
def home_of(key: Any, group: Any, mask: Any) -> int:
    """The first cell to look at."""
    return np.int64(mix(key + np.uint64(group) * _SPREAD) & mask)


@kernel
def cell_of(cells: Any, key: Any, group: Any, home: int) -> int:
    """The cell that holds a pair, or the free one where it belongs."""
    mask = len(cells) // 2 - 1
    cell = home
    while True:
        tag = cells[2 * cell + 1]
        if tag == 0 or (cells[2 * cell] == key and tag >> _HALF == np.uint64(group)):
            return cell
        cell = (cell + 1) & mask


@kernel
def take_cell(cells: Any, cell: int, key: Any, group: Any, number: int) -> Any:
    """Put a pair into a free cell; returns what stands behind its key."""
    cells[2 * cell] = key
    cells[2 * cell + 1] = tag = (np.uint64(group) << _HALF) | np.uint64(number + 1)
    return tag


@kernel
def fill_cells(table: Any) -> None:
    """Put all pairs of a table into its cells."""
    cells = table.cells
    mask = np.uint64(len(cells) // 2 - 1)
    for number in range(table.size[0]):
        key, group = table.keys[number], table.groups[number]
        cell = cell_of(cells, key, group, home_of(key, group, mask))
        take_cell(cells, cell, key, group, number)


@kernel
def number_keys(table: Any, keys: Any, groups: Any, ids: Any, start: int, homes: Any) -> int:
    """The number of each pair from `start` on; new ones get the next. Returns where it stands.

    groups: of each key, or one for all of them. homes: room for AHEAD cells.
    """
    cells, known, known_groups, size = table.cells, table.keys, table.groups, table.size[0]
    mask = np.uint64(len(cells) // 2 - 1)
    step = 1 if len(groups) > 1 else 0
    at = start
    while at < len(keys):
        count = min(AHEAD, len(keys) - at)
        for j in range(count):
            homes[j] = home_of(keys[at + j], groups[(at + j) * step], mask)
            prefetch(cells, 2 * homes[j])
        for j in range(count):
            key, group = keys[at + j], groups[(at + j) * step]
            cell = cell_of(cells, key, group, homes[j])
            tag = cells[2 * cell + 1]
            if tag == 0:
                if size == len(known):
                    table.size[0] = size
                    return at + j
                known[size] = key
                known_groups[size] = group
                tag = take_cell(cells, cell, key, group, size)
                size += 1
            ids[at + j] = np.int32(np.int64(tag & _NUMBER) - 1)
        at += count
    table.size[0] = size
    return len(keys)


@kernel
def find_keys(table: Any, keys: Any, groups: Any, rare: Any, ids: Any, homes: Any) -> int:
    """The number of each pair, or that of its group in `rare` if there is none; returns how many there were none of."""
    cells = table.cells
    mask = np.uint64(len(cells) // 2 - 1)
    step = 1 if len(groups) > 1 else 0
    unseen = 0
    at = 0
    while at < len(keys):
        count = min(AHEAD, len(keys) - at)
        for j in range(count):
            homes[j] = home_of(keys[at + j], groups[(at + j) * step], mask)
            prefetch(cells, 2 * homes[j])
        for j in range(count):
            group = groups[(at + j) * step]
            cell = cell_of(cells, keys[at + j], group, homes[j])
            tag = cells[2 * cell + 1]
            if tag == 0:
                unseen += 1
                ids[at + j] = rare[group]
            else:
                ids[at + j] = np.int32(np.int64(tag & _NUMBER) - 1)
        at += count
    return unseen


@kernel
def hash_keys(keys: Any, groups: Any, seeds: Any, bits: int, ids: Any) -> None:
    """The leading bits of a hash of each key, which begins with the seed of its group."""
    step = 1 if len(groups) > 1 else 0
    for k in range(len(keys)):
        ids[k] = to_id(fold(seeds[groups[k * step]], keys[k]), bits)


@kernel
def drop_unknown(lengths: Any, ids: Any, slots: Any, values: Any) -> int:
    """Leave out entries whose id is below 0, in place; returns how many are left. `values` may be empty."""
    read = written = 0
    for row in range(len(lengths)):
        first = written
        for k in range(read, read + lengths[row]):
            if ids[k] >= 0:
                ids[written] = ids[k]
                slots[written] = slots[k]
                if len(values) > 0:
                    values[written] = values[k]
                written += 1
        read += lengths[row]
        lengths[row] = written - first
    return written


# -- Keys counted by several threads, and the ids that their numbers become -------------------------------------------
# A key belongs to one part, whichever thread meets it: counts and first places do not depend on the number of threads.


class KeyCounts(NamedTuple):
    """Distinct keys of one part, all of group 0, in the order of their first places; counts and firsts of each."""

    table: KeyTable
    counts: Offsets
    firsts: Offsets


def make_counts(room: int) -> KeyCounts:
    """No keys, with room for so many, a power of two."""
    return KeyCounts(make_table(room), np.zeros(room, np.int64), np.zeros(room, np.int64))


def grown_counts(counted: KeyCounts) -> KeyCounts:
    """The same with twice the room."""
    more = np.zeros(len(counted.counts), np.int64)
    return KeyCounts(grown(counted.table), np.append(counted.counts, more), np.append(counted.firsts, more))


@kernel
def count_keys(counted: Any, keys: Any, start: int, base: int, part: Any, parts: Any, numbers: Any) -> int:
    """Count the keys of one part from number `start` on; numbers[k] becomes number * parts + part, or -1 for NONE.

    base: the place of keys[0] in the whole text. Returns where it stands: before the end if the table is full.
    """
    cells, known, size = counted.table.cells, counted.table.keys, counted.table.size[0]
    mask = np.uint64(len(cells) // 2 - 1)
    for k in range(start, len(keys)):
        key = keys[k]
        if np.int64(key >> _PART) % parts != part:
            continue
        if key == NONE:
            numbers[k] = -1
            continue
        cell = cell_of(cells, key, 0, home_of(key, 0, mask))
        tag = cells[2 * cell + 1]
        if tag == 0:
            if size == len(known):
                counted.table.size[0] = size
                return k
            known[size] = key
            counted.firsts[size] = base + k
            tag = take_cell(cells, cell, key, 0, size)
            size += 1
        number = np.int64(tag & _NUMBER) - 1
        counted.counts[number] += 1
        numbers[k] = number * parts + part
    counted.table.size[0] = size
    return len(keys)


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
