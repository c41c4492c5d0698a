"""Matrices with a row for each former tag and a number for each tag, as rows of rows8.py: products, sums, pairs."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.simd.emit import LONG, data
from hogwild.kernels.simd.rows8 import CODE, LANES, MOST, all_rows, width_of


def _factor(builder: Any, factors: Any, at: Any, k: Any) -> Any:
    return CODE.spread(builder, builder.load(builder.gep(factors, [builder.add(at, k)])))


def _compiled() -> tuple[Any, ...]:
    long, code, number = types.int64, CODE, types.float32

    @intrinsic
    def combine(typing: Any, lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, out: Any, to: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, matrix, at, count, factors, start, out, to = args
            kinds = signature.args
            matrix, factors, out = (
                data(context, builder, kinds[k], v) for k, v in ((2, matrix), (5, factors), (7, out))
            )
            size = kinds[0].count
            width = builder.mul(blocks, LONG(LANES * size))
            # Two sums a vector where there are registers for them: a sum has to wait for its last addition.
            ways = 2 if size <= MOST // 2 else 1
            sums = [[cgutils.alloca_once(builder, code.vector) for _ in range(size)] for _ in range(ways)]
            even = builder.and_(count, LONG(-ways))
            with all_rows(builder, kinds[0], blocks) as (cell, _):
                for totals in sums:
                    for total in totals:
                        builder.store(code.zero, total)

                def add(k: Any, totals: list[Any]) -> None:
                    row = builder.add(builder.add(at, builder.mul(k, width)), cell)
                    factor = _factor(builder, factors, start, k)
                    for vector, total in enumerate(totals):
                        value = code.load(builder, matrix, row, vector)
                        builder.store(code.multiply_add(builder, factor, value, builder.load(total)), total)

                with cgutils.for_range_slice(builder, LONG(0), even, LONG(ways)) as (k, _):
                    for way, totals in enumerate(sums):
                        add(builder.add(k, LONG(way)), totals)
                with cgutils.for_range_slice(builder, even, count, LONG(1)) as (k, _):
                    add(k, sums[0])
                for vector in range(size):
                    total = builder.load(sums[0][vector])
                    if ways == 2:
                        total = builder.fadd(total, builder.load(sums[1][vector]))
                    code.store(builder, total, out, builder.add(to, cell), vector)
            return context.get_dummy_value()

        return types.void(lanes, long, matrix, long, long, factors, long, out, long), build

    @intrinsic
    def row_products(typing: Any, lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, row: Any, place: Any, out: Any, to: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, matrix, at, count, row, place, out, to = args
            kinds = signature.args
            matrix, row, out = (data(context, builder, kinds[k], v) for k, v in ((2, matrix), (5, row), (7, out)))
            size = kinds[0].count
            width = builder.mul(blocks, LONG(LANES * size))
            sums = [cgutils.alloca_once(builder, code.vector) for _ in range(4)]
            with cgutils.for_range_slice(builder, LONG(0), count, LONG(4)) as (k, _):
                for total in sums:
                    builder.store(code.zero, total)
                starts = [builder.add(at, builder.mul(builder.add(k, LONG(n)), width)) for n in range(4)]
                with all_rows(builder, kinds[0], blocks) as (cell, _):
                    for vector in range(size):
                        mine = code.load(builder, row, builder.add(place, cell), vector)
                        for start, total in zip(starts, sums, strict=True):
                            value = code.load(builder, matrix, builder.add(start, cell), vector)
                            builder.store(code.multiply_add(builder, mine, value, builder.load(total)), total)
                found = code.four_sums(builder, [builder.load(total) for total in sums])
                target = builder.bitcast(builder.gep(out, [builder.add(to, k)]), found.type.as_pointer())
                builder.store(found, target).align = 4
            return context.get_dummy_value()

        return types.void(lanes, long, matrix, long, long, row, long, out, long), build

    @intrinsic
    def add_outer(typing: Any, lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, row: Any, place: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, matrix, at, count, factors, start, row, place = args
            kinds = signature.args
            matrix, factors, row = (
                data(context, builder, kinds[k], v) for k, v in ((2, matrix), (5, factors), (7, row))
            )
            size = kinds[0].count
            width = builder.mul(blocks, LONG(LANES * size))
            with all_rows(builder, kinds[0], blocks) as (cell, _):
                values = [code.load(builder, row, builder.add(place, cell), vector) for vector in range(size)]
                with cgutils.for_range_slice(builder, LONG(0), count, LONG(1)) as (k, _):
                    target = builder.add(builder.add(at, builder.mul(k, width)), cell)
                    factor = _factor(builder, factors, start, k)
                    for vector, value in enumerate(values):
                        total = code.load(builder, matrix, target, vector)
                        total = code.multiply_add(builder, factor, value, total)
                        code.store(builder, total, matrix, target, vector)
            return context.get_dummy_value()

        return types.void(lanes, long, matrix, long, long, factors, long, row, long), build

    @intrinsic
    def times_outer(typing: Any, lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, row: Any, place: Any, total: Any, to: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, matrix, at, count, factors, start, row, place, total, to = args
            kinds = signature.args
            matrix, factors, row, total = (
                data(context, builder, kinds[k], v) for k, v in ((2, matrix), (5, factors), (7, row), (9, total))
            )
            size = kinds[0].count
            width = builder.mul(blocks, LONG(LANES * size))
            with all_rows(builder, kinds[0], blocks) as (cell, _):
                values = [code.load(builder, row, builder.add(place, cell), vector) for vector in range(size)]
                with cgutils.for_range_slice(builder, LONG(0), count, LONG(1)) as (k, _):
                    shift = builder.add(builder.mul(k, width), cell)
                    factor = _factor(builder, factors, start, k)
                    for vector, value in enumerate(values):
                        here = code.load(builder, matrix, builder.add(at, shift), vector)
                        here = builder.fmul(here, builder.fmul(factor, value))
                        code.store(builder, here, matrix, builder.add(at, shift), vector)
                        there = code.load(builder, total, builder.add(to, shift), vector)
                        code.store(builder, builder.fadd(here, there), total, builder.add(to, shift), vector)
            return context.get_dummy_value()

        return types.void(lanes, long, matrix, long, long, factors, long, row, long, total, long), build

    @intrinsic
    def add_pairs(typing: Any, matrix: Any, at: Any, table: Any, pairs: Any, first: Any, last: Any, factor: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            matrix, at, table, pairs, first, last, factor = args
            kinds = signature.args
            matrix, table, pairs = (
                data(context, builder, kinds[k], v) for k, v in ((0, matrix), (2, table), (3, pairs))
            )
            start = builder.gep(matrix, [at])
            with cgutils.for_range_slice(builder, first, last, LONG(LANES)) as (entry, _):
                for lane in range(LANES):
                    here = builder.add(entry, LONG(lane))
                    cell = builder.gep(start, [builder.sext(builder.load(builder.gep(pairs, [here])), LONG)])
                    # RACE(stale read): docs/races.md
                    weight = builder.fmul(builder.load(builder.gep(table, [here])), factor)
                    builder.store(builder.fadd(builder.load(cell), weight), cell)
            return context.get_dummy_value()

        return types.void(matrix, long, table, pairs, long, long, number), build

    @intrinsic
    def take_pairs(typing: Any, matrix: Any, at: Any, table: Any, pairs: Any, first: Any, last: Any, factor: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            matrix, at, table, pairs, first, last, factor = args
            kinds = signature.args
            matrix, table, pairs = (
                data(context, builder, kinds[k], v) for k, v in ((0, matrix), (2, table), (3, pairs))
            )
            start, factor = builder.gep(matrix, [at]), code.spread(builder, builder.fneg(factor))
            with cgutils.for_range_slice(builder, first, last, LONG(LANES)) as (entry, _):
                value = code.gather(builder, start, pairs, entry)
                left = code.multiply_add(builder, value, factor, code.load(builder, table, entry))
                code.store(builder, left, table, entry)  # RACE(lost update): docs/races.md
            return context.get_dummy_value()

        return types.void(matrix, long, table, pairs, long, long, number), build

    return combine, row_products, add_outer, times_outer, add_pairs, take_pairs


# -- the same, interpreted ------------------------------------------------------------------------------------------


def _matrix(lanes: Any, blocks: int, array: Any, at: int, count: int) -> Any:
    width = width_of(lanes, blocks)
    return array.reshape(-1)[at : at + count * width].reshape(count, width)


def _combine(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, out: Any, to: Any) -> None:  # noqa: E501
    found = factors[start : start + count] @ _matrix(lanes, blocks, matrix, at, count)
    out[to : to + len(found)] = found


def _row_products(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, row: Any, place: Any, out: Any, to: Any) -> None:  # noqa: E501
    out[to : to + count] = _matrix(lanes, blocks, matrix, at, count) @ row[place : place + width_of(lanes, blocks)]


def _add_outer(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, row: Any, place: Any) -> None:  # noqa: E501
    values = row[place : place + width_of(lanes, blocks)]
    _matrix(lanes, blocks, matrix, at, count)[:] += np.outer(factors[start : start + count], values)


def _times_outer(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, row: Any, place: Any, total: Any, to: Any) -> None:  # noqa: E501
    values = row[place : place + width_of(lanes, blocks)]
    here = _matrix(lanes, blocks, matrix, at, count)
    here[:] *= np.outer(factors[start : start + count], values)
    _matrix(lanes, blocks, total, to, count)[:] += here


def _add_pairs(matrix: Any, at: Any, table: Any, pairs: Any, first: Any, last: Any, factor: Any) -> None:
    np.add.at(matrix, at + pairs[first:last], factor * table[first:last])


def _take_pairs(matrix: Any, at: Any, table: Any, pairs: Any, first: Any, last: Any, factor: Any) -> None:
    table[first:last] -= factor * matrix[at + pairs[first:last]]


_INTERPRETED = (_combine, _row_products, _add_outer, _times_outer, _add_pairs, _take_pairs)
# combine(lanes, blocks, matrix, at, count, factors, start, out, to): out[to:] = the sum of factors[start + k] times row
# k of the matrix at `at`, for k below count. row_products(…, row, place, out, to): out[to + k] = row k times
# row[place:]; writes whole groups of four. add_outer(…, factors, start, row, place): add factors[start + k] row[place:]
# to row k. times_outer(…, total, to): multiply row k by factors[start + k] row[place:], and add it to that of `total`.
# add_pairs(matrix, at, table, pairs, first, last, factor): add factor table[k] to matrix[at + pairs[k]], for k from
# first to last, whole chunks of 8. take_pairs: subtract factor matrix[at + pairs[k]] from table[k].
combine, row_products, add_outer, times_outer, add_pairs, take_pairs = (
    _INTERPRETED if nb.config.DISABLE_JIT else _compiled()
)
