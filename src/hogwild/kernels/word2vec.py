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
from hogwild.kernels.lanes import LANES, TOGETHER, add_rows, copy_row, dots, prefetch_row, weigh
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
    """Where a visit keeps its things: beside the negatives there are the words themselves."""
    picks = 2 + (task.shared if task.shared > 0 else task.negatives)
    return plan_of(task.stretch, task.window, picks, task.shared == 0, task.cells)


@kernel
def _place(into: Any, place: int, number: int, cells: int) -> int:
    return place if into.direct else number * cells


@kernel
def _scores(task: Any, row: int, table: Any, first: int, count: int, to: int, scratch: Any) -> None:
    """Scores of a row of scratch with rows of a table; up to three more are written after them."""
    for k in range(0, count, 4):
        dots(
            task.lanes, task.blocks, scratch.floats, (row,), table, scratch.ints, first + k, scratch.floats, (to + k,)
        )


@kernel
def _score_two(task: Any, plan: Any, table: Any, count: int, i: int, scratch: Any) -> None:
    """Scores of the centres i and i + 1 with `count` rows that they share."""
    floats, ints = scratch.floats, scratch.ints
    one, two = ints[plan.own + i], ints[plan.own + i + 1]
    to = plan.rival + i * plan.rivals
    if TOGETHER == 2:
        for k in range(0, count, 4):
            tos = (to + k, to + plan.rivals + k)
            dots(task.lanes, task.blocks, floats, (one, two), table, ints, plan.picks + k, floats, tos)
        return
    _scores(task, one, table, plan.picks, count, to, scratch)
    _scores(task, two, table, plan.picks, count, to + plan.rivals, scratch)


@kernel
def _add(
    task: Any, target: Any, to: int, source: Any, first: int, start: int, stride: int, count: int, scratch: Any
) -> None:
    """To a row add `count` rows of source, named by scratch.ints, times numbers of scratch.floats."""
    floats, ints = scratch.floats, scratch.ints
    add_rows(task.lanes, task.blocks, target, (to,), source, ints, first, floats, (start,), stride, count)


@kernel
def _add_two(
    task: Any, target: Any, one: int, two: int, source: Any, first: int, start: int, other: int, stride: int,
    count: int, scratch: Any,
) -> None:  # fmt: skip
    """As `_add`, for two rows, which may be the same one, that differ in where their numbers start."""
    floats, ints = scratch.floats, scratch.ints
    if TOGETHER == 2 and one != two:
        starts = (start, other)
        add_rows(task.lanes, task.blocks, target, (one, two), source, ints, first, floats, starts, stride, count)
        return
    _add(task, target, one, source, first, start, stride, count, scratch)
    _add(task, target, two, source, first, other, stride, count, scratch)


@kernel
def _weigh_band(plan: Any, i: int, low: int, middle: int, high: int, factor: Any, floats: Any) -> Any:
    """Scores of neighbours, in slots low to high without the middle, become the factors of their rows."""
    loss = _F(0)
    for k in range(0, plan.bands, LANES):
        loss += weigh(floats, plan.band + i * plan.bands + k, low - k, middle - k, high - k, _F(1), factor)
    return loss


@kernel
def _weigh_rivals(plan: Any, i: int, first: int, last: int, weight: Any, factor: Any, floats: Any) -> Any:
    """Scores of negatives, first to last, become the factors of their rows."""
    loss = _F(0)
    for k in range(0, last, LANES):
        at = plan.rival + i * plan.rivals + k
        loss += weigh(floats, at, first - k, -1, last - 1 - k, _F(-1), -factor * weight)
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
    ints = scratch.ints
    if task.shared > 0:
        for k in range(0, task.shared - 1, 2):
            place, start = plan.picks + skip + k, plan.rival + skip + k
            one = _place(into, ints[place], number + k, task.cells)
            two = _place(into, ints[place + 1], number + k + 1, task.cells)
            _add_two(
                task, into.outputs, one, two, scratch.floats, plan.own, start, start + 1, plan.rivals, centres, scratch
            )
        return
    for i in range(centres):
        for k in range(skip, skip + _own(task, plan, i, each, ints)):
            to = _place(into, ints[plan.picks + i * plan.rivals + k], number, task.cells)
            _add(
                task, into.outputs, to, scratch.floats, plan.own + i, plan.rival + i * plan.rivals + k, 1, 1, scratch
            )
            number += 1


