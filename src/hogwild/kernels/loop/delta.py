"""What changed in a table since it was last looked at, row by row, and adding what changed elsewhere."""

from __future__ import annotations

from typing import Any

from hogwild.kernels.compiler.jit import kernel


@kernel
def take_changed(common: Any, base: Any, additive: Any, bounds: Any, rows: Any, cells: Any) -> tuple[int, int]:
    """Rows of `common` between two bounds that differ from `base`, with their differences; the base catches up.

    A cell is read once: what a worker writes after that differs from the new base, and is found the next time. Cells
    that do not add up have no difference. Returns how many rows were found, and the row to go on from when there was no
    room for more.
    """
    count = 0
    first, last = bounds
    for row in range(first, last):
        changed = False
        for c in range(len(additive)):
            changed |= additive[c] and common[row, c] != base[row, c]
        if not changed:
            continue
        if count == len(rows):
            return count, row
        rows[count] = row
        for c in range(len(additive)):
            now = common[row, c]  # RACE(stale read): docs/races.md
            cells[count, c] = now - base[row, c] if additive[c] else now - now
            base[row, c] = now
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
