"""Tokens in columns, one a line, with blank lines between sentences: what the lines of a chunk are.

Whole chunks are looked at together: no object a line but its bytes, and no value is taken out of a line twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import compress, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Offsets
from hogwild.errors import InputError
from hogwild.feeds.io.blocks import Block
from hogwild.feeds.tagged.text import Coder

BLANK, TOKEN, COMMENT, START, BAD = range(5)  # what a line is
DOCUMENT = b"-DOCSTART-"
SAMPLE = 1000     # lines from which the number of columns is judged
MOST = 1000       # columns
_NEWLINE, _TAB, _DASH, _HASH = b"\n\t-#"
_GAPS = np.isin(np.arange(256), list(b" \t\n\r\v\f"))
_TRAILING = re.compile(rb"(?<![ \r])[ \r]+\n")
_BLANK_LINE = re.compile(rb"^[ \t\r\v\f]*\n", re.MULTILINE)
_COMMENTS = (b"# ", b"#\t", b"#\n", b"#begin document", b"#end document")


class Layout(NamedTuple):
    """How the lines of a file are divided: into so many columns, by tabs or else by blanks.

    share: of the lines that have so many columns; mean: number of columns over all lines.
    hashed: whatever begins with `#` is a comment; otherwise only what has another number of columns.
    """

    tabs: bool
    columns: int
    share: float = 1
    mean: float = 0
    hashed: bool = False


class Lines(NamedTuple):
    """A chunk of whole sentences: its text, what each line is, and how many columns it has."""

    text: bytes
    status: npt.NDArray[np.int8]
    columns: Offsets


class Rows(NamedTuple):
    """The values of different lines, one line after the other, and which of these lines each token has."""

    values: list[bytes]
    which: Ids


def trim_lines(text: bytes, tabs: bool) -> bytes:
    """The text without carriage returns at the ends of lines, nor blanks, which tabs would leave in the last column."""
    return _TRAILING.sub(b"\n", text) if b"\r\n" in text or (tabs and b" \n" in text) else text


def layout_of(head: str, name: str) -> Layout:
    """The layout of a file that begins so. Most of its lines decide; comments and -DOCSTART- do not count.

    >>> layout_of("# two\\nto TO\\nbe VB\\n\\nor CC\\nnot RB not\\n", "verse.txt")
    Layout(tabs=False, columns=2, share=0.75, mean=2.25, hashed=False)
    """
    if "\r" in head and "\n" not in head:
        raise InputError(f"{name}: lines end with carriage returns only; convert the file with `tr '\\r' '\\n'`.")
    text = trim_lines(head.encode() + b"\n", True)
    plain = list(islice((line for line in _lines(text) if not line.startswith((b"#", DOCUMENT))), SAMPLE))
    if not plain:
        return Layout(False, 0)
    tabs = 2 * sum(b"\t" in line for line in plain) >= len(plain)
    counts = Counter(len(line.split(b"\t") if tabs else line.split()) for line in plain)
    columns, times = counts.most_common(1)[0]
    return Layout(tabs, columns, times / len(plain), sum(count * n for count, n in counts.items()) / len(plain))


def _lines(text: bytes) -> Iterator[bytes]:
    """Lines that are not blank."""
    start = 0
    while end := text.find(b"\n", start) + 1:
        line = text[start : end - 1]
        if line and not line.isspace():
            yield line
        start = end


def whole_sentences(blocks: Iterable[Block], tabs: bool) -> Iterator[tuple[int, bytes]]:
    """Chunks of text that end where a sentence ends, each with the number of its first line; lines are trimmed."""
    kept: list[bytes] = []  # the beginning of a sentence that the last block cut off
    first = 1
    for block in blocks:
        text = trim_lines(block.text.tobytes(), tabs)
        cut = text.rfind(b"\n\n") + 2
        if cut < 2:
            found = _BLANK_LINE.search(text)
            cut = found.end() if found else 0
        if cut:
            yield first, b"".join((*kept, text[:cut]))
            first, kept = block.line + text.count(b"\n", 0, cut), []
        if cut < len(text):
            kept.append(text[cut:])
    if kept:
        yield first, b"".join(kept)


def look_at(text: bytes, layout: Layout) -> Lines:
    """What each line is, by its number of columns: one with another number is a comment, or is malformed."""
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
    solid = ~_GAPS[data]
    if layout.tabs:
        columns = np.add.reduceat(data == _TAB, starts, dtype=np.int64) + 1
        columns[~np.logical_or.reduceat(solid, starts)] = 0
    else:
        solid[1:] &= _GAPS[data[:-1]]
        columns = np.add.reduceat(solid, starts, dtype=np.int64)
    status = np.full(len(starts), BAD, np.int8)
    status[columns == layout.columns] = TOKEN
    status[columns == 0] = BLANK
    letters = data[starts]
    if layout.hashed:
        status[letters == _HASH] = COMMENT
    for k in np.flatnonzero((status == BAD) | ((status == TOKEN) & (letters == _DASH))).tolist():
        if text.startswith(DOCUMENT, starts[k]):
            status[k] = START
        elif status[k] == BAD and text.startswith(_COMMENTS, starts[k]):
            status[k] = COMMENT
    return Lines(text, status, columns)


def sentence_numbers(lines: Lines) -> Offsets:
    """For each line the number of its sentence; a blank line has that of the next."""
    return np.cumsum((lines.status == BLANK) | (lines.status == START))


def rows_of(lines: Lines, chosen: npt.NDArray[np.bool_], layout: Layout) -> Rows:
    """The values of the chosen lines, which are tokens. Lines repeat, and are divided once."""
    coder = Coder()
    which = coder.codes(list(compress(lines.text.split(b"\n"), chosen.tolist())))
    text = b"\n".join(coder)
    if not layout.tabs:
        return Rows(text.split(), which)
    return Rows(text.replace(b"\n", b"\t").split(b"\t") if coder else [], which)


def run_lengths(numbers: Offsets) -> Offsets:
    """How often each number stands in a row.

    >>> run_lengths(np.array([3, 3, 5])).tolist()
    [2, 1]
    """
    if not len(numbers):
        return np.zeros(0, np.int64)
    return np.diff(np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1)), append=len(numbers))
