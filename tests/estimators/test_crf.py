"""The CRF that users of sklearn-crfsuite switch to, beside the real one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pycrfsuite
import pytest
import sklearn_crfsuite
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted
from sklearn_crfsuite import metrics

from hogwild.estimators import CRF
from hogwild.estimators.excerpt import Excerpts
from hogwild.feeds.grammar import make_sentences
from hogwild.feeds.tagginglists import tagging_of
from hogwild.programs import crf as programs
from hogwild.programs.richpairs import find_pairs

ALL = {"all_possible_states": True, "all_possible_transitions": True}  # as it is here; then the optimum is the same


def features(sentence, i):
    """In the manner of the tutorial of sklearn-crfsuite."""
    word = sentence[i].word
    found = {"bias": 1.0, "word": word, "word[-2:]": word[-2:], "long": len(word) > 6}
    if i == 0:
        return {**found, "BOS": True}
    return {**found, "-1:word": sentence[i - 1].word, "-1:word[-2:]": sentence[i - 1].word[-2:]}


def made(count, part):
    sentences = list(make_sentences(count, part=part))
    return [[features(s, i) for i in range(len(s))] for s in sentences], [[t.tag for t in s] for s in sentences]


@pytest.fixture(scope="module")
def data():
    """Sentences and labels to train on, and others."""
    return *made(120, 0), *made(60, 1)


@pytest.fixture(scope="module")
def both(data):
    """Theirs and ours, trained on the same."""
    X, y, _, _ = data
    options = {"algorithm": "lbfgs", "c2": 0.1, **ALL}
    return sklearn_crfsuite.CRF(**options).fit(X, y), CRF(**options, threads=1).fit(X, y)


@pytest.fixture(scope="module")
def ours(both):
    return both[1]


# -- beside sklearn-crfsuite -----------------------------------------------------------------------------------------


def test_the_same_names(both):
    theirs, ours = both
    assert ours.classes_ == theirs.classes_
    assert set(ours.attributes_) == set(theirs.attributes_)
    assert ours.num_attributes_ == theirs.num_attributes_
    assert set(ours.transition_features_) == set(theirs.transition_features_)
    assert set(ours.state_features_) == set(theirs.state_features_)
    assert ours.size_ > 4 * len(ours.state_features_)


def test_the_same_optimum(both):
    """c2 means the same: the weights are those that L-BFGS finds."""
    theirs, ours = both
    for name in ("transition_features_", "state_features_"):
        one, other = getattr(theirs, name), getattr(ours, name)
        keys = list(one)
        found, expected = ([weights[key] for key in keys] for weights in (other, one))
        np.testing.assert_allclose(found, expected, atol=0.2)
        assert np.mean(np.abs(np.subtract(found, expected))) < 0.05 * np.std(expected)


def test_the_same_shapes_and_nearly_the_same_values(both, data):
    theirs, ours = both
    _, _, X, y = data
    one, other = theirs.predict(X), ours.predict(X)
    assert (one.shape, one.dtype, type(one[0])) == (other.shape, other.dtype, type(other[0]))
    assert [len(row) for row in one] == [len(row) for row in other]
    assert abs(theirs.score(X, y) - ours.score(X, y)) < 0.005
    assert ours.score(X, y) == pytest.approx(metrics.flat_accuracy_score(y, other))
    same = np.mean([a == b for rows in zip(one, other, strict=True) for a, b in zip(*rows, strict=True)])
    assert same > 0.99
    near(theirs.predict_marginals(X), ours.predict_marginals(X))


def near(one, other):
    """Probabilities of the same shape, and nearly the same."""
    assert one.shape == other.shape
    for sentence, again in zip(one, other, strict=True):
        for token, twin in zip(sentence, again, strict=True):
            assert list(token) == list(twin)
            assert list(twin.values()) == pytest.approx(list(token.values()), abs=0.06)
            assert sum(twin.values()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("some", [[], [0], [3, 3], [0, 1, 2]], ids=str)
def test_arrays_have_the_dimensions_of_theirs(both, data, some):
    theirs, ours = both
    X = [data[2][k] for k in some]
    assert ours.predict(X).shape == theirs.predict(X).shape
    assert ours.predict_marginals(X).shape == theirs.predict_marginals(X).shape


def test_empty_sentences(both, data):
    theirs, ours = both
    X = [[], data[2][0], []]
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    assert ours.predict_single([]) == theirs.predict_single([]) == []
    assert ours.predict_marginals_single([]) == theirs.predict_marginals_single([]) == []
    again = CRF(c2=0.1, epochs=1, threads=1).fit([[], *data[0]], [[], *data[1]])
    assert again.loss_curve_ == CRF(c2=0.1, epochs=1, threads=1).fit(data[0], data[1]).loss_curve_


def test_other_forms_of_sentences(both, data):
    """Lists of strings, objects of python-crfsuite, a generator of sentences; tokens without a known feature."""
    theirs, ours = both
    X = data[2][:5]
    expected = ours.predict(X).tolist()
    assert ours.predict(pycrfsuite.ItemSequence(sentence) for sentence in X).tolist() == expected
    lists = [[[f"word:{token['word']}", "bias"] for token in sentence] for sentence in X]
    near(theirs.predict_marginals(lists), ours.predict_marginals(lists))
    unknown = [[{"nothing": "of"}, {"the": "kind"}], [{}, {}]]
    assert ours.predict(unknown).tolist() == theirs.predict(unknown).tolist()
    assert ours.predict_single([{}, {}]) == theirs.predict_single([{}, {}])


SCRIPT = """
from {package} import CRF

