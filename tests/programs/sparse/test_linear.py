"""The linear program: orders of ids, growth and evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as theirs

from hogwild.arrays import BinaryRows, DenseRows
from hogwild.errors import ConfigError
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.sparse import metrics
from hogwild.programs.sparse.linear import Linear
from problems.linear_feeds import CONSTANT, FEATURES, ROWS, dense, fit, make_feed

# -- orders of ids ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_ranked_ids_train_the_same_model(classes):
    plain, ranked = make_feed(classes, seed=3), make_feed(classes, seed=3, ranked=True)
    models = []
    for feed in (plain, ranked):
        program = Linear(l2=0.001)
        fit(program, feed)
        assert program.order is None
        models.append(program)
    one, other = (model.arrays(state=True) for model in models)
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-6, err_msg=name)
    first = models[0].evaluate(plain)
    for model in models:
        for feed in (plain, ranked):
            assert model.evaluate(feed) == pytest.approx(first, rel=1e-5)


def test_evaluation_between_epochs_reads_weights_in_the_order_of_training():
    feed, valid = make_feed(2, seed=3, ranked=True), make_feed(2, seed=4, ranked=True)
    program = Linear()
    events = AsyncExecutor(threads=1, mode="serial", **CONSTANT).run(program, feed, epochs=3, valid=valid)
    seen = []
    for event in events:
        if event.kind == "epoch":
            assert program.order is feed.original
            before = program.weights.table.copy()
            scores = program.scores(valid)
            exact = dense(valid) @ program.arrays()["weight"] + program.arrays()["bias"]
            np.testing.assert_allclose(scores, exact, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(program.weights.table, before)
            seen.append(event.metrics)
            after_training = program.evaluate(valid)
    assert len(seen) == 3
    assert seen[-1] == after_training == program.evaluate(valid)


def test_a_model_grows_with_its_feeds_and_ignores_what_it_does_not_know():
    narrow, wide = make_feed(2, features=20, ranked=True), make_feed(2, features=FEATURES, ranked=True)
    program = Linear()
    fit(program, narrow)
    before = program.arrays()["weight"]
    exact = dense(wide)[:, :20] @ before + program.arrays()["bias"]
    np.testing.assert_allclose(program.scores(wide), exact, rtol=1e-4, atol=1e-5)
    assert program.ignored == np.count_nonzero(dense(wide)[:, 20:])
    program.startup(wide, 1)
    program.finish(wide)
    np.testing.assert_array_equal(program.arrays()["weight"][:20], before)
    assert not program.arrays()["weight"][20:].any()
    fit(program, wide)
    assert program.features == FEATURES
    assert program.arrays()["weight"][20:].any()
    fit(program, narrow)  # a narrower feed again
    assert program.features == FEATURES
    assert program.scores(narrow).shape == (ROWS,)
    assert program.ignored == 0


def test_dense_and_binary_samples_score_alike():
    feed = make_feed(2)
    program = Linear()
    fit(program, feed)
    full = Feed(DenseRows(dense(feed).astype(np.float32), *feed.samples[3:]), FEATURES)
    np.testing.assert_allclose(program.scores(full), program.scores(feed), rtol=1e-4, atol=1e-5)
    ones = Feed(BinaryRows(*feed.samples[:2], *feed.samples[3:]), FEATURES)
    exact = (dense(feed) != 0) @ program.arrays()["weight"] + program.arrays()["bias"]
    np.testing.assert_allclose(program.scores(ones), exact, rtol=1e-4, atol=1e-4)


def test_threads_score_the_same():
    feed = make_feed(3)
    program = Linear()
    fit(program, feed, epochs=1)
    for threads in (2, 3, 7, ROWS + 1):
        np.testing.assert_array_equal(program.scores(feed, threads), program.scores(feed))


# -- evaluation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_of_two_classes(weighted):
    importance = np.random.default_rng(1).uniform(0.5, 2, ROWS) if weighted else None
    feed = make_feed(2, importance=importance)
    program = Linear()
    fit(program, feed, epochs=1)
    found = program.evaluate(feed, threads=2)
    truth, odds, guess = feed.samples.targets, program.predict_proba(feed), program.predict(feed)
    how = {"sample_weight": importance}
    expected = {
        "loss": theirs.log_loss(truth, odds, **how),
        "accuracy": theirs.accuracy_score(truth, guess, **how),
        "logloss": theirs.log_loss(truth, odds, **how),
        "auc": theirs.roc_auc_score(truth, program.scores(feed), **how),
        "precision": theirs.precision_score(truth, guess, **how),
        "recall": theirs.recall_score(truth, guess, **how),
        "f1": theirs.f1_score(truth, guess, **how),
        "calibration": np.average(odds[:, 1], weights=importance) / np.average(truth, weights=importance),
        "ece": metrics.calibration_error(metrics.calibration_table(odds[:, 1], truth == 1, importance)),
    }
    assert found == pytest.approx(expected, rel=1e-6)
    assert all(isinstance(value, float) for value in found.values())


def test_metrics_of_three_classes():
    feed = make_feed(3)
    program = Linear()
    fit(program, feed)
    found, odds = program.evaluate(feed), program.predict_proba(feed)
    truth = feed.samples.targets.astype(int)
    assert set(found) == {"loss", "accuracy", "logloss", "auc"}
    assert found["loss"] == pytest.approx(theirs.log_loss(truth, odds), rel=1e-5)
    assert found["auc"] == pytest.approx(theirs.roc_auc_score(truth, odds, multi_class="ovr"), rel=1e-5)
    assert found["accuracy"] > 0.85
    np.testing.assert_allclose(odds.sum(axis=1), 1)


@pytest.mark.parametrize("classes", [2, 3])
def test_hinge(classes):
    feed = make_feed(classes)
    program = Linear(loss="hinge")
    fit(program, feed)
    found = program.evaluate(feed)
    assert "logloss" not in found
    assert found["accuracy"] > 0.85
    scores = program.scores(feed).reshape(ROWS, -1)
    sides = np.where(feed.samples.targets[:, None] == (np.arange(classes) if classes > 2 else [1]), 1, -1)
    assert found["loss"] == pytest.approx(np.maximum(0, 1 - sides * scores).sum(axis=1).mean(), rel=1e-5)
    with pytest.raises(ConfigError, match="hinge loss gives no probabilities"):
        program.predict_proba(feed)


def test_metrics_of_a_quantity():
    feed = make_feed(1)
    program = Linear(loss="squared")
    fit(program, feed, epochs=20)
    found = program.evaluate(feed)
    error = theirs.root_mean_squared_error(feed.samples.targets, program.predict(feed))
    absolute = theirs.mean_absolute_error(feed.samples.targets, program.predict(feed))
    share = theirs.r2_score(feed.samples.targets, program.predict(feed))
    assert found == pytest.approx({"loss": error**2 / 2, "rmse": error, "mae": absolute, "r2": share}, rel=1e-5)
    assert error < 0.2 * feed.samples.targets.std()


def test_an_auc_that_does_not_exist_is_left_out():
    feed = make_feed(2)
    program = Linear()
    fit(program, feed, epochs=1)
    one_class = Feed(feed.samples._replace(targets=np.zeros(ROWS, np.float32)), FEATURES)
    assert "auc" not in program.evaluate(one_class)


def test_an_untrained_model_says_so():
    with pytest.raises(ConfigError, match="no weights yet"):
        Linear().scores(make_feed())
    with pytest.raises(ConfigError, match="no weights yet"):
        Linear(classes=[0, 1]).evaluate(make_feed())
