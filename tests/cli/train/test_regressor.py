"""`hogwild train regressor`, with weights; then `evaluate` and `predict` with what it saved."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as theirs

import hogwild as package

SERIAL = ("--mode", "serial", "--epochs", 3, "--lr", 0.2)


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """homes.csv: prices, visits, and how many days they were counted."""
    random = np.random.default_rng(3)
    place = tmp_path_factory.mktemp("homes")
    for name, rows in (("homes", 400), ("more", 150)):
        size, town = random.gamma(6, 15, rows).round(1), random.choice(["Ulm", "Bonn", "Kiel"], rows)
        score = size / 60 + np.where(town == "Ulm", 0.8, 0)
        pd.DataFrame({
            "price": (score * 100 + random.standard_normal(rows) * 10).round(2),
            "visits": random.poisson(np.exp(score / 2)), "size": size, "town": town,
            "days": random.integers(0, 5, rows),
        }).to_csv(place / f"{name}.csv", index=False)  # fmt: skip
    return place


@pytest.mark.parametrize("loss", [
    "poisson", *(pytest.param(loss, marks=pytest.mark.full) for loss in ("squared", "huber", "quantile")),
])  # fmt: skip
def test_train_evaluate_predict(hogwild, homes, tmp_path, loss):
    label, other = ("visits", "price") if loss == "poisson" else ("price", "visits")
    own = {"huber": ("--huber-delta", 20), "quantile": ("--quantile", 0.9)}.get(loss, ())
    words = ("--label", label, "--ignore", other, "--loss", loss, *own, "--weight", "days", *SERIAL)
    found = hogwild("train", "regressor", homes / "homes.csv", *words, "--valid", homes / "more.csv", "--json",
                    "--output", tmp_path / "model").json  # fmt: skip
    assert {"loss", "rmse", "mae", "r2"} <= set(found["metrics"])
    again = hogwild("evaluate", tmp_path / "model", homes / "more.csv", "--json").json
    assert again["metrics"] == pytest.approx(found["metrics"])
    hogwild("predict", tmp_path / "model", homes / "more.csv", "--output", tmp_path / "told")
    told = np.loadtxt(tmp_path / "told")
    frame = pd.read_csv(homes / "more.csv")
    given = {"sample_weight": frame["days"]}
    assert len(told) == len(frame)
    assert found["metrics"]["mae"] == pytest.approx(theirs.mean_absolute_error(frame[label], told, **given), rel=1e-4)
    if loss == "poisson":
        expected = theirs.mean_poisson_deviance(frame[label], told, **given)
        assert found["metrics"]["deviance"] == pytest.approx(expected, rel=1e-4)
    if loss == "quantile":
        expected = theirs.mean_pinball_loss(frame[label], told, alpha=0.9, **given)
        assert found["metrics"]["pinball"] == pytest.approx(expected, rel=1e-4)
    served = package.load_model(tmp_path / "model").program
    row = frame.iloc[0].to_dict()
    assert served.predict_one(row) == pytest.approx(told[0], rel=1e-4)
    unweighted = hogwild("evaluate", tmp_path / "model", homes / "more.csv", "--weight", "none", "--json").json
    expected = theirs.mean_absolute_error(frame[label], told)
    assert unweighted["metrics"]["mae"] == pytest.approx(expected, rel=1e-4)


def test_it_is_the_classifier_with_that_loss(hogwild, homes, tmp_path):
    for command, loss in (("classifier", ("--loss", "squared")), ("regressor", ())):
        words = ("--label", "price", "--ignore", "visits", *loss, *SERIAL, "--output", tmp_path / command)
        assert hogwild("train", command, homes / "homes.csv", *words).code == 0
    one, other = (package.load_model(tmp_path / name).program for name in ("classifier", "regressor"))
    np.testing.assert_array_equal(one.arrays()["weight"], other.arrays()["weight"])
    assert json.loads((tmp_path / "regressor" / "config.json").read_text())["program"] == "linear"


def test_crossed_columns(hogwild, homes, tmp_path):
    """What only pairs tell is learnt from them, named, and found again by whoever reads the model."""
    random = np.random.default_rng(9)
    kinds, towns = random.choice(["flat", "house"], 300), random.choice(["Ulm", "Bonn"], 300)
    sizes = random.integers(1, 9, 300)
    prices = np.where((kinds == "flat") == (towns == "Ulm"), 3.0, 1.0) + np.where(kinds == "flat", 0.5, -0.5) * sizes
    frame = pd.DataFrame({"price": prices, "kind": kinds, "town": towns, "size": sizes})
    frame.to_csv(tmp_path / "a.csv", index=False)
    words = ("train", "regressor", tmp_path / "a.csv", "--label", "price", "--mode", "serial", "--epochs", 40)
    alone = hogwild(*words, "--json").json["metrics"]
    pairs = ("--interactions", "kind:town", "--interactions", "size:kind,size:size")
    found = hogwild(*words, *pairs, "--output", tmp_path / "model", "--json").json["metrics"]
    assert found["r2"] > 0.99
    assert alone["r2"] < 0.75
    assert hogwild("evaluate", tmp_path / "model", tmp_path / "a.csv", "--json").json["metrics"] == pytest.approx(found)
    told = hogwild("inspect", tmp_path / "model", "--top", 50).out
    assert "kind=flat & town=Ulm" in told
    assert "size * kind=house" in told
    assert "size * size" in told
    served = package.load_model(tmp_path / "model").program
    rows = frame.drop(columns="price").to_dict("records")
    assert [served.predict_one(row) for row in rows] == pytest.approx(served.predict(frame), rel=1e-4, abs=1e-5)
    refused = hogwild(*words, *pairs, "--model", "mlp")
    assert refused.code == 2
    assert "--interactions is for linear models" in refused.err
    clicks = ("train", "ctr", tmp_path / "b.csv", "--model", "linear", "--label", "y", "--interactions", "kind:town")
    frame.assign(y=(kinds == "flat") == (towns == "Ulm")).replace({True: 1, False: 0}).drop(columns="price").to_csv(
        tmp_path / "b.csv", index=False
    )
    assert hogwild(*clicks, "--mode", "serial", "--lr", 0.5, "--json").json["metrics"]["auc"] == 1


def test_mistakes(hogwild, homes, tmp_path):
    def refused(*words):
        said = hogwild("train", "regressor", *words, *SERIAL)
        assert said.code == 2
        return said.err

    (tmp_path / "below.csv").write_text("visits,x\n3,1\n0,2\n-2,3\n")
    assert "below.csv:4: the target is -2, and the poisson loss is for counts" in refused(
        tmp_path / "below.csv", "--loss", "poisson"
    )
    assert "quantile is 0.3; it is for the quantile loss" in refused(homes / "homes.csv", "--quantile", 0.3)
    assert "choose one of squared, huber, quantile, poisson" in refused(homes / "homes.csv", "--loss", "logistic")
    assert "--balanced" in refused(homes / "homes.csv", "--balanced")
    assert "--model" in refused(homes / "homes.csv", "--model", "text")
    (tmp_path / "words.csv").write_text("price,x\nlow,1\nhigh,2\n")
    assert "the labels are words, and the squared loss needs numbers" in refused(tmp_path / "words.csv")
