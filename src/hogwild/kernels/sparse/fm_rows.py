"""Rows of a weight and factors, read and paid for: L2 with one rate for weights and one for factors, in two forms.

In time (FactorPenalty): all rows shrink at every visit, and a row pays for that when it is read. When touched
(TouchedPenalty): the loss of a sample has the squares of its own features' weights in it, which is one multiplication
where a weight moves, and nothing to remember.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import cgutils, types

from hogwild.arrays import Step
from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.compiler.jit import choice, inlined_choice, inner
from hogwild.kernels.optim.penalties import Free, Penalty, charge, owes, pace, stamps
from hogwild.kernels.optim.rules import counts_visits, stride
from hogwild.kernels.simd.emit import FLOAT, INT, LONG, VectorCode
from hogwild.kernels.simd.rules8 import EIGHT, add_eight, fade_eight, faded, fixes_of, read_eight, rounded


class FactorPenalty(NamedTuple):
    """As Penalty: `weight` for the first weight of a row, `factors` for the others, which know L2 only."""

    weight: Penalty
    factors: Penalty


class TouchedPenalty(NamedTuple):
    """A visit adds `weight` times itself to the gradient of the first weight of a row, `factors` times to others'."""

    weight: np.float32
    factors: np.float32


class Reader(NamedTuple):
    """Reads rows as they stand at a time, in the place of a Step; pays for none."""

    elapsed: np.float32


stamps.of(FactorPenalty)(lambda penalty: 1)
stamps.of(TouchedPenalty)(lambda penalty: 0)
charge.of(TouchedPenalty)(lambda penalty, rule, table, base, width, stamp_cell, elapsed: None)


@choice
def drags(penalty: Any) -> Any:
    """What a touch adds to the gradients of the first weight of a row and of the others, times themselves: for each of
    the two one number, or none. A tuple of none costs nothing."""


drags.of(Free, FactorPenalty)(lambda penalty: ((), ()))
drags.of(TouchedPenalty)(lambda penalty: ((penalty.weight,), (penalty.factors,)))


@inner
def dragged(drag: Any, gradient: Any, weight: Any) -> Any:
    """The gradient of one weight with what a touch adds to it."""
    return gradient + drag[0] * weight if len(drag) else gradient


@choice
def pays(reader: Any, row: Any) -> Any:
    """Whether who reads a row is to pay its penalty."""


pays.of(Step)(lambda reader, row: owes(reader, row))  # noqa: PLW0108  # a function that is not compiled yet
pays.of(Reader)(lambda reader, row: False)


@inner
def _visits(rule: Any, table: Any, stamp_cell: int) -> Any:
    """How often a row was visited, where the rule counts that."""
    return table[stamp_cell - 1] if counts_visits(rule) == 1 else np.float32(0)


@charge.of(FactorPenalty)
def _charge(penalty: Any, rule: Any, table: Any, base: int, width: int, stamp_cell: int, elapsed: Any) -> None:
    due = elapsed - table[stamp_cell]
    if due <= np.float32(0):
        return
    table[stamp_cell] = elapsed  # RACE(lost update): docs/races.md
    speed = pace(rule, table, base, width, stamp_cell - 1)
    table[base] = faded(table[base], due * speed * penalty.weight.l2)  # RACE(lost update): docs/races.md
    fixes = fixes_of(rule, _visits(rule, table, stamp_cell))
    whole = (width - 1) // EIGHT * EIGHT
    for c in range(1, 1 + whole, EIGHT):
        fade_eight(rule, table, base + c, width, due * penalty.factors.l2, fixes, np.float32(1), table, base + c)
    for c in range(1 + whole, width):
        speed = pace(rule, table, base + c, width, stamp_cell - 1)
        table[base + c] = faded(table[base + c], due * speed * penalty.factors.l2)  # RACE(lost update): docs/races.md


@inlined_choice
def read_row(penalty: Any, rule: Any, table: Any, row: Any, width: int, reader: Any, value: Any, floats: Any, place: int, sums: Any) -> Any:  # noqa: E501
    """The factors of a row, unpaid penalty deducted, times a value: to floats[place:], and added to those from where
    `sums` says: a tuple of one place, or of none.

    Where the reader is to pay for the row, it is paid for in the same pass. Returns the weight times the value.
    """


@inner
def shifted(places: Any, c: int) -> Any:
    """So many cells on from where a tuple of one place, or of none, says."""
    return (places[0] + c,) if len(places) else ()


@inner
def _read(table: Any, base: int, width: int, value: Any, floats: Any, place: int, sums: Any) -> Any:
    whole = (width - 1) // EIGHT * EIGHT
    for c in range(0, whole, EIGHT):
        read_eight(table, base + 1 + c, value, floats, place + c, shifted(sums, c))
    for c in range(whole, width - 1):
        floats[place + c] = value * table[base + 1 + c]  # RACE(stale read): docs/races.md
        if len(sums):
            floats[sums[0] + c] += floats[place + c]
    return value * table[base]  # RACE(stale read): docs/races.md


