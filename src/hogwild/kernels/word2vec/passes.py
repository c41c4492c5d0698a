"""What skip-gram and CBOW have in common: scores of rows, the factors made of them, the sums of rows they move.

All scores of a visit are taken before anything of it is written, so that `fused`, which adds to the weights at once,
does the same as `gradient` and `apply`. See windows.py for the plan and kernels/simd/rows16.py for the layout of a row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner, kernel
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.simd.rows16 import LANES, TOGETHER, add_rows, copy_row, dots, prefetch_row, weigh
from hogwild.kernels.word2vec.windows import pick_negatives, pick_windows, pick_words

_F = np.float32


class WordTask(NamedTuple):
    """A SkipGram or a Cbow.

    lanes, blocks, cells: the layout of a row, see simd/rows16.py; stretch: words of a visit, before any is left out;
    shared: negatives drawn for a visit, an even number; 0: `negatives` new ones for each pair; scale: of the loss, to
    make its mean over visits one over words; fixed: windows are as wide as they may be; summed: the row of a centre is
    the sum of its neighbours, not the mean; depth: forks of a word at the most, where words hang in a tree.
    """

    lanes: tuple[int, ...]
    blocks: int
    cells: int
    stretch: int
    window: int
    negatives: int
    shared: int
    scale: float
    fixed: bool = False
    summed: bool = False
    depth: int = 0


class Into(NamedTuple):
    """Where changes go: to the weights (direct), or to rows of scratch, one after another from `first` on."""

    inputs: Any
    outputs: Any
    direct: bool
    factor: np.float32


class Sides(NamedTuple):
    """The tables that have the rows of centres and of their neighbours, and the number of the first row of each."""

    own: Any
    own_first: int
    others: Any
    others_first: int


class Place(NamedTuple):
    """Where the words of a visit stand: positions of the first neighbour and after the last, and centres between."""

    first: int
    centres: int
    end: int


@choice
def look(task: Any, text: Any, visit: int, weights: Any, scratch: Any, into: Any) -> Any:
    """Pick all that a visit looks at, and copy or sum up the centres' rows; returns its place."""


@choice
def compare(task: Any, centres: int, weights: Any, scratch: Any) -> None:
    """The scores of all centres."""


@choice
def move(task: Any, text: Any, place: Any, weights: Any, scratch: Any, into: Any) -> Any:
    """Make factors of the scores, and add to rows by them; returns the loss."""


# -- How a word has its row of inputs. Words without subwords have it as it stands: see subwords.py for the others -----


@choice
def fetch_own(task: Any, text: Any, plan: Any, weights: Any, i: int, scratch: Any) -> None:
    """Copy the row of centre i to its place in scratch."""


@choice
def own_side(task: Any, inputs: Any, floats: Any) -> Any:
    """The array that changes of centres' rows go to."""


@choice
def own_place(task: Any, plan: Any, into: Any, i: int, scratch: Any) -> Any:
    """Where in that array the changes of centre i go to."""


@choice
def spread_own(task: Any, text: Any, plan: Any, weights: Any, into: Any, centres: int, scratch: Any) -> None:
    """Hand on changes of centres' rows; their places in scratch are not needed any more."""


@choice
def fetch_near(task: Any, text: Any, plan: Any, weights: Any, place: Any, scratch: Any) -> None:
    """Make the rows of all positions, where they have to be made."""


@choice
def near_side(task: Any, inputs: Any, floats: Any) -> Any:
    """The array that has the rows of positions."""


@choice
def near_first(task: Any, plan: Any) -> Any:
    """Where in scratch.ints the places of these rows begin."""


@choice
def spread_near(
    task: Any, text: Any, plan: Any, weights: Any, into: Any, place: Any, number: int, scratch: Any
) -> None:
    """Change the rows of positions by the rows of centres; number: that of the first position's row of scratch."""


@fetch_own.of(WordTask)
def _fetch_own(task: Any, text: Any, plan: Any, weights: Any, i: int, scratch: Any) -> None:
    row, place = plan.row + i * task.cells, scratch.ints[task.window + i]
    copy_row(task.lanes, task.blocks, scratch.floats, row, weights.inputs, place)


@own_side.of(WordTask)
def _own_side(task: Any, inputs: Any, floats: Any) -> Any:
    return inputs


@own_place.of(WordTask)
def _own_place(task: Any, plan: Any, into: Any, i: int, scratch: Any) -> Any:
    return place_in(into, scratch.ints[task.window + i], i, task.cells)


@spread_own.of(WordTask)
def _spread_own(task: Any, text: Any, plan: Any, weights: Any, into: Any, centres: int, scratch: Any) -> None:
    return


@fetch_near.of(WordTask)
def _fetch_near(task: Any, text: Any, plan: Any, weights: Any, place: Any, scratch: Any) -> None:
    return


@near_side.of(WordTask)
def _near_side(task: Any, inputs: Any, floats: Any) -> Any:
    return inputs


@near_first.of(WordTask)
def _near_first(task: Any, plan: Any) -> Any:
    return 0


@spread_near.of(WordTask)
def _spread_near(
    task: Any, text: Any, plan: Any, weights: Any, into: Any, place: Any, number: int, scratch: Any
) -> None:
    spread_neighbours(task, plan, into.inputs, into, place, number, 0, scratch)


