"""The CRF that users of sklearn-crfsuite switch to, beside the real one."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter

import numpy as np
import pycrfsuite
import pytest
import sklearn_crfsuite
from sklearn_crfsuite import metrics

from hogwild.estimators import CRF
from hogwild.feeds.tagged.lists import tagging_of


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


@pytest.fixture(scope="module", params=[True, False], ids=["all", "seen"])
def sparse(request, data):
    """With c1, for all pairs of attribute and label or for those that were seen."""
    X, y, _, _ = data
    options = {"c1": 0.3, "c2": 0.05, "max_iterations": 100, "all_possible_states": request.param}
    options["all_possible_transitions"] = request.param
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # each of them has an effect
        ours = CRF(**options, threads=1).fit(X, y)
    # After 100 iterations theirs is further from the optimum than ours is: it goes on to it.
    return sklearn_crfsuite.CRF(algorithm="lbfgs", **options | {"max_iterations": 2000}).fit(X, y), ours


def test_c1_makes_the_same_weights_zero(sparse, data):
    theirs, ours = sparse
    for name in ("transition_features_", "state_features_"):
        one, other = dict(getattr(theirs, name)), dict(getattr(ours, name))
        assert 0 < len(other) <= 1.03 * len(one) + 2
        assert len(set(one) & set(other)) > 0.9 * len(other)
        keys = list({**one, **other})
        found, expected = ([weights.get(key, 0.0) for key in keys] for weights in (other, one))
        assert np.mean(np.abs(np.subtract(found, expected))) < 0.05 * np.std(expected)
    _, _, X, y = data
    assert abs(theirs.score(X, y) - ours.score(X, y)) < 0.01
    assert ours.program_.config.l1 == 0.3
    assert len(ours.loss_curve_) == ours.n_iter_ > 20


def test_c1_with_held_out_sentences_and_saved(data, tmp_path):
    X, y, X_dev, y_dev = data
    model = CRF(c1=0.3, c2=0.05, threads=1, model_filename=tmp_path / "m", patience=1).fit(X, y, X_dev, y_dev)
    rest = CRF(c1=0.3, c2=0.05, threads=1).fit(X, y)
    held_out = tagging_of(X_dev, y_dev, names=model.program_.names, tags=model.program_.tags)
    losses = [each.program_.evaluate(held_out)["loss"] for each in (model, rest)]
    assert losses[0] <= losses[1] + 1e-6
    loaded = CRF(model_filename=tmp_path / "m")
    assert loaded.predict(X_dev).tolist() == model.predict(X_dev).tolist()
    assert 0 < loaded.num_attributes_ < model.num_attributes_
    assert dict(loaded.state_features_) == dict(model.state_features_)


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
    given = {name: value for name, value in theirs["params"].items() if value not in (None, False)}
    assert given.items() <= ours["params"].items()


def test_features_below_min_freq_are_left_out():
    X = [[["a", "b"], ["c"]], [["a"], ["d", "c"]], [["e"]]]
    y = [["X", "Y"], ["X", "Y"], ["Z"]]
    for least in (None, 0, 1, 2, 1.5):
        one, other = (kind(min_freq=least).fit(X, y) for kind in (sklearn_crfsuite.CRF, CRF))
        assert set(one.attributes_) == set(other.attributes_)
        assert one.classes_ == other.classes_ == ["X", "Y", "Z"]