@kernel
def _seen(plan: Any, at: int, ints: Any) -> int:
    """Neighbours in the window of the centre at a position."""
    return ints[plan.high + at] - ints[plan.low + at]


@kernel
def _own(task: Any, plan: Any, i: int, each: int, ints: Any) -> int:
    """Negatives that centre i has for itself, of `each` at the most: so many a neighbour."""
    at = task.window + i
    return min(each, _seen(plan, at, ints) * task.negatives)


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
            _add(task, target, to, scratch.floats, source + begin, factor, plan.bands - 1, count, scratch)


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
    # Scores first, then all that is made of them, then the sums of rows: each pass by itself keeps the pipes full.
    for i in range(centres):
        low, seen = ints[plan.low + window + i], _seen(plan, window + i, ints)
        _scores(task, ints[plan.own + i], weights.outputs, low, seen + 1, plan.band + i * plan.bands + low - i, scratch)
    if task.shared > 0:
        ints[plan.own + centres] = ints[plan.own + centres - 1]  # if their number is odd, the last one is its own twin
        for i in range(0, centres, 2):
            _score_two(task, plan, weights.outputs, task.shared, i, scratch)
    else:
        for i in range(centres):
            picks, count = plan.picks + i * plan.rivals, _own(task, plan, i, each, ints)
            pick_negatives(text, picks, count, cells, scratch)
            _scores(task, ints[plan.own + i], weights.outputs, picks, count, plan.rival + i * plan.rivals, scratch)
    loss = 0.0
    for i in range(centres):
        low, seen = ints[plan.low + window + i] - i, _seen(plan, window + i, ints)
        loss += np.float64(_weigh_band(plan, i, low, window, low + seen, into.factor, floats))
        count, weight = task.shared, _F(seen * task.negatives) / _F(max(1, task.shared))
        if task.shared == 0:
            count, weight = _own(task, plan, i, each, ints), _F(1)
        loss += np.float64(_weigh_rivals(plan, i, 0, count, weight, into.factor, floats))
    for i in range(centres):
        to, low = _place(into, ints[window + i], i, cells), ints[plan.low + window + i]
        band = plan.band + i * plan.bands + low - i
        _add(task, into.inputs, to, weights.outputs, low, band, 1, _seen(plan, window + i, ints) + 1, scratch)
        if task.shared == 0:
            picks, count = plan.picks + i * plan.rivals, _own(task, plan, i, each, ints)
            _add(task, into.inputs, to, weights.outputs, picks, plan.rival + i * plan.rivals, 1, count, scratch)
    if task.shared > 0:
        for i in range(0, centres - 1, 2):
            one, two = _place(into, ints[window + i], i, cells), _place(into, ints[window + i + 1], i + 1, cells)
            rival = plan.rival + i * plan.rivals
            _add_two(
                task, into.inputs, one, two, weights.outputs, plan.picks, rival, rival + plan.rivals, 1, task.shared,
                scratch,
            )  # fmt: skip
        for i in range(centres - centres % 2, centres):
            to = _place(into, ints[window + i], i, cells)
            rival = plan.rival + i * plan.rivals
            _add(task, into.inputs, to, weights.outputs, plan.picks, rival, 1, task.shared, scratch)
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


