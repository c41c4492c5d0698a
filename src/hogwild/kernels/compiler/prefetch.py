"""Asking for a cache line before it is needed. No address is wrong: past the end of an array nothing happens."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from hogwild.kernels.compiler.instructions import instruction


def ask_for(builder: Any, address: Any) -> None:
    """Emit code that asks for the cache line of an address."""
    line, number = builder.bitcast(address, ir.IntType(8).as_pointer()), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [line.type, number, number, number])
    ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    builder.call(ask, [line, number(0), number(3), number(1)])  # to read, into all levels, data and not code


@instruction(lambda array, index: None)
def prefetch(builder: Any, array: Any, index: Any) -> None:
    """Ask for the cache line of array[index]."""
    ask_for(builder, builder.gep(array, [index]))
