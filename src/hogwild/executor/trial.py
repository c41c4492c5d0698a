"""Choosing a sharing by trying each for a moment on the user's own data."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

from hogwild.arrays import bytes_of
from hogwild.executor.plan import Plan, build_crew
from hogwild.kernels.loop.order import Order
from hogwild.kernels.loop.schedule import Schedule
from hogwild.machine import cores

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
