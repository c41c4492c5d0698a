"""Skip-gram with negative sampling, on stretches of text.

Negatives are drawn once for the stretch and weighed, so that in the mean each pair has as many as were asked for, or
anew for every pair. A negative may be the very word of the pair, as in the expectation that the sum stands for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import inner
from hogwild.kernels.word2vec import passes
from hogwild.kernels.word2vec.passes import add, add_two, own_count, own_place, own_side, score, seen_by
from hogwild.kernels.word2vec.windows import pick_negatives, plan_of

_F = np.float32


class SkipGram(passes.WordTask):
    """Tell the neighbours of a word from random words, by the word."""


def plan_skip_gram(task: Any) -> Any:
    """Where a visit keeps its things."""
    picks = task.shared if task.shared > 0 else 2 * task.window * task.negatives
    return plan_of(task.stretch, task.window, picks, task.shared == 0, task.cells)


_plan = inner(plan_skip_gram)


@inner
def _own_negatives(task: Any) -> int:
    """Negatives of a centre at the most, where they are not shared."""
    return 0 if task.shared > 0 else 2 * task.window * task.negatives


@passes.look.of(SkipGram)
def _look(task: Any, text: Any, visit: int, weights: Any, scratch: Any, into: Any) -> Any:
    plan = _plan(task)
    ints, cells, each = scratch.ints, task.cells, _own_negatives(task)
    sides = passes.Sides(weights.inputs, 0, weights.outputs, len(weights.inputs))
    place = passes.begin_visit(task, plan, text, visit, weights, sides, 0, each, into, scratch)
    for i in range(place.centres):
        ints[plan.own + i] = plan.row + i * cells
        passes.fetch_own(task, text, plan, weights, i, scratch)
        if task.shared == 0:
            picks = plan.picks + i * plan.negatives
            pick_negatives(text, picks, own_count(task, plan, i, each, ints), cells, scratch)
    return place


# Scores first, then all that is made of them, then the sums of rows: each pass by itself keeps the pipes full.
@passes.compare.of(SkipGram)
def _compare(task: Any, centres: int, weights: Any, scratch: Any) -> None:
    plan = _plan(task)
    ints, window, each = scratch.ints, task.window, _own_negatives(task)
    for i in range(centres):
        low, seen = ints[plan.low + window + i], seen_by(plan, window + i, ints)
        score(task, ints[plan.own + i], weights.outputs, low, seen + 1, plan.band + i * plan.bands + low - i, scratch)
    if task.shared > 0:
        ints[plan.own + centres] = ints[plan.own + centres - 1]  # if their number is odd, the last one is its own twin
        for i in range(0, centres, 2):
            passes.score_two(task, plan, weights.outputs, task.shared, i, scratch)
    else:
        for i in range(centres):
            picks, count = plan.picks + i * plan.negatives, own_count(task, plan, i, each, ints)
            score(task, ints[plan.own + i], weights.outputs, picks, count, plan.negative + i * plan.negatives, scratch)


@passes.move.of(SkipGram)
def _move(task: Any, text: Any, place: Any, weights: Any, scratch: Any, into: Any) -> Any:
    plan = _plan(task)
    floats, ints, window, each = scratch.floats, scratch.ints, task.window, _own_negatives(task)
    first, centres, end = place
    loss = 0.0
    for i in range(centres):
        low, seen = ints[plan.low + window + i] - i, seen_by(plan, window + i, ints)
        loss += np.float64(passes.weigh_band(plan, i, low, window, low + seen, into.factor, floats))
        count, weight = task.shared, _F(seen * task.negatives) / _F(max(1, task.shared))
        if task.shared == 0:
            count, weight = own_count(task, plan, i, each, ints), _F(1)
        loss += np.float64(passes.weigh_negatives(plan, i, 0, count, weight, into.factor, floats))
    target = own_side(task, into.inputs, scratch.floats)
    for i in range(centres):
        to, low = own_place(task, plan, into, i, scratch), ints[plan.low + window + i]
        band = plan.band + i * plan.bands + low - i
        add(task, target, to, weights.outputs, low, band, 1, seen_by(plan, window + i, ints) + 1, scratch)
        if task.shared == 0:
            picks, count = plan.picks + i * plan.negatives, own_count(task, plan, i, each, ints)
            add(task, target, to, weights.outputs, picks, plan.negative + i * plan.negatives, 1, count, scratch)
    if task.shared > 0:
        for i in range(0, centres - 1, 2):
            one, two = own_place(task, plan, into, i, scratch), own_place(task, plan, into, i + 1, scratch)
            negative = plan.negative + i * plan.negatives
            add_two(
                task, target, one, two, weights.outputs, plan.picks, negative, negative + plan.negatives, 1,
                task.shared, scratch,
            )  # fmt: skip
        for i in range(centres - centres % 2, centres):
            to = own_place(task, plan, into, i, scratch)
            negative = plan.negative + i * plan.negatives
            add(task, target, to, weights.outputs, plan.picks, negative, 1, task.shared, scratch)
    passes.spread_neighbours(task, plan, into.outputs, into, place, centres, 0, scratch)
    number = centres + end - first
    passes.spread_negatives(task, plan, weights, into, 0, centres, each, number, scratch)
    passes.spread_own(task, text, plan, weights, into, centres, scratch)
    return task.scale * loss
