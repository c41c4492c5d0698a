"""Text classifiers: the mean of the rows of a text's words and n-grams, and a linear layer above it.

A visit is one text: h = sum_e share_e row_e, where the shares are the values of its entries divided by the sum of their
absolute values, or by the root of `unit` times that sum, so that longer texts say more; the score of class k is
output_k . h + bias_k. All of h is read before anything is written.
Each row of the text moves along one and the same vector, sum_k slope_k output_k, by its share.
In scratch.floats stand h, that vector, room for one gradient, the slope of each score and the share of each entry; in
scratch.ints where rows begin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import NEXT, Floats
from hogwild.kernels.compiler.jit import choice, inner, open_kernel
from hogwild.kernels.compiler.prefetch import prefetch
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.optim.losses import Logistic, cost, slope, slopes
from hogwild.kernels.optim.penalties import Free, Penalty, weight_at
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Momentum, Sgd, begin_row, stride, unpenalized, update
from hogwild.kernels.simd.rows16 import LANES, add_rows, copy_row, move_rows
from hogwild.kernels.simd.rules8 import EIGHT, fixes_of, move_eight
from hogwild.kernels.sparse.samples import (
    LINE,
    BinaryEntries,
    Entries,
    count_of,
    entries_of,
    id_of,
    value_of,
)

_AHEAD = 512  # rows of the next text that are asked for while this one's are written: more do not stay in the cache


class TextTask(NamedTuple):
    """Update rule and penalties of a text classifier.

    lanes, blocks: the layout of a row, see simd/rows16.py; a row has LANES * len(lanes) * blocks weights.
    outputs: one for two classes, else one a class. decay: of the rows that a text has, at each visit.
    unit: 0 for the mean of the rows; else a text of so many entries has the mean, and others the sum divided by the
    root of this times their number.
    loss: of several outputs.
    """

    rule: Any
    penalty: Any
    lanes: tuple[int, ...]
    blocks: int
    outputs: int
    decay: np.float32
    unit: np.float32 = np.float32(0)
    loss: Any = Logistic()


class TextWeights(NamedTuple):
    """Rows of `table`, one a feature, and of `outputs`, one a score, its bias last; flat, with slots of the rule."""

    table: Floats
    outputs: Floats


class Text(NamedTuple):
    """How many entries a text has, where their shares begin in scratch.floats, and the step from one to the next."""

    size: int
    shares: int
    every: int


class Part(NamedTuple):
    """The entries first … last - 1 of a text, shares as in Text; decay: times importance.

    room: where scratch.ints says which place of scratch.floats is for a gradient.
    """

    first: int
    last: int
    room: int
    shares: int
    every: int
    decay: np.float32


@inner
def row_width(task: Any) -> int:
    """Weights in a row of the table. A compile-time constant where there is one block."""
    return LANES * len(task.lanes) * task.blocks


# -- reading --------------------------------------------------------------------------------------------------------


@inner
def part_of(unit: Any, total: Any) -> Any:
    """What an entry of value 1 counts in a text whose values have this sum."""
    if total <= np.float32(0):
        return np.float32(0)
    return np.float32(1) / (total if unit == np.float32(0) else np.sqrt(unit * total))


@choice
def take_shares(entries: Any, floats: Any, first: int, unit: Any) -> Any:
    """Put the share of each entry in the mean into floats[first:]; returns the step from one to the next."""


@take_shares.of(BinaryEntries)
def _equal_shares(entries: Any, floats: Any, first: int, unit: Any) -> Any:
    floats[first] = part_of(unit, np.float32(max(1, count_of(entries))))
    return np.int64(0)


@take_shares.of(Entries)
def _shares_of_values(entries: Any, floats: Any, first: int, unit: Any) -> Any:
    total = np.float32(0)
    for e in range(count_of(entries)):
        total += abs(value_of(entries, e))
    part = part_of(unit, total)
    for e in range(count_of(entries)):
        floats[first + e] = value_of(entries, e) * part
    return np.int64(1)


@choice
def take_mean(penalty: Any, task: Any, weights: Any, scratch: Any, text: Any, elapsed: Any) -> None:
    """Add the rows of a text, each times its share, to scratch.floats[:width]."""


@take_mean.of(Free)
def _plain_mean(penalty: Any, task: Any, weights: Any, scratch: Any, text: Any, elapsed: Any) -> None:
    floats, ints = scratch.floats, scratch.ints
    # RACE(stale read): docs/races.md
    add_rows(
        task.lanes, task.blocks, floats, (0,), weights.table, ints, 0, floats, (text.shares,), text.every, text.size
    )


@take_mean.of(Penalty)
def _paid_mean(penalty: Any, task: Any, weights: Any, scratch: Any, text: Any, elapsed: Any) -> None:
    width = row_width(task)
    last = stride(task.rule, penalty, width) - 1
    for e in range(text.size):
        base, share = scratch.ints[e], scratch.floats[text.shares + e * text.every]
        for c in range(width):
            found = weight_at(penalty, task.rule, weights.table, base + c, width, base + last, elapsed)
            scratch.floats[c] += share * found


@inner
def read_text(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, elapsed: Any) -> Any:
    """Fill scratch with all that is made of one text but importance; returns its loss and where its shares are."""
    width, outputs = row_width(task), task.outputs
    floats, ints = scratch.floats, scratch.ints
    entries = entries_of(samples, visit)
    cells = stride(task.rule, task.penalty, width)
    for e in range(count_of(entries)):
        ints[e] = id_of(entries, e) * cells
    first = 3 * width
    shares = first + outputs
    text = Text(count_of(entries), shares, take_shares(entries, floats, shares, task.unit))
    for c in range(2 * width):
        floats[c] = np.float32(0)
    take_mean(task.penalty, task, weights, scratch, text, elapsed)
    size = stride(task.rule, Free(), width + 1)
    for k in range(outputs):
        total = weights.outputs[k * size + width]  # RACE(stale read): docs/races.md
        for c in range(width):
            total += floats[c] * weights.outputs[k * size + c]  # RACE(stale read): docs/races.md
        floats[first + k] = total
    target = samples.targets[visit]
    if outputs == 1:
        score = floats[first]
        loss = cost(Logistic(), score, target)
        floats[first] = slope(Logistic(), score, target)
    else:
        loss = slopes(task.loss, floats[first:shares], outputs, target)
    for k in range(outputs):
        grad = floats[first + k]
        for c in range(width):
            floats[width + c] += grad * weights.outputs[k * size + c]  # RACE(stale read): docs/races.md
    return loss, text


# -- gradient and apply ---------------------------------------------------------------------------------------------


@gradient.of(TextTask)
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    width = row_width(task)
    floats, grads = scratch.floats, scratch.grads
    loss, text = read_text(task, samples, visit, weights, scratch, scratch.clock[0])
    importance = samples.importance[visit]
    entries = entries_of(samples, visit)
    last = stride(task.rule, task.penalty, width) - 1
    for e in range(text.size):
        scratch.rows[e] = id_of(entries, e)
        share, base = importance * floats[text.shares + e * text.every], scratch.ints[e]
        for c in range(width):
            # RACE(stale read): docs/races.md
            own = weight_at(task.penalty, task.rule, weights.table, base + c, width, base + last, scratch.clock[0])
            grads[e, c] = share * floats[width + c] + importance * task.decay * own
        grads[e, width] = np.float32(0)
    features = len(weights.table) // (last + 1)
    for k in range(task.outputs):
        scratch.rows[text.size + k] = features + k
        grad = importance * floats[3 * width + k]
        for c in range(width):
            grads[text.size + k, c] = grad * floats[c]
        grads[text.size + k, width] = grad
    scratch.count[0] = text.size + task.outputs
    return loss * importance


@apply.of(TextTask)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    width = row_width(task)
    cells = stride(task.rule, task.penalty, width)
    features = len(weights.table) // cells
    for e in range(scratch.count[0]):
        row: Any = np.int64(scratch.rows[e])
        if row < features:
            count = begin_row(task.rule, task.penalty, weights.table, row, width, step)
            for c in range(width):
                update(task.rule, weights.table, row * cells + c, width, scratch.grads[e, c], step.rate, count)
        else:
            move_output(task, weights, row - features, np.float32(1), scratch.grads[e], step)


@inner
def move_output(task: Any, weights: Any, k: Any, grad: Any, along: Any, step: Any) -> None:
    """Update the weights and the bias of one score, which no penalty shrinks, against the gradient grad * along."""
    width = row_width(task) + 1
    base = k * stride(task.rule, Free(), width)
    count = begin_row(task.rule, Free(), weights.outputs, k, width, step)
    for c in range(width):
        update(unpenalized(task.rule), weights.outputs, base + c, width, grad * along[c], step.rate, count)


# -- both in one ----------------------------------------------------------------------------------------------------


@choice
def factor_of(rule: Any, step: Any, importance: Any) -> Any:
    """What the vector along which rows move is multiplied by, once a text."""


factor_of.of(Sgd)(lambda rule, step, importance: -step.rate * importance)
factor_of.of(Momentum, Adagrad, Adam, Ftrl)(lambda rule, step, importance: importance)


@choice
def move_part(rule: Any, task: Any, weights: Any, scratch: Any, step: Any, part: Any) -> None:
    """Move the rows of some entries of a text."""


@move_part.of(Sgd)
def _move_along(rule: Any, task: Any, weights: Any, scratch: Any, step: Any, part: Any) -> None:
    width = row_width(task)
    cells = stride(rule, task.penalty, width)
    for e in range(part.first, part.last):
        begin_row(rule, task.penalty, weights.table, scratch.ints[e] // cells, width, step)
    keep = np.float32(1) - step.rate * part.decay
    floats, start = scratch.floats, part.shares + part.first * part.every
    move_rows(
        task.lanes, task.blocks, weights.table, scratch.ints, part.first, part.last - part.first, keep,
        floats, width, floats, start, part.every,
    )  # fmt: skip


@move_part.of(Momentum, Adagrad, Adam, Ftrl)
def _move_by_rule(rule: Any, task: Any, weights: Any, scratch: Any, step: Any, part: Any) -> None:
    width = row_width(task)
    cells = stride(rule, task.penalty, width)
    floats, ints, own = scratch.floats, scratch.ints, 2 * width
    for e in range(part.first, part.last):
        base, share = ints[e], part.shares + e * part.every
        count = begin_row(rule, task.penalty, weights.table, base // cells, width, step)
        # The gradient: decay times the row, and its share of the vector.
        copy_row(task.lanes, task.blocks, floats, own, weights.table, base)
        move_rows(task.lanes, task.blocks, floats, ints, part.room, 1, part.decay, floats, width, floats, share, 0)
        fixes = fixes_of(rule, count)
        for c in range(0, width, EIGHT):
            move_eight(rule, (), weights.table, base + c, width, floats, own + c, step.rate, fixes)


@inner
def ask_for_rows(task: Any, samples: Any, table: Any, visit: int, first: int, last: int) -> None:
    """Ask for the rows of the entries first … last - 1 of a text, as far as it has them."""
    cells = stride(task.rule, task.penalty, row_width(task))
    entries = entries_of(samples, visit)
    for e in range(first, min(last, count_of(entries))):
        for line in range(0, cells, LINE):
            prefetch(table, id_of(entries, e) * cells + line)


@fused.of(TextTask)
def _fused(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    width, floats = row_width(task), scratch.floats
    loss, text = read_text(task, samples, visit, weights, scratch, step.elapsed)
    importance = samples.importance[visit]
    factor = factor_of(task.rule, step, importance)
    for c in range(width, 2 * width):
        floats[c] *= factor
    decay, upcoming = importance * task.decay, scratch.count[NEXT]
    scratch.ints[text.size] = 2 * width
    for first in range(0, text.size, LINE):
        part = Part(first, min(first + LINE, text.size), text.size, text.shares, text.every, decay)
        move_part(task.rule, task, weights, scratch, step, part)
        # Texts are visited in random order: few of the next one's rows are in the cache.
        ask_for_rows(task, samples, weights.table, upcoming, first, first + LINE)
    ask_for_rows(task, samples, weights.table, upcoming, (text.size + LINE - 1) // LINE * LINE, _AHEAD)
    floats[width] = np.float32(1)  # h is followed by the input of the bias
    for k in range(task.outputs):
        move_output(task, weights, k, importance * floats[3 * width + k], floats, step)
    return loss * importance


# -- predicting -----------------------------------------------------------------------------------------------------


@open_kernel
def mean_rows(samples: Any, table: Any, means: Any, first: int, unit: Any) -> None:
    """The rows of the samples from `first` on put together, as many as there is room for; unit: see TextTask."""
    for i in range(len(means)):
        entries = entries_of(samples, first + i)
        for c in range(means.shape[1]):
            means[i, c] = np.float32(0)
        total = np.float32(0)
        for e in range(count_of(entries)):
            value, row = value_of(entries, e), id_of(entries, e)
            total += abs(value)
            for c in range(means.shape[1]):
                means[i, c] += value * table[row, c]
        part = part_of(unit, total)
        for c in range(means.shape[1]):
            means[i, c] *= part
