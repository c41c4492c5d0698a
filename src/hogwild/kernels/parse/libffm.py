"""libffm text to arrays: `label field:id:value …`, one row a line."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.bytes import byte_at
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.parse import lines
from hogwild.kernels.parse.numbers import AMBIGUOUS, GOOD, MALFORMED, NEWLINE, read_number, skip_blanks
from hogwild.kernels.parse.slots import OF_TARGETS, OF_VALUES, TOO_LARGE, note_hard, read_key

# What can be wrong with a line.
FINE, LABEL, NO_LABEL, ENTRY, FIELD, ID_TOO_LARGE, VALUE = range(7)

_COLON = 58
_MOST_FIELDS = np.uint64(2**16)


class Libffm(NamedTuple):
    """The format, with the largest id. Without a label, a line begins with an entry."""

    limit: np.uint64


@lines.parse_row.of(Libffm)
def _parse_row(form: Any, at: int, end: int, start: int, out: Any, unlabelled: bool) -> Any:
    counts = out.counts
    row, first, first_hard = counts[lines.ROWS], counts[lines.ENTRIES], counts[lines.HARD]
    entry, hard, valued = first, first_hard, counts[lines.VALUED]
    bare = 0
    after, label, status = read_number(at, end)
    if status == MALFORMED or not lines.ends_token(byte_at(after)):
        if byte_at(after) != _COLON:
            return at, LABEL, 0
        if not unlabelled:
            return at, NO_LABEL, 0
        after, label, status = at, np.float32(0), GOOD
        bare = 1
    if not np.isfinite(label):
        return at, LABEL, 0
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
            return at, (FIELD if after == TOO_LARGE else ENTRY), 0
        if field >= _MOST_FIELDS:
            return at, FIELD, 0
        after, key = read_key(after + 1, end)
        if after == TOO_LARGE or (after > 0 and key > form.limit):
            return at, ID_TOO_LARGE, 0
        if after < 0 or byte_at(after) != _COLON:
            return at, ENTRY, 0
        place = after + 1
        after, value, status = read_number(place, end)
        if status == MALFORMED or not lines.ends_token(byte_at(after)) or not np.isfinite(value):
            return at, VALUE, 0
        if status == AMBIGUOUS:
            note_hard(out.hard, hard, OF_VALUES, entry, place - start)
            hard += 1
        out.keys[entry] = key
        out.slots[entry] = field
        out.values[entry] = value
        valued |= value != np.float32(1)
        entry += 1
    counts[lines.ENTRIES], counts[lines.HARD], counts[lines.VALUED] = entry, hard, valued
    counts[lines.UNLABELLED] += bare
    counts[lines.UNSORTED] += 1 if sort_slots(out, first, entry, first_hard) else 0
    return at, FINE, 0


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
    for number in range(hard, out.counts[lines.HARD]):
        if out.hard[number, 0] == OF_VALUES:
            index = out.hard[number, 1]
            if index == source:
                out.hard[number, 1] = target
            elif index >= target and index < source:
                out.hard[number, 1] = index + 1
