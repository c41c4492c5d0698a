"""Linear models with one output: the score of a row is the bias plus the sum of weight times value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import NEXT, Floats
from hogwild.kernels.compiler.jit import choice, inner, open_kernel
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.optim.losses import cost, slope, slopes
from hogwild.kernels.optim.penalties import Free, Penalty, flow, owes, pace, stamps, weight_at
from hogwild.kernels.optim.rules import begin_row, stride, unpenalized, update, visits_of
from hogwild.kernels.sparse.samples import LINE, count_of, entries_of, id_of, prefetch_entries, value_of


class LinearTask(NamedTuple):
    """Loss, update rule and penalty of a linear model; `bias` is 1, or 0 for a model without one."""

    loss: Any
    rule: Any
    penalty: Any
    bias: np.float32


class LinearWeights(NamedTuple):
    """Rows of `table` (one a feature) and `bias` (one), each with the slots of the update rule; flat."""

    table: Floats
    bias: Floats


@inner
def score_row(task: Any, entries: Any, weights: Any, elapsed: Any) -> Any:
    """The score of one sample under the weights as they stand."""
    cells = stride(task.rule, task.penalty, 1)
    total = np.float32(0)
    for k in range(count_of(entries)):
        base = id_of(entries, k) * cells
        last = base + cells - 1
        total += value_of(entries, k) * weight_at(task.penalty, task.rule, weights.table, base, 1, last, elapsed)
    return total + task.bias * weights.bias[0]  # RACE(stale read): docs/races.md


@gradient.of(LinearTask)
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    entries = entries_of(samples, visit)
    score = score_row(task, entries, weights, scratch.clock[0])
    grad = slope(task.loss, score, samples.targets[visit]) * samples.importance[visit]
    count = count_of(entries)
    for k in range(count):
        scratch.rows[k] = id_of(entries, k)
        scratch.grads[k, 0] = grad * value_of(entries, k)
    scratch.rows[count] = len(weights.table) // stride(task.rule, task.penalty, 1)
    scratch.grads[count, 0] = grad * task.bias
    scratch.count[0] = count + 1
    return cost(task.loss, score, samples.targets[visit]) * samples.importance[visit]


@apply.of(LinearTask)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    features = len(weights.table) // stride(task.rule, task.penalty, 1)
    for k in range(scratch.count[0]):
        row = np.int64(scratch.rows[k])
        if row < features:
            move(task, weights, row, scratch.grads[k, 0], step)
        else:
            move_bias(task, weights, scratch.grads[k, 0], step)


@inner
def move(task: Any, weights: Any, row: Any, grad: Any, step: Any) -> None:
    """Update the weight of one feature."""
    count = begin_row(task.rule, task.penalty, weights.table, row, 1, step)
    update(task.rule, weights.table, row * stride(task.rule, task.penalty, 1), 1, grad, step.rate, count)


@inner
def move_bias(task: Any, weights: Any, grad: Any, step: Any) -> None:
    """Update the bias, which no penalty shrinks."""
    count = begin_row(task.rule, Free(), weights.bias, 0, 1, step)
    update(unpenalized(task.rule), weights.bias, 0, 1, grad, step.rate, count)


# -- gradient and apply in one --------------------------------------------------------------------------------------


@choice
def read_weights(penalty: Any, task: Any, entries: Any, weights: Any, scratch: Any, step: Any) -> Any:
    """The score of one sample. With a penalty, what its weights have to pay goes to scratch.floats."""


@read_weights.of(Free)
def _read_free(penalty: Any, task: Any, entries: Any, weights: Any, scratch: Any, step: Any) -> Any:
    return score_row(task, entries, weights, step.elapsed)


@read_weights.of(Penalty)
def _read_paid(penalty: Any, task: Any, entries: Any, weights: Any, scratch: Any, step: Any) -> Any:
    # The rows are copied into scratch as one row that is as wide as the sample: there the loops vectorise (2x).
    cells = stride(task.rule, penalty, 1)
    count = count_of(entries)
    dues = (cells - 1) * count
    for k in range(count):
        row = id_of(entries, k)
        for c in range(cells - 1):
            scratch.floats[c * count + k] = weights.table[row * cells + c]  # RACE(stale read): docs/races.md
        due = step.elapsed - weights.table[row * cells + cells - 1]  # RACE(stale read): docs/races.md
        scratch.floats[dues + k] = max(due, np.float32(0))
    for k in range(count):
        speed = pace(task.rule, scratch.floats, k, count, dues - count + k)
        paid = flow(penalty, scratch.floats[k], scratch.floats[dues + k] * speed)
        scratch.floats[dues + k] = scratch.floats[k] - paid
        scratch.floats[k] = paid
    total = np.float32(0)
    for k in range(count):
        total += value_of(entries, k) * scratch.floats[k]
        scratch.floats[k] = scratch.floats[dues + k]
    return total + task.bias * weights.bias[0]  # RACE(stale read): docs/races.md


@choice
def pay(penalty: Any, rule: Any, table: Any, row: Any, due: Any, step: Any) -> None:
    """Take what a weight has to pay from it, and note the time of it."""


pay.of(Free)(lambda penalty, rule, table, row, due, step: None)


@pay.of(Penalty)
def _pay(penalty: Any, rule: Any, table: Any, row: Any, due: Any, step: Any) -> None:
    cells = stride(rule, penalty, 1)
    stamp_cell = row * cells + cells - 1
    # Not if the feature stood earlier in the sample: then it has moved since.
    if table[stamp_cell] < step.elapsed and owes(step, row):
        table[stamp_cell] = step.elapsed  # RACE(lost update): docs/races.md
        # Taken from the weight as it is now: others may have moved it since it was read.
        table[row * cells] -= due  # RACE(lost update): docs/races.md


@inner
def pay_and_move(task: Any, weights: Any, row: Any, due: Any, grad: Any, step: Any) -> None:
    """As `move`, where `read_weights` has found what is to be paid."""
    pay(task.penalty, task.rule, weights.table, row, due, step)
    cells = stride(task.rule, task.penalty, 1)
    count = visits_of(task.rule, weights.table, row * cells + cells - 1 - stamps(task.penalty))
    update(task.rule, weights.table, row * cells, 1, grad, step.rate, count)


@fused.of(LinearTask)
def _fused(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    entries = entries_of(samples, visit)
    score = read_weights(task.penalty, task, entries, weights, scratch, step)
    grad = slope(task.loss, score, samples.targets[visit]) * samples.importance[visit]
    count = count_of(entries)
    whole = count // LINE * LINE
    for first in range(0, whole, LINE):
        # Samples are visited in random order: none is in the cache.
        prefetch_entries(samples, scratch.count[NEXT], first)
        for k in range(first, first + LINE):
            pay_and_move(task, weights, id_of(entries, k), scratch.floats[k], grad * value_of(entries, k), step)
    for k in range(whole, count):
        pay_and_move(task, weights, id_of(entries, k), scratch.floats[k], grad * value_of(entries, k), step)
    move_bias(task, weights, grad * task.bias, step)
    return cost(task.loss, score, samples.targets[visit]) * samples.importance[visit]


@open_kernel
def score_rows(samples: Any, weight: Any, bias: Any, scores: Any, first: int) -> None:
    """Scores of the samples from `first` on, as many as there is room for; `weight` holds one number a feature."""
    for i in range(len(scores)):
        entries = entries_of(samples, first + i)
        total = np.float32(0)
        for k in range(count_of(entries)):
            total += value_of(entries, k) * weight[id_of(entries, k)]
        scores[i] = total + bias


# -- Linear models with one output for each class: softmax, or the hinge of each class against the rest ---------------


class ClassesTask(NamedTuple):
    """Loss, update rule and penalty of a linear model with `width` classes, over LinearWeights with rows that wide."""

    loss: Any
    rule: Any
    penalty: Any
    bias: np.float32
    width: int


@inner
def score_classes(task: Any, entries: Any, weights: Any, scores: Any, elapsed: Any) -> None:
    """Write one score a class of one sample, under the weights as they stand, into scores[:width]."""
    width = task.width
    cells = stride(task.rule, task.penalty, width)
    for k in range(width):
        scores[k] = task.bias * weights.bias[k]  # RACE(stale read): docs/races.md
    for e in range(count_of(entries)):
        base = id_of(entries, e) * cells
        value = value_of(entries, e)
        last = base + cells - 1
        for k in range(width):  # RACE(stale read): docs/races.md
            scores[k] += value * weight_at(task.penalty, task.rule, weights.table, base + k, width, last, elapsed)


@gradient.of(ClassesTask)
def _softmax_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    grads = scratch.floats
    entries = entries_of(samples, visit)
    score_classes(task, entries, weights, grads, scratch.clock[0])
    loss = slopes(task.loss, grads, task.width, samples.targets[visit])
    importance = samples.importance[visit]
    count = count_of(entries)
    for e in range(count):
        value = importance * value_of(entries, e)
        scratch.rows[e] = id_of(entries, e)
        for k in range(task.width):
            scratch.grads[e, k] = value * grads[k]
    scratch.rows[count] = len(weights.table) // stride(task.rule, task.penalty, task.width)
    for k in range(task.width):
        scratch.grads[count, k] = importance * task.bias * grads[k]
    scratch.count[0] = count + 1
    return loss * importance


@apply.of(ClassesTask)
def _softmax_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    features = len(weights.table) // stride(task.rule, task.penalty, task.width)
    one = np.float32(1)
    for e in range(scratch.count[0]):
        row = np.int64(scratch.rows[e])
        if row < features:
            move_classes(task, weights, row, one, scratch.grads[e], step)
        else:
            move_biases(task, weights, one, scratch.grads[e], step)


@inner
def move_classes(task: Any, weights: Any, row: Any, value: Any, grads: Any, step: Any) -> None:
    """Update the weights of one feature, one a class, against the gradient value * grads."""
    base = row * stride(task.rule, task.penalty, task.width)
    count = begin_row(task.rule, task.penalty, weights.table, row, task.width, step)
    for k in range(task.width):
        update(task.rule, weights.table, base + k, task.width, value * grads[k], step.rate, count)


@inner
def move_biases(task: Any, weights: Any, value: Any, grads: Any, step: Any) -> None:
    """Update the biases, which no penalty shrinks."""
    count = begin_row(task.rule, Free(), weights.bias, 0, task.width, step)
    for k in range(task.width):
        update(unpenalized(task.rule), weights.bias, k, task.width, value * grads[k], step.rate, count)


@fused.of(ClassesTask)
def _softmax_fused(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    grads = scratch.floats
    entries = entries_of(samples, visit)
    score_classes(task, entries, weights, grads, step.elapsed)
    loss = slopes(task.loss, grads, task.width, samples.targets[visit])
    importance = samples.importance[visit]
    for e in range(count_of(entries)):
        move_classes(task, weights, id_of(entries, e), importance * value_of(entries, e), grads, step)
    move_biases(task, weights, importance * task.bias, grads, step)
    return loss * importance


@open_kernel
def score_class_rows(samples: Any, weight: Any, bias: Any, scores: Any, first: int) -> None:
    """Scores, one a class, of the samples from `first` on; `weight` holds one row a feature."""
    width = len(bias)
    for i in range(len(scores)):
        for k in range(width):
            scores[i, k] = bias[k]
        entries = entries_of(samples, first + i)
        for e in range(count_of(entries)):
            value, row = value_of(entries, e), id_of(entries, e)
            for k in range(width):
                scores[i, k] += value * weight[row, k]
