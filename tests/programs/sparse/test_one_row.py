"""One row at a time gives what `predict` gives for the same row: all shapes, missing values, after further training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hogwild
from compiling import OFF, cases
from hogwild.config import FeedConfig

ROWS, TOLERANCE = 24 if OFF else 120, 2e-6
LOSSES = {"two": "logistic", "three": "logistic", "quantity": "squared"}
SHAPES = [(), (1,), (5,), (17, 3), (33, 16, 7)]
TRAIN: dict[str, Any] = {"epochs": 1 if OFF else 2, "lr": 0.02, "threads": 1, "quiet": True}


def _rows(random: np.random.Generator) -> list[dict[str, Any]]:
    """Numbers, categories; some of them missing, in all ways in which they may be."""
    rows = [
        {"n": float(n), "m": float(m), "a": f"a{a}", "b": f"b{b}", "c": int(c)}
        for n, m, a, b, c in zip(*random.normal(size=(2, ROWS)), *random.integers(0, 9, (3, ROWS)), strict=True)
    ]
    for k, row in enumerate(rows):
        row.update(({}, {"n": None}, {"a": None}, {"m": float("nan"), "b": ""}, {"b": " b3 "})[k % 5])
    return rows


def _labels(kind: str, random: np.random.Generator) -> Any:
    if kind == "quantity":
        return random.normal(40, 9, ROWS)
    return random.choice(["no", "yes"] if kind == "two" else ["u", "v", "w"], ROWS)


def _strange(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows that training had none of."""
    return [{**row, "a": "never seen"}, {**row, "n": "0.25"}, {**row, "m": 3}, {**row, "c": 4.0}, {**row, "c": "4"},
            {**row, "a": "NA"}, dict.fromkeys(row)]  # fmt: skip


def _equal(program: Any, rows: list[Any]) -> None:
    if program.classes:
        one = np.array([list(program.predict_proba_one(row).values()) for row in rows])
        np.testing.assert_allclose(one, program.predict_proba(rows), atol=TOLERANCE, rtol=0)
    else:
        np.testing.assert_allclose([program.predict_one(row) for row in rows], program.predict(rows), rtol=TOLERANCE)


@pytest.mark.parametrize("activation", cases(["relu", "tanh"], ["relu"]))
@pytest.mark.parametrize("kind", LOSSES)
def test_rows_through_layers_of_all_sizes(kind: str, activation: str) -> None:
    random = np.random.default_rng(7)
    rows, labels = _rows(random), _labels(kind, random)
    feed = hogwild.feed_of(rows, labels, config=FeedConfig(layout="slots"))
    for hidden in SHAPES:
        options = {"dim": 3, "hidden": hidden, "batch_size": 8, "activation": activation, "loss": LOSSES[kind]}
        program = hogwild.SparseMLP(**options)
        for _ in range(2):  # what is kept from the first time is not used for the weights of the second
            hogwild.train(program, feed, **TRAIN)
            _equal(program, rows)
        for row in _strange(rows[0]):
            _equal(program, [row])


def test_a_wide_part_and_layers_that_give_nothing_but_zeros() -> None:
    random = np.random.default_rng(8)
    rows = _rows(random)
    feed = hogwild.feed_of(rows, _labels("two", random), config=FeedConfig(layout="slots"))
    program = hogwild.SparseMLP(dim=3, hidden=(6, 5), batch_size=8, wide=True)
    hogwild.train(program, feed, **TRAIN)
    _equal(program, rows)
    arrays = program.arrays()
    for dead in ("layer_1_bias", "layer_2_bias"):
        program.restore({**arrays, dead: np.full_like(arrays[dead], -100)})
        _equal(program, rows)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
@pytest.mark.parametrize("layout", ["flat", "slots"])
def test_rows_of_a_linear_model(loss: str, layout: str) -> None:
    random = np.random.default_rng(9)
    rows, labels = _rows(random), _labels("quantity" if loss == "squared" else "three", random)
    program = hogwild.Linear(loss=loss)
    feed = hogwild.feed_of(rows, labels, config=FeedConfig(layout=layout))
    for _ in range(2):
        hogwild.train(program, feed, **TRAIN)
        found = np.squeeze([program.score_row(row) for row in rows])
        np.testing.assert_allclose(found, program.scores(rows), rtol=1e-5, atol=1e-5)


WORDS = ["good", "bad", "film", "Plot", "it's", "süß", "日本", "—", "a", "tremendously-overlong"]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("make", [hogwild.Linear, hogwild.TextClassifier])
@pytest.mark.parametrize("classes", [2, 3])
def test_texts(make: Any, classes: int, normalize: bool) -> None:
    random = np.random.default_rng(10)
    texts = [" ".join(random.choice(WORDS, size)) for size in random.integers(0, 40, ROWS)]
    config = FeedConfig(hash_bits=8, normalize=normalize)
    program = make()
    feed = hogwild.feed_of(texts, random.choice(["u", "v", "w"][:classes], ROWS), config=config)
    given = [*texts[:40], "", "never seen", "good " * 3000 * (not OFF), *texts[40:]]
    column = feed.schema["text"]
    for _ in range(2):
        hogwild.train(program, feed, **TRAIN)
        _equal(program, given)
        for text in given[:9]:
            assert program.predict_proba_one({column: text}) == program.predict_proba_one(text)


def test_a_linear_model_of_texts_says_what_is_wrong() -> None:
    program = hogwild.train(hogwild.Linear(), hogwild.feed_of(["fine film", "dull"] * 9, ["good", "bad"] * 9), **TRAIN)
    column = program.schema["text"]
    empty = program.predict_proba_one("")
    assert program.predict_proba_one({column: None}) == empty
    with pytest.raises(hogwild.InputError, match="not Unicode at character 3"):
        program.predict_one("so\ud800")
    with pytest.raises(hogwild.InputError, match=f"column `{column}` is missing"):
        program.predict_one({"other": "fine"})
    with pytest.raises(hogwild.InputError, match="a row is asked for, not 3"):
        program.predict_one(3)
