"""`hogwild train classifier --model text`, then `evaluate` and `predict` with what it saved."""

from __future__ import annotations

import numpy as np
import pytest

import hogwild as package
from compiling import OFF
from hogwild.cli.train.models import MODELS, make_model
from hogwild.config import ClassifierConfig
from hogwild.config.options import options_of
from places import DATA

IMDB = DATA / "imdb"
LINES = ["bad\ta dull film\n", "good\ta fine film\n", "bad\tpoor and dull\n", "good\tso fine and warm\n"]


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.txt"
    path.write_text("".join(LINES * 50))
    return path


def test_trained_evaluated_and_asked(hogwild, reviews, tmp_path):
    model = tmp_path / "model"
    words = ["train", "classifier", reviews, "--model", "text", "--mode", "serial", "--hash-bits", 10]
    said = hogwild(*words, "--output", model, "--json")
    assert said.code == 0, said.err
    assert said.json["program"] == "text_classifier"
    assert said.json["lr"] == 2.0
    assert said.json["metrics"]["accuracy"] == 1.0
    found = hogwild("evaluate", model, reviews, "--json").json
    assert found["metrics"] == pytest.approx(said.json["metrics"])
    (tmp_path / "new.txt").write_text("a warm film\nso dull\n")
    assert hogwild("predict", model, tmp_path / "new.txt").out == "good\nbad\n"
    said = hogwild("predict", model, tmp_path / "new.txt", "--proba")
    chances = [float(line.split()[1]) for line in said.out.splitlines()]
    program = package.load_model(model).program
    asked = [program.predict_proba_one(text)["good"] for text in ("a warm film", "so dull")]
    np.testing.assert_allclose(chances, asked, rtol=1e-4)
    said = hogwild("inspect", model)
    assert said.code == 2
    assert "no weights by name" in said.err


def test_flags_of_other_models_are_refused(refused, reviews):
    said = refused("train", "classifier", reviews, "--model", "text", "--loss", "hinge")
    assert "--loss is for --model linear" in said
    said = refused("train", "classifier", reviews, "--row-decay", 0.1)
    assert "--row-decay is for --model text, not linear" in said
    assert "dim is -3" in refused("train", "classifier", reviews, "--model", "text", "--dim", -3)
    refused("train", "classifier", reviews, "--model", "texts")


def test_every_model_takes_what_the_table_says():
    names = {name for name in options_of(ClassifierConfig) if name not in ("model", "class_weight", "balanced")}
    offered = options_of(ClassifierConfig)["model"].choices
    assert set().union(*(MODELS[model].flags for model in offered)) == names  # none is for no model
    for model in offered:
        assert make_model(ClassifierConfig(model=model, balanced=True)).class_weight == "balanced"


@pytest.mark.data
@pytest.mark.skipif(not IMDB.exists() or OFF, reason="needs ../shared/data")
def test_film_reviews(hogwild, tmp_path):
    words = ["train", "classifier", IMDB / "train.tsv.xz", "--text", "text", "--model", "text", "--epochs", 3]
    assert hogwild(*words, "--output", tmp_path / "model").code == 0
    found = hogwild("evaluate", tmp_path / "model", IMDB / "test.tsv.xz", "--json").json
    assert found["metrics"]["accuracy"] > 0.9
    assert found["metrics"]["logloss"] < 0.26
