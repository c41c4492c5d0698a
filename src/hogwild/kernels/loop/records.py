"""Changes of rows as they are sent between nodes: a record a row, of float32, bfloat16, 8 or 4 bits a cell.

A record has a row's weights, then what an update rule remembers of them. Either part, where its cells are counted in
steps, begins with the size of a step. Records are made, combined and taken over in one pass over the rows each; cells
are floats only while a row is in hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import inlined, kernel

FLOAT32, BFLOAT16, INT8, INT4 = range(4)
PROJECT, SUM, MEAN = range(3)
LARGEST = 2.9e38         # of a cell that can be rounded: with one step more it is still a float32
SMALLEST = 1e-30         # below this all cells of a part are 0, so that one over a step is a float32 too
_STEPS8, _STEPS4 = 127, 7  # on either side of 0
_SIZE = np.int32(0x7FFFFFFF)  # a float32 without its sign; what is not finite is larger than all that is
_MOST = np.float32(LARGEST).view(np.int32)
_INFINITE = np.uint16(0x7F80)


class Layout(NamedTuple):
    """Cells of a row that are sent. weights, others: how many are weights, and how many a rule's memory.

    columns: the place of each in a row; straight: they are the first ones.
    """

    weights: int
    others: int
    straight: bool
    columns: Any


class Records(NamedTuple):
    """Changes of rows in rising order of their numbers. step, first: number n is of the row (n - first) // step."""

    numbers: Any
    body: Any
    form: int
    first: int
    step: int


@inlined
def _part_form(form: int, cells: int, leading: bool) -> int:
    """How a part of a record is written. leading: weights, not a rule's memory, for which 4 bits are too few.

    A single cell is as short as the size of a step.
    """
    if form > BFLOAT16 and cells == 1:
        return FLOAT32
    return INT8 if form == INT4 and not leading else form


