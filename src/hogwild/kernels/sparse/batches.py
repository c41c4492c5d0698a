"""Some samples of a feed as one batch: their entries one after the other."""

from __future__ import annotations

from typing import Any

from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.loop.order import row_at


@kernel
def rows_at(first: int, rows: int, window: int, key: int, out: Any) -> None:
    """The rows at some places of an epoch, from the first on."""
    for k in range(len(out)):
        out[k] = row_at(first + k, rows, window, key)


@kernel
def take_entries(cells: Any, offsets: Any, rows: Any, out: Any) -> None:
    """What there is of each entry of some samples."""
    place = 0
    for k in range(len(rows)):
        for entry in range(offsets[rows[k]], offsets[rows[k] + 1]):
            out[place] = cells[entry]
            place += 1


@kernel
def slot_starts(slots: Any, offsets: Any, rows: Any, count: int, starts: Any) -> None:
    """Where the entries of each of `count` slots of some samples begin, in `take_entries`."""
    place = 0
    for k in range(len(rows)):
        begun = 0  # slots of this sample
        for entry in range(offsets[rows[k]], offsets[rows[k] + 1]):
            while begun <= slots[entry]:
                starts[k * count + begun] = place
                begun += 1
            place += 1
        for slot in range(begun, count):
            starts[k * count + slot] = place
