"""CBOW with negative sampling, on stretches of text."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner, kernel
from hogwild.kernels.simd.rows16 import LANES, weigh
from hogwild.kernels.word2vec import passes
from hogwild.kernels.word2vec.passes import add, add_two, place_in, score, seen_by
from hogwild.kernels.word2vec.windows import pick_negatives, plan_of

_F = np.float32


class Cbow(passes.WordTask):
    """Tell a word from random words, by the mean or the sum of its neighbours."""


def plan_cbow(task: Any) -> Any:
    """Where a visit keeps its things: beside the negatives there are the words themselves."""
    picks = 2 + (task.shared if task.shared > 0 else task.negatives)
    return plan_of(task.stretch, task.window, picks, task.shared == 0, task.cells)


_plan = inner(plan_cbow)


@kernel
def _begin_list(plan: Any, window: int, i: int, centres: int, ints: Any) -> None:
    """The words of centres i and i + 1 at the beginning of the list of rows that they share."""
    ints[plan.picks] = ints[window + i]
    ints[plan.picks + 1] = ints[window + min(i + 1, centres - 1)]


@inner
def _sizes(task: Any) -> Any:
    """Negatives of a centre, and entries before them: the words themselves."""
    return (task.shared, 2) if task.shared > 0 else (task.negatives, 1)


@choice
def gather(task: Any, text: Any, plan: Any, place: Any, weights: Any, scratch: Any) -> None:
    """Make the rows of all centres, and set those of their gradients to zero."""


@choice
def rows_in(task: Any, plan: Any, at: int, ints: Any) -> Any:
    """Of how many rows that of the centre at a position is the mean; 0: it is not looked for."""


@rows_in.of(Cbow)
def _rows_in(task: Any, plan: Any, at: int, ints: Any) -> Any:
    return seen_by(plan, at, ints)


@gather.of(Cbow)
def gather_near(task: Any, text: Any, plan: Any, place: Any, weights: Any, scratch: Any) -> None:
    """A centre's row is the mean of its neighbours, or their sum."""
    passes.fetch_near(task, text, plan, weights, place, scratch)
    near, base = passes.near_side(task, weights.inputs, scratch.floats), passes.near_first(task, plan)
    floats, ints, cells, window = scratch.floats, scratch.ints, task.cells, task.window
    floats[plan.row : plan.row + place.centres * cells] = _F(0)
    floats[plan.more : plan.more + place.centres * cells] = _F(0)
    for i in range(place.centres):
        low, seen = ints[plan.low + window + i], seen_by(plan, window + i, ints)
        band, slot = plan.band + i * plan.bands, low - i
        ints[plan.own + i] = plan.row + i * cells
        share = _F(1) if task.summed else _F(1) / _F(max(1, rows_in(task, plan, window + i, ints)))
        for k in range(plan.bands):
            on = k >= slot and k <= slot + seen and k != window
            floats[band + k] = share if on else _F(0)
        add(task, floats, plan.row + i * cells, near, base + low, band + slot, 1, seen + 1, scratch)


@passes.look.of(Cbow)
def _look(task: Any, text: Any, visit: int, weights: Any, scratch: Any, into: Any) -> Any:
    plan = _plan(task)
    ints, cells, window = scratch.ints, task.cells, task.window
    count, skip = _sizes(task)
    sides = passes.Sides(weights.outputs, len(weights.inputs), weights.inputs, 0)
    place = passes.begin_visit(task, plan, text, visit, weights, sides, skip, count, into, scratch)
    gather(task, text, plan, place, weights, scratch)
    if task.shared == 0:
        for i in range(place.centres):
            picks = plan.picks + i * plan.negatives
            ints[picks] = ints[window + i]
            pick_negatives(text, picks + 1, count, cells, scratch)
    return place


@passes.compare.of(Cbow)
def _compare(task: Any, centres: int, weights: Any, scratch: Any) -> None:
    """A centre's list begins with the word itself; where negatives are shared, two centres share a list with both."""
    plan, ints = _plan(task), scratch.ints
    count, skip = _sizes(task)
    if task.shared > 0:
        ints[plan.own + centres] = ints[plan.own + centres - 1]
        for i in range(0, centres, 2):
            _begin_list(plan, task.window, i, centres, ints)
            passes.score_two(task, plan, weights.outputs, count + skip, i, scratch)
    else:
        for i in range(centres):
            picks, negative = plan.picks + i * plan.negatives, plan.negative + i * plan.negatives
            score(task, ints[plan.own + i], weights.outputs, picks, count + 1, negative, scratch)


@passes.move.of(Cbow)
def _move(task: Any, text: Any, place: Any, weights: Any, scratch: Any, into: Any) -> Any:
    """The gradient of a neighbour is that of the mean divided by their number; of a sum, that of the sum."""
    plan = _plan(task)
    floats, ints, cells, window = scratch.floats, scratch.ints, task.cells, task.window
    first, centres, end = place
    count, skip = _sizes(task)
    weight = _F(task.negatives) / _F(count)
    for i in range(centres):
        # A word without neighbours is as good as certain.
        found = floats[plan.negative + i * plan.negatives + i % skip]
        floats[plan.hit + i] = found if rows_in(task, plan, window + i, ints) > 0 else _F(100)
    loss = 0.0
    for i in range(0, centres, LANES):
        loss += np.float64(weigh(floats, plan.hit + i, 0, -1, centres - 1 - i, _F(1), into.factor))
    for i in range(centres):
        known = weight if rows_in(task, plan, window + i, ints) > 0 else _F(0)
        loss += np.float64(passes.weigh_negatives(plan, i, skip, count + skip, known, into.factor, floats))
        floats[plan.negative + i * plan.negatives + i % skip] = floats[plan.hit + i]
    for i in range(0, centres, skip):
        to, negative = plan.more + i * cells, plan.negative + i * plan.negatives
        if task.shared == 0:
            picks = plan.picks + i * plan.negatives
            add(task, floats, to, weights.outputs, picks, negative, 1, count + 1, scratch)
        else:
            _begin_list(plan, window, i, centres, ints)
            size = count + skip
            if i + 1 < centres:
                other = negative + plan.negatives
                add_two(task, floats, to, to + cells, weights.outputs, plan.picks, negative, other, 1, size, scratch)
            else:
                add(task, floats, to, weights.outputs, plan.picks, negative, 1, size, scratch)
    for i in range(centres):
        to = place_in(into, ints[window + i], i, cells)
        add(task, into.outputs, to, floats, plan.own + i, plan.hit + i, 1, 1, scratch)
    number = centres + end - first
    passes.spread_negatives(task, plan, weights, into, skip, centres, count, number, scratch)
    for i in range(centres):
        ints[plan.own + i] += plan.more - plan.row  # from here on the gradients of the means
    passes.spread_near(task, text, plan, weights, into, place, centres, scratch)
    return task.scale * loss
