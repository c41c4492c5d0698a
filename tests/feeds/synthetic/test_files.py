"""Made problems as files: what our feeds read back is what was made, and a model gets near the best possible."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

from hogwild.config import ClicksConfig, FeedConfig, SparseConfig
from hogwild.errors import ConfigError
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.open import description_path, open_feed
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.synthetic.clicks import Clicks
from hogwild.feeds.synthetic.files import (
    clicks_slots,
    sparse_slots,
    write_clicks,
    write_sparse,
)
from hogwild.feeds.synthetic.sparse import make_rows
from hogwild.feeds.synthetic.truth import Truth
from hogwild.programs.sparse.linear import Linear

SPARSE = SparseConfig(rows=300, features=500, nonzeros="2:9")
CLICKS = ClicksConfig(rows=200, slots=4, numbers=3, features=300)


def read(place, name, text, write, config, form, **options):
    """Write a problem, and its description if it has one, and open it."""
    path = place / f"{name}.{form}"
    with path.open("wb") as stream:
        truth = Truth(getattr(config, "classes", 2))
        write(stream, form, config, truth)
    if form in ("multislot", "tfrecord") and text:
        description_path(str(path)).write_text(text)
        options["slots"] = str(description_path(str(path)))
    return open_feed(str(path), FeedConfig(cache=False, format=form, **options)), truth


@pytest.mark.parametrize("form", ["svmlight", "multislot", "tfrecord", "parquet"])
@pytest.mark.parametrize(("binary", "classes"), [(False, 2), (True, 5)])
def test_sparse_rows_come_back(form, binary, classes, tmp_path):
    config = replace(SPARSE, binary=binary, classes=classes)
    slots = sparse_slots(config) if form == "multislot" else ""
    feed, truth = read(tmp_path, "rows", slots, write_sparse, config, form)
    (made,) = make_rows(config, Truth(classes))
    assert truth.rows == len(feed) == 300
    rows = feed.samples
    assert (np.diff(rows.offsets) == np.diff(made.offsets)).all()
    values = getattr(rows, "values", np.ones(len(rows.ids)))
    assert values == pytest.approx(made.values / 10_000, abs=1e-6)
    labels = (rows.targets > 0) if classes == 2 else rows.targets
    assert (labels == made.labels).all()
    # Ranks are in no order of ids, so sets of (id, value) are compared, row by row.
    ids = feed.original[rows.ids] if form != "multislot" else _named_ids(feed, made.ids)
    assert (ids == made.ids).all()


def _named_ids(feed: Feed, ids):
    """Features of slots are numbered as they come: the numbers that the made ids must have got."""
    first = {}
    for k in ids.tolist():
        first.setdefault(k, len(first))
    back = {number: k for k, number in first.items()}
    return np.array([back[int(number)] for number in feed.original[feed.samples.ids]])


@pytest.mark.parametrize(
    ("form", "nonzeros"),
    [("multislot", "0:3"), ("tfrecord", "0:3"), ("libffm", "0:3"), ("csv", "1"), ("parquet", "1"), ("criteo", "1")],
)
def test_clicks_come_back(form, nonzeros, tmp_path):
    config = replace(CLICKS, nonzeros=nonzeros)
    if form == "criteo":
        config = replace(config, slots=26, numbers=13)
    options = {"layout": "slots", "min_count": 1} if form in ("csv", "parquet") else {}
    feed, _ = read(tmp_path, "clicks", clicks_slots(config), write_clicks, config, form, scale=False, **options)
    (made,) = Clicks(config).rows(Truth())
    rows = feed.samples
    assert (rows.targets == made.labels).all()
    slots = np.asarray(rows.slots)
    numbers = made.numbers / 10_000
    if form == "libffm":  # numbers are fields like others
        inside = slots >= config.slots
        assert rows.values[inside] == pytest.approx(numbers.ravel(), abs=1e-6)
        assert (rows.values[~inside] == 1).all()
        slots, ids = slots[~inside], rows.ids[~inside]
        lengths = np.diff(rows.offsets) - config.numbers
    else:
        assert rows.dense == pytest.approx(numbers, abs=2e-4 if form == "criteo" else 1e-6)
        ids, lengths = rows.ids, np.diff(rows.offsets)
        assert len(feed.dense) == config.numbers
    assert (lengths == made.lengths.sum(axis=1)).all()
    assert (slots == np.repeat(np.tile(np.arange(config.slots), config.rows), made.lengths.ravel())).all()
    pairs = set(zip(ids.tolist(), made.ids.tolist(), strict=True))  # what is one feature in one is one in the other
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@pytest.mark.parametrize("form", ["svmlight", "multislot", "tfrecord", "parquet"])
def test_the_same_seed_gives_the_same_bytes(form):
    def written(config):
        stream = io.BytesIO()
        stream.close = lambda: None  # writers of Parquet close what they write to
        write_sparse(stream, form, config, Truth())
        return stream.getvalue()

    config = replace(SPARSE, rows=20)
    assert written(config) == written(config)
    assert written(config) != written(replace(config, part=1))


def test_a_model_gets_near_the_best_possible(tmp_path):
    config = SparseConfig(rows=12_000, features=100, nonzeros="8", noise=0.15)
    feed, _ = read(tmp_path, "train", "", write_sparse, config, "svmlight")
    test, truth = read(tmp_path, "test", "", write_sparse, replace(config, rows=4000, part=1), "svmlight")
    program = Linear()
    list(AsyncExecutor(threads=1, mode="serial").run(program, feed, epochs=5, lr=0.3))
    found = program.evaluate(test)
    assert truth.bayes()["auc"] - 0.015 < found["auc"] < truth.bayes()["auc"] + 0.01
    assert found["logloss"] < truth.bayes()["logloss"] + 0.03


def test_formats_that_cannot_hold_it():
    with pytest.raises(ConfigError, match="csv holds one category a slot; use multislot"):
        write_clicks(io.BytesIO(), "csv", replace(CLICKS, nonzeros="0:2"), Truth())
    with pytest.raises(ConfigError, match="criteo has 26 slots and 13 numbers, not 4 and 3"):
        write_clicks(io.BytesIO(), "criteo", CLICKS, Truth())


@pytest.mark.parametrize("form", ["multislot", "tfrecord"])
def test_a_description_beside_the_file_is_found(tmp_path, form):
    given, _ = read(tmp_path, "clicks", clicks_slots(CLICKS), write_clicks, CLICKS, form)
    path = (tmp_path / f"clicks.{form}").rename(tmp_path / ("clicks.txt" if form == "multislot" else "clicks.tfrecord"))
    found = open_feed(str(path), FeedConfig(cache=False))
    assert found.slots == given.slots == ("C1", "C2", "C3", "C4")
    for ours, theirs in zip(found.samples, given.samples, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert found.notes[0] == f"Slots are described in {tmp_path / 'clicks.slots.toml'}."
    assert "described" not in given.notes[0]


def test_a_description_beside_a_file_of_another_format_does_not_matter(tmp_path):
    (tmp_path / "rows.slots.toml").write_text(clicks_slots(CLICKS))
    feed, _ = read(tmp_path, "rows", "", write_sparse, SPARSE, "svmlight")
    path = (tmp_path / "rows.svmlight").rename(tmp_path / "rows.svm")
    assert open_feed(str(path), FeedConfig(cache=False)).notes == feed.notes