@inlined
def _part_bytes(form: int, cells: int, leading: bool) -> int:
    """Bytes of a part of a record."""
    how = _part_form(form, cells, leading)
    if cells == 0:
        return 0
    if how == FLOAT32:
        return 4 * cells
    if how == BFLOAT16:
        return 2 * cells
    return 4 + (cells if how == INT8 else (cells + 1) // 2)


@kernel
def record_bytes(form: int, leading: int, others: int) -> int:
    """Bytes of a record. leading: weights of a row; others: cells of a rule's memory."""
    return _part_bytes(form, leading, True) + _part_bytes(form, others, False)


# -- one part of a row ------------------------------------------------------------------------------------------------


@inlined
def _largest(values: Any) -> Any:
    """The size of the largest cell, as bits: what is not finite is larger than all that is."""
    sizes = values.view(np.int32)
    largest = np.int32(0)
    for k in range(len(values)):
        largest = max(largest, np.int32(sizes[k] & _SIZE))
    return largest


@inlined
def _write_halves(values: Any, body: Any) -> None:
    """The nearest bfloat16 of each cell, of two equally near the even one; cells become what is sent."""
    halves, bits = body.view(np.uint16), values.view(np.uint32)
    for k in range(len(values)):
        odd = np.uint32((bits[k] >> np.uint32(16)) & np.uint32(1))
        rounded = np.uint32(np.uint32(bits[k] + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000))
        halves[k] = np.uint16(rounded >> np.uint32(16))
        bits[k] = rounded


@inlined
def _write_steps8(values: Any, factor: Any, size: Any, body: Any) -> None:
    steps = body.view(np.int8)
    for k in range(len(values)):
        # What is cut off is rounded down: all these are above 0.
        step = np.int32(np.int32(values[k] * factor + np.float32(128.5)) - np.int32(128))
        steps[k] = np.int8(step)
        values[k] = np.float32(step) * size


@inlined
def _write_steps4(values: Any, factor: Any, size: Any, body: Any) -> None:
    """Two steps a byte, 8 more than they are.

    The low halves of the bytes are the first half of the cells, the high ones the second: so the loop is over cells
    that are side by side. Of an odd number of cells the last byte has 0 for the one that is not there.
    """
    low, high = values[: len(body)], values[len(body) :]
    for k in range(len(high)):
        small = np.int32(low[k] * factor + np.float32(8.5))
        large = np.int32(high[k] * factor + np.float32(8.5))
        body[k] = np.uint8(np.int32(small) | np.int32(large << np.int32(4)))
        low[k] = np.float32(np.int32(small - np.int32(8))) * size
        high[k] = np.float32(np.int32(large - np.int32(8))) * size
    for k in range(len(high), len(low)):
        small = np.int32(low[k] * factor + np.float32(8.5))
        body[k] = np.uint8(small)
        low[k] = np.float32(np.int32(small - np.int32(8))) * size


@inlined
def _write_part(values: Any, form: int, body: Any) -> bool:
    """Write cells, which become what is sent of them. False: one is not finite, or nearly so."""
    if form == FLOAT32:
        cells = body.view(np.float32)
        for k in range(len(values)):
            cells[k] = values[k]
        return True
    largest = _largest(values)
    if largest > _MOST:
        return False
    if form == BFLOAT16:
        _write_halves(values, body)
        return True
    head = body[:4]
    head.view(np.int32)[0] = largest
    size, most = head.view(np.float32)[0], np.float32(_STEPS8 if form == INT8 else _STEPS4)
    factor = np.float32(0)
    if size < np.float32(SMALLEST):
        size = np.float32(0)
    else:
        factor = most / size
        size = size / most
    head.view(np.float32)[0] = size
    if form == INT8:
        _write_steps8(values, factor, size, body[4:])
    else:
        _write_steps4(values, factor, size, body[4:])
    return True


@inlined
def _read_part(body: Any, form: int, values: Any) -> None:
    """Cells as they were sent."""
    if form == FLOAT32:
        cells = body.view(np.float32)
        for k in range(len(values)):
            values[k] = cells[k]
    elif form == BFLOAT16:
        halves, bits = body.view(np.uint16), values.view(np.uint32)
        for k in range(len(values)):
            bits[k] = np.uint32(halves[k]) << np.uint32(16)
    elif form == INT8:
        size, steps = body[:4].view(np.float32)[0], body[4:].view(np.int8)
        for k in range(len(values)):
            values[k] = np.float32(steps[k]) * size
    else:
        size, pairs = body[:4].view(np.float32)[0], body[4:]
        low, high = values[: len(pairs)], values[len(pairs) :]
        for k in range(len(high)):
            low[k] = np.float32(np.int32(np.int32(pairs[k] & np.uint8(15)) - np.int32(8))) * size
            high[k] = np.float32(np.int32(np.int32(pairs[k] >> np.uint8(4)) - np.int32(8))) * size
        for k in range(len(high), len(low)):
            low[k] = np.float32(np.int32(np.int32(pairs[k] & np.uint8(15)) - np.int32(8))) * size


@inlined
def _write_record(values: Any, layout: Any, form: int, body: Any) -> bool:
    """Write a record; cells become what is sent of them. False: one is not finite, or nearly so."""
    middle = _part_bytes(form, layout.weights, True)
    good = _write_part(values[: layout.weights], _part_form(form, layout.weights, True), body[:middle])
    if layout.others:
        last = _part_form(form, layout.others, False)
        good = _write_part(values[layout.weights : layout.weights + layout.others], last, body[middle:]) and good
    return good


@inlined
def _read_record(records: Any, place: int, size: int, layout: Any, values: Any) -> None:
    """The cells of a record."""
    form, body = records.form, records.body[place * size : (place + 1) * size]
    middle = _part_bytes(form, layout.weights, True)
    _read_part(body[:middle], _part_form(form, layout.weights, True), values[: layout.weights])
    if layout.others:
        last = _part_form(form, layout.others, False)
        _read_part(body[middle:], last, values[layout.weights : layout.weights + layout.others])


@inlined
def _sound_part(body: Any, form: int, cells: int) -> bool:
    if form == FLOAT32 or cells == 0:
        return True
    if form == BFLOAT16:
        halves, largest = body.view(np.uint16), np.uint16(0)
        for k in range(len(halves)):
            largest = max(largest, np.uint16(halves[k] & np.uint16(0x7FFF)))
        return largest < _INFINITE
    size = body[:4].view(np.float32)[0]
    return size >= 0 and size <= np.float32(LARGEST / (_STEPS8 if form == INT8 else _STEPS4))


@kernel
def sound_records(body: Any, count: int, layout: Any, form: int) -> bool:
    """Whether rounded cells of records are finite numbers, and steps not less than 0. float32 may be anything."""
    middle = _part_bytes(form, layout.weights, True)
    size = middle + _part_bytes(form, layout.others, False)
    for place in range(count):
        record = body[place * size : (place + 1) * size]
        if not _sound_part(record[:middle], _part_form(form, layout.weights, True), layout.weights):
            return False
        if not _sound_part(record[middle:], _part_form(form, layout.others, False), layout.others):
            return False
    return True


# -- tables and records -----------------------------------------------------------------------------------------------


@inlined
def _difference(common: Any, base: Any, layout: Any, values: Any) -> bool:
    """What differs in a row, of the cells that are sent; whether anything does."""
    different = np.int32(0)  # all bits are looked at: the loop has no exit, and takes many cells at a time
    if layout.straight:
        one, other = common.view(np.int32), base.view(np.int32)
        for c in range(layout.weights):
            different |= one[c] ^ other[c]
        if different:
            for c in range(layout.weights):
                values[c] = common[c] - base[c]
        return different != 0
    changed = False
    for k in range(layout.weights + layout.others):
        c = layout.columns[k]
        changed |= common[c] != base[c]
        values[k] = common[c] - base[c]
    return changed


@kernel
def take_records(
    common: Any, base: Any, bounds: Any, layout: Any, form: Any, naming: Any, out: Any, values: Any, flags: Any
) -> int:
    """Records of the rows between two bounds that differ from the base. Returns the row that cannot be sent, or -1.

    The base becomes what those who get the records know, and so does the table itself: what rounding leaves out is
    given up. naming: (first, step) of the numbers that rows have; number n goes to owner n % owners. out: for each
    owner numbers and records, and how many there are. flags: (every row, even one that has not changed; the table keeps
    what rounding leaves out, for the next time).
    """
    first, step = naming
    numbers, bodies, counts = out
    every, keeps = flags
    owners = len(counts)
    size = _part_bytes(form, layout.weights, True) + _part_bytes(form, layout.others, False)
    for row in range(bounds[0], bounds[1]):
        here, old = common[row], base[row]
        changed = _difference(here, old, layout, values)
        if not changed and not every:
            continue
        if not changed:
            for k in range(layout.weights + layout.others):
                values[k] = np.float32(0)
        number = first + step * row
        owner = number % owners
        count = counts[owner]
        numbers[owner, count] = number
        if not _write_record(values, layout, form, bodies[owner, count * size : (count + 1) * size]):
            return row
        counts[owner] = count + 1
        if layout.straight:
            for c in range(layout.weights):
                old[c] += values[c]
            if not keeps:
                for c in range(layout.weights):
                    here[c] = old[c]  # RACE(lost update): docs/races.md
        else:
            for k in range(layout.weights + layout.others):
                c = layout.columns[k]
                old[c] += values[k]
                if not keeps:
                    here[c] = old[c]
    return -1


@inlined
def _replace(here: Any, base: Any, change: Any, column: int, k: int) -> None:
    now, old = here[column], base[column]
    here[column] = now + change[k]  # RACE(lost update): docs/races.md
    # Where nothing is to be told yet both stay equal to the last bit.
    base[column] = now + change[k] if now == old else old + change[k]


@kernel
def settle_records(common: Any, base: Any, came: Any, made: Any, layout: Any, values: Any, other: Any) -> None:
    """Put what came of the changes of all in the place of those made here, also in the base."""
    came_size = _part_bytes(came.form, layout.weights, True) + _part_bytes(came.form, layout.others, False)
    made_size = _part_bytes(made.form, layout.weights, True) + _part_bytes(made.form, layout.others, False)
    cells = layout.weights + layout.others
    i, j = 0, 0
    while i < len(came.numbers) or j < len(made.numbers):
        number = made.numbers[j] if i == len(came.numbers) else came.numbers[i]
        if j < len(made.numbers):
            number = min(number, made.numbers[j])
        if i < len(came.numbers) and came.numbers[i] == number:
            _read_record(came, i, came_size, layout, values)
            i += 1
        else:
            for k in range(cells):
                values[k] = np.float32(0)
        if j < len(made.numbers) and made.numbers[j] == number:
            _read_record(made, j, made_size, layout, other)
            j += 1
            for k in range(cells):
                values[k] -= other[k]
        row = (number - came.first) // came.step
        here, old = common[row], base[row]
        if layout.straight:
            for c in range(cells):
                _replace(here, old, values, c, c)
        else:
            for k in range(cells):
                _replace(here, old, values, layout.columns[k], k)


# -- records of several nodes -----------------------------------------------------------------------------------------


@inlined
def _shares(one: Any, other: Any) -> tuple[Any, Any]:
    """What two rows are multiplied with, so that in their sum the direction that they have in common counts once."""
    common, square, other_square = np.float32(0), np.float32(0), np.float32(0)
    for k in range(len(one)):
        common += one[k] * other[k]
        square += one[k] * one[k]
        other_square += other[k] * other[k]
    half = np.float32(0.5) * common
    share = np.float32(1) - half / square if square > 0 else np.float32(1)
    other_share = np.float32(1) - half / other_square if other_square > 0 else np.float32(1)
    return share, other_share


@inlined
def _add(one: Any, other: Any, weights: int, project: bool) -> None:
    """Add a row to another. With `project` the direction that the weights of both have in common counts once."""
    share, other_share = np.float32(1), np.float32(1)
    if project:
        share, other_share = _shares(one[:weights], other[:weights])
    for k in range(weights):
        one[k] = share * one[k] + other_share * other[k]
    for k in range(weights, len(one)):
        one[k] += other[k]


@kernel
def combine_records(many: Any, places: Any, layout: Any, how: int, out: Any, rows: Any, there: Any) -> int:
    """Records of several nodes as those of one: how many, or -1 - n where row number n cannot be sent.

    many: numbers of all nodes, one after the other, and their records likewise. places: for each node where its
    numbers begin and end, where its records do, and their form. Nodes go by twos, then these by twos; one that has not
    changed a row has no part in it. rows, there: room for a row of each node.
    """
    numbers, bodies = many
    out_numbers, body, form = out
    size = _part_bytes(form, layout.weights, True) + _part_bytes(form, layout.others, False)
    nodes, cells, count = len(places), layout.weights + layout.others, 0
    while True:
        number = np.int64(-1)
        for node in range(nodes):
            if places[node, 0] < places[node, 1]:
                least = numbers[places[node, 0]]
                number = least if number < 0 else min(number, least)
        if number < 0:
            return count
        for node in range(nodes):
            there[node] = places[node, 0] < places[node, 1] and numbers[places[node, 0]] == number
            if there[node]:
                began, used = places[node, 2], places[node, 3]
                its = _part_bytes(used, layout.weights, True) + _part_bytes(used, layout.others, False)
                _read_record(Records(numbers, bodies[began : began + its], used, 0, 1), 0, its, layout, rows[node])
                places[node, 0] += 1
                places[node, 2] += its
        step = 1
        while step < nodes:
            for node in range(0, nodes - step, 2 * step):
                if there[node] and there[node + step]:
                    _add(rows[node, :cells], rows[node + step, :cells], layout.weights, how == PROJECT)
                elif there[node + step]:
                    there[node] = True
                    for k in range(cells):
                        rows[node, k] = rows[node + step, k]
            step *= 2
        if how == MEAN:
            for k in range(layout.weights):
                rows[0, k] /= np.float32(nodes)
        if not _write_record(rows[0], layout, form, body[count * size : (count + 1) * size]):
            return -1 - number
        out_numbers[count] = number
        count += 1
