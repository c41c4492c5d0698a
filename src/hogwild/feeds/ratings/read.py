"""Ratings from files: text a block at a time, Parquet and Arrow a few thousand rows at a time."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hogwild.arrays import Ids, number_of
from hogwild.config import RatingConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.blocks import Block, blocks_of, check_utf8, head_of, replaced_notes
from hogwild.feeds.io.source import READ_AHEAD, Bytes, Source
from hogwild.feeds.objects.read import Wanted, read_columns
from hogwild.feeds.objects.values import NUMBER, TEXT, WHOLE, fields_of, is_object, trouble
from hogwild.feeds.storage.words import Words
from hogwild.feeds.tables.columns import find_column, numbers_of
from hogwild.feeds.tables.frames import ArrowFile
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.parse import ratings as reading
from hogwild.kernels.parse.ratings import NONE, Layout
from hogwild.messages import counted, shown

# -- layout: lists or columns, what separates them, which is what -----------------------------------------------------

SEPARATORS = {"colons": reading.COLON, "tab": reading.TAB, "comma": reading.COMMA, "semicolon": reading.SEMICOLON,
              "space": reading.SPACE}  # fmt: skip
_SIGNS = {"colons": "::", "tab": "\t", "comma": ",", "semicolon": ";"}
_SNIFFED = 200  # lines that are looked at
_MOST_COLUMNS = 4       # columns that files of ratings have when blanks separate them: user, item, rating, time
_USERS = {"user", "userid", "uid", "userkey", "username", "customer", "customerid", "visitorid", "reviewerid"}
_ITEMS = {
    "item", "itemid", "iid", "movie", "movieid", "product", "productid", "asin", "parentasin", "book", "bookid", "isbn",
    "business", "businessid", "song", "songid", "track", "trackid", "artist", "artistid", "article", "articleid",
}  # fmt: skip
_RATINGS = {"rating", "ratings", "score", "stars", "overall", "bookrating"}
_TIMES = {"time", "timestamp", "date", "datetime", "ts", "unixreviewtime"}


Names = tuple[Sequence[str], Sequence[str]]


class Found(NamedTuple):
    """Columns of a file, or lists (layout None); skip: lines before the first rating."""

    layout: Layout | None
    skip: int = 0

    @property
    def implicit(self) -> bool:
        """Whether there are no ratings."""
        return self.layout is None or self.layout.rating == NONE


def split(line: str, separator: str) -> list[str]:
    """The fields of a line, as the compiled reader sees them."""
    if separator == "space":
        return line.split()
    if '"' in line and separator != "colons":
        with suppress(csv.Error):  # of a quote that does not end where its field does
            quoted = csv.reader([line.rstrip(" \r")], delimiter=_SIGNS[separator], skipinitialspace=True, strict=True)
            return [field.strip() for field in next(quoted)]
    return [field.strip().strip('"') for field in line.rstrip("\r").split(_SIGNS[separator])]


def find_layout(head: str, config: RatingConfig, name: str, with_ratings: bool) -> Found:
    """The layout of a file that begins so. name: what messages call it."""
    lines = [(k, line) for k, line in enumerate(head.split("\n")) if line.strip()][:_SNIFFED]
    if not lines:
        return Found(None)  # an empty file: no line will be read
    texts = [line for _, line in lines]
    separator = _separator(texts, config)
    if separator == "":
        return Found(None)
    split_lines = [split(line, separator) for line in texts]
    width = _usual_width(split_lines)[0]
    rows = [row for row in split_lines if len(row) == width]
    header = len(split_lines[0]) == width and _has_header(rows, config)
    names = tuple(rows[0]) if header else numbers_of(width)
    user, item, rating = choose_columns(names, rows[1:] if header else rows, config, name)
    if not with_ratings and config.rating in ("", "none"):
        rating = NONE
    return Found(Layout(SEPARATORS[separator], width, user, item, rating), lines[0][0] + 1 if header else 0)


def tells_layout(head: str, config: RatingConfig, given: Names) -> bool:
    """Whether first lines are enough to find the layout: they have columns, and it is clear whether one is a header.

    given: users and items of a model; a line with one of them is no header.
    """
    texts = [line for line in head.split("\n") if line.strip()][:_SNIFFED]
    separator = _separator(texts, config) if texts else ""
    rows = [split(line, separator or "space") for line in texts]
    if max(map(len, rows), default=0) < 2:
        return False
    first = rows[0]
    if not separator or len(rows) > 1 or len(first) < 3 or config.header != "auto" or _has_header(rows, config):
        return True
    return any(number_of(field) is not None for field in first) or first[0] in given[0] or first[1] in given[1]


def _separator(texts: Sequence[str], config: RatingConfig) -> str:
    """The name of the separator; empty for lists.

    It divides most lines into the same number of fields; those that it does not are errors that are told later.
    """
    if config.format == "lists":
        return ""
    if config.separator != "auto":
        return config.separator
    for name in SEPARATORS:
        rows = [split(line, name) for line in texts]
        width, share = _usual_width(rows)
        if width < 2 or share <= 0.5:
            continue
        lists = config.format == "auto" and name in ("space", "tab") and _are_lists(rows, width)
        return "" if lists else name
    return "space" if config.format == "ratings" else ""


def _usual_width(rows: Sequence[Sequence[str]]) -> tuple[int, float]:
    """The most common number of fields, and the share of lines that have it."""
    width, lines = Counter(map(len, rows)).most_common(1)[0]
    return width, lines / len(rows)


def _are_lists(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether lines with the same number of fields are rather lists of items than columns."""
    if sum(_plain(field) in _USERS | _ITEMS for field in rows[0]) > 1:
        return False
    if width > _MOST_COLUMNS:
        return True
    return width > 2 and not any(len(row) > 2 and number_of(row[2]) is not None for row in rows)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _has_header(rows: Sequence[Sequence[str]], config: RatingConfig) -> bool:
    if config.header != "auto":
        return config.header == "yes"
    first = rows[0]
    asked = {name for name in (config.user, config.item, config.rating) if name and not name.lstrip("+-").isdigit()}
    if asked & set(first):
        return True
    if any(number_of(field) is not None for field in first):
        return False
    if sum(_plain(field) in _USERS | _ITEMS | _RATINGS for field in first) > 1:
        return True
    return len(first) > 2 and len(rows) > 1 and number_of(first[2]) is None and number_of(rows[1][-1]) is not None


