"""Algorithm 1 of AsynGrad as it stands, for a dense linear model; and a meter of the terms in its convergence proof.

A visit draws a sample z at random, computes s = the gradient of loss_z + l2 w^2 / 2 from whatever it reads, and writes
w - rate s. Each cell is read once. The weights are one row.

The meter looks at what an update replaced: `swap` stores a cell and tells what stood there. Be w these replaced values,
and s = (w - what was stored) / rate: the step that was really made. It differs from the gradient of the sample at w if
weights were overwritten after they were read, if an update of another worker was written over, and by rounding. Since
|w - w*|^2 is a sum over cells and the writes of a cell have an order, |w_T - w*|^2 - |w_0 - w*|^2 is exactly the sum
over all updates of -2 rate s (w - w*) + rate^2 |s|^2, in whatever order they were mixed: equation 12 of the paper.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.kernels.compiler.atomics import swap
from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.compiler.rng import below
from hogwild.kernels.loop.task import apply, gradient
from hogwild.kernels.optim.losses import Logistic, Squared, cost, slope

# Cells of `sums`. ERROR: of (gradient of the sample at w - s) (w - w*). MOVED: of the change of |w - w*|^2.
UPDATES, ERROR, ERROR_SQUARE, STEP_SQUARE, LARGEST_STEP, LARGEST_TERM, FARTHEST, STALE, LOST, MOVED = range(10)
PARTS = 4  # of scratch.floats, as long as a row each: weights read, features, weights replaced, weights stored


class Unmetered(NamedTuple):
    """No meter: updates are plain stores."""


class Meter(NamedTuple):
    """optimum: w*; sums: one row of cells a worker, on cache lines of its own."""

    optimum: npt.NDArray[np.float64]
    sums: npt.NDArray[np.float64]


class AsynGradTask(NamedTuple):
    """loss: `Logistic` or `Squared`; the objective is the mean loss + l2 w^2 / 2."""

    loss: Any
    l2: np.float32
    meter: Any


class AsynGradWeights(NamedTuple):
    """One row, one cell a feature."""

    weight: Floats


@gradient.of(AsynGradTask)
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    sample = below(scratch.random, len(samples.targets))  # with replacement: the visit's number means nothing
    width = weights.weight.shape[1]
    score = np.float32(0)
    for k in range(width):
        scratch.floats[k] = weights.weight[0, k]  # RACE(stale read): docs/races.md
        scratch.floats[width + k] = samples.matrix[sample, k]
    for k in range(width):
        score += scratch.floats[k] * scratch.floats[width + k]
    target, importance = samples.targets[sample], samples.importance[sample]
    grad = slope(task.loss, score, target) * importance
    for k in range(width):
        scratch.grads[0, k] = grad * scratch.floats[width + k] + task.l2 * scratch.floats[k]
    scratch.floats[PARTS * width] = target
    scratch.floats[PARTS * width + 1] = importance
    scratch.rows[0] = 0
    scratch.count[0] = 1
    return cost(task.loss, score, target) * importance


@apply.of(AsynGradTask)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    descend(task.meter, task, weights, scratch, step)


@choice
def descend(meter: Any, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    """Take the step that is in scratch."""


@descend.of(Unmetered)
def _plain_step(meter: Any, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    for k in range(weights.weight.shape[1]):
        weights.weight[0, k] -= step.rate * scratch.grads[0, k]  # RACE(lost update): docs/races.md


@descend.of(Meter)
def _metered_step(meter: Any, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    width = weights.weight.shape[1]
    stale, lost = False, False
    for k in range(width):
        seen = weights.weight[0, k]  # RACE(stale read): docs/races.md
        stored = seen - step.rate * scratch.grads[0, k]
        replaced = swap(weights.weight[0], k, stored)  # RACE(lost update): docs/races.md
        scratch.floats[2 * width + k] = replaced
        scratch.floats[3 * width + k] = stored
        stale |= replaced != scratch.floats[k]
        lost |= replaced != seen
    sums = meter.sums[step.worker]
    sums[STALE] += 1.0 if stale else 0.0
    sums[LOST] += 1.0 if lost else 0.0
    add_terms(meter, task, scratch, width, float(step.rate), sums)


@choice
def exact_slope(loss: Any, score: float, target: float) -> Any:
    """As `slope`, in float64."""


@exact_slope.of(Logistic)
def _exact_logistic(loss: Any, score: float, target: float) -> Any:
    rest = math.exp(-abs(target * score))  # never overflows
    return -target * (rest if target * score > 0.0 else 1.0) / (1.0 + rest)


@exact_slope.of(Squared)
def _exact_squared(loss: Any, score: float, target: float) -> Any:
    return score - target


@inner
def add_terms(meter: Any, task: Any, scratch: Any, width: int, rate: float, sums: Any) -> None:
    """Add up what the proof speaks of, for one update; in float64, so that only the update itself is rounded."""
    score = 0.0
    for k in range(width):
        score += float(scratch.floats[2 * width + k]) * float(scratch.floats[width + k])
    target, importance = float(scratch.floats[PARTS * width]), float(scratch.floats[PARTS * width + 1])
    grad = exact_slope(task.loss, score, target) * importance
    error, square, handed, before, after = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(width):
        replaced, stored = float(scratch.floats[2 * width + k]), float(scratch.floats[3 * width + k])
        away = replaced - meter.optimum[k]
        s = (replaced - stored) / rate
        true = grad * float(scratch.floats[width + k]) + float(task.l2) * replaced
        error += (true - s) * away
        square += s * s
        handed += float(scratch.grads[0, k]) ** 2
        before += away * away
        after += (stored - meter.optimum[k]) ** 2
    sums[UPDATES] += 1.0
    sums[ERROR] += error
    sums[ERROR_SQUARE] += error * error
    sums[STEP_SQUARE] += square
    sums[LARGEST_STEP] = max(sums[LARGEST_STEP], math.sqrt(square))
    sums[LARGEST_TERM] = max(sums[LARGEST_TERM], math.sqrt(handed))
    sums[FARTHEST] = max(sums[FARTHEST], before)
    sums[MOVED] += after - before
