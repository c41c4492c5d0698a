"""Names of hashed features: kept when a model is trained, and found again by their hashes."""

from __future__ import annotations

import numpy as np
import pytest

import hogwild
from hogwild import FeedConfig, load_model, open_feed, save_model
from hogwild.programs.inspecting.names import Names, parts_of

RUN = {"epochs": 2, "lr": 0.1, "mode": "serial", "quiet": True}
ROWS = [{"town": town, "kind": kind, "age": k} for k, (town, kind) in enumerate([("Rome", "a"), ("Oslo", "b=c")] * 10)]


def features_of(feed, row=0):
    """The features of a row by their own numbers."""
    ids = feed.samples.ids[feed.samples.offsets[row] : feed.samples.offsets[row + 1]]
    return sorted((ids if feed.original is None else feed.original[ids]).tolist())


def test_words_and_categories_of_a_table():
    rows = [{**row, "text": "Not good, isn’t it"} for row in ROWS]
    columns = {"text": "text", "numeric": ("age",), "categorical": ("town", "kind")}
    hashing = {"categories": "hash", "ngrams": 2, "hash_bits": 16}
    feed = hogwild.feed_of(rows, ["x", "y"] * 10, config=FeedConfig(**columns, **hashing))
    names = Names(feed.schema)
    grams = {"not", "good", "isn't", "it", "not good", "good isn't", "isn't it"}
    assert {names[k] for k in features_of(feed, 1)} == {"age", "town=Oslo", "kind=b=c", *grams}
    other = next(k for k in range(5, 1000) if k not in names.kept)
    assert names[other] == f"hash {other - 1}"  # a column of numbers comes first
    assert Names({**feed.schema, "names": []})[features_of(feed)[-1]].startswith("hash ")


def test_names_with_one_hash_are_told_together():
    feed = hogwild.feed_of(["one two three four five"] * 4, ["x", "y"] * 2, config=FeedConfig(hash_bits=1))
    names = Names(feed.schema)
    found = {names[0], names[1]}
    assert any(" or " in name for name in found)
    assert any(name.endswith(" or …") for name in found)


def test_slots(tmp_path):
    (tmp_path / "t.ffm").write_text("".join(f"{k % 2} 0:{7 + k % 2}:1 1:{10**12 + k % 3}:0.5\n" for k in range(20)))
    feed = open_feed(tmp_path / "t.ffm", FeedConfig(format="libffm", categories="hash", hash_bits=16))
    assert {Names(feed.schema)[k] for k in features_of(feed, 1)} == {"=8", "=1000000000001"}


def test_parts_of_words():
    feed = hogwild.feed_of(["zebra", "horse"] * 5, ["x", "y"] * 5, config=FeedConfig(subwords="3:4", hash_bits=18))
    names = Names(feed.schema)
    assert {names[k] for k in features_of(feed)} == {"zebra", *(f"part {part}" for part in parts_of("zebra", "3:4"))}


def test_a_model_has_them_and_one_of_before_opens_without(tmp_path):
    feed = hogwild.feed_of(["good film", "bad film"] * 10, ["yes", "no"] * 10)
    program = hogwild.train(hogwild.TextClassifier(dim=4), feed, **RUN)
    save_model(tmp_path / "m", program)
    loaded = load_model(tmp_path / "m").program
    assert {names for names, _ in hogwild.inspect(loaded)[0].positive} >= {("good",)}
    old = {name: part for name, part in program.schema.items() if name != "names"}
    save_model(tmp_path / "old", program, feed_schema=old)
    found = hogwild.inspect(load_model(tmp_path / "old").program)[0]
    assert all(name.startswith("hash ") for (name,), _ in found.positive)
    explained = hogwild.explain(load_model(tmp_path / "old").program, ["good day"])
    assert {term.name for term in explained.terms} >= {"good", "day"}


def test_names_change_no_ids(tmp_path):
    feed = hogwild.feed_of(["good film", "bad film"] * 10, ["yes", "no"] * 10)
    program = hogwild.train(hogwild.Linear(), feed, **RUN)
    bare = {name: part for name, part in feed.schema.items() if name != "names"}
    other = hogwild.feed_of(["good day"] * 2, ["yes", "no"], schema=bare)
    assert program.predict(other).tolist() == program.predict(["good day"] * 2).tolist()
    more = hogwild.feed_of(["new words", "bad words"] * 10, ["yes", "no"] * 10)
    grown = hogwild.train(hogwild.Linear(), more, start=program, **RUN)
    assert {"film", "words", "new", "good"} <= set(grown.schema["names"])


def test_slots_and_columns_of_features():
    feed = hogwild.feed_of(ROWS, ["x", "y"] * 10, config=FeedConfig(layout="slots"))
    names = Names(feed.schema)
    slots = names.slots(feed.features)
    assert {names[k]: feed.slots[slots[k]] for k in range(feed.features) if slots[k] >= 0}["town=Rome"] == "town"
    assert {names[k] for k in np.flatnonzero(slots == 1).tolist()} == {"kind=a", "kind=b=c", "kind rare"}
    assert names.columns(feed.features).tolist()[:4] == slots.tolist()[:4]
    hashed = hogwild.feed_of(ROWS, ["x", "y"] * 10, config=FeedConfig(layout="slots", categories="hash", hash_bits=12))
    slots = Names(hashed.schema).slots(hashed.features)
    assert int((slots >= 0).sum()) == 4


@pytest.mark.parametrize("names", [["a", 7], "a", [None]])
def test_damaged_names_are_refused(tmp_path, names):
    feed = hogwild.feed_of(["good film", "bad film"] * 10, ["yes", "no"] * 10)
    program = hogwild.train(hogwild.Linear(), feed, **RUN)
    save_model(tmp_path / "m", program, feed_schema={**feed.schema, "names": names})
    with pytest.raises(hogwild.ModelError, match="names is"):
        load_model(tmp_path / "m")
