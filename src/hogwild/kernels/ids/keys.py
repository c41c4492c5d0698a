"""Keys of categories to features: a hash table of (group, key), in which a group is a slot that has its own ids.

A kernel that finds the table full returns where it stands; the caller gives it a larger one and goes on. Looking up a
cell that is not in the cache costs more than all else, so some are asked for ahead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Offsets
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.compiler.prefetch import prefetch
from hogwild.kernels.compiler.rng import mix
from hogwild.kernels.ids.hashing import fold, to_id
from hogwild.kernels.parse.slots import Keys

AHEAD = 16  # cells that are asked for before the first of them is looked at

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_NUMBER = np.uint64(0xFFFFFFFF)


class SlotTable(NamedTuple):
    """Distinct (group, key) pairs, numbered as they come.

    cells: two words each, the key, and group and number + 1 (0: free), at most half in use. keys, groups: of each
    number. size[0]: how many there are.
    """

    cells: Keys
    keys: Keys
    groups: npt.NDArray[np.uint16]
    size: Offsets


def make_table(room: int) -> SlotTable:
    """An empty table with room for so many pairs, a power of two."""
    return SlotTable(
        cells=np.zeros(4 * room, np.uint64),
        keys=np.empty(room, np.uint64),
        groups=np.empty(room, np.uint16),
        size=np.zeros(1, np.int64),
    )


def grown(table: SlotTable) -> SlotTable:
    """The same table with twice the room."""
    larger = make_table(2 * len(table.keys))
    size = int(table.size[0])
    larger.keys[:size], larger.groups[:size] = table.keys[:size], table.groups[:size]
    larger.size[0] = size
    fill_cells(larger)
    return larger


def table_of(keys: Keys, groups: npt.NDArray[np.uint16]) -> SlotTable:
    """A table that holds these pairs."""
    table = make_table(1 << max(len(keys).bit_length(), 4))
    table.keys[: len(keys)], table.groups[: len(keys)] = keys, groups
    table.size[0] = len(keys)
    fill_cells(table)
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
def fill_cells(table: Any) -> None:
    """Put all pairs of a table into its cells."""
    cells = table.cells
    mask = np.uint64(len(cells) // 2 - 1)
    for number in range(table.size[0]):
        key, group = table.keys[number], table.groups[number]
        cell = cell_of(cells, key, group, home_of(key, group, mask))
        cells[2 * cell] = key
        cells[2 * cell + 1] = (np.uint64(group) << _HALF) | np.uint64(number + 1)


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
                size += 1
                tag = (np.uint64(group) << _HALF) | np.uint64(size)
                cells[2 * cell] = key
                cells[2 * cell + 1] = tag
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
