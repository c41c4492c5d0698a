"""One call: what it takes, what it says of what it takes, and what it shows of itself."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest

import hogwild
from hogwild import errors
from hogwild.config import TrainConfig
from hogwild.config.typed import TrainOptions
from places import SOURCE

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.where(X[:, 0] > 0, "yes", "no")
QUICK = {"epochs": 2, "lr": 0.1, "mode": "serial", "quiet": True}


def test_options_have_names_and_types():
    hints = {item.name: get_type_hints(TrainConfig)[item.name] for item in fields(TrainConfig)}
    assert get_type_hints(TrainOptions) == hints
    shown = inspect.signature(hogwild.train).parameters
    assert list(shown)[:5] == ["program", "feed", "valid", "watch", "quiet"]
    assert {name: item.default for name, item in shown.items() if name in hints} == vars(TrainConfig())
    assert set(vars(TrainConfig())) <= set(inspect.signature(hogwild.AsyncExecutor).parameters)


@pytest.mark.full
def test_a_checker_sees_them(tmp_path):
    """mypy knows what train takes and gives; a wrong name or type is an error."""
    pytest.importorskip("mypy")
    file = tmp_path / "use.py"
    file.write_text(
        "import hogwild\n"
        "program = hogwild.train(hogwild.Linear(), hogwild.feed_of([[1.0]], [1]), epochs=3, lr=0.1)\n"
        "reveal_type(program)\n"
        "hogwild.train(hogwild.Linear(), None, epochs='3')\n"
        "hogwild.train(hogwild.Linear(), None, epoch=3)\n"
        "hogwild.AsyncExecutor(mode='fast')\n"
        "hogwild.ModelError, hogwild.Model, hogwild.estimators.HogwildClassifier\n"
    )
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports", "silent", str(file)]
    place = {"MYPYPATH": str(SOURCE), "PATH": "", "MYPY_CACHE_DIR": str(tmp_path / "cache")}
    said = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=place).stdout
    lines = said.splitlines()
    assert lines[0].startswith("use.py:3: note: Revealed type is"), said
    assert "linear.Linear" in lines[0], said
    assert [line.split(":")[1] for line in lines if "error:" in line] == ["4", "5", "6"], said


def test_data_instead_of_a_feed(tmp_path):
    feed = hogwild.feed_of(X, Y)
    expected = hogwild.train(hogwild.Linear(), feed, valid=feed, **QUICK).scores(feed)
    for data in ((X, Y), (X, Y, np.ones(40))):
        np.testing.assert_array_equal(hogwild.train(hogwild.Linear(), data, valid=data, **QUICK).scores(feed), expected)
    frame = pd.DataFrame({"a": X[:, 0], "kind": ["x", "y"] * 20})
    program = hogwild.train(hogwild.Linear(), (frame, Y), valid=(frame[::-1][["kind", "a"]], Y[::-1]), **QUICK)
    assert program.evaluate((frame, Y))["accuracy"] > 0.8
    frame.assign(label=Y).to_csv(tmp_path / "a.csv", index=False)
    again = hogwild.train(hogwild.Linear(), tmp_path / "a.csv", valid=str(tmp_path / "a.csv"), **QUICK)
    np.testing.assert_allclose(again.scores(frame), program.scores(frame), rtol=1e-5)
    pairs = [("ann", "tea", 5.0), ("bob", "tea", 3.0), ("bob", "jam", 4.0)]
    model = hogwild.train(hogwild.MatrixFactorization(dim=2), pairs, valid=pairs[:1], **QUICK)
    assert 3 <= model.predict_one("ann", "tea") <= 5


@pytest.mark.parametrize(
    ("program", "feed", "options", "message"),
    [
        (hogwild.Linear(), X, {}, "ndarray is no feed; open a file with hogwild.open_feed"),
        (hogwild.Linear(), None, {}, "NoneType is no feed"),
        (hogwild.Linear(), "no.csv", {}, "there is no file 'no.csv'"),
        (hogwild.Linear, (X, Y), {}, r"is no program; give an instance of one, such as Linear\(\)"),
        ("linear", (X, Y), {}, r"'linear' is no program; give an instance of one, such as Linear\(\)"),
        (hogwild.Linear(), (X, Y), {"lr": "0.1"}, "lr is '0.1'; it must be a number"),
        (hogwild.Linear(), (X, Y), {"epochs": 2.5}, "epochs is 2.5; it must be a whole number"),
        (hogwild.Linear(), (X, Y), {"epoch": 2}, r"no option 'epoch' \(did you mean epochs\?\)"),
        (hogwild.MatrixFactorization(), X[0], {}, "pairs are asked for"),
        (hogwild.MatrixFactorization(), 3, {}, "pairs are asked for"),
    ],
)
def test_what_cannot_be_trained_is_said_in_a_line(program, feed, options, message):
    with pytest.raises(hogwild.HogwildError, match=message) as caught:
        hogwild.train(program, feed, **{**QUICK, **options})
    assert "\n" not in str(caught.value)


def test_everything_shows_what_it_is():
    program = hogwild.Linear(l2=0.1, optimizer="sgd")
    assert repr(program) == "<Linear(optimizer='sgd', l2=0.1): not trained>"
    hogwild.train(program, (X, Y), **QUICK)
    assert repr(program).endswith(": 3 features, 2 classes ('no', 'yes'), logistic loss>")
    assert repr(hogwild.MatrixFactorization(dim=4)) == "<MatrixFactorization(dim=4): not trained>"
    assert repr(hogwild.AsyncExecutor(threads=2, lr=0.1)) == "<AsyncExecutor(lr=0.1, threads=2)>"
    executor = hogwild.AsyncExecutor(threads=1, mode="serial")
    run = executor.run(hogwild.Linear(), hogwild.feed_of(X, Y), lr=0.1)
    next(run)
    assert repr(executor) == "<AsyncExecutor(threads=1, mode='serial'), in epoch 1 of a run>"
    run.close()
    watch = hogwild.Watch(["bias", "norm(weights)"], every=5000)
    assert repr(watch) == "<Watch of bias, norm(weights), every 5,000 samples>"
    assert repr(hogwild.Watch("bias")) == "<Watch of bias, every 2 s>"
    assert repr(hogwild.feed_of(X, Y)) == "<Feed of arrays: 40 samples, 3 features, 120 nonzeros, 2 classes>"
    assert "not labelled" in repr(hogwild.feed_of(X))
    assert "2 slots, 1 dense column" in repr(hogwild.feed_of(
        pd.DataFrame({"a": ["x", "y"], "b": ["x", "y"], "n": [1, 2]}), [0, 1], config=hogwild.FeedConfig(layout="slots")
    ))  # fmt: skip


def test_public_names_are_those_of_the_stub():
    """What a checker is told stands where it is found; all errors are there; estimators come with the package."""
    stub = (SOURCE / "hogwild" / "__init__.pyi").read_text()
    told = dict(reversed(line.removeprefix("from .").split(" as ")[0].split(" import ")) for line in stub.splitlines()
                if line.startswith("from .") and not line.startswith("from . "))  # fmt: skip
    told.pop("theory")
    assert told == hogwild._HOMES
    found = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert set(found) <= set(hogwild.__all__)
    code = (
        "import sys, hogwild; hogwild.estimators; hogwild.train\n"
        "assert not {'torch', 'sklearn'} & set(sys.modules), 'too much'\n"
        "import hogwild as again; print(again.estimators.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True,
                          env={"PYTHONPATH": str(SOURCE), "PATH": ""})  # fmt: skip
    assert done.stdout == "hogwild.estimators\n", done.stderr
