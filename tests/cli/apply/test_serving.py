"""What the command line predicts, and what a loaded model does in Python with the same rows in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hogwild as package
from cli.conftest import SERIAL

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
