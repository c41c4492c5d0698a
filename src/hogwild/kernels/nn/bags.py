"""Bags of embeddings over tables that are tensors: looked up, and the gradients of their rows summed up.

Gradients are sorted by row first: then each sum is written once, from beginning to end, while the gradients of the
bags, which are few, stay near.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.compiler.prefetch import prefetch

DIGIT = 11  # bits of a row number by which it is sorted at once
COUNTS = 1 << DIGIT
AHEAD = 8  # entries, of which rows are asked for
LINE = 16  # cells (float32) of a line of the cache


@kernel
def look_up(table: Any, ids: Any, starts: Any, factors: Any, padding: int, owners: Any, sizes: Any, out: Any) -> int:
    """The sum of the rows of each bag; returns -1, or the place of an entry, or start of a bag, that is none.

    table: (rows, width); starts: where each bag begins, and where the last ends; factors: of each entry; none at all:
    1; padding: the row that is left out, or -1. Told for the gradient: owners: the bag of each entry, -1 where it is
    left out; sizes: entries of each bag that count.
    """
    width = table.shape[1]
    weighted = len(factors) > 0
    for bag in range(len(starts) - 1):
        first, last = starts[bag], starts[bag + 1]
        if first < 0 or last < first or last > len(ids):
            return first
        for k in range(width):
            out[bag, k] = np.float32(0)
        sizes[bag] = np.float32(0)
        for place in range(first, last):
            if place + AHEAD < len(ids):
                for line in range(0, width, LINE):
                    prefetch(table, ids[place + AHEAD] * width + line)
            row = ids[place]
            if row < 0 or row >= table.shape[0]:
                return place
            owners[place] = -1
            if row == padding:
                continue
            owners[place] = bag
            sizes[bag] += np.float32(1)
            factor = factors[place] if weighted else np.float32(1)
            for k in range(width):
                out[bag, k] += factor * table[row, k]  # RACE(stale read): docs/races.md
    return -1


@kernel
def sort_rows(ids: Any, keys: Any, spare: Any, counts: Any, rows: Any) -> int:
    """Entries by the rows that they name, in their order; how many rows there are, which stand in `rows`, each once.

    keys: becomes row << 32 | place of each entry; spare: as long; counts: COUNTS cells.
    """
    largest = np.int64(0)
    for place in range(len(ids)):
        largest = max(largest, ids[place])
        keys[place] = (np.uint64(ids[place]) << np.uint64(32)) | np.uint64(place)
    shift = np.uint64(32)
    mask = np.uint64(COUNTS - 1)
    while largest > 0:
        for k in range(COUNTS):
            counts[k] = 0
        for place in range(len(ids)):
            counts[np.int64((keys[place] >> shift) & mask)] += 1
        total = 0
        for k in range(COUNTS):
            total += counts[k]
            counts[k] = total - counts[k]
        for place in range(len(ids)):
            digit = np.int64((keys[place] >> shift) & mask)
            spare[counts[digit]] = keys[place]
            counts[digit] += 1
        for place in range(len(ids)):
            keys[place] = spare[place]
        shift += np.uint64(DIGIT)
        largest >>= DIGIT
    found = 0
    for place in range(len(ids)):
        row = np.int64(keys[place] >> np.uint64(32))
        if found == 0 or rows[found - 1] != row:
            rows[found] = row
            found += 1
    return found


@kernel
def sum_rows(keys: Any, gradient: Any, owners: Any, factors: Any, sums: Any) -> None:
    """The sum of the gradients of each row, in the order of `sort_rows`.

    gradient: (bags, width); owners: the bag of each entry, -1: it has no gradient; none at all: entries are bags.
    factors: of each entry; none at all: 1.
    """
    width = gradient.shape[1]
    weighted, owned = len(factors) > 0, len(owners) > 0
    to, last = -1, np.int64(-1)
    for j in range(len(keys)):
        row, place = np.int64(keys[j] >> np.uint64(32)), np.int64(keys[j] & np.uint64(0xFFFFFFFF))
        if row != last:
            to, last = to + 1, row
            for k in range(width):
                sums[to, k] = np.float32(0)
        bag = np.int64(owners[place]) if owned else place
        if bag < 0:
            continue
        factor = factors[place] if weighted else np.float32(1)
        for k in range(width):
            sums[to, k] += factor * gradient[bag, k]
