"""svmlight / libsvm text to arrays: `label [qid:n] id:value … [# comment]`, one row a line."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets
from hogwild.kernels.compiler.bytes import byte_at
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.parse import lines, numbers
from hogwild.kernels.parse.numbers import AMBIGUOUS, GOOD, MALFORMED, NEWLINE, read_number, skip_blanks

# What can be wrong with a line.
FINE, LABEL, NO_LABEL, ID, NO_COLON, ID_TOO_LARGE, VALUE, NOT_FINITE, TWICE = range(9)

NO_ID = 2**31  # the smallest id of a block without entries
_LAST_ID = 2**31 - 1
_HASH, _COLON, _Q, _I, _D = 35, 58, 113, 105, 100
_ENDS = sum(1 << byte for byte in (NEWLINE, numbers.SPACE, numbers.TAB, numbers.RETURN, _HASH))


class Parsed(NamedTuple):
    """Where the rows of one block go, with room for any block of that many bytes. The detail of an error is an id.

    hard: (entry, place in the text) of numbers that Python must read; labels count as entry -1 - row.
    """

    lengths: Offsets
    ids: Ids
    values: Floats
    targets: Floats
    lines: Offsets
    hard: npt.NDArray[np.int64]
    errors: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def room_for(size: int) -> Parsed:
    """Allocate what a block of `size` bytes can need at the most: 2 bytes a row, 4 an entry, 5 a hard number.

    Pages that are not touched take no memory.
    """
    rows, entries = size // 2 + 1, size // 4 + 1
    return Parsed(
        lengths=np.empty(rows, np.int64),
        ids=np.empty(entries, np.int32),
        values=np.empty(entries, np.float32),
        targets=np.empty(rows, np.float32),
        lines=np.empty(rows, np.int64),
        hard=np.empty((size // 5 + 1, 2), np.int64),
        errors=np.zeros((lines.ERRORS, 4), np.int64),
        counts=np.zeros(lines.COUNTS, np.int64),
    )


class Svmlight(NamedTuple):
    """The format. Without a label, a line begins with an entry."""


@kernel
def parse_block(text: Any, out: Any, stop: bool, unlabelled: bool) -> None:
    """As `parse_block` of lines.py."""
    out.counts[lines.SMALLEST], out.counts[lines.LARGEST] = NO_ID, -1
    lines.parse_block(Svmlight(), text, out, stop, unlabelled)


@lines.begin_line.of(Svmlight)
def _begin(form: Any, at: int) -> Any:
    at = skip_blanks(at)
    first = byte_at(at)
    return at, (lines.EMPTY if first == NEWLINE else lines.COMMENTS if first == _HASH else lines.ROWS)


@lines.parse_row.of(Svmlight)
def _parse_row(form: Any, at: int, end: int, start: int, out: Any, unlabelled: bool) -> Any:
    counts = out.counts
    row, entry, hard = counts[lines.ROWS], counts[lines.ENTRIES], counts[lines.HARD]
    smallest, largest, valued = counts[lines.SMALLEST], counts[lines.LARGEST], counts[lines.VALUED]
    after, label, status = read_number(at, end)
    if status == MALFORMED or not ends_token(byte_at(after)):
        missing = has_colon(at)
        if not missing or not unlabelled:
            return at, (NO_LABEL if missing else LABEL), 0
        after, label, status = at, np.float32(0), GOOD
    if not np.isfinite(label):
        return at, NOT_FINITE, 0
    if status == AMBIGUOUS:
        out.hard[hard, 0], out.hard[hard, 1] = -1 - row, at - start
        hard += 1
    out.targets[row] = label
    labelled = after > at
    at = after
    previous = -1
    rising = True
    while True:
        at = skip_blanks(at)
        word = numbers.word_at(at, end)
        digits = numbers.digits_in(word)
        if digits == 0:
            byte = byte_at(at)
            if byte == NEWLINE:
                break
            if byte == _HASH:
                counts[lines.COMMENTS] += 1
                break
            if is_qid(at):
                counts[lines.QIDS] += 1
                while not ends_token(byte_at(at)):
                    at += 1
                continue
            return at, ID, 0
        ident = numbers.number_in(word, digits)
        after = at + digits
        if digits == 8:
            after, ident = read_id(at, end)
            if ident > _LAST_ID:
                return at, ID_TOO_LARGE, 0
        if byte_at(after) != _COLON:
            return at, (NO_COLON if ends_token(byte_at(after)) else ID), 0
        colon = after
        after, value, status = read_number(colon + 1, end)
        if status == MALFORMED or not ends_token(byte_at(after)):
            return at, VALUE, 0
        if not np.isfinite(value):
            return at, NOT_FINITE, 0
        if status == AMBIGUOUS:
            out.hard[hard, 0], out.hard[hard, 1] = entry, colon + 1 - start
            hard += 1
        out.ids[entry] = ident
        out.values[entry] = value
        entry += 1
        rising &= ident > previous
        previous = ident
        smallest = min(smallest, ident)
        largest = max(largest, ident)
        valued |= value != np.float32(1)
        at = after
    counts[lines.UNLABELLED] += 0 if labelled else 1
    counts[lines.VALUED] = valued
    if not rising:
        first = counts[lines.ENTRIES]
        twice = order_row(out.ids[first:entry], out.values[first:entry])
        if twice >= 0:
            return at, TWICE, twice
        counts[lines.UNSORTED] += 1
    counts[lines.ENTRIES], counts[lines.HARD] = entry, hard
    counts[lines.SMALLEST], counts[lines.LARGEST] = smallest, largest
    return at, FINE, 0


@kernel
def ends_token(byte: int) -> bool:
    """Whether a byte is a blank, a newline or the beginning of a comment."""
    return byte < 64 and (_ENDS >> byte) & 1 == 1


@kernel
def has_colon(at: int) -> bool:
    """Whether a token has a colon in it."""
    while not ends_token(byte_at(at)):
        if byte_at(at) == _COLON:
            return True
        at += 1
    return False


@kernel
def is_qid(at: int) -> bool:
    """Whether a token is `qid:` and something; the newline at the end of the text stops the looking."""
    if byte_at(at) != _Q or byte_at(at + 1) != _I or byte_at(at + 2) != _D or byte_at(at + 3) != _COLON:
        return False
    return not ends_token(byte_at(at + 4))


@kernel
def read_id(at: int, end: int) -> Any:
    """Read an id of any number of digits; past the largest int32 it stands still."""
    ident = 0
    while byte_at(at) >= 48 and byte_at(at) <= 57:
        ident = min(ident * 10 + byte_at(at) - 48, NO_ID)
        at += 1
    return at, ident


@kernel
def order_row(ids: Any, values: Any) -> int:
    """Sort the entries of a row by id; returns an id that stands there twice, or -1."""
    sort_entries(ids, values)
    for k in range(1, len(ids)):
        if ids[k - 1] == ids[k]:
            return np.int64(ids[k])
    return np.int64(-1)


@kernel
def sort_entries(ids: Any, values: Any) -> None:
    """Shell sort: no memory, next to no code, and fast on rows that are short or nearly sorted."""
    gap = 1
    while gap < len(ids) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, len(ids)):
            ident, value = ids[k], values[k]
            at = k
            while at >= gap and ids[at - gap] > ident:
                ids[at], values[at] = ids[at - gap], values[at - gap]
                at -= gap
            ids[at], values[at] = ident, value
        gap //= 3
