"""Quantities by dense layers: learnt in a unit of their own, told in that of the user."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import hogwild
from hogwild import feed_of
from hogwild.executor.readers import checkpoint
from hogwild.programs.sparse.units import Unit

SMALL = {"hidden": (32,), "dim": 4, "batch_size": 64, "loss": "squared"}
BASE = dict(zip("ABCDEFGH", (900, 1200, 1500, 1800, 2200, 2600, 3000, 3600), strict=True))
KINDS = {"flat": 1.0, "house": 1.15, "villa": 1.5}


def houses(rows: int, seed: int) -> pd.DataFrame:
    """Prices are those of town and kind for each square metre, with 20,000 of noise."""
    random = np.random.default_rng(seed)
    area, year = random.gamma(6, 25, rows).round(1), random.integers(1900, 2021, rows)
    town, kind = random.choice(list(BASE), rows), random.choice(list(KINDS), rows, p=[0.5, 0.4, 0.1])
    price = np.array([BASE[t] * KINDS[k] for t, k in zip(town, kind, strict=True)]) * area + (year - 1960) * 400
    price += random.normal(0, 20_000, rows)
    return pd.DataFrame({"price": price.round(-2), "area": area, "year": year, "town": town, "kind": kind})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place = tmp_path_factory.mktemp("houses")
    for name, rows, seed in (("train", 3000, 1), ("test", 800, 2)):
        houses(rows, seed).to_csv(place / f"{name}.csv", index=False)
    return place


@pytest.fixture(scope="module")
def train(files):
    return hogwild.open_feed(files / "train.csv", hogwild.FeedConfig(label="price", layout="slots"))


@pytest.fixture(scope="module")
def test(files, train):
    return hogwild.open_feed(files / "test.csv", schema=train.schema)


@pytest.fixture(scope="module")
def trained(train):
    program = hogwild.SparseMLP(**SMALL, wide=True)
    return hogwild.train(program, train, epochs=6, lr=0.005, mode="serial", quiet=True)


def test_prices_are_learnt(files, train, test):
    """With the defaults: better than the mean, and than the linear model, by far."""
    mean = float(np.std(test.samples.targets))
    found = {}
    for name, program in (("linear", hogwild.Linear(loss="squared")), ("mlp", hogwild.SparseMLP(loss="squared"))):
        hogwild.train(program, train, valid=test, threads=1, quiet=True)
        found[name] = program.evaluate(test)["rmse"]
    assert found["linear"] < 0.5 * mean
    assert found["mlp"] < 0.8 * found["linear"]


def test_all_is_in_the_unit_of_the_user(trained, test):
    scores, targets = trained.predict(test), test.samples.targets
    found = trained.evaluate(test)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((scores.astype(float) - targets) ** 2)), rel=1e-5)
    assert found["loss"] == pytest.approx(found["rmse"] ** 2 / 2, rel=1e-5)
    assert found["rmse"] < 45_000
    assert trained.predict(houses(800, 2)) == pytest.approx(scores, rel=1e-5)


def test_the_first_prediction_is_the_mean(train):
    program = hogwild.SparseMLP(**SMALL)
    program.startup(train, seed=1)
    mean = np.mean(train.samples.targets, dtype=np.float64)
    np.testing.assert_allclose(program.scores(train), mean, rtol=1e-6)


def test_the_loss_of_training_is_told_in_the_same_unit(train):
    program = hogwild.SparseMLP(**SMALL)
    events = list(hogwild.AsyncExecutor(mode="serial", epochs=1, lr=1e-9).run(program, train))
    loss = next(event.loss for event in events if event.kind == "epoch")
    assert loss == pytest.approx(np.var(train.samples.targets, dtype=np.float64) / 2, rel=0.02)


def test_saved_and_trained_further(trained, train, test, tmp_path):
    hogwild.save_model(tmp_path / "model", trained)
    loaded = hogwild.load_model(tmp_path / "model").program
    np.testing.assert_allclose(loaded.predict(test), trained.predict(test), rtol=1e-4)
    before = loaded.evaluate(test)["rmse"]
    hogwild.train(loaded, train, epochs=1, lr=1e-9, mode="serial", quiet=True)  # all but stays as it is
    assert loaded.evaluate(test)["rmse"] == pytest.approx(before, rel=1e-3)
    hogwild.train(loaded, train, epochs=4, lr=0.005, mode="serial", quiet=True)
    assert loaded.evaluate(test)["rmse"] < before


def test_a_model_of_before_opens(trained, test):
    """Its arrays have no unit: what the last layer gives is what is predicted."""
    arrays = trained.arrays()
    assert "unit" not in arrays
    old = hogwild.SparseMLP(**trained.options())
    old.restore(arrays)
    assert old.own_unit is None
    np.testing.assert_allclose(old.predict(test), trained.predict(test), rtol=1e-4)


def test_going_on_from_a_checkpoint_is_the_same_run(train, tmp_path):
    def run(program, **options):
        return hogwild.AsyncExecutor(mode="serial", epochs=2, lr=0.005).run(program, train, **options)

    whole = hogwild.SparseMLP(**SMALL)
    list(run(whole))
    half = hogwild.SparseMLP(**SMALL)
    executor = hogwild.AsyncExecutor(mode="serial", epochs=2, lr=0.005)
    for event in executor.run(half, train):
        if event.kind == "epoch" and event.epoch == 1:
            checkpoint.save_checkpoint(tmp_path / "c", half, executor.state(), {})
            executor.stop()
    found = checkpoint.load_checkpoint(tmp_path / "c", hogwild.SparseMLP(**SMALL), {})
    assert found is not None
    twin, state = found
    list(run(twin, start=state))
    np.testing.assert_array_equal(twin.scores(train), whole.scores(train))


@pytest.mark.parametrize("targets", [[5.0, 5.0, 5.0, 5.0], [1e30, -1e30, 1e30, 0.0], [1e-20, 2e-20, 3e-20, 1e-20]])
def test_odd_quantities(targets):
    feed = feed_of(np.eye(4), targets)
    program = hogwild.train(hogwild.SparseMLP(**SMALL), feed, epochs=1, mode="serial", quiet=True)
    assert np.isfinite(program.predict(np.eye(4))).all()


def test_a_unit_weighs_by_importance():
    unit = Unit.of(np.array([0, 10, 99], np.float32), np.array([3, 1, 0], np.float32))
    assert unit == pytest.approx((2.5, np.sqrt((3 * 2.5**2 + 7.5**2) / 4)))
