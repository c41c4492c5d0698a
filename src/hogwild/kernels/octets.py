"""Rows with one number a tag, as vectors of 8 floats in registers: what a chain of tags is reckoned with.

A row is `blocks` times as many vectors as the tuple `lanes` has entries; the cells beyond the last tag are filled up.
As in lanes.py a place is a number of cells from the beginning of an array, and nothing checks it. Tables of weights are
read and written by several workers at once: docs/races.md.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.vectorcode import LONG, VectorCode, data

LANES = 8
MOST = 8  # vectors of a block, whose sums stay in registers
_CODE = VectorCode(LANES)


def layout(tags: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Rows of so many numbers: tuples as long as a block has vectors, and as a row has blocks."""
    vectors = -(-tags // LANES)
    blocks = -(-vectors // MOST)
    return (0,) * -(-vectors // blocks), (0,) * blocks


def _row_at(builder: Any, ids: Any, entry: Any, stride: Any) -> Any:
    return builder.mul(builder.sext(builder.load(builder.gep(ids, [entry])), LONG), stride)


def _factor(builder: Any, factors: Any, at: Any, k: Any) -> Any:
    return _CODE.spread(builder, builder.load(builder.gep(factors, [builder.add(at, k)])))


def _all_rows(builder: Any, lanes: Any, blocks: Any) -> Any:
    """Loops over the vectors of a row as blocks; gives the first cell of each block."""
    return _CODE.rows_of(builder, blocks, lanes.count)


def _compiled() -> tuple[Any, ...]:
    long, code, number = types.int64, _CODE, types.float32

    @intrinsic
    def score_rows(typing: Any, lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, factor: Any, out: Any, pads: Any, to: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, table, stride, ids, first, last, factor, out, pads, to = args
            kinds = signature.args
            table, ids, out = (data(context, builder, kinds[k], v) for k, v in ((2, table), (4, ids), (8, out)))
            sums = [cgutils.alloca_once(builder, code.vector) for _ in range(kinds[0].count)]
            factor = code.spread(builder, factor)
            with _all_rows(builder, kinds[0], blocks) as (cell, _):
                for total in sums:
                    builder.store(code.zero, total)
                with cgutils.for_range_slice(builder, first, last, LONG(1)) as (entry, _):
                    row = builder.add(_row_at(builder, ids, entry, stride), cell)
                    for vector, total in enumerate(sums):
                        # RACE(stale read): docs/races.md
                        value = code.load(builder, table, row, vector)
                        builder.store(builder.fadd(builder.load(total), value), total)
                for vector, total in enumerate(sums):
                    pad = code.load(builder, out, builder.add(pads, cell), vector)
                    score = code.multiply_add(builder, builder.load(total), factor, pad)
                    code.store(builder, score, out, builder.add(to, cell), vector)
            return context.get_dummy_value()

        return types.void(lanes, long, table, long, ids, long, long, number, out, long, long), build

    @intrinsic
    def take_from_rows(typing: Any, lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, row: Any, at: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, table, stride, ids, first, last, row, at = args
            kinds = signature.args
            table, ids, row = (data(context, builder, kinds[k], v) for k, v in ((2, table), (4, ids), (7, row)))
            size = kinds[0].count
            with _all_rows(builder, kinds[0], blocks) as (cell, _):
                values = [code.load(builder, row, builder.add(at, cell), vector) for vector in range(size)]
                with cgutils.for_range_slice(builder, first, last, LONG(1)) as (entry, _):
                    place = builder.add(_row_at(builder, ids, entry, stride), cell)
                    for vector, value in enumerate(values):
                        left = builder.fsub(code.load(builder, table, place, vector), value)
                        # RACE(lost update): docs/races.md
                        code.store(builder, left, table, place, vector)
            return context.get_dummy_value()

        return types.void(lanes, long, table, long, ids, long, long, row, long), build

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
            with _all_rows(builder, kinds[0], blocks) as (cell, _):
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
                with _all_rows(builder, kinds[0], blocks) as (cell, _):
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
            with _all_rows(builder, kinds[0], blocks) as (cell, _):
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
            with _all_rows(builder, kinds[0], blocks) as (cell, _):
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

    @intrinsic
    def multiply(typing: Any, lanes: Any, blocks: Any, array: Any, to: Any, x: Any, y: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, array, to, x, y = args
            kinds = signature.args
            array = data(context, builder, kinds[2], array)
            total = cgutils.alloca_once_value(builder, code.zero)
            builder.store(code.zero, total)
            with _all_rows(builder, kinds[0], blocks) as (cell, _):
                for vector in range(kinds[0].count):
                    left = code.load(builder, array, builder.add(x, cell), vector)
                    right = code.load(builder, array, builder.add(y, cell), vector)
                    value = builder.fmul(left, right)
                    code.store(builder, value, array, builder.add(to, cell), vector)
                    builder.store(builder.fadd(builder.load(total), value), total)
            return code.sum(builder, builder.load(total))

        return number(lanes, long, array, long, long, long), build

    @intrinsic
    def scale_row(typing: Any, lanes: Any, blocks: Any, array: Any, to: Any, x: Any, factor: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, array, to, x, factor = args
            kinds = signature.args
            array = data(context, builder, kinds[2], array)
            factor = code.spread(builder, factor)
            with _all_rows(builder, kinds[0], blocks) as (cell, _):
                for vector in range(kinds[0].count):
                    value = code.load(builder, array, builder.add(x, cell), vector)
                    code.store(builder, builder.fmul(value, factor), array, builder.add(to, cell), vector)
            return context.get_dummy_value()

        return types.void(lanes, long, array, long, long, number), build

    @intrinsic
    def extent(typing: Any, array: Any, at: Any, vectors: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, at, vectors = args
            array = data(context, builder, signature.args[0], array)
            low, high = (cgutils.alloca_once(builder, code.vector) for _ in range(2))
            endless, none = code.each(float("inf")), code.each(-float("inf"))
            builder.store(endless, low)
            builder.store(none, high)
            with cgutils.for_range_slice(builder, LONG(0), builder.mul(vectors, LONG(LANES)), LONG(LANES)) as (cell, _):
                value = code.load(builder, array, builder.add(at, cell))
                top, least = builder.load(high), builder.load(low)
                builder.store(builder.select(builder.fcmp_unordered(">", value, top), value, top), high)
                real = code.select(builder, "==", value, none, endless, value)
                builder.store(code.select(builder, "<", real, least, real, least), low)

            def larger(a: Any, b: Any) -> Any:
                return builder.select(builder.fcmp_unordered(">", a, b), a, b)

            def smaller(a: Any, b: Any) -> Any:
                return builder.select(builder.fcmp_ordered("<", a, b), a, b)

            ends = [code.fold(builder, builder.load(low), smaller), code.fold(builder, builder.load(high), larger)]
            return context.make_tuple(builder, signature.return_type, ends)

        return types.UniTuple(number, 2)(array, long, long), build

    @intrinsic
    def exps(typing: Any, array: Any, at: Any, vectors: Any, shift: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, at, vectors, shift = args
            array = data(context, builder, signature.args[0], array)
            shift = code.spread(builder, shift)
            with cgutils.for_range_slice(builder, LONG(0), builder.mul(vectors, LONG(LANES)), LONG(LANES)) as (cell, _):
                place = builder.add(at, cell)
                value = builder.fsub(code.load(builder, array, place), shift)
                code.store(builder, code.exp_of_less(builder, value), array, place)
            return context.get_dummy_value()

        return types.void(array, long, long, number), build

    return (
        score_rows, take_from_rows, combine, row_products, add_outer, times_outer, add_pairs, take_pairs, multiply,
        scale_row, extent, exps,
    )  # fmt: skip


# -- the same, interpreted ------------------------------------------------------------------------------------------


def _width(lanes: Any, blocks: int) -> int:
    return LANES * len(lanes) * blocks


def _matrix(lanes: Any, blocks: int, array: Any, at: int, count: int) -> Any:
    width = _width(lanes, blocks)
    return array.reshape(-1)[at : at + count * width].reshape(count, width)


def _score_rows(lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, factor: Any, out: Any, pads: Any, to: Any) -> None:  # noqa: E501
    width = _width(lanes, blocks)
    total = np.zeros(width, np.float32)
    for entry in ids[first:last].tolist():
        total += table[entry * stride : entry * stride + width]
    out[to : to + width] = total * factor + out[pads : pads + width]


def _take_from_rows(lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, row: Any, at: Any) -> None:  # noqa: E501
    width = _width(lanes, blocks)
    for entry in ids[first:last].tolist():
        table[entry * stride : entry * stride + width] -= row[at : at + width]


def _combine(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, out: Any, to: Any) -> None:  # noqa: E501
    found = factors[start : start + count] @ _matrix(lanes, blocks, matrix, at, count)
    out[to : to + len(found)] = found


def _row_products(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, row: Any, place: Any, out: Any, to: Any) -> None:  # noqa: E501
    out[to : to + count] = _matrix(lanes, blocks, matrix, at, count) @ row[place : place + _width(lanes, blocks)]


def _add_outer(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, row: Any, place: Any) -> None:  # noqa: E501
    values = row[place : place + _width(lanes, blocks)]
    _matrix(lanes, blocks, matrix, at, count)[:] += np.outer(factors[start : start + count], values)


def _times_outer(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, row: Any, place: Any, total: Any, to: Any) -> None:  # noqa: E501
    values = row[place : place + _width(lanes, blocks)]
    here = _matrix(lanes, blocks, matrix, at, count)
    here[:] *= np.outer(factors[start : start + count], values)
    _matrix(lanes, blocks, total, to, count)[:] += here


def _add_pairs(matrix: Any, at: Any, table: Any, pairs: Any, first: Any, last: Any, factor: Any) -> None:
    np.add.at(matrix, at + pairs[first:last], factor * table[first:last])


def _take_pairs(matrix: Any, at: Any, table: Any, pairs: Any, first: Any, last: Any, factor: Any) -> None:
    table[first:last] -= factor * matrix[at + pairs[first:last]]


def _multiply(lanes: Any, blocks: Any, array: Any, to: Any, x: Any, y: Any) -> Any:
    width = _width(lanes, blocks)
    array[to : to + width] = array[x : x + width] * array[y : y + width]
    return array[to : to + width].sum()


def _scale_row(lanes: Any, blocks: Any, array: Any, to: Any, x: Any, factor: Any) -> None:
    width = _width(lanes, blocks)
    array[to : to + width] = array[x : x + width] * factor


def _extent(array: Any, at: Any, vectors: Any) -> Any:
    values = array[at : at + LANES * vectors]
    return values[values != -np.inf].min(initial=np.float32(np.inf)), values.max()


def _exps(array: Any, at: Any, vectors: Any, shift: Any) -> None:
    values = array[at : at + LANES * vectors].astype(np.float64) - float(shift)
    array[at : at + LANES * vectors] = np.where(values < -87.3, 0, np.exp(values))


_INTERPRETED = (
    _score_rows, _take_from_rows, _combine, _row_products, _add_outer, _times_outer, _add_pairs, _take_pairs, _multiply,
    _scale_row, _extent, _exps,
)  # fmt: skip
# score_rows(lanes, blocks, table, stride, ids, first, last, factor, out, pads, to): out[to:] = factor times the sum of
# the rows of the table, which lie `stride` cells apart, numbered ids[first:last], + out[pads:].
# take_from_rows(…, row, at): subtract row[at:] from each of them.
# combine(lanes, blocks, matrix, at, count, factors, start, out, to): out[to:] = the sum of factors[start + k] times row
# k of the matrix at `at`, for k below count. row_products(…, row, place, out, to): out[to + k] = row k times
# row[place:]; writes whole groups of four. add_outer(…, factors, start, row, place): add factors[start + k] row[place:]
# to row k. times_outer(…, total, to): multiply row k by factors[start + k] row[place:], and add it to that of `total`.
# add_pairs(matrix, at, table, pairs, first, last, factor): add factor table[k] to matrix[at + pairs[k]], for k from
# first to last, whole chunks of 8. take_pairs: subtract factor matrix[at + pairs[k]] from table[k].
# multiply(lanes, blocks, array, to, x, y): the row at `to` = that at x times that at y; returns its sum.
# scale_row(lanes, blocks, array, to, x, factor): the row at `to` = factor times that at x.
# extent(array, at, vectors): least and largest of so many vectors; -inf, which fills rows up, is no least one.
# exps(array, at, vectors, shift): x becomes exp(x - shift), for x <= shift.
(
    score_rows, take_from_rows, combine, row_products, add_outer, times_outer, add_pairs, take_pairs, multiply,
    scale_row, extent, exps,
) = _INTERPRETED if nb.config.DISABLE_JIT else _compiled()  # fmt: skip
