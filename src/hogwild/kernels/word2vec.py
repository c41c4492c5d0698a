"""Word vectors by negative sampling: skip-gram and CBOW, on stretches of text.

All scores of a visit are taken before anything of it is written, so that `fused`, which adds to the weights at once,
does the same as `gradient` and `apply`. Negatives are drawn once for the stretch and weighed, so that in the mean each
pair has as many as were asked for, or anew for every pair. A negative may be the very word of the pair, as in the
expectation that the sum stands for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.jit import kernel
from hogwild.kernels.lanes import add_rows, copy_row, dots, prefetch_row
from hogwild.kernels.logistic import chance_against, surprise
from hogwild.kernels.task import apply_of, fused_of, gradient_of
from hogwild.kernels.windows import pick_negatives, pick_windows, pick_words, plan_of

_F = np.float32


class SkipGram(NamedTuple):
    """Tell the neighbours of a word from random words, by the word.

    lanes, blocks, cells: the layout of a row, see lanes.py; stretch: words of a visit, before any is left out;
    shared: negatives drawn for a visit; 0: `negatives` new ones for each pair; scale: of the loss, to make its mean
    over visits one over words.
    """

    lanes: tuple[int, ...]
    blocks: int
    cells: int
    stretch: int
    window: int
    negatives: int
    shared: int
    scale: float


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


class Into(NamedTuple):
    """Where changes go: to the weights (direct), or to rows of scratch, one after another from `first` on."""

    inputs: Any
    outputs: Any
    direct: bool
    factor: np.float32


# -- parts ----------------------------------------------------------------------------------------------------------


@kernel
def plan_skip_gram(task: Any) -> Any:
    """Where a visit keeps its things."""
    picks = task.shared if task.shared > 0 else 2 * task.window * task.negatives
    return plan_of(task.stretch, task.window, picks, task.shared == 0, task.cells)


@kernel
def plan_cbow(task: Any) -> Any:
    """Where a visit keeps its things: beside the negatives there is the word itself."""
    picks = 1 + (task.shared if task.shared > 0 else task.negatives)
    return plan_of(task.stretch, task.window, picks, task.shared == 0, task.cells)


@kernel
def _place(into: Any, place: int, number: int, cells: int) -> int:
    return place if into.direct else number * cells


@kernel
def _scores(task: Any, row: int, table: Any, first: int, count: int, to: int, scratch: Any) -> None:
    """Scores of a row of scratch with rows of a table; up to three more are written after them."""
    for k in range(0, count, 4):
        dots(task.lanes, task.blocks, scratch.floats, row, table, scratch.ints, first + k, scratch.floats, to + k)


@kernel
def _near(floats: Any, first: int, size: int, low: int, middle: int, high: int, factor: Any) -> Any:
    """Scores of neighbours, in slots low to high without the middle, become the factors of their rows."""
    loss = _F(0)
    for k in range(size):
        score = floats[first + k]
        on = k >= low and k <= high and k != middle
        loss += surprise(score) if on else _F(0)
        floats[first + k] = factor * chance_against(score) if on else _F(0)
    return loss


@kernel
def _far(floats: Any, first: int, count: int, weight: Any, factor: Any) -> Any:
    """Scores of negatives become the factors of their rows."""
    loss = _F(0)
    for k in range(first, first + count):
        score = floats[k]
        loss += surprise(-score)
        floats[k] = -factor * weight * chance_against(-score)
    return weight * loss


@kernel
def _ask_for(task: Any, table: Any, first: int, last: int, scratch: Any) -> None:
    for at in range(first, last):
        prefetch_row(task.lanes, task.blocks, table, scratch.ints[at])


@kernel
def _spread_negatives(
    task: Any, plan: Any, into: Any, skip: int, centres: int, each: int, number: int, scratch: Any
) -> None:
    """Add to the rows of negatives what the centres' rows of scratch say; skip: entries before the negatives."""
    floats, ints = scratch.floats, scratch.ints
    if task.shared > 0:
        for k in range(skip, skip + task.shared):
            to = _place(into, ints[plan.picks + k], number + k - skip, task.cells)
            first = plan.rival + k
            add_rows(
                task.lanes, task.blocks, into.outputs, to, floats, ints, plan.own, floats, first, plan.rivals, centres
            )
        return
    for i in range(centres):
        for k in range(skip, skip + _own(task, plan, i, each, ints)):
            factor = plan.rival + i * plan.rivals + k
            to = _place(into, ints[plan.picks + i * plan.rivals + k], number, task.cells)
            add_rows(task.lanes, task.blocks, into.outputs, to, floats, ints, plan.own + i, floats, factor, 1, 1)
            number += 1


