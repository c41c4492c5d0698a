"""Losses: of one score, `cost(loss, score, target)` and its derivative `slope`; of one score a class, `slopes`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import choice, kernel


class Logistic(NamedTuple):
    """log(1 + exp(-y s)), target y in {-1, 1}."""


class Hinge(NamedTuple):
    """max(0, 1 - y s), target y in {-1, 1}."""


class Squared(NamedTuple):
    """(s - y)^2 / 2, any target."""


class EachLabel(NamedTuple):
    """One score a label, of which a row may have any number: the sum over labels of `loss`, with y = 1 for those of the
    row and -1 for the others. The target is the number of a set: its labels are labels[offsets[target] :
    offsets[target + 1]], in rising order."""

    loss: Any
    offsets: Any
    labels: Any


class Huber(NamedTuple):
    """(s - y)^2 / 2 where |s - y| is at most delta, beyond that delta (|s - y| - delta / 2); any target."""

    delta: np.float32


class Quantile(NamedTuple):
    """level (y - s) where the target y is above the score, else (1 - level) (s - y); any target."""

    level: np.float32


class Poisson(NamedTuple):
    """exp(s) - y s + y log y - y: half the deviance of counts whose mean is exp(s); targets are not negative."""


STEEP = 30.0  # scores past this go on straight: nothing overflows, and the loss stays convex


@choice
def slope(loss: Any, score: Any, target: Any) -> Any:
    """Derivative of the loss in the score."""


@choice
def cost(loss: Any, score: Any, target: Any) -> Any:
    """The loss at a score."""


@slope.of(Logistic)
def _logistic_slope(loss: Any, score: Any, target: Any) -> Any:
    margin = target * score
    rest = np.float32(math.exp(-abs(margin)))  # never overflows
    return -target * (rest if margin > np.float32(0) else np.float32(1)) / (np.float32(1) + rest)


@cost.of(Logistic)
def _logistic_cost(loss: Any, score: Any, target: Any) -> Any:
    margin = target * score
    # log(1 + exp(-m)) without overflow on either side
    return np.float32(math.log1p(math.exp(-abs(margin)))) + max(-margin, np.float32(0))


@slope.of(Hinge)
def _hinge_slope(loss: Any, score: Any, target: Any) -> Any:
    return -target if target * score < np.float32(1) else np.float32(0)


@cost.of(Hinge)
def _hinge_cost(loss: Any, score: Any, target: Any) -> Any:
    return max(np.float32(1) - target * score, np.float32(0))


@slope.of(Squared)
def _squared_slope(loss: Any, score: Any, target: Any) -> Any:
    return score - target


@cost.of(Squared)
def _squared_cost(loss: Any, score: Any, target: Any) -> Any:
    return np.float32(0.5) * (score - target) * (score - target)


@slope.of(Huber)
def _huber_slope(loss: Any, score: Any, target: Any) -> Any:
    return min(max(score - target, -loss.delta), loss.delta)


@cost.of(Huber)
def _huber_cost(loss: Any, score: Any, target: Any) -> Any:
    away = abs(score - target)
    near = min(away, loss.delta)
    return near * (away - np.float32(0.5) * near)


@slope.of(Quantile)
def _quantile_slope(loss: Any, score: Any, target: Any) -> Any:
    above = np.float32(1) if target < score else np.float32(0)
    return above - loss.level if target != score else np.float32(0)


@cost.of(Quantile)
def _quantile_cost(loss: Any, score: Any, target: Any) -> Any:
    short = target - score
    return max(loss.level * short, (loss.level - np.float32(1)) * short)


@slope.of(Poisson)
def _poisson_slope(loss: Any, score: Any, target: Any) -> Any:
    return np.float32(math.exp(min(score, np.float32(STEEP)))) - target


@cost.of(Poisson)
def _poisson_cost(loss: Any, score: Any, target: Any) -> Any:
    low = min(score, np.float32(STEEP))
    mean = math.exp(low) * (1.0 + float(score - low))
    entropy = target * math.log(target) if target > np.float32(0) else 0.0
    return np.float32(mean - float(target) * float(score) + entropy - float(target))


# -- one score for each class ---------------------------------------------------------------------------------------


@choice
def slopes(loss: Any, scores: Any, width: int, target: Any) -> Any:
    """Turn scores[:width] into the derivatives of the loss in them; return the loss. The target is a class number,
    or that of a set of labels."""


@slopes.of(Logistic)
def _softmax_slopes(loss: Any, scores: Any, width: int, target: Any) -> Any:
    """Softmax: -log p_y, where p_k = exp(s_k) / sum exp(s_j); the derivative is p_k - [k = y]."""
    true = int(target)
    score = scores[true]
    total = softmax(scores, width)
    scores[true] -= np.float32(1)
    return total - score


@slopes.of(Hinge)
def _hinge_slopes(loss: Any, scores: Any, width: int, target: Any) -> Any:
    """One class against the rest: the sum over classes of max(0, 1 - y_k s_k), y_k = 1 for the true class, else -1."""
    total = np.float32(0)
    true = int(target)
    for k in range(width):
        side = np.float32(1) if k == true else np.float32(-1)
        short = np.float32(1) - side * scores[k]
        total += max(short, np.float32(0))
        scores[k] = -side if short > np.float32(0) else np.float32(0)
    return total


@slopes.of(EachLabel)
def _each_slopes(loss: Any, scores: Any, width: int, target: Any) -> Any:
    total = np.float32(0)
    place, end = loss.offsets[int(target)], loss.offsets[int(target) + 1]
    for k in range(width):
        side = np.float32(-1)
        if place < end and loss.labels[place] == k:
            side = np.float32(1)
            place += 1
        total += cost(loss.loss, scores[k], side)
        scores[k] = slope(loss.loss, scores[k], side)
    return total


@kernel
def softmax(scores: Any, width: int) -> Any:
    """Turn scores[:width] into probabilities in place; returns log(sum(exp(scores)))."""
    top = scores[0]
    for k in range(1, width):
        top = max(top, scores[k])
    total = np.float32(0)
    for k in range(width):
        scores[k] = np.float32(math.exp(scores[k] - top))
        total += scores[k]
    for k in range(width):
        scores[k] /= total
    return top + np.float32(math.log(total))
