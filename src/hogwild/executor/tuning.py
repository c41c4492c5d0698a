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
from hogwild.kernels.loop.schedule import Schedule, make_schedule
from hogwild.kernels.loop.span import Span
from hogwild.machine import cores

_FACTOR = 2.0
_BLOWN = 10.0  # times the loss without training: a rate at which training loses that much on the way is too large
_LEAST_GAIN = 0.01  # of the first loss, for a step to be worth it
_LEAST_SAMPLES = 0.5  # what a step must gain at least, in samples of the first loss: of few samples a loss is luck
_LEARNT = 0.9  # of the loss without training: above this a larger rate needs no reason but a gain
_TRIES = 20
# Seconds of one try, at least and at the most, at the program's own figure for a visit: 2,000 and 4,000 visits at the
# usual one; 500 say nothing of sgd on text. No clock is read: the same run chooses the same rate again.
_TRY_SECONDS = (0.04, 0.08)
_RATE_SHARE = 0.02  # and otherwise this share of an epoch
_FOLDS = 5  # parts of small data, of which each is held out once
_FEWEST = 32  # visits of a try, however long they take
_READ = 1 << 28  # bytes of samples that all passes of a try read, about, unless two passes take more
_FIRST = 0.1
_NOTHING = 1e-12  # a rate at which nothing is learnt
_CALIBRATION = 1 << 30  # an epoch number that no run reaches: calibration has an order of its own
_TOGETHER = 64  # samples that are read together when data larger than memory is sampled
_RATE_ROOM = 1 << 32  # weights up to this many bytes are copied for the tries


def calibrate(plan: Plan, seed: int) -> tuple[float, float, int]:
    """Find a learning rate on a sample of the data: the one with the lowest loss on a part of it that is held out, so
    that data which can be learnt by heart do not mislead it.

    Tries run serially on a copy of the weights: from 0.1 on up by factors of four while that helps, else down; then
    the two neighbours at a factor of two.

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
    first = trial(0) if math.isfinite(trial(0)) else 0.0
    luck = _LEAST_SAMPLES / trial.samples * first
    least = max(_LEAST_GAIN * first, luck)
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
    larger = trial(best + 1) < trial(best) - luck or not math.isfinite(trial(best))
    best = min(best, best - 1, best + larger, key=trial)
    if not math.isfinite(trial(best)):
        raise ConfigError(
            "no learning rate gives a finite loss on a sample: features or labels are too large. Check which column is "
            "the label, scale what is large, or give --lr."
        )
    return plan.program.rate_of_run(_FIRST * _FACTOR**best, trial.share), trial(best), trial.tries


def prepare_probes(plan: Plan) -> float:
    """Compile what calibration runs; returns seconds."""
    began = time.perf_counter()
    backend_of(plan).probe(plan.weights, ())
    return time.perf_counter() - began


class _Trial:
    """The mean held-out loss of a short serial run at the learning rate _FIRST * _FACTOR**step; each step is run once.

    Of large data one pass over a sample is made, and what follows it is held out. Small data, and that of a program
    which asks for it (`Program.whole_tries`), is trained on as in the run, with all epochs; of small data each of
    `_FOLDS` parts is held out once, else one part.

    A rate at which training blows up has no finite loss: where classes can be told apart, weights that have grown
    without bounds on the way may be right about all that is held out.
    """

    def __init__(self, plan: Plan, order: Order) -> None:
        self._plan = plan
        self._backend = backend_of(plan)
        self._order = order
        config, every = plan.config, plan.visits
        least, most = (max(_FEWEST, round(seconds / plan.program.visit_seconds)) for seconds in _TRY_SECONDS)
        sample = plan.program.whole_tries or max(least, min(most, int(every * _RATE_SHARE)))
        self._whole = every <= least or bool(plan.program.whole_tries)
        self._sample = min(every, sample + (0 if self._whole else sample // 2))
        self._folds = min(_FOLDS, self._sample) if self._whole else 3
        self._turns = self._folds if self._whole and self._sample <= least else 1
        visits = self._sample - self._sample // self._folds
        self._passes = 1
        if self._whole:
            passes = config.epochs if plan.program.whole_tries else min(config.epochs, max(2, least // max(1, visits)))
            self._passes = min(passes, max(2, _READ // max(1, plan.bytes)))
        self._schedule = config.schedule if self._whole else "constant"
        self._visits = visits
        self._losses: dict[int, float] = {}
        loss = abs(self._backend.probe(_copy(plan.weights), [self._still(0, self._sample)])) / max(1, self._sample)
        self._most = _BLOWN * loss  # without training spans, a fifth of the sample at least, have half of that at most

    @property
    def tries(self) -> int:
        """Steps that were run."""
        return len(self._losses)

    @property
    def samples(self) -> int:
        """That tries look at."""
        return self._sample

    @property
    def share(self) -> float:
        """Of the visits of an epoch, that tries look at."""
        return self._sample / self._plan.visits

    def untrained(self) -> float:
        """The held-out loss of weights that stay as they are."""
        return self._mean(0.0)

    def __call__(self, step: int) -> float:
        if step not in self._losses:
            self._losses[step] = self._mean(_FIRST * _FACTOR**step)
        return self._losses[step]

    def _mean(self, rate: float) -> float:
        """Over what is held out, of one part after the other."""
        total, held = 0.0, 0
        for turn in range(self._turns):
            first, end = (self._sample * (self._folds - turn - k) // self._folds for k in (1, 0))
            total += self._held_out(rate, first, end)
            held += end - first
        return total / max(1, held)

    def _held_out(self, rate: float, first: int, end: int) -> float:
        """The sum of losses from position `first` up to `end`, after training on the rest of the sample."""
        config, order, passes = self._plan.config, self._order, self._passes
        spans = []
        if rate:
            schedule = make_schedule(self._schedule, rate, self._sample, passes, config.decay, config.lr_end)
            for epoch in range(passes):
                # A span's place in the schedule is `before` and its positions: what is held out takes no time.
                for start, stop in ((0, first), (end, self._sample)):
                    if start < stop:
                        spans.append(Span(order, schedule, start, stop, epoch * self._sample, 0, 0, 1))
        return self._backend.probe(_copy(self._plan.weights), [*spans, self._still(first, end)], self._most)

    def _still(self, first: int, end: int) -> Span:
        """Visits that change nothing."""
        return Span(self._order, Schedule(_NOTHING, 0.0, 0.0), first, end, 0, 0, 0, 1)


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
    if config.device or plan.program.backend(config) is not None:
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
