"""What the command line predicts, and what a loaded model does in Python with the same rows in memory."""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hogwild as package
from cli.conftest import SERIAL
from hogwild.cli.apply import lines

WORDS = {True: "fine warm film", False: "dull poor plot"}
MODELS = {
    "mlp": ("ctr", "--dim", 4, "--hidden", 16, "--batch-size", 32, "--lr", 0.02),
    "wide-deep": ("ctr", "--model", "wide-deep", "--dim", 4, "--hidden", 16, "--batch-size", 32, "--lr", 0.02),
    "ffm": ("ctr", "--model", "ffm", "--dim", 4, "--lr", 0.1),
    "linear of clicks": ("ctr", "--model", "linear", "--lr", 0.1),
    "linear": ("classifier", "--lr", 0.1),
    "fm": ("classifier", "--model", "fm", "--dim", 4, "--lr", 0.1),
    "text": ("classifier", "--model", "text", "--hash-bits", 10),
    "linear of text": ("classifier", "--lr", 0.1, "--hash-bits", 10),
}
WAYS = {
    "as it is": (),
    "hashed": ("--categories", "hash", "--hash-bits", 12),
    "rare": ("--min-count", 30),
    "with text": ("--text", "words", "--categorical", "site", "--categorical", "ad", "--numeric", "price",
                  "--hash-bits", 12),
}  # fmt: skip


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    """train.csv, test.csv: clicks by site, ad, price and words."""
    place = tmp_path_factory.mktemp("clicks")
    random = np.random.default_rng(4)
    for name, rows in (("train", 900), ("test", 200)):
        left, right = random.integers(0, 6, rows), random.integers(0, 40, rows) ** 2 // 200
        price = random.uniform(0, 9, rows).round(3)
        click = (left + right) % 2 == 0
        words = [f"{WORDS[bool(c)]} {a}" if c != (a == 2) else "film" for c, a in zip(click, left, strict=True)]
        frame = pd.DataFrame({"click": click.astype(int), "site": [f"L{a}" for a in left], "words": words,
                              "ad": [f"R{b}" for b in right], "price": price})  # fmt: skip
        frame.to_csv(place / f"{name}.csv", index=False)
    return place


def _one_by_one(program, bare, expected, model):
    """Each row by itself, as a dict and as values in order: the same numbers."""
    rows = bare.head(60).to_dict("records")
    rows.append({**rows[0], "site": "unseen", "ad": None, "price": None, "words": ""})
    expected = [*expected[:60], program.predict_proba(rows[-1:])[0]]
    for row, (_, chance), label in zip(rows, expected, program.predict(rows), strict=True):
        for given in (row, list(row.values()), {**row, "click": 1, "more": "x"}):
            if model == "text" and isinstance(given, list):
                given = row["words"]
            found = program.predict_proba_one(given)
            assert list(found) == list(program.classes)
            assert found[program.classes[1]] == pytest.approx(chance, abs=3e-6)
            one = program.predict_one(given)
            if program.name in ("linear", "text_classifier"):
                assert one == label
            else:
                assert one == pytest.approx(chance, abs=3e-6)
    if model == "linear of text":
        assert program.predict_one(rows[0]["words"]) == program.predict_one(rows[0])
    missing = "column `words` is missing" if "text" in model else "is missing in the row"
    with pytest.raises(package.InputError, match=missing):
        program.predict_one({"price": 1.0})


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_python_gives_the_numbers_of_the_command_line(hogwild, clicks, tmp_path, model, way):
    text = "text" in model
    if text and way != "as it is":
        pytest.skip("a way of reading columns")
    reading = ("--text", "words") if text else WAYS[way]
    command, *own = MODELS[model]
    words = ["train", command, clicks / "train.csv", "--label", "click", *own, *reading, *SERIAL]
    said = hogwild(*words, "--output", tmp_path / "model")
    assert said.code == 0, said.err
    said = hogwild("predict", tmp_path / "model", clicks / "test.csv", "--proba")
    expected = np.array([[float(value) for value in line.split()] for line in said.out.splitlines()])
    loaded = package.load_model(tmp_path / "model")
    program, frame = loaded.program, pd.read_csv(clicks / "test.csv")
    bare = frame.drop(columns="click")
    turned = bare[["words", "price", "ad", "site"]]  # columns are found by their names
    for data in (frame, bare, turned, pl.from_pandas(turned)):
        feed = package.feed_of(data, schema=loaded.schema)
        np.testing.assert_allclose(program.predict_proba(feed), expected, atol=2e-6)
    for data in (turned, bare.to_dict("records"), bare.to_numpy(), clicks / "test.csv", str(clicks / "test.csv")):
        np.testing.assert_allclose(program.predict_proba(data), expected, atol=2e-6)
    if text:
        np.testing.assert_allclose(program.predict_proba(list(bare["words"])), expected, atol=2e-6)
    _one_by_one(program, bare, expected, model)
    found = hogwild("evaluate", tmp_path / "model", clicks / "test.csv", "--json").json["metrics"]
    assert program.evaluate(frame) == pytest.approx(found)
    assert program.evaluate((turned, frame["click"])) == pytest.approx(found)
    with pytest.raises(package.InputError, match="no labels to compare with"):
        program.evaluate(turned)
    for strange in (package.feed_of(bare, frame["click"]), package.open_feed(clicks / "test.csv")):
        for ask in (program.evaluate, program.predict, program.predict_proba):
            with pytest.raises(package.InputError, match=r"does not fit the model: .*program\.schema\)\.$") as caught:
                ask(strange)
            assert "\n" not in str(caught.value)


