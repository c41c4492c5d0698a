"""`hogwild train classifier --model text`, then `evaluate` and `predict` with what it saved."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hogwild as package
from compiling import OFF
from feeds.tables import test_prose as prose
from hogwild.cli.train import classifier, ctr
from hogwild.config.options import build, choices_of, options_of
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
    said = hogwild(*words, "--output", model, "--json", "--log-dir", tmp_path / "log")
    assert said.code == 0, said.err
    assert said.json["program"] == "text_classifier"
    lines = [json.loads(line) for line in (tmp_path / "log" / "events.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "epoch_seconds" in line]
    assert max(losses) < np.log(2)  # at 12.8 they blow up on the way, and yet all texts are told apart at the end
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.1
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
    assert said.code == 0
    weights = dict(fields for line in said.out.splitlines() if len(fields := line.split()) == 2)
    assert float(weights["warm"]) > 0 > float(weights["dull"])


def test_flags_of_other_models_are_refused(refused, reviews):
    said = refused("train", "classifier", reviews, "--model", "text", "--loss", "hinge")
    assert "--loss is for --model linear" in said
    said = refused("train", "classifier", reviews, "--row-decay", 0.1)
    assert "--row-decay is for --model text, not linear" in said
    assert "dim is -3" in refused("train", "classifier", reviews, "--model", "text", "--dim", -3)
    refused("train", "classifier", reviews, "--model", "texts")


@pytest.mark.parametrize("command", [classifier, ctr])
def test_every_model_is_made_with_its_own_options(command):
    offered = choices_of(command.Options)
    assert offered == options_of(command.Options)["model"].choices
    assert offered[0] == options_of(command.Options)["model"].default
    for model in offered:
        options = build(command.Options, {"model": model, "balanced": True, "l2": 0.25}, model)
        program = classifier.ClassifierJob(options).make_program()
        assert program.class_weight == "balanced"
        assert program.config.l2 == 0.25
        assert vars(program.config).items() <= {**program.options(), **vars(options.own)}.items()


@pytest.mark.full
@pytest.mark.data
@pytest.mark.skipif(not IMDB.exists() or OFF, reason="needs ../shared/data")
def test_film_reviews(hogwild, tmp_path):
    words = ["train", "classifier", IMDB / "train.tsv.xz", "--text", "text", "--model", "text", "--epochs", 3]
    assert hogwild(*words, "--output", tmp_path / "model").code == 0
    found = hogwild("evaluate", tmp_path / "model", IMDB / "test.tsv.xz", "--json").json
    assert found["metrics"]["accuracy"] > 0.9
    assert found["metrics"]["logloss"] < 0.26


def test_a_table_of_reviews(hogwild, refused, tmp_path):
    """Each whole review was one category: right on all of the training data, by chance elsewhere."""
    for name, seed in (("train", 1), ("test", 2)):
        prose.write(prose.reviews(400, seed), tmp_path / f"{name}.csv")
    words = ["train", "classifier", tmp_path / "train.csv", "--model", "text", "--mode", "serial", "--hash-bits", 14]
    said = hogwild(*words, "--output", tmp_path / "model", "--json")
    assert said.code == 0, said.err
    assert "The label is column `sentiment`" in said.err
    assert hogwild("evaluate", tmp_path / "model", tmp_path / "test.csv", "--json").json["metrics"]["accuracy"] > 0.95
    (tmp_path / "one.csv").write_text('review\n"A warm, bright film."\n"A cold, dull film."\n')
    for file in (tmp_path / "one.csv", tmp_path / "one"):
        (tmp_path / "one").write_bytes((tmp_path / "one.csv").read_bytes())
        assert hogwild("predict", tmp_path / "model", file).out == "positive\nnegative\n"
    (tmp_path / "towns.csv").write_text("label,a,b\n" + "1,x,u\n0,y,v\n" * 20)
    said = refused("train", "classifier", tmp_path / "towns.csv", "--model", "text", "--quiet")
    assert "which column is the text? Say it with --text; there are a, b." in said
