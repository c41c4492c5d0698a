"""Rows of numbers as vectors of 16 floats, in registers: four dot products at once, weighted sums of rows.

What the compiler makes of plain loops reads and writes a row once for every row that is added to it, and uses half of
the width of the registers. These are written out for it. A row is `blocks` times as many vectors as the tuple `lanes`
has entries; that number is a constant of the code, and so small that the sums of a whole block stay in registers.
Arrays are flat in effect: a place is a number of cells from their beginning, and nothing checks it.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba.core import cgutils, types

from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.compiler.prefetch import ask_for
from hogwild.kernels.simd.emit import INT, LONG, VectorCode

LANES = 16
# Sums of a block that stay in registers: there are 32 registers of 16 floats with AVX-512, 16 of 8 with AVX2.
_WIDE = bool(llvm.get_host_cpu_features().get("avx512f"))
MOST = 8 if _WIDE else 4
TOGETHER = 2 if _WIDE else 1  # rows whose sums are made in one pass over the rows that go into them

CODE = VectorCode(LANES)


def layout(dim: int) -> tuple[tuple[int, ...], int]:
    """`lanes` and `blocks` of rows of `dim` numbers: few cells in few blocks; a block costs a fiftieth of a row."""
    vectors = -(-dim // LANES)
    blocks, size = min(
        ((-(-vectors // size), size) for size in range(1, MOST + 1)), key=lambda n: n[0] * n[1] * (50 + n[0])
    )
    return (0,) * size, blocks


def _logistic(builder: Any, score: Any) -> tuple[Any, Any]:
    """1 / (1 + exp(score)) and log(1 + exp(-score)), both to about 3e-7 of 1; a NaN stays one."""
    minus = builder.fsub(CODE.zero, score)
    size = CODE.select(builder, "<", score, CODE.zero, minus, score)
    rest = CODE.exp_of_less(builder, builder.fsub(CODE.zero, size))
    above = builder.fdiv(CODE.each(1), builder.fadd(CODE.each(1), rest))
    chance = CODE.select(builder, ">", score, CODE.zero, builder.fmul(rest, above), above)
    # log(1 + rest) = 2 artanh(s), s = rest / (rest + 2) <= 1/3
    s = builder.fdiv(rest, builder.fadd(rest, CODE.each(2)))
    series = CODE.polynomial(builder, builder.fmul(s, s), [2 / k for k in (1, 3, 5, 7, 9, 11)])
    short = CODE.select(builder, "<", score, CODE.zero, minus, CODE.zero)
    cost = builder.fadd(builder.fmul(s, series), short)
    lost = builder.fcmp_unordered("uno", score, score)
    return builder.select(lost, score, chance), builder.select(lost, score, cost)


# -- loops, each after the same in plain Python ---------------------------------------------------------------------


def _cells(lanes: Any, blocks: Any, array: Any, at: Any) -> Any:
    return array.reshape(-1)[at : at + LANES * len(lanes) * blocks]


def _dots(lanes: Any, blocks: Any, x: Any, ats: Any, y: Any, places: Any, first: Any, out: Any, tos: Any) -> None:
    for at, to in zip(ats, tos, strict=True):
        for k in range(4):
            out[to + k] = _cells(lanes, blocks, x, at) @ _cells(lanes, blocks, y, places[first + k])


@instruction(_dots)
def dots(b: Any, lanes: Any, blocks: Any, x: Any, ats: Any, y: Any, places: Any, first: Any, out: Any, tos: Any) -> None:  # noqa: E501
    """For each of the rows of x at `ats`, its products with the rows of y at places[first:first + 4], to the four
    numbers of `out` from its entry of `tos` on."""
    rows = [b.load(b.gep(places, [b.add(first, LONG(k))])) for k in range(4)]
    sums = [CODE.make_sums(b, 4) for _ in ats]
    for totals in sums:
        CODE.clear(b, totals)
    with CODE.rows_of(b, blocks, len(lanes)) as (cell, _):
        for vector in range(len(lanes)):
            values = [CODE.load(b, x, b.add(at, cell), vector) for at in ats]
            for k, row in enumerate(rows):
                other = CODE.load(b, y, b.add(row, cell), vector)
                for value, totals in zip(values, sums, strict=True):
                    CODE.add_product(b, value, other, totals[k])
    for to, totals in zip(tos, sums, strict=True):
        CODE.store_four_sums(b, totals, out, to)


def _add_rows(
    lanes: Any, blocks: Any, target: Any, tos: Any, source: Any, places: Any, first: Any, factors: Any, starts: Any,
    stride: Any, count: Any,
) -> None:  # fmt: skip
    for to, start in zip(tos, starts, strict=True):
        for k in range(count):
            row = _cells(lanes, blocks, source, places[first + k])
            _cells(lanes, blocks, target, to)[:] += factors[start + k * stride] * row


@instruction(_add_rows)
def add_rows(
    b: Any, lanes: Any, blocks: Any, target: Any, tos: Any, source: Any, places: Any, first: Any, factors: Any,
    starts: Any, stride: Any, count: Any,
) -> None:  # fmt: skip
    """To each row of target at `tos`, which are different ones, add factors[start + k stride] times the row of source
    at places[first + k], for k below count."""
    size = len(lanes)
    sums = [CODE.make_sums(b, size) for _ in tos]
    with CODE.rows_of(b, blocks, size) as (cell, _):
        for to, totals in zip(tos, sums, strict=True):
            for vector, total in enumerate(totals):
                b.store(CODE.load(b, target, b.add(to, cell), vector), total)
        with cgutils.for_range(b, count) as loop:
            row = b.add(b.load(b.gep(places, [b.add(first, loop.index)])), cell)
            step = b.mul(stride, loop.index)
            numbers = [CODE.spread_at(b, factors, b.add(start, step)) for start in starts]
            for vector in range(size):
                value = CODE.load(b, source, row, vector)
                for number, totals in zip(numbers, sums, strict=True):
                    CODE.add_product(b, number, value, totals[vector])
        for to, totals in zip(tos, sums, strict=True):
            for vector, total in enumerate(totals):
                CODE.store(b, b.load(total), target, b.add(to, cell), vector)  # RACE(lost update): docs/races.md


def _copy_row(lanes: Any, blocks: Any, target: Any, to: Any, source: Any, at: Any) -> None:
    _cells(lanes, blocks, target, to)[:] = _cells(lanes, blocks, source, at)


@instruction(_copy_row)
def copy_row(b: Any, lanes: Any, blocks: Any, target: Any, to: Any, source: Any, at: Any) -> None:
    """The row of target at `to` becomes that of source at `at`."""
    with CODE.rows_of(b, blocks, len(lanes)) as (cell, _):
        for vector, value in enumerate(CODE.load_row(b, source, b.add(at, cell), len(lanes))):
            CODE.store(b, value, target, b.add(to, cell), vector)


@instruction(lambda lanes, blocks, source, at: None)
def prefetch_row(b: Any, lanes: Any, blocks: Any, source: Any, at: Any) -> None:
    """Ask for the cache lines of a row."""
    with CODE.rows_of(b, blocks, len(lanes)) as (cell, _):
        for vector in range(len(lanes)):
            ask_for(b, CODE.at(b, source, b.add(at, cell), vector))


def _weigh(scores: Any, at: Any, low: Any, middle: Any, high: Any, sign: Any, factor: Any) -> Any:
    score = sign * scores[at : at + LANES].astype(np.float64)
    lane = np.arange(LANES)
    on = (lane >= low) & (lane <= high) & (lane != middle)
    scores[at : at + LANES] = np.where(on, factor * np.exp(-np.logaddexp(0, score)), 0)
    return np.float32(np.logaddexp(0, -score)[on].sum())


@instruction(_weigh, types.float32)
def weigh(b: Any, scores: Any, at: Any, low: Any, middle: Any, high: Any, sign: Any, factor: Any) -> Any:
    """Of 16 scores s = sign scores[at:], those in lanes low to high but not in the middle one become
    factor / (1 + exp(s)), the others 0; returns their sum of log(1 + exp(-s))."""
    score = b.fmul(CODE.load(b, scores, at), CODE.spread(b, sign))
    chance, cost = _logistic(b, score)
    lane = CODE.places(range(LANES))
    low, middle, high = (CODE.spread(b, b.trunc(edge, INT)) for edge in (low, middle, high))
    inside = b.and_(b.icmp_signed(">=", lane, low), b.icmp_signed("<=", lane, high))
    on = b.and_(inside, b.icmp_signed("!=", lane, middle))
    weighed = b.fmul(chance, CODE.spread(b, factor))
    CODE.store(b, b.select(on, weighed, CODE.zero), scores, at)
    return CODE.sum(b, b.select(on, cost, CODE.zero))


def _move_rows(
    lanes: Any, blocks: Any, table: Any, places: Any, first: Any, count: Any, keep: Any, source: Any, at: Any,
    factors: Any, start: Any, stride: Any,
) -> None:  # fmt: skip
    for k in range(count):
        row = _cells(lanes, blocks, table, places[first + k])
        row[:] = keep * row + factors[start + k * stride] * _cells(lanes, blocks, source, at)


@instruction(_move_rows)
def move_rows(
    b: Any, lanes: Any, blocks: Any, table: Any, places: Any, first: Any, count: Any, keep: Any, source: Any, at: Any,
    factors: Any, start: Any, stride: Any,
) -> None:  # fmt: skip
    """The row of table at places[first + k], for k below count, becomes `keep` of itself plus factors[start + k stride]
    times the vector at `at` of source, one after the other: a row that is named twice moves twice."""
    kept = CODE.spread(b, keep)
    with CODE.rows_of(b, blocks, len(lanes)) as (cell, _):
        vectors = CODE.load_row(b, source, b.add(at, cell), len(lanes))
        with cgutils.for_range(b, count) as loop:
            row = b.add(b.load(b.gep(places, [b.add(first, loop.index)])), cell)
            factor = CODE.spread_at(b, factors, b.add(start, b.mul(stride, loop.index)))
            for vector, along in enumerate(vectors):
                old = b.fmul(kept, CODE.load(b, table, row, vector))
                # RACE(lost update): docs/races.md
                CODE.store(b, CODE.multiply_add(b, factor, along, old), table, row, vector)
