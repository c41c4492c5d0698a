"""libffm text to arrays: `label field:id:value …`, one row a line."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.bytes import byte_at
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.parse.numbers import AMBIGUOUS, GOOD, MALFORMED, NEWLINE, next_line, read_number, skip_blanks
from hogwild.kernels.parse.slots import (
    EMPTY,
    ENTRIES,
    HARD,
    LINES,
    OF_TARGETS,
    OF_VALUES,
    ROWS,
    TOO_LARGE,
    UNLABELLED,
    UNSORTED,
    VALUED,
    ends_token,
    note_error,
    note_hard,
    read_key,
)

# What can be wrong with a line.
FINE, LABEL, NO_LABEL, ENTRY, FIELD, ID_TOO_LARGE, VALUE = range(7)

_COLON = 58
_MOST_FIELDS = np.uint64(2**16)


@kernel
def parse_block(text: Any, out: Any, limit: Any, stop: bool, unlabelled: bool) -> None:
    """Parse lines of text that ends with a newline. Bad lines are left out; with `stop` the first one ends it.

    limit: the largest id. unlabelled: a line that begins with an entry is a row with label 0.
    """
    start: Any = np.int64(text.ctypes.data)
    end = start + len(text)
    at = start
    line = 0
    counts = out.counts
    while at < end:
        at = skip_blanks(at)
        if byte_at(at) == NEWLINE:
            counts[EMPTY] += 1
        else:
            first, hard = counts[ENTRIES], counts[HARD]
            at, code = parse_row(at, end, start, out, limit, unlabelled)
            if code == FINE:
                row = counts[ROWS]
                if sort_slots(out, first, counts[ENTRIES], hard):
                    counts[UNSORTED] += 1
                out.lengths[row] = counts[ENTRIES] - first
                out.lines[row] = line
                counts[ROWS] = row + 1
            else:
                note_error(out, code, at - start, line, 0)
                counts[ENTRIES], counts[HARD] = first, hard
                if stop:
                    break
        at = next_line(at)
        line += 1
    counts[LINES] = line


@kernel
def parse_row(at: int, end: int, start: int, out: Any, limit: Any, unlabelled: bool) -> Any:
    """Parse one line: (address of its end or of what is wrong, code)."""
    counts = out.counts
    row, entry, hard, valued = counts[ROWS], counts[ENTRIES], counts[HARD], counts[VALUED]
    bare = 0
    after, label, status = read_number(at, end)
    if status == MALFORMED or not ends_token(byte_at(after)):
        if byte_at(after) != _COLON:
            return at, LABEL
        if not unlabelled:
            return at, NO_LABEL
        after, label, status = at, np.float32(0), GOOD
        bare = 1
    if not np.isfinite(label):
        return at, LABEL
    if status == AMBIGUOUS:
        note_hard(out.hard, hard, OF_TARGETS, row, at - start)
        hard += 1
    out.targets[row] = label
    while True:
        at = skip_blanks(after)
        if byte_at(at) == NEWLINE:
            break
        after, field = read_key(at, end)
        if after == -1 or byte_at(max(after, at)) != _COLON:
            return at, (FIELD if after == TOO_LARGE else ENTRY)
        if field >= _MOST_FIELDS:
            return at, FIELD
        after, key = read_key(after + 1, end)
        if after == TOO_LARGE or (after > 0 and key > limit):
            return at, ID_TOO_LARGE
        if after < 0 or byte_at(after) != _COLON:
            return at, ENTRY
        place = after + 1
        after, value, status = read_number(place, end)
        if status == MALFORMED or not ends_token(byte_at(after)) or not np.isfinite(value):
            return at, VALUE
        if status == AMBIGUOUS:
            note_hard(out.hard, hard, OF_VALUES, entry, place - start)
            hard += 1
        out.keys[entry] = key
        out.slots[entry] = field
        out.values[entry] = value
        valued |= value != np.float32(1)
        entry += 1
    counts[ENTRIES], counts[HARD], counts[VALUED] = entry, hard, valued
    counts[UNLABELLED] += bare
    return at, FINE


@kernel
def sort_slots(out: Any, first: int, last: int, hard: int) -> bool:
    """Put the entries of a row into rising order of slots, equal ones as they stand; returns whether they were not."""
    slots, keys, values = out.slots, out.keys, out.values
    moved = False
    for k in range(first + 1, last):
        if slots[k - 1] <= slots[k]:
            continue
        moved = True
        slot, key, value = slots[k], keys[k], values[k]
        at = k
        while at > first and slots[at - 1] > slot:
            slots[at], keys[at], values[at] = slots[at - 1], keys[at - 1], values[at - 1]
            at -= 1
        slots[at], keys[at], values[at] = slot, key, value
        move_hard(out, hard, k, at)
    return moved


@kernel
def move_hard(out: Any, hard: int, source: int, target: int) -> None:
    """Tell hard values of a row that the entry `source` went to `target`, and those between one further."""
    for number in range(hard, out.counts[HARD]):
        if out.hard[number, 0] == OF_VALUES:
            index = out.hard[number, 1]
            if index == source:
                out.hard[number, 1] = target
            elif index >= target and index < source:
                out.hard[number, 1] = index + 1
