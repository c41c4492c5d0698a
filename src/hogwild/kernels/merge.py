"""Merging private copies of weights into the common one by adding differences."""

from __future__ import annotations

from typing import Any

from hogwild.kernels.jit import kernel


@kernel
def merge_rows(master: Any, mine: Any, base: Any, additive: Any) -> int:
    """Add what changed in `mine` since `base` to `master`; then all three agree. Returns cells that changed.

    The caller holds the lock of these rows. All are flat, of whole rows; `additive` has one flag a cell of a row.
    Where nobody else wrote, the value is taken over as it is, so that one worker gives the same bits as no merging:
    in floating point base + (mine - base) need not equal mine.
    """
    cells = len(additive)
    changed = 0
    for first in range(0, len(mine), cells):
        for c in range(cells):
            k = first + c
            if additive[c]:
                old, own, common = base[k], mine[k], master[k]
                if own != old or common != old:
                    new = own if common == old else common + (own - old)
                    master[k] = new
                    mine[k] = new
                    base[k] = new
                    changed += 1
            elif mine[k] != base[k]:
                # A moving average stays with its worker; the common copy shows the last one, for checkpoints.
                master[k] = mine[k]
                base[k] = mine[k]
                changed += 1
    return changed
