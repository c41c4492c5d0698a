"""Rows of slots as parsers of text leave them: keys of categories, the slot of each, and numbers beside them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Keys, Offsets, Slots
from hogwild.kernels.compiler.bytes import byte_at
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.parse.lines import COUNTS, ERRORS
from hogwild.kernels.parse.numbers import digits_in, number_in, word_at

# Kinds of hard numbers: the array that they belong to.
OF_DENSE, OF_TARGETS, OF_VALUES = range(3)
# What reading a key may find.
NO_KEY, TOO_LARGE = -1, -2

_TEN, _LARGEST = np.uint64(10), np.uint64(2**64 - 1)
_POWERS = np.array([10**k for k in range(9)], dtype=np.uint64)
_HIGHEST, _LAST = np.uint64((2**64 - 1) // 10**4), np.uint64((2**64 - 1) % 10**4)  # the largest key, cut at 16 digits


class SlotBlock(NamedTuple):
    """Where the rows of one block go, with room for any block of that many bytes. The detail of an error is a slot.

    dense: a row after another. hard: (kind, index, place in the text) of numbers that Python must read.
    """

    lengths: Offsets
    lines: Offsets
    targets: Floats
    dense: Floats
    keys: Keys
    slots: Slots
    values: Floats
    hard: npt.NDArray[np.int64]
    errors: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def room_for(size: int, row: int, columns: int, valued: bool) -> SlotBlock:
    """Allocate what a block of `size` bytes can need at the most: `row` bytes a row or more, 2 an entry, 5 a hard
    number. Pages that are not touched take no memory."""
    rows, most = size // row + 1, size // 2 + 1
    return SlotBlock(
        lengths=np.empty(rows, np.int64),
        lines=np.empty(rows, np.int64),
        targets=np.empty(rows, np.float32),
        dense=np.empty(rows * columns, np.float32),
        keys=np.empty(most, np.uint64),
        slots=np.empty(most, np.uint16),
        values=np.empty(most if valued else 0, np.float32),
        hard=np.empty((size // 5 + 1, 3), np.int64),
        errors=np.zeros((ERRORS, 4), np.int64),
        counts=np.zeros(COUNTS, np.int64),
    )


@kernel
def note_hard(hard: Any, number: int, kind: int, index: int, place: int) -> None:
    """Write down a number that Python must read."""
    hard[number, 0], hard[number, 1], hard[number, 2] = kind, index, place


@kernel
def read_key(at: int, end: int) -> Any:
    """Read a decimal key of up to 64 bits: (address after it, key); the address is NO_KEY or TOO_LARGE for none."""
    word = word_at(at, end)
    digits = digits_in(word)
    if digits == 0:
        return NO_KEY, np.uint64(0)
    key = np.uint64(number_in(word, digits))
    if digits < 8:
        return at + digits, key
    word = word_at(at + 8, end)
    digits = digits_in(word)
    if digits == 0:
        return at + 8, key
    key = key * _POWERS[digits] + np.uint64(number_in(word, digits))
    if digits < 8:
        return at + 8 + digits, key
    word = word_at(at + 16, end)
    digits = digits_in(word)
    if digits == 0:
        return at + 16, key
    rest = np.uint64(number_in(word, digits))
    if digits > 4 or (digits == 4 and (key > _HIGHEST or (key == _HIGHEST and rest > _LAST))):
        return read_padded_key(at)
    return at + 16 + digits, key * _POWERS[digits] + rest


@kernel
def read_padded_key(at: int) -> Any:
    """The same for more than twenty digits, of which the first may be zeros."""
    while byte_at(at) == 48 and byte_at(at + 1) >= 48 and byte_at(at + 1) <= 57:
        at += 1
    key = np.uint64(0)
    while byte_at(at) >= 48 and byte_at(at) <= 57:
        digit = np.uint64(byte_at(at) - 48)
        if key > (_LARGEST - digit) // _TEN:
            return TOO_LARGE, key
        key = key * _TEN + digit
        at += 1
    return at, key
