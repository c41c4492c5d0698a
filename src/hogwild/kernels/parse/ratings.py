"""Ratings from text: lines of columns, or a user and all items a line; names to numbers as they come.

Text is given by addresses (see kernels/parse/numbers.py); it ends with a newline, after which eight bytes may be read.
A kernel that meets a line it cannot read, or a full table, returns where that line begins; the caller reports it, or
gives it a larger table, and goes on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats, Ids
from hogwild.kernels.compiler.bytes import byte_at
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.ids.words import CLOSED, WordTable, find, has_room, insert, key_of
from hogwild.kernels.parse.numbers import MALFORMED, read_number

# What became of the text so far; GOOD: all is read.
GOOD, USERS_FULL, ITEMS_FULL, FIELDS, QUOTES, NO_USER, NO_ITEM, NO_NUMBER, NOT_FINITE, DOUBLED = range(10)
ROWS, LINES, BLANK, BARE, FIELD = range(5)  # places in `state`; BARE: users without items; FIELD: fields of a bad line
# Separators; SPACE: blanks and tabs, COLON: two of them, UNIT: for lines whose quotes are taken out already.
TAB, COMMA, SEMICOLON, SPACE, COLON, UNIT = 9, 44, 59, 32, 58, 31
NONE = -1

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
_FULL = -3  # in place of an id: there is no room for one
_END, _MORE, _BAD, _DOUBLED = 0, 1, 2, 3


class Layout(NamedTuple):
    """What separates columns, how many there are, and which is what; rating = NONE: there is none."""

    separator: int
    fields: int
    user: int
    item: int
    rating: int


class Tables(NamedTuple):
    """Names of users and of items."""

    users: WordTable
    items: WordTable


class Columns(NamedTuple):
    """Where ratings go. There must be room for all that the text can hold."""

    users: Ids
    items: Ids
    values: Floats


@kernel
def _number_of(table: Any, at: int, length: int) -> int:
    """The number of a name; a new one gets the next, unless the table is closed."""
    key = key_of(at, length)
    ident, slot = find(table.slots, table.blob, table.starts, at, length, key)
    if ident >= 0 or table.state[CLOSED] != 0:
        return max(ident, NONE)
    return insert(table, slot, at, length, key) if has_room(table, length) else _FULL


@kernel
def _is_space(byte: int) -> bool:
    return byte in (SPACE, _RETURN)


@kernel
def _quoted(at: int, separator: int) -> Any:
    """As `_field`, for one that begins with a quote: it ends at the next one. Two of them are a quote in the field,
    which is then not text that stands here: the caller is told."""
    stop = at + 1
    while byte_at(stop) != _QUOTE:
        if byte_at(stop) == _NEWLINE:
            return at, at, stop, _BAD
        stop += 1
    after = stop + 1
    if byte_at(after) == _QUOTE:
        return at, at, after, _DOUBLED
    while _is_space(byte_at(after)):
        after += 1
    if byte_at(after) == separator:
        return at + 1, stop, after + 1, _MORE
    return at + 1, stop, after, _END if byte_at(after) == _NEWLINE else _BAD


@kernel
def _field(at: int, separator: int) -> Any:
    """Where a field begins and ends without the blanks around it, where the next one or the end of the line is, and
    which of these it is."""
    while _is_space(byte_at(at)):
        at += 1
    if byte_at(at) == _QUOTE and separator in (TAB, COMMA, SEMICOLON):
        return _quoted(at, separator)
    stop, step, more = at, 1, _MORE
    while True:
        byte = byte_at(stop)
        if byte == _NEWLINE:
            step, more = 0, _END
            break
        if byte == separator:
            if separator != COLON:
                break
            if byte_at(stop + 1) == COLON:
                step = 2
                break
        elif byte == TAB and separator == SPACE:
            break
        stop += 1
    last, after = stop, stop + step
    while last > at and _is_space(byte_at(last - 1)):
        last -= 1
    if separator == SPACE and more == _MORE:
        while _is_space(byte_at(after)) or byte_at(after) == TAB:
            after += 1
        if byte_at(after) == _NEWLINE:
            more = _END
    return at, last, after, more


@kernel
def read_columns(at: int, end: int, layout: Any, tables: Any, out: Any, state: Any) -> Any:
    """Read lines of columns; returns where the text goes on, and GOOD or why not further."""
    row = state[ROWS]
    while at < end:
        begin, fields, more, length = at, 0, _MORE, 0
        user = user_end = item = item_end = rating = rating_end = at
        while more == _MORE:
            first, last, at, more = _field(at, layout.separator)
            if more in (_BAD, _DOUBLED):
                state[ROWS] = row
                return begin, QUOTES if more == _BAD else DOUBLED
            if fields == layout.user:
                user, user_end = first, last
            elif fields == layout.item:
                item, item_end = first, last
            elif fields == layout.rating:
                rating, rating_end = first, last
            fields += 1
            length += last - first
        problem, value, ident, other = GOOD, np.float32(1), 0, 0
        if fields == 1 and length == 0:
            state[BLANK] += 1
            state[LINES] += 1
            at += 1
            continue
        if fields != layout.fields:
            problem = FIELDS
        elif user == user_end:
            problem = NO_USER
        elif item == item_end:
            problem = NO_ITEM
        elif layout.rating != NONE:
            stop, value, status = read_number(rating, end)
            if status == MALFORMED or stop != rating_end:
                problem = NO_NUMBER
            elif not np.isfinite(value):
                problem = NOT_FINITE
        if problem == GOOD:
            ident = _number_of(tables.users, user, user_end - user)
            other = _number_of(tables.items, item, item_end - item)
            problem = USERS_FULL if ident == _FULL else ITEMS_FULL if other == _FULL else GOOD
        if problem != GOOD:
            state[ROWS], state[FIELD] = row, fields
            return begin, problem
        out.users[row] = ident
        out.items[row] = other
        out.values[row] = value
        row += 1
        state[LINES] += 1
        at += 1
    state[ROWS] = row
    return at, GOOD


@kernel
def read_lists(at: int, end: int, tables: Any, out: Any, state: Any) -> Any:
    """As `read_columns`, for lines of a user and all items, with blanks between them."""
    while at < end:
        begin, more, user, row = at, _MORE, NONE, state[ROWS]
        fields = 0
        while more == _MORE:
            first, last, at, more = _field(at, SPACE)
            if last == first:
                continue  # blanks at the beginning or the end of the line
            if fields == 0:
                user = _number_of(tables.users, first, last - first)
                if user == _FULL:
                    return begin, USERS_FULL
            else:
                item = _number_of(tables.items, first, last - first)
                if item == _FULL:
                    return begin, ITEMS_FULL
                out.users[row] = user
                out.items[row] = item
                out.values[row] = np.float32(1)
                row += 1
            fields += 1
        state[BLANK] += fields == 0
        state[BARE] += fields == 1
        state[LINES] += 1
        state[ROWS] = row
        at += 1
    return at, GOOD
