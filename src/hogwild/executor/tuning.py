"""What is chosen by trying it on the user's own data: the first learning rate, and a sharing."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import bytes_of, make_scratch
from hogwild.errors import ConfigError
from hogwild.executor.plan import Plan, build_crew
from hogwild.kernels.loop.modes import FreeMode
from hogwild.kernels.loop.order import Order, file_order, shuffled
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.loop.span import Span, runner
from hogwild.kernels.loop.trace import Untraced
from hogwild.machine import cores

_FACTOR = 2.0
_LEAST_GAIN = 0.01  # of the first loss, for a step to be worth it
_LEARNT = 0.9  # of the loss without training: above this a larger rate needs no reason but a gain
_TRIES = 20
_SAMPLE = (2000, 4000)  # visits of one try: at least, at the most; 500 say nothing of sgd on text
_RATE_SHARE = 0.02  # and otherwise this share of an epoch
_READ = 1 << 28  # bytes of samples that all passes of a try read, about, unless two passes take more
_FIRST = 0.1
_NOTHING = 1e-12  # a rate at which nothing is learnt
_CALIBRATION = 1 << 30  # an epoch number that no run reaches: calibration has an order of its own
_TOGETHER = 64  # samples that are read together when data larger than memory is sampled
_RATE_ROOM = 1 << 32  # weights up to this many bytes are copied for the tries


def calibrate(plan: Plan, seed: int) -> tuple[float, float, int]:
    """Find a learning rate on a sample of the data: the one with the lowest loss, each visit's taken before its update.

    Tries run serially on a copy of the weights: from 0.1 on up by factors of four while that helps, else down; then
    the two neighbours at a factor of two. The second half of a try counts, when something has been learnt; small data
    is visited several times, and the last time counts.

    Returns
    -------
    rate, its mean loss, and how many tries were made.
    """
    if bytes_of(plan.weights) > _RATE_ROOM:
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
        self._visits = min(plan.visits, max(_SAMPLE[0], min(_SAMPLE[1], int(plan.visits * _RATE_SHARE))))
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


# -- Choosing a sharing by trying each for a moment on the user's own data --------------------------------------------


CANDIDATES = ("all", "hot", "replica")
_SHARE = 0.04  # of the run's time, at the most, for the whole trial; a run for which that is not enough has none
_LEAST = 800  # visits of one try: fewer say nothing
_ROUNDS = 3  # interleaved; the best of each candidate counts
_ROOM = 1 << 30  # weights up to this many bytes are copied for the tries
_GAIN = 0.85  # of the best fall in loss: a faster candidate that learns less than this is passed over


class Try(NamedTuple):
    """One candidate: its speed once it runs, and the mean losses of the first eighth and second half of the visits."""

    seconds_per_visit: float
    first_loss: float
    loss: float


def choose_sharing(plan: Plan, schedule: Schedule) -> tuple[str, str]:
    """The sharing for a run, and a sentence that says why.

    Judged by learning, not by speed alone: the fastest of the candidates whose loss has fallen by at least 85 % of
    what the best one reached in the same visits.
    """
    config = plan.config
    if config.sharing != "auto":
        return config.sharing, ""
    if config.mode != "hogwild" or plan.workers == 1:
        return "all", ""
    if config.trace:
        return "all", "sharing all: a trace looks at what workers overwrite in one copy; see --sharing for others."
    if plan.workers > cores():
        # A worker that waits for a core holds its private rows back, and the others learn without them.
        return "all", "sharing all: there are more workers than cores."
    if bytes_of(plan.weights) > _ROOM:
        usual = plan.program.sharing
        return usual, f"sharing {usual}: the weights are too large to try each sharing on copies."
    if plan.visits < 2 * _LEAST:
        return "all", "sharing all: too few samples for a trial."
    began = time.perf_counter()
    order = plan.order(0)
    first = _try(plan, schedule, plan.program.sharing, order, _LEAST)
    if not math.isfinite(first.loss):
        return "all", ""  # the run will fail in the same way, and say how
    one_try = time.perf_counter() - began
    budget = _SHARE * plan.visits * config.epochs * first.seconds_per_visit / (_ROUNDS * len(CANDIDATES))
    if budget < one_try:
        usual = plan.program.sharing
        return usual, f"sharing {usual}: the run is too short for a trial of the others."
    visits = _LEAST + int((budget - one_try) / first.seconds_per_visit)
    tries = _try_all(plan, schedule, order, min(visits, plan.visits // 2))
    chosen = pick(tries)
    base = tries["all"].seconds_per_visit
    times = ", ".join(f"{name} {base / tries[name].seconds_per_visit:.2f}x" for name in CANDIDATES)
    spent = time.perf_counter() - began
    return chosen, f"sharing {chosen}: fastest that learns as well in a trial of {spent:.2g} s ({times})."


def pick(tries: dict[str, Try]) -> str:
    """The fastest candidate among those that learn well enough."""
    finite = {name: t for name, t in tries.items() if math.isfinite(t.loss)}
    if not finite:
        return "all"
    start = max(t.first_loss for t in finite.values())
    most = max(0.0, start - min(t.loss for t in finite.values()))
    good = [name for name, t in finite.items() if start - t.loss >= _GAIN * most] or list(finite)
    return min(good, key=lambda name: finite[name].seconds_per_visit)


def _try_all(plan: Plan, schedule: Schedule, order: Order, visits: int) -> dict[str, Try]:
    best: dict[str, Try] = {}
    for _ in range(_ROUNDS):
        for name in CANDIDATES:
            this = _try(plan, schedule, name, order, visits)
            if name not in best or this.seconds_per_visit < best[name].seconds_per_visit:
                best[name] = this
    return best


def _try(plan: Plan, schedule: Schedule, sharing: str, order: Order, visits: int) -> Try:
    copy = type(plan.weights)(*(array.copy() for array in plan.weights))
    crew, _ = build_crew(plan, copy, schedule, sharing)
    crew.compile()
    sums, times = [], []
    try:
        crew.start()
        for stop in (visits // 8, visits // 2, visits):
            crew.run_until(order, stop)
            sums.append(crew.counters.loss)
            times.append(time.perf_counter())
    finally:
        crew.end()
    if crew.claims.error is not None:
        return Try(math.inf, math.inf, math.inf)
    rest = visits - visits // 2
    # The first eighth starts threads and fills caches: a long run does that once.
    return Try((times[2] - times[0]) / (visits - visits // 8), sums[0] / (visits // 8), (sums[2] - sums[1]) / rest)
