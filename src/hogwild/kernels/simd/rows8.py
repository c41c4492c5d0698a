"""Rows with one number a tag, as vectors of 8 floats in registers: what a chain of tags is reckoned with.

A row is `blocks` times as many vectors as the tuple `lanes` has entries; the cells beyond the last tag are filled up.
As in rows16.py a place is a number of cells from the beginning of an array, and nothing checks it. Tables of weights
are read and written by several workers at once: docs/races.md.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.simd.emit import LONG, VectorCode, data

LANES = 8
MOST = 8  # vectors of a block, whose sums stay in registers
CODE = VectorCode(LANES)


def layout(tags: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Rows of so many numbers: tuples as long as a block has vectors, and as a row has blocks."""
    vectors = -(-tags // LANES)
    blocks = -(-vectors // MOST)
    return (0,) * -(-vectors // blocks), (0,) * blocks


def _row_at(builder: Any, ids: Any, entry: Any, stride: Any) -> Any:
    return builder.mul(builder.sext(builder.load(builder.gep(ids, [entry])), LONG), stride)


def all_rows(builder: Any, lanes: Any, blocks: Any) -> Any:
    """Loops over the vectors of a row as blocks; gives the first cell of each block."""
    return CODE.rows_of(builder, blocks, lanes.count)


def _compiled() -> tuple[Any, ...]:
    long, code, number = types.int64, CODE, types.float32

    @intrinsic
    def score_rows(typing: Any, lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, factor: Any, out: Any, pads: Any, to: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, table, stride, ids, first, last, factor, out, pads, to = args
            kinds = signature.args
            table, ids, out = (data(context, builder, kinds[k], v) for k, v in ((2, table), (4, ids), (8, out)))
            sums = [cgutils.alloca_once(builder, code.vector) for _ in range(kinds[0].count)]
            factor = code.spread(builder, factor)
            with all_rows(builder, kinds[0], blocks) as (cell, _):
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
            with all_rows(builder, kinds[0], blocks) as (cell, _):
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
    def multiply(typing: Any, lanes: Any, blocks: Any, array: Any, to: Any, x: Any, y: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, array, to, x, y = args
            kinds = signature.args
            array = data(context, builder, kinds[2], array)
            total = cgutils.alloca_once_value(builder, code.zero)
            builder.store(code.zero, total)
            with all_rows(builder, kinds[0], blocks) as (cell, _):
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
            with all_rows(builder, kinds[0], blocks) as (cell, _):
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

    return score_rows, take_from_rows, multiply, scale_row, extent, exps


# -- the same, interpreted ------------------------------------------------------------------------------------------


def width_of(lanes: Any, blocks: int) -> int:
    """Cells of a row."""
    return LANES * len(lanes) * blocks


def _score_rows(lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, factor: Any, out: Any, pads: Any, to: Any) -> None:  # noqa: E501
    width = width_of(lanes, blocks)
    total = np.zeros(width, np.float32)
    for entry in ids[first:last].tolist():
        total += table[entry * stride : entry * stride + width]
    out[to : to + width] = total * factor + out[pads : pads + width]


def _take_from_rows(lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, row: Any, at: Any) -> None:  # noqa: E501
    width = width_of(lanes, blocks)
    for entry in ids[first:last].tolist():
        table[entry * stride : entry * stride + width] -= row[at : at + width]


def _multiply(lanes: Any, blocks: Any, array: Any, to: Any, x: Any, y: Any) -> Any:
    width = width_of(lanes, blocks)
    array[to : to + width] = array[x : x + width] * array[y : y + width]
    return array[to : to + width].sum()


def _scale_row(lanes: Any, blocks: Any, array: Any, to: Any, x: Any, factor: Any) -> None:
    width = width_of(lanes, blocks)
    array[to : to + width] = array[x : x + width] * factor


def _extent(array: Any, at: Any, vectors: Any) -> Any:
    values = array[at : at + LANES * vectors]
    return values[values != -np.inf].min(initial=np.float32(np.inf)), values.max()


def _exps(array: Any, at: Any, vectors: Any, shift: Any) -> None:
    values = array[at : at + LANES * vectors].astype(np.float64) - float(shift)
    array[at : at + LANES * vectors] = np.where(values < -87.3, 0, np.exp(values))


_INTERPRETED = (_score_rows, _take_from_rows, _multiply, _scale_row, _extent, _exps)
# score_rows(lanes, blocks, table, stride, ids, first, last, factor, out, pads, to): out[to:] = factor times the sum of
# the rows of the table, which lie `stride` cells apart, numbered ids[first:last], + out[pads:].
# take_from_rows(…, row, at): subtract row[at:] from each of them.
# multiply(lanes, blocks, array, to, x, y): the row at `to` = that at x times that at y; returns its sum.
# scale_row(lanes, blocks, array, to, x, factor): the row at `to` = factor times that at x.
# extent(array, at, vectors): least and largest of so many vectors; -inf, which fills rows up, is no least one.
# exps(array, at, vectors, shift): x becomes exp(x - shift), for x <= shift.
score_rows, take_from_rows, multiply, scale_row, extent, exps = (
    _INTERPRETED if nb.config.DISABLE_JIT else _compiled()
)
