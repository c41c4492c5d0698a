"""Tables read by the schema of an earlier one, labelled or not; real tables."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from feeds.sparse.files import rows_of, targets_of
from feeds.tables.files import PETS, raw, read
from hogwild.config import FeedConfig
from hogwild.errors import InputError, ModelError
from hogwild.feeds.open import open_feed
from hogwild.feeds.tables.categories import Vocabulary
from hogwild.feeds.tables.frames import Codes
from places import DATA

needs_data = pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pets.csv"


def test_the_schema_gives_the_same_ids_again(file: Path) -> None:
    feed = raw(file, PETS)
    schema = json.loads(json.dumps(feed.schema))
    again = read(file, "weight,kind,extra,age,label\n2,dog,7,1,no\n1,cow,7,,yes\n", schema)
    assert rows_of(again) == [{0: 1, 1: 2, 3: 1}, {0: 2, 1: 1, 4: 1}]
    assert targets_of(again) == [0, 1]
    assert again.notes == (
        "1 missing field in columns of numbers read as the mean of training, with a feature beside it that says so "
        "(see --missing-numbers).",
        "1 field with categories that training never saw left out.",
    )
    assert again.features == feed.features
    assert again.schema == feed.schema
    with pytest.raises(InputError, match=r"pets\.csv:2: the label `maybe` is none of no, yes"):
        read(file, "label,age,kind,weight\nmaybe,3,cat,4.5\n", schema)
    with pytest.raises(InputError, match="column `kind` is missing, which was there before; the columns are label,"):
        read(file, "label,age,weight\nyes,3,4.5\n", schema)
    bare = read(file, "yes,3,cat,4.5\n", schema)
    assert rows_of(bare) == [{0: 3, 1: 4.5, 2: 1}], "a file without the header"
    with pytest.raises(InputError, match="3 columns found, 4 expected"):
        read(file, "3,cat,4.5\n", schema)


def test_names_with_signs_survive_the_schema(file: Path) -> None:
    lines = "y,a=b,a\\\n1,c=d,e\n0,=,\\\n"
    feed = read(file, lines)
    again = read(file, lines, json.loads(json.dumps(feed.schema)))
    assert rows_of(again) == rows_of(feed)
    assert len({ident for row in rows_of(feed) for ident in row}) == 4


def test_prediction_without_labels(file: Path) -> None:
    schema = raw(file, PETS).schema
    feed = read(file, "kind,weight,age\ncat,4.5,3\n", schema, unlabelled=True)
    assert rows_of(feed) == [{0: 3, 1: 4.5, 2: 1}]
    assert targets_of(feed) == [0]
    assert feed.notes == ("1 file without labels, which predictions do not need.",)
    assert rows_of(read(file, "3,cat,4.5\n", schema, unlabelled=True)) == rows_of(feed), "and without the header"
    some = read(file, PETS.replace("no,2", ",2").replace("no,,", "?,,"), schema, unlabelled=True)
    assert targets_of(some) == [1, 0, 1, 0]
    assert "2 rows without a known label, which predictions do not need." in some.notes
    with pytest.raises(InputError, match="the label column `label` is missing; the columns are kind, weight, age"):
        read(file, "kind,weight,age\ncat,4.5,3\n", schema)


@pytest.mark.parametrize("write", [pd.DataFrame.to_parquet, pd.DataFrame.to_feather])
def test_binary_tables_with_other_names(tmp_path: Path, file: Path, write: Any) -> None:
    """The label's column is the one that is asked for, and columns without names are those in their places."""
    frame = pd.DataFrame({"age": [3.0, 1.0], "gold": ["no", "yes"], "kind": ["cat", "dog"], "weight": [4.5, 2.0]})
    write(frame, tmp_path / "table")
    named = open_feed(str(tmp_path / "table"), FeedConfig(label="gold", cache=False), raw(file, PETS).schema)
    assert rows_of(named) == [{0: 3, 1: 4.5, 2: 1}, {0: 1, 1: 2, 3: 1}]
    assert targets_of(named) == [0, 1]
    bare = raw(file, "3,no,cat,4.5\n1,yes,dog,2\n", label="2")
    placed = open_feed(str(tmp_path / "table"), FeedConfig(cache=False), bare.schema)
    assert rows_of(placed) == rows_of(bare)
    assert targets_of(placed) == [0, 1]


