"""Slow, obvious twins of factorization machines: float64, every pair of entries enumerated, every weight alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from reference.linear import Weight, loss_of, move, pace, rate, shrink, slopes_of, time_of

Entry = tuple[int, int, float]


def entries(samples: Any, row: int) -> list[Entry]:
    """(feature, field, value) of one sample of any bundle; field 0 where there are no slots."""
    if hasattr(samples, "matrix"):
        return [(j, 0, float(v)) for j, v in enumerate(samples.matrix[row])]
    return [
        (
            int(samples.ids[k]),
            int(samples.slots[k]) if hasattr(samples, "slots") else 0,
            float(samples.values[k]) if hasattr(samples, "values") else 1.0,
        )
        for k in range(samples.offsets[row], samples.offsets[row + 1])
    ]


def score(weight: np.ndarray, factors: np.ndarray, bias: float, row: list[Entry]) -> float:
    """bias + the sum of w x + the sum over pairs of <v of one for the other's field, and the reverse> x x.

    weight: (features,); factors: (features, fields, dim).
    """
    total = bias + sum(weight[i] * x for i, _, x in row)
    for a, (i, f, x) in enumerate(row):
        for j, g, y in row[a + 1 :]:
            total += float(factors[i, g] @ factors[j, f]) * x * y
    return total


class FMTwin:
    """A factorization machine trained one visit at a time; the penalty is paid by every weight at every visit."""

    def __init__(self, task: Any, weight: np.ndarray, factors: np.ndarray) -> None:
        self.task = task
        self.weights = [Weight(float(w)) for w in weight]
        self.shape = factors.shape
        self.factors = [Weight(float(v)) for v in factors.reshape(-1)]
        self.bias = Weight()

    def plain(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and factors as numbers."""
        factors = np.array([v.value for v in self.factors]).reshape(self.shape)
        return np.array([w.value for w in self.weights]), factors

    def visit(self, samples: Any, row: int, learning_rate: float, time: float) -> float:
        """One visit: the gradient at the weights as they are, entry by entry; then the penalty for all."""
        name, (weight, factors) = type(self.task.loss).__name__, self.plain()
        listed = entries(samples, row)
        at = np.array([score(weight, factors, float(self.task.bias) * self.bias.value, listed)])
        target, importance = float(samples.targets[row]), float(samples.importance[row])
        pull = float(slopes_of(name, at, target)[0]) * importance
        of = np.arange(factors.size).reshape(self.shape)
        for a, (i, f, x) in enumerate(listed):
            slope = np.zeros(self.shape[1:])
            for b, (j, g, y) in enumerate(listed):
                if b != a:
                    slope[g] += pull * x * y * factors[j, f]
            move(self.task.rule, self.weights[i], pull * x, learning_rate)
            for place, gradient in zip(of[i].reshape(-1), slope.reshape(-1), strict=True):
                move(self.task.factor_rule, self.factors[place], float(gradient), learning_rate)
        move(self.task.rule, self.bias, pull * float(self.task.bias), learning_rate, bias=True)
        if type(self.task.penalty).__name__ == "FactorPenalty":
            self._pay(self.weights, float(self.task.penalty.weight.l2), time)
            self._pay(self.factors, float(self.task.penalty.factors.l2), time)
        return loss_of(name, at, target) * importance

    def _pay(self, weights: list[Weight], l2: float, time: float) -> None:
        for weight in weights:
            weight.value = shrink(weight.value, 0.0, l2, time * pace(self.task.rule, weight), 1)

    def run(self, samples: Any, schedule: Any, order: np.ndarray) -> float:
        """Visit the samples in an order; the sum of losses."""
        return sum(
            self.visit(samples, int(row), rate(schedule, position), time_of(schedule, position))
            for position, row in enumerate(order)
        )
