
"""The scikit-learn estimators: its own checks, and what they promise beyond them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_classification, make_regression
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from hogwild.estimators.linear import HogwildClassifier, HogwildRegressor
from hogwild.estimators.rows import canonical
from hogwild.feeds.memory import feed_of
from places import SOURCE


@pytest.fixture(scope="module")
def two_classes():
    X, y = make_classification(600, 12, n_informative=6, random_state=3)
    return StandardScaler().fit_transform(X).astype(np.float32), y


@pytest.mark.full
@pytest.mark.parametrize("estimator", [HogwildClassifier(), HogwildRegressor()], ids=lambda e: type(e).__name__)
def test_scikit_learns_own_checks(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(estimator, on_fail=None)
    failed = [f"{r['check_name']}: {r['exception']}" for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed
    assert len(results) > 50


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adagrad", "adam"])
def test_it_finds_the_optimum_that_logistic_regression_finds(two_classes, optimizer):
    X, y = two_classes
    l2 = 0.05
    theirs = LogisticRegression(C=1 / (l2 * len(y)), tol=1e-8, max_iter=1000).fit(X, y)
    ours = HogwildClassifier(l2=l2, random_state=0, optimizer=optimizer).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.03)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.03)


def test_l1_leaves_the_weights_of_noise_near_zero():
    X, y = make_classification(1000, 30, n_informative=3, n_redundant=0, shuffle=False, random_state=0)
    X = StandardScaler().fit_transform(X)
    theirs = LogisticRegression(C=1 / (0.03 * len(y)), l1_ratio=1.0, solver="saga", tol=1e-6, max_iter=5000).fit(X, y)
    ours = HogwildClassifier(l1=0.03, random_state=0).fit(X, y)
    assert 1 <= np.count_nonzero(theirs.coef_) <= 10
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.05)
    assert np.median(np.abs(ours.coef_[theirs.coef_ == 0])) < 1e-3  # the last gradients of dense features remain


def test_it_finds_the_optimum_that_least_squares_finds():
    X, y = make_regression(500, 8, noise=1.0, random_state=0)
    ours, theirs = HogwildRegressor(random_state=0).fit(X, y), LinearRegression().fit(X, y)
    assert ours.score(X, y) > theirs.score(X, y) - 1e-3
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0.02, atol=0.5)
    assert ours.coef_.shape == (8,)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("classes", [2, 3])
def test_words_and_shapes(loss, classes):
    X, y = make_blobs(300, 4, centers=classes, random_state=1)
    names = np.array(["ant", "bee", "cat"])[y]
    model = HogwildClassifier(loss, random_state=0).fit(X, names)
    outputs = classes if classes > 2 else 1
    assert model.score(X, names) > 0.95
    assert model.classes_.tolist() == ["ant", "bee", "cat"][:classes]
    assert (model.coef_.shape, model.intercept_.shape) == ((outputs, 4), (outputs,))
    scores = model.decision_function(X)
    np.testing.assert_allclose(
        scores.reshape(300, -1), X @ model.coef_.T + model.intercept_, rtol=1e-3, atol=1e-3 * np.abs(scores).max()
    )
    assert hasattr(model, "predict_proba") == (loss == "logistic")


def test_dense_and_sparse_data_give_the_same_model(two_classes):
    X, y = two_classes
    X = X * (np.abs(X) > 0.5)
    dense, sparse = (HogwildClassifier(random_state=0, epochs=5).fit(data, y) for data in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dense.decision_function(sp.csr_matrix(X)), dense.decision_function(X), atol=1e-5)


def test_random_state_repeats(two_classes):
    X, y = two_classes
    first, again, other = (HogwildClassifier(random_state=s, epochs=3).fit(X, y) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert (first.coef_ != other.coef_).any()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_many_workers_learn_as_well(two_classes, make):
    X, y = two_classes
    one, many = (HogwildClassifier(random_state=0, n_jobs=n).fit(make(X), y).score(make(X), y) for n in (1, 3))
    assert many == pytest.approx(one, abs=0.03)


def test_partial_fit_goes_on(two_classes):
    X, y = two_classes
    model = HogwildClassifier(random_state=0)
    losses = []
    for _ in range(4):
        model.partial_fit(X[:300], y[:300], classes=[0, 1]).partial_fit(X[300:], y[300:])
        losses.append(model.program_.evaluate(feed_of(X, y))["loss"])
    assert losses[-1] < losses[0]
    assert model.score(X, y) > 0.8
    lr = model.lr_
    assert model.partial_fit(X, y).lr_ == lr  # calibrated once


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X, y: m.partial_fit(X, y), "classes must be given"),
        (lambda m, X, y: m.partial_fit(X, y, classes=[0, 2]), "labels that are not among the classes"),
        (lambda m, X, y: m.partial_fit(X, y, [0, 1]).partial_fit(X, y, [0, 1, 2]), "on the first call they were"),
        (lambda m, X, y: m.set_params(class_weight="balanced").partial_fit(X, y, [0, 1]), "part by part"),
        (lambda m, X, y: m.set_params(loss="squared").fit(X, y), "logistic or hinge"),
        (lambda m, X, y: m.set_params(optimizer="sdg").fit(X, y), "optimizer"),
        (lambda m, X, y: m.set_params(epochs=0).fit(X, y), "epochs"),
        (lambda m, X, y: m.set_params(lr=-1.0).fit(X, y), "lr"),
        (lambda m, X, y: m.fit(X, y, np.full(len(y), -1.0)), "Negative"),
        (lambda m, X, y: m.fit(np.where(X > 0, X, np.inf), y), "infinity"),
    ],
)
def test_mistakes_are_value_errors(two_classes, call, message):
    X, y = two_classes
    with pytest.raises(ValueError, match=message):
        call(HogwildClassifier(random_state=0), X.astype(np.float64), y)


def test_class_weights():
    X, y = make_blobs([400, 20], 2, centers=None, cluster_std=4, random_state=2)
    plain = HogwildClassifier(random_state=0).fit(X, y)
    even = HogwildClassifier(random_state=0, class_weight="balanced").fit(X, y)
    assert (even.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_whole_weights_are_repeated_rows_and_order_does_not_matter(two_classes):
    X, y = two_classes
    random = np.random.default_rng(0)
    weight = random.integers(0, 4, len(y))
    mixed = random.permutation(len(y))
    options = {"random_state": 0, "epochs": 2}
    weighed = HogwildClassifier(**options).fit(X[mixed], y[mixed], weight[mixed])
    repeated = HogwildClassifier(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighed.coef_, repeated.coef_)


def test_canonical_keeps_fractions_and_large_weights():
    X, y = np.arange(4, dtype=np.float32)[:, None], np.array([1, 0, 1, 0])
    for weight in (np.array([0.5, 1, 1, 2]), np.array([1000, 1, 1, 1])):
        rows, labels, kept = canonical(X, y, weight.astype(np.float32))
        found = sorted(zip(rows[:, 0], labels, kept, strict=True))
        assert found == sorted(zip(X[:, 0], y, weight, strict=True))


def test_validation_keeps_the_best_epoch(two_classes):
    X, y = two_classes
    options = {"validation_fraction": 0.2, "patience": 2, "epochs": 200, "lr": 0.5, "schedule": "constant"}
    model = HogwildClassifier(random_state=0, **options).fit(X, y)
    assert model.n_iter_ < 200
    assert len(model.loss_curve_) == model.n_iter_
    assert model.score(X, y) > 0.8


def test_the_tools_of_scikit_learn(two_classes):
    X, y = two_classes
    pipe = make_pipeline(StandardScaler(), HogwildClassifier(random_state=0, epochs=5))
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.75
    search = GridSearchCV(HogwildClassifier(random_state=0, epochs=2), {"l2": [0.0, 100.0]}, cv=2).fit(X, y)
    assert search.best_params_ == {"l2": 0.0}
    copy = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(copy.predict(X), search.predict(X))
    copy.partial_fit(X, y)


def test_names_of_features(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=[f"column {k}" for k in range(12)])
    model = HogwildClassifier(random_state=0, epochs=2).fit(frame, y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.n_features_in_ == 12


def test_a_missing_extra_is_one_sentence():
    code = "import sys; sys.modules['sklearn'] = None\nimport hogwild\nhogwild.HogwildClassifier"
    source = SOURCE
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "pip install 'hogwild[sklearn]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", ["indices", "indptr"])
@pytest.mark.parametrize("odd", [-1, 10**6, 2**31 - 1])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_matrix])
def test_indices_that_lead_outside_a_matrix(name: str, odd: int, kind: Any) -> None:
    X = kind(np.eye(6, 7, dtype=np.float32))
    getattr(X, name)[3] = odd
    y = [0, 1, 0, 1, 0, 1]
    with pytest.raises(ValueError, match="X is no sound sparse matrix"):
        HogwildClassifier(epochs=1, lr=0.1).fit(X, y)
    model = HogwildClassifier(epochs=1, lr=0.1, random_state=0).fit(np.eye(6, 7), y)
    for predict in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(ValueError, match="X is no sound sparse matrix"):
            predict(X)
