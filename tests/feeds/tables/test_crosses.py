"""Crossed columns: the features of pairs, in files and in single rows alike, against pairs that are made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import hogwild
from feeds.tables.files import read
from hogwild import FeedConfig, feed_of
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.tables.onerow import TableRow
from hogwild.programs.inspecting.names import Names

TABLE = (
    "label,age,size,kind,town\n"
    "1,3,2,cat,Ulm\n0,5,0,dog,Bonn\n1,1,4,cat,Bonn\n0,,1,,Ulm\n1,2,1,a & b,c\n0,2,1,a,b & c\n"
)
PAIRS = ("kind:town", "age:kind", "town:size,age:size", "age:age")


def named_rows(feed):
    """Of each row, what its features are called, and their values."""
    names, samples = Names(feed.schema), feed.samples
    ids = samples.ids if feed.original is None else feed.original[samples.ids]
    values = samples.values if hasattr(samples, "values") else np.ones(len(ids))
    parts = [slice(*ends) for ends in zip(samples.offsets[:-1], samples.offsets[1:], strict=True)]
    return [{names[int(k)]: float(v) for k, v in zip(ids[part], values[part], strict=True)} for part in parts]


def test_the_features_of_pairs(tmp_path):
    feed = read(tmp_path / "a.csv", TABLE, scale=False, interactions=PAIRS)
    rows = named_rows(feed)
    assert rows[0] == {
        "age": 3, "size": 2, "age * size": 6, "age * age": 9, "kind=cat": 1, "town=Ulm": 1, "kind=cat & town=Ulm": 1,
        "age * kind=cat": 3, "size * town=Ulm": 2,
    }  # fmt: skip
    assert rows[1] == {  # a number that is 0 has no feature, nor has what it is multiplied with
        "age": 5, "age * age": 25, "kind=dog": 1, "town=Bonn": 1, "kind=dog & town=Bonn": 1, "age * kind=dog": 5,
    }  # fmt: skip
    mean, square = np.mean([3, 5, 1, 2, 2]), np.mean([9, 25, 1, 4, 4])
    assert rows[3] == pytest.approx({
        "age": mean, "age missing": 1, "size": 1, "age * age": square, "age:age missing": 1, "age:size missing": 1,
        "age * size": np.mean([6, 0, 4, 2, 2]), "town=Ulm": 1, "size * town=Ulm": 1,
    })  # fmt: skip
    assert "kind=a & b & town=c" in rows[4]
    assert "kind=a & town=b & c" in rows[5]
    assert feed.schema["interactions"][0] == ["kind", "town"]
    assert "4 missing" not in " ".join(feed.notes)


@pytest.mark.parametrize("options", [
    {}, {"scale": False}, {"categories": "hash"}, {"min_count": 2}, {"missing_numbers": "zero"},
], ids=str)  # fmt: skip
def test_files_frames_and_single_rows_have_the_same_features(tmp_path, options):
    feed = read(tmp_path / "a.csv", TABLE, interactions=PAIRS, **options)
    frame = pd.read_csv(tmp_path / "a.csv").drop(columns="label")
    again = [
        read(tmp_path / "a.csv", TABLE, feed.schema), feed_of(frame, schema=feed.schema, rank=False),
        feed_of(frame.to_dict("records"), schema=feed.schema, rank=False),
    ]  # fmt: skip
    rows, one = named_rows(feed), TableRow(feed.schema)
    for other in again:
        assert other.features == feed.features
        for mine, theirs in zip(rows, named_rows(other), strict=True):
            assert mine == pytest.approx(theirs, rel=1e-6)
    names = Names(feed.schema)
    for mine, row in zip(rows, frame.to_dict("records"), strict=True):
        found = one(row)
        listed: dict[str, float] = {}
        for ident, value in zip(found.ids, found.values, strict=True):
            listed[names[ident]] = value
        assert mine == pytest.approx(listed, rel=1e-6)


def test_numbers_by_category_are_scaled_as_the_numbers_are(tmp_path):
    for categories in ("enumerate", "hash"):
        feed = read(tmp_path / "a.csv", TABLE, interactions=("age:kind",), categories=categories)
        scale = feed.schema["scales"][0]
        assert scale == pytest.approx(1 / np.sqrt(np.mean([9, 25, 1, 4, 4])), rel=1e-6)
        row = {name: value for name, value in named_rows(feed)[1].items() if name.startswith("age * ")}
        assert list(row.values()) == pytest.approx([5 * scale])


def test_pairs_are_what_they_are_made_of_by_hand(tmp_path):
    """A model of crossed columns is that of columns which hold the pairs."""
    random = np.random.default_rng(5)
    kinds, towns = random.choice(["cat", "dog"], 500), random.choice(["Ulm", "Bonn"], 500)
    labels = ((kinds == "cat") == (towns == "Ulm")).astype(int)
    frame = pd.DataFrame({"y": labels, "kind": kinds, "town": towns})
    crossed = feed_of(frame, config=FeedConfig(label="y", interactions=("kind:town",)))
    alone = feed_of(frame, config=FeedConfig(label="y"))
    frame["both"] = [f"{kind} & {town}" for kind, town in zip(kinds, towns, strict=True)]
    made = feed_of(frame, config=FeedConfig(label="y"))
    models = [hogwild.train(hogwild.Linear(), feed, epochs=5, lr=0.5, mode="serial", quiet=True)
              for feed in (crossed, made, alone)]  # fmt: skip
    for feed, program, accuracy in zip((crossed, made), models, (1.0, 1.0), strict=False):
        assert program.evaluate(feed)["accuracy"] == accuracy
    np.testing.assert_array_equal(models[0].arrays()["weight"], models[1].arrays()["weight"])
    assert models[2].evaluate(alone)["accuracy"] < 0.65
    assert models[0].predict_one({"kind": "cat", "town": "Ulm"}) == 1
    assert models[0].predict_one(["dog", "Ulm"]) == 0


@pytest.mark.parametrize(("pairs", "message"), [
    ("kind:kind", "kind:kind: a category with itself says what `kind` says"),
    ("kind:twon", r"no column `twon` \(--interactions\).*Did you mean `town`"),
    ("kind", "--interactions kind names no two columns; write A:B"),
    ("kind:town,town:kind", "town:kind is given twice"),
    ("label:kind", "`label` is neither a column of numbers nor of categories"),
])  # fmt: skip
def test_wrong_pairs(tmp_path, pairs, message):
    with pytest.raises(ConfigError, match=message):
        read(tmp_path / "a.csv", TABLE, interactions=(pairs,))


def test_other_mistakes(tmp_path):
    with pytest.raises(ConfigError, match="share their categories have no pairs"):
        FeedConfig(interactions=("a:b",), shared_ids=True)
    with pytest.raises(ConfigError, match="there is a column of that name already"):
        read(tmp_path / "a.csv", "label,a,b,a:b\n1,x,y,z\n0,y,x,z\n", interactions=("a:b",))
    with pytest.raises(InputError, match=r"a.csv:3: column `a:b`: the product is too large"):
        read(tmp_path / "a.csv", "label,a,b\n1,1,2\n0,1e30,1e30\n", interactions=("a:b",))
    with pytest.raises(ConfigError, match=r"times 2\^30 ids are too many"):
        read(tmp_path / "a.csv", TABLE, interactions=("age:kind",), categories="hash", hash_bits=30)
    (tmp_path / "a.svm").write_text("1 1:2\n0 2:1\n")
    with pytest.raises(ConfigError, match="is read as svmlight, which has no columns; leave out --interactions"):
        hogwild.open_feed(tmp_path / "a.svm", FeedConfig(interactions=("a:b",)))


def test_columns_with_odd_names(tmp_path):
    feed = read(tmp_path / "a.csv", 'label,"a,b",c:d,e=f\n1,x,u,p\n0,y,v,q\n', interactions=("a,b:c:d", "c:d:e=f"))
    assert feed.schema["interactions"] == [["a,b", "c:d"], ["c:d", "e=f"]]
    assert "a,b=x & c:d=u" in named_rows(feed)[0]
    assert "c:d=v & e=f=q" in named_rows(feed)[1]
