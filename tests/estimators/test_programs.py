"""Estimators of programs other than linear ones: scikit-learn's own checks, and use as its users know it."""

from __future__ import annotations

import pickle
import time
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import hogwild
from hogwild.estimators import (
    HogwildClassifier,
    HogwildFMClassifier,
    HogwildFMRegressor,
    HogwildMLPClassifier,
    HogwildMLPRegressor,
    HogwildRecommender,
    HogwildRegressor,
    HogwildTextClassifier,
    HogwildWord2Vec,
)

TEXTS = ["a warm film", "warm and clever", "clever, warm", "dull", "a dull film", "so dull, so long"] * 5
LABELS = np.array(["good", "good", "good", "bad", "bad", "bad"] * 5)
PAIRS = [(f"u{k % 7}", f"i{k * k % 5}") for k in range(60)]
RATINGS = [float(1 + (k + k * k) % 5) for k in range(60)]
ORDER = {"check_methods_sample_order_invariance": "asks for 1e-7; products of batches are in float32"}
OTHERS = {
    HogwildFMClassifier: {"check_class_weight_classifiers": "weights of ten millions to one, rows not scaled"},
    HogwildMLPClassifier: ORDER,
    HogwildMLPRegressor: ORDER,
}
ROWS = [HogwildFMClassifier(), HogwildFMRegressor(), HogwildMLPClassifier(), HogwildMLPRegressor()]


@pytest.fixture(autouse=True)
def _silence() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        yield


@pytest.mark.full
@pytest.mark.parametrize("estimator", ROWS, ids=lambda e: type(e).__name__)
def test_scikit_learns_own_checks(estimator: Any) -> None:
    results = check_estimator(estimator, on_fail=None, expected_failed_checks=OTHERS.get(type(estimator), {}))
    wrong = [r for r in results if r["status"] not in ("passed", "skipped", "xfail")]
    assert [f"{r['check_name']}: {r['exception']}" for r in wrong] == []
    assert len(results) > 50


@pytest.mark.parametrize("kind", [HogwildTextClassifier, HogwildWord2Vec, HogwildRecommender])
def test_what_takes_no_rows_of_numbers_passes_the_checks_that_apply(kind: Any) -> None:
    assert all(r["status"] in ("passed", "skipped") for r in check_estimator(kind(), on_fail=None))
    made = clone(kind(dim=4, random_state=3))
    assert made.get_params()["dim"] == 4
    assert made.set_params(verbose=True).verbose
    assert "dim : " in kind.__doc__
    with pytest.raises(TypeError, match=r"there is no parameter 'dimm'.*did you mean|there is no parameter 'dimm'"):
        kind(dimm=4)


def test_layers_learn_what_no_line_can_tell_apart() -> None:
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = make_pipeline(StandardScaler(), HogwildMLPClassifier(random_state=0, epochs=40)).fit(X[:300], y[:300])
    line = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > line.score(X[300:], y[300:]) + 0.2
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    sparse = model[-1].predict(sp.csr_array(model[0].transform(X)))
    np.testing.assert_array_equal(sparse, model.predict(X))


@pytest.mark.full
def test_machines_learn_pairs_of_columns() -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(600, 4)).astype(np.float32)
    y = 3 * X[:, 0] * X[:, 1] + X[:, 2]
    model = HogwildFMRegressor(random_state=0, init_scale=0.1).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > 0.9
    assert HogwildRegressor(random_state=0).fit(X[:500], y[:500]).score(X[500:], y[500:]) < 0.5


def test_texts_in_a_search_and_saved(tmp_path: Any) -> None:
    search = GridSearchCV(HogwildTextClassifier(random_state=0, hash_bits=12), {"ngrams": [1, 2]}, cv=2)
    model = search.fit(TEXTS, LABELS).best_estimator_
    assert model.score(TEXTS, LABELS) == 1
    assert model.predict_proba(["dull"]).argmax() == list(model.classes_).index("bad")
    hogwild.save_model(tmp_path / "model", model.program_)
    assert hogwild.load_model(tmp_path / "model").program.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    with pytest.raises(ValueError, match="row 1 of X is 3, not a text"):
        model.predict(["fine", 3])


def test_documents_become_the_mean_of_their_words_and_ratings_are_predicted() -> None:
    words = HogwildWord2Vec(dim=8, min_count=1, epochs=2, random_state=0).fit(TEXTS)
    found = words.transform(["dull film", "unheard of", ["dull", "film"]])
    np.testing.assert_allclose(found[0], (words.vectors_["dull"] + words.vectors_["film"]) / 2, rtol=1e-5)
    assert not found[1].any()
    np.testing.assert_array_equal(found[0], found[2])
    assert words.get_feature_names_out()[0] == "hogwildword2vec0"
    model = HogwildRecommender(dim=4, random_state=0, epochs=50).fit(PAIRS, RATINGS)
    assert np.sqrt(np.mean((model.predict(PAIRS) - RATINGS) ** 2)) < np.std(RATINGS)
    assert len(model.recommend("u1", 3, seen=True)) == 3
    before = model.predict([("u1", "i1")])[0]
    model.partial_fit([("u1", "i1")] * 20, [5.0] * 20)
    assert model.predict([("u1", "i1")])[0] > min(before, 4.9)


def _one_by_one(kind: str) -> tuple[Any, list[tuple[Any, Any]]]:
    X, y = load_diabetes(return_X_y=True)
    rows = [(X[k : k + 1], y[k : k + 1]) for k in range(60)]
    model: Any
    if kind == "classifier":
        model = HogwildClassifier(random_state=0).partial_fit(X, y > 140, classes=[False, True])
        return model, [(x, value > 140) for x, value in rows]
    if kind == "text":
        return HogwildTextClassifier(random_state=0, hash_bits=12).fit(TEXTS, LABELS), [
            (TEXTS[k : k + 1], LABELS[k : k + 1]) for k in range(30)
        ]
    if kind == "recommender":
        model = HogwildRecommender(dim=8, random_state=0).fit(PAIRS, RATINGS)
        return model, [([pair], [rating]) for pair, rating in zip(PAIRS, RATINGS, strict=True)]
    made = {"regressor": HogwildRegressor, "mlp": HogwildMLPRegressor}[kind](random_state=0)
    return made.partial_fit(X, y), rows


@pytest.mark.parametrize("kind", ["classifier", "regressor", "text", "recommender", "mlp"])
def test_one_row_more_takes_about_a_millisecond(kind: str) -> None:
    model, rows = _one_by_one(kind)
    for x, y in rows[:10]:
        model.partial_fit(x, y)
    seconds = []
    for x, y in rows[10:]:
        began = time.process_time()
        model.partial_fit(x, y)
        seconds.append(time.process_time() - began)
    assert min(seconds) < 4e-3  # of a busy processor; a run takes 50


@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_a_few_rows_change_the_weights_as_a_run_does(l2: float) -> None:
    X, y = load_diabetes(return_X_y=True)
    quick, slow = (HogwildRegressor(random_state=0, l2=l2, lr=0.1).partial_fit(X, y) for _ in range(2))
    for first in range(0, 100, 25):
        rows = slice(first, first + 25)
        quick.partial_fit(X[rows], y[rows])
        slow._train(hogwild.feed_of(X[rows], y[rows], rank=False), slow.program_, epochs=1, lr=0.1,
                    schedule="constant", seed=slow._seed() + slow.t_)  # fmt: skip
        slow.t_ += 1
    np.testing.assert_array_equal(quick.coef_, slow.coef_)
    np.testing.assert_array_equal(quick.intercept_, slow.intercept_)
