"""The rows that a user's gradient has listed, looked at in every visit before anything is made of them.

By addresses, and with no branch around what comes after: an array that is handed on, and a call in a branch, have their
references counted by atomics, which would cost a quarter of a small visit. So it costs nothing that can be measured.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from hogwild.arrays import ALL_ROWS, FAULT, FAULT_COUNT, FAULT_ROW, ROOM_ROWS
from hogwild.kernels.compiler.bytes import load_half, load_word
from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.compiler.jit import choice, kernel

_DATA = 4  # where an array of Numba's has the address of its cells


@instruction(lambda scratch: (scratch.count.ctypes.data, scratch.rows.ctypes.data), types.UniTuple(types.int64, 2))
def places(builder: Any, scratch: Any) -> Any:
    """The addresses of `count` and `rows`."""
    arrays = (scratch.count, scratch.rows)
    return [builder.ptrtoint(builder.extract_value(array, _DATA), ir.IntType(64)) for array in arrays]


@instruction(lambda address, value: ctypes.memmove(int(address), int(value).to_bytes(8, "little", signed=True), 8))
def store_word(builder: Any, address: Any, value: Any) -> None:
    """Write eight bytes."""
    builder.store(value, builder.inttoptr(address, ir.IntType(64).as_pointer()))


@instruction(lambda address: ctypes.memset(int(address), 0, 4))
def clear_half(builder: Any, address: Any) -> None:
    """Write four bytes of zeros."""
    builder.store(ir.Constant(ir.IntType(32), 0), builder.inttoptr(address, ir.IntType(32).as_pointer()))


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


@kernel
def look_at(count_at: int, rows_at: int, visit: int) -> None:
    """As `guard`, by addresses."""
    count, most = load_word(count_at), load_word(count_at + 8 * ROOM_ROWS)
    good = count <= most  # without a sign: a negative one is too large
    rows = np.int64(load_word(count_at + 8 * ALL_ROWS))
    for k in range(np.int64(count) if good else 0):
        good &= load_half(rows_at + 4 * k) < rows
    if not good:
        note_fault(count_at, rows_at, visit)


@kernel
def note_fault(count_at: int, rows_at: int, visit: int) -> None:
    """Keep what the first such visit has listed (the visits of the span go on), and make harmless what is listed."""
    first = load_word(count_at + 8 * FAULT) == 0
    count, most = np.int64(load_word(count_at)), np.int64(load_word(count_at + 8 * ROOM_ROWS))
    if first:
        store_word(count_at + 8 * FAULT, visit + 1)
        store_word(count_at + 8 * FAULT_COUNT, count)
    rows = np.int64(load_word(count_at + 8 * ALL_ROWS))
    for k in range(most):
        row = load_half(rows_at + 4 * k)
        if row >= rows:
            if first and k < count:
                store_word(count_at + 8 * FAULT_ROW, row - (row >> 31 << 32))  # with its sign
            clear_half(rows_at + 4 * k)
    store_word(count_at, 0)
