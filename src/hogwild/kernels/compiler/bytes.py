"""Bytes of text by their addresses, one at a time and eight at a time.

Text is given by addresses, not as arrays: an array that is handed from function to function has its references
counted at every call, with atomics, which costs more than what is made of a few bytes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def _compiled() -> tuple[Any, ...]:
    def loader(bits: int, result: Any) -> Any:
        @intrinsic
        def load(typingctx: Any, address: Any) -> Any:
            def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
                return builder.zext(builder.load(pointer, align=1), ir.IntType(64))

            return result(types.int64), build

        return load

    @intrinsic
    def trailing_zeros(typingctx: Any, bits: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))  # 64 for zero

        return types.int64(types.uint64), build

    return loader(8, types.int64), loader(64, types.uint64), trailing_zeros


def _interpreted() -> tuple[Any, ...]:
    def byte_at(address: int) -> int:
        return ctypes.c_uint8.from_address(int(address)).value

    def load_word(address: int) -> Any:
        return np.uint64(int.from_bytes(ctypes.string_at(int(address), 8), "little"))

    def trailing_zeros(bits: Any) -> int:
        return (int(bits) & -int(bits)).bit_length() - 1 if bits else 64

    return byte_at, load_word, trailing_zeros


byte_at, load_word, trailing_zeros = _interpreted() if nb.config.DISABLE_JIT else _compiled()
