"""The CRF as an estimator: saved, cloned, searched over; its mistakes; excerpts of its model."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn_crfsuite
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted
from sklearn_crfsuite import metrics

from hogwild.errors import HogwildWarning
from hogwild.estimators import CRF
from hogwild.feeds.tagged.lists import tagging_of
from hogwild.programs.taggers import crf as programs
from hogwild.programs.taggers.crf_weights import find_pairs
from places import SOURCE


def test_state_features_are_a_mapping(ours):
    found = ours.state_features_
    key = next(iter(found))
    assert found[key] == dict(found)[key]
    assert len(found) == len(dict(found.items()))
    assert ("no such", "O") not in found
    assert found.get(("bias", "no such")) is None
    assert f"{len(found):,} weights" in repr(found)


def test_features_that_training_never_saw_are_told(ours):
    """Here as there they are tagged from transitions; but not in silence."""
    with pytest.warns(HogwildWarning, match="more than half of the features .* not known to the model; name features"):
        assert len(ours.predict_single([{"wordd": "the"}, {"wordd": "dog"}])) == 2


def test_it_can_be_pickled_cloned_and_set(ours, data):
    _, _, X, _ = data
    expected = ours.predict(X).tolist()
    text = pickle.dumps(ours)
    assert pickle.loads(text).predict(X).tolist() == expected
    assert b"Excerpts" not in text
    fresh = clone(ours)
    assert fresh.get_params() == ours.get_params()
    assert fresh.classes_ is None
    assert fresh.set_params(c2=3.0).c2 == 3.0
    with pytest.raises(ValueError, match="nonsense"):
        fresh.set_params(nonsense=1)


def test_the_tools_of_scikit_learn(data):
    X, y, _, _ = data
    scorer = make_scorer(metrics.flat_f1_score, average="weighted")
    search = GridSearchCV(CRF(epochs=5, threads=1), {"c2": [0.1, 100.0]}, cv=2, scoring=scorer).fit(X, y)
    assert search.best_params_ == {"c2": 0.1}
    assert search.best_estimator_.predict(X[:2]).tolist() == search.predict(X[:2]).tolist()
    scores = cross_val_score(CRF(epochs=5, threads=1), X, y, cv=3)
    assert scores.min() > 0.7


def test_before_fit(data):
    model = CRF()
    for name in ("classes_", "attributes_", "num_attributes_", "state_features_", "transition_features_", "size_"):
        assert getattr(model, name) is None
        assert getattr(sklearn_crfsuite.CRF(), name) is None
    for call in (model.predict, model.predict_marginals, lambda X: model.predict_single(X[0])):
        with pytest.raises(NotFittedError, match="fit first"):
            call(data[2])
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_a_fit_forgets_the_one_before(data):
    X, y, _, _ = data
    model = CRF(epochs=1, threads=1).fit(X, y)
    model.predict(X[:1])
    model.fit([[["a"], ["b"]]], [["A", "B"]])
    assert model.classes_ == ["A", "B"]
    assert set(model.predict_single([["a"], ["b"]])) <= {"A", "B"}


def test_a_model_in_a_directory(ours, data, tmp_path):
    X, y, X_test, _ = data
    place = tmp_path / "model"
    first = CRF(model_filename=place, epochs=3, threads=1)
    assert first.classes_ is None
    first.fit(X, y)
    again = CRF(model_filename=str(place))
    check_is_fitted(again)
    assert again.classes_ == first.classes_
    assert again.predict(X_test).tolist() == first.predict(X_test).tolist()
    foreign = tmp_path / "theirs.crfsuite"
    sklearn_crfsuite.CRF(model_filename=str(foreign), max_iterations=1).fit(X, y)
    with pytest.raises(ValueError, match="model of CRFsuite"):
        CRF(model_filename=foreign).predict(X_test)


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({"algorithm": "adam"}, [[["a"]]], [["A"]], "algorithm is 'adam'"),
        ({"c2": -1}, [[["a"]]], [["A"]], "c2 is -1"),
        ({"max_iterations": -5}, [[["a"]]], [["A"]], "max_iterations is -5"),
        ({"threads": 0}, [[["a"]]], [["A"]], "threads is 0"),
        ({"random_state": "x"}, [[["a"]]], [["A"]], "random_state"),
        ({"min_freq": 9}, [[["a"]]], [["A"]], "no feature occurs 9 times"),
        ({}, [[["a"]]], [["A"], ["B"]], "1 sentences, but labels are there for 2"),
        ({}, [[["a"], ["b"]]], [["A"]], "2 tokens"),
        ({}, [[["a"]]], [[1]], "tags are strings"),
        ({}, [[["a"]], 5], [["A"], ["A"]], "type int"),
        ({}, [[7]], [["A"]], "token 0"),
        ({}, [], [], "no sentences"),
        ({}, [[]], [[]], "no sentences"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistakes_are_value_errors(options, X, y, message):
    with pytest.raises(ValueError, match=message):
        CRF(**{"threads": 1, **options}).fit(X, y)


def test_held_out_data_needs_labels(data):
    with pytest.raises(ValueError, match="Pass both"):
        CRF().fit(data[0], data[1], X_dev=data[2])


def test_labels_that_do_not_fit_cannot_be_scored(ours, data):
    with pytest.raises(ValueError, match="one for each"):
        ours.score(data[2][:2], [["O"], ["O"]])


WITHOUT = """
import sys
sys.modules["sklearn"] = None
from hogwild.estimators import CRF
model = CRF(c2=0.1, threads=1, epochs=2)
assert repr(model) == "CRF(c2=0.1, epochs=2, threads=1)", repr(model)
assert model.get_params()["c2"] == 0.1
assert model.set_params(epochs=3).epochs == 3
try:
    model.set_params(nonsense=1)
except ValueError as error:
    assert "nonsense" in str(error)
try:
    model.predict([[["a"]]])
except (ValueError, AttributeError) as error:
    assert "fit first" in str(error)
model.fit([[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]])
import pickle
print(pickle.loads(pickle.dumps(model)).predict([[["a"], ["b"]], [["b"]]]).tolist())
"""


def test_it_works_without_scikit_learn():
    source = SOURCE
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[['A', 'B'], ['B']]\n"


# -- excerpts of a model ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rich", [False, True])
def test_an_excerpt_tags_as_the_whole_model(rich, data):
    X, y, X_test, _ = data
    feed = tagging_of(X, y)
    random = np.random.default_rng(1)
    pairs = find_pairs(feed, 4, True) if rich else None
    program = programs.CRF(rich_edges=rich, tags=feed.tags, names=feed.names)
    program.restore(
        {
            "nodes": random.normal(size=(len(feed.names), len(feed.tags))).astype(np.float32),
            "edges": random.normal(size=(len(feed.tags), len(feed.tags))).astype(np.float32),
            "rich": random.normal(size=len(pairs.pairs) if rich else 0).astype(np.float32),
            "rich_starts": pairs.starts if rich else np.zeros(1, np.int64),
            "rich_pairs": pairs.pairs if rich else np.zeros(0, np.int32),
        }
    )
    known = program.excerpts()
    whole = tagging_of(X_test, names=feed.names, tags=feed.tags)
    assert whole.unknown > 0
    assert known.best(X_test, 2, False) == program.predict(whole)
    flat = [list(token.values()) for sentence in known.marginals(X_test, 2) for token in sentence]
    np.testing.assert_allclose(flat, program.marginals(whole), atol=1e-5)
    assert [known.best([sentence], 1, False)[0] for sentence in X_test[:9]] == program.predict(whole)[:9]
