"""What skip-gram and CBOW have in common: scores of rows, the factors made of them, the sums of rows they move.

`task` is a SkipGram or a Cbow; see windows.py for the plan and kernels/simd/rows16.py for the layout of a row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import inner, kernel
from hogwild.kernels.simd.rows16 import LANES, TOGETHER, add_rows, dots, prefetch_row, weigh

_F = np.float32


class Into(NamedTuple):
    """Where changes go: to the weights (direct), or to rows of scratch, one after another from `first` on."""

    inputs: Any
    outputs: Any
    direct: bool
    factor: np.float32


@kernel
def place_in(into: Any, place: int, number: int, cells: int) -> int:
    return place if into.direct else number * cells


@inner
def score(task: Any, row: int, table: Any, first: int, count: int, to: int, scratch: Any) -> None:
    """Scores of a row of scratch with rows of a table; up to three more are written after them."""
    for k in range(0, count, 4):
        dots(
            task.lanes, task.blocks, scratch.floats, (row,), table, scratch.ints, first + k, scratch.floats, (to + k,)
        )


@inner
def score_two(task: Any, plan: Any, table: Any, count: int, i: int, scratch: Any) -> None:
    """Scores of the centres i and i + 1 with `count` rows that they share."""
    floats, ints = scratch.floats, scratch.ints
    one, two = ints[plan.own + i], ints[plan.own + i + 1]
    to = plan.negative + i * plan.negatives
    if TOGETHER == 2:
        for k in range(0, count, 4):
            tos = (to + k, to + plan.negatives + k)
            dots(task.lanes, task.blocks, floats, (one, two), table, ints, plan.picks + k, floats, tos)
        return
    score(task, one, table, plan.picks, count, to, scratch)
    score(task, two, table, plan.picks, count, to + plan.negatives, scratch)


@inner
def add(
    task: Any, target: Any, to: int, source: Any, first: int, start: int, stride: int, count: int, scratch: Any
) -> None:
    """To a row add `count` rows of source, named by scratch.ints, times numbers of scratch.floats."""
    floats, ints = scratch.floats, scratch.ints
    add_rows(task.lanes, task.blocks, target, (to,), source, ints, first, floats, (start,), stride, count)


@inner
def add_two(
    task: Any, target: Any, one: int, two: int, source: Any, first: int, start: int, other: int, stride: int,
    count: int, scratch: Any,
) -> None:  # fmt: skip
    """As `add`, for two rows, which may be the same one, that differ in where their numbers start."""
    floats, ints = scratch.floats, scratch.ints
    if TOGETHER == 2 and one != two:
        starts = (start, other)
        add_rows(task.lanes, task.blocks, target, (one, two), source, ints, first, floats, starts, stride, count)
        return
    add(task, target, one, source, first, start, stride, count, scratch)
    add(task, target, two, source, first, other, stride, count, scratch)


@kernel
def weigh_band(plan: Any, i: int, low: int, middle: int, high: int, factor: Any, floats: Any) -> Any:
    """Scores of neighbours, in slots low to high without the middle, become the factors of their rows."""
    loss = _F(0)
    for k in range(0, plan.bands, LANES):
        loss += weigh(floats, plan.band + i * plan.bands + k, low - k, middle - k, high - k, _F(1), factor)
    return loss


@kernel
def weigh_negatives(plan: Any, i: int, first: int, last: int, weight: Any, factor: Any, floats: Any) -> Any:
    """Scores of negatives, first to last, become the factors of their rows."""
    loss = _F(0)
    for k in range(0, last, LANES):
        at = plan.negative + i * plan.negatives + k
        loss += weigh(floats, at, first - k, -1, last - 1 - k, _F(-1), -factor * weight)
    return weight * loss


@inner
def ask_for(task: Any, table: Any, first: int, last: int, scratch: Any) -> None:
    for at in range(first, last):
        prefetch_row(task.lanes, task.blocks, table, scratch.ints[at])


@inner
def spread_negatives(
    task: Any, plan: Any, into: Any, skip: int, centres: int, each: int, number: int, scratch: Any
) -> None:
    """Add to the rows of negatives what the centres' rows of scratch say; skip: entries before the negatives."""
    ints = scratch.ints
    if task.shared > 0:
        for k in range(0, task.shared - 1, 2):
            place, start = plan.picks + skip + k, plan.negative + skip + k
            one = place_in(into, ints[place], number + k, task.cells)
            two = place_in(into, ints[place + 1], number + k + 1, task.cells)
            add_two(
                task, into.outputs, one, two, scratch.floats, plan.own, start, start + 1, plan.negatives, centres,
                scratch,
            )  # fmt: skip
        return
    for i in range(centres):
        for k in range(skip, skip + own_count(task, plan, i, each, ints)):
            to = place_in(into, ints[plan.picks + i * plan.negatives + k], number, task.cells)
            at = plan.negative + i * plan.negatives + k
            add(task, into.outputs, to, scratch.floats, plan.own + i, at, 1, 1, scratch)
            number += 1


@kernel
def seen_by(plan: Any, at: int, ints: Any) -> int:
    """Neighbours in the window of the centre at a position."""
    return ints[plan.high + at] - ints[plan.low + at]


@inner
def own_count(task: Any, plan: Any, i: int, each: int, ints: Any) -> int:
    """Negatives that centre i has for itself, of `each` at the most: so many a neighbour."""
    at = task.window + i
    return min(each, seen_by(plan, at, ints) * task.negatives)


@inner
def spread_neighbours(
    task: Any, plan: Any, target: Any, into: Any, first: int, centres: int, end: int, number: int, source: int,
    scratch: Any,
) -> None:  # fmt: skip
    """To the row of each position add the centres' rows of scratch (from `source` on), each by its factor in the band.

    The factors of one position for one centre after the other lie `bands - 1` apart.
    """
    window = task.window
    for at in range(first, end):
        begin = max(0, at - 2 * window)
        count = min(centres, at + 1) - begin
        if count > 0:
            to = place_in(into, scratch.ints[at], number + at - first, task.cells)
            factor = plan.band + begin * plan.bands + at - begin
            add(task, target, to, scratch.floats, source + begin, factor, plan.bands - 1, count, scratch)


@kernel
def name_rows(ints: Any, rows: Any, first: int, last: int, cells: int, offset: int, number: int) -> int:
    """Write down which rows of weights the rows of scratch belong to; returns the next number."""
    for at in range(first, last):
        rows[number] = np.int32(offset + ints[at] // cells)
        number += 1
    return number


@inner
def name_negatives(
    task: Any, plan: Any, offset: int, skip: int, centres: int, each: int, number: int, scratch: Any
) -> int:
    """As `name_rows`, for negatives."""
    first = plan.picks + skip
    if task.shared > 0:
        return name_rows(scratch.ints, scratch.rows, first, first + task.shared, task.cells, offset, number)
    for i in range(centres):
        last = first + own_count(task, plan, i, each, scratch.ints)
        number = name_rows(scratch.ints, scratch.rows, first, last, task.cells, offset, number)
        first += plan.negatives
    return number