def choose_columns(
    names: Sequence[str], rows: Sequence[Sequence[str]], config: RatingConfig, where: str
) -> tuple[int, int, int]:
    """Which columns are the user, the item and the rating (NONE: there is none); rows: a few, to judge by."""
    if len(names) < 2:
        raise InputError(f"{where}: the first line has one column; ratings have a user and an item at least, with a"
                         " tab, a comma, `::` or a blank between them (--separator).")
    user = _one(config.user, names, _USERS, 0, ("--user", where))
    item = _one(config.item, names, _ITEMS, 1 if user != 1 else 0, ("--item", where))
    if config.rating == "none":
        rating = NONE
    elif config.rating:
        rating = _one(config.rating, names, _RATINGS, 2, ("--rating", where))
    else:
        rating = _rating(names, rows, (user, item))
    if len({user, item, rating}) < 3:
        raise ConfigError(f"{where}: one column cannot be two of user, item and rating; name each (--user, --item).")
    return user, item, rating


def _one(wanted: str, names: Sequence[str], usual: set[str], otherwise: int, told: tuple[str, str]) -> int:
    if wanted:
        return list(names).index(find_column(wanted, list(names), *told))
    return next((k for k, name in enumerate(names) if _plain(name) in usual), otherwise)


def _rating(names: Sequence[str], rows: Sequence[Sequence[str]], others: tuple[int, int]) -> int:
    named = [k for k, name in enumerate(names) if _plain(name) in _RATINGS]
    if named:
        return named[0]
    free = [k for k in range(len(names)) if k not in others]
    if not free or _plain(names[free[0]]) in _TIMES:
        return NONE
    numeric = any(len(row) > free[0] and number_of(row[free[0]]) is not None for row in rows)
    return free[0] if numeric or not rows else NONE