def test_prediction_without_numeric_labels(file: Path) -> None:
    schema = raw(file, "5,u,1\n6,v,2\n", label="-1").schema
    feed = read(file, "5,u\n7,w\n", schema, unlabelled=True, label="-1")
    assert rows_of(feed) == [{0: 5, 1: 1}, {0: 7}]
    some = read(file, "5,u,\n5,u,x\n5,u,inf\n", schema, unlabelled=True)
    assert targets_of(some) == [0, 0, 0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocabulary", ["nothing"]), ("vocabulary", ["other=1"]), ("vocabulary", [1]), ("scales", [1.0]),
        ("scales", ["x"]), ("hashing", None), ("labels", {"kind": "words", "names": [[]]}), ("numeric", None),
    ],
)  # fmt: skip
def test_a_damaged_schema(file: Path, key: str, value: Any) -> None:
    schema = {**read(file, PETS).schema, key: value}
    with pytest.raises(ModelError, match="what the model says of its columns is damaged"):
        read(file, PETS, schema)


def test_several_files_and_their_headers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,n,c\nu,1,k\n")
    (tmp_path / "b.csv").write_text("c,y,n\nk,v,2\n")
    (tmp_path / "c.csv").write_text("u,3,m\n")
    feed = open_feed(sorted(tmp_path.glob("*.csv")), FeedConfig(scale=False))
    assert rows_of(feed) == [{0: 1, 1: 1}, {0: 2, 1: 1}, {0: 3, 2: 1}]
    assert targets_of(feed) == [0, 1, 0]
    assert feed.place(1) == f"{tmp_path / 'b.csv'}:2"


def test_a_header_above_columns_that_had_none(file: Path) -> None:
    schema = raw(file, "1,5,u\n0,6,v\n").schema
    assert rows_of(read(file, "a,b,c\n1,6,u\n", schema, header="yes")) == [{0: 6, 1: 1}]
    tabbed = file.with_suffix(".txt")
    tabbed.write_text("6\tu\n5\tv\n")
    assert rows_of(open_feed(tabbed, FeedConfig(unlabelled=True), schema)) == [{0: 6, 1: 1}, {0: 5, 2: 1}]


def test_a_schema_of_another_kind(file: Path) -> None:
    with pytest.raises(InputError, match="trained on svmlight, but this is a table"):
        read(file, PETS, {"format": "svmlight", "features": 3})


# -- real tables -------------------------------------------------------------------------------------------------------


@needs_data
@pytest.mark.data
def test_census(tmp_path: Path) -> None:
    feed = open_feed(DATA / "adult" / "train.csv.xz", FeedConfig(label="-1", scale=False))
    frame = pd.read_csv(DATA / "adult" / "train.csv.xz", header=None, na_values="?")
    assert feed.labels == ("<=50K", ">50K")
    np.testing.assert_array_equal(feed.samples.targets, (frame[14] == ">50K").astype(float))
    numeric = [0, 2, 4, 10, 11, 12]
    assert feed.schema["numeric"] == [str(k) for k in numeric]
    assert feed.features == 6 + sum(frame[k].nunique() for k in range(14) if k not in numeric)
    rows = rows_of(feed)
    for k in range(0, len(frame), 997):
        wanted = {n: frame[c][k] for n, c in enumerate(numeric) if frame[c][k]}
        words = {c: frame[c][k] for c in range(14) if c not in numeric and isinstance(frame[c][k], str)}
        wanted |= {6 + feed.schema["vocabulary"].index(f"{c}={word}"): 1 for c, word in words.items()}
        assert rows[k] == wanted
    valid = open_feed(DATA / "adult" / "valid.csv.xz", schema=feed.schema)
    assert len(valid) == 16281
    assert valid.features == feed.features


