"""A program has one set of defaults, wherever it is started: by `hogwild train`, `hogwild.train` or an executor."""

from __future__ import annotations

import importlib
import random

import numpy as np
import pytest

import hogwild as package
from cli.topics import write_topics
from hogwild import AsyncExecutor, FeedConfig, load_model

# The words of a command, its file, its program, and how the file is opened in Python.
KINDS = {
    "linear": (("classifier",), "train.svm", "Linear", package.open_feed),
    "fm": (("classifier", "--model", "fm"), "train.svm", "FactorizationMachine", package.open_feed),
    "text": (("classifier", "--model", "text"), "texts.tsv", "TextClassifier", package.open_feed),
    "ctr": (("ctr", "--label", "click"), "clicks.csv", "SparseMLP",
            lambda path: package.open_feed(path, FeedConfig(layout="slots", label="click"))),
    "recommender": (("recommender",), "ratings.csv", "MatrixFactorization", package.open_ratings),
    "tagger": (("tagger",), "tagged.txt", "CRF", package.open_tagging),
    "word2vec": (("word2vec",), "topics.txt", "Word2Vec", package.open_corpus),
}  # fmt: skip


@pytest.fixture
def data(tmp_path, files, tagged):
    """A small file of each kind."""
    draw = random.Random(0)
    (tmp_path / "train.svm").write_bytes((files / "train.svm").read_bytes())
    (tmp_path / "tagged.txt").write_bytes((tagged / "train.txt").read_bytes())
    write_topics(tmp_path / "topics.txt", 500)
    texts = [f"{draw.choice(('good', 'bad'))}\ta film of {draw.choice('abcdefgh')} words" for _ in range(200)]
    (tmp_path / "texts.tsv").write_text("\n".join(texts) + "\n")
    clicks = [f"{draw.randint(0, 1)},{draw.choice('xyz')},{draw.random():.3f}" for _ in range(1000)]
    (tmp_path / "clicks.csv").write_text("click,site,price\n" + "\n".join(clicks) + "\n")
    ratings = [f"u{draw.randrange(40)},i{draw.randrange(30)},{draw.randint(1, 5)}" for _ in range(600)]
    (tmp_path / "ratings.csv").write_text("user,item,rating\n" + "\n".join(ratings) + "\n")
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_the_options_of_a_run_are_the_same(kind):
    words, _, name, _ = KINDS[kind]
    command = importlib.import_module(f"hogwild.cli.train.{words[0]}").Options()
    program = getattr(package, name)()
    usual = AsyncExecutor().config_for(program)
    if kind == "ctr":  # the program is that of `train classifier --model mlp` too, which does not know of clicks
        assert isinstance(command.train, type(program).training)
        assert vars(command.train) == {**vars(usual), "best_by": "loss"}
        return
    assert type(command.train) is type(program).training
    assert usual == command.train


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.full] * (kind == "ctr")) for kind in KINDS])
def test_both_ways_give_the_same_weights(hogwild, data, kind):
    words, file, name, opened = KINDS[kind]
    said = hogwild("train", *words, data / file, "--mode", "serial", "--json", "--output", data / "model")
    assert said.code == 0, said.err
    program = getattr(package, name)()
    *_, finished = AsyncExecutor(mode="serial").run(program, opened(data / file))
    assert finished.epoch == said.json["epochs"]
    one, other = load_model(data / "model").program, package.train(
        getattr(package, name)(), opened(data / file), mode="serial", quiet=True
    )  # fmt: skip
    for key, array in one.arrays().items():
        np.testing.assert_array_equal(array, program.arrays()[key], err_msg=key)
        np.testing.assert_array_equal(array, other.arrays()[key], err_msg=key)


def test_what_is_given_comes_before_the_defaults_of_the_program():
    program = package.Word2Vec()
    executor = AsyncExecutor(threads=3, lr_end=0.5)
    found = executor.config_for(program, shuffle=True, lr_end=None)
    assert (found.threads, found.shuffle, found.lr_end, found.sharing) == (3, True, 0.17, "all")
    assert executor.config_for(program).lr_end == 0.5
    assert executor.config_for(package.Linear()).sharing == "auto"
    with pytest.raises(package.ConfigError, match=r"there is no option 'alpha' \(did you mean lr\?\)"):
        executor.config_for(program, alpha=0.5)
