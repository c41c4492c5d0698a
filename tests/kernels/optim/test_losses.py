"""Losses against their float64 twins, and their slopes against differences of the losses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.optim.losses import (
    STEEP,
    Hinge,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Squared,
    cost,
    slope,
    slopes,
    softmax,
)
from reference import linear as reference

ONE_SCORE = [Logistic(), Hinge(), Squared()]
EXTREME = [0.0, 1.0, -1.0, 0.3, -2.7, 40.0, -40.0, 200.0, -200.0]


@kernel
def ask(loss, score, target):
    return cost(loss, score, target), slope(loss, score, target)


@kernel
def ask_classes(loss, scores, target):
    return slopes(loss, scores, len(scores), target)


@pytest.mark.parametrize("loss", ONE_SCORE, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("target", [-1.0, 1.0])
def test_one_score(loss, target):
    name = type(loss).__name__
    for score in EXTREME:
        got_cost, got_slope = ask(loss, np.float32(score), np.float32(target))
        scores = np.array([np.float32(score)], np.float64)
        with np.errstate(over="ignore"):
            assert got_cost == pytest.approx(reference.loss_of(name, scores, target), rel=2e-6, abs=1e-7)
            assert got_slope == pytest.approx(reference.slopes_of(name, scores, target)[0], rel=2e-6, abs=1e-7)


QUANTITIES = [Huber(np.float32(reference.DELTA)), Quantile(np.float32(reference.LEVEL)), Poisson()]


@pytest.mark.parametrize("loss", QUANTITIES, ids=lambda loss: type(loss).__name__)
def test_quantities(loss):
    """Of targets from nothing to large, and slopes as differences of the twin."""
    name = type(loss).__name__
    for target in (0.0, 0.5, 1.0, 7.0):
        for score in (-40.0, -2.7, -0.3, 0.05, 0.3, 1.2, 2.0, 11.0):
            got_cost, got_slope = ask(loss, np.float32(score), np.float32(target))
            exact = float(np.float32(score))
            assert got_cost == pytest.approx(reference.loss_of(name, np.array([exact]), target), rel=1e-5, abs=1e-5)
            ahead, behind = (reference.loss_of(name, np.array([exact + side]), target) for side in (1e-6, -1e-6))
            assert got_slope == pytest.approx((ahead - behind) / 2e-6, rel=1e-3, abs=1e-4)


def test_quantile_rests_on_its_target():
    assert ask(QUANTITIES[1], np.float32(3), np.float32(3)) == (0, 0)


def test_poisson_goes_on_straight():
    """Past what is sensible: convex, finite, and with the slope of the cost."""
    end, far, farther = (ask(Poisson(), np.float32(STEEP + k), np.float32(2)) for k in (0, 10, 20))
    assert far[1] == farther[1] == end[1] == pytest.approx(math.exp(STEEP), rel=1e-6)
    assert (farther[0] - far[0]) / 10 == pytest.approx(math.exp(STEEP), rel=1e-5)
    assert all(map(math.isfinite, ask(Poisson(), np.float32(3e20), np.float32(0))))


def test_logistic_never_overflows():
    for score in (1e4, -1e4, 3e38, -3e38):
        got_cost, got_slope = ask(Logistic(), np.float32(score), np.float32(1))
        assert math.isfinite(got_slope)
        assert got_cost == pytest.approx(max(-score, 0.0), rel=1e-6)


def test_nan_score_is_not_hidden():
    for loss in QUANTITIES:
        assert math.isnan(ask(loss, np.float32(np.nan), np.float32(1))[0])
    for loss in ONE_SCORE[::2]:
        got_cost, got_slope = ask(loss, np.float32(np.nan), np.float32(1))
        assert math.isnan(got_cost)
        assert math.isnan(got_slope)


@pytest.mark.parametrize("loss", [Logistic(), Hinge()], ids=lambda loss: type(loss).__name__)
def test_classes(loss):
    name = type(loss).__name__
    random = np.random.default_rng(5)
    for trial in range(20):
        width = 2 + trial % 5
        scores = random.normal(0, 10.0 ** (trial % 3), width).astype(np.float32)
        target = int(random.integers(width))
        wide = np.append(scores, np.float32(99))[:width]
        exact = scores.astype(np.float64)
        got = ask_classes(loss, wide, np.float32(target))
        assert got == pytest.approx(reference.loss_of(name, exact, target), rel=1e-5, abs=2e-5)
        np.testing.assert_allclose(wide, reference.slopes_of(name, exact, target), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["Logistic", "Hinge"])
def test_the_twin_itself_agrees_with_differences(name):
    random = np.random.default_rng(6)
    scores = random.normal(0, 1, 4)
    for target in range(4):
        exact = reference.slopes_of(name, scores, target)
        for k in range(4):
            ahead, behind = scores.copy(), scores.copy()
            ahead[k] += 1e-6
            behind[k] -= 1e-6
            difference = reference.loss_of(name, ahead, target) - reference.loss_of(name, behind, target)
            assert difference / 2e-6 == pytest.approx(exact[k], abs=1e-5)


def test_softmax_of_huge_scores():
    scores = np.array([1e4, 1e4 - 1, -1e4], np.float32)
    total = softmax(scores, 3)
    np.testing.assert_allclose(scores, [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 0], rtol=1e-6)
    assert total == pytest.approx(1e4 + np.log1p(np.exp(-1)), rel=1e-6)
