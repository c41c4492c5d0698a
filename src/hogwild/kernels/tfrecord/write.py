"""Records of tf.train.Example from arrays: sizes first, then bytes, one feature after the other.

The bytes of a feature in a record, from the inside out: the packed numbers; their list; the Feature; the entry of the
map, with the name. Each has a tag and a length before it, see examples.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.ids.crc32c import masked_crc
from hogwild.kernels.tfrecord.examples import FOOTER, HEADER
from hogwild.kernels.tfrecord.protobuf import FIELD1, FIELD2

_SEVEN, _LOW, _HIGH = np.uint64(7), np.uint64(127), np.uint64(128)
_ZERO = np.uint64(0)
_EIGHT, _BYTE = np.uint64(8), np.uint64(255)


@kernel
def varint_size(number: Any) -> int:
    """Bytes of an unsigned number of 64 bits as a varint."""
    size = 1
    while number >= _HIGH:
        number >>= _SEVEN
        size += 1
    return size


@kernel
def put_varint(out: Any, at: int, number: Any) -> int:
    """Write a varint; returns the place after it."""
    while number >= _HIGH:
        out[at] = (number & _LOW) | _HIGH
        number >>= _SEVEN
        at += 1
    out[at] = number
    return at + 1


@kernel
def sized(size: int) -> int:
    """Bytes of a field of that size, with its tag and its length."""
    return 1 + varint_size(np.uint64(size)) + size


@kernel
def put_head(out: Any, at: int, tag: int, size: int) -> int:
    """Write tag and length of a field; returns the place after them."""
    out[at] = tag
    return put_varint(out, at + 1, np.uint64(size))


@kernel
def integer_sizes(numbers: Any, offsets: Any, packed: Any) -> None:
    """Bytes of the integers of each row."""
    for row in range(len(packed)):
        size = 0
        for k in range(offsets[row], offsets[row + 1]):
            size += varint_size(np.uint64(numbers[k]))
        packed[row] = size


@kernel
def add_entries(packed: Any, name: int, totals: Any) -> None:
    """Add the bytes of the entries of a feature whose name has `name` bytes."""
    for row in range(len(packed)):
        whole = sized(sized(packed[row]) if packed[row] > 0 else 0)
        totals[row] += sized(sized(name) + sized(whole))


@kernel
def put_entries(packed: Any, name: Any, tag: int, out: Any, places: Any) -> None:
    """Write all of the entries of a feature but the numbers. places: of each row, where; then where its numbers go."""
    for row in range(len(packed)):
        numbers = sized(packed[row]) if packed[row] > 0 else 0
        whole = sized(numbers)
        at = put_head(out, places[row], FIELD1, sized(len(name)) + sized(whole))
        at = put_head(out, at, FIELD1, len(name))
        for k in range(len(name)):
            out[at + k] = name[k]
        at = put_head(out, at + len(name), FIELD2, whole)
        at = put_head(out, at, tag, numbers)
        if numbers > 0:
            at = put_head(out, at, FIELD1, packed[row])
        places[row] = at


@kernel
def put_integers(numbers: Any, offsets: Any, out: Any, places: Any) -> None:
    """Write the integers of each row, and move its place past them."""
    for row in range(len(places)):
        at = places[row]
        for k in range(offsets[row], offsets[row + 1]):
            at = put_varint(out, at, np.uint64(numbers[k]))
        places[row] = at


@kernel
def put_floats(cells: Any, offsets: Any, out: Any, places: Any) -> None:
    """Write the floats of each row, given as their bytes, and move its place past them."""
    for row in range(len(places)):
        first, count = 4 * offsets[row], 4 * (offsets[row + 1] - offsets[row])
        at = places[row]
        for k in range(count):
            out[at + k] = cells[first + k]
        places[row] = at + count


@kernel
def begin_records(totals: Any, starts: Any) -> None:
    """Where records begin, and the last ends, whose entries have so many bytes."""
    at = 0
    for row in range(len(totals)):
        starts[row] = at
        at += HEADER + sized(totals[row]) + FOOTER
    starts[len(totals)] = at


@kernel
def open_records(totals: Any, starts: Any, out: Any, places: Any) -> None:
    """Write the beginning of each record. places: where its entries go."""
    start: Any = np.int64(out.ctypes.data)
    for row in range(len(totals)):
        at = starts[row]
        put_word(out, at, np.uint64(sized(totals[row])), 8)
        put_word(out, at + 8, masked_crc(start + at, 8), 4)
        places[row] = put_head(out, at + HEADER, FIELD1, totals[row])


@kernel
def close_records(starts: Any, out: Any) -> None:
    """Write the checksum of each record."""
    start: Any = np.int64(out.ctypes.data)
    for row in range(len(starts) - 1):
        first, last = starts[row] + HEADER, starts[row + 1] - FOOTER
        put_word(out, last, masked_crc(start + first, last - first), FOOTER)


@kernel
def put_word(out: Any, at: int, word: Any, size: int) -> None:
    """Write the lowest `size` bytes of a word, the lowest first."""
    for k in range(size):
        out[at + k] = word & _BYTE
        word >>= _EIGHT
