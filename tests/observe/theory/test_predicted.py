"""The bound of the theorem beside predictions: there where a program is convex and small, else with a reason."""

from __future__ import annotations

import numpy as np

import hogwild
from hogwild.executor.virtual.simulate import Outcome
from hogwild.observe.theory.predicted import bounds_of


def _outcome(error_rate: float, delay: float) -> Outcome:
    return Outcome(4, 4, True, (0.5,), {}, error_rate, 0.0, delay, delay, 0.0, 100, 100, 1.0)


def test_without_errors_any_gap_can_be_reached_and_with_some_a_small_one():
    """What is late on the way to the optimum may even push towards it: then the bound is 0 again."""
    X = np.random.default_rng(1).normal(size=(60, 3))
    feed = hogwild.feed_of(X, X[:, 0] > 0)
    program = hogwild.Linear(l2=0.5, bias=False)
    bounds, why = bounds_of(program, feed, [_outcome(0.0, 0.0), _outcome(0.1, 1.0), _outcome(1.0, 20.0)])
    assert why == ""
    assert bounds[0] < 1e-9 < bounds[1] < 0.01
    assert bounds[2] >= 0


def test_a_reason_where_there_is_none():
    feed = hogwild.feed_of(np.eye(3), [0, 1, 0])
    bounds, why = bounds_of(hogwild.Linear(), feed, [_outcome(0.1, 1.0)])
    assert bounds == [None]
    assert "no bound of the theorem" in why
    assert "bias" in why
