"""Slow, obvious twin of AsynGrad in turns, of what its meter adds up, and of the objective: one sample at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hogwild.kernels.compiler.rng import below, seeds


def sample_loss(x, y, importance, weight, loss):
    score = sum(float(a) * float(b) for a, b in zip(x, weight, strict=True))
    one = math.log1p(math.exp(-y * score)) if loss == "logistic" else 0.5 * (score - y) ** 2
    return importance * one


def sample_gradient(x, y, importance, weight, loss, l2):
    score = sum(float(a) * float(b) for a, b in zip(x, weight, strict=True))
    pull = -y / (1 + math.exp(y * score)) if loss == "logistic" else score - y
    return np.array([importance * pull * float(a) + l2 * float(b) for a, b in zip(x, weight, strict=True)])


def objective(rows, weight, loss, l2):
    """Mean loss and penalty."""
    losses = [sample_loss(x, float(y), float(i), weight, loss) for x, y, i in zip(*rows, strict=True)]
    return sum(losses) / len(losses) + 0.5 * l2 * sum(float(w) ** 2 for w in weight)


@dataclass
class Found:
    """Of each update: the error, the squared step, whether it was stale; and where it ended."""

    errors: list = field(default_factory=list)
    squares: list = field(default_factory=list)
    stale: list = field(default_factory=list)
    terms: list = field(default_factory=list)
    weight: np.ndarray = None


def rounds(problem, first, gamma, updates, workers, seed):
    """AsynGrad in rounds: `workers` gradients on the same weights, then their steps one after another."""
    states = [np.array([state]) for state in seeds(seed, workers)]
    rows, best = problem.rows, problem.optimum
    weight = np.array(first, np.float64)
    found = Found()
    for _ in range(0, updates, workers):
        read = weight.copy()
        drawn = [int(below(state, len(rows.targets))) for state in states]
        terms = [_gradient(problem, rows, z, read) for z in drawn]
        for z, term in zip(drawn, terms, strict=True):
            true = _gradient(problem, rows, z, weight)
            found.errors.append(float((true - term) @ (weight - best)))
            found.squares.append(float(term @ term))
            found.terms.append(math.sqrt(float(term @ term)))
            found.stale.append(bool((weight != read).any()))
            weight = weight - gamma * term
    found.weight = weight
    return found


def _gradient(problem, rows, z, weight):
    return sample_gradient(
        rows.matrix[z], float(rows.targets[z]), float(rows.importance[z]), weight, problem.loss, problem.l2
    )