# -- A visit ----------------------------------------------------------------------------------------------------------


@inner
def learn(task: Any, text: Any, visit: int, weights: Any, scratch: Any, into: Any) -> Any:
    """One visit; returns the loss."""
    place = look(task, text, visit, weights, scratch, into)
    if place.centres == 0:
        return 0.0
    compare(task, place.centres, weights, scratch)
    return move(task, text, place, weights, scratch, into)


@gradient.of(WordTask)
def _gradient(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    return learn(task, samples, visit, weights, scratch, Into(scratch.grads, scratch.grads, False, _F(-1)))


@fused.of(WordTask)
def _fused(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    return learn(task, samples, visit, weights, scratch, Into(weights.inputs, weights.outputs, True, step.rate))


@apply.of(WordTask)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    words = len(weights.inputs)
    for k in range(scratch.count[0]):
        row = scratch.rows[k]
        table = weights.inputs if row < words else weights.outputs
        row = row if row < words else row - words
        for c in range(task.cells):
            table[row, c] -= step.rate * scratch.grads[k, c]  # RACE(lost update): docs/races.md


@inner
def apply_to_three(task: Any, weights: Any, third: Any, scratch: Any, step: Any) -> None:
    """As `apply`, where rows behind those of inputs and outputs are rows of a third table."""
    first, second = len(weights.inputs), len(weights.inputs) + len(weights.outputs)
    for k in range(scratch.count[0]):
        row = scratch.rows[k]
        table = weights.inputs if row < first else (weights.outputs if row < second else third)
        row -= 0 if row < first else (first if row < second else second)
        for c in range(task.cells):
            table[row, c] -= step.rate * scratch.grads[k, c]  # RACE(lost update): docs/races.md


@inner
def begin_visit(
    task: Any, plan: Any, text: Any, visit: int, weights: Any, sides: Any, skip: int, each: int, into: Any, scratch: Any
) -> Any:
    """Pick the words of a visit, the negatives that they share and the windows, and ask for the rows of all of them.

    skip: entries before the negatives; each: negatives of a centre where they are not shared. Rows of scratch that
    changes go to are named and set to zero. Returns its place.
    """
    cells, window, ints = task.cells, task.window, scratch.ints
    first, centres, end = pick_words(text, visit, task.stretch, window, cells, plan, scratch)
    if centres == 0:
        scratch.count[0] = 0
        return Place(first, centres, end)
    if task.shared > 0:
        picks = plan.picks + skip
        pick_negatives(text, picks, task.shared, cells, scratch)
        ask_for(task, weights.outputs, picks, picks + task.shared, scratch)
    ask_for(task, sides.others, first, end, scratch)
    ask_for(task, sides.own, window, window + centres, scratch)
    pick_windows(centres, window, task.fixed, plan, scratch)
    if not into.direct:
        number = name_rows(ints, scratch.rows, window, window + centres, cells, sides.own_first, 0)
        number = name_rows(ints, scratch.rows, first, end, cells, sides.others_first, number)
        scratch.grads[: number + (task.shared if task.shared > 0 else centres * each), :] = _F(0)
    return Place(first, centres, end)


@kernel
def place_in(into: Any, place: int, number: int, cells: int) -> int:
    return place if into.direct else number * cells


@inner
def score(task: Any, row: int, table: Any, first: int, count: int, to: int, scratch: Any) -> None:
    """Scores of a row of scratch with rows of a table; up to three more are written after them."""
    for k in range(0, count, 4):
        dots(task.lanes, task.blocks, scratch.floats, (row,), table, scratch.ints, first + k, scratch.floats, (to + k,))


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
    task: Any, plan: Any, weights: Any, into: Any, skip: int, centres: int, each: int, number: int, scratch: Any
) -> None:
    """Add to the rows of negatives what the centres' rows of scratch say; skip: entries before the negatives."""
    ints = scratch.ints
    if not into.direct:
        offset = len(weights.inputs)
        scratch.count[0] = name_negatives(task, plan, offset, skip, centres, each, number, scratch)
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


@choice
def own_count(task: Any, plan: Any, i: int, each: int, ints: Any) -> Any:
    """Negatives that centre i has for itself, of `each` at the most."""


@own_count.of(WordTask)
def _own_count(task: Any, plan: Any, i: int, each: int, ints: Any) -> Any:
    """So many a neighbour."""
    return min(each, seen_by(plan, task.window + i, ints) * task.negatives)


@inner
def spread_neighbours(
    task: Any, plan: Any, target: Any, into: Any, place: Any, number: int, base: int, scratch: Any
) -> None:
    """To the row of each position add the centres' rows of scratch, each by its factor in the band.

    base: where in scratch.ints the places of positions begin. The factors of one position for one centre after the
    other lie `bands - 1` apart.
    """
    window = task.window
    for at in range(place.first, place.end):
        begin = max(0, at - 2 * window)
        count = min(place.centres, at + 1) - begin
        if count > 0:
            to = place_in(into, scratch.ints[base + at], number + at - place.first, task.cells)
            factor = plan.band + begin * plan.bands + at - begin
            add(task, target, to, scratch.floats, plan.own + begin, factor, plan.bands - 1, count, scratch)


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
