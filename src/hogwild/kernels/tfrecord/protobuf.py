"""Protocol-buffer messages, by addresses: varints, fields, packed lists.

Eight bytes after the end of the text may be read, and eight before its beginning. What is malformed has address 0.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from hogwild.kernels.compiler.bytes import byte_at, load_word, trailing_zeros
from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.compiler.jit import kernel

FIELD1, FIELD2, FIELD3 = 0x0A, 0x12, 0x1A     # tags of messages, texts and packed lists
INTEGER1, FLOAT1 = 0x08, 0x0D                 # tags of single numbers
VARINT, LONG, SIZED, SHORT = 0, 1, 2, 5       # kinds of fields: the lowest three bits of a tag

_HIGH = np.uint64(0x8080808080808080)
_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ODD1, _EVEN1 = np.uint64(0x7F007F007F007F00), np.uint64(0x007F007F007F007F)
_ODD2, _EVEN2 = np.uint64(0xFFFF0000FFFF0000), np.uint64(0x0000FFFF0000FFFF)
_ODD4, _EVEN4 = np.uint64(0xFFFFFFFF00000000), np.uint64(0x00000000FFFFFFFF)
_ONE, _TWO, _THREE, _FOUR, _LAST = (np.uint64(n) for n in (1, 2, 3, 4, 63))
_NOTHING, _TAGS = np.uint64(0), np.uint64(0xFFFFFFFF)
_LONGEST = 10                 # bytes of a varint
_INFINITE = 0x7F800000        # bits that are all set in infinity and NaN
_UNIT = 0x3F800000            # the bits of 1.0


def _copy_floats(array: Any, index: int, address: int, size: int) -> None:
    count = int(size) // 4
    array[index : index + count] = np.frombuffer(ctypes.string_at(int(address), 4 * count), array.dtype)


@instruction(_copy_floats)
def copy_floats(builder: Any, array: Any, index: Any, address: Any, size: Any) -> None:
    """Copy so many bytes of floats from an address on to array[index:]."""
    octets = ir.IntType(8).as_pointer()
    target = builder.bitcast(builder.gep(array, [index]), octets)
    cgutils.raw_memcpy(builder, target, builder.inttoptr(address, octets), size, 1)


@kernel
def joined(word: Any) -> Any:
    """Seven bits of each byte of a word, side by side."""
    word &= _SEVENS
    word = (word & _ODD1) >> _ONE | (word & _EVEN1)
    word = (word & _ODD2) >> _TWO | (word & _EVEN2)
    return (word & _ODD4) >> _FOUR | (word & _EVEN4)


@kernel
def varint_at(at: int, end: int) -> Any:
    """(address after it, value in 64 bits) of the varint at an address; (0, 0) if it is cut off or too long."""
    word = load_word(at)
    ends = ~word & _HIGH
    if ends != _NOTHING:
        last = trailing_zeros(ends)  # the highest bit of its last byte
        after = at + (last >> 3) + 1
        if after <= end:
            return after, joined(word & (_ALL >> (_LAST - np.uint64(last))))
    elif at + 9 <= end:
        value = joined(word) | np.uint64(byte_at(at + 8) & 127) << np.uint64(56)
        if byte_at(at + 8) < 128:
            return at + 9, value
        if at + _LONGEST <= end and byte_at(at + 9) < 128:
            return at + _LONGEST, value | np.uint64(byte_at(at + 9)) << _LAST
    return 0, _NOTHING


@kernel
def field_at(at: int, end: int) -> Any:
    """(tag, address of its content, address after it) of the field at an address. A tag is 8 * number + kind.

    Groups, an old kind of field, count as malformed.
    """
    after, wide = varint_at(at, end)
    tag = np.int64(wide & _TAGS)
    kind = tag & 7
    if after == 0 or tag < 8 or wide > _TAGS:
        return 0, 0, 0
    if kind in (SIZED, VARINT):
        stop, size = varint_at(after, end)
        if kind == SIZED:
            if stop == 0 or size > np.uint64(end - stop):
                return 0, 0, 0
            after, stop = stop, stop + np.int64(size)
    elif kind == LONG:
        stop = after + 8
    elif kind == SHORT:
        stop = after + 4
    else:
        stop = 0
    return (0, 0, 0) if stop == 0 or stop > end else (tag, after, stop)


@kernel
def unpack_integers(at: Any, end: int, room: Any, entry: int) -> int:
    """Write the varints up to `end` into an array from `entry` on; returns the entry after them, -1 if malformed.

    The room must have as many items as there are bytes.
    """
    while at < end:
        word = load_word(at)
        ends = ~word & _HIGH
        if ends == _NOTHING:
            at, value = varint_at(at, end)
            if at == 0:
                return -1
            room[entry] = value
            entry += 1
            continue
        last = np.uint64(trailing_zeros(ends))
        room[entry] = joined(word & (_ALL >> (_LAST - last)))
        entry += 1
        at += np.int64(last >> _THREE) + 1
        # The next one too if it ends in this word: what takes time is to find out where to look next.
        ends &= ends - _ONE
        if ends != _NOTHING and at < end:
            both = np.uint64(trailing_zeros(ends))
            room[entry] = joined((word & (_ALL >> (_LAST - both))) >> (last + _ONE))
            entry += 1
            at += np.int64((both - last) >> _THREE)
    return entry if at == end else -1


@kernel
def odd_floats(bits: Any, first: int, last: int) -> Any:
    """(whether some are infinite or NaN, whether some are not 1) of floats, by their bits."""
    infinite, other = 0, 0
    for k in range(first, last):
        infinite |= 1 if bits[k] & _INFINITE == _INFINITE else 0
        other |= bits[k] ^ _UNIT
    return infinite != 0, other != 0


@kernel
def move_down(text: Any, first: int, last: int, to: int) -> None:
    """Move the bytes text[first:last] to the front, to text[to:]."""
    for k in range(last - first):
        text[to + k] = text[first + k]
