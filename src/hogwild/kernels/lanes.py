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

LANES = 16
# Sums of a block that stay in registers: there are 32 registers of 16 floats with AVX-512, 16 of 8 with AVX2.
_WIDE = bool(llvm.get_host_cpu_features().get("avx512f"))
MOST = 8 if _WIDE else 4
TOGETHER = 2 if _WIDE else 1  # rows whose sums are made in one pass over the rows that go into them

_FLOAT, _INT, _LONG, _BYTE = ir.FloatType(), ir.IntType(32), ir.IntType(64), ir.IntType(8)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_NOTHING = ir.Constant(_VECTOR, ir.Undefined)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)


def layout(dim: int) -> tuple[tuple[int, ...], int]:
    """`lanes` and `blocks` of rows of `dim` numbers: few cells in few blocks; a block costs a fiftieth of a row."""
    vectors = -(-dim // LANES)
    blocks, size = min(
        ((-(-vectors // size), size) for size in range(1, MOST + 1)), key=lambda n: n[0] * n[1] * (50 + n[0])
    )
    return (0,) * size, blocks


# -- pieces of code -------------------------------------------------------------------------------------------------


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _at(builder: Any, base: Any, place: Any, vector: int) -> Any:
    start = builder.gep(base, [builder.add(place, _LONG(LANES * vector))])
    return builder.bitcast(start, _VECTOR.as_pointer())


def _load(builder: Any, base: Any, place: Any, vector: int) -> Any:
    found = builder.load(_at(builder, base, place, vector))
    found.align = 4
    return found


def _store(builder: Any, value: Any, base: Any, place: Any, vector: int) -> None:
    builder.store(value, _at(builder, base, place, vector)).align = 4


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32"), [a, b, c])


def _spread(builder: Any, number: Any) -> Any:
    first = builder.insert_element(_NOTHING, number, _INT(0))
    return builder.shuffle_vector(first, _NOTHING, _places([0] * LANES))


def _places(numbers: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_INT, len(numbers)), numbers)


def _fold(builder: Any, a: Any, b: Any, step: int) -> Any:
    """Sums of neighbours `step` lanes apart: of a in the even groups of lanes, of b in the odd ones."""
    even = [(k // step) % 2 == 0 for k in range(LANES)]
    low = [k if even[k] else LANES + k - step for k in range(LANES)]
    high = [k + step if even[k] else LANES + k for k in range(LANES)]
    return builder.fadd(builder.shuffle_vector(a, b, _places(low)), builder.shuffle_vector(a, b, _places(high)))


def _four_sums(builder: Any, four: list[Any]) -> Any:
    """The sums over the lanes of four vectors, as one vector of four."""
    a, b, c, d = four
    found = _fold(builder, _fold(builder, a, b, 1), _fold(builder, c, d, 1), 2)
    for half in (LANES // 2, LANES // 4):
        low = builder.shuffle_vector(found, found, _places(list(range(half))))
        high = builder.shuffle_vector(found, found, _places(list(range(half, 2 * half))))
        found = builder.fadd(low, high)
    return found


def _step(builder: Any, blocks: Any, size: int) -> Any:
    """Loops over the blocks of a row; gives the first cell of each."""
    return cgutils.for_range_slice(builder, _LONG(0), builder.mul(blocks, _LONG(LANES * size)), _LONG(LANES * size))


def _spread_whole(builder: Any, number: Any) -> Any:
    nothing = ir.Constant(ir.VectorType(_INT, LANES), ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(nothing, number, _INT(0)), nothing, _places([0] * LANES))


def _sum(builder: Any, vector: Any) -> Any:
    for half in (8, 4, 2, 1):
        low = builder.shuffle_vector(vector, vector, _places(list(range(half))))
        high = builder.shuffle_vector(vector, vector, _places(list(range(half, 2 * half))))
        vector = builder.fadd(low, high)
    return builder.extract_element(vector, _INT(0))


def _each(number: float) -> Any:
    return ir.Constant(_VECTOR, [float(np.float32(number))] * LANES)


def _polynomial(builder: Any, x: Any, factors: list[float]) -> Any:
    """factors[0] + factors[1] x + …"""
    found = _each(factors[-1])
    for factor in factors[-2::-1]:
        found = _multiply_add(builder, found, x, _each(factor))
    return found


def _select(builder: Any, sign: str, x: Any, y: Any, chosen: Any, other: Any) -> Any:
    return builder.select(builder.fcmp_ordered(sign, x, y), chosen, other)


def _logistic(builder: Any, score: Any) -> tuple[Any, Any]:
    """1 / (1 + exp(score)) and log(1 + exp(-score)), both to about 3e-7 of 1; a NaN stays one."""
    minus = builder.fsub(_ZERO, score)
    size = _select(builder, "<", score, _ZERO, minus, score)
    # exp(-size) = 2^whole exp(r), |r| <= log(2) / 2. Kept above 2^-126, which is next to nothing.
    power = builder.fmul(size, _each(-1.4426950408889634))
    power = _select(builder, "<", power, _each(-126), _each(-126), power)
    integers = ir.VectorType(_INT, LANES)
    whole = builder.fptosi(builder.fsub(power, _each(0.5)), integers)  # cut towards zero: the nearest
    r = builder.fmul(builder.fsub(power, builder.sitofp(whole, _VECTOR)), _each(0.6931471805599453))
    rest = _polynomial(builder, r, [1, 1, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720])
    exponent = builder.shl(builder.add(whole, _places([127] * LANES)), _places([23] * LANES))
    rest = builder.fmul(rest, builder.bitcast(exponent, _VECTOR))
    above = builder.fdiv(_each(1), builder.fadd(_each(1), rest))
    chance = _select(builder, ">", score, _ZERO, builder.fmul(rest, above), above)
    # log(1 + rest) = 2 artanh(s), s = rest / (rest + 2) <= 1/3
    s = builder.fdiv(rest, builder.fadd(rest, _each(2)))
    series = _polynomial(builder, builder.fmul(s, s), [2 / k for k in (1, 3, 5, 7, 9, 11)])
    short = _select(builder, "<", score, _ZERO, minus, _ZERO)
    cost = builder.fadd(builder.fmul(s, series), short)
    lost = builder.fcmp_unordered("uno", score, score)
    return builder.select(lost, score, chance), builder.select(lost, score, cost)


# -- compiled -------------------------------------------------------------------------------------------------------


def _compiled() -> tuple[Any, ...]:
    long = types.int64

    @intrinsic
    def dots(typing: Any, lanes: Any, blocks: Any, x: Any, ats: Any, y: Any, four: Any, first: Any, out: Any, to: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, x, ats, y, four, first, out, to = args
            kinds = signature.args
            x, y, four, out = (
                _data(context, builder, kinds[k], v) for k, v in ((2, x), (4, y), (5, four), (7, out))
            )
            mine, results = cgutils.unpack_tuple(builder, ats), cgutils.unpack_tuple(builder, to)
            rows = [builder.load(builder.gep(four, [builder.add(first, _LONG(k))])) for k in range(4)]
            sums = [[cgutils.alloca_once_value(builder, _ZERO) for _ in rows] for _ in mine]
            with _step(builder, blocks, kinds[0].count) as (cell, _):
                for vector in range(kinds[0].count):
                    values = [_load(builder, x, builder.add(at, cell), vector) for at in mine]
                    for k, row in enumerate(rows):
                        other = _load(builder, y, builder.add(row, cell), vector)
                        for value, totals in zip(values, sums, strict=True):
                            builder.store(_multiply_add(builder, value, other, builder.load(totals[k])), totals[k])
            for result, totals in zip(results, sums, strict=True):
                found = _four_sums(builder, [builder.load(total) for total in totals])
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
                _data(context, builder, kinds[k], v) for k, v in ((2, target), (4, source), (5, places), (7, factors))
            )
            size = kinds[0].count
            targets, begins = cgutils.unpack_tuple(builder, to), cgutils.unpack_tuple(builder, starts)
            sums = [[cgutils.alloca_once(builder, _VECTOR) for _ in range(size)] for _ in targets]
            with _step(builder, blocks, size) as (cell, _):
                for mine, totals in zip(targets, sums, strict=True):
                    for vector, total in enumerate(totals):
                        builder.store(_load(builder, target, builder.add(mine, cell), vector), total)
                with cgutils.for_range(builder, count) as loop:
                    row = builder.add(builder.load(builder.gep(places, [builder.add(first, loop.index)])), cell)
                    step = builder.mul(stride, loop.index)
                    numbers = [builder.load(builder.gep(factors, [builder.add(start, step)])) for start in begins]
                    numbers = [_spread(builder, number) for number in numbers]
                    for vector in range(size):
                        value = _load(builder, source, row, vector)
                        for number, totals in zip(numbers, sums, strict=True):
                            total = totals[vector]
                            builder.store(_multiply_add(builder, number, value, builder.load(total)), total)
                for mine, totals in zip(targets, sums, strict=True):
                    for vector, total in enumerate(totals):
                        # RACE(lost update): docs/races.md
                        _store(builder, builder.load(total), target, builder.add(mine, cell), vector)
            return context.get_dummy_value()

        return types.void(lanes, long, target, to, source, places, long, factors, starts, long, long), build

    @intrinsic
    def copy_row(typing: Any, lanes: Any, blocks: Any, target: Any, to: Any, source: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, target, to, source, at = args
            target = _data(context, builder, signature.args[2], target)
            source = _data(context, builder, signature.args[4], source)
            with _step(builder, blocks, signature.args[0].count) as (cell, _):
                for vector in range(signature.args[0].count):
                    value = _load(builder, source, builder.add(at, cell), vector)
                    _store(builder, value, target, builder.add(to, cell), vector)
            return context.get_dummy_value()

        return types.void(lanes, long, target, long, source, long), build

    @intrinsic
    def prefetch_row(typing: Any, lanes: Any, blocks: Any, source: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, source, at = args
            source = _data(context, builder, signature.args[2], source)
            kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
            ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            with _step(builder, blocks, signature.args[0].count) as (cell, _):
                for vector in range(signature.args[0].count):
                    line = builder.bitcast(_at(builder, source, builder.add(at, cell), vector), _BYTE.as_pointer())
                    builder.call(ask, [line, _INT(0), _INT(3), _INT(1)])
            return context.get_dummy_value()

        return types.void(lanes, long, source, long), build

    @intrinsic
    def weigh(typing: Any, scores: Any, at: Any, low: Any, middle: Any, high: Any, sign: Any, factor: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            scores, at, low, middle, high, sign, factor = args
            scores = _data(context, builder, signature.args[0], scores)
            score = builder.fmul(_load(builder, scores, at, 0), _spread(builder, sign))
            chance, cost = _logistic(builder, score)
            lane = _places(list(range(LANES)))
            low, middle, high = (_spread_whole(builder, builder.trunc(edge, _INT)) for edge in (low, middle, high))
            inside = builder.and_(builder.icmp_signed(">=", lane, low), builder.icmp_signed("<=", lane, high))
            on = builder.and_(inside, builder.icmp_signed("!=", lane, middle))
            _store(builder, builder.select(on, builder.fmul(chance, _spread(builder, factor)), _ZERO), scores, at, 0)
            return _sum(builder, builder.select(on, cost, _ZERO))

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