@kernel
def _own(task: Any, plan: Any, i: int, each: int, ints: Any) -> int:
    """Negatives that centre i has for itself, of `each` at the most: so many a neighbour."""
    at = task.window + i
    return min(each, (ints[plan.high + at] - ints[plan.low + at]) * task.negatives)


@kernel
def _spread_neighbours(
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
            to = _place(into, scratch.ints[at], number + at - first, task.cells)
            factor = plan.band + begin * plan.bands + at - begin
            add_rows(
                task.lanes, task.blocks, target, to, scratch.floats, scratch.ints, source + begin, scratch.floats,
                factor, plan.bands - 1, count,
            )  # fmt: skip


@kernel
def _rows_of(ints: Any, rows: Any, first: int, last: int, cells: int, offset: int, number: int) -> int:
    """Write down which rows of weights the rows of scratch belong to; returns the next number."""
    for at in range(first, last):
        rows[number] = np.int32(offset + ints[at] // cells)
        number += 1
    return number


# -- skip-gram ------------------------------------------------------------------------------------------------------


@kernel
def skip_gram(task: Any, text: Any, visit: int, weights: Any, scratch: Any, into: Any) -> Any:
    """One visit; returns the loss."""
    plan = plan_skip_gram(task)
    floats, ints, cells, window = scratch.floats, scratch.ints, task.cells, task.window
    first, centres, end = pick_words(text, visit, task.stretch, window, cells, plan, scratch)
    if centres == 0:
        scratch.count[0] = 0
        return 0.0
    if task.shared > 0:
        pick_negatives(text, plan.picks, task.shared, cells, scratch)
        _ask_for(task, weights.outputs, plan.picks, plan.picks + task.shared, scratch)
    _ask_for(task, weights.outputs, first, end, scratch)
    _ask_for(task, weights.inputs, window, window + centres, scratch)
    pick_windows(centres, window, plan, scratch)
    each = 0 if task.shared > 0 else 2 * window * task.negatives
    if not into.direct:
        number = _rows_of(ints, scratch.rows, window, window + centres, cells, 0, 0)
        number = _rows_of(ints, scratch.rows, first, end, cells, len(weights.inputs), number)
        scratch.grads[: number + (task.shared if task.shared > 0 else centres * each), :] = _F(0)
    for i in range(centres):
        row = plan.row + i * cells
        ints[plan.own + i] = row
        copy_row(task.lanes, task.blocks, floats, row, weights.inputs, ints[window + i])
    loss = 0.0
    for i in range(centres):
        at = window + i
        low, high = ints[plan.low + at], ints[plan.high + at]
        band, rival = plan.band + i * plan.bands, plan.rival + i * plan.rivals
        row = ints[plan.own + i]
        seen = high - low
        slot = low - i  # in the band: low - at + window
        _scores(task, row, weights.outputs, low, seen + 1, band + slot, scratch)
        loss += np.float64(_near(floats, band, plan.bands, slot, window, slot + seen, into.factor))
        picks, count, weight = plan.picks, task.shared, _F(seen * task.negatives) / _F(max(1, task.shared))
        if task.shared == 0:
            picks, count, weight = plan.picks + i * plan.rivals, seen * task.negatives, _F(1)
            pick_negatives(text, picks, count, cells, scratch)
        _scores(task, row, weights.outputs, picks, count, rival, scratch)
        loss += np.float64(_far(floats, rival, count, weight, into.factor))
        to = _place(into, ints[at], i, cells)
        add_rows(task.lanes, task.blocks, into.inputs, to, weights.outputs, ints, low, floats, band + slot, 1, seen + 1)
        add_rows(task.lanes, task.blocks, into.inputs, to, weights.outputs, ints, picks, floats, rival, 1, count)
    _spread_neighbours(task, plan, into.outputs, into, first, centres, end, centres, plan.own, scratch)
    number = centres + end - first
    _spread_negatives(task, plan, into, 0, centres, each, number, scratch)
    if not into.direct:
        rows = len(weights.inputs)
        scratch.count[0] = _name_negatives(task, plan, rows, 0, centres, each, number, scratch)
    return task.scale * loss


@kernel
def _name_negatives(
    task: Any, plan: Any, offset: int, skip: int, centres: int, each: int, number: int, scratch: Any
) -> int:
    """As `_rows_of`, for negatives."""
    first = plan.picks + skip
    if task.shared > 0:
        return _rows_of(scratch.ints, scratch.rows, first, first + task.shared, task.cells, offset, number)
    for i in range(centres):
        last = first + _own(task, plan, i, each, scratch.ints)
        number = _rows_of(scratch.ints, scratch.rows, first, last, task.cells, offset, number)
        first += plan.rivals
    return number


# -- CBOW -----------------------------------------------------------------------------------------------------------


@kernel
def cbow(task: Any, text: Any, visit: int, weights: Any, scratch: Any, into: Any) -> Any:
    """One visit; returns the loss. The gradient of a neighbour is that of the mean divided by their number."""
    plan = plan_cbow(task)
    floats, ints, cells, window = scratch.floats, scratch.ints, task.cells, task.window
    first, centres, end = pick_words(text, visit, task.stretch, window, cells, plan, scratch)
    if centres == 0:
        scratch.count[0] = 0
        return 0.0
    if task.shared > 0:
        pick_negatives(text, plan.picks + 1, task.shared, cells, scratch)
        _ask_for(task, weights.outputs, plan.picks + 1, plan.picks + 1 + task.shared, scratch)
    _ask_for(task, weights.inputs, first, end, scratch)
    _ask_for(task, weights.outputs, window, window + centres, scratch)
    pick_windows(centres, window, plan, scratch)
    count = task.shared if task.shared > 0 else task.negatives
    if not into.direct:
        number = _rows_of(ints, scratch.rows, window, window + centres, cells, len(weights.inputs), 0)
        number = _rows_of(ints, scratch.rows, first, end, cells, 0, number)
        scratch.grads[: number + (task.shared if task.shared > 0 else centres * count), :] = _F(0)
    weight = _F(task.negatives) / _F(count)
    size = plan.more - plan.row
    floats[plan.row : plan.row + 2 * size] = _F(0)
    loss = 0.0
    for i in range(centres):
        at = window + i
        low, high = ints[plan.low + at], ints[plan.high + at]
        band, rival = plan.band + i * plan.bands, plan.rival + i * plan.rivals
        picks = plan.picks if task.shared > 0 else plan.picks + i * plan.rivals
        row = plan.row + i * cells
        ints[plan.own + i] = row
        seen, slot = high - low, low - i
        for k in range(plan.bands):
            on = k >= slot and k <= slot + seen and k != window
            floats[band + k] = _F(1) / _F(seen) if on else _F(0)
        ints[picks] = ints[at]
        if task.shared == 0:
            pick_negatives(text, picks + 1, count, cells, scratch)
        if seen == 0:
            for k in range(plan.rivals):
                floats[rival + k] = _F(0)
            continue
        add_rows(task.lanes, task.blocks, floats, row, weights.inputs, ints, low, floats, band + slot, 1, seen + 1)
        _scores(task, row, weights.outputs, picks, count + 1, rival, scratch)
        loss += np.float64(surprise(floats[rival]))
        floats[rival] = into.factor * chance_against(floats[rival])
        loss += np.float64(_far(floats, rival + 1, count, weight, into.factor))
        add_rows(
            task.lanes, task.blocks, floats, row + size, weights.outputs, ints, picks, floats, rival, 1, count + 1
        )
    for i in range(centres):
        to = _place(into, ints[window + i], i, cells)
        factor = plan.rival + i * plan.rivals
        add_rows(task.lanes, task.blocks, into.outputs, to, floats, ints, plan.own + i, floats, factor, 1, 1)
    number = centres + end - first
    _spread_negatives(task, plan, into, 1, centres, count, number, scratch)
    for i in range(centres):
        ints[plan.own + i] += size  # from here on the gradients of the means
    _spread_neighbours(task, plan, into.inputs, into, first, centres, end, centres, plan.own, scratch)
    if not into.direct:
        rows = len(weights.inputs)
        scratch.count[0] = _name_negatives(task, plan, rows, 1, centres, count, number, scratch)
    return task.scale * loss


# -- the seam -------------------------------------------------------------------------------------------------------


@gradient_of(SkipGram)
def _skip_gram_gradient(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    return skip_gram(task, samples, visit, weights, scratch, Into(scratch.grads, scratch.grads, False, _F(-1)))


@fused_of(SkipGram)
def _skip_gram_fused(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    into = Into(weights.inputs, weights.outputs, True, step.rate)
    return skip_gram(task, samples, visit, weights, scratch, into)


@gradient_of(Cbow)
def _cbow_gradient(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    return cbow(task, samples, visit, weights, scratch, Into(scratch.grads, scratch.grads, False, _F(-1)))


@fused_of(Cbow)
def _cbow_fused(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    return cbow(task, samples, visit, weights, scratch, Into(weights.inputs, weights.outputs, True, step.rate))


@apply_of(SkipGram, Cbow)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    words = len(weights.inputs)
    for k in range(scratch.count[0]):
        row = scratch.rows[k]
        table = weights.inputs if row < words else weights.outputs
        row = row if row < words else row - words
        for c in range(task.cells):
            table[row, c] -= step.rate * scratch.grads[k, c]  # RACE(lost update): docs/races.md
