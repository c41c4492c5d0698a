"""Learning rates: how they fall, and what to begin with when the user gives none."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.arrays import bytes_of, make_scratch
from hogwild.errors import ConfigError
from hogwild.kernels.loop.modes import FreeMode
from hogwild.kernels.loop.order import Order, file_order, shuffled
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.loop.span import Span, runner
from hogwild.kernels.loop.trace import Untraced

if TYPE_CHECKING:
    from hogwild.executor.plan import Plan

_FACTOR = 2.0
_LEAST_GAIN = 0.01  # of the first loss, for a step to be worth it
_LEARNT = 0.9  # of the loss without training: above this a larger rate needs no reason but a gain
_TRIES = 20
_SAMPLE = (2000, 4000)  # visits of one try: at least, at the most; 500 say nothing of sgd on text
_SHARE = 0.02  # and otherwise this share of an epoch
_READ = 1 << 28  # bytes of samples that all passes of a try read, about, unless two passes take more
_FIRST = 0.1
_NOTHING = 1e-12  # a rate at which nothing is learnt
_CALIBRATION = 1 << 30  # an epoch number that no run reaches: calibration has an order of its own
_TOGETHER = 64  # samples that are read together when data larger than memory is sampled
_ROOM = 1 << 32  # weights up to this many bytes are copied for the tries


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


def calibrate(plan: Plan, seed: int) -> tuple[float, float, int]:
    """Find a learning rate on a sample of the data: the one with the lowest loss, each visit's taken before its update.

    Tries run serially on a copy of the weights: from 0.1 on up by factors of four while that helps, else down; then
    the two neighbours at a factor of two. The second half of a try counts, when something has been learnt; small data
    is visited several times, and the last time counts.

    Returns
    -------
    rate, its mean loss, and how many tries were made.
    """
    if bytes_of(plan.weights) > _ROOM:
        raise ConfigError("the weights are too large to try learning rates on a copy; give one with --lr.")
    block = 1 if plan.fits else _TOGETHER
    trial = _Trial(plan, seed, shuffled(plan.visits, seed, _CALIBRATION, block))
    best = 0
    # Where classes can be told apart the loss falls for ever: a step must be worth it, measured by the first loss.
    least = _LEAST_GAIN * trial(0) if math.isfinite(trial(0)) else 0.0
    # Targets in the thousands: at a rate far too small next to nothing is learnt, and steps gain next to nothing.
    hardly = _LEARNT * trial.untrained()
    for way in (2, -2):
        step = way
        if way > 0 and not math.isfinite(trial(0)):
            continue  # a larger rate will not help
        while trial.tries < _TRIES:
            worth = 0.0 if way > 0 and trial(best) > hardly else least
            if trial(step) >= trial(best) - worth and math.isfinite(trial(best)):
                break
            best = min(best, step, key=trial)
            step += way
        if best != 0:
            break
    best = min(best, best - 1, best + 1, key=trial)
    if not math.isfinite(trial(best)):
        raise ConfigError(
            "no learning rate gives a finite loss on a sample: features or labels are too large. Check which column is "
            "the label, scale what is large, or give --lr."
        )
    return _FIRST * _FACTOR**best, trial(best), trial.tries


def compile_tries(plan: Plan) -> float:
    """Compile what calibration runs; returns seconds."""
    began = time.perf_counter()
    _Trial(plan, 0, file_order(plan.visits)).compile()
    return time.perf_counter() - began


class _Trial:
    """The mean loss of a short serial run at the learning rate _FIRST * _FACTOR**step; each step is run once."""

    def __init__(self, plan: Plan, seed: int, order: Order) -> None:
        self._plan = plan
        self._visits = min(plan.visits, max(_SAMPLE[0], min(_SAMPLE[1], int(plan.visits * _SHARE))))
        self._passes = max(1, _SAMPLE[0] // self._visits) if self._visits == plan.visits else 1
        self._passes = min(self._passes, max(2, _READ // max(1, plan.bytes)))
        self._order = order
        self._seed = np.uint64(seed)
        self._losses: dict[int, float] = {}

    def compile(self) -> None:
        """Run on nothing."""
        self._visits, self._passes = 0, 1
        self._run(0.0, self._plan.weights)

    @property
    def tries(self) -> int:
        """Steps that were run."""
        return len(self._losses)

    def untrained(self) -> float:
        """The loss of weights that all but stay as they are; a rate of 0 is no rate for ftrl, which divides by it."""
        return self._run(_NOTHING, self._copy())

    def __call__(self, step: int) -> float:
        if step not in self._losses:
            self._losses[step] = self._run(_FIRST * _FACTOR**step, self._copy())
        return self._losses[step]

    def _copy(self) -> Any:
        return type(self._plan.weights)(*(array.copy() for array in self._plan.weights))

    def _run(self, rate: float, weights: Any) -> float:
        plan = self._plan
        whole = Span(self._order, Schedule(rate, 0.0, 0.0), 0, self._visits, 0, 0, 0, 1)
        half = self._visits // 2
        spans = [whole] * self._passes if self._passes > 1 else [whole._replace(stop=half), whole._replace(start=half)]
        run = runner(plan.task, plan.samples, weights)
        scratch = make_scratch(plan.room, self._seed)
        total = math.inf
        for span in spans:
            total = run(plan.task, FreeMode(), Untraced(), plan.samples, weights, scratch, span)
            if not math.isfinite(total):
                return math.inf
        return float(total) / max(1, spans[-1].stop - spans[-1].start)