@read_row.of(Free, TouchedPenalty)
def _read_free(penalty: Any, rule: Any, table: Any, row: Any, width: int, reader: Any, value: Any, floats: Any, place: int, sums: Any) -> Any:  # noqa: E501
    return _read(table, row * stride(rule, penalty, width), width, value, floats, place, sums)


@read_row.of(FactorPenalty)
def _read_paid(penalty: Any, rule: Any, table: Any, row: Any, width: int, reader: Any, value: Any, floats: Any, place: int, sums: Any) -> Any:  # noqa: E501
    cells = stride(rule, penalty, width)
    base = row * cells
    last = base + cells - 1
    due = reader.elapsed - table[last]  # RACE(stale read): docs/races.md
    if due <= np.float32(0):
        return _read(table, base, width, value, floats, place, sums)
    mine = pays(reader, row)
    fixes = fixes_of(rule, _visits(rule, table, last))
    speed = pace(rule, table, base, width, last - 1)
    weight = rounded(faded(table[base], due * speed * penalty.weight.l2))  # RACE(stale read): docs/races.md
    whole = (width - 1) // EIGHT * EIGHT
    if mine:
        table[last] = reader.elapsed  # RACE(lost update): docs/races.md
        table[base] = weight  # RACE(lost update): docs/races.md
        for c in range(0, whole, EIGHT):
            cell = base + 1 + c
            fade_eight(rule, table, cell, width, due * penalty.factors.l2, fixes, np.float32(1), table, cell)
            read_eight(table, cell, value, floats, place + c, shifted(sums, c))
    else:
        for c in range(0, whole, EIGHT):
            fade_eight(rule, table, base + 1 + c, width, due * penalty.factors.l2, fixes, value, floats, place + c)
            if len(sums):
                add_eight(floats, sums[0] + c, place + c)
    for c in range(whole, width - 1):
        cell = base + 1 + c
        speed = pace(rule, table, cell, width, last - 1)
        factor = rounded(faded(table[cell], due * speed * penalty.factors.l2))
        if mine:
            table[cell] = factor  # RACE(lost update): docs/races.md
        floats[place + c] = value * factor
        if len(sums):
            floats[sums[0] + c] += floats[place + c]
    return value * weight


# -- Sums of factors by fields, a vector of factors at a time: as wide as the machine's vectors are -------------------
# `lanes` has as many entries as a vector of factors. A place is a number of cells from the beginning of an array, and
# nothing checks it. All of it is scratch of one worker.


_FAST = ("reassoc", "contract", "nsz")
_CHAINS = 4  # sums side by side: one alone would wait for itself at each addition; a power of two


def _field_gradients(lanes: Any, array: Any, to: int, sums: int, room: int, fields: int, factor: Any) -> None:
    dim = len(lanes)
    for g in range(fields):
        array[to + g * dim : to + (g + 1) * dim] = factor * array[sums + g * room : sums + g * room + dim]


@instruction(_field_gradients)
def field_gradients(b: Any, lanes: Any, array: Any, to: Any, sums: Any, room: Any, fields: Any, factor: Any) -> None:
    """For each field g, the vector at `to` + g dim becomes factor times that at `sums` + g room."""
    if lanes:
        code = VectorCode(len(lanes))
        factor = code.spread(b, factor)
        with cgutils.for_range(b, fields) as loop:
            value = code.load(b, array, b.add(sums, b.mul(loop.index, room)))
            code.store(b, b.fmul(value, factor), array, b.add(to, b.mul(loop.index, LONG(len(lanes)))))


def _dot_fields(lanes: Any, array: Any, room: int, fields: int) -> Any:
    dim = len(lanes)
    table = array[: fields * room].reshape(fields, room)[:, : fields * dim].reshape(fields, fields, dim)
    return np.float32(np.tril((table * table.transpose(1, 0, 2)).sum(axis=2), -1).sum())


@instruction(_dot_fields, types.float32)
def dot_fields(b: Any, lanes: Any, array: Any, room: Any, fields: Any) -> Any:
    """The sum over f and g < f of <s_fg, s_gf>, where s_fg is at f room + g dim."""
    dim, result = len(lanes), FLOAT(0)
    if not dim:
        return result
    code = VectorCode(dim)
    totals = code.make_sums(b, _CHAINS)
    code.clear(b, totals)
    with cgutils.for_range(b, fields) as outer:
        row, column = b.mul(outer.index, room), b.mul(outer.index, LONG(dim))

        def add(g: Any, total: Any) -> None:
            ours = code.load(b, array, b.add(row, b.mul(g, LONG(dim))))
            theirs = code.load(b, array, b.add(b.mul(g, room), column))
            code.add_product(b, ours, theirs, total)

        whole = b.and_(outer.index, LONG(-_CHAINS))
        with cgutils.for_range_slice(b, LONG(0), whole, LONG(_CHAINS)) as (g, _):
            for k, total in enumerate(totals):
                add(b.add(g, LONG(k)), total)
        with cgutils.for_range_slice(b, whole, outer.index, LONG(1)) as (g, _):
            add(g, totals[0])
    found = b.load(totals[0])
    for total in totals[1:]:
        found = b.fadd(found, b.load(total), flags=_FAST)
    for lane in range(dim):
        result = b.fadd(result, b.extract_element(found, INT(lane)), flags=_FAST)
    return result
