"""Rows with one number a tag, as vectors of 8 floats in registers: what a chain of tags is reckoned with.

A row is `blocks` times as many vectors as the tuple `lanes` has entries; the cells beyond the last tag are filled up.
As in rows16.py a place is a number of cells from the beginning of an array, and nothing checks it. Tables of weights
are read and written by several workers at once: docs/races.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils, types

from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.simd.emit import LONG, VectorCode

LANES = 8
MOST = 8  # vectors of a block, whose sums stay in registers
CODE = VectorCode(LANES)


def layout(tags: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Rows of so many numbers: tuples as long as a block has vectors, and as a row has blocks."""
    vectors = -(-tags // LANES)
    blocks = -(-vectors // MOST)
    return (0,) * -(-vectors // blocks), (0,) * blocks


def all_rows(b: Any, lanes: Any, blocks: Any) -> Any:
    """Loops over the vectors of a row as blocks; gives the first cell of each block."""
    return CODE.rows_of(b, blocks, len(lanes))


def each_vector(b: Any, vectors: Any) -> Any:
    """Loops over so many vectors; gives the first cell of each."""
    return CODE.rows_of(b, vectors, 1)


def each_row(b: Any, first: Any, last: Any) -> Any:
    """Loops from a number to before another."""
    return cgutils.for_range_slice(b, first, last, LONG(1))


def width_of(lanes: Any, blocks: int) -> int:
    """Cells of a row."""
    return LANES * len(lanes) * blocks


def _row_at(b: Any, ids: Any, entry: Any, stride: Any) -> Any:
    return b.mul(b.sext(b.load(b.gep(ids, [entry])), LONG), stride)


# -- loops, each after the same in plain Python ---------------------------------------------------------------------


def _score_rows(lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, factor: Any, out: Any, pads: Any, to: Any) -> None:  # noqa: E501
    width = width_of(lanes, blocks)
    total = np.zeros(width, np.float32)
    for entry in ids[first:last].tolist():
        total += table[entry * stride : entry * stride + width]
    out[to : to + width] = total * factor + out[pads : pads + width]


@instruction(_score_rows)
def score_rows(b: Any, lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, factor: Any, out: Any, pads: Any, to: Any) -> None:  # noqa: E501
    """out[to:] = factor times the sum of the rows of the table, which lie `stride` cells apart, numbered
    ids[first:last], + out[pads:]."""
    sums = CODE.make_sums(b, len(lanes))
    factor = CODE.spread(b, factor)
    with all_rows(b, lanes, blocks) as (cell, _):
        CODE.clear(b, sums)
        with each_row(b, first, last) as (entry, _):
            row = b.add(_row_at(b, ids, entry, stride), cell)
            for vector, total in enumerate(sums):
                # RACE(stale read): docs/races.md
                b.store(b.fadd(b.load(total), CODE.load(b, table, row, vector)), total)
        for vector, total in enumerate(sums):
            pad = CODE.load(b, out, b.add(pads, cell), vector)
            score = CODE.multiply_add(b, b.load(total), factor, pad)
            CODE.store(b, score, out, b.add(to, cell), vector)


def _take_from_rows(lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, row: Any, at: Any) -> None:  # noqa: E501
    width = width_of(lanes, blocks)
    for entry in ids[first:last].tolist():
        table[entry * stride : entry * stride + width] -= row[at : at + width]


@instruction(_take_from_rows)
def take_from_rows(b: Any, lanes: Any, blocks: Any, table: Any, stride: Any, ids: Any, first: Any, last: Any, row: Any, at: Any) -> None:  # noqa: E501
    """Subtract row[at:] from each of the rows of the table that `score_rows` adds up."""
    with all_rows(b, lanes, blocks) as (cell, _):
        values = CODE.load_row(b, row, b.add(at, cell), len(lanes))
        with each_row(b, first, last) as (entry, _):
            place = b.add(_row_at(b, ids, entry, stride), cell)
            for vector, value in enumerate(values):
                left = b.fsub(CODE.load(b, table, place, vector), value)
                CODE.store(b, left, table, place, vector)  # RACE(lost update): docs/races.md


def _multiply(lanes: Any, blocks: Any, array: Any, to: Any, x: Any, y: Any) -> Any:
    width = width_of(lanes, blocks)
    array[to : to + width] = array[x : x + width] * array[y : y + width]
    return array[to : to + width].sum()


@instruction(_multiply, types.float32)
def multiply(b: Any, lanes: Any, blocks: Any, array: Any, to: Any, x: Any, y: Any) -> Any:
    """The row at `to` = that at x times that at y; returns its sum."""
    (total,) = CODE.make_sums(b, 1)
    CODE.clear(b, [total])
    with all_rows(b, lanes, blocks) as (cell, _):
        for vector in range(len(lanes)):
            left, right = (CODE.load(b, array, b.add(at, cell), vector) for at in (x, y))
            value = b.fmul(left, right)
            CODE.store(b, value, array, b.add(to, cell), vector)
            b.store(b.fadd(b.load(total), value), total)
    return CODE.sum(b, b.load(total))


def _scale_row(lanes: Any, blocks: Any, array: Any, to: Any, x: Any, factor: Any) -> None:
    width = width_of(lanes, blocks)
    array[to : to + width] = array[x : x + width] * factor


@instruction(_scale_row)
def scale_row(b: Any, lanes: Any, blocks: Any, array: Any, to: Any, x: Any, factor: Any) -> None:
    """The row at `to` = factor times that at x."""
    factor = CODE.spread(b, factor)
    with all_rows(b, lanes, blocks) as (cell, _):
        for vector in range(len(lanes)):
            value = CODE.load(b, array, b.add(x, cell), vector)
            CODE.store(b, b.fmul(value, factor), array, b.add(to, cell), vector)


def _extent(array: Any, at: Any, vectors: Any) -> Any:
    values = array[at : at + LANES * vectors]
    return values[values != -np.inf].min(initial=np.float32(np.inf)), values.max()


@instruction(_extent, types.UniTuple(types.float32, 2))
def extent(b: Any, array: Any, at: Any, vectors: Any) -> Any:
    """Least and largest of so many vectors; -inf, which fills rows up, is no least one."""

    def larger(x: Any, y: Any) -> Any:
        return b.select(b.fcmp_unordered(">", x, y), x, y)

    def smaller(x: Any, y: Any) -> Any:
        return b.select(b.fcmp_ordered("<", x, y), x, y)

    low, high = CODE.make_sums(b, 2)
    endless, none = CODE.each(float("inf")), CODE.each(-float("inf"))
    b.store(endless, low)
    b.store(none, high)
    with each_vector(b, vectors) as (cell, _):
        value = CODE.load(b, array, b.add(at, cell))
        top, least = b.load(high), b.load(low)
        b.store(larger(value, top), high)
        b.store(smaller(CODE.select(b, "==", value, none, endless, value), least), low)
    return [CODE.fold(b, b.load(low), smaller), CODE.fold(b, b.load(high), larger)]


def _exps(array: Any, at: Any, vectors: Any, shift: Any) -> None:
    values = array[at : at + LANES * vectors].astype(np.float64) - float(shift)
    array[at : at + LANES * vectors] = np.where(values < -87.3, 0, np.exp(values))


@instruction(_exps)
def exps(b: Any, array: Any, at: Any, vectors: Any, shift: Any) -> None:
    """x becomes exp(x - shift), for x <= shift."""
    shift = CODE.spread(b, shift)
    with each_vector(b, vectors) as (cell, _):
        place = b.add(at, cell)
        CODE.store(b, CODE.exp_of_less(b, b.fsub(CODE.load(b, array, place), shift)), array, place)
