"""Products of matrices tile by tile, with the sums of a tile in registers; and the cells of an LSTM.

A *strip* is 16 columns of a matrix with all its rows one after the other: a cache line each, so that a product walks
through memory from its beginning to its end. What is multiplied are cells of one number or of two (pairs.py). As
elsewhere here a place is a number of cells from the beginning of an array, and nothing checks it. Each loop stands
after the same in plain Python.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba.core import cgutils

from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.simd.emit import LONG, VectorCode
from hogwild.kernels.simd.pairs import add_product, chains_for, numbers_of

STRIP = 16
GATES = 4  # of an LSTM: 16 units have four strips
WIDE = bool(llvm.get_host_cpu_features().get("avx512f"))
LANES = 16 if WIDE else 8
CODE = VectorCode(LANES)
_PARTS = STRIP // LANES


def _rows_at(array: Any, at: int, count: int, stride: int, width: int = STRIP) -> Any:
    flat = array.reshape(-1)[at:]
    return np.lib.stride_tricks.as_strided(flat, (count, width), (stride * flat.itemsize, flat.itemsize))


# -- products -------------------------------------------------------------------------------------------------------


def _tile(products: Any, rows: Any, strips: Any, keep: Any, count: Any, a: Any, at: Any, by_row: Any, by_step: Any, b: Any, place: Any, b_apart: Any, c: Any, to: Any, c_apart: Any) -> None:  # noqa: E501
    for strip in range(len(strips)):
        out = _rows_at(c, to + strip * c_apart, len(rows), STRIP)
        if not len(keep):
            out[:] = 0
        if count:
            flat = a.reshape(-1)[at:]
            steps = (by_row * flat.itemsize, by_step * flat.itemsize)
            left = np.lib.stride_tricks.as_strided(flat, (len(rows), count), steps)
            right = _rows_at(b, place + strip * b_apart, count, STRIP)
            out += numbers_of(products, left) @ numbers_of(products, right.T).T


@instruction(_tile)
def tile(b_: Any, products: Any, rows: Any, strips: Any, keep: Any, count: Any, a: Any, at: Any, by_row: Any, by_step: Any, b: Any, place: Any, b_apart: Any, c: Any, to: Any, c_apart: Any) -> None:  # noqa: E501
    """Row r of the strips of c, from `to` on, = (what it was, if `keep` is not empty, +) the sum over k < count of
    a[at + r by_row + k by_step] times row k of the strips of b, from `place` on; as many rows and strips as the tuples
    have. b_apart, c_apart: from strip to strip. Cells of a and b are what `products` says."""
    sums = [CODE.make_sums(b_, len(strips) * _PARTS) for _ in rows]
    targets = [b_.add(to, b_.mul(LONG(s), c_apart)) for s in range(len(strips))]
    for r, totals in enumerate(sums):
        for vector, total in enumerate(totals):
            strip, part = divmod(vector, _PARTS)
            held = CODE.load(b_, c, b_.add(targets[strip], LONG(r * STRIP)), part) if keep else CODE.zero
            b_.store(held, total)
    starts = [b_.add(at, b_.mul(LONG(r), by_row)) for r in range(len(rows))]
    firsts = [b_.add(place, b_.mul(LONG(s), b_apart)) for s in range(len(strips))]
    with cgutils.for_range(b_, count) as loop:
        row = b_.mul(loop.index, LONG(STRIP))
        # RACE(stale read): docs/races.md
        values = [CODE.load(b_, b, b_.add(first, row), part) for first in firsts for part in range(_PARTS)]
        step = b_.mul(loop.index, by_step)
        for start, totals in zip(starts, sums, strict=True):
            factor = CODE.spread_at(b_, a, b_.add(start, step))
            for value, total in zip(values, totals, strict=True):
                add_product(products, b_, CODE, factor, value, total)
    for r, totals in enumerate(sums):
        for vector, total in enumerate(totals):
            strip, part = divmod(vector, _PARTS)
            CODE.store(b_, b_.load(total), c, b_.add(targets[strip], LONG(r * STRIP)), part)


def _stack(products: Any, rows: Any, strips: Any, a: Any, at: Any, by_strip: Any, b: Any, place: Any, c: Any, to: Any, apart: Any) -> None:  # noqa: E501
    out = _rows_at(c, to, len(rows), apart)
    for strip in range(strips):
        block = b[place + strip * STRIP * STRIP : place + (strip + 1) * STRIP * STRIP].reshape(STRIP, STRIP)
        left = _rows_at(a, at + strip * by_strip, len(rows), STRIP)
        out += numbers_of(products, left) @ numbers_of(products, block.T).T


@instruction(_stack)
def stack(b_: Any, products: Any, rows: Any, strips: Any, a: Any, at: Any, by_strip: Any, b: Any, place: Any, c: Any, to: Any, apart: Any) -> None:  # noqa: E501
    """Row r of c, a strip at to + r apart, += row r of the strips of a, the first at `at` and the next `by_strip` cells
    later, times a strip of b with a row for each column of all of them."""
    chains = chains_for(products, len(rows))
    sums = [[CODE.make_sums(b_, _PARTS) for _ in range(chains)] for _ in rows]
    targets = [b_.add(to, b_.mul(LONG(r), apart)) for r in range(len(rows))]
    for target, (first, *others) in zip(targets, sums, strict=True):
        for vector, total in enumerate(first):
            b_.store(CODE.load(b_, c, target, vector), total)
        for totals in others:
            CODE.clear(b_, totals)
    with cgutils.for_range(b_, strips) as outer:
        start = b_.add(at, b_.mul(outer.index, by_strip))
        first = b_.add(place, b_.mul(outer.index, LONG(STRIP * STRIP)))
        for k in range(STRIP):
            values = [CODE.load(b_, b, b_.add(first, LONG(k * STRIP)), vector) for vector in range(_PARTS)]
            for r, own in enumerate(sums):
                factor = CODE.spread_at(b_, a, b_.add(start, LONG(r * STRIP + k)))
                for value, total in zip(values, own[k % chains], strict=True):
                    add_product(products, b_, CODE, factor, value, total)
    for target, own in zip(targets, sums, strict=True):
        for vector in range(_PARTS):
            total, *others = (b_.load(totals[vector]) for totals in own)
            for other in others:
                total = b_.fadd(total, other)
            CODE.store(b_, total, c, target, vector)


def _turn_block(a: Any, at: Any, b: Any, to: Any) -> None:
    _rows_at(b, to, STRIP, STRIP)[:] = _rows_at(a, at, STRIP, STRIP).T


@instruction(_turn_block)
def turn_block(b_: Any, a: Any, at: Any, b: Any, to: Any) -> None:
    """Turn 16 rows of a strip over: column k becomes row k."""
    # RACE(stale read): docs/races.md
    rows = [CODE.load(b_, a, b_.add(at, LONG(k * STRIP)), part) for part in range(_PARTS) for k in range(STRIP)]
    for part in range(_PARTS):
        for half in range(_PARTS):
            square = rows[part * STRIP + half * LANES : part * STRIP + (half + 1) * LANES]
            for k, row in enumerate(CODE.turned(b_, square)):
                CODE.store(b_, row, b, b_.add(to, LONG((part * LANES + k) * STRIP)), half)


# -- the cells of an LSTM -------------------------------------------------------------------------------------------
# 16 units have four strips, a row a token: input gate, forget gate, candidate, output gate. With their sums a, and the
# cell c of the token before: i, f, o = 1 / (1 + exp(-a)), g = tanh(a), c = f c_before + i g, h = o tanh(c).


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


def _open_cells(rows: Any, gates: Any, at: Any, by_strip: Any, floats: Any, before: Any, by_before: Any, cell: Any, curved: Any, out: Any, by_row: Any) -> None:  # noqa: E501
    i, f, g, o = (_rows_at(gates, at + gate * by_strip, rows, STRIP) for gate in range(GATES))
    for gate in (i, f, o):
        gate[:] = _plain_logistic(gate)
    g[:] = np.tanh(g)
    was = _rows_at(floats, before, rows, by_before)
    c, bent, given = (_rows_at(floats, place, rows, by_row) for place in (cell, curved, out))
    c[:] = f * was + i * g
    bent[:] = np.tanh(c)
    given[:] = o * bent


@instruction(_open_cells)
def open_cells(b_: Any, rows: Any, gates: Any, at: Any, by_strip: Any, floats: Any, before: Any, by_before: Any, cell: Any, curved: Any, out: Any, by_row: Any) -> None:  # noqa: E501
    """Turn the sums of the gates of 16 units, for so many tokens, into gates, in place; their cells from those at
    `before`, whose rows are `by_before` cells apart; their tanh to `curved`, what they give to `out`."""
    with cgutils.for_range(b_, rows) as loop:
        own, row = b_.add(at, b_.mul(loop.index, LONG(STRIP))), b_.mul(loop.index, by_row)
        strips = [b_.add(own, b_.mul(LONG(gate), by_strip)) for gate in range(GATES)]
        former = b_.add(before, b_.mul(loop.index, by_before))
        for part in range(_PARTS):
            sums = [CODE.load(b_, gates, strip, part) for strip in strips]
            i, f, g, o = (_tanh(b_, x) if gate == 2 else _logistic(b_, x) for gate, x in enumerate(sums))
            for strip, value in zip(strips, (i, f, g, o), strict=True):
                CODE.store(b_, value, gates, strip, part)
            c = CODE.multiply_add(b_, f, CODE.load(b_, floats, former, part), b_.fmul(i, g))
            bent = _tanh(b_, c)
            CODE.store(b_, c, floats, b_.add(cell, row), part)
            CODE.store(b_, bent, floats, b_.add(curved, row), part)
            CODE.store(b_, b_.fmul(o, bent), floats, b_.add(out, row), part)


def _close_cells(rows: Any, gates: Any, at: Any, by_strip: Any, floats: Any, before: Any, by_before: Any, curved: Any, slope: Any, carried: Any, by_row: Any) -> None:  # noqa: E501
    own = [_rows_at(gates, at + gate * by_strip, rows, STRIP) for gate in range(GATES)]
    i, f, g, o = (gate.copy() for gate in own)
    was = _rows_at(floats, before, rows, by_before)
    bent, dh, dc = (_rows_at(floats, place, rows, by_row) for place in (curved, slope, carried))
    cell = dc + dh * o * (1 - bent * bent)
    own[0][:], own[1][:] = cell * g * i * (1 - i), cell * was * f * (1 - f)
    own[2][:], own[3][:] = cell * i * (1 - g * g), dh * bent * o * (1 - o)
    dc[:] = cell * f


@instruction(_close_cells)
def close_cells(b_: Any, rows: Any, gates: Any, at: Any, by_strip: Any, floats: Any, before: Any, by_before: Any, curved: Any, slope: Any, carried: Any, by_row: Any) -> None:  # noqa: E501
    """The way back: gates become the derivatives in their sums. slope: those in what the tokens give; carried: those in
    their cells by way of the tokens after them, which become those in the cells before them."""
    one = CODE.each(1)

    def bell(x: Any) -> Any:
        return b_.fmul(x, b_.fsub(one, x))

    with cgutils.for_range(b_, rows) as loop:
        own, row = b_.add(at, b_.mul(loop.index, LONG(STRIP))), b_.mul(loop.index, by_row)
        strips = [b_.add(own, b_.mul(LONG(gate), by_strip)) for gate in range(GATES)]
        former = b_.add(before, b_.mul(loop.index, by_before))
        for part in range(_PARTS):
            i, f, g, o = (CODE.load(b_, gates, strip, part) for strip in strips)
            was = CODE.load(b_, floats, former, part)
            bent, dh, dc = (CODE.load(b_, floats, b_.add(place, row), part) for place in (curved, slope, carried))
            cell = CODE.multiply_add(b_, b_.fmul(dh, o), b_.fsub(one, b_.fmul(bent, bent)), dc)
            slopes = (
                b_.fmul(b_.fmul(cell, g), bell(i)), b_.fmul(b_.fmul(cell, was), bell(f)),
                b_.fmul(b_.fmul(cell, i), b_.fsub(one, b_.fmul(g, g))), b_.fmul(b_.fmul(dh, bent), bell(o)),
            )  # fmt: skip
            for strip, value in zip(strips, slopes, strict=True):
                CODE.store(b_, value, gates, strip, part)
            CODE.store(b_, b_.fmul(cell, f), floats, b_.add(carried, row), part)
