"""Metrics against scikit-learn's."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from sklearn import metrics as theirs
from sklearn.calibration import calibration_curve

from hogwild.programs.sparse import metrics

RANDOM = np.random.default_rng(8)


def weights_of(kind):
    return None if kind == "equal" else RANDOM.uniform(0.1, 3, 400).astype(np.float32)


@pytest.mark.parametrize("kind", ["equal", "weighted"])
@pytest.mark.parametrize("digits", [0, 1, 6])
def test_auc_with_ties(kind, digits):
    truth = RANDOM.random(400) < 0.3
    scores = np.round(RANDOM.normal(0, 1, 400) + truth, digits).astype(np.float32)
    weight = weights_of(kind)
    assert metrics.auc(scores, truth, weight) == pytest.approx(
        theirs.roc_auc_score(truth, scores, sample_weight=weight), abs=1e-12 if weight is None else 1e-6
    )


@pytest.mark.parametrize("kind", ["equal", "weighted"])
def test_auc_of_odd_floats(kind):
    """Zeros of both signs are equal, infinite scores are the outermost, and float64 is not rounded."""
    odd = np.array([0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 3e38, -3e38, 1.0, -1.0], np.float32)
    scores = RANDOM.choice(odd, 400)
    truth = RANDOM.random(400) < np.where(scores > 0, 0.7, 0.3)
    weight = weights_of(kind)
    ranks = np.searchsorted(np.unique(odd), scores)
    expected = theirs.roc_auc_score(truth, ranks, sample_weight=weight)
    assert metrics.auc(scores, truth, weight) == pytest.approx(expected, abs=1e-12 if weight is None else 1e-6)
    close = 1.0 + ranks * 1e-12
    assert metrics.auc(close, truth, weight) == pytest.approx(expected, abs=1e-12 if weight is None else 1e-6)


def test_auc_of_a_nan_is_nan():
    assert math.isnan(metrics.auc(np.array([0.1, np.nan, 0.3], np.float32), np.array([True, False, False])))


def test_auc_by_counting_pairs():
    truth = RANDOM.random(60) < 0.5
    scores = RANDOM.integers(0, 8, 60).astype(np.float32)
    ups, downs = scores[truth][:, None], scores[~truth][None, :]
    assert metrics.auc(scores, truth) == pytest.approx(float(((ups > downs) + 0.5 * (ups == downs)).mean()))


@pytest.mark.parametrize("truth", [[], [True], [False, False]])
def test_auc_of_one_side_is_nan(truth):
    assert math.isnan(metrics.auc(np.zeros(len(truth), np.float32), np.array(truth, bool)))


def test_auc_of_all_ties_is_a_half():
    assert metrics.auc(np.zeros(10, np.float32), np.arange(10) < 3) == 0.5


def test_auc_does_not_compare_pairs():
    scores = RANDOM.normal(0, 1, 1_000_000).astype(np.float32)
    truth = RANDOM.random(1_000_000) < 0.5
    began = time.process_time()
    assert metrics.auc(scores, truth) == pytest.approx(0.5, abs=0.01)
    assert time.process_time() - began < 2  # 0.1 s on an idle machine


def test_macro_auc():
    truth = RANDOM.integers(0, 3, 400)
    odds = RANDOM.dirichlet(np.ones(3), 400) + np.eye(3)[truth] * 0.2
    odds /= odds.sum(axis=1, keepdims=True)
    expected = theirs.roc_auc_score(truth, odds, multi_class="ovr", average="macro")
    assert metrics.macro_auc(odds, truth) == pytest.approx(expected, abs=1e-12)


def test_macro_auc_leaves_out_a_class_that_is_not_there():
    truth = np.array([0, 1, 0, 1])
    scores = np.array([[2, 1, 0], [1, 2, 0], [3, 0, 0], [2.5, 2, 0]], np.float32)
    expected = np.mean([metrics.auc(scores[:, k], truth == k) for k in (0, 1)])
    assert metrics.macro_auc(scores, truth) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["equal", "weighted"])
def test_log_loss(kind):
    truth = RANDOM.integers(0, 3, 400)
    odds = RANDOM.dirichlet(np.ones(3), 400)
    odds[0] = np.eye(3)[(truth[0] + 1) % 3]  # surely wrong: clipped, not infinite
    weight = weights_of(kind)
    assert metrics.log_loss(odds, truth, weight) == pytest.approx(
        theirs.log_loss(truth, odds, sample_weight=weight, labels=[0, 1, 2]), rel=1e-6
    )


@pytest.mark.parametrize("kind", ["equal", "weighted"])
def test_calibration(kind):
    chances = np.round(RANDOM.random(400) ** 2, 2)
    truth = RANDOM.random(400) < 0.5 * chances
    weight = weights_of(kind)
    heavy = np.ones(400) if weight is None else weight
    share = (truth * heavy).sum() / heavy.sum()
    assert metrics.calibration(chances, truth, weight) == pytest.approx((chances * heavy).sum() / heavy.sum() / share)
    table = metrics.calibration_table(chances, truth, weight, bins=5)
    assert sum(each.rows for each in table) == 400
    assert sum(each.weight for each in table) == pytest.approx(heavy.sum(), rel=1e-6)
    assert all(each.low <= each.predicted <= each.high for each in table)
    if weight is None:
        real, said = calibration_curve(truth, chances, n_bins=5, strategy="quantile")
        assert [each.positive for each in table] == pytest.approx(real)
        assert [each.predicted for each in table] == pytest.approx(said)
    gaps = [each.weight * abs(each.predicted - each.positive) for each in table]
    assert metrics.calibration_error(table) == pytest.approx(sum(gaps) / heavy.sum(), rel=1e-6)
    assert metrics.calibration_error(table) > 0.1


def test_calibration_of_nothing_and_of_equal_predictions():
    assert math.isnan(metrics.calibration(np.array([0.5]), np.array([False])))
    assert metrics.calibration_table(np.zeros(0), np.zeros(0, bool)) == []
    assert math.isnan(metrics.calibration_error([]))
    (alone,) = metrics.calibration_table(np.full(8, 0.25), np.arange(8) < 2)
    assert alone == metrics.Bin(0.25, 0.25, 8, 8.0, 0.25, 0.25)


@pytest.mark.parametrize("kind", ["equal", "weighted"])
def test_accuracy_precision_recall_f1_rmse(kind):
    truth = RANDOM.integers(0, 2, 400)
    guess = np.where(RANDOM.random(400) < 0.7, truth, 1 - truth)
    weight = weights_of(kind)
    assert metrics.accuracy(guess, truth, weight) == pytest.approx(
        theirs.accuracy_score(truth, guess, sample_weight=weight), rel=1e-6
    )
    ours = metrics.precision_recall_f1(guess == 1, truth == 1, weight)
    reference = theirs.precision_recall_fscore_support(truth, guess, average="binary", sample_weight=weight)
    assert ours == pytest.approx(reference[:3], rel=1e-6)
    near = (truth + RANDOM.normal(0, 0.3, 400)).astype(np.float32)
    assert metrics.rmse(near, truth.astype(np.float32), weight) == pytest.approx(
        theirs.root_mean_squared_error(truth, near, sample_weight=weight), rel=1e-6
    )
    assert metrics.mae(near, truth.astype(np.float32), weight) == pytest.approx(
        theirs.mean_absolute_error(truth, near, sample_weight=weight), rel=1e-6
    )


def test_nothing_predicted_and_nothing_there():
    none = np.zeros(3, bool)
    assert metrics.precision_recall_f1(none, ~none) == (0.0, 0.0, 0.0)
    assert metrics.precision_recall_f1(~none, none) == (0.0, 0.0, 0.0)
    assert metrics.precision_recall_f1(none, none) == (0.0, 0.0, 0.0)


def test_mean_of_nothing_is_nan():
    assert math.isnan(metrics.mean(np.array([])))
    assert math.isnan(metrics.mean(np.array([1.0]), np.zeros(1, np.float32)))
