"""--start: a model goes on with more data, in a process of its own each time."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild.programs.store import load_model

RUN = ("--mode", "serial", "--lr", "0.1", "--epochs", 2)


@pytest.fixture
def clicks(tmp_path):
    """A table, and more with new categories in the same columns, in another order and with other guesses of kinds."""
    random = np.random.default_rng(0)
    for name, sites in (("one", range(12)), ("two", range(6, 18))):
        lines = ["label,site,age"]
        for _ in range(300):
            site = random.choice(sites)
            lines.append(f"{'yes' if site % 3 else 'no'},{site if name == 'two' else f's{site}'},{random.integers(9)}")
        (tmp_path / f"{name}.csv").write_text("\n".join(lines).replace(",", ",", 1) + "\n")
    text = (tmp_path / "two.csv").read_text().splitlines()
    rows = [line.split(",") for line in text[1:]]
    (tmp_path / "two.csv").write_text("\n".join(["age,label,site", *(f"{a},{y},s{s}" for y, s, a in rows)]) + "\n")
    return tmp_path


def test_more_of_a_table(hogwild, clicks):
    first = hogwild("train", "classifier", clicks / "one.csv", *RUN, "--output", clicks / "m", "--json")
    again = hogwild("train", "classifier", clicks / "one.csv", *RUN, "--start", clicks / "m", "--json")
    assert again.json["metrics"]["loss"] <= first.json["metrics"]["loss"]
    more = hogwild(
        "train", "classifier", clicks / "two.csv", *RUN, "--start", clicks / "m", "--output", clicks / "m2", "--json"
    )
    assert more.code == 0
    assert "13 of 19 features have their weights from the model; 6 are new." in more.json["notes"]
    said = hogwild("evaluate", clicks / "m2", clicks / "two.csv", "--json")
    assert said.json["metrics"]["loss"] == pytest.approx(more.json["metrics"]["loss"], rel=1e-6)
    old, new = (load_model(clicks / name).program for name in ("m", "m2"))
    places = [list(new.feature_names()).index(name) for name in old.feature_names()]
    kept = [k for k, name in enumerate(old.feature_names()) if name in {f"site=s{site}" for site in range(6)}]
    before, after = old.arrays()["weight"], new.arrays()["weight"]
    np.testing.assert_array_equal(after[[places[k] for k in kept]], before[kept])  # those that do not occur


def test_what_does_not_fit_is_refused_in_a_line(refused, hogwild, clicks):
    words = ("train", "classifier", clicks / "two.csv", "--start", clicks / "m")
    assert hogwild("train", "classifier", clicks / "one.csv", *RUN, "--output", clicks / "m").code == 0
    assert "loss is 'hinge', and 'logistic' in the model to start from" in refused(*words, "--loss", "hinge")
    assert "is a model of another kind (linear)" in refused(*words, "--model", "fm")
    assert "no such model" in refused("train", "classifier", clicks / "two.csv", "--start", clicks / "none")


def test_an_interrupted_start_is_its_own_run(hogwild, refused, clicks):
    assert hogwild("train", "classifier", clicks / "one.csv", *RUN, "--output", clicks / "m").code == 0
    words = ["train", "classifier", clicks / "two.csv", *RUN, "--start", clicks / "m", "--output", clicks / "n"]
    assert hogwild(*words, "--checkpoint-every", "1epoch").code == 0
    again = hogwild(*words, "--resume", "--json")
    assert "this run was finished before; nothing is left to do." in again.json["notes"]
    assert hogwild("train", "classifier", clicks / "one.csv", *RUN, "--seed", 5, "--output", clicks / "m").code == 0
    assert "start data is not the same" in refused(*words, "--resume")
