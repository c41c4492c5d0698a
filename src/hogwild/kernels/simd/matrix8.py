"""Matrices with a row for each former tag and a number for each tag, as rows of rows8.py: products, sums, pairs.

Arguments: the matrix of `count` rows at `at`; factors[start + k] for row k of it; one row more at row[place:].
Each loop stands after the same in plain Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils

from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.simd.emit import LONG
from hogwild.kernels.simd.rows8 import CODE, LANES, MOST, all_rows, each_row, width_of


def _cells_of(b: Any, lanes: Any, blocks: Any) -> Any:
    return b.mul(blocks, LONG(LANES * len(lanes)))


def _matrix(lanes: Any, blocks: int, array: Any, at: int, count: int) -> Any:
    width = width_of(lanes, blocks)
    return array.reshape(-1)[at : at + count * width].reshape(count, width)


def _combine(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, out: Any, to: Any) -> None:  # noqa: E501
    found = factors[start : start + count] @ _matrix(lanes, blocks, matrix, at, count)
    out[to : to + len(found)] = found


@instruction(_combine)
def combine(b: Any, lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, out: Any, to: Any) -> None:  # noqa: E501
    """out[to:] = the sum of the rows, each times its factor."""
    size, width = len(lanes), _cells_of(b, lanes, blocks)
    # Two sums a vector where there are registers for them: a sum has to wait for its last addition.
    ways = 2 if size <= MOST // 2 else 1
    sums = [CODE.make_sums(b, size) for _ in range(ways)]
    even = b.and_(count, LONG(-ways))
    with all_rows(b, lanes, blocks) as (cell, _):
        for totals in sums:
            CODE.clear(b, totals)

        def add(k: Any, totals: list[Any]) -> None:
            row = b.add(b.add(at, b.mul(k, width)), cell)
            factor = CODE.spread_at(b, factors, b.add(start, k))
            for vector, total in enumerate(totals):
                CODE.add_product(b, factor, CODE.load(b, matrix, row, vector), total)

        with cgutils.for_range_slice(b, LONG(0), even, LONG(ways)) as (k, _):
            for way, totals in enumerate(sums):
                add(b.add(k, LONG(way)), totals)
        with each_row(b, even, count) as (k, _):
            add(k, sums[0])
        for vector in range(size):
            total = b.load(sums[0][vector])
            if ways == 2:
                total = b.fadd(total, b.load(sums[1][vector]))
            CODE.store(b, total, out, b.add(to, cell), vector)


def _row_products(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, row: Any, place: Any, out: Any, to: Any) -> None:  # noqa: E501
    out[to : to + count] = _matrix(lanes, blocks, matrix, at, count) @ row[place : place + width_of(lanes, blocks)]


@instruction(_row_products)
def row_products(b: Any, lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, row: Any, place: Any, out: Any, to: Any) -> None:  # noqa: E501
    """out[to + k] = row k times row[place:]; writes whole groups of four."""
    width, sums = _cells_of(b, lanes, blocks), CODE.make_sums(b, 4)
    with cgutils.for_range_slice(b, LONG(0), count, LONG(4)) as (k, _):
        CODE.clear(b, sums)
        starts = [b.add(at, b.mul(b.add(k, LONG(n)), width)) for n in range(4)]
        with all_rows(b, lanes, blocks) as (cell, _):
            for vector in range(len(lanes)):
                mine = CODE.load(b, row, b.add(place, cell), vector)
                for start, total in zip(starts, sums, strict=True):
                    CODE.add_product(b, mine, CODE.load(b, matrix, b.add(start, cell), vector), total)
        CODE.store_four_sums(b, sums, out, b.add(to, k))


def _add_outer(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, row: Any, place: Any) -> None:  # noqa: E501
    values = row[place : place + width_of(lanes, blocks)]
    _matrix(lanes, blocks, matrix, at, count)[:] += np.outer(factors[start : start + count], values)


@instruction(_add_outer)
def add_outer(b: Any, lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, row: Any, place: Any) -> None:  # noqa: E501
    """Add to each row its factor times row[place:]."""
    width = _cells_of(b, lanes, blocks)
    with all_rows(b, lanes, blocks) as (cell, _):
        values = CODE.load_row(b, row, b.add(place, cell), len(lanes))
        with each_row(b, LONG(0), count) as (k, _):
            target = b.add(b.add(at, b.mul(k, width)), cell)
            factor = CODE.spread_at(b, factors, b.add(start, k))
            for vector, value in enumerate(values):
                total = CODE.multiply_add(b, factor, value, CODE.load(b, matrix, target, vector))
                CODE.store(b, total, matrix, target, vector)


def _times_outer(lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, row: Any, place: Any, total: Any, to: Any) -> None:  # noqa: E501
    values = row[place : place + width_of(lanes, blocks)]
    here = _matrix(lanes, blocks, matrix, at, count)
    here[:] *= np.outer(factors[start : start + count], values)
    _matrix(lanes, blocks, total, to, count)[:] += here


@instruction(_times_outer)
def times_outer(b: Any, lanes: Any, blocks: Any, matrix: Any, at: Any, count: Any, factors: Any, start: Any, row: Any, place: Any, total: Any, to: Any) -> None:  # noqa: E501
    """Multiply each row by its factor times row[place:], and add it to that of the matrix `total` at `to`."""
    width = _cells_of(b, lanes, blocks)
    with all_rows(b, lanes, blocks) as (cell, _):
        values = CODE.load_row(b, row, b.add(place, cell), len(lanes))
        with each_row(b, LONG(0), count) as (k, _):
            shift = b.add(b.mul(k, width), cell)
            factor = CODE.spread_at(b, factors, b.add(start, k))
            for vector, value in enumerate(values):
                here = CODE.load(b, matrix, b.add(at, shift), vector)
                here = b.fmul(here, b.fmul(factor, value))
                CODE.store(b, here, matrix, b.add(at, shift), vector)
                there = CODE.load(b, total, b.add(to, shift), vector)
                CODE.store(b, b.fadd(here, there), total, b.add(to, shift), vector)


# -- Pairs of tags, whole chunks of 8 of them -------------------------------------------------------------------------


def _add_pairs(matrix: Any, at: Any, table: Any, pairs: Any, first: Any, last: Any, factor: Any) -> None:
    np.add.at(matrix, at + pairs[first:last], factor * table[first:last])


@instruction(_add_pairs)
def add_pairs(b: Any, matrix: Any, at: Any, table: Any, pairs: Any, first: Any, last: Any, factor: Any) -> None:
    """Add factor table[k] to matrix[at + pairs[k]], for k from first to last."""
    start = b.gep(matrix, [at])
    with cgutils.for_range_slice(b, first, last, LONG(LANES)) as (entry, _):
        for lane in range(LANES):
            here = b.add(entry, LONG(lane))
            cell = b.gep(start, [b.sext(b.load(b.gep(pairs, [here])), LONG)])
            weight = b.fmul(b.load(b.gep(table, [here])), factor)  # RACE(stale read): docs/races.md
            b.store(b.fadd(b.load(cell), weight), cell)


def _take_pairs(matrix: Any, at: Any, table: Any, pairs: Any, first: Any, last: Any, factor: Any) -> None:
    table[first:last] -= factor * matrix[at + pairs[first:last]]


@instruction(_take_pairs)
def take_pairs(b: Any, matrix: Any, at: Any, table: Any, pairs: Any, first: Any, last: Any, factor: Any) -> None:
    """Subtract factor matrix[at + pairs[k]] from table[k], for k from first to last."""
    start, factor = b.gep(matrix, [at]), CODE.spread(b, b.fneg(factor))
    with cgutils.for_range_slice(b, first, last, LONG(LANES)) as (entry, _):
        value = CODE.gather(b, start, pairs, entry)
        left = CODE.multiply_add(b, value, factor, CODE.load(b, table, entry))
        CODE.store(b, left, table, entry)  # RACE(lost update): docs/races.md
