"""Exchange of one float32 cell in one step: nothing can come between the value that is replaced and its replacement."""

from __future__ import annotations

import threading
from typing import Any

import numba as nb
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


def _compiled() -> Any:
    @intrinsic
    def swap(typingctx: Any, array: Any, row: Any, cell: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            place = cgutils.get_item_pointer(context, builder, signature.args[0], array, args[1:3])
            whole = ir.IntType(32)
            before = builder.atomic_rmw(
                "xchg", builder.bitcast(place, whole.as_pointer()), builder.bitcast(args[3], whole), "seq_cst"
            )
            return builder.bitcast(before, ir.FloatType())

        return types.float32(array, types.int64, types.int64, types.float32), build

    return swap


def _interpreted() -> Any:
    lock = threading.Lock()

    def swap(array: Any, row: int, cell: int, value: Any) -> Any:
        with lock:
            before = array[row, cell]
            array[row, cell] = value
            return before

    return swap


# swap(array, row, cell, value): store the value at array[row, cell] and return what stood there.
swap = _interpreted() if nb.config.DISABLE_JIT else _compiled()
