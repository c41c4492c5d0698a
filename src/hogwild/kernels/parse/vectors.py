"""Rows of files of word vectors: `word number number …` a line, or a word, a blank and float32 bytes a record.

Words leave and enter as UTF-8 with a newline behind each. No object is made for a word or a number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.kernels.compiler.bytes import byte_at
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.parse.decimals import WIDEST, write_number
from hogwild.kernels.parse.numbers import AMBIGUOUS, GOOD, NEWLINE, RETURN, SPACE, TAB, read_number, skip_blanks

# What can be wrong with a row.
FINE, NO_WORD, NUMBERS, NOT_A_NUMBER, NOT_FINITE, BROKEN_WORD = range(6)

# Places in `state`. PLACE: where in the text or data the reading stopped; LINE: lines before it.
ROWS, BYTES, HARD, CODE, PLACE, LINE, SLOTS = range(7)



class Read(NamedTuple):
    """Where rows go. hard: (entry of the matrix, place in the text) of numbers that Python must read."""

    matrix: Floats
    words: npt.NDArray[np.uint8]
    hard: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]


def room_for_text(size: int, dim: int) -> Read:
    """Room for any text of `size` bytes with `dim` numbers a row; pages that are not touched take no memory."""
    rows = size // (2 * dim + 2) + 1
    return Read(
        np.empty((rows, dim), np.float32), np.empty(size + 1, np.uint8), np.empty((size // 5 + 1, 2), np.int64),
        np.zeros(SLOTS, np.int64),
    )  # fmt: skip


def room_for_binary(rows: int, dim: int, size: int) -> Read:
    """Room for that many records of `dim` numbers, `size` bytes in all."""
    return Read(
        np.empty((rows, dim), np.dtype("<f4")), np.empty(size + 1, np.uint8), np.empty((0, 2), np.int64),
        np.zeros(SLOTS, np.int64),
    )  # fmt: skip


def room_for_lines(rows: int, dim: int, words: int) -> npt.NDArray[np.uint8]:
    """Room for rows as text, with that many bytes of words."""
    return np.empty(words + rows * (dim * (WIDEST + 1) + 1), np.uint8)


# -- text --


@kernel
def parse_lines(text: Any, out: Any) -> None:
    """Read rows from lines of text that ends with a newline, up to its end or to the first bad line.

    A word may hold blanks: the numbers are the last ones of the line. Empty lines are passed over.
    """
    start: Any = np.int64(text.ctypes.data)
    end = start + len(text)
    at, line, size, dim = start, 0, 0, out.matrix.shape[1]
    state = out.state
    while at < end:
        at = skip_blanks(at)
        if byte_at(at) == NEWLINE:
            at += 1
            line += 1
            continue
        word = word_end(at)
        after, code = parse_numbers(word, end, start, out)
        if code != FINE:
            word = at_numbers(at, dim)
            if word == at or is_number_before(word, at, end):
                after, code = at, NUMBERS
            else:
                after, code = parse_numbers(word, end, start, out)
        if code != FINE:
            state[CODE], state[PLACE] = code, after - start
            break
        for place in range(at, word):
            out.words[size] = byte_at(place)
            size += 1
        out.words[size] = NEWLINE
        size += 1
        state[ROWS] += 1
        at = after + 1
        line += 1
    state[BYTES], state[LINE] = size, line


@kernel
def parse_numbers(at: int, end: int, start: int, out: Any) -> Any:
    """Read the numbers of a row, which must end the line: (address of the newline or of what is wrong, code).

    The row that they go to exists: `room_for_text` has one more than can be good.
    """
    row, dim = out.state[ROWS], out.matrix.shape[1]
    hard = out.state[HARD]
    for k in range(dim):
        at = skip_blanks(at)
        if byte_at(at) == NEWLINE:
            return at, NUMBERS
        after, value, status = read_number(at, end)
        if (status != GOOD and status != AMBIGUOUS) or not is_blank(byte_at(after)):
            return at, NOT_A_NUMBER
        if not np.isfinite(value):
            return at, NOT_FINITE
        if status == AMBIGUOUS:
            out.hard[hard, 0], out.hard[hard, 1] = row * dim + k, at - start
            hard += 1
        out.matrix[row, k] = value
        at = after
    at = skip_blanks(at)
    if byte_at(at) != NEWLINE:
        return at, NUMBERS
    out.state[HARD] = hard
    return at, FINE


@kernel
def at_numbers(first: int, count: int) -> int:
    """Address after what stands before the last `count` fields of a line; `first` if there are no more fields."""
    at = first
    while byte_at(at) != NEWLINE:
        at += 1
    for _ in range(count):
        while at > first and is_blank(byte_at(at - 1)):
            at -= 1
        while at > first and not is_blank(byte_at(at - 1)):
            at -= 1
    while at > first and is_blank(byte_at(at - 1)):
        at -= 1
    return at


@kernel
def is_number_before(word: int, first: int, end: int) -> Any:
    """Whether the last field of a word with blanks is a number: then the line has too many numbers."""
    at = word
    while at > first and not is_blank(byte_at(at - 1)):
        at -= 1
    if at == first:
        return False
    after, _, status = read_number(at, end)
    return status in (GOOD, AMBIGUOUS) and after == word


@kernel
def word_end(at: int) -> int:
    """The first blank or newline."""
    while not is_blank(byte_at(at)):
        at += 1
    return at


@kernel
def is_blank(byte: int) -> Any:
    """Whether a field ends here."""
    return byte in (SPACE, NEWLINE, TAB, RETURN)


@kernel
def write_lines(matrix: Any, words: Any, out: Any) -> int:
    """Write `word number … number` lines; words have a newline behind each. Returns the bytes written."""
    at, place = 0, 0
    for row in range(len(matrix)):
        while words[place] != NEWLINE:
            out[at] = words[place]
            at += 1
            place += 1
        place += 1
        for k in range(matrix.shape[1]):
            out[at] = SPACE
            at = write_number(matrix[row, k], out, at + 1)
        out[at] = NEWLINE
        at += 1
    return at


# -- records --


@kernel
def split_records(data: Any, longest: int, rows: Any, out: Any) -> None:
    """Read whole records: newlines (or none), a word of up to `longest` bytes, a blank, the bytes of the numbers.

    rows: the matrix of `out` as bytes. Ends when it is full, before a record that is not whole, or at a bad one.
    """
    size, at, state = 0, 0, out.state
    width = rows.shape[1]
    while state[ROWS] < len(rows):
        first = at
        while first < len(data) and data[first] == NEWLINE:
            first += 1
        last = first
        while last < len(data) and last - first <= longest and data[last] != SPACE and data[last] != NEWLINE:
            last += 1
        state[PLACE] = first
        if last - first > longest:
            state[CODE] = BROKEN_WORD
            break
        if last == len(data):
            break
        if data[last] == NEWLINE or last == first:
            state[CODE] = BROKEN_WORD if last > first else NO_WORD
            break
        if last + 1 + width > len(data):
            break
        for k in range(first, last):
            out.words[size] = data[k]
            size += 1
        out.words[size] = NEWLINE
        size += 1
        row = state[ROWS]
        for k in range(width):
            rows[row, k] = data[last + 1 + k]
        state[ROWS] += 1
        at = last + 1 + width
        state[PLACE] = at
    state[BYTES] = size
