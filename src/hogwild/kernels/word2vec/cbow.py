"""CBOW with negative sampling, on stretches of text; as in skipgram.py all scores come before any change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import inner, kernel
from hogwild.kernels.loop.task import apply_of, fused_of, gradient_of
from hogwild.kernels.simd.rows16 import LANES, weigh
from hogwild.kernels.word2vec.passes import (
    Into,
    add,
    add_two,
    ask_for,
    name_negatives,
    name_rows,
    place_in,
    score,
    score_two,
    seen_by,
    spread_negatives,
    spread_neighbours,
    weigh_negatives,
)
from hogwild.kernels.word2vec.skipgram import apply_rows
from hogwild.kernels.word2vec.windows import pick_negatives, pick_windows, pick_words, plan_of

_F = np.float32


class Cbow(NamedTuple):
    """Tell a word from random words, by the mean of its neighbours. Fields as in SkipGram."""

    lanes: tuple[int, ...]
    blocks: int
    cells: int
    stretch: int
    window: int
    negatives: int
    shared: int
    scale: float


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
def cbow(task: Any, text: Any, visit: int, weights: Any, scratch: Any, into: Any) -> Any:
    """One visit; returns the loss. The gradient of a neighbour is that of the mean divided by their number."""
    plan = _plan(task)
    floats, ints, cells, window = scratch.floats, scratch.ints, task.cells, task.window
    first, centres, end = pick_words(text, visit, task.stretch, window, cells, plan, scratch)
    if centres == 0:
        scratch.count[0] = 0
        return 0.0
    skip = 2 if task.shared > 0 else 1
    if task.shared > 0:
        pick_negatives(text, plan.picks + skip, task.shared, cells, scratch)
        ask_for(task, weights.outputs, plan.picks + skip, plan.picks + skip + task.shared, scratch)
    ask_for(task, weights.inputs, first, end, scratch)
    ask_for(task, weights.outputs, window, window + centres, scratch)
    pick_windows(centres, window, plan, scratch)
    count = task.shared if task.shared > 0 else task.negatives
    if not into.direct:
        number = name_rows(ints, scratch.rows, window, window + centres, cells, len(weights.inputs), 0)
        number = name_rows(ints, scratch.rows, first, end, cells, 0, number)
        scratch.grads[: number + (task.shared if task.shared > 0 else centres * count), :] = _F(0)
    weight = _F(task.negatives) / _F(count)
    floats[plan.row : plan.row + centres * cells] = _F(0)
    floats[plan.more : plan.more + centres * cells] = _F(0)
    for i in range(centres):
        low, seen = ints[plan.low + window + i], seen_by(plan, window + i, ints)
        band, slot = plan.band + i * plan.bands, low - i
        ints[plan.own + i] = plan.row + i * cells
        for k in range(plan.bands):
            on = k >= slot and k <= slot + seen and k != window
            floats[band + k] = _F(1) / _F(seen) if on else _F(0)
        add(task, floats, plan.row + i * cells, weights.inputs, low, band + slot, 1, seen + 1, scratch)
    # A centre's list begins with the word itself; where negatives are shared, two centres share a list with both.
    if task.shared > 0:
        ints[plan.own + centres] = ints[plan.own + centres - 1]
        for i in range(0, centres, 2):
            _begin_list(plan, window, i, centres, ints)
            score_two(task, plan, weights.outputs, count + skip, i, scratch)
    else:
        for i in range(centres):
            picks = plan.picks + i * plan.negatives
            ints[picks] = ints[window + i]
            pick_negatives(text, picks + 1, count, cells, scratch)
            negative = plan.negative + i * plan.negatives
            score(task, ints[plan.own + i], weights.outputs, picks, count + 1, negative, scratch)
    for i in range(centres):
        # A word without neighbours is as good as certain.
        found = floats[plan.negative + i * plan.negatives + i % skip]
        floats[plan.hit + i] = found if seen_by(plan, window + i, ints) > 0 else _F(100)
    loss = 0.0
    for i in range(0, centres, LANES):
        loss += np.float64(weigh(floats, plan.hit + i, 0, -1, centres - 1 - i, _F(1), into.factor))
    for i in range(centres):
        known = weight if seen_by(plan, window + i, ints) > 0 else _F(0)
        loss += np.float64(weigh_negatives(plan, i, skip, count + skip, known, into.factor, floats))
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
                add_two(
                    task, floats, to, to + cells, weights.outputs, plan.picks, negative, other, 1, size, scratch
                )
            else:
                add(task, floats, to, weights.outputs, plan.picks, negative, 1, size, scratch)
    for i in range(centres):
        to = place_in(into, ints[window + i], i, cells)
        add(task, into.outputs, to, floats, plan.own + i, plan.hit + i, 1, 1, scratch)
    number = centres + end - first
    spread_negatives(task, plan, into, skip, centres, count, number, scratch)
    for i in range(centres):
        ints[plan.own + i] += plan.more - plan.row  # from here on the gradients of the means
    spread_neighbours(task, plan, into.inputs, into, first, centres, end, centres, plan.own, scratch)
    if not into.direct:
        rows = len(weights.inputs)
        scratch.count[0] = name_negatives(task, plan, rows, skip, centres, count, number, scratch)
    return task.scale * loss


@gradient_of(Cbow)
def _cbow_gradient(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    return cbow(task, samples, visit, weights, scratch, Into(scratch.grads, scratch.grads, False, _F(-1)))


@fused_of(Cbow)
def _cbow_fused(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    return cbow(task, samples, visit, weights, scratch, Into(weights.inputs, weights.outputs, True, step.rate))


apply_of(Cbow)(apply_rows)
