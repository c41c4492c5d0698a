"""The learning rate as a pure function of progress: no shared counter, the same for every split of the work."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.errors import ConfigError
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


def make_schedule(name: str, lr: float, visits: int, epochs: int, decay: float = 0.0, end: float = 0.0) -> Schedule:
    """The learning rate as a function of progress.

    Parameters
    ----------
    name : `constant`; `linear`, down to the share `end` of it at the end of the last epoch; `inverse`,
        lr / (1 + decay * epochs so far).
    visits : visits in one epoch.

    Examples
    --------
    >>> make_schedule("linear", 0.5, visits=100, epochs=2).slope
    0.005
    """
    lr = float(lr)  # a whole number would be another type, and the loop compiled once more for it
    total = float(max(1, visits * epochs))
    if name == "constant":
        return Schedule(lr, 0.0, 0.0)
    if name == "linear":
        return Schedule(lr, (1.0 - end) / total, 0.0)
    if name == "inverse":
        return Schedule(lr, 0.0, (decay or 1.0) / max(1, visits))
    raise ConfigError(f"schedule is {name!r}; it must be constant, linear or inverse.")


def rate_after(schedule: Schedule, position: int) -> float:
    """Learning rate after so many visits."""
    return float(schedule.first * (1 - schedule.slope * position) / (1 + schedule.decay * position))
