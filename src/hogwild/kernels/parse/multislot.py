"""MultiSlot text to arrays: for each slot of the description its number of values, then the values; one row a line."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Offsets
from hogwild.kernels.compiler.bytes import byte_at
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.parse import lines
from hogwild.kernels.parse.numbers import AMBIGUOUS, MALFORMED, NEWLINE, SPACE, read_number, skip_blanks
from hogwild.kernels.parse.slots import OF_DENSE, OF_TARGETS, OF_VALUES, TOO_LARGE, note_hard, read_key

# What a slot is.
UNUSED, IDS, DENSE, VALUES, CLICK, QUANTITY = range(6)

# What can be wrong with a line.
FINE, MISSING, COUNT, NEGATIVE, FEW, WIDTH, ID, ID_TOO_LARGE, NUMBER, LABEL, LABELS, PAIRS, MORE = range(13)

_MINUS = 45
_MANY = 10**12  # a count past this is the same as this


class Layout(NamedTuple):
    """The slots in the order of the file. kinds: what each is.

    places: of IDS its number among the slots of the samples, of DENSE its first column, of VALUES the slot that it
    belongs to, by its place in the file. widths: numbers of a DENSE one. columns: dense ones of all slots.
    """

    kinds: Offsets
    places: Offsets
    widths: Offsets
    columns: int


class MultiSlot(NamedTuple):
    """The format. spans: room for the first entry of each slot and the one after its last."""

    layout: Layout
    spans: Offsets


@lines.parse_row.of(MultiSlot)
def _parse_row(form: Any, at: int, end: int, start: int, out: Any, unlabelled: bool) -> Any:
    layout, spans = form.layout, form.spans
    kinds, places, widths, columns = layout.kinds, layout.places, layout.widths, layout.columns
    counts, keys, slots, values, dense = out.counts, out.keys, out.slots, out.values, out.dense
    row, entry, hard, valued = counts[lines.ROWS], counts[lines.ENTRIES], counts[lines.HARD], counts[lines.VALUED]
    last = len(kinds) - 1
    for slot in range(len(kinds)):
        at = skip_blanks(at)
        kind = kinds[slot]
        count = byte_at(at) - 48
        after = at + 1
        if count < 0 or count > 9 or byte_at(after) != SPACE:
            after, count, code = read_count(at, end)
            if code == MISSING and unlabelled and slot == last and kind >= CLICK:
                code = FINE
            if code != FINE:
                return at, code, slot
        if kind == IDS:
            spans[slot, 0] = entry
            for _ in range(count):
                at = skip_blanks(after)
                after, key = read_key(at, end)
                if after < 0:
                    return at, (ID_TOO_LARGE if after == TOO_LARGE else ID if byte_at(at) != NEWLINE else FEW), slot
                if not lines.ends_token(byte_at(after)):
                    return at, ID, slot
                keys[entry] = key
                slots[entry] = places[slot]
                if len(values) > 0:
                    values[entry] = np.float32(1)
                entry += 1
            spans[slot, 1] = entry
        elif kind == UNUSED:
            for _ in range(count):
                at = skip_blanks(after)
                if byte_at(at) == NEWLINE:
                    return at, FEW, slot
                after = lines.skip_token(at)
        else:
            target = 0
            if kind == DENSE:
                if count != widths[slot]:
                    return at, WIDTH, slot
                target = row * columns + places[slot]
            elif kind == VALUES:
                owner = places[slot]
                target = spans[owner, 0]
                if count != spans[owner, 1] - target:
                    return at, PAIRS, slot
            elif count != 1:
                if count > 1 or not unlabelled:
                    return at, LABELS, slot
                out.targets[row] = np.float32(0)
                counts[lines.UNLABELLED] += 1
            for k in range(count):
                at = skip_blanks(after)
                if byte_at(at) == NEWLINE:
                    return at, FEW, slot
                after, value, status = read_number(at, end)
                if status == MALFORMED or not lines.ends_token(byte_at(after)) or not np.isfinite(value):
                    return at, NUMBER, slot
                if kind == DENSE:
                    dense[target + k] = value
                elif kind == VALUES:
                    values[target + k] = value
                    valued |= value != np.float32(1)
                else:
                    if kind == CLICK and value != np.float32(0) and value != np.float32(1):
                        return at, LABEL, slot
                    out.targets[row] = value
                    target = row
                if status == AMBIGUOUS:
                    array = OF_DENSE if kind == DENSE else OF_VALUES if kind == VALUES else OF_TARGETS
                    note_hard(out.hard, hard, array, target + k, at - start)
                    hard += 1
        at = after
    at = skip_blanks(at)
    if byte_at(at) != NEWLINE:
        return at, MORE, last
    counts[lines.ENTRIES], counts[lines.HARD], counts[lines.VALUED] = entry, hard, valued
    return at, FINE, 0


@kernel
def read_count(at: int, end: int) -> Any:
    """Read the number of values of a slot where it is not one digit and a space: (address after it, number, code)."""
    first = byte_at(at)
    if first == NEWLINE:
        return at, 0, MISSING
    after, key = read_key(at, end)
    if first == _MINUS:
        after, key = read_key(at + 1, end)
        return at, 0, (COUNT if after == -1 or not lines.ends_token(byte_at(max(after, at))) else NEGATIVE)
    if after == TOO_LARGE:
        return at, 0, FEW
    if after < 0 or not lines.ends_token(byte_at(after)):
        return at, 0, COUNT
    return after, np.int64(min(key, np.uint64(_MANY))), FINE
