"""Linear models with one output: the score of a row is the bias plus the sum of weight times value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats
from hogwild.kernels.jit import kernel
from hogwild.kernels.losses import cost, slope
from hogwild.kernels.penalties import Free, weight_at
from hogwild.kernels.samples import first_entry, id_at, last_entry, value_at
from hogwild.kernels.task import apply, fused, gradient
from hogwild.kernels.updates import begin_row, stride, unpenalized, update


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


@kernel
def score_row(task: Any, samples: Any, visit: int, weights: Any, elapsed: Any) -> Any:
    """The score of one sample under the weights as they stand."""
    cells = stride(task.rule, task.penalty, 1)
    total = np.float32(0)
    for entry in range(first_entry(samples, visit), last_entry(samples, visit)):
        base = id_at(samples, visit, entry) * cells
        weight = weight_at(task.penalty, weights.table, base, base + cells - 1, elapsed)
        total += value_at(samples, visit, entry) * weight
    return total + task.bias * weights.bias[0]  # RACE(stale read): docs/races.md


@gradient.of(LinearTask)
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    score = score_row(task, samples, visit, weights, scratch.clock[0])
    pull = slope(task.loss, score, samples.targets[visit]) * samples.importance[visit]
    first = first_entry(samples, visit)
    count = last_entry(samples, visit) - first
    for k in range(count):
        scratch.rows[k] = id_at(samples, visit, first + k)
        scratch.grads[k, 0] = pull * value_at(samples, visit, first + k)
    scratch.rows[count] = len(weights.table) // stride(task.rule, task.penalty, 1)
    scratch.grads[count, 0] = pull * task.bias
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


@kernel
def move(task: Any, weights: Any, row: Any, pull: Any, step: Any) -> None:
    """Update the weight of one feature."""
    count = begin_row(task.rule, task.penalty, weights.table, row, 1, step)
    update(task.rule, weights.table, row * stride(task.rule, task.penalty, 1), 1, pull, step.rate, count)


@kernel
def move_bias(task: Any, weights: Any, pull: Any, step: Any) -> None:
    """Update the bias, which no penalty shrinks."""
    count = begin_row(task.rule, Free(), weights.bias, 0, 1, step)
    update(unpenalized(task.rule), weights.bias, 0, 1, pull, step.rate, count)


@fused.of(LinearTask)
def _fused(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    score = score_row(task, samples, visit, weights, step.elapsed)
    pull = slope(task.loss, score, samples.targets[visit]) * samples.importance[visit]
    for entry in range(first_entry(samples, visit), last_entry(samples, visit)):
        move(task, weights, id_at(samples, visit, entry), pull * value_at(samples, visit, entry), step)
    move_bias(task, weights, pull * task.bias, step)
    return cost(task.loss, score, samples.targets[visit]) * samples.importance[visit]


@kernel
def score_rows(samples: Any, weight: Any, bias: Any, scores: Any, first: int) -> None:
    """Scores of the samples from `first` on, as many as there is room for; `weight` holds one number a feature."""
    for k in range(len(scores)):
        total = np.float32(0)
        for entry in range(first_entry(samples, first + k), last_entry(samples, first + k)):
            total += value_at(samples, first + k, entry) * weight[id_at(samples, first + k, entry)]
        scores[k] = total + bias
