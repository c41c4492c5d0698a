"""Tables as samples of slots: categories become slots, numbers dense columns; the same with rare values cut off."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from feeds.tables.files import read
from hogwild.arrays import SlotRows, ValuedSlotRows
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.inspecting.names import Names
from places import DATA

needs_data = pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
PETS = "label,age,kind,town,weight\n1,3,cat,Ulm,4.5\n0,,dog,cat,0\n1,1,cat,,1e1\n0,2,eel,Ulm,-2\n"
Row = tuple[list[tuple[str, str]], list[float]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pets.csv"


def slots(path: Path, lines: str | bytes, schema: dict[str, Any] | None = None, **options: Any) -> Feed:
    plain = {"layout": "slots", "scale": False, "cache": False, "missing_numbers": "zero", "min_count": 1}
    return read(path, lines, schema, **{**plain, **options})


def rows_of(feed: Feed) -> list[Row]:
    """The (slot, word) pairs of each row, and its numbers; a rare word is None."""
    samples = feed.samples
    assert isinstance(samples, SlotRows | ValuedSlotRows)
    assert feed.original is not None
    words = [entry.partition("=")[2] for entry in feed.schema["vocabulary"]] + ["rare"] * len(feed.slots)
    pairs = [
        (feed.slots[slot], words[feature])
        for slot, feature in zip(samples.slots.tolist(), feed.original[samples.ids].tolist(), strict=True)
    ]
    bounds = pairwise(samples.offsets.tolist())
    return [(pairs[a:b], numbers) for (a, b), numbers in zip(bounds, samples.dense.tolist(), strict=True)]


def twin(text: str, numeric: list[str], categorical: list[str], min_count: int = 1) -> list[Row]:
    rows = list(csv.DictReader(io.StringIO(text)))
    seen = Counter((name, row[name]) for row in rows for name in categorical if row[name])
    return [
        (
            [
                (name, row[name] if seen[name, row[name]] >= min_count else "rare")
                for name in categorical
                if row[name]
            ],
            [float(np.float32(row[name] or 0)) for name in numeric],
        )
        for row in rows
    ]


def made(rows: int) -> str:
    rng = random.Random(5)
    lines = [
        f"{rng.randrange(2)},{rng.choice(['', '0', '-1.5', '7'])},k{rng.randrange(9)},"
        f"{rng.choice(['', f't{int(rng.expovariate(0.05))}'])},{rng.gauss(0, 9):.4f}"
        for _ in range(rows)
    ]
    return "\n".join(["label,age,kind,town,weight", *lines, ""])


def test_categories_are_slots_and_numbers_dense(file: Path) -> None:
    feed = slots(file, PETS)
    assert isinstance(feed.samples, SlotRows)
    assert (feed.slots, feed.dense, feed.features) == (("kind", "town"), ("age", "weight"), 5)
    assert rows_of(feed) == twin(PETS, ["age", "weight"], ["kind", "town"])
    assert "1 missing field in columns of numbers read as 0." in feed.notes
    assert "1 missing field in columns of categories left out." in feed.notes
    assert feed.samples.targets.tolist() == [1, 0, 1, 0]
    feed.check()


@pytest.mark.parametrize("min_count", [1, 4])
def test_many_rows(file: Path, min_count: int) -> None:
    text = made(3000)
    feed = slots(file, text, min_count=min_count)
    assert rows_of(feed) == twin(text, ["age", "weight"], ["kind", "town"], min_count)
    counts = np.bincount(feed.samples.ids, minlength=feed.features)  # type: ignore[union-attr]
    assert (np.diff(counts) <= 0).all(), "ids are not ranks"
    cut = [note for note in feed.notes if "seen less than" in note]
    assert len(cut) == (min_count > 1)


def test_a_schema_gives_the_same_features(file: Path) -> None:
    text = made(500)
    train = slots(file, text, scale=True, min_count=3)
    schema = json.loads(json.dumps(train.schema))
    again = slots(file, text, schema, layout="flat", min_count=1, scale=True)
    assert rows_of(again) == rows_of(train)
    np.testing.assert_array_equal(again.samples.dense, train.samples.dense)  # type: ignore[union-attr]
    frame = pd.read_csv(io.StringIO(text))[["age", "weight"]]
    dense = (frame.fillna(0) - frame.mean()) / frame.std(ddof=0)  # missing numbers are 0, and are not measured
    np.testing.assert_allclose(train.samples.dense, dense, rtol=1e-4, atol=1e-6)  # type: ignore[union-attr]
    new = slots(file, "label,age,kind,town,weight\n1,1,yak,nowhere,1\n", schema)
    assert rows_of(new)[0][0] == [("town", "rare")], "no kind was rare in training: what is one has learnt nothing"
    assert new.notes == (
        "1 field with categories that training saw rarely or never are the rare feature of their column.",
        "1 field with categories that training never saw left out.",
    )
    plain = slots(file, "label,age,kind,town,weight\n1,1,yak,t0,1\n", dict(slots(file, text).schema))
    assert rows_of(plain)[0][0] == [("town", "t0")]
    assert plain.notes == ("1 field with categories that training never saw left out.",)


def test_columns_may_share_their_values(file: Path) -> None:
    own, shared = slots(file, PETS), slots(file, PETS, shared_ids=True)
    assert (own.features, shared.features) == (5, 4)
    assert rows_of(own) == rows_of(shared)
    cut = slots(file, PETS, shared_ids=True, min_count=2)
    assert cut.features == 3, "cat, Ulm and what is rare"
    assert rows_of(cut)[1][0] == [("kind", "rare"), ("town", "cat")]
    hashed = slots(file, PETS, shared_ids=True, categories="hash")
    ids = hashed.samples.ids.tolist()  # type: ignore[union-attr]
    assert ids[0] == ids[3], "cat and cat"
    again = slots(file, PETS, json.loads(json.dumps(cut.schema)))
    assert rows_of(again) == rows_of(cut)


def test_hashed_categories_and_their_seed(file: Path) -> None:
    feeds = [slots(file, PETS, categories="hash", hash_seed=seed) for seed in (1, 1, 2)]
    one, same, other = (feed.original[feed.samples.ids].tolist() for feed in feeds)  # type: ignore[index,union-attr]
    assert one == same != other
    assert feeds[0].features == 1 << 14
    again = slots(file, PETS, dict(feeds[2].schema))
    assert again.original[again.samples.ids].tolist() == other  # type: ignore[index,union-attr]


def test_text_is_the_last_slot(file: Path) -> None:
    lines = 'label,kind,words\n1,cat,"good, good cat"\n0,,bad\n1,dog,\n'
    feed = slots(file, lines, text="words", categorical=("kind",), normalize=False, ngrams=1)
    assert isinstance(feed.samples, ValuedSlotRows)
    assert feed.slots == ("kind", "words")
    bounds = pairwise(feed.samples.offsets.tolist())
    found = [feed.samples.slots[a:b].tolist() for a, b in bounds]
    assert found == [[0, 1, 1], [1], [0]]
    assert sorted(feed.samples.values[:3].tolist()) == [1, 1, 2]


def test_the_flat_layout_has_rare_features_too(file: Path) -> None:
    feed = read(file, PETS, scale=False, min_count=2, missing_numbers="zero")
    assert feed.schema["vocabulary"] == ["kind=cat", "town=Ulm"]
    assert feed.features == 2 + 2 + 2
    assert feed.original is not None
    assert feed.original[feed.samples.ids].tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 0, 1, 4, 3]  # type: ignore[union-attr]


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "pets.parquet"
    pd.read_csv(io.StringIO(PETS)).to_parquet(path)
    feed = open_feed(path, FeedConfig(layout="slots", scale=False, missing_numbers="zero", min_count=1))
    assert rows_of(feed) == twin(PETS, ["age", "weight"], ["kind", "town"])


BAD = [
    ("1,2,cat,Ulm\n", "pets.csv:2: "),
    ("1,2,cat,Ulm,3,4\n", "pets.csv:2: "),
    ("1,inf,cat,Ulm,3\n", r"pets.csv:2: column `age`: `inf` is not a finite number"),
    ("1,old,cat,Ulm,3\n", r"pets.csv:2: column `age`: `old` is not a finite number"),
]


@pytest.mark.parametrize(("line", "problem"), BAD)
def test_what_is_wrong_with_a_line(file: Path, line: str, problem: str) -> None:
    head, _, rest = PETS.partition("\n")
    lines = f"{head}\n{line}{rest}"
    options: dict[str, Any] = {"numeric": ("age", "weight"), "categorical": ("kind", "town")}
    with pytest.raises(InputError, match=problem):
        slots(file, lines, **options)
    feed = slots(file, lines, bad_lines="skip", bad_share=0.5, **options)
    assert rows_of(feed) == twin(PETS, ["age", "weight"], ["kind", "town"])


def test_columns_that_are_missing(file: Path) -> None:
    schema = dict(slots(file, PETS).schema)
    with pytest.raises(InputError, match="column `town` is missing, which was there before"):
        slots(file, "label,age,kind,weight\n1,2,cat,3\n", schema)


def test_features_have_names(file: Path) -> None:
    def names(feed: Feed) -> list[str]:
        known = Names(feed.schema)
        return [known[k] for k in range(feed.features + len(feed.dense))]

    assert names(slots(file, PETS, min_count=2)) == ["kind=cat", "town=Ulm", "kind rare", "town rare", "age", "weight"]
    flat = ["age", "weight", "kind=cat", "town=Ulm", "age missing", "kind rare", "town rare"]
    assert names(read(file, PETS, min_count=2)) == flat
    marked = ["kind=cat", "town=Ulm", "age missing", "kind rare", "town rare", "age", "weight"]
    assert names(slots(file, PETS, min_count=2, missing_numbers="mean")) == marked
    shared = slots(file, PETS, min_count=2, shared_ids=True)
    assert names(shared) == ["=cat", "=Ulm", "rare", "age", "weight"]


# -- real tables -------------------------------------------------------------------------------------------------------


@needs_data
@pytest.mark.data
def test_census() -> None:
    config = FeedConfig(label="-1", layout="slots", scale=False, min_count=1)
    feed = open_feed(DATA / "adult" / "train.csv.xz", config)
    frame = pd.read_csv(DATA / "adult" / "train.csv.xz", header=None, na_values="?")
    assert feed.labels == ("<=50K", ">50K")
    assert feed.dense == ("0", "2", "4", "10", "11", "12")
    assert feed.features == sum(frame[int(name)].nunique() for name in feed.slots)
    np.testing.assert_array_equal(feed.samples.dense, frame[[int(name) for name in feed.dense]])  # type: ignore[union-attr]
    rows = rows_of(feed)
    for k in range(0, len(frame), 997):
        words = [(name, frame[int(name)][k]) for name in feed.slots]
        assert rows[k][0] == [(name, word) for name, word in words if isinstance(word, str)]
    valid = open_feed(DATA / "adult" / "valid.csv.xz", config, feed.schema)
    assert (len(valid), valid.features) == (16281, feed.features)


@needs_data
@pytest.mark.data
def test_clicks() -> None:
    categorical = ("C1", "banner_pos", "device_type", "device_conn_type", *(f"C{k}" for k in range(14, 22)))
    config = FeedConfig(label="click", ignore=("id",), categorical=categorical, layout="slots", min_count=5)
    feed = open_feed(DATA / "avazu" / "train.csv.xz", config)
    frame = pd.read_csv(DATA / "avazu" / "train.csv.xz", dtype=str)
    assert feed.dense == ("hour",)
    assert len(feed.slots) == 21
    wanted = sum(int((frame[name].value_counts() >= 5).sum()) for name in feed.slots)
    assert feed.features == wanted + 21
    test = open_feed(DATA / "avazu" / "test.csv.xz", config, feed.schema)
    assert (len(test), test.features, test.nonzeros) == (432, feed.features, 432 * 21)
    assert any("saw rarely or never" in note for note in test.notes)
