"""Learning rates: how they fall, and what to begin with when the user gives none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hogwild.arrays import bytes_of, make_scratch
from hogwild.errors import ConfigError
from hogwild.kernels.loop import Span, runner
from hogwild.kernels.modes import FreeMode
from hogwild.kernels.order import shuffled
from hogwild.kernels.schedule import Schedule
from hogwild.kernels.trace import Untraced

if TYPE_CHECKING:
    from hogwild.executor.prepare import Plan

_FACTOR = 2.0
_TRIES = 12
_SAMPLE = (200, 2000)  # visits of one try: at least, at the most
_SHARE = 0.02  # and otherwise this share of an epoch
_FIRST = 0.1
_CALIBRATION = 1 << 30  # an epoch number that no run reaches: calibration has an order of its own
_ROOM = 1 << 32  # weights up to this many bytes are copied for the tries


def make_schedule(name: str, lr: float, visits: int, epochs: int, decay: float = 0.0) -> Schedule:
    """The learning rate as a function of progress.

    Parameters
    ----------
    name : `constant`; `linear`, down to zero at the end of the last epoch; `inverse`, lr / (1 + decay * epochs so far).
    visits : visits in one epoch.

    Examples
    --------
    >>> make_schedule("linear", 0.5, visits=100, epochs=2).slope
    0.005
    """
    total = float(max(1, visits * epochs))
    if name == "constant":
        return Schedule(lr, 0.0, 0.0)
    if name == "linear":
        return Schedule(lr, 1.0 / total, 0.0)
    if name == "inverse":
        return Schedule(lr, 0.0, (decay or 1.0) / max(1, visits))
    raise ConfigError(f"schedule is {name!r}; it must be constant, linear or inverse.")


def rate_after(schedule: Schedule, position: int) -> float:
    """Learning rate after so many visits."""
    return float(schedule.first * (1 - schedule.slope * position) / (1 + schedule.decay * position))


def calibrate(plan: Plan, seed: int) -> tuple[float, float, int]:
    """Find a learning rate on a sample of the data: the one with the lowest loss, each visit's taken before its update.

    Tries run serially on a copy of the weights, from 0.1 on up by factors of two while that helps, else down.

    Returns
    -------
    rate, its mean loss, and how many tries were made.
    """
    if bytes_of(plan.weights) > _ROOM:
        raise ConfigError("the weights are too large to try learning rates on a copy; give one with --lr.")
    trial = _Trial(plan, seed)
    best, loss = _FIRST, trial(_FIRST)
    for factor in (_FACTOR, 1 / _FACTOR):
        rate = best
        while trial.tries < _TRIES:
            rate *= factor
            now = trial(rate)
            if not now < loss:
                break
            best, loss = rate, now
        if best != _FIRST:
            break
    if not math.isfinite(loss):
        raise ConfigError("no learning rate gives a finite loss on a sample of the data; scale the features or give --lr.")
    return best, loss, trial.tries


class _Trial:
    """The mean loss of a short serial run at a learning rate."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.tries = 0
        self._plan = plan
        self._visits = min(plan.visits, max(_SAMPLE[0], min(_SAMPLE[1], int(plan.visits * _SHARE))))
        self._order = shuffled(plan.visits, seed, epoch=_CALIBRATION)
        self._seed = np.uint64(seed)

    def __call__(self, rate: float) -> float:
        self.tries += 1
        plan = self._plan
        copy = type(plan.weights)(*(array.copy() for array in plan.weights))
        span = Span(self._order, Schedule(rate, 0.0, 0.0), 0, self._visits, 0, 0, np.float32(1))
        run = runner(plan.task, plan.samples, copy)
        scratch = make_scratch(plan.room, self._seed)
        total = run(plan.task, FreeMode(), Untraced(), plan.samples, copy, scratch, span)
        return float(total) / self._visits if math.isfinite(total) else math.inf
