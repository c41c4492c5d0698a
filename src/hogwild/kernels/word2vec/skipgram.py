"""Skip-gram with negative sampling, on stretches of text.

All scores of a visit are taken before anything of it is written, so that `fused`, which adds to the weights at once,
does the same as `gradient` and `apply`. Negatives are drawn once for the stretch and weighed, so that in the mean each
pair has as many as were asked for, or anew for every pair. A negative may be the very word of the pair, as in the
expectation that the sum stands for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import inner
from hogwild.kernels.loop.task import apply_of, fused_of, gradient_of
from hogwild.kernels.simd.rows16 import copy_row
from hogwild.kernels.word2vec.passes import (
    Into,
    add,
    add_two,
    ask_for,
    name_negatives,
    name_rows,
    own_count,
    place_in,
    score,
    score_two,
    seen_by,
    spread_negatives,
    spread_neighbours,
    weigh_band,
    weigh_negatives,
)
from hogwild.kernels.word2vec.windows import pick_negatives, pick_windows, pick_words, plan_of

_F = np.float32


class SkipGram(NamedTuple):
    """Tell the neighbours of a word from random words, by the word.

    lanes, blocks, cells: the layout of a row, see simd/rows16.py; stretch: words of a visit, before any is left out;
    shared: negatives drawn for a visit, an even number; 0: `negatives` new ones for each pair; scale: of the loss, to
    make its mean over visits one over words.
    """

    lanes: tuple[int, ...]
    blocks: int
    cells: int
    stretch: int
    window: int
    negatives: int
    shared: int
    scale: float


def plan_skip_gram(task: Any) -> Any:
    """Where a visit keeps its things."""
    picks = task.shared if task.shared > 0 else 2 * task.window * task.negatives
    return plan_of(task.stretch, task.window, picks, task.shared == 0, task.cells)


_plan = inner(plan_skip_gram)


@inner
def skip_gram(task: Any, text: Any, visit: int, weights: Any, scratch: Any, into: Any) -> Any:
    """One visit; returns the loss."""
    plan = _plan(task)
    floats, ints, cells, window = scratch.floats, scratch.ints, task.cells, task.window
    first, centres, end = pick_words(text, visit, task.stretch, window, cells, plan, scratch)
    if centres == 0:
        scratch.count[0] = 0
        return 0.0
    if task.shared > 0:
        pick_negatives(text, plan.picks, task.shared, cells, scratch)
        ask_for(task, weights.outputs, plan.picks, plan.picks + task.shared, scratch)
    ask_for(task, weights.outputs, first, end, scratch)
    ask_for(task, weights.inputs, window, window + centres, scratch)
    pick_windows(centres, window, plan, scratch)
    each = 0 if task.shared > 0 else 2 * window * task.negatives
    if not into.direct:
        number = name_rows(ints, scratch.rows, window, window + centres, cells, 0, 0)
        number = name_rows(ints, scratch.rows, first, end, cells, len(weights.inputs), number)
        scratch.grads[: number + (task.shared if task.shared > 0 else centres * each), :] = _F(0)
    for i in range(centres):
        row = plan.row + i * cells
        ints[plan.own + i] = row
        copy_row(task.lanes, task.blocks, floats, row, weights.inputs, ints[window + i])
    # Scores first, then all that is made of them, then the sums of rows: each pass by itself keeps the pipes full.
    for i in range(centres):
        low, seen = ints[plan.low + window + i], seen_by(plan, window + i, ints)
        score(task, ints[plan.own + i], weights.outputs, low, seen + 1, plan.band + i * plan.bands + low - i, scratch)
    if task.shared > 0:
        ints[plan.own + centres] = ints[plan.own + centres - 1]  # if their number is odd, the last one is its own twin
        for i in range(0, centres, 2):
            score_two(task, plan, weights.outputs, task.shared, i, scratch)
    else:
        for i in range(centres):
            picks, count = plan.picks + i * plan.negatives, own_count(task, plan, i, each, ints)
            pick_negatives(text, picks, count, cells, scratch)
            score(task, ints[plan.own + i], weights.outputs, picks, count, plan.negative + i * plan.negatives, scratch)
    loss = 0.0
    for i in range(centres):
        low, seen = ints[plan.low + window + i] - i, seen_by(plan, window + i, ints)
        loss += np.float64(weigh_band(plan, i, low, window, low + seen, into.factor, floats))
        count, weight = task.shared, _F(seen * task.negatives) / _F(max(1, task.shared))
        if task.shared == 0:
            count, weight = own_count(task, plan, i, each, ints), _F(1)
        loss += np.float64(weigh_negatives(plan, i, 0, count, weight, into.factor, floats))
    for i in range(centres):
        to, low = place_in(into, ints[window + i], i, cells), ints[plan.low + window + i]
        band = plan.band + i * plan.bands + low - i
        add(task, into.inputs, to, weights.outputs, low, band, 1, seen_by(plan, window + i, ints) + 1, scratch)
        if task.shared == 0:
            picks, count = plan.picks + i * plan.negatives, own_count(task, plan, i, each, ints)
            add(task, into.inputs, to, weights.outputs, picks, plan.negative + i * plan.negatives, 1, count, scratch)
    if task.shared > 0:
        for i in range(0, centres - 1, 2):
            one, two = place_in(into, ints[window + i], i, cells), place_in(into, ints[window + i + 1], i + 1, cells)
            negative = plan.negative + i * plan.negatives
            add_two(
                task, into.inputs, one, two, weights.outputs, plan.picks, negative, negative + plan.negatives, 1,
                task.shared, scratch,
            )  # fmt: skip
        for i in range(centres - centres % 2, centres):
            to = place_in(into, ints[window + i], i, cells)
            negative = plan.negative + i * plan.negatives
            add(task, into.inputs, to, weights.outputs, plan.picks, negative, 1, task.shared, scratch)
    spread_neighbours(task, plan, into.outputs, into, first, centres, end, centres, plan.own, scratch)
    number = centres + end - first
    spread_negatives(task, plan, into, 0, centres, each, number, scratch)
    if not into.direct:
        rows = len(weights.inputs)
        scratch.count[0] = name_negatives(task, plan, rows, 0, centres, each, number, scratch)
    return task.scale * loss


@gradient_of(SkipGram)
def _skip_gram_gradient(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    return skip_gram(task, samples, visit, weights, scratch, Into(scratch.grads, scratch.grads, False, _F(-1)))


@fused_of(SkipGram)
def _skip_gram_fused(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    into = Into(weights.inputs, weights.outputs, True, step.rate)
    return skip_gram(task, samples, visit, weights, scratch, into)


@apply_of(SkipGram)
def apply_rows(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    """For CBOW, too."""
    words = len(weights.inputs)
    for k in range(scratch.count[0]):
        row = scratch.rows[k]
        table = weights.inputs if row < words else weights.outputs
        row = row if row < words else row - words
        for c in range(task.cells):
            table[row, c] -= step.rate * scratch.grads[k, c]  # RACE(lost update): docs/races.md
