"""A visit to a batch of rows: look up embeddings, dense layers forward and backward by BLAS, and update.

Rows of a batch are drawn from the whole feed anew in every epoch, see `row_at`. The loss of a visit is the mean over
its rows. With plain gradient descent nothing goes through scratch: layers are moved by the product that gives their
gradient, embedding rows one entry after the other. Other rules first add up what all entries of a row give, as their
memory must see one gradient a batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import ORDER_KEY, ORDER_SHIFT, Floats, Offsets
from hogwild.kernels.compiler.clock import DENSE, LOOKUP, UPDATE, mark, start
from hogwild.kernels.compiler.jit import choice, inner, open_kernel
from hogwild.kernels.loop.order import row_at
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.nn.dense import backward, deactivate, forward, grads_at, place_of
from hogwild.kernels.nn.lookup import add_wide, collect, gather, scatter
from hogwild.kernels.optim.losses import cost, slope, slopes
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import Sgd, begin_row, step_dense, stride, update


class MlpWeights(NamedTuple):
    """table: one row a feature; then DenseParameters, whose values are the `layers` of dense.py."""

    table: Floats
    values: Floats
    first: Floats
    second: Floats
    steps: Floats


class MlpTask(NamedTuple):
    """What selects the code (head, rule, penalty, activations, combiner, layout, timer) and sizes.

    dim: cells of an embedding; width: with those of the wide part; cells: weights and biases of the layers; places:
    size of the table that finds rows again (a power of two).
    """

    head: Any
    rule: Any
    penalty: Any
    activation: Any
    lookup_activation: Any
    combiner: Any
    layout: Any
    timer: Any
    sizes: Offsets
    batch: int
    dim: int
    width: int
    cells: int
    places: int


@inner
def choose_rows(task: Any, samples: Any, visit: int, scratch: Any) -> int:
    """Write the rows of a batch into scratch; returns how many there are."""
    total = len(samples.targets)
    first = visit * task.batch
    rows = min(task.batch, total - first)
    shift = scratch.count[ORDER_SHIFT]
    window: Any = np.int64(1) << np.int64(62) if shift == 0 or shift >= 32 else task.batch << shift
    for k in range(rows):
        scratch.ints[k] = row_at(first + k, total, window, scratch.count[ORDER_KEY])
    return rows


@inner
def give(task: Any, samples: Any, chosen: Any, rows: int, weights: Any, floats: Any, elapsed: Any) -> None:
    """Scores of the rows, where the last layer has its sums."""
    forward(task, weights.values, floats, rows)
    if task.width > task.dim:
        last = len(task.sizes) - 1
        at = place_of(task.sizes, task.batch, last)
        scores = floats[at : at + rows * task.sizes[last]]
        add_wide(task, samples, chosen, rows, weights.table, scores, elapsed)


class OneScore(NamedTuple):
    """One output; its loss takes targets -1 and 1, or quantities."""

    loss: Any


class ClassScores(NamedTuple):
    """One output a class; the target is a class number."""

    loss: Any


@inner
def turn_scores(task: Any, samples: Any, chosen: Any, rows: int, scores: Any) -> Any:
    """Scores into derivatives of the mean loss, in place; returns that loss."""
    outputs = task.sizes[len(task.sizes) - 1]
    loss = 0.0
    part = np.float32(1) / np.float32(rows)
    for row in range(rows):
        sample = chosen[row]
        weight = part * samples.importance[sample]
        own = scores[row * outputs : (row + 1) * outputs]
        loss += np.float64(weight * turn_row(task.head, own, outputs, samples.targets[sample], weight))
    return loss


@choice
def turn_row(head: Any, scores: Any, outputs: int, target: Any, weight: Any) -> Any:
    """Scores of one row into derivatives, times a weight; returns its loss."""


@turn_row.of(OneScore)
def _turn_one(head: Any, scores: Any, outputs: int, target: Any, weight: Any) -> Any:
    score = scores[0]
    scores[0] = weight * slope(head.loss, score, target)
    return cost(head.loss, score, target)


@turn_row.of(ClassScores)
def _turn_classes(head: Any, scores: Any, outputs: int, target: Any, weight: Any) -> Any:
    loss = slopes(head.loss, scores, outputs, target)
    for k in range(outputs):
        scores[k] *= weight
    return loss


@choice
def decay(penalty: Any) -> Any:
    """l2 of a penalty."""


@decay.of(Free)
def _no_decay(penalty: Any) -> Any:
    return np.float32(0)


@decay.of(Penalty)
def _decay(penalty: Any) -> Any:
    return penalty.l2


@inner
def begin_gradients(task: Any, layers: Any, grads: Any) -> None:
    """l2 times the weights of each layer, and zero for its biases."""
    at = 0
    l2 = decay(task.penalty)
    for layer in range(1, len(task.sizes)):
        count = task.sizes[layer - 1] * task.sizes[layer]
        for k in range(count):
            grads[at + k] = l2 * layers[at + k]
        grads[at + count : at + count + task.sizes[layer]] = np.float32(0)
        at += count + task.sizes[layer]


@gradient.of(MlpTask)
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    start(task.timer, scratch)
    floats, sizes = scratch.floats, task.sizes
    rows = choose_rows(task, samples, visit, scratch)
    chosen = scratch.ints
    gather(task, samples, chosen, rows, weights.table, floats, scratch.clock[0])
    mark(task.timer, scratch, LOOKUP)
    give(task, samples, chosen, rows, weights, floats, scratch.clock[0])
    last = len(sizes) - 1
    at = place_of(sizes, task.batch, last)
    ends = floats[at : at + rows * sizes[last]]
    loss = turn_scores(task, samples, chosen, rows, ends)
    begin_gradients(task, weights.values, scratch.dense)
    backward(task, weights.values, floats, rows, scratch.dense, np.float32(1), np.float32(1))
    at = grads_at(sizes, task.batch, 0)
    grads = floats[at : at + rows * sizes[0]]
    deactivate(task.lookup_activation, floats[: rows * sizes[0]], grads)
    mark(task.timer, scratch, DENSE)
    scratch.count[0] = collect(task, samples, chosen, rows, scratch, grads, ends)
    mark(task.timer, scratch, UPDATE)
    return loss


@apply.of(MlpTask)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    start(task.timer, scratch)
    step_dense(task.rule, weights, scratch.dense, step.rate)
    cells = stride(task.rule, task.penalty, task.width)
    for line in range(scratch.count[0]):
        row: Any = np.int64(scratch.rows[line])
        count = begin_row(task.rule, task.penalty, weights.table, row, task.width, step)
        own = weights.table[row * cells : (row + 1) * cells]
        total = scratch.grads[line]
        for c in range(len(total)):
            update(task.rule, own, c, task.width, total[c], step.rate, count)
    mark(task.timer, scratch, UPDATE)


@fused.of(MlpTask)
def _fused(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    return visit_batch(task.rule, task, samples, visit, weights, scratch, step)


@choice
def visit_batch(rule: Any, task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    """Gradient and update of one batch."""


def _by_way_of_scratch(
    rule: Any, task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any
) -> Any:
    loss = gradient(task, samples, visit, weights, scratch)
    apply(task, weights, scratch, step)
    return loss


visit_batch.otherwise(_by_way_of_scratch)


@visit_batch.of(Sgd)
def _in_place(rule: Any, task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    start(task.timer, scratch)
    floats, sizes = scratch.floats, task.sizes
    rows = choose_rows(task, samples, visit, scratch)
    chosen = scratch.ints
    gather(task, samples, chosen, rows, weights.table, floats, step.elapsed)
    mark(task.timer, scratch, LOOKUP)
    give(task, samples, chosen, rows, weights, floats, step.elapsed)
    last = len(sizes) - 1
    at = place_of(sizes, task.batch, last)
    ends = floats[at : at + rows * sizes[last]]
    loss = turn_scores(task, samples, chosen, rows, ends)
    keep = np.float32(1) - step.rate * decay(task.penalty)
    backward(task, weights.values, floats, rows, weights.values, -step.rate, keep)
    at = grads_at(sizes, task.batch, 0)
    grads = floats[at : at + rows * sizes[0]]
    deactivate(task.lookup_activation, floats[: rows * sizes[0]], grads)
    mark(task.timer, scratch, DENSE)
    scatter(task, samples, chosen, rows, weights.table, grads, ends, step)
    mark(task.timer, scratch, UPDATE)
    return loss


@open_kernel
def score_batches(task: Any, samples: Any, weights: Any, scratch: Any, scores: Any, first: int) -> None:
    """Scores of the samples from `first` on, as many as there is room for; `weights` have paid their penalties."""
    sizes = task.sizes
    last = len(sizes) - 1
    outputs = sizes[last]
    for begin in range(0, len(scores), task.batch):
        rows = min(task.batch, len(scores) - begin)
        for k in range(rows):
            scratch.ints[k] = first + begin + k
        gather(task, samples, scratch.ints, rows, weights.table, scratch.floats, np.float32(0))
        give(task, samples, scratch.ints, rows, weights, scratch.floats, np.float32(0))
        at = place_of(sizes, task.batch, last)
        for row in range(rows):
            for k in range(outputs):
                scores[begin + row, k] = scratch.floats[at + row * outputs + k]
