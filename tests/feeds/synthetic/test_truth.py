"""The best possible figures: exact, from counts of rows by chance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from hogwild.feeds.synthetic.truth import Truth, drawn_labels, levels_for


def expected_by_pairs(chances):
    """Expected pairs in the right order by expected pairs, over all pairs of two rows."""
    right = pairs = 0.0
    for p, q in itertools.permutations(chances, 2):
        pairs += p * (1 - q)
        right += p * (1 - q) * (1.0 if p > q else 0.5 if p == q else 0.0)
    return right / pairs


def test_expected_figures_are_those_of_all_pairs():
    random = np.random.default_rng(1)
    chances = np.repeat(random.integers(0, 9, 30) / 8, 2)
    levels, labels = drawn_labels(chances, random)
    truth = Truth()
    truth.add(levels[:11], labels[:11], 5)
    truth.add(levels[11:], labels[11:], 7)
    assert (truth.rows, truth.nonzeros, truth.positive) == (60, 12, labels.sum())
    bayes = truth.bayes()
    assert bayes["auc"] == pytest.approx(expected_by_pairs(chances), rel=1e-12)
    assert bayes["accuracy"] == pytest.approx(np.maximum(chances, 1 - chances).mean())
    inside = chances[(chances > 0) & (chances < 1)]
    entropy = -(inside * np.log(inside) + (1 - inside) * np.log(1 - inside)).sum() / 60
    assert bayes["logloss"] == pytest.approx(entropy)
    reached = truth.reached()
    assert reached["auc"] == pytest.approx(roc_auc_score(labels, chances))
    assert reached["logloss"] == pytest.approx(log_loss(labels, chances))
    assert reached["accuracy"] == ((chances > 0.5) == labels).mean()


def test_what_is_reached_is_what_was_expected_of_many_rows():
    random = np.random.default_rng(2)
    odds = random.normal(size=(200_000, 3))
    chances = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    levels, labels = drawn_labels(chances, random)
    assert (levels.sum(axis=1) == levels_for(3)).all()
    assert np.abs(levels / levels_for(3) - chances).max() <= 1 / levels_for(3)
    truth = Truth(3)
    truth.add(levels, labels, 0)
    bayes, reached = truth.bayes(), truth.reached()
    assert list(bayes) == list(reached) == ["accuracy", "logloss", "auc"]
    for name in bayes:
        assert reached[name] == pytest.approx(bayes[name], abs=0.005)
    rounded = levels / levels_for(3)
    rest = np.mean([roc_auc_score(labels == k, rounded[:, k]) for k in range(3)])
    assert reached["auc"] == pytest.approx(rest, rel=1e-9)


def test_one_class_alone_has_no_auc():
    truth = Truth()
    truth.add(*drawn_labels(np.ones(5), np.random.default_rng(0)), 0)
    assert truth.bayes() == truth.reached() == {"accuracy": 1.0, "logloss": 0.0}
