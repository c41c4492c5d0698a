"""How long a SparseMLP trains, in which batches and with which penalty, where the user leaves that to the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hogwild
from hogwild.config import FeedConfig
from hogwild.config.training import ClassifierTrainConfig
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.sparse.sparse_mlp import SparseMLP


def made(rows: int, quantity: bool = False) -> Feed:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(rows, 2)).astype(np.float32)
    return hogwild.feed_of(numbers, numbers[:, 0] if quantity else numbers[:, 0] > 0)


@pytest.mark.parametrize(
    ("rows", "epochs", "batch", "l2"),
    [(60, 100, 32, 0.01), (600, 61, 32, 0.01), (3000, 27, 64, 0.005), (30_000, 9, 256, 0.0), (400_000, 5, 256, 0.0)],
)
def test_what_follows_from_the_rows(rows: int, epochs: int, batch: int, l2: float) -> None:
    program = SparseMLP()
    config = program.adapted(ClassifierTrainConfig(), made(rows))
    assert (config.epochs, program._whole, program._l2) == (epochs, batch, pytest.approx(l2))
    updates = epochs * -(-rows // batch)
    told = f"{epochs} epochs of {rows:,} rows in batches of {batch}: {updates:,} updates (--epochs, --batch-size)."
    assert told in program.started_notes()


def test_what_is_given_is_taken() -> None:
    program = SparseMLP(batch_size=10, l2=0.5)
    assert program.adapted(ClassifierTrainConfig(epochs=3), made(600)).epochs == 3
    assert (program._whole, program._l2, program.started_notes()) == (10, 0.5, [])
    quantity = SparseMLP(loss="squared")
    quantity.adapted(ClassifierTrainConfig(), made(600, quantity=True))
    assert quantity._l2 == 0
    assert hogwild.Linear().adapted(ClassifierTrainConfig(), made(600)).epochs == 5


def test_numbers_are_the_same_all_the_way(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    big, small = 1e4 + rng.normal(size=200), 1e-3 * rng.normal(size=200)
    kinds = np.array(["a", "b", "a|b", ""])[rng.integers(0, 4, 200)]
    label = (big > 1e4) ^ (kinds == "a")
    rows = zip(label.astype(int), big, small, kinds, strict=True)
    path = tmp_path / "t.csv"
    path.write_text("label,big,small,kinds\n" + "".join(f"{y},{a!s},{b!s},{k}\n" for y, a, b, k in rows))
    feed = hogwild.open_feed(path, FeedConfig(layout="slots", multi=("kinds",), cache=False))
    dense = feed.samples.dense  # type: ignore[union-attr]
    np.testing.assert_allclose(dense.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(dense.std(0), 1, rtol=1e-3)
    program = hogwild.train(hogwild.SparseMLP(), feed, mode="serial", quiet=True)
    chances = program.predict_proba(path)[:, 1]
    assert np.mean((chances > 0.5) == label) > 0.9
    hogwild.save_model(tmp_path / "model", program)
    loaded = hogwild.load_model(tmp_path / "model").program
    np.testing.assert_array_equal(loaded.predict_proba(path)[:, 1], chances)
    for k in range(0, 200, 20):
        row = {"big": float(big[k]), "small": float(small[k]), "kinds": str(kinds[k]).split("|")}
        assert loaded.predict_one(row) == pytest.approx(float(chances[k]), abs=1e-5)
