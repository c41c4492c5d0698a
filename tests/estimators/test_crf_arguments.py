"""What the arguments of the CRF mean, and which have no effect."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn_crfsuite
from sklearn.base import clone

from hogwild.errors import HogwildWarning
from hogwild.estimators import CRF

ALL = {"all_possible_states": True, "all_possible_transitions": True}  # as it is here; then the optimum is the same


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
    with pytest.warns(HogwildWarning, match="no effect") as caught:
        CRF(**idle, algorithm="ap", all_possible_states=False, epochs=1).fit(X, y)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert all(name in text for name in (*idle, "algorithm='ap'", "all_possible_states=False"))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CRF(algorithm="l2sgd", c2=1.0, min_freq=0, max_iterations=1, **ALL).fit(X, y)
        CRF(epochs=1).fit(X, y)


def test_every_argument_of_theirs_is_taken_by_name():
    theirs = sklearn_crfsuite.CRF().get_params()
    ours = CRF(**theirs).get_params()
    assert {name: ours[name] for name in theirs} == theirs
    assert set(CRF().get_params()) < set(ours)  # what has no effect is there only if it was given


def test_arguments_without_effect_are_kept_by_copies_and_may_be_set():
    model = clone(CRF(epsilon=1e-3, c2=0.5))
    assert (model.get_params()["epsilon"], model.c2) == (1e-3, 0.5)
    model.set_params(epsilon=2e-3, period=5, c2=0.25)
    assert {"epsilon": 2e-3, "period": 5, "c2": 0.25}.items() <= clone(model).get_params().items()
    assert "epsilon=0.002" in repr(model)
    with pytest.raises(TypeError, match=r"no argument 'epsilom' .did you mean epsilon"):
        CRF(epsilom=1)
    with pytest.raises(ValueError, match="epsilom"):
        model.set_params(epsilom=1)


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
