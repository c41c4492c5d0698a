"""The learning rate as a pure function of progress: no shared counter, the same for every split of the work."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import kernel


class Schedule(NamedTuple):
    """rate(p) = first * (1 - slope p) / (1 + decay p) after p visits.

    Constant: slope = decay = 0. Linear decay: slope = 1 / total. Inverse: decay > 0.
    """

    first: float
    slope: float
    decay: float


@kernel
def rate_at(schedule: Any, position: Any) -> Any:
    """Learning rate of the visit at a position (visits since training began)."""
    return np.float32(schedule.first * (1.0 - schedule.slope * position) / (1.0 + schedule.decay * position))


@kernel
def elapsed_at(schedule: Any, position: Any) -> Any:
    """Integral of the rate from 0 to a position: the clock of lazy regularization.

    With both slope s and decay d: integral of (1 - s p) / (1 + d p) = -s p / d + (1 + s / d) log(1 + d p) / d.
    """
    if schedule.decay > 0.0:
        tail = (1.0 + schedule.slope / schedule.decay) * math.log1p(schedule.decay * position) / schedule.decay
        return schedule.first * (tail - schedule.slope * position / schedule.decay)
    return schedule.first * (position - 0.5 * schedule.slope * position * position)
