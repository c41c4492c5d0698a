"""Rows with several labels: metrics against scikit-learn's, training against one model a label, saving, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_fscore_support
from sklearn.multiclass import OneVsRestClassifier

import hogwild
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.sparse.multilabel import Choice, ClassSets, Truth, label_metrics, sigmoid

LABELS = ("a", "b", "c", "d")


def make(seed: int, rows: int = 400) -> tuple[np.ndarray, np.ndarray, Feed]:
    """Numbers, which labels a row has, and the feed of both."""
    random = np.random.default_rng(seed)
    x = random.normal(0, 1, (rows, 6)).astype(np.float32)
    slopes = np.random.default_rng(1).normal(0, 1.5, (6, len(LABELS)))
    has = x @ slopes + random.logistic(0, 1, (rows, len(LABELS))) > 0.5
    return x, has, hogwild.feed_of(x, [[LABELS[k] for k in np.flatnonzero(row)] for row in has])


def test_metrics_are_those_of_scikit_learn():
    random = np.random.default_rng(3)
    has, scores = random.random((50, 5)) < 0.3, random.normal(0, 1, (50, 5)).astype(np.float32)
    has[:, 4], scores[:, 3] = False, -9.0  # a label that no row has, and one that is never predicted
    weight = random.random(50)
    sets = ClassSets(np.concatenate(([0], np.cumsum(has.sum(1)))), np.nonzero(has)[1].astype(np.int32))
    truth = Truth(np.arange(50), sets, weight)
    found = label_metrics("logistic", scores, truth, sigmoid(scores), Choice(2, 0.3))
    for average, before in (("micro", ""), ("macro", "macro_")):
        told = precision_recall_fscore_support(
            has, sigmoid(scores) >= 0.3, average=average, sample_weight=weight, zero_division=0
        )
        names = [f"{before}{name}" for name in ("precision", "recall", "f1")]
        np.testing.assert_allclose([found[name] for name in names], told[:3])
    plain = label_metrics("logistic", scores, truth, sigmoid(scores), Choice())
    told = precision_recall_fscore_support(has, scores >= 0, average="macro", sample_weight=weight, zero_division=0)
    np.testing.assert_allclose([plain[f"macro_{name}"] for name in ("precision", "recall", "f1")], told[:3])
    assert plain["accuracy"] == pytest.approx(weight @ (has == (scores >= 0)).all(1) / weight.sum())
    each = np.logaddexp(0, -np.where(has, 1, -1) * scores.astype(float)).sum(1)
    assert plain["loss"] == pytest.approx(weight @ each / weight.sum())


def test_best_labels_are_counted_as_fasttext_does():
    scores = np.array([[3.0, 2.0, -1.0], [1.0, 2.0, 0.5], [5.0, 1.0, 1.0]], np.float32)
    sets = ClassSets(np.array([0, 1, 3, 3]), np.array([0, 0, 2], np.int32))  # {0}, {0, 2}, none
    truth = Truth(np.arange(3), sets, np.ones(3))
    found = label_metrics("logistic", scores, truth, sigmoid(scores), Choice(2))
    assert (found["p@2"], found["r@2"]) == (2 / 4, 2 / 3)  # the row without labels is not counted
    found = label_metrics("logistic", scores, truth, sigmoid(scores), Choice(2, 0.85))
    assert (found["p@2"], found["r@2"]) == (1 / 3, 1 / 3)


def test_against_one_model_a_label(tmp_path):
    x, has, feed = make(7, 2000)
    program = hogwild.train(hogwild.Linear(), feed, epochs=30, mode="serial", quiet=True)
    peer = OneVsRestClassifier(LogisticRegression()).fit(x, has.astype(int))
    fresh, real, test = make(8, 2000)
    np.testing.assert_allclose(program.predict_proba(fresh), peer.predict_proba(fresh), atol=0.05)
    theirs = precision_recall_fscore_support(real, peer.predict(fresh), average="micro")[2]
    found = program.evaluate(test)
    assert found["f1"] > theirs - 0.005
    hogwild.save_model(tmp_path / "model", program, feed_schema=feed.schema)
    again = hogwild.load_model(tmp_path / "model").program
    assert again.several
    assert again.evaluate(test) == found
    rows = again.predict(fresh[:5])
    chances = program.predict_proba(fresh[:5])
    assert [set(row) for row in rows] == [{LABELS[k] for k in np.flatnonzero(row >= 0.5)} for row in chances]
    assert again.predict_one(fresh[0]) == rows[0]
    assert again.predict_proba_one(fresh[0])["b"] == pytest.approx(chances[0, 1], rel=1e-5)
    best = again.predict_labels(fresh[:5], top=2)
    assert [[name for name, _ in row] for row in best] == [[LABELS[k] for k in np.argsort(-row)[:2]] for row in chances]
    with pytest.raises(ConfigError, match="threshold"):
        again.predict_labels(fresh, threshold=2.0)


def test_who_cannot():
    _, _, feed = make(9, 50)
    for program in (hogwild.FactorizationMachine(), hogwild.SparseMLP(batch_size=8)):
        with pytest.raises(InputError, match="several labels, which this model"):
            program.startup(feed, 0)
    with pytest.raises(ConfigError, match="leave out class_weight"):
        hogwild.Linear(class_weight="balanced").startup(feed, 0)
    with pytest.raises(InputError, match="squared loss needs numbers"):
        hogwild.Linear(loss="squared").startup(feed, 0)
    one = hogwild.Linear(classes=LABELS)
    with pytest.raises(InputError, match="made for one a row"):
        one.startup(feed, 0)


def test_one_label_a_row_among_models_of_several():
    x, _, feed = make(10, 60)
    program = hogwild.Linear()
    program.startup(feed, 0)
    single = hogwild.feed_of(x, [LABELS[k % 4] for k in range(60)])
    sets, numbers = program.sets_of(single)
    found = [sets.labels[sets.offsets[n] : sets.offsets[n + 1]].tolist() for n in numbers]
    assert found == [[k % 4] for k in range(60)]
    with pytest.raises(InputError, match="label 'z' is not one of the model's"):
        program.sets_of(hogwild.feed_of(x[:1], [["a", "z"]]))


def test_best_labels_of_two_classes():
    x = np.array([[-1.0], [1.0], [2.0]])
    program = hogwild.train(hogwild.Linear(), hogwild.feed_of(x, ["no", "yes", "yes"]), epochs=20, lr=0.5, quiet=True)
    found = program.evaluate((x, ["no", "yes", "no"]), top=1)
    assert found["p@1"] == found["accuracy"] == pytest.approx(2 / 3)
    assert program.evaluate((x, ["no", "yes", "no"]), top=2)["r@2"] == 1.0
