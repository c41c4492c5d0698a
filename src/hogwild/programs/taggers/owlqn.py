"""OWL-QN: L-BFGS for a smooth function + l1 |x|, which ends with most numbers at exactly zero.

Andrew and Gao, Scalable training of L1-regularized log-linear models, 2007. Within an orthant |x| is linear. So each
step takes the direction of L-BFGS from the pseudo-gradient (the slope of steepest descent, 0 where neither side of a
zero goes down), keeps of it what goes down, and stops every number at zero that would change its sign. Only numbers
whose gradient stays above l1 leave zero. Visits one by one cannot do that: the noise of their gradients moves every
weight that they touch.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats

Smooth = Callable[[Floats], tuple[float, Floats]]
"""Value and gradient at a place."""
Look = Callable[[Floats, int], bool]
"""Called after each iteration with the place and how many there were; True ends them."""

_MEMORY = 6        # steps that the curvature is taken from, as CRFsuite has it
_ENOUGH = 1e-4     # share of the fall that the slope promises, from which on a step is taken
_SHORTEST = 1e-10  # of a step; below, rounding hides what falls


class Limits(NamedTuple):
    """Iterations at the most; it ends when `period` of them have lowered the value by less than a share `delta`."""

    iterations: int
    delta: float = 1e-4
    period: int = 10


def minimise(smooth: Smooth, x: Floats, l1: float, limits: Limits, look: Look = lambda x, iteration: False) -> Floats:
    """Where smooth(x) + l1 |x| is least, from `x` on.

    >>> def smooth(x):
    ...     return 0.5 * float((x - [3.0, 0.5]) @ (x - [3.0, 0.5])), x - np.float32([3.0, 0.5])
    >>> minimise(smooth, np.zeros(2, np.float32), 1.0, Limits(50)).tolist()
    [2.0, 0.0]
    """
    value, gradient = smooth(x)
    whole = value + l1 * _size(x)
    steps: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    values = [whole]
    for iteration in range(1, limits.iterations + 1):
        slope = _pseudo_gradient(x, gradient, np.float32(l1))
        if not slope.any():
            break
        direction = _newton(-slope, steps)
        direction[direction * slope >= 0] = 0
        signs = np.where(x != 0, np.sign(x), -np.sign(slope))
        length = 1.0 if steps else 1.0 / math.sqrt(float(slope @ slope))
        while True:
            there = x + np.float32(length) * direction
            there[there * signs <= 0] = 0
            value, new = smooth(there)
            now = value + l1 * _size(there)
            if now <= whole + _ENOUGH * float(slope @ (there - x)):
                break
            length /= 2
            if length < _SHORTEST:
                return x
        step, change = there - x, new - gradient
        bend = float(step @ change)
        if bend > 0:
            steps.append((step, change, 1 / bend))
        x, gradient, whole = there, new, now
        values.append(whole)
        if look(x, iteration):
            break
        if len(values) > limits.period and values[-1 - limits.period] - whole < limits.delta * abs(whole):
            break
    return x


def _size(x: Floats) -> float:
    return float(np.abs(x).sum(dtype=np.float64))


def _pseudo_gradient(x: Floats, gradient: Floats, l1: np.float32) -> Floats:
    """The slope to the side on which the whole falls; 0 where it falls on none."""
    rest: Any = np.where(gradient < -l1, gradient + l1, np.where(gradient > l1, gradient - l1, np.float32(0)))
    return np.where(x > 0, gradient + l1, np.where(x < 0, gradient - l1, rest)).astype(np.float32)


def _newton(direction: npt.NDArray[Any], steps: deque[tuple[Floats, Floats, float]]) -> Floats:
    """The direction times the inverse curvature that the last steps tell (the two loops of L-BFGS)."""
    shares = []
    for step, change, scale in reversed(steps):
        shares.append(scale * float(step @ direction))
        direction = direction - np.float32(shares[-1]) * change
    if steps:
        step, change, scale = steps[-1]
        direction = direction * np.float32(1 / (scale * float(change @ change)))
    for (step, change, scale), share in zip(steps, reversed(shares), strict=True):
        direction = direction + np.float32(share - scale * float(change @ direction)) * step
    return direction
