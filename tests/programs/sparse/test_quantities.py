"""Losses of quantities, end to end: against scikit-learn's optimum, in every model, and as they are saved."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics as theirs
from sklearn.linear_model import PoissonRegressor, QuantileRegressor, SGDRegressor
from sklearn.utils.validation import check_is_fitted

import hogwild
from hogwild import HogwildRegressor, feed_of
from hogwild.errors import ConfigError, InputError
from hogwild.programs.sparse import quantities
from hogwild.programs.sparse.quantities import QUANTITIES, costs, loss_of, quantile_of, unit_of

ROWS, DELTA, LEVEL = 600, 0.8, 0.8
TOLD = {"huber": {"huber_delta": DELTA}, "quantile": {"quantile": LEVEL}}
FAST = {"random_state": 0, "mode": "serial"}


@pytest.fixture(scope="module")
def problem():
    """Numbers, a quantity with outliers, counts, and weights."""
    random = np.random.default_rng(4)
    matrix = random.standard_normal((ROWS, 4)).astype(np.float32)
    score = matrix @ np.array([0.8, -0.5, 0.3, 0.0], np.float32) + 0.7
    noise = random.standard_normal(ROWS) * np.where(random.random(ROWS) < 0.1, 8, 0.5)
    return matrix, (score + noise).astype(np.float32), random.poisson(np.exp(score)), random.integers(0, 4, ROWS)


def targets_of(problem, loss):
    return problem[2].astype(np.float32) if loss == "poisson" else problem[1]


def mean_cost(loss, scores, targets, weight=None):
    name = {"huber": {"huber_delta": DELTA, "quantile": None}, "quantile": {"huber_delta": None, "quantile": LEVEL}}
    config = hogwild.Linear(loss, **{key: value for key, value in name.get(loss, {}).items() if value}).config
    found = costs(loss_of(loss, config), np.asarray(scores), targets)
    return float(np.average(found, weights=weight))


def their_scores(loss, matrix, targets, weight=None):
    """Scores at the optimum, or as near to it as scikit-learn comes."""
    if loss == "poisson":
        return np.log(PoissonRegressor(alpha=0, max_iter=1000, tol=1e-8).fit(matrix, targets, weight).predict(matrix))
    if loss == "quantile":
        return QuantileRegressor(quantile=LEVEL, alpha=0).fit(matrix, targets, weight).predict(matrix)
    peer = SGDRegressor(loss, alpha=0, epsilon=DELTA, max_iter=3000, tol=None, eta0=0.02, random_state=0)
    return peer.fit(matrix, targets, sample_weight=weight).predict(matrix)


@pytest.mark.parametrize(("loss", "weighted"), [
    ("poisson", True), *(pytest.param(*case, marks=pytest.mark.full) for case in (
        ("poisson", False), ("huber", False), ("huber", True), ("quantile", False), ("quantile", True),
    )),
])  # fmt: skip
def test_the_optimum_is_that_of_scikit_learn(problem, loss, weighted):
    matrix, targets, weight = problem[0], targets_of(problem, loss), problem[3] if weighted else None
    model = HogwildRegressor(loss, huber_delta=DELTA, quantile=LEVEL, epochs=150, **FAST)
    model.fit(matrix, targets, weight)
    best = their_scores(loss, matrix, targets, weight)
    ours, peers = (mean_cost(loss, scores, targets, weight) for scores in (model._scores(matrix), best))
    assert ours <= 1.003 * peers + 1e-6
    none = mean_cost(loss, np.full(ROWS, model.program_.first_bias(feed_of(matrix, targets))[0]), targets, weight)
    assert ours < 0.95 * none


@pytest.mark.parametrize("loss", QUANTITIES)
def test_an_estimator_predicts_what_its_program_does(problem, loss):
    matrix, targets = problem[0], targets_of(problem, loss)
    model = HogwildRegressor(loss, epochs=2, lr=0.1, **FAST).fit(matrix, targets)
    check_is_fitted(model)
    np.testing.assert_array_equal(model.predict(matrix), model.program_.predict(matrix))
    assert model.predict(matrix)[:5] == pytest.approx([model.program_.predict_one(row) for row in matrix[:5]], rel=1e-5)
    again = HogwildRegressor(loss, lr=0.1, **FAST)
    again.partial_fit(matrix[:300], targets[:300]).partial_fit(matrix[300:], targets[300:])
    assert again.program_.evaluate((matrix, targets))["loss"] < 1.2 * model.program_.evaluate((matrix, targets))["loss"]


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_are_those_of_scikit_learn(problem, weighted):
    matrix, weight = problem[0], problem[3].astype(np.float32) if weighted else None
    for loss in QUANTITIES:
        targets = targets_of(problem, loss)
        feed = feed_of(matrix, targets, weight)
        program = hogwild.train(hogwild.Linear(loss, **TOLD.get(loss, {})), feed, epochs=2, lr=0.1, mode="serial",
                                quiet=True)  # fmt: skip
        found, values = program.evaluate(feed), program.predict(feed).astype(np.float64)
        given = {"sample_weight": weight}
        expected = {
            "rmse": theirs.root_mean_squared_error(targets, values, **given),
            "mae": theirs.mean_absolute_error(targets, values, **given),
            "r2": theirs.r2_score(targets, values, **given),
        }
        if loss == "quantile":
            expected["pinball"] = theirs.mean_pinball_loss(targets, values, alpha=LEVEL, **given)
            expected["coverage"] = np.average(targets <= values, weights=weight)
        if loss == "poisson":
            expected["deviance"] = theirs.mean_poisson_deviance(targets, values, **given)
        halves = {"poisson": found.get("deviance", 0) / 2, "squared": found["rmse"] ** 2 / 2}
        expected["loss"] = halves.get(loss, mean_cost(loss, values, targets, weight))
        assert found == pytest.approx(expected, rel=2e-5, abs=1e-7)


def test_a_quantity_that_never_changes_has_no_r2(problem):
    feed = feed_of(problem[0], np.full(ROWS, 3.0))
    program = hogwild.train(hogwild.Linear("huber"), feed, epochs=1, lr=0.1, mode="serial", quiet=True)
    found = program.evaluate(feed)
    assert "r2" not in found
    assert found["mae"] < 0.1  # where the bias begins


def test_where_the_bias_begins():
    targets, weight = np.array([1, 2, 3, 10, 50], np.float32), np.array([1, 1, 0, 2, 0], np.float32)
    feed = feed_of(np.ones((5, 1)), targets, weight)
    expected = {"squared": 0.0, "huber": 2.0, "quantile": 10.0, "poisson": math.log(23 / 4)}
    for loss, start in expected.items():
        program = hogwild.Linear(loss, **TOLD.get(loss, {}))
        program.startup(feed, seed=1)
        assert program.weights.bias[0] == pytest.approx(start)
        bare = hogwild.Linear(loss, bias=False)
        bare.startup(feed, seed=1)
        assert bare.weights.bias[0] == 0
    assert quantile_of(targets, np.ones(5, np.float32), 0.99) == 50


def test_units_leave_losses_as_they_are():
    """What is learnt in a unit is the same function of scores and targets in the unit of the user."""
    targets = np.array([0, 2, 5, 40], np.float32)
    weight, scores = np.ones(4, np.float32), np.array([0.5, -0.2, 1.5, 0.1], np.float32)
    for loss in QUANTITIES:
        config = hogwild.SparseMLP(loss=loss, **TOLD.get(loss, {})).config
        unit = unit_of(loss_of(loss, config), targets, weight)
        inside = costs(loss_of(loss, config, unit), scores, quantities.inward(loss, unit, targets))
        outside = costs(loss_of(loss, config), unit.outward(scores), targets)
        assert inside * quantities.loss_scale(loss, unit) == pytest.approx(outside, rel=1e-4, abs=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("loss", ["quantile", "poisson"])
@pytest.mark.parametrize("kind", ["fm", "mlp"])
def test_other_models_learn_them_too(problem, loss, kind, tmp_path):
    matrix, targets = problem[0], targets_of(problem, loss)
    feed = feed_of(matrix, targets)
    make = {"fm": hogwild.FactorizationMachine, "mlp": hogwild.SparseMLP}[kind]
    program = make(loss=loss, dim=2, **TOLD.get(loss, {}))
    program.startup(feed, seed=1)
    before = program.evaluate(feed)["loss"]
    hogwild.train(program, feed, epochs=30, lr=0.05 if kind == "fm" else 0.01, mode="serial", quiet=True)
    after = program.evaluate(feed)
    assert after["loss"] < 0.9 * before
    hogwild.save_model(tmp_path / "model", program)
    served = hogwild.load_model(tmp_path / "model").program
    np.testing.assert_allclose(served.predict(feed), program.predict(feed), rtol=1e-5, atol=1e-5)
    assert served.evaluate(feed) == pytest.approx(after, rel=1e-4)
    assert served.predict_one(matrix[0]) == pytest.approx(float(program.predict(feed)[0]), rel=1e-4)
    if loss == "poisson":
        assert program.predict(feed).min() > 0


def test_counts_are_not_negative(problem):
    targets = problem[2].astype(np.float32)
    targets[[7, 9]] = -1
    feed = feed_of(problem[0], targets)
    with pytest.raises(InputError, match="row 8: the target is -1, and the poisson loss is for counts"):
        hogwild.train(hogwild.Linear("poisson"), feed, epochs=1, quiet=True)
    sound = feed_of(problem[0], problem[2])
    program = hogwild.train(hogwild.Linear("poisson"), sound, epochs=1, lr=0.1, mode="serial", quiet=True)
    with pytest.raises(InputError, match="row 8"):
        program.evaluate(feed)
    with pytest.raises(ValueError, match="poisson loss is for counts"):
        HogwildRegressor("poisson").fit(problem[0], targets)


@pytest.mark.parametrize(("options", "message"), [
    ({"loss": "squared", "huber_delta": 2.0}, "huber_delta is 2.0; it is for the huber loss, not squared"),
    ({"loss": "huber", "quantile": 0.3}, "quantile is 0.3; it is for the quantile loss, not huber"),
    ({"loss": "huber", "huber_delta": 0.0}, "huber_delta is 0.0; it must be positive"),
    ({"loss": "quantile", "quantile": 1.0}, "quantile is 1.0; it is a share above 0 and below 1"),
])  # fmt: skip
def test_wrong_options(options, message):
    with pytest.raises(ConfigError, match=message):
        hogwild.Linear(**options)
    with pytest.raises(ConfigError, match=message):
        hogwild.SparseMLP(**options)


def test_wrong_losses(problem):
    with pytest.raises(ValueError, match="loss is 'logistic'; it must be one of squared, huber"):
        HogwildRegressor("logistic").fit(problem[0], problem[1])
    with pytest.raises(ValueError, match=r"quantile is 2\.0"):
        HogwildRegressor("quantile", quantile=2.0).fit(problem[0], problem[1])
    with pytest.raises(InputError, match="the labels are words, and the quantile loss needs numbers"):
        hogwild.train(hogwild.Linear("quantile"), feed_of(problem[0][:2], ["a", "b"]), quiet=True)
