"""Choosing a sharing by trying each for a moment on the user's own data."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

from hogwild.arrays import bytes_of
from hogwild.executor.prepare import Plan, build_crew
from hogwild.kernels.schedule import Schedule

CANDIDATES = ("all", "hot", "replica")
_WORTH = 2.0  # seconds: a shorter run is over before a trial has paid
_SHARE = 0.04  # of the run's time, at the most, for the whole trial
_LEAST = 200  # visits of one try: fewer say nothing
_ROUNDS = 3  # interleaved; the best of each candidate counts
_ROOM = 1 << 30  # weights up to this many bytes are copied for the tries
_GAIN = 0.85  # of the best fall in loss: a faster candidate that learns less than this is passed over


class Try(NamedTuple):
    """One candidate: seconds for the same visits, and the mean losses of their first eighth and second half."""

    seconds: float
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
    if bytes_of(plan.weights) > _ROOM:
        return "hot", "sharing hot: the weights are too large to try each sharing on copies."
    if plan.visits < 2 * _LEAST:
        return "all", "sharing all: too few samples for a trial."
    first = _try(plan, schedule, "hot", _LEAST)
    run_seconds = first.seconds / _LEAST * plan.visits * config.epochs
    if run_seconds < _WORTH:
        return "hot", "sharing hot: the run is too short for a trial of the others."
    visits = int(_LEAST * run_seconds * _SHARE / (first.seconds * _ROUNDS * len(CANDIDATES)))
    began = time.perf_counter()
    tries = _try_all(plan, schedule, max(_LEAST, min(visits, plan.visits // 2)))
    chosen = pick(tries)
    times = ", ".join(f"{name} {tries['all'].seconds / tries[name].seconds:.2f}x" for name in CANDIDATES)
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
    return min(good, key=lambda name: finite[name].seconds)


def _try_all(plan: Plan, schedule: Schedule, visits: int) -> dict[str, Try]:
    best: dict[str, Try] = {}
    for _ in range(_ROUNDS):
        for name in CANDIDATES:
            this = _try(plan, schedule, name, visits)
            if name not in best or this.seconds < best[name].seconds:
                best[name] = this
    return best


def _try(plan: Plan, schedule: Schedule, sharing: str, visits: int) -> Try:
    copy = type(plan.weights)(*(array.copy() for array in plan.weights))
    crew, _ = build_crew(plan, copy, schedule, sharing)
    crew.compile()
    order = plan.order(0)
    crew.start()
    sums, began = [], time.perf_counter()
    try:
        for stop in (visits // 8, visits // 2, visits):
            crew.run_until(order, stop)
            sums.append(crew.counters.loss)
        crew.sharing.collect()
        seconds = time.perf_counter() - began
    finally:
        crew.end()
    if crew.claims.error is not None:
        return Try(math.inf, math.inf, math.inf)
    return Try(seconds, sums[0] / (visits // 8), (sums[2] - sums[1]) / (visits - visits // 2))
