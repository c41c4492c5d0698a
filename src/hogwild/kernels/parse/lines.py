"""Lines of text to rows: one loop for all formats. A format is a NamedTuple that says by its type how a line is read.

Blocks are bundles of arrays, of which all have `lengths` and `lines` (of each row; the first line of a block being 0),
`counts` and `errors`: (code, place in the text, line, detail) of bad lines, the first few of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.bytes import byte_at
from hogwild.kernels.compiler.jit import choice, kernel
from hogwild.kernels.parse.numbers import NEWLINE, RETURN, SPACE, TAB, next_line, skip_blanks

# Places in `counts`.
ROWS, ENTRIES, LINES, EMPTY, UNLABELLED, VALUED, BAD, HARD, UNSORTED = range(9)
NO_NUMBER, NO_CATEGORY, COMMENTS, QIDS, SMALLEST, LARGEST, COUNTS = range(9, 16)
FINE = 0     # the code of a good line
ERRORS = 64  # bad lines of a block that are told of

_ENDS = sum(1 << byte for byte in (NEWLINE, SPACE, TAB, RETURN))


@choice
def parse_row(form: Any, at: int, end: int, start: int, out: Any, unlabelled: bool) -> Any:
    """Parse one line from its first token on: (address of its end or of what is wrong, code, detail)."""


@choice
def begin_line(form: Any, at: int) -> Any:
    """(address from which on `parse_row` reads a line, ROWS); of a line without a row, which count it belongs to."""


def _begin_tokens(form: Any, at: int) -> Any:
    at = skip_blanks(at)
    return at, (EMPTY if byte_at(at) == NEWLINE else ROWS)


begin_line.otherwise(_begin_tokens)


@kernel
def parse_block(form: Any, text: Any, out: Any, stop: bool, unlabelled: bool) -> None:
    """Parse lines of text that ends with a newline. Bad lines are left out; with `stop` the first one ends it.

    unlabelled: a line may be without a label; the row has label 0.
    """
    start: Any = np.int64(text.ctypes.data)
    end = start + len(text)
    at, line, counts = start, 0, out.counts
    while at < end:
        at, kind = begin_line(form, at)
        if kind != ROWS:
            counts[kind] += 1
        else:
            first = counts[ENTRIES]
            at, code, detail = parse_row(form, at, end, start, out, unlabelled)
            if code == FINE:
                row = counts[ROWS]
                out.lengths[row] = counts[ENTRIES] - first
                out.lines[row] = line
                counts[ROWS] = row + 1
            else:
                if counts[BAD] < len(out.errors):
                    error = out.errors[counts[BAD]]
                    error[0], error[1], error[2], error[3] = code, at - start, line, detail
                counts[BAD] += 1
                if stop:
                    break
        at = next_line(at)
        line += 1
    counts[LINES] = line


@kernel
def skip_token(at: int) -> int:
    """The next byte that ends a token."""
    while not ends_token(byte_at(at)):
        at += 1
    return at


@kernel
def ends_token(byte: int) -> bool:
    """Whether a byte is a blank or a newline."""
    return byte < 64 and (_ENDS >> byte) & 1 == 1
