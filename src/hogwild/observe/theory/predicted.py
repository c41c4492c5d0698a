"""The bound of the theorem beside what a simulation predicts, where the program is one that the theorem is about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hogwild.errors import ConfigError
from hogwild.executor.virtual.simulate import Outcome
from hogwild.observe.theory.bound import smallest_epsilon, updates
from hogwild.observe.theory.estimates import estimate
from hogwild.observe.theory.objective import Objective, objective_of
from hogwild.observe.theory.runs import Simulated

_EPSILON = 0.01  # of the lowest loss: where the constants of the theorem are measured
_START = 4.0
_MARGIN = 1.5
_COPIES = 4
_WORK = 2e8  # cells of weights that all updates of the measurement touch, at the most


def bounds_of(program: Any, feed: Any, outcomes: Sequence[Outcome]) -> tuple[list[float | None], str]:
    """For each outcome the f(w) - f(w*) that the theorem promises in spite of its gradient errors, and why not, if so.

    The errors are those of the outcome: weights are read as they were so many updates ago, as often as gradients had an
    error, and as many writes are lost.
    """
    nothing: list[float | None] = [None] * len(outcomes)
    try:
        objective = objective_of(program, feed)
        epsilon = _EPSILON * objective.lowest
        if (work := _work(objective, epsilon, outcomes)) > _WORK:
            return nothing, f"no bound of the theorem: to measure its constants takes {work:.1g} steps of weights."
        return [_bound(objective, epsilon, outcome) for outcome in outcomes], ""
    except ConfigError as error:
        return nothing, f"no bound of the theorem: {error}"


def _work(objective: Objective, epsilon: float, outcomes: Sequence[Outcome]) -> float:
    first = objective.on_the_way(_START * epsilon)
    a0 = objective.distance(first)
    radius = _MARGIN * math.sqrt(a0)
    c, q = objective.curvature(radius)
    count = updates(c, q, objective.largest_term(radius), epsilon, 0.0, a0)
    return float(count) * objective.features * _COPIES * len(outcomes)


def _bound(objective: Objective, epsilon: float, outcome: Outcome) -> float:
    delay = math.ceil(outcome.delay)
    engine = Simulated(objective, delay, outcome.error_rate, min(1.0, outcome.lost), _COPIES)
    known = estimate(engine, epsilon, _START, runs=1)
    return smallest_epsilon(known.c, known.q, max(0.0, known.tau))
