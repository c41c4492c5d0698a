"""Click logs of Criteo to arrays: label, 13 counts and 26 hexadecimal categories, with tabs between; fields may be
empty."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.bytes import byte_at
from hogwild.kernels.compiler.jit import exact, kernel
from hogwild.kernels.parse import lines
from hogwild.kernels.parse.numbers import MALFORMED, NEWLINE, RETURN, SPACE, TAB, read_number

NUMBERS, CATEGORIES = 13, 26

# What can be wrong with a line; the detail of an error is the field, from 0 on.
FINE, LABEL, NUMBER, HEX, FEW, MORE = range(6)

_FOUR = np.uint64(4)


class Criteo(NamedTuple):
    """The format. Without a label, a line begins with its counts, or with an empty field."""


@lines.begin_line.of(Criteo)
def _begin(form: Any, at: int) -> Any:
    first = at
    while byte_at(at) == SPACE or byte_at(at) == RETURN:  # a line of tabs is one of empty fields
        at += 1
    return first, (lines.EMPTY if byte_at(at) == NEWLINE else lines.ROWS)


lines.parse_row.of(Criteo)(lambda form, at, end, start, out, unlabelled: parse_fields(at, end, out, unlabelled))


@exact
def parse_fields(at: int, end: int, out: Any, unlabelled: bool) -> Any:
    """As `parse_row` of lines.py; the detail is a field."""
    counts, dense, keys, slots = out.counts, out.dense, out.keys, out.slots
    row, entry = counts[lines.ROWS], counts[lines.ENTRIES]
    no_number, no_category = 0, 0
    label = np.float32(0)
    bare = unlabelled and count_tabs(at) == NUMBERS + CATEGORIES - 1
    if not bare:
        digit = byte_at(at)
        if digit == TAB and unlabelled:
            bare = True
        elif (digit == 48 or digit == 49) and ends_field(byte_at(at + 1)):
            label = np.float32(digit - 48)
            at += 1
        else:
            return at, LABEL, 0
        if byte_at(at) != TAB:
            return at, FEW, 0
        at += 1
    for k in range(NUMBERS):
        number = np.float64(0)
        if byte_at(at) == TAB:
            no_number += 1
        else:
            if ends_field(byte_at(at)):
                return at, FEW, k + 1
            after, value, status = read_number(at, end)
            if status == MALFORMED or not ends_field(byte_at(after)) or not np.isfinite(value):
                return at, NUMBER, k + 1
            at = after
            number = np.float64(value)
        if byte_at(at) != TAB:
            return at, FEW, k + 1
        at += 1
        dense[row * NUMBERS + k] = np.float32(np.log1p(number) if number >= 0 else -np.log1p(-number))
    for k in range(CATEGORIES):
        after, key = read_hex(at)
        if after < 0:
            return at, HEX, NUMBERS + 1 + k
        if after == at:
            no_category += 1
        else:
            keys[entry] = key
            slots[entry] = k
            entry += 1
        at = after
        if k < CATEGORIES - 1:
            if byte_at(at) != TAB:
                return at, FEW, NUMBERS + 1 + k
            at += 1
    if byte_at(at) == TAB:
        return at, MORE, NUMBERS + CATEGORIES
    out.targets[row] = label
    counts[lines.ENTRIES] = entry
    counts[lines.UNLABELLED] += 1 if bare else 0
    counts[lines.NO_NUMBER] += no_number
    counts[lines.NO_CATEGORY] += no_category
    return at, FINE, 0


@kernel
def ends_field(byte: int) -> bool:
    """Whether a byte ends a field."""
    return byte in (TAB, NEWLINE, RETURN)


@kernel
def count_tabs(at: int) -> int:
    """The tabs of a line."""
    tabs = 0
    while byte_at(at) != NEWLINE:
        tabs += 1 if byte_at(at) == TAB else 0
        at += 1
    return tabs


@kernel
def read_hex(at: int) -> Any:
    """Read up to 16 hexadecimal digits and the end of the field: (address after them, key); -1 for other text."""
    key, first = np.uint64(0), at
    while True:
        byte = byte_at(at)
        if byte >= 48 and byte <= 57:
            digit = byte - 48
        else:
            digit = (byte | 32) - 87
            if digit < 10 or digit > 15:
                break
        key = (key << _FOUR) | np.uint64(digit)
        at += 1
    if not ends_field(byte_at(at)) or at - first > 16:
        return -1, key
    return at, key
