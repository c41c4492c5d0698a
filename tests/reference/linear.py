"""Slow, obvious twins of the kernels of linear models: float64, dense, one line of mathematics at a time.

Nothing here is shared with the package but the NamedTuples that name a loss, a rule, a penalty and a schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# -- losses ---------------------------------------------------------------------------------------------------------


DELTA, LEVEL = 0.75, 0.8  # of huber and of quantile, in tests


def _huber(score: float, target: float) -> float:
    away = abs(score - target)
    return 0.5 * away**2 if away <= DELTA else DELTA * away - 0.5 * DELTA**2


def _quantile(score: float, target: float) -> float:
    return LEVEL * (target - score) if target > score else (1 - LEVEL) * (score - target)


def _poisson(score: float, target: float) -> float:
    return math.exp(score) - target * score + (target * math.log(target) if target else 0.0) - target


QUANTITIES = {"Huber": _huber, "Quantile": _quantile, "Poisson": _poisson}


def loss_of(name: str, scores: np.ndarray, target: float) -> float:
    """The loss of one score (target -1/1 or a number) or of several (target: the number of the true class)."""
    if len(scores) == 1:
        score = float(scores[0])
        if name == "Logistic":
            return float(np.logaddexp(0.0, -target * score))
        if name == "Hinge":
            return max(0.0, 1.0 - target * score)
        if name in QUANTITIES:
            return QUANTITIES[name](score, target)
        return 0.5 * (score - target) ** 2
    if name == "Logistic":
        return float(np.logaddexp.reduce(scores) - scores[int(target)])
    sides = np.where(np.arange(len(scores)) == int(target), 1.0, -1.0)
    return float(np.maximum(0.0, 1.0 - sides * scores).sum())


def slopes_of(name: str, scores: np.ndarray, target: float) -> np.ndarray:
    """Derivatives of `loss_of` in the scores."""
    if len(scores) == 1:
        score = float(scores[0])
        if name == "Logistic":
            return np.array([-target / (1.0 + np.exp(target * score))])
        if name == "Hinge":
            return np.array([-target if target * score < 1.0 else 0.0])
        return np.array([score - target])
    hot = np.arange(len(scores)) == int(target)
    if name == "Logistic":
        odds = np.exp(scores - scores.max())
        return odds / odds.sum() - hot
    sides = np.where(hot, 1.0, -1.0)
    return np.where(sides * scores < 1.0, -sides, 0.0)


# -- update rules ---------------------------------------------------------------------------------------------------


@dataclass
class Weight:
    """One weight and all that any rule may remember of it."""

    value: float = 0.0
    speed: float = 0.0
    squares: float = 0.0
    mean: float = 0.0
    square: float = 0.0
    count: int = 0
    past: list[tuple[float, float, float]] = field(default_factory=list)


def move(rule: Any, weight: Weight, gradient: float, rate: float, bias: bool = False) -> None:
    """One step of an update rule on one weight."""
    name = type(rule).__name__
    if name == "Sgd":
        weight.value -= rate * gradient
    elif name == "Momentum":
        weight.speed = float(rule.beta) * weight.speed + gradient
        weight.value -= rate * weight.speed
    elif name == "Adagrad":
        weight.squares += gradient**2
        weight.value -= rate * gradient / np.sqrt(weight.squares + float(rule.epsilon))
    elif name == "Adam":
        b1, b2 = float(rule.beta1), float(rule.beta2)
        weight.count += 1
        weight.mean = b1 * weight.mean + (1 - b1) * gradient
        weight.square = b2 * weight.square + (1 - b2) * gradient**2
        mean = weight.mean / (1 - b1**weight.count)
        square = weight.square / (1 - b2**weight.count)
        weight.value -= rate * mean / (np.sqrt(square) + float(rule.epsilon))
    elif name == "Ftrl":
        move_ftrl(rule, weight, gradient, rate, 0.0 if bias else float(rule.l1), 0.0 if bias else float(rule.l2))
    else:
        raise ValueError(name)


def move_ftrl(rule: Any, weight: Weight, gradient: float, rate: float, l1: float, l2: float) -> None:
    """Follow the regularized leader, from its definition: minimise the whole past anew at each step.

    The objective is sum g_s w + sum sigma_s (w - w_s)^2 / 2 + l1 |w| + l2 w^2 / 2; it is convex, and its minimum is
    found by bisection on the subgradient, without the closed form that the kernel uses.
    """
    weight.squares += gradient**2
    firm_before = sum(sigma for _, sigma, _ in weight.past)
    firm = (float(rule.beta) + np.sqrt(weight.squares)) / rate
    weight.past.append((gradient, firm - firm_before, weight.value))

    def subgradient(w: float) -> float:
        total = sum(g + sigma * (w - at) for g, sigma, at in weight.past)
        return total + l1 * np.sign(w) + l2 * w

    around = sum(g + sigma * (0.0 - at) for g, sigma, at in weight.past)
    if abs(around) <= l1:
        weight.value = 0.0
        return
    low, high = (0.0, 1e3) if around < 0 else (-1e3, 0.0)
    for _ in range(80):
        middle = (low + high) / 2
        if subgradient(middle) > 0:
            high = middle
        else:
            low = middle
    weight.value = (low + high) / 2


# -- penalty --------------------------------------------------------------------------------------------------------


def shrink(value: float, l1: float, l2: float, time: float, parts: int = 10) -> float:
    """dw/dt = -(l2 w + l1 sign(w)) for `time`, in many small steps: half the l1, all the l2, the other half."""
    for _ in range(parts):
        value = np.sign(value) * max(abs(value) - l1 * time / parts / 2, 0.0)
        value *= np.exp(-l2 * time / parts)
        value = np.sign(value) * max(abs(value) - l1 * time / parts / 2, 0.0)
    return float(value)


def pace(rule: Any, weight: Weight) -> float:
    """How far a rule moves a weight for a unit of rate and gradient."""
    name = type(rule).__name__
    if name == "Momentum":
        return 1 / (1 - float(rule.beta))
    if name == "Adagrad":
        return 1 / np.sqrt(weight.squares + float(rule.epsilon)) if weight.squares else 0.0
    if name == "Adam":
        if not weight.count:
            return 0.0
        square = weight.square / (1 - float(rule.beta2) ** weight.count)
        return 1 / (np.sqrt(square) + float(rule.epsilon))
    return 1.0


def rate(schedule: Any, position: float) -> float:
    """Learning rate after `position` visits."""
    return schedule.first * (1.0 - schedule.slope * position) / (1.0 + schedule.decay * position)


def time_of(schedule: Any, position: int, parts: int = 64) -> float:
    """Integral of the rate over one visit, by the midpoint rule."""
    return sum(rate(schedule, position + (k + 0.5) / parts) for k in range(parts)) / parts


# -- linear models --------------------------------------------------------------------------------------------------


def entries(samples: Any, row: int) -> list[tuple[int, float]]:
    """(feature, value) pairs of one sample of any bundle."""
    if hasattr(samples, "matrix"):
        return [(j, float(v)) for j, v in enumerate(samples.matrix[row])]
    span = range(samples.offsets[row], samples.offsets[row + 1])
    return [(int(samples.ids[k]), float(samples.values[k]) if hasattr(samples, "values") else 1.0) for k in span]


class LinearTwin:
    """A linear model trained one visit at a time; the penalty is paid by every weight at every visit."""

    def __init__(self, task: Any, features: int, width: int) -> None:
        self.task = task
        self.width = width
        self.table = [[Weight() for _ in range(width)] for _ in range(features)]
        self.bias = [Weight() for _ in range(width)]

    def scores(self, samples: Any, row: int) -> np.ndarray:
        """Scores of one sample."""
        scores = np.array([float(self.task.bias) * w.value for w in self.bias])
        for feature, value in entries(samples, row):
            scores += value * np.array([w.value for w in self.table[feature]])
        return scores

    def visit(self, samples: Any, row: int, learning_rate: float, time: float) -> float:
        """One visit: the gradient at the weights as they are, entry by entry; then the penalty for all."""
        name = type(self.task.loss).__name__
        scores = self.scores(samples, row)
        target, importance = float(samples.targets[row]), float(samples.importance[row])
        pulls = slopes_of(name, scores, target) * importance
        for feature, value in entries(samples, row):
            for k in range(self.width):
                move(self.task.rule, self.table[feature][k], pulls[k] * value, learning_rate)
        for k in range(self.width):
            move(self.task.rule, self.bias[k], pulls[k] * float(self.task.bias), learning_rate, bias=True)
        if type(self.task.penalty).__name__ == "Penalty":
            for weights in self.table:
                for weight in weights:
                    l1, l2 = float(self.task.penalty.l1), float(self.task.penalty.l2)
                    weight.value = shrink(weight.value, l1, l2, time * pace(self.task.rule, weight))
        return loss_of(name, scores, target) * importance

    def run(self, samples: Any, schedule: Any, order: np.ndarray) -> float:
        """Visit the samples in an order; the sum of losses."""
        return sum(
            self.visit(samples, int(row), rate(schedule, position), time_of(schedule, position))
            for position, row in enumerate(order)
        )

    def weight(self) -> np.ndarray:
        """(features, width)."""
        return np.array([[w.value for w in row] for row in self.table])
