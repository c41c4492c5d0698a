"""`hogwild evaluate --json` has one shape for every kind of model."""

from __future__ import annotations

import random

import pytest

from cli.conftest import SERIAL
from cli.words import make_words

SHAPE = {"program", "model", "samples", "metrics", "seconds", "notes"}
NO_SHARES = {"loss", "logloss", "rmse", "mae", "calibration"}
"""Metrics that may be larger than 1: sums of errors, and the ratio of what was promised to what came."""
SHARES = {"accuracy", "analogy", "f1", "high", "low", "oov", "pearson", "positive", "precision", "predicted", "recall"}
"""Names of shares, and of correlations, wherever they stand."""


def _clicks(place):
    draw = random.Random(3)
    drawn = [(draw.random() < 0.3, draw.randrange(6), draw.randrange(6), draw.random()) for _ in range(400)]
    rows = [f"{click:d},L{site},R{ad},{price:.3f}" for click, site, ad, price in drawn]
    (place / "clicks.csv").write_text("click,site,ad,price\n" + "\n".join(rows) + "\n")
    small = ("--dim", 4, "--hidden", "16", "--batch-size", 32, "--lr", 0.02)
    return ("ctr", place / "clicks.csv", "--label", "click", *small), place / "clicks.csv"


def _text(place):
    (place / "reviews.txt").write_text("bad\ta dull film\ngood\ta fine film\nbad\tdull and poor\n" * 20)
    return ("classifier", place / "reviews.txt", "--model", "text", "--hash-bits", 10), place / "reviews.txt"


def _pairs(place, columns):
    draw = random.Random(4)
    pairs = sorted({(draw.randrange(20), draw.randrange(12)) for _ in range(120)})
    lines = [f"u{user},i{item},{1 + (user + item) % 5}".split(",")[:columns] for user, item in pairs]
    names = ["user", "item", "rating"][:columns]
    (place / "pairs.csv").write_text("\n".join(",".join(line) for line in [names, *lines]) + "\n")
    return ("recommender", place / "pairs.csv", "--dim", 4), place / "pairs.csv"


@pytest.fixture(params=["rows", "clicks", "text", "ratings", "items", "chunks", "tags", "words"])
def judged(request, hogwild, files, tagged, tmp_path):
    """What evaluate says of a model of each kind."""
    if request.param == "words":
        tests = [tmp_path / name for name in ("pairs.tsv", "more.csv", "questions.txt")]
        return hogwild("evaluate", make_words(tmp_path), *tests, "--json").json
    make = {
        "rows": lambda: (("classifier", files / "train.svm"), files / "test.svm"),
        "clicks": lambda: _clicks(tmp_path),
        "text": lambda: _text(tmp_path),
        "ratings": lambda: _pairs(tmp_path, 3),
        "items": lambda: _pairs(tmp_path, 2),
        "chunks": lambda: (("tagger", tagged / "train.txt"), tagged / "test.txt"),
        "tags": lambda: (("tagger", tagged / "pos.txt", "--features", "pos"), tagged / "pos.txt"),
    }
    words, test = make[request.param]()
    assert hogwild("train", *words, *SERIAL, "--output", tmp_path / "model").code == 0
    return hogwild("evaluate", tmp_path / "model", test, "--json").json


def _walk(value, name=""):
    """Every number with the name that it stands under."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item, name)
    elif isinstance(value, int | float):
        yield name, value


def test_one_shape_and_shares_from_0_to_1(judged):
    assert set(judged) >= SHAPE
    assert judged["samples"] > 0
    assert judged["metrics"]
    assert set(judged["seconds"]) == {"load", "evaluate"}
    shares = [(name, value) for name, value in judged["metrics"].items() if name not in NO_SHARES]
    shares += [(name, value) for name, value in _walk(judged) if name in SHARES]
    assert {name: value for name, value in shares if not 0 <= value <= 1 and name not in ("spearman", "pearson")} == {}
    assert {name: value for name, value in shares if not -1 <= value <= 1} == {}