crf = CRF(algorithm="lbfgs", c1=0.0, c2=0.5, max_iterations=50, all_possible_transitions=True)
crf.fit(X_train, y_train)
labels = list(crf.classes_)
labels.remove("O")
y_pred = crf.predict(X_test)
f1 = metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels)
report = metrics.flat_classification_report(y_test, y_pred, labels=sorted(labels), digits=3)
likely = [pair for pair, _ in Counter(crf.transition_features_).most_common(5)]
strongest = Counter(crf.state_features_).most_common(10)
single = crf.predict_single(X_test[0])
sure = [max(token.values()) for token in crf.predict_marginals_single(X_test[0])]
score = crf.score(X_test, y_test)
again = pickle.loads(pickle.dumps(crf)).predict(X_test)
params = crf.get_params()
"""


def test_a_script_runs_with_either_import(data):
    found = []
    for package in ("sklearn_crfsuite", "hogwild.estimators"):
        names = dict(zip(("X_train", "y_train", "X_test", "y_test"), data, strict=True))
        names |= {"Counter": Counter, "metrics": metrics, "pickle": pickle}
        exec(SCRIPT.format(package=package), names)
        found.append(names)
    theirs, ours = found
    assert ours["labels"] == theirs["labels"]
    assert ours["f1"] == pytest.approx(theirs["f1"], abs=0.02)
    assert ours["score"] == pytest.approx(theirs["score"], abs=0.02)
    assert len(ours["report"].splitlines()) == len(theirs["report"].splitlines())
    assert len(set(ours["likely"]) & set(theirs["likely"])) >= 4
    assert [type(item) for item in ours["strongest"][0]] == [type(item) for item in theirs["strongest"][0]]
    same = [one == other for one, other in zip(ours["single"], theirs["single"], strict=True)]
    assert np.mean(same) > 0.7  # theirs has no weights for pairs that it has not seen
    assert ours["sure"] == pytest.approx(theirs["sure"], abs=0.2)
    assert ours["again"].tolist() == ours["y_pred"].tolist()
    assert set(theirs["params"]) <= set(ours["params"])
    assert all(ours["params"][name] == value for name, value in theirs["params"].items())


def test_features_below_min_freq_are_left_out():
    X = [[["a", "b"], ["c"]], [["a"], ["d", "c"]], [["e"]]]
    y = [["X", "Y"], ["X", "Y"], ["Z"]]
    for least in (None, 0, 1, 2, 1.5):
        one, other = (kind(min_freq=least).fit(X, y) for kind in (sklearn_crfsuite.CRF, CRF))
        assert set(one.attributes_) == set(other.attributes_)
        assert one.classes_ == other.classes_ == ["X", "Y", "Z"]


# -- what arguments mean ---------------------------------------------------------------------------------------------


def test_penalties_are_those_of_crfsuite():
    plain, given = CRF()._program(), CRF(c1=0.3, c2=0.25)._program()
    assert (plain.config.l1, plain.l2) == (0.0, 2.0)
    assert (given.config.l1, given.l2) == (0.3, 0.5)
    assert CRF(c2=0)._program().l2 == 0


def test_our_own_arguments_reach_the_program():
    options = {"optimizer": "adagrad", "rich_edges": True, "rich_edge_min_count": 3, "structure_regularization": 2}
    config = CRF(**options, average=True)._program().config
    assert {name: getattr(config, name) for name in options} == options
    assert config.average
    assert not CRF()._program().config.rich_edges


@pytest.mark.parametrize(
    ("options", "sentences", "epochs"),
    [
        ({}, 100, 200), ({}, 5000, 40), ({}, 100_000, 20), ({"max_iterations": 30}, 100, 30),
        ({"max_iterations": 100}, 100_000, 20), ({"max_iterations": 0}, 100, 1), ({"epochs": 300}, 10, 300),
        ({"epochs": 2, "max_iterations": 1}, 10, 2),
    ],
)  # fmt: skip
def test_epochs(options, sentences, epochs):
    assert CRF(**options)._epochs(sentences) == epochs


def test_arguments_without_effect_are_named_in_one_warning(data):
    X, y = data[0][:20], data[1][:20]
    idle = {"epsilon": 1e-3, "linesearch": "Backtracking", "num_memories": 3, "period": 0, "keep_tempfiles": True}
    with pytest.warns(UserWarning, match="no effect") as caught:
        CRF(**idle, algorithm="ap", all_possible_states=False, epochs=1).fit(X, y)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert all(name in text for name in (*idle, "algorithm='ap'", "all_possible_states=False"))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CRF(algorithm="l2sgd", c2=1.0, min_freq=0, max_iterations=1, **ALL).fit(X, y)
        CRF(epochs=1).fit(X, y)


def test_every_argument_of_theirs_is_one_of_ours():
    theirs, ours = sklearn_crfsuite.CRF().get_params(), CRF().get_params()
    assert {name: ours[name] for name in theirs} == theirs
    assert list(ours) == sorted(ours)


def test_the_seed(data):
    X, y, _, _ = data
    one, again, other, drawn = (
        CRF(epochs=1, threads=1, random_state=state).fit(X, y).loss_curve_
        for state in (3, 3, 4, np.random.RandomState(5))
    )
    assert one == again
    assert len({*one, *other, *drawn}) == 3


def test_two_threads_learn_as_well(data, ours):
    X, y, X_test, y_test = data
    two = CRF(c2=0.1, threads=2).fit(X, y)
    assert two.score(X_test, y_test) == pytest.approx(ours.score(X_test, y_test), abs=0.02)


def test_held_out_data_chooses_the_epoch(data):
    X, y, X_dev, y_dev = data
    options = {"c2": 0.0, "lr": 0.5, "schedule": "constant", "threads": 1, "epochs": 40}
    model = CRF(**options, patience=2).fit(X, y, X_dev, y_dev)
    assert 2 < model.n_iter_ < 40
    assert len(model.loss_curve_) == model.n_iter_
    best = CRF(**{**options, "epochs": model.n_iter_ - 2}).fit(X, y)
    assert model.transition_features_ == best.transition_features_


def test_held_out_data_and_a_mean_of_weights(data):
    X, y, X_dev, y_dev = data
    options = {"c2": 0.0, "lr": 0.5, "schedule": "constant", "threads": 1, "average": True, "epochs": 40}
    model = CRF(**options, patience=2).fit(X, y, X_dev, y_dev)
    assert model.n_iter_ < 40
    assert model.program_.mean.epochs == model.n_iter_ - 2


def test_constrained_predictions_keep_to_the_scheme(data):
    X, y, X_test, _ = data
    free, bound = (CRF(threads=1, epochs=1, lr=1e-6, constrain=constrain).fit(X, y) for constrain in (False, True))
    edges = free.program_.weights.edges
    for model in (free, bound):
        model.program_.weights.edges[:] = np.random.default_rng(0).normal(size=len(edges))  # nothing was learnt

    def wrong(rows):
        pairs = ((before, tag) for row in rows for before, tag in zip(["O", *row], row, strict=False))
        return sum(tag[0] == "I" and before[2:] != tag[2:] for before, tag in pairs)

    assert wrong(free.predict(X_test)) > 0
    assert wrong(bound.predict(X_test)) == 0


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
    known = Excerpts(program)
    whole = tagging_of(X_test, names=feed.names, tags=feed.tags)
    assert whole.unknown > 0
    assert known.best(X_test, 2, False) == program.predict(whole)
    flat = [list(token.values()) for sentence in known.marginals(X_test, 2) for token in sentence]
    np.testing.assert_allclose(flat, program.marginals(whole), atol=1e-5)
    assert [known.best([sentence], 1, False)[0] for sentence in X_test[:9]] == program.predict(whole)[:9]


# -- a good neighbour ------------------------------------------------------------------------------------------------


def test_state_features_are_a_mapping(ours):
    found = ours.state_features_
    key = next(iter(found))
    assert found[key] == dict(found)[key]
    assert len(found) == len(dict(found.items()))
    assert ("no such", "O") not in found
    assert found.get(("bias", "no such")) is None
    assert f"{len(found):,} weights" in repr(found)


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
    source = Path(__file__).parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[['A', 'B'], ['B']]\n"