# -- as lines come ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(clicks, tmp_path_factory):
    """Models of a table and of text."""
    place = tmp_path_factory.mktemp("served")
    for name, text in (("table", False), ("text", True)):
        config = package.FeedConfig(label="click", text="words" if text else "", hash_bits=10)
        feed = package.open_feed(clicks / "train.csv", config)
        program = package.TextClassifier() if text else package.Linear()
        package.train(program, feed, epochs=2, lr=0.1, mode="serial", quiet=True)
        package.save_model(place / name, program, feed_config=config)
    return place


def talk(model, *words):
    """A command that reads what is sent to it, and is asked for one line after the other."""
    command = [sys.executable, "-m", "hogwild", "predict", str(model), "-", *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("header", [True, False])
def test_answers_come_line_by_line(served, clicks, header):
    program = package.load_model(served / "table").program
    frame = pd.read_csv(clicks / "test.csv").head(5)
    expected = program.predict(frame)
    sent = frame.to_csv(index=False).splitlines()
    with talk(served / "table") as run:
        assert run.stdin is not None
        assert run.stdout is not None
        if header:
            run.stdin.write(sent[0] + "\n")
            run.stdin.flush()
        for line, label in zip(sent[1:], expected, strict=True):
            run.stdin.write(line + "\n")
            run.stdin.flush()
            assert run.stdout.readline() == f"{label}\n"  # before the next one is sent
        run.stdin.close()
        assert run.stdout.read() == ""
        assert run.wait() == 0


def test_texts_come_line_by_line(served):
    program = package.load_model(served / "text").program
    with talk(served / "text") as run:
        for text in ("fine warm film", "dull poor plot", "", "fine film"):
            run.stdin.write(text + "\n")
            run.stdin.flush()
            if text:
                assert run.stdout.readline() == f"{program.predict_one(text)}\n"
        run.stdin.close()
        assert run.wait() == 0


def piped(hogwild, monkeypatch, data, *words):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return hogwild("predict", *words)


def test_what_comes_at_once_is_the_same(hogwild, served, clicks, monkeypatch):
    data = (clicks / "test.csv").read_bytes()
    expected = hogwild("predict", served / "table", clicks / "test.csv").out
    quoted = pd.read_csv(clicks / "test.csv").to_csv(index=False, quoting=csv.QUOTE_ALL).encode()
    for sent in (data, data.rstrip(b"\n"), gzip.compress(data), quoted):
        said = piped(hogwild, monkeypatch, sent, served / "table", "-")
        assert said.out == expected, said.err
    monkeypatch.setattr(lines, "_MOST", 300)  # in many parts, of which only the first has the header
    monkeypatch.setattr(sys, "stdin", SlowStream(data, 100))
    assert hogwild("predict", served / "table", "-").out == expected


class SlowStream:
    """Standard input that gives a few bytes at a time."""

    def __init__(self, data, size):
        self.buffer, self._data, self._size = self, io.BytesIO(data), size

    def read1(self, count):
        return self._data.read(min(count, self._size))


def test_lines_end_outside_of_quotes():
    whole = b'a,"b\nc"\nd,"e'
    assert lines._line_end(whole, quoted=True) == whole.index(b"d")
    assert lines._line_end(whole, quoted=False) == whole.index(b"d")
    assert lines._line_end(b'a,"b\nc', quoted=True) == 0
    assert lines._line_end(b'a,"b\nc', quoted=False) == 5


def test_a_wrong_line_is_told_by_its_number(hogwild, served, clicks, monkeypatch):
    rows = (clicks / "test.csv").read_text().splitlines()[:50]
    rows[40] = rows[40].rpartition(",")[0] + ",dear"
    monkeypatch.setattr(sys, "stdin", SlowStream("\n".join(rows).encode() + b"\n", 150))
    said = hogwild("predict", served / "table", "-")
    assert said.code == 2
    assert "standard input:41: column `price`: `dear` is not a finite number" in said.err
    assert 0 < len(said.out.splitlines()) < 40
    monkeypatch.setattr(sys, "stdin", SlowStream("\n".join(rows).encode() + b"\n", 150))
    said = hogwild("predict", served / "table", "-", "--bad-lines", "skip")
    assert said.code == 0, said.err
    assert len(said.out.splitlines()) == 48
