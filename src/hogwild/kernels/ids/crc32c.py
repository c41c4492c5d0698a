"""CRC-32C (Castagnoli), which TFRecord files have.

By the processor's own instruction where there is one, else by tables. Bytes are given by their address.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numba as nb
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.compiler.bytes import byte_at, load_word
from hogwild.kernels.compiler.jit import kernel

_POLYNOMIAL = 0x82F63B78  # with its bits in reverse order
_ONES = np.uint64(0xFFFFFFFF)
_BYTE, _EIGHT = np.uint64(255), np.uint64(8)
_MASK = np.uint64(0xA282EAD8)
_RIGHT, _LEFT = np.uint64(15), np.uint64(17)


def _tables() -> npt.NDArray[np.uint64]:
    """tables[k, b]: what byte b does to the register when k more bytes follow it."""
    tables = np.zeros((8, 256), np.uint64)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        tables[0, byte] = value
    for k in range(1, 8):
        tables[k] = tables[0, (tables[k - 1] & _BYTE).astype(np.intp)] ^ (tables[k - 1] >> _EIGHT)
    return tables


_TABLES = _tables()
_PLAIN = _TABLES[0].tolist()


def crc_of(data: bytes) -> int:
    """CRC-32C of a few bytes, in plain Python: nothing is compiled for it.

    >>> hex(crc_of(b"123456789"))
    '0xe3069283'
    """
    register = 0xFFFFFFFF
    for byte in data:
        register = _PLAIN[(register ^ byte) & 255] ^ register >> 8
    return register ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """A CRC as TFRecord files store it: turned by 15 bits, and a constant added."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def has_instruction() -> bool:
    """Whether code is compiled for a processor with the instruction of SSE 4.2."""
    if nb.config.CPU_NAME or nb.config.CPU_FEATURES is not None:
        return nb.config.CPU_FEATURES is not None and "+sse4.2" in nb.config.CPU_FEATURES.split(",")
    try:
        return bool(llvm.get_host_cpu_features().get("sse4.2"))
    except RuntimeError:  # LLVM does not know this processor
        return False


def _compiled() -> tuple[Any, Any]:
    def taking(bits: int) -> Any:
        @intrinsic
        def take(typingctx: Any, register: Any, data: Any) -> Any:
            def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                wide = ir.IntType(bits)
                state = ir.IntType(64 if bits == 64 else 32)
                name = f"llvm.x86.sse42.crc32.{state.width}.{bits}"
                found = cgutils.get_or_insert_function(builder.module, ir.FunctionType(state, [state, wide]), name)
                register, data = args
                if bits == 8:
                    register, data = builder.trunc(register, state), builder.trunc(data, wide)
                taken = builder.call(found, [register, data])
                return taken if bits == 64 else builder.zext(taken, ir.IntType(64))

            return types.uint64(types.uint64, types.uint64), build

        return take

    return taking(64), taking(8)


@kernel
def crc_by_tables(at: int, size: int) -> Any:
    """CRC-32C of `size` bytes, eight at a time through eight tables."""
    register = _ONES
    end = at + size
    while at + 8 <= end:
        word = load_word(at) ^ register
        register = np.uint64(0)
        for k in range(8):
            register ^= _TABLES[7 - k, np.int64(word & _BYTE)]
            word >>= _EIGHT
        at += 8
    while at < end:
        register = _TABLES[0, np.int64((register ^ np.uint64(byte_at(at))) & _BYTE)] ^ (register >> _EIGHT)
        at += 1
    return register ^ _ONES


if nb.config.DISABLE_JIT:

    def crc32c(at: int, size: int) -> Any:
        """CRC-32C of `size` bytes."""
        return np.uint64(crc_of(ctypes.string_at(int(at), int(size))))

elif has_instruction():
    _take_word, _take_byte = _compiled()

    @kernel
    def crc32c(at: int, size: int) -> Any:
        """CRC-32C of `size` bytes."""
        register = _ONES
        end = at + size
        while at + 8 <= end:
            register = _take_word(register, load_word(at))
            at += 8
        while at < end:
            register = _take_byte(register, np.uint64(byte_at(at)))
            at += 1
        return register ^ _ONES

else:
    crc32c = crc_by_tables


@kernel
def masked_crc(at: int, size: int) -> Any:
    """The CRC of `size` bytes as TFRecord files store it."""
    crc = crc32c(at, size)
    return ((crc >> _RIGHT | crc << _LEFT) + _MASK) & _ONES
