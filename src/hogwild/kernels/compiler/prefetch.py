"""Asking for a cache line before it is needed. No address is wrong: past the end of an array nothing happens."""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


def _compiled() -> Any:
    @intrinsic
    def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            line = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
            number = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [line.type, number, number, number])
            ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            # to read, into all levels of the cache, data and not code
            builder.call(ask, [line, number(0), number(3), number(1)])
            return context.get_dummy_value()

        return types.void(array, types.int64), build

    return prefetch


def _interpreted(array: Any, index: int) -> None:
    return None


prefetch = _interpreted if nb.config.DISABLE_JIT else _compiled()
