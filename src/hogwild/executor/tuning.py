"""What is chosen by trying it on the user's own data: the first learning rate, and a sharing."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

from hogwild.arrays import bytes_of
from hogwild.errors import ConfigError
from hogwild.executor.plan import Plan
from hogwild.executor.sharing import SHORT
from hogwild.executor.workers import backend_of, build_crew
from hogwild.kernels.loop.order import Order, shuffled
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.loop.span import Span
from hogwild.machine import cores

_FACTOR = 2.0
_LEAST_GAIN = 0.01  # of the first loss, for a step to be worth it
_LEARNT = 0.9  # of the loss without training: above this a larger rate needs no reason but a gain
_TRIES = 20
# Seconds of one try, at least and at the most, at the program's own figure for a visit: 2,000 and 4,000 visits at the
# usual one; 500 say nothing of sgd on text. No clock is read: the same run chooses the same rate again.
_TRY_SECONDS = (0.04, 0.08)
_RATE_SHARE = 0.02  # and otherwise this share of an epoch
_FEWEST = 32  # visits of a try, however long they take
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
    trial = _Trial(plan, shuffled(plan.visits, seed, _CALIBRATION, block))
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


def prepare_probes(plan: Plan) -> float:
    """Compile what calibration runs; returns seconds."""
    began = time.perf_counter()
    backend_of(plan).probe(plan.weights, ())
    return time.perf_counter() - began


class _Trial:
    """The mean loss of a short serial run at the learning rate _FIRST * _FACTOR**step; each step is run once."""

    def __init__(self, plan: Plan, order: Order) -> None:
        self._plan = plan
        self._backend = backend_of(plan)
        least, most = (max(_FEWEST, round(seconds / plan.program.visit_seconds)) for seconds in _TRY_SECONDS)
        self._visits = min(plan.visits, max(least, min(most, int(plan.visits * _RATE_SHARE))))
        self._passes = max(1, least // self._visits) if self._visits == plan.visits else 1
        self._passes = min(self._passes, max(2, _READ // max(1, plan.bytes)))
        self._order = order
        self._losses: dict[int, float] = {}

    @property
    def tries(self) -> int:
        """Steps that were run."""
        return len(self._losses)

    def untrained(self) -> float:
        """The loss of weights that all but stay as they are; a rate of 0 is no rate for ftrl, which divides by it."""
        return self._run(_NOTHING, _copy(self._plan.weights))

    def __call__(self, step: int) -> float:
        if step not in self._losses:
            self._losses[step] = self._run(_FIRST * _FACTOR**step, _copy(self._plan.weights))
        return self._losses[step]

    def _run(self, rate: float, weights: Any) -> float:
        whole = Span(self._order, Schedule(rate, 0.0, 0.0), 0, self._visits, 0, 0, 0, 1)
        half = self._visits // 2
        spans = [whole] * self._passes if self._passes > 1 else [whole._replace(stop=half), whole._replace(start=half)]
        return self._backend.probe(weights, spans) / max(1, spans[-1].stop - spans[-1].start)


# -- Choosing a sharing by trying each for a moment on the user's own data --------------------------------------------


CANDIDATES = ("all", "hot", "replica")
_SHARE = 0.04  # of the run's time, at the most, for the whole trial; a run for which that is not enough has none
_LEAST_SECONDS = 0.01  # of the visits of one try: less says nothing
_LEAST = 800  # visits of one try, where they take less than that
_ROUNDS = 3  # interleaved; the best time of each candidate counts, and the mean of its losses
_ROOM = 1 << 30  # weights up to this many bytes are copied for the tries
_WORSE = 0.005  # of the held-out loss of one copy: a faster candidate that learns less well than this is passed over
_FASTER = 1.05  # than one copy: private copies must pay
_HELD_OUT = 4000  # visits, at the most, on which a try is judged


class Try(NamedTuple):
    """What came of one candidate: its time, and its loss on samples that it was not trained on."""

    seconds_per_visit: float
    loss: float


def choose_sharing(plan: Plan, schedule: Schedule) -> tuple[str, str]:
    """The sharing of a run, and a note on why."""
    config = plan.config
    if config.mode != "hogwild" or plan.workers == 1:
        return "all" if config.sharing == "auto" else config.sharing, ""
    if config.sharing != "auto":
        return config.sharing, ""
    if config.device:
        return "all", ""  # there is one copy
    if config.trace:
        return "all", "sharing all: a trace looks at what workers overwrite in one copy; see --sharing for others."
    if plan.workers > cores():
        # Private copies are for one worker a core (`make_store`): whoever asks for more has one copy in mind.
        return "all", "sharing all: there are more workers than cores."
    usual = plan.program.sharing
    if bytes_of(plan.weights) > _ROOM:
        return usual, f"sharing {usual}: the weights are too large to try each sharing on copies."
    if plan.visits < SHORT:
        return "all", "sharing all: one copy is best where samples are few."
    began = time.perf_counter()
    order = plan.order(0)
    visits = max(_FEWEST, min(_LEAST, int(_LEAST_SECONDS / _visit_seconds(plan, order))))
    first = _try(plan, schedule, usual, order, visits)
    if not math.isfinite(first.loss):
        return "all", ""  # the run will fail in the same way, and say how
    one_try = time.perf_counter() - began
    budget = _SHARE * plan.visits * config.epochs * first.seconds_per_visit / (_ROUNDS * len(CANDIDATES))
    if budget < one_try:
        return usual, f"sharing {usual}: the run is too short for a trial of the others."
    visits += int((budget - one_try) / first.seconds_per_visit)
    tries = _try_all(plan, schedule, order, min(visits, plan.visits // 2))
    chosen = pick(tries)
    base = tries["all"].seconds_per_visit
    times = ", ".join(f"{name} {base / tries[name].seconds_per_visit:.2f}x" for name in CANDIDATES)
    spent = time.perf_counter() - began
    return chosen, f"sharing {chosen}: fastest that learns as well in a trial of {spent:.2g} s ({times})."


def pick(tries: dict[str, Try]) -> str:
    """The fastest of the candidates that learn as well as one copy, if it is worth while."""
    one = tries["all"]
    most = one.loss + _WORSE * abs(one.loss)
    seconds = {name: this.seconds_per_visit for name, this in tries.items() if this.loss <= most}
    good = [name for name in seconds if _FASTER * seconds[name] <= one.seconds_per_visit]
    return min(good, key=seconds.__getitem__, default="all")


def _visit_seconds(plan: Plan, order: Order) -> float:
    """About how long a visit takes, by some that are made for it."""
    spans = [Span(order, Schedule(_NOTHING, 0.0, 0.0), 0, min(_FEWEST, plan.visits), 0, 0, 0, 1)]
    copy = _copy(plan.weights)
    prepare_probes(plan)
    began = time.perf_counter()
    backend_of(plan).probe(copy, spans)
    return (time.perf_counter() - began) / spans[0].stop


def _try_all(plan: Plan, schedule: Schedule, order: Order, visits: int) -> dict[str, Try]:
    found: dict[str, list[Try]] = {name: [] for name in CANDIDATES}
    for _ in range(_ROUNDS):
        for name in CANDIDATES:
            found[name].append(_try(plan, schedule, name, order, visits))
    return {
        name: Try(min(this.seconds_per_visit for this in tries), sum(this.loss for this in tries) / len(tries))
        for name, tries in found.items()
    }


def _try(plan: Plan, schedule: Schedule, sharing: str, order: Order, visits: int) -> Try:
    crew = build_crew(plan, _copy(plan.weights), schedule, sharing)
    crew.prepare()
    times = []
    held = min(_HELD_OUT, visits, plan.visits - visits)
    try:
        crew.start()
        for stop in (visits // 8, visits):
            crew.run_until(order, stop)
            times.append(time.perf_counter())
        if crew.claims.error is not None:
            return Try(math.inf, math.inf)
        crew.collect()
        spans = [Span(order, Schedule(_NOTHING, 0.0, 0.0), visits, visits + held, 0, 0, 0, 1)]
        loss = crew.backend.probe(crew.store.weights, spans) / held
    finally:
        crew.end()
    # The first eighth starts threads and fills caches: a long run does that once.
    return Try((times[1] - times[0]) / (visits - visits // 8), loss)


def _copy(weights: Any) -> Any:
    return type(weights)(*(array.copy() for array in weights))
