"""The rows that a user's gradient has listed, looked at in every visit before anything is made of them.

By addresses, and with no branch around what comes after: an array that is handed on, and a call in a branch, have their
references counted by atomics, which would cost a quarter of a small visit. So it costs nothing that can be measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from hogwild.arrays import ALL_ROWS, FAULT, FAULT_COUNT, FAULT_ROW, ROOM_ROWS
from hogwild.kernels.compiler.bytes import load_half, load_word, store_half, store_word
from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.compiler.jit import choice, inlined

_DATA = 4  # where an array of Numba's has the address of its cells


@instruction(lambda scratch: (scratch.count.ctypes.data, scratch.rows.ctypes.data), types.UniTuple(types.int64, 2))
def places(builder: Any, scratch: Any) -> Any:
    """The addresses of `count` and `rows`."""
    arrays = (scratch.count, scratch.rows)
    return [builder.ptrtoint(builder.extract_value(array, _DATA), ir.IntType(64)) for array in arrays]


@choice
def guard(task: Any, visit: Any, scratch: Any) -> None:
    """If a gradient has listed rows that are not there, or more than there is room for, note it, and list none."""


def _trust(task: Any, visit: Any, scratch: Any) -> None:
    return  # tasks of this package are tested, and what they are given is checked at the door


guard.otherwise(_trust)


def look_at_rows(task: Any, visit: Any, scratch: Any) -> None:
    """What `guard` does for tasks from outside this package."""
    count_at, rows_at = places(scratch)
    look_at(count_at, rows_at, visit)


@inlined
def look_at(count_at: int, rows_at: int, visit: int) -> None:
    """As `guard`, by addresses. A row that is not there becomes row 0: so what is listed is harmless."""
    count, most = np.int64(load_word(count_at)), np.int64(load_word(count_at + 8 * ROOM_ROWS))
    rows = np.int64(load_word(count_at + 8 * ALL_ROWS))
    worst = np.int64(0)
    for k in range(min(count, most)):
        row = load_half(rows_at + 4 * k)  # without a sign: a negative one is too large
        worst = max(worst, row)
        store_half(rows_at + 4 * k, row if row < rows else 0)
    if count < 0 or count > most or (count > 0 and worst >= rows):
        store_word(count_at + 8 * FAULT, visit + 1)
        store_word(count_at + 8 * FAULT_COUNT, count)
        store_word(count_at + 8 * FAULT_ROW, worst - (worst >> 31 << 32))  # with its sign
        store_word(count_at, 0)