@kernel
def _begin_list(plan: Any, window: int, i: int, centres: int, ints: Any) -> None:
    """The words of centres i and i + 1 at the beginning of the list of rows that they share."""
    ints[plan.picks] = ints[window + i]
    ints[plan.picks + 1] = ints[window + min(i + 1, centres - 1)]


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
    skip = 2 if task.shared > 0 else 1
    if task.shared > 0:
        pick_negatives(text, plan.picks + skip, task.shared, cells, scratch)
        _ask_for(task, weights.outputs, plan.picks + skip, plan.picks + skip + task.shared, scratch)
    _ask_for(task, weights.inputs, first, end, scratch)
    _ask_for(task, weights.outputs, window, window + centres, scratch)
    pick_windows(centres, window, plan, scratch)
    count = task.shared if task.shared > 0 else task.negatives
    if not into.direct:
        number = _rows_of(ints, scratch.rows, window, window + centres, cells, len(weights.inputs), 0)
        number = _rows_of(ints, scratch.rows, first, end, cells, 0, number)
        scratch.grads[: number + (task.shared if task.shared > 0 else centres * count), :] = _F(0)
    weight = _F(task.negatives) / _F(count)
    floats[plan.row : plan.row + centres * cells] = _F(0)
    floats[plan.more : plan.more + centres * cells] = _F(0)
    for i in range(centres):
        low, seen = ints[plan.low + window + i], _seen(plan, window + i, ints)
        band, slot = plan.band + i * plan.bands, low - i
        ints[plan.own + i] = plan.row + i * cells
        for k in range(plan.bands):
            on = k >= slot and k <= slot + seen and k != window
            floats[band + k] = _F(1) / _F(seen) if on else _F(0)
        _add(task, floats, plan.row + i * cells, weights.inputs, low, band + slot, 1, seen + 1, scratch)
    # A centre's list begins with the word itself; where negatives are shared, two centres share a list with both.
    if task.shared > 0:
        ints[plan.own + centres] = ints[plan.own + centres - 1]
        for i in range(0, centres, 2):
            _begin_list(plan, window, i, centres, ints)
            _score_two(task, plan, weights.outputs, count + skip, i, scratch)
    else:
        for i in range(centres):
            picks = plan.picks + i * plan.rivals
            ints[picks] = ints[window + i]
            pick_negatives(text, picks + 1, count, cells, scratch)
            rival = plan.rival + i * plan.rivals
            _scores(task, ints[plan.own + i], weights.outputs, picks, count + 1, rival, scratch)
    for i in range(centres):
        # A word without neighbours is as good as certain.
        score = floats[plan.rival + i * plan.rivals + i % skip]
        floats[plan.hit + i] = score if _seen(plan, window + i, ints) > 0 else _F(100)
    loss = 0.0
    for i in range(0, centres, LANES):
        loss += np.float64(weigh(floats, plan.hit + i, 0, -1, centres - 1 - i, _F(1), into.factor))
    for i in range(centres):
        known = weight if _seen(plan, window + i, ints) > 0 else _F(0)
        loss += np.float64(_weigh_rivals(plan, i, skip, count + skip, known, into.factor, floats))
        floats[plan.rival + i * plan.rivals + i % skip] = floats[plan.hit + i]
    for i in range(0, centres, skip):
        to, rival = plan.more + i * cells, plan.rival + i * plan.rivals
        if task.shared == 0:
            picks = plan.picks + i * plan.rivals
            _add(task, floats, to, weights.outputs, picks, rival, 1, count + 1, scratch)
        else:
            _begin_list(plan, window, i, centres, ints)
            size = count + skip
            if i + 1 < centres:
                other = rival + plan.rivals
                _add_two(
                    task, floats, to, to + cells, weights.outputs, plan.picks, rival, other, 1, size, scratch
                )
            else:
                _add(task, floats, to, weights.outputs, plan.picks, rival, 1, size, scratch)
    for i in range(centres):
        to = _place(into, ints[window + i], i, cells)
        _add(task, into.outputs, to, floats, plan.own + i, plan.hit + i, 1, 1, scratch)
    number = centres + end - first
    _spread_negatives(task, plan, into, skip, centres, count, number, scratch)
    for i in range(centres):
        ints[plan.own + i] += plan.more - plan.row  # from here on the gradients of the means
    _spread_neighbours(task, plan, into.inputs, into, first, centres, end, centres, plan.own, scratch)
    if not into.direct:
        rows = len(weights.inputs)
        scratch.count[0] = _name_negatives(task, plan, rows, skip, centres, count, number, scratch)
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
