"""Products of matrices tile by tile, with the sums of a tile in registers; and the cells of an LSTM.

A *strip* is 16 columns of a matrix, whose rows lie some cells apart: a panel of a matrix is one strip or more, with all
its rows one after the other, so that a product walks through memory from its beginning to its end. As elsewhere here
a place is a number of cells from the beginning of an array, and nothing checks it. Each loop stands after the same in
plain Python.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba.core import cgutils

from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.simd.emit import LONG, VectorCode

STRIP = 16
UNITS = 16  # of an LSTM whose four gates stand together
PANEL = 4 * UNITS
WIDE = bool(llvm.get_host_cpu_features().get("avx512f"))
LANES = 16 if WIDE else 8
CODE = VectorCode(LANES)
_PARTS = STRIP // LANES


def _rows_at(array: Any, at: int, count: int, stride: int, width: int) -> Any:
    flat = array.reshape(-1)[at:]
    return np.lib.stride_tricks.as_strided(flat, (count, width), (stride * flat.itemsize, flat.itemsize))


# -- products -------------------------------------------------------------------------------------------------------


def _tile(rows: Any, strips: Any, keep: Any, count: Any, a: Any, at: Any, by_row: Any, by_step: Any, b: Any, place: Any, stride: Any, c: Any, to: Any, apart: Any) -> None:  # noqa: E501
    width = STRIP * len(strips)
    out = _rows_at(c, to, len(rows), apart, width)
    if not len(keep):
        out[:] = 0
    if count:
        flat = a.reshape(-1)[at:]
        steps = (by_row * flat.itemsize, by_step * flat.itemsize)
        left = np.lib.stride_tricks.as_strided(flat, (len(rows), count), steps)
        out += left @ _rows_at(b, place, count, stride, width)


@instruction(_tile)
def tile(b_: Any, rows: Any, strips: Any, keep: Any, count: Any, a: Any, at: Any, by_row: Any, by_step: Any, b: Any, place: Any, stride: Any, c: Any, to: Any, apart: Any) -> None:  # noqa: E501
    """Row r of c, at to + r apart, = (what it was, if `keep` is not empty, +) the sum over k < count of
    a[at + r by_row + k by_step] times row k of b, at place + k stride; as many rows and strips as the tuples have."""
    width = len(strips) * _PARTS
    sums = [CODE.make_sums(b_, width) for _ in rows]
    targets = [b_.add(to, b_.mul(LONG(r), apart)) for r in range(len(rows))]
    for target, totals in zip(targets, sums, strict=True):
        for vector, total in enumerate(totals):
            b_.store(CODE.load(b_, c, target, vector) if keep else CODE.zero, total)
    starts = [b_.add(at, b_.mul(LONG(r), by_row)) for r in range(len(rows))]
    with cgutils.for_range(b_, count) as loop:
        row = b_.add(place, b_.mul(loop.index, stride))
        # RACE(stale read): docs/races.md
        values = [CODE.load(b_, b, row, vector) for vector in range(width)]
        step = b_.mul(loop.index, by_step)
        for start, totals in zip(starts, sums, strict=True):
            factor = CODE.spread_at(b_, a, b_.add(start, step))
            for value, total in zip(values, totals, strict=True):
                CODE.add_product(b_, factor, value, total)
    for target, totals in zip(targets, sums, strict=True):
        for vector, total in enumerate(totals):
            CODE.store(b_, b_.load(total), c, target, vector)


def _stack(rows: Any, panels: Any, a: Any, at: Any, by_panel: Any, b: Any, place: Any, c: Any, to: Any, apart: Any) -> None:  # noqa: E501
    out = _rows_at(c, to, len(rows), apart, STRIP)
    for panel in range(panels):
        strip = b[place + panel * PANEL * STRIP : place + (panel + 1) * PANEL * STRIP].reshape(PANEL, STRIP)
        out += _rows_at(a, at + panel * by_panel, len(rows), PANEL, PANEL) @ strip


@instruction(_stack)
def stack(b_: Any, rows: Any, panels: Any, a: Any, at: Any, by_panel: Any, b: Any, place: Any, c: Any, to: Any, apart: Any) -> None:  # noqa: E501
    """Row r of c, a strip at to + r apart, += row r of the panels of a, the first at `at` and the next `by_panel` cells
    later, times a strip of b with a row for each column of all panels."""
    sums = [CODE.make_sums(b_, _PARTS) for _ in rows]
    targets = [b_.add(to, b_.mul(LONG(r), apart)) for r in range(len(rows))]
    for target, totals in zip(targets, sums, strict=True):
        for vector, total in enumerate(totals):
            b_.store(CODE.load(b_, c, target, vector), total)
    with cgutils.for_range(b_, panels) as outer:
        start = b_.add(at, b_.mul(outer.index, by_panel))
        first = b_.add(place, b_.mul(outer.index, LONG(PANEL * STRIP)))
        with cgutils.for_range(b_, LONG(PANEL)) as loop:
            row = b_.add(first, b_.mul(loop.index, LONG(STRIP)))
            values = [CODE.load(b_, b, row, vector) for vector in range(_PARTS)]
            for r, totals in enumerate(sums):
                factor = CODE.spread_at(b_, a, b_.add(b_.add(start, LONG(r * PANEL)), loop.index))
                for value, total in zip(values, totals, strict=True):
                    CODE.add_product(b_, factor, value, total)
    for target, totals in zip(targets, sums, strict=True):
        for vector, total in enumerate(totals):
            CODE.store(b_, b_.load(total), c, target, vector)


def _dots(rows: Any, columns: Any, panels: Any, a: Any, at: Any, by_row: Any, by_panel: Any, b: Any, place: Any, stride: Any, step: Any, c: Any, to: Any, apart: Any) -> None:  # noqa: E501
    out = _rows_at(c, to, len(rows), apart, len(columns))
    for panel in range(panels):
        left = _rows_at(a, at + panel * by_panel, len(rows), by_row, PANEL)
        right = _rows_at(b, place + panel * step, len(columns), stride, PANEL)
        out += left @ right.T


@instruction(_dots)
def dots(b_: Any, rows: Any, columns: Any, panels: Any, a: Any, at: Any, by_row: Any, by_panel: Any, b: Any, place: Any, stride: Any, step: Any, c: Any, to: Any, apart: Any) -> None:  # noqa: E501
    """c[to + r apart + k] += the product of row r of a and row k of b, both of `panels` times 64 numbers: of a at
    at + r by_row, of b at place + k stride, and from panel to panel by_panel and step cells later."""
    sums = [CODE.make_sums(b_, len(columns)) for _ in rows]
    for totals in sums:
        CODE.clear(b_, totals)
    lefts = [b_.add(at, b_.mul(LONG(r), by_row)) for r in range(len(rows))]
    rights = [b_.add(place, b_.mul(LONG(k), stride)) for k in range(len(columns))]
    with cgutils.for_range(b_, panels) as loop:
        left, right = b_.mul(loop.index, by_panel), b_.mul(loop.index, step)
        for vector in range(PANEL // LANES):
            # RACE(stale read): docs/races.md
            others = [CODE.load(b_, b, b_.add(start, right), vector) for start in rights]
            for start, totals in zip(lefts, sums, strict=True):
                mine = CODE.load(b_, a, b_.add(start, left), vector)
                for other, total in zip(others, totals, strict=True):
                    CODE.add_product(b_, mine, other, total)
    for r, totals in enumerate(sums):
        for k, total in enumerate(totals):
            cell = b_.gep(c, [b_.add(b_.add(to, b_.mul(LONG(r), apart)), LONG(k))])
            b_.store(b_.fadd(b_.load(cell), CODE.sum(b_, b_.load(total))), cell)


# -- the cells of an LSTM -------------------------------------------------------------------------------------------
# Gates of 16 units stand together: input, forget, candidate, output, 16 numbers each. With their sums a, and the cell c
# of the token before: i, f, o = 1 / (1 + exp(-a)), g = tanh(a), c = f c_before + i g, h = o tanh(c).


def _logistic(b_: Any, x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    minus = b_.fsub(CODE.zero, x)
    rest = CODE.exp_of_less(b_, CODE.select(b_, "<", x, CODE.zero, x, minus))
    above = b_.fdiv(CODE.each(1), b_.fadd(CODE.each(1), rest))
    return CODE.select(b_, "<", x, CODE.zero, b_.fmul(rest, above), above)


def _tanh(b_: Any, x: Any) -> Any:
    twice = b_.fadd(x, x)
    rest = CODE.exp_of_less(b_, CODE.select(b_, "<", x, CODE.zero, twice, b_.fsub(CODE.zero, twice)))
    size = b_.fdiv(b_.fsub(CODE.each(1), rest), b_.fadd(CODE.each(1), rest))
    return CODE.select(b_, "<", x, CODE.zero, b_.fsub(CODE.zero, size), size)


def _plain_logistic(x: Any) -> Any:
    rest = np.exp(-np.abs(x))
    return np.where(x < 0, rest, np.ones_like(rest)) / (1 + rest)


def _open_cells(panels: Any, gates: Any, at: Any, by_panel: Any, floats: Any, before: Any, cell: Any, curved: Any, out: Any) -> None:  # noqa: E501
    for panel in range(panels):
        own = gates[at + panel * by_panel : at + panel * by_panel + PANEL].reshape(4, UNITS)
        places = (slice(place + panel * UNITS, place + (panel + 1) * UNITS) for place in (before, cell, curved, out))
        before_, cell_, curved_, out_ = places
        own[[0, 1, 3]] = _plain_logistic(own[[0, 1, 3]])
        own[2] = np.tanh(own[2])
        floats[cell_] = own[1] * floats[before_] + own[0] * own[2]
        floats[curved_] = np.tanh(floats[cell_])
        floats[out_] = own[3] * floats[curved_]


@instruction(_open_cells)
def open_cells(b_: Any, panels: Any, gates: Any, at: Any, by_panel: Any, floats: Any, before: Any, cell: Any, curved: Any, out: Any) -> None:  # noqa: E501
    """Turn the sums of the gates of one token into gates, in place; its cells from those at `before`, their tanh to
    `curved`, what it gives to `out`."""
    with cgutils.for_range(b_, panels) as loop:
        own, unit = b_.add(at, b_.mul(loop.index, by_panel)), b_.mul(loop.index, LONG(UNITS))
        for part in range(_PARTS):
            sums = [CODE.load(b_, gates, own, gate * _PARTS + part) for gate in range(4)]
            i, f, g, o = (_tanh(b_, x) if gate == 2 else _logistic(b_, x) for gate, x in enumerate(sums))
            for gate, value in enumerate((i, f, g, o)):
                CODE.store(b_, value, gates, own, gate * _PARTS + part)
            was = CODE.load(b_, floats, b_.add(before, unit), part)
            c = CODE.multiply_add(b_, f, was, b_.fmul(i, g))
            bent = _tanh(b_, c)
            CODE.store(b_, c, floats, b_.add(cell, unit), part)
            CODE.store(b_, bent, floats, b_.add(curved, unit), part)
            CODE.store(b_, b_.fmul(o, bent), floats, b_.add(out, unit), part)


def _close_cells(panels: Any, gates: Any, at: Any, by_panel: Any, floats: Any, before: Any, curved: Any, slope: Any, carried: Any) -> None:  # noqa: E501
    for panel in range(panels):
        first = at + panel * by_panel
        own = gates[first : first + PANEL].reshape(4, UNITS)
        unit = panel * UNITS
        was, bent, dh, dc = (floats[place + unit : place + unit + UNITS] for place in (before, curved, slope, carried))
        i, f, g, o = own.copy()
        cell = dc + dh * o * (1 - bent * bent)
        own[0], own[1] = cell * g * i * (1 - i), cell * was * f * (1 - f)
        own[2], own[3] = cell * i * (1 - g * g), dh * bent * o * (1 - o)
        dc[:] = cell * f


@instruction(_close_cells)
def close_cells(b_: Any, panels: Any, gates: Any, at: Any, by_panel: Any, floats: Any, before: Any, curved: Any, slope: Any, carried: Any) -> None:  # noqa: E501
    """The way back: gates become the derivatives in their sums. slope: those in what the token gives; carried: those in
    its cells by way of the token after it, which become those in the cells before it."""
    one = CODE.each(1)

    def bell(x: Any) -> Any:
        return b_.fmul(x, b_.fsub(one, x))

    with cgutils.for_range(b_, panels) as loop:
        own, unit = b_.add(at, b_.mul(loop.index, by_panel)), b_.mul(loop.index, LONG(UNITS))
        for part in range(_PARTS):
            i, f, g, o = (CODE.load(b_, gates, own, gate * _PARTS + part) for gate in range(4))
            was, bent, dh, dc = (
                CODE.load(b_, floats, b_.add(place, unit), part) for place in (before, curved, slope, carried)
            )
            cell = CODE.multiply_add(b_, b_.fmul(dh, o), b_.fsub(one, b_.fmul(bent, bent)), dc)
            slopes = (
                b_.fmul(b_.fmul(cell, g), bell(i)), b_.fmul(b_.fmul(cell, was), bell(f)),
                b_.fmul(b_.fmul(cell, i), b_.fsub(one, b_.fmul(g, g))), b_.fmul(b_.fmul(dh, bent), bell(o)),
            )  # fmt: skip
            for gate, value in enumerate(slopes):
                CODE.store(b_, value, gates, own, gate * _PARTS + part)
            CODE.store(b_, b_.fmul(cell, f), floats, b_.add(carried, unit), part)
