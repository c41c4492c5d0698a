"""Linear models with one output for each class: softmax, or the hinge of each class against the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import inner, open_kernel
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.optim.losses import slopes
from hogwild.kernels.optim.penalties import Free, weight_at
from hogwild.kernels.optim.rules import begin_row, stride, unpenalized, update
from hogwild.kernels.sparse.samples import count_of, entries_of, id_of, value_of


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
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    pulls = scratch.floats
    entries = entries_of(samples, visit)
    score_classes(task, entries, weights, pulls, scratch.clock[0])
    loss = slopes(task.loss, pulls, task.width, samples.targets[visit])
    importance = samples.importance[visit]
    count = count_of(entries)
    for e in range(count):
        value = importance * value_of(entries, e)
        scratch.rows[e] = id_of(entries, e)
        for k in range(task.width):
            scratch.grads[e, k] = value * pulls[k]
    scratch.rows[count] = len(weights.table) // stride(task.rule, task.penalty, task.width)
    for k in range(task.width):
        scratch.grads[count, k] = importance * task.bias * pulls[k]
    scratch.count[0] = count + 1
    return loss * importance


@apply.of(ClassesTask)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    features = len(weights.table) // stride(task.rule, task.penalty, task.width)
    one = np.float32(1)
    for e in range(scratch.count[0]):
        row = np.int64(scratch.rows[e])
        if row < features:
            move_classes(task, weights, row, one, scratch.grads[e], step)
        else:
            move_biases(task, weights, one, scratch.grads[e], step)


@inner
def move_classes(task: Any, weights: Any, row: Any, value: Any, pulls: Any, step: Any) -> None:
    """Update the weights of one feature, one a class, against the gradient value * pulls."""
    base = row * stride(task.rule, task.penalty, task.width)
    count = begin_row(task.rule, task.penalty, weights.table, row, task.width, step)
    for k in range(task.width):
        update(task.rule, weights.table, base + k, task.width, value * pulls[k], step.rate, count)


@inner
def move_biases(task: Any, weights: Any, value: Any, pulls: Any, step: Any) -> None:
    """Update the biases, which no penalty shrinks."""
    count = begin_row(task.rule, Free(), weights.bias, 0, task.width, step)
    for k in range(task.width):
        update(unpenalized(task.rule), weights.bias, k, task.width, value * pulls[k], step.rate, count)


@fused.of(ClassesTask)
def _fused(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    pulls = scratch.floats
    entries = entries_of(samples, visit)
    score_classes(task, entries, weights, pulls, step.elapsed)
    loss = slopes(task.loss, pulls, task.width, samples.targets[visit])
    importance = samples.importance[visit]
    for e in range(count_of(entries)):
        move_classes(task, weights, id_of(entries, e), importance * value_of(entries, e), pulls, step)
    move_biases(task, weights, importance * task.bias, pulls, step)
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
