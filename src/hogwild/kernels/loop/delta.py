"""What changed in a table since it was last looked at, row by row, and adding what changed elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import kernel


@kernel
def take_changed(
    common: Any, base: Any, bits: Any, mask: Any, bounds: Any, rows: Any, cells: Any
) -> tuple[int, int]:
    """Rows of `common` between two bounds that differ from `base`, with their differences; the base catches up.

    bits: both arrays as whole numbers; mask: all ones for a cell that adds up, else 0, and then it has no difference. A
    bits: both arrays as whole numbers; mask: all ones for a cell that adds up, else 0: then it has no difference. A
    many rows were found, and the row to go on from when there was no room for more.
    """
    count = 0
    first, last = bounds
    for row in range(first, last):
        different = np.int32(0)  # all bits are looked at: the loop has no exit, and takes many cells at a time
        for c in range(len(mask)):
            different |= (bits[0][row, c] ^ bits[1][row, c]) & mask[c]
        if different == 0:
            continue
        if count == len(rows):
            return count, row
        rows[count] = row
        for c in range(len(mask)):
            now = common[row, c]  # RACE(stale read): docs/races.md
            cells[count, c] = now - base[row, c]
            base[row, c] = now
        for c in range(len(mask)):
            if mask[c] == 0:
                cells[count, c] = np.float32(0)
        count += 1
    return count, last


@kernel
def add_changed(common: Any, base: Any, rows: Any, cells: Any) -> None:
    """Add differences to rows of the table and to its base, so that nobody is told what it has told itself."""
    for k in range(len(rows)):
        row = rows[k]
        for c in range(cells.shape[1]):
            change = cells[k, c]
            if change != 0:
                now = common[row, c]
                old = base[row, c]
                common[row, c] = now + change  # RACE(lost update): docs/races.md
                # Where nothing is to be told yet both stay equal to the last bit.
                base[row, c] = now + change if now == old else old + change


@kernel
def settle_changed(common: Any, base: Any, rows: Any, cells: Any, own: Any, mine: Any) -> None:
    """Put what came of the changes of all (rows, cells) in the place of those made here (own, mine), also in the base.

    Both name rows in rising order. Nobody else writes.
    """
    i, j = 0, 0
    while i < len(rows) or j < len(own):
        row = rows[i] if j == len(own) or (i < len(rows) and rows[i] <= own[j]) else own[j]
        came, made = i < len(rows) and rows[i] == row, j < len(own) and own[j] == row
        for c in range(common.shape[1]):
            change = np.float32(0)
            if came:
                change += cells[i, c]
            if made:
                change -= mine[j, c]
            now, old = common[row, c], base[row, c]
            common[row, c] = now + change
            base[row, c] = now + change if now == old else old + change
        i += came
        j += made
