"""svmlight / libsvm text to arrays: `label [qid:n] id:value … [# comment]`, one row a line."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets
from hogwild.kernels.compiler.bytes import byte_at
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.parse.numbers import (
    AMBIGUOUS,
    GOOD,
    MALFORMED,
    NEWLINE,
    RETURN,
    SPACE,
    TAB,
    digits_in,
    next_line,
    number_in,
    read_number,
    skip_blanks,
    word_at,
)

# What can be wrong with a line.
FINE, LABEL, NO_LABEL, ID, NO_COLON, ID_TOO_LARGE, VALUE, NOT_FINITE, TWICE, UNSORTED_ROW = range(10)

# Places in `counts`.
ROWS, ENTRIES, LINES, EMPTY, COMMENTS, QIDS, UNSORTED, UNLABELLED = range(8)
SMALLEST, LARGEST, VALUED, BAD, HARD, COUNTS = range(8, 14)

NO_ID = 2**31  # the smallest id of a block without entries
_LAST_ID = 2**31 - 1
_HASH, _COLON, _Q, _I, _D = 35, 58, 113, 105, 100
_ENDS = sum(1 << byte for byte in (NEWLINE, SPACE, TAB, RETURN, _HASH))


class Parsed(NamedTuple):
    """Where the rows of one block go, with room for any block of that many bytes.

    lines: the line of each row, the first of the block being 0.
    hard: (entry, place in the text) of numbers that Python must read; labels count as entry -1 - row.
    errors: (code, place in the text, line, id) of bad lines, the first few of them.
    """

    lengths: Offsets
    ids: Ids
    values: Floats
    targets: Floats
    lines: Offsets
    hard: npt.NDArray[np.int64]
    errors: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def room_for(size: int, errors: int = 64) -> Parsed:
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
        errors=np.zeros((errors, 4), np.int64),
        counts=np.zeros(COUNTS, np.int64),
    )


@kernel
def parse_block(text: Any, out: Any, stop: bool, unlabelled: bool) -> None:
    """Parse lines of text that ends with a newline. Bad lines are left out; with `stop` the first one ends it.

    unlabelled: a line that begins with an entry is a row with label 0.
    """
    start: Any = np.int64(text.ctypes.data)
    end = start + len(text)
    at = start
    line = 0
    counts = out.counts
    counts[SMALLEST] = NO_ID
    counts[LARGEST] = -1
    while at < end:
        at = skip_blanks(at)
        first = byte_at(at)
        if first == NEWLINE:
            counts[EMPTY] += 1
        elif first == _HASH:
            counts[COMMENTS] += 1
        else:
            entries, hard, smallest, largest = counts[ENTRIES], counts[HARD], counts[SMALLEST], counts[LARGEST]
            at, code = parse_row(at, end, start, unlabelled, out)
            ident = 0
            if code == UNSORTED_ROW:
                code, ident = order_row(out.ids[entries : counts[ENTRIES]], out.values[entries : counts[ENTRIES]])
                counts[UNSORTED] += 1 if code == FINE else 0
            if code == FINE:
                out.lengths[counts[ROWS]] = counts[ENTRIES] - entries
                out.lines[counts[ROWS]] = line
                counts[ROWS] += 1
            else:
                if counts[BAD] < len(out.errors):
                    note(out.errors[counts[BAD]], code, at - start, line, ident)
                counts[BAD] += 1
                counts[ENTRIES], counts[HARD] = entries, hard
                counts[SMALLEST], counts[LARGEST] = smallest, largest
                if stop:
                    break
        at = next_line(at)
        line += 1
    counts[LINES] = line


@kernel
def parse_row(at: int, end: int, start: int, unlabelled: bool, out: Any) -> Any:
    """Parse one line from its label on, up to its end, its comment or what is wrong: (address, code)."""
    counts = out.counts
    row, entry, hard = counts[ROWS], counts[ENTRIES], counts[HARD]
    smallest, largest, valued = counts[SMALLEST], counts[LARGEST], counts[VALUED]
    after, label, status = read_number(at, end)
    if status == MALFORMED or not ends_token(byte_at(after)):
        missing = has_colon(at)
        if not missing or not unlabelled:
            return at, (NO_LABEL if missing else LABEL)
        after, label, status = at, np.float32(0), GOOD
    if not np.isfinite(label):
        return at, NOT_FINITE
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
        word = word_at(at, end)
        digits = digits_in(word)
        if digits == 0:
            byte = byte_at(at)
            if byte == NEWLINE:
                break
            if byte == _HASH:
                counts[COMMENTS] += 1
                break
            if is_qid(at):
                counts[QIDS] += 1
                at = skip_token(at)
                continue
            return at, ID
        ident = number_in(word, digits)
        after = at + digits
        if digits == 8:
            after, ident = read_id(at, end)
            if ident > _LAST_ID:
                return at, ID_TOO_LARGE
        if byte_at(after) != _COLON:
            return at, (NO_COLON if ends_token(byte_at(after)) else ID)
        colon = after
        after, value, status = read_number(colon + 1, end)
        if status == MALFORMED or not ends_token(byte_at(after)):
            return at, VALUE
        if not np.isfinite(value):
            return at, NOT_FINITE
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
    counts[ENTRIES], counts[HARD] = entry, hard
    counts[UNLABELLED] += 0 if labelled else 1
    counts[SMALLEST], counts[LARGEST], counts[VALUED] = smallest, largest, valued
    return at, (FINE if rising else UNSORTED_ROW)


@kernel
def note(error: Any, code: int, place: int, line: int, ident: int) -> None:
    """Write down what is wrong with a line."""
    error[0], error[1], error[2], error[3] = code, place, line, ident


@kernel
def skip_token(at: int) -> int:
    """The next byte that ends a token."""
    while not ends_token(byte_at(at)):
        at += 1
    return at


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
def order_row(ids: Any, values: Any) -> Any:
    """Sort the entries of a row by id: (FINE, 0), or (TWICE, id) if an id stands there twice."""
    sort_entries(ids, values)
    for k in range(1, len(ids)):
        if ids[k - 1] == ids[k]:
            return TWICE, np.int64(ids[k])
    return FINE, np.int64(0)


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