# -- reading ----------------------------------------------------------------------------------------------------------

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

    def __init__(self, config: RatingConfig, given: Names | None) -> None:
        self.config = config
        self.bad = BadLines(config)
        self.users, self.items = (_table(given[k] if given else None) for k in (0, 1))
        self.closed = given is not None
        self.parts: list[Encoded] = []
        self.layouts: list[str] = []
        self.rated = 0
        self.blank = self.bare = self.replaced = 0

    def read(self, source: Source, with_ratings: bool) -> Found | None:
        """Read one file; returns its layout, None of Parquet, Arrow and JSON lines."""
        form = self.config.format
        if form in ("auto", "parquet", "arrow"):
            magic = source.head(8)
            kind = "parquet" if magic.startswith(b"PAR1") else "arrow" if magic.startswith(b"ARROW1") else ""
            if kind or form != "auto":
                self._read_arrow(source, kind or form, with_ratings)
                return None
        head = head_of(source, self.config.invalid_utf8 == "replace")
        if form == "jsonl" or (form == "auto" and is_object(head.lstrip().encode()[:1000])):
            self._read_objects(source, head, with_ratings)
            return None
        found = find_layout(head, self.config, source.name, with_ratings)
        self.rated += not found.implicit
        self.layouts.append(_told(found))
        self.read_text(source, found)
        return found

    def read_text(self, source: Source, found: Found) -> None:
        """Read a file of text that is laid out so."""
        for block in blocks_of(source, 0, found.skip):
            text, replaced = check_utf8(block, self.config.invalid_utf8 == "replace")
            self.replaced += replaced
            self._read_block(block._replace(text=text), found.layout)

    # -- text -------------------------------------------------------------------------------------------------------

    def _read_block(self, block: Block, layout: Layout | None) -> None:
        data = block.text.tobytes() + bytes(READ_AHEAD)
        text = np.frombuffer(data, np.uint8)
        lines = int(np.count_nonzero(block.text == 10))
        room = lines if layout is not None else len(block.text) // 2 + 1
        out = reading.Columns(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.float32))
        state = np.zeros(8, np.int64)
        first = text.ctypes.data
        at = 0
        while at < len(block.text):
            stopped, problem = self._read_text(text[at:], layout, out, state)
            if problem == reading.GOOD:
                break
            assert layout is not None
            start, stop = stopped - first, data.index(b"\n", stopped - first)
            line, at = data[start:stop].decode(errors="replace"), stop + 1
            if problem == reading.DOUBLED:  # "the ""best"" one": the names are not text that stands there
                fields = split(line, _NAMES[layout.separator])
                plain = np.frombuffer(chr(reading.UNIT).join(fields).encode() + b"\n" + bytes(READ_AHEAD), np.uint8)
                _, problem = self._read_text(plain, layout._replace(separator=reading.UNIT), out, state)
            if problem != reading.GOOD:
                place = block.source.place(block.line + int(state[reading.LINES]))
                told = f"{place}: {_problem(problem, line, layout, int(state[reading.FIELD]))}"
                self.bad.report(told, *_remedy(problem, layout))
                state[reading.LINES] += 1
        rows = int(state[reading.ROWS])
        self.bad.seen(int(state[reading.LINES]))
        self.blank += int(state[reading.BLANK])
        self.bare += int(state[reading.BARE])
        self.parts.append(Encoded(out.users[:rows].copy(), out.items[:rows].copy(), out.values[:rows].copy()))

    def _read_text(self, text: Bytes, layout: Layout | None, out: Any, state: Any) -> tuple[int, int]:
        """Read up to a line that cannot be read; returns where that begins, and what is the matter."""
        at, end = text.ctypes.data, text.ctypes.data + len(text) - READ_AHEAD
        while True:
            tables = reading.Tables(self.users.table, self.items.table)
            if layout is None:
                at, problem = ready(reading.read_lists, len(text))(at, end, tables, out, state)
            else:
                at, problem = ready(reading.read_columns, len(text))(at, end, layout, tables, out, state)
            if problem not in (reading.USERS_FULL, reading.ITEMS_FULL):
                return at, problem
            size = int(np.argmax(text[at - text.ctypes.data :] == 10))
            (self.users if problem == reading.USERS_FULL else self.items).make_room(size)

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
            self._take(source, frame.lines, {name: frame.arrays[name] for name in chosen})

    def _take(self, source: Source, lines: npt.NDArray[Any], columns: Mapping[str, Any]) -> None:
        """Rows by their columns: user, item and, if there is one, rating."""
        names, arrays = list(columns), list(columns.values())
        good = np.ones(len(lines), bool)
        sides = []
        for table, array, what in ((self.users, arrays[0], "user"), (self.items, arrays[1], "item")):
            ids, missing = _encode(table, array, f"{source.name}: column {what}")
            self._report(source, lines, good & missing, f"there is no {what}")
            good &= ~missing
            sides.append(ids)
        values = np.ones(len(lines), np.float32)
        if len(arrays) > 2:
            numbers = _numbers(arrays[2], source.name, names[2])
            with np.errstate(over="ignore"):
                values = numbers.astype(np.float32)
            odd = ~np.isfinite(values)
            self._report(source, lines, good & odd, "the rating is missing or not a finite number")
            good &= ~odd
        self.bad.seen(len(lines))
        self.parts.append(Encoded(sides[0][good], sides[1][good], values[good]))

    # -- JSON lines -------------------------------------------------------------------------------------------------

    def _read_objects(self, source: Source, head: str, with_ratings: bool) -> None:
        """A file of which each line is an object with a user, an item and perhaps a rating."""
        lines = [(k, line) for k, line in enumerate(head.split("\n"), 1) if line.strip()][:_SNIFFED]
        fields, objects = fields_of(iter(lines), frozenset())
        if lines and not objects:
            raise InputError(f"{source.place(lines[0][0])}: not one of the first lines is a JSON object; write one a"
                             " line, as `jq -c` does.")  # fmt: skip
        if not fields:
            return
        names = tuple(fields)
        numeric = [["0" if fields[name].kind in (NUMBER, WHOLE) else "x" for name in names]]
        user, item, rating = choose_columns(names, numeric, self.config, source.name)
        if not with_ratings and self.config.rating in ("", "none"):
            rating = NONE
        self.rated += rating != NONE
        chosen = [names[k] for k in (user, item, rating) if k != NONE]
        self.layouts.append(f"fields {', '.join(map(shown, chosen))}")
        for name in chosen:
            if why := trouble(name, fields[name], source.name):
                raise InputError(f"{source.name}: field `{shown(name)}` {why}.")
        kinds = {name: fields[name].kind if fields[name].kind in (WHOLE, NUMBER) else TEXT for name in chosen[:2]}
        wanted = Wanted({**kinds, **dict.fromkeys(chosen[2:], NUMBER)}, frozenset())
        for block in blocks_of(source, 0, 0):
            text, replaced = check_utf8(block, self.config.invalid_utf8 == "replace")
            self.replaced += replaced
            found = read_columns(text, wanted)
            for line, problem in found.wrong.items():
                told = f"{source.place(block.line + line)}: {problem}"
                self.bad.report(told, "Correct it, or skip such rows with --bad-lines skip.")
            self.bad.seen(len(found.wrong))
            self._take(source, found.lines + block.line, {name: found.arrays[name] for name in chosen})

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
        return [*notes, *replaced_notes(self.replaced), *self.bad.notes()]


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


def _remedy(problem: int, layout: Layout) -> Iterator[str]:
    """What to do about a line, where it is not only to correct it."""
    if problem == reading.FIELDS and layout.separator in (reading.SPACE, reading.TAB):
        yield "Correct the line, skip such lines with --bad-lines skip, or read lists of items by --format lists."


def _encode(table: Words, array: Any, where: str) -> tuple[Ids, npt.NDArray[np.bool_]]:
    """Numbers of the names in a column, and which are missing or empty."""
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
    try:
        numbers = pc.cast(array, pa.float64(), safe=False)
    except (pa.ArrowException, NotImplementedError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"{name}: column {column} is not all numbers ({reason}); name another (--rating).") from None
    return np.asarray(numbers.fill_null(np.nan), np.float64)
