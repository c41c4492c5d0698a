"""Ratings from files: text a block at a time, Parquet and Arrow a few thousand rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids
from hogwild.config import RatingConfig
from hogwild.errors import InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.blocks import Block, blocks_of, check_utf8, head_of
from hogwild.feeds.io.source import READ_AHEAD, Source
from hogwild.feeds.ratings.ratinglayout import SEPARATORS, Found, choose_columns, find_layout, split
from hogwild.feeds.sparse.labels import counted, shown
from hogwild.feeds.storage.words import Words
from hogwild.feeds.tables.arrowfiles import ArrowFile
from hogwild.kernels.parse import ratings as reading
from hogwild.kernels.parse.ratings import NONE, Columns, Layout, Tables, read_columns, read_lists

_MOST = 1 << 30  # users or items: all of them are kept
_NAMES = {number: name for name, number in SEPARATORS.items()}


class Encoded(NamedTuple):
    """A part of the ratings, in numbers of names."""

    users: Ids
    items: Ids
    values: npt.NDArray[np.float32]


class RatingReader:
    """Reads all files of a feed. users, items: given names, which are not added to.

    implicit: whether no file has ratings; `parts` and `layouts` are filled by `read`.
    """

    def __init__(self, config: RatingConfig, given: tuple[Sequence[str], Sequence[str]] | None) -> None:
        self.config = config
        self.bad = BadLines(config)
        self.users, self.items = (_table(given[k] if given else None) for k in (0, 1))
        self.closed = given is not None
        self.parts: list[Encoded] = []
        self.layouts: list[str] = []
        self.rated = 0
        self.blank = self.bare = self.replaced = 0

    def read(self, source: Source, with_ratings: bool) -> None:
        """Read one file."""
        form = self.config.format
        if form in ("auto", "parquet", "arrow"):
            magic = source.head(8)
            kind = "parquet" if magic.startswith(b"PAR1") else "arrow" if magic.startswith(b"ARROW1") else ""
            if kind or form != "auto":
                self._read_arrow(source, kind or form, with_ratings)
                return
        replace = self.config.invalid_utf8 == "replace"
        found = find_layout(head_of(source, replace), self.config, source.name, with_ratings)
        self.rated += not found.implicit
        self.layouts.append(_told(found))
        for block in blocks_of(source, 0, found.skip):
            text, replaced = check_utf8(block, replace)
            self.replaced += replaced
            self._read_block(block._replace(text=text), found.layout)

    # -- text -------------------------------------------------------------------------------------------------------

    def _read_block(self, block: Block, layout: Layout | None) -> None:
        text = np.concatenate([block.text, np.zeros(READ_AHEAD, np.uint8)])
        lines = int(np.count_nonzero(block.text == 10))
        room = lines if layout is not None else len(block.text) // 2 + 1
        out = Columns(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.float32))
        state = np.zeros(8, np.int64)
        first = text.ctypes.data
        at, end = first, first + len(block.text)
        while at < end:
            tables = Tables(self.users.table, self.items.table)
            if layout is None:
                at, problem = read_lists(at, end, tables, out, state)
            else:
                at, problem = read_columns(at, end, layout, tables, out, state)
            if problem in (reading.USERS_FULL, reading.ITEMS_FULL):
                stop = int(np.argmax(text[at - first :] == 10))
                (self.users if problem == reading.USERS_FULL else self.items).make_room(stop)
            elif problem != reading.GOOD:
                assert layout is not None
                stop = at - first + int(np.argmax(text[at - first :] == 10))
                line = text[at - first : stop].tobytes().decode(errors="replace")
                place = block.source.place(block.line + int(state[reading.LINES]))
                self.bad.report(f"{place}: {_problem(problem, line, layout, int(state[reading.FIELD]))}")
                state[reading.LINES] += 1
                at = first + stop + 1
        rows = int(state[reading.ROWS])
        self.bad.seen(int(state[reading.LINES]))
        self.blank += int(state[reading.BLANK])
        self.bare += int(state[reading.BARE])
        self._add(out.users[:rows].copy(), out.items[:rows].copy(), out.values[:rows].copy())

    def _add(self, users: Ids, items: Ids, values: npt.NDArray[np.float32]) -> None:
        self.parts.append(Encoded(users, items, values))

    # -- Parquet and Arrow ------------------------------------------------------------------------------------------

    def _read_arrow(self, source: Source, form: str, with_ratings: bool) -> None:
        file = ArrowFile(source, form)
        numeric = [["0" if kind == "numeric" else "x" for kind in file.kinds]]
        user, item, rating = choose_columns(file.names, numeric, self.config, source.name)
        if not with_ratings and self.config.rating in ("", "none"):
            rating = NONE
        self.rated += rating != NONE
        chosen = [file.names[k] for k in (user, item, rating) if k != NONE]
        self.layouts.append(f"columns {', '.join(chosen)}")
        for frame in file.frames(chosen, 0):
            arrays = [frame.arrays[name] for name in chosen]
            good = np.ones(len(frame.lines), bool)
            sides = []
            for table, array, what in ((self.users, arrays[0], "user"), (self.items, arrays[1], "item")):
                ids, missing = _encode(table, array, f"{source.name}: column {what}")
                self._report(source, frame.lines, good & missing, f"there is no {what}")
                good &= ~missing
                sides.append(ids)
            values = np.ones(len(frame.lines), np.float32)
            if rating != NONE:
                numbers = _numbers(arrays[2], source.name, chosen[2])
                with np.errstate(over="ignore"):
                    values = numbers.astype(np.float32)
                odd = ~np.isfinite(values)
                self._report(source, frame.lines, good & odd, "the rating is missing or not a finite number")
                good &= ~odd
            self.bad.seen(len(frame.lines))
            self._add(sides[0][good], sides[1][good], values[good])

    def _report(self, source: Source, lines: npt.NDArray[Any], wrong: npt.NDArray[np.bool_], what: str) -> None:
        for line in lines[wrong].tolist():
            self.bad.report(f"{source.place(line)}: {what}", "Correct it, or skip such rows with --bad-lines skip.")

    def notes(self) -> list[str]:
        """What to tell the user. Raises InputError when too many lines were malformed."""
        notes = [f"read as {layout}." for layout in dict.fromkeys(self.layouts)]
        if self.bare:
            notes.append(f"{counted(self.bare, 'user')} without items.")
        if self.blank:
            notes.append(f"{counted(self.blank, 'blank line')} left out.")
        if self.replaced:
            notes.append(f"{counted(self.replaced, 'byte')} not UTF-8, read as `?`.")
        return [*notes, *self.bad.notes()]


def _table(names: Sequence[str] | None) -> Words:
    table = Words(most=_MOST)
    if names is None:
        return table
    ids = table.encode_strings(name.encode() for name in names)
    if not np.array_equal(ids, np.arange(len(names))):
        raise InputError("users and items of a model must each have a name of their own that is not empty.")
    return table.closed()


def _told(found: Found) -> str:
    layout = found.layout
    if layout is None:
        return "lists: a user and all items a line"
    columns = f"user in column {layout.user}, item in {layout.item}"
    rating = f", rating in {layout.rating}" if layout.rating != NONE else ", no ratings"
    return f"{_NAMES[layout.separator]}-separated: {columns}{rating}"


def _problem(problem: int, line: str, layout: Layout, fields: int) -> str:
    """What is wrong with a line of columns."""
    if problem == reading.FIELDS:
        return f"{counted(fields, 'column')}, not {layout.fields} as most lines have: `{shown(line)}`"
    if problem == reading.QUOTES:
        return f"a quote does not end where its column does: `{shown(line)}`"
    if problem in (reading.NO_USER, reading.NO_ITEM):
        return f"there is no {'user' if problem == reading.NO_USER else 'item'}: `{shown(line)}`"
    found = split(line, _NAMES[layout.separator])[layout.rating]
    return f"the rating `{shown(found)}` is not a {'finite ' if problem == reading.NOT_FINITE else ''}number"


def _encode(table: Words, array: Any, where: str) -> tuple[Ids, npt.NDArray[np.bool_]]:
    """Numbers of the names in a column, and which are missing or empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        strings = pc.cast(array, pa.large_string())
    except (pa.ArrowException, NotImplementedError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"{where} cannot be read as names ({reason}); make it text or numbers.") from None
    coded = strings.dictionary_encode()
    names = [name.encode() for name in coded.dictionary.to_pylist()]
    numbers = np.append(table.encode_strings(names), NONE) if names else np.full(1, NONE, np.int32)
    codes = np.asarray(coded.indices.fill_null(len(names)))
    empty = np.array([not name for name in names] + [True])
    return np.maximum(numbers[codes], NONE).astype(np.int32), empty[codes]


def _numbers(array: Any, name: str, column: str) -> npt.NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(array, pa.float64(), safe=False)
    except (pa.ArrowException, NotImplementedError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"{name}: column {column} is not all numbers ({reason}); name another (--rating).") from None
    return np.asarray(numbers.fill_null(np.nan), np.float64)
