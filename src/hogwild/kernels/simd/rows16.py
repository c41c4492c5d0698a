"""Rows of numbers as vectors of 16 floats, in registers: four dot products at once, weighted sums of rows.

What the compiler makes of plain loops reads and writes a row once for every row that is added to it, and uses half of
the width of the registers. These are written out for it. A row is `blocks` times as many vectors as the tuple `lanes`
has entries; that number is a constant of the code, and so small that the sums of a whole block stay in registers.
Arrays are flat in effect: a place is a number of cells from their beginning, and nothing checks it.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.simd.emit import BYTE, INT, LONG, VectorCode, data

LANES = 16
# Sums of a block that stay in registers: there are 32 registers of 16 floats with AVX-512, 16 of 8 with AVX2.
_WIDE = bool(llvm.get_host_cpu_features().get("avx512f"))
MOST = 8 if _WIDE else 4
TOGETHER = 2 if _WIDE else 1  # rows whose sums are made in one pass over the rows that go into them

_CODE = VectorCode(LANES)


def layout(dim: int) -> tuple[tuple[int, ...], int]:
    """`lanes` and `blocks` of rows of `dim` numbers: few cells in few blocks; a block costs a fiftieth of a row."""
    vectors = -(-dim // LANES)
    blocks, size = min(
        ((-(-vectors // size), size) for size in range(1, MOST + 1)), key=lambda n: n[0] * n[1] * (50 + n[0])
    )
    return (0,) * size, blocks


def _logistic(builder: Any, score: Any) -> tuple[Any, Any]:
    """1 / (1 + exp(score)) and log(1 + exp(-score)), both to about 3e-7 of 1; a NaN stays one."""
    code = _CODE
    minus = builder.fsub(code.zero, score)
    size = code.select(builder, "<", score, code.zero, minus, score)
    rest = code.exp_of_less(builder, builder.fsub(code.zero, size))
    above = builder.fdiv(code.each(1), builder.fadd(code.each(1), rest))
    chance = code.select(builder, ">", score, code.zero, builder.fmul(rest, above), above)
    # log(1 + rest) = 2 artanh(s), s = rest / (rest + 2) <= 1/3
    s = builder.fdiv(rest, builder.fadd(rest, code.each(2)))
    series = code.polynomial(builder, builder.fmul(s, s), [2 / k for k in (1, 3, 5, 7, 9, 11)])
    short = code.select(builder, "<", score, code.zero, minus, code.zero)
    cost = builder.fadd(builder.fmul(s, series), short)
    lost = builder.fcmp_unordered("uno", score, score)
    return builder.select(lost, score, chance), builder.select(lost, score, cost)


# -- compiled -------------------------------------------------------------------------------------------------------


def _compiled() -> tuple[Any, ...]:
    long, code = types.int64, _CODE

    @intrinsic
    def dots(typing: Any, lanes: Any, blocks: Any, x: Any, ats: Any, y: Any, four: Any, first: Any, out: Any, to: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, x, ats, y, four, first, out, to = args
            kinds = signature.args
            x, y, four, out = (
                data(context, builder, kinds[k], v) for k, v in ((2, x), (4, y), (5, four), (7, out))
            )
            mine, results = cgutils.unpack_tuple(builder, ats), cgutils.unpack_tuple(builder, to)
            rows = [builder.load(builder.gep(four, [builder.add(first, LONG(k))])) for k in range(4)]
            sums = [[cgutils.alloca_once_value(builder, code.zero) for _ in rows] for _ in mine]
            with code.rows_of(builder, blocks, kinds[0].count) as (cell, _):
                for vector in range(kinds[0].count):
                    values = [code.load(builder, x, builder.add(at, cell), vector) for at in mine]
                    for k, row in enumerate(rows):
                        other = code.load(builder, y, builder.add(row, cell), vector)
                        for value, totals in zip(values, sums, strict=True):
                            builder.store(code.multiply_add(builder, value, other, builder.load(totals[k])), totals[k])
            for result, totals in zip(results, sums, strict=True):
                found = code.four_sums(builder, [builder.load(total) for total in totals])
                target = builder.bitcast(builder.gep(out, [result]), found.type.as_pointer())
                builder.store(found, target).align = 4
            return context.get_dummy_value()

        return types.void(lanes, long, x, ats, y, four, long, out, to), build

    @intrinsic
    def add_rows(typing: Any, lanes: Any, blocks: Any, target: Any, to: Any, source: Any, places: Any, first: Any, factors: Any, starts: Any, stride: Any, count: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, target, to, source, places, first, factors, starts, stride, count = args
            kinds = signature.args
            target, source, places, factors = (
                data(context, builder, kinds[k], v) for k, v in ((2, target), (4, source), (5, places), (7, factors))
            )
            size = kinds[0].count
            targets, begins = cgutils.unpack_tuple(builder, to), cgutils.unpack_tuple(builder, starts)
            sums = [[cgutils.alloca_once(builder, code.vector) for _ in range(size)] for _ in targets]
            with code.rows_of(builder, blocks, size) as (cell, _):
                for mine, totals in zip(targets, sums, strict=True):
                    for vector, total in enumerate(totals):
                        builder.store(code.load(builder, target, builder.add(mine, cell), vector), total)
                with cgutils.for_range(builder, count) as loop:
                    row = builder.add(builder.load(builder.gep(places, [builder.add(first, loop.index)])), cell)
                    step = builder.mul(stride, loop.index)
                    numbers = [builder.load(builder.gep(factors, [builder.add(start, step)])) for start in begins]
                    numbers = [code.spread(builder, number) for number in numbers]
                    for vector in range(size):
                        value = code.load(builder, source, row, vector)
                        for number, totals in zip(numbers, sums, strict=True):
                            total = totals[vector]
                            builder.store(code.multiply_add(builder, number, value, builder.load(total)), total)
                for mine, totals in zip(targets, sums, strict=True):
                    for vector, total in enumerate(totals):
                        # RACE(lost update): docs/races.md
                        code.store(builder, builder.load(total), target, builder.add(mine, cell), vector)
            return context.get_dummy_value()

        return types.void(lanes, long, target, to, source, places, long, factors, starts, long, long), build

    @intrinsic
    def copy_row(typing: Any, lanes: Any, blocks: Any, target: Any, to: Any, source: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, target, to, source, at = args
            target = data(context, builder, signature.args[2], target)
            source = data(context, builder, signature.args[4], source)
            with code.rows_of(builder, blocks, signature.args[0].count) as (cell, _):
                for vector in range(signature.args[0].count):
                    value = code.load(builder, source, builder.add(at, cell), vector)
                    code.store(builder, value, target, builder.add(to, cell), vector)
            return context.get_dummy_value()

        return types.void(lanes, long, target, long, source, long), build

    @intrinsic
    def prefetch_row(typing: Any, lanes: Any, blocks: Any, source: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, source, at = args
            source = data(context, builder, signature.args[2], source)
            kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT, INT, INT])
            ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            with code.rows_of(builder, blocks, signature.args[0].count) as (cell, _):
                for vector in range(signature.args[0].count):
                    line = builder.bitcast(code.at(builder, source, builder.add(at, cell), vector), BYTE.as_pointer())
                    builder.call(ask, [line, INT(0), INT(3), INT(1)])
            return context.get_dummy_value()

        return types.void(lanes, long, source, long), build

    @intrinsic
    def weigh(typing: Any, scores: Any, at: Any, low: Any, middle: Any, high: Any, sign: Any, factor: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            scores, at, low, middle, high, sign, factor = args
            scores = data(context, builder, signature.args[0], scores)
            score = builder.fmul(code.load(builder, scores, at, 0), code.spread(builder, sign))
            chance, cost = _logistic(builder, score)
            lane = code.places(range(LANES))
            low, middle, high = (code.spread(builder, builder.trunc(edge, INT)) for edge in (low, middle, high))
            inside = builder.and_(builder.icmp_signed(">=", lane, low), builder.icmp_signed("<=", lane, high))
            on = builder.and_(inside, builder.icmp_signed("!=", lane, middle))
            weighed = builder.fmul(chance, code.spread(builder, factor))
            code.store(builder, builder.select(on, weighed, code.zero), scores, at, 0)
            return code.sum(builder, builder.select(on, cost, code.zero))

        number = types.float32
        return number(scores, long, long, long, long, number, number), build

    return dots, add_rows, copy_row, prefetch_row, weigh


# -- the same, interpreted ------------------------------------------------------------------------------------------


def _cells(lanes: Any, blocks: Any, array: Any, at: Any) -> Any:
    return array.reshape(-1)[at : at + LANES * len(lanes) * blocks]


def _dots(lanes: Any, blocks: Any, x: Any, ats: Any, y: Any, four: Any, first: Any, out: Any, to: Any) -> None:
    for at, result in zip(ats, to, strict=True):
        for k in range(4):
            out[result + k] = _cells(lanes, blocks, x, at) @ _cells(lanes, blocks, y, four[first + k])


def _add_rows(
    lanes: Any, blocks: Any, target: Any, to: Any, source: Any, places: Any, first: Any, factors: Any, starts: Any,
    stride: Any, count: Any,
) -> None:  # fmt: skip
    for mine, start in zip(to, starts, strict=True):
        for k in range(count):
            row = _cells(lanes, blocks, source, places[first + k])
            _cells(lanes, blocks, target, mine)[:] += factors[start + k * stride] * row


def _copy_row(lanes: Any, blocks: Any, target: Any, to: Any, source: Any, at: Any) -> None:
    _cells(lanes, blocks, target, to)[:] = _cells(lanes, blocks, source, at)


def _prefetch_row(lanes: Any, blocks: Any, source: Any, at: Any) -> None:
    return None


def _weigh(scores: Any, at: Any, low: Any, middle: Any, high: Any, sign: Any, factor: Any) -> Any:
    score = sign * scores[at : at + LANES].astype(np.float64)
    lane = np.arange(LANES)
    on = (lane >= low) & (lane <= high) & (lane != middle)
    scores[at : at + LANES] = np.where(on, factor * np.exp(-np.logaddexp(0, score)), 0)
    return np.float32(np.logaddexp(0, -score)[on].sum())


_INTERPRETED = (_dots, _add_rows, _copy_row, _prefetch_row, _weigh)
# dots(lanes, blocks, x, ats, y, places, first, out, tos): for each of the rows of x at `ats`, its products with the
# rows of y at places[first:first + 4], to the four numbers of `out` from its entry of `tos` on.
# add_rows(lanes, blocks, target, tos, source, places, first, factors, starts, stride, count): to each row of target at
# `tos` add factors[start + k stride] times the row of source at places[first + k], for k below count; the rows of
# target are different ones.
# weigh(scores, at, low, middle, high, sign, factor): of 16 scores s = sign scores[at:], those in lanes low to high but
# not in the middle one become factor / (1 + exp(s)), the others 0; returns their sum of log(1 + exp(-s)).
dots, add_rows, copy_row, prefetch_row, weigh = _INTERPRETED if nb.config.DISABLE_JIT else _compiled()


# -- Rows of a table that all move along one vector: row <- keep row + factor vector, in registers, too ----------------


def _compiled_move() -> Any:
    code = _CODE

    @intrinsic
    def move_rows(typing: Any, lanes: Any, blocks: Any, table: Any, places: Any, first: Any, count: Any, keep: Any, source: Any, at: Any, factors: Any, start: Any, stride: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, table, places, first, count, keep, source, at, factors, start, stride = args
            kinds = signature.args
            table, places, source, factors = (
                data(context, builder, kinds[k], v) for k, v in ((2, table), (3, places), (7, source), (9, factors))
            )
            size = kinds[0].count
            kept = code.spread(builder, keep)
            with code.rows_of(builder, blocks, size) as (cell, _):
                vectors = [code.load(builder, source, builder.add(at, cell), vector) for vector in range(size)]
                with cgutils.for_range(builder, count) as loop:
                    row = builder.add(builder.load(builder.gep(places, [builder.add(first, loop.index)])), cell)
                    place = builder.add(start, builder.mul(stride, loop.index))
                    factor = code.spread(builder, builder.load(builder.gep(factors, [place])))
                    for vector, along in enumerate(vectors):
                        old = builder.fmul(kept, code.load(builder, table, row, vector))
                        # RACE(lost update): docs/races.md
                        code.store(builder, code.multiply_add(builder, factor, along, old), table, row, vector)
            return context.get_dummy_value()

        long, number = types.int64, types.float32
        return types.void(lanes, long, table, places, long, long, number, source, long, factors, long, long), build

    return move_rows


def _move_rows(
    lanes: Any, blocks: Any, table: Any, places: Any, first: Any, count: Any, keep: Any, source: Any, at: Any,
    factors: Any, start: Any, stride: Any,
) -> None:  # fmt: skip
    size = LANES * len(lanes) * blocks
    for k in range(count):
        row = table[places[first + k] : places[first + k] + size]
        row[:] = keep * row + factors[start + k * stride] * source[at : at + size]


# move_rows(lanes, blocks, table, places, first, count, keep, source, at, factors, start, stride): the row of table at
# places[first + k], for k below count, becomes `keep` of itself plus factors[start + k stride] times the vector at `at`
# of source, one after the other: a row that is named twice moves twice.
move_rows = _move_rows if nb.config.DISABLE_JIT else _compiled_move()