@needs_data
@pytest.mark.data
def test_clicks(tmp_path: Path) -> None:
    config = FeedConfig(label="click", ignore=("id",), categorical=("C1", "banner_pos", "C14", "C17", "C21"))
    feed = open_feed(DATA / "avazu" / "train.csv.xz", config)
    assert len(feed) == 8087
    assert feed.samples.targets.mean() == pytest.approx(0.17274638)
    frame = pd.read_csv(DATA / "avazu" / "train.csv.xz")
    ips = {name for name in feed.schema["vocabulary"] if name.startswith("device_ip=")}
    assert ips == {f"device_ip={ip}" for ip in frame["device_ip"]}
    # This file has no header; its columns stand as they did in training.
    test = open_feed(DATA / "avazu" / "test.csv.xz", config, json.loads(json.dumps(feed.schema)))
    with lzma.open(DATA / "avazu" / "test.csv.xz", "rt") as stream:
        assert targets_of(test) == [float(line.split(",")[1]) for line in stream]


# -- ids of categories against a dictionary that goes from cell to cell ------------------------------------------------


def frame_of(rng: np.random.Generator, rows: int, size: int) -> tuple[list[Codes], np.ndarray]:
    """Three columns of words, some of them twice, some nowhere; and a column of numbers of which some are missing."""
    words = pa.array([f"w{k % (size - 1)}" for k in range(size)])
    columns = [Codes(rng.integers(-1, size // 2, rows).astype(np.int32), words) for _ in range(3)]
    return columns, rng.random((rows, 1)) < 0.1


@pytest.mark.parametrize("rows", [0, 1, 40, 900])
def test_ids_are_those_of_a_dictionary(rows: int) -> None:
    rng = np.random.default_rng(rows)
    vocabulary, known, entries = Vocabulary(["a", "b", "c"], 5, numbers=["n"]), dict[str, int](), list[str]()
    for size in (4, 60, 700):
        columns, missing = frame_of(rng, rows, size)
        expected = np.full((rows, 3), -1)
        for row in range(rows):
            for k, column in enumerate(columns):
                if (code := column.codes[row]) >= 0:
                    expected[row, k] = known.setdefault(f"{'abc'[k]}={column.words[code]}", 5 + len(known))
            if missing[row, 0]:
                known.setdefault("n=", 5 + len(known))
        np.testing.assert_array_equal(vocabulary.ids(columns, rows, missing), expected)
        entries = list(known)
        assert vocabulary.entries() == entries
        assert vocabulary.marks.tolist() == [known.get("n=", -1)]
    again = Vocabulary(["a", "b", "c"], 5, entries, numbers=["n"])
    columns, missing = frame_of(rng, rows, 2000)
    expected = [[known.get(f"{'abc'[k]}={c.words[c.codes[row]]}", -1) if c.codes[row] >= 0 else -1 for k, c in
                 enumerate(columns)] for row in range(rows)]  # fmt: skip
    np.testing.assert_array_equal(again.ids(columns, rows, missing), np.reshape(expected, (rows, 3)))
    assert [again.one(0, entry[2:]) for entry in entries if entry.startswith("a=")] == [
        ident for entry, ident in known.items() if entry.startswith("a=")
    ]


def test_two_words_of_one_hash_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary(["a"], 0)
    vocabulary.ids([Codes(np.zeros(1, np.int32), pa.array(["x"]))], 1)
    whole = Vocabulary._keyed

    def colliding(self: Vocabulary, *given: object) -> object:
        found = whole(self, *given)  # type: ignore[arg-type]
        return found._replace(keys=whole(self, [pa.array(["x"])], [np.zeros(1, np.int64)]).keys)

    monkeypatch.setattr(Vocabulary, "_keyed", colliding)
    with pytest.raises(InputError, match="share a hash"):
        vocabulary.ids([Codes(np.zeros(1, np.int32), pa.array(["y"]))], 1)
