"""Losses of one score: `cost(loss, score, target)` and its derivative in the score, `slope`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.jit import choice, kernel


class Logistic(NamedTuple):
    """log(1 + exp(-y s)), target y in {-1, 1}."""


class Hinge(NamedTuple):
    """max(0, 1 - y s), target y in {-1, 1}."""


class Squared(NamedTuple):
    """(s - y)^2 / 2, any target."""


@choice
def slope(loss: Any, score: Any, target: Any) -> Any:
    """Derivative of the loss in the score."""


@choice
def cost(loss: Any, score: Any, target: Any) -> Any:
    """The loss at a score."""


@slope.of(Logistic)  # type: ignore[attr-defined]
def _logistic_slope(loss: Any, score: Any, target: Any) -> Any:
    return -target / (np.float32(1) + math.exp(target * score))


@cost.of(Logistic)  # type: ignore[attr-defined]
def _logistic_cost(loss: Any, score: Any, target: Any) -> Any:
    margin = target * score
    # log(1 + exp(-m)) without overflow on either side
    return math.log1p(math.exp(-abs(margin))) + max(-margin, np.float32(0))


@slope.of(Hinge)  # type: ignore[attr-defined]
def _hinge_slope(loss: Any, score: Any, target: Any) -> Any:
    return -target if target * score < np.float32(1) else np.float32(0)


@cost.of(Hinge)  # type: ignore[attr-defined]
def _hinge_cost(loss: Any, score: Any, target: Any) -> Any:
    return max(np.float32(1) - target * score, np.float32(0))


@slope.of(Squared)  # type: ignore[attr-defined]
def _squared_slope(loss: Any, score: Any, target: Any) -> Any:
    return score - target


@cost.of(Squared)  # type: ignore[attr-defined]
def _squared_cost(loss: Any, score: Any, target: Any) -> Any:
    return np.float32(0.5) * (score - target) * (score - target)


@kernel
def softmax(scores: Any, width: int) -> Any:
    """Turn scores[:width] into probabilities in place; returns log(sum(exp(scores)))."""
    top = scores[0]
    for k in range(1, width):
        top = max(top, scores[k])
    total = np.float32(0)
    for k in range(width):
        scores[k] = math.exp(scores[k] - top)
        total += scores[k]
    for k in range(width):
        scores[k] /= total
    return top + math.log(total)
