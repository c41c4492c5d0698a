"""Merging private copies of weights into the common one by adding differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import kernel

_BLOCK = 64  # cells looked at together: four cache lines of each array; most blocks have not changed


@kernel
def merge_rows(master: Any, mine: Any, base: Any) -> int:
    """Add what changed in `mine` since `base` to `master`; then all three agree. Returns cells looked into.

    The caller holds the lock of these cells. Where nobody else wrote, the value is taken over as it is, so that one
    worker gives the same bits as no merging: in floating point base + (mine - base) need not equal mine.
    """
    common_bits, own_bits, old_bits = master.view(np.int32), mine.view(np.int32), base.view(np.int32)
    whole = len(mine) // _BLOCK * _BLOCK
    touched = 0
    for first in range(0, whole, _BLOCK):
        # Slices of a length known to the compiler: only so is the comparison vectorised (6x).
        common, own, old = (
            common_bits[first : first + _BLOCK], own_bits[first : first + _BLOCK], old_bits[first : first + _BLOCK]
        )  # fmt: skip
        different = np.int32(0)
        for k in range(_BLOCK):
            different |= (own[k] ^ old[k]) | (common[k] ^ old[k])
        if different != 0:
            touched += _BLOCK
            _merge_cells(master, mine, base, first, first + _BLOCK)
    _merge_cells(master, mine, base, whole, len(mine))
    return touched + len(mine) - whole


@kernel
def _merge_cells(master: Any, mine: Any, base: Any, first: int, last: int) -> None:
    for k in range(first, last):
        old, own, common = base[k], mine[k], master[k]
        new = own if common == old else common + (own - old)
        master[k] = new
        mine[k] = new
        base[k] = new


@kernel
def merge_mixed_rows(master: Any, mine: Any, base: Any, additive: Any) -> int:
    """As `merge_rows`, for rows some of whose cells are not additive: those stay with their worker.

    `additive` has one flag a cell of a row. The common copy shows the last value that anyone wrote, for checkpoints: a
    worker that has not touched a row since its last merge leaves there what others have written.
    """
    cells = len(additive)
    touched = 0
    for first in range(0, len(mine), cells):
        for c in range(cells):
            k = first + c
            old, own, common = base[k], mine[k], master[k]
            if additive[c]:
                if own != old or common != old:
                    touched += 1
                    new = own if common == old else common + (own - old)
                    master[k] = new
                    mine[k] = new
                    base[k] = new
            elif own != old:
                touched += 1
                master[k] = own
                base[k] = own
    return touched


@kernel
def show_rows(master: Any, mine: Any, base: Any) -> None:
    """As `merge_mixed_rows` where no cell is additive: the common copy shows what this worker has changed."""
    for k in range(len(mine)):
        own = mine[k]
        master[k] = own if own != base[k] else master[k]
        base[k] = own


@kernel
def thrown_back(master: Any, mine: Any, base: Any, shape: Any, last: Any) -> tuple[float, float]:
    """How much of what the others added at the last merge this copy has taken back since: part and whole.

    `shape` has the cells of a row and how many of these are weights; `last` this copy's own difference and that of the
    others, at the last merge, of as many leading rows as it has room for; they are replaced by those of now. Near its
    optimum a copy goes the share A of the way there: after the others' difference p and its own d it starts p + d
    farther on, and so goes A (p + d) less far. Seen along p: part <d, p> - <now, p>, whole <d, p> + <p, p>.
    """
    cells, width = shape
    part = 0.0
    whole = 0.0
    for k in range(last.shape[1]):
        at = k // width * cells + k % width
        own, others = mine[at] - base[at], master[at] - base[at]
        part += (last[0, k] - own) * last[1, k]
        whole += (last[0, k] + last[1, k]) * last[1, k]
        last[0, k], last[1, k] = own, others
    return part, whole
