"""Bytes by their addresses, one at a time and several at a time.

Text is given by addresses, not as arrays: an array that is handed from function to function has its references
counted at every call, with atomics, which costs more than what is made of a few bytes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from hogwild.kernels.compiler.instructions import instruction


def _load(builder: Any, address: Any, bits: int) -> Any:
    pointer = builder.inttoptr(address, ir.IntType(bits).as_pointer())
    return builder.zext(builder.load(pointer, align=1), ir.IntType(64))


@instruction(lambda address: ctypes.c_uint8.from_address(int(address)).value, types.int64)
def byte_at(builder: Any, address: Any) -> Any:
    """The byte at an address."""
    return _load(builder, address, 8)


@instruction(lambda address: ctypes.c_uint32.from_address(int(address)).value, types.int64)
def load_half(builder: Any, address: Any) -> Any:
    """The four bytes from an address on, as a number without a sign."""
    return _load(builder, address, 32)


@instruction(lambda address: np.uint64(int.from_bytes(ctypes.string_at(int(address), 8), "little")), types.uint64)
def load_word(builder: Any, address: Any) -> Any:
    """The eight bytes from an address on, the first in the lowest byte."""
    return _load(builder, address, 64)


@instruction(lambda address, value: ctypes.memmove(int(address), int(value).to_bytes(8, "little", signed=True), 8))
def store_word(builder: Any, address: Any, value: Any) -> None:
    """Write eight bytes."""
    builder.store(value, builder.inttoptr(address, ir.IntType(64).as_pointer()))


@instruction(lambda address, value: ctypes.memmove(int(address), int(value).to_bytes(4, "little"), 4))
def store_half(builder: Any, address: Any, value: Any) -> None:
    """Write the lower four bytes of a number."""
    half = ir.IntType(32)
    builder.store(builder.trunc(value, half), builder.inttoptr(address, half.as_pointer()))


@instruction(lambda bits: (int(bits) & -int(bits)).bit_length() - 1 if bits else 64, types.int64)
def trailing_zeros(builder: Any, bits: Any) -> Any:
    """Zeros below the lowest bit that is set; 64 for zero."""
    return builder.cttz(bits, ir.Constant(ir.IntType(1), 0))
