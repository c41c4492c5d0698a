"""Tokens in columns, one a line, with blank lines between sentences: CoNLL, and CoNLL-U.

Whole chunks are looked at together: no object a line but its bytes, and no value is taken out of a line twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Offsets
from hogwild.errors import InputError
from hogwild.feeds.io.blocks import Block, head_of
from hogwild.feeds.io.source import Source
from hogwild.feeds.tagged.columns import FIELDS, TAGS, UNUSED, Asked, ColumnPlan, plan_columns, plan_conllu
from hogwild.feeds.tagged.text import Coder, Gathering, Origin, TextColumn
from hogwild.messages import counted, shown

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


# -- CoNLL-U: ten columns with names, words that stand for several tokens, and empty nodes ----------------------------

REAL, RANGE, EMPTY = "token", "multiword line", "empty node"
_NUMBER = re.compile(rb"\d+(?:[-.]\d+)?")


def wrong_numbers(numbers: Sequence[bytes]) -> dict[int, str]:
    """What is wrong with the column `id`, by row."""
    if b"".join(numbers).isdigit() and b"" not in numbers:
        return {}
    return {
        row: f"`{shown(number.decode())}` is no number of a token (column id)"
        for row, number in enumerate(numbers)
        if not _NUMBER.fullmatch(number)
    }


def kinds_of(numbers: Sequence[bytes]) -> npt.NDArray[np.str_]:
    """What rows are: `1-2` stands for two tokens that follow, `1.1` for none at all."""
    if b"".join(numbers).isdigit():
        return np.full(len(numbers), REAL)
    return np.array([RANGE if b"-" in number else EMPTY if b"." in number else REAL for number in numbers])


# -- reading ----------------------------------------------------------------------------------------------------------

_LONG = 1000  # tokens of a file without blank lines that a note names
_SHOWN = 3    # tags that a note names


class ColumnsReader:
    """Takes one file after the other; all have the columns of the first."""

    def __init__(self, gathering: Gathering, asked: Asked, form: str) -> None:
        self.gathering, self.asked = gathering, asked
        self.unicode = form == "conllu"
        self.form = form
        self.plan: ColumnPlan | None = None
        self.tabs = False
        self._notes: list[str] = []

    def read(self, source: Source) -> None:
        """Take the sentences of a file."""
        gathered = self.gathering
        layout = self._layout(source)
        before = gathered.sentences, gathered.tokens
        for first, text in whole_sentences(gathered.blocks(source), layout.tabs):
            self._take(text, first, source, layout)
        tokens = gathered.tokens - before[1]
        if gathered.sentences - before[0] == 1 and tokens >= _LONG:
            self._notes.append(f"{source.name} has no blank line: its {tokens:,} tokens are one sentence.")

    def origin(self, columns: tuple[TextColumn, ...]) -> Origin:
        """What the sentences are written with again."""
        return Origin(self.form, columns, "\t" if self.tabs else " ")

    def notes(self, columns: tuple[TextColumn, ...]) -> list[str]:
        """What was decided that the user did not say, and what is odd."""
        assert self.plan is not None
        notes, plan, config = [*self._notes], self.plan, self.asked.config
        said = config.columns and (config.tag_column or TAGS in config.columns)
        if not said and not self.asked.needed:
            used = ", ".join(plan.features())
            unused = [str(k) for k, name in enumerate(plan.names) if name == UNUSED]
            tags = f"; tags: {plan.names[plan.tag] if self.unicode else f'column {plan.tag}'}" if plan.tag >= 0 else ""
            ignored = f"; not used: column {', '.join(unused)}" if unused and not self.unicode else ""
            notes.append(f"Columns: {used}{tags}{ignored} (--columns and --tag-column say otherwise).")
        if plan.tag >= 0 and self.asked.with_tags:
            notes += self._odd_tags(columns)
        return notes

    def _layout(self, source: Source) -> Layout:
        """Judge the first lines of a file, and decide by those of the first file what its columns are."""
        layout = layout_of(head_of(source, self.gathering.config.invalid_utf8 == "replace"), source.name)
        count = layout.columns
        if not count:
            return layout
        if count > MOST:
            raise InputError(f"{source.name}: {count:,} columns found; is this the right --format?")
        self.tabs |= layout.tabs
        if self.unicode and count != len(FIELDS):
            raise InputError(
                f"{source.name}: {count} columns found, but CoNLL-U has {len(FIELDS)}; is this the right --format?"
            )
        if self.plan is None:
            self.plan = (
                plan_conllu(self.asked, source.name) if self.unicode else plan_columns(count, self.asked, source.name)
            )
            self.asked.places(self.plan, source.name)  # says at once what is missing
            self.gathering.open(count)
        if count != len(self.plan.names):
            raise InputError(f"{source.name}: {count} columns found, but {len(self.plan.names)} in the file before;"
                             " give files with the same columns.")
        return layout._replace(hashed=self.unicode)

    def _take(self, text: bytes, first: int, source: Source, layout: Layout) -> None:
        lines = look_at(text, layout)
        numbers = np.cumsum((lines.status == BLANK) | (lines.status == START))  # of sentences, for each line
        self.gathering.left_out["comment line"] += int((lines.status == COMMENT).sum())
        self.gathering.left_out["-DOCSTART- line"] += int((lines.status == START).sum())
        seen = len(run_lengths(numbers[(lines.status == TOKEN) | (lines.status == BAD)]))
        why = {
            k: f"expected {layout.columns} columns, found {lines.columns[k]}"
            for k in np.flatnonzero(lines.status == BAD).tolist()
        }
        while True:
            chosen = (lines.status == TOKEN) & ~np.isin(numbers, numbers[lines.status == BAD])
            rows = rows_of(lines, chosen, layout)
            wrong = self._wrong(rows.values, layout)
            if not wrong:
                break
            bad = np.isin(rows.which, list(wrong))
            places = np.flatnonzero(chosen)[bad]
            why |= {k: wrong[row] for k, row in zip(places.tolist(), rows.which[bad].tolist(), strict=True)}
            lines.status[places] = BAD
        self._report(why, numbers, first, source)
        self.gathering.bad.seen(seen)
        if rows.values:
            self._add(rows, numbers[chosen], layout)

    def _wrong(self, values: list[bytes], layout: Layout) -> dict[int, str]:
        """What is wrong with rows that have as many columns as they should, by row."""
        if not values or self.plan is None:
            return {}
        wrong = wrong_numbers(values[:: layout.columns]) if self.unicode else {}
        if self.plan.tag >= 0 and self.asked.with_tags and layout.tabs:
            tags = values[self.plan.tag :: layout.columns]
            if b"" in tags:
                wrong |= {row: f"the tag (column {self.plan.tag}) is empty" for row, tag in enumerate(tags) if not tag}
        return wrong

    def _report(self, why: dict[int, str], numbers: Offsets, first: int, source: Source) -> None:
        """Report each malformed sentence once, by its first malformed line."""
        before = -1
        for k in sorted(why):
            if numbers[k] != before:
                before = int(numbers[k])
                self.gathering.report(f"{source.place(first + k)}: {why[k]}")

    def _add(self, rows: Rows, numbers: Offsets, layout: Layout) -> None:
        columns = [rows.values[k :: layout.columns] for k in range(layout.columns)]
        which = rows.which
        if self.unicode:
            kinds = kinds_of(columns[0])
            for what in (RANGE, EMPTY):
                self.gathering.left_out[what] += int((kinds == what)[which].sum())
            kept = kinds == REAL
            if not kept.all():
                columns = [list(compress(column, kept.tolist())) for column in columns]
                numbers = numbers[kept[which]]
                which = (np.cumsum(kept) - 1)[which[kept[which]]]
        coded = [coder.codes(column)[which] for coder, column in zip(self.gathering.coders, columns, strict=True)]
        self.gathering.add(coded, run_lengths(numbers))

    def _odd_tags(self, columns: tuple[TextColumn, ...]) -> list[str]:
        """Tags that may be none: those of comments that look like tokens, and `_` in CoNLL-U."""
        assert self.plan is not None
        tags = columns[self.plan.tag]
        if self.unicode:
            missing = int((tags.codes == tags.values.index("_")).sum()) if "_" in tags.values else 0
            return [f"{counted(missing, 'token')} tagged `_`, which in CoNLL-U means no tag."] if missing else []
        if "#" not in columns[0].values:
            return []
        hashes = columns[0].codes == columns[0].values.index("#")
        alone = np.setdiff1d(tags.codes[hashes], tags.codes[~hashes])
        named = np.array([tags.values[code] == "#" for code in alone.tolist()], np.bool_)  # as treebanks call it
        alone = alone[~named]
        if not len(alone):
            return []
        names = ", ".join(f"`{shown(tags.values[code])}`" for code in alone[:_SHOWN].tolist())
        lines = int(np.isin(tags.codes[hashes], alone).sum())
        return [
            f"{counted(lines, 'line')} with the token `#` and a tag that no other token has ({names}"
            f"{', …' if len(alone) > _SHOWN else ''}): if these are comments, take them out of the file."
        ]
