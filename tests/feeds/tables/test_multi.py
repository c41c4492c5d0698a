"""Columns of tables whose fields hold several values: one slot with several features, wherever the table comes from."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import hogwild
from feeds.tables.files import read
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.tables.onerow import TableRow

TAGS = ["a|b", "b", "", "c | a|c", "NA|b"]
LISTS = [["a", "b"], ["b"], [], ["c", "a", "c"], [None, "b"]]
FILE = "label,kind,tags,age\n" + "".join(f"{k % 2},{'xy'[k % 2]},{tags},{k}\n" for k, tags in enumerate(TAGS))
WORDS = [["a", "b"], ["b"], [], ["c", "a"], ["b"]]  # once each, without what is missing


def words_of(feed: Feed) -> list[list[str]]:
    """The values of the column `tags` in each row."""
    samples, numbers = feed.samples, len(feed.schema["numeric"]) * ("slots" not in feed.schema)
    features = feed.original[samples.ids].tolist()  # type: ignore[index,union-attr]
    names = [*[""] * numbers, *feed.schema["vocabulary"]]
    named = [names[k] for k in features]
    bounds = pairwise(samples.offsets.tolist())  # type: ignore[union-attr]
    return [[name[5:] for name in named[a:b] if name.startswith("tags=")] for a, b in bounds]


@pytest.mark.parametrize("layout", ["flat", "slots"])
def test_fields_with_a_separator(tmp_path: Path, layout: str) -> None:
    feed = read(tmp_path / "t.csv", FILE, multi=("tags",), layout=layout, min_count=1)
    assert words_of(feed) == WORDS
    assert (feed.schema["multi"], feed.schema["separators"]) == (["tags"], ["|"])
    if layout == "slots":
        assert feed.slots == ("kind", "tags")
        assert feed.samples.slots.tolist() == [0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1]  # type: ignore[union-attr]
    assert any("1 of several values (tags)" in note for note in feed.notes)
    feed.check()


def test_lists_of_parquet_frames_and_dicts_are_the_same(tmp_path: Path) -> None:
    frame = pd.DataFrame({"kind": list("xyxyx"), "tags": LISTS, "age": range(5)})
    y = [0, 1, 0, 1, 0]
    pa.parquet.write_table(pa.Table.from_pandas(frame.assign(label=y)), tmp_path / "t.parquet")
    config = FeedConfig(layout="slots", min_count=1, cache=False)
    text = read(tmp_path / "t.csv", FILE, multi=("tags",), layout="slots", min_count=1)
    for feed in (
        hogwild.open_feed(tmp_path / "t.parquet", config), hogwild.feed_of(frame, y, config=config),
        hogwild.feed_of(frame.to_dict("records"), y, config=config),
    ):  # fmt: skip
        assert words_of(feed) == WORDS
        for left, right in zip(feed.samples[:4], text.samples[:4], strict=True):
            np.testing.assert_array_equal(left, right)
    numbers = frame.assign(tags=[[3, 1], [1], [], [2, 3, 2], [1]])
    assert words_of(hogwild.feed_of(numbers, y, config=config)) == [["3", "1"], ["1"], [], ["2", "3"], ["1"]]


@pytest.mark.parametrize("options", [{}, {"categories": "hash", "hash_bits": 8}, {"min_count": 2}, {"layout": "slots"}])
def test_one_row_has_the_features_of_a_file(tmp_path: Path, options: dict[str, Any]) -> None:
    train = read(tmp_path / "t.csv", FILE, multi=("tags",), **options)
    later = 'label,kind,tags,age\n1,x,b|new|a|b,3\n0,y,,4\n'
    feed = read(tmp_path / "l.csv", later, train.schema)
    encode = TableRow(train.schema)
    for k, tags in enumerate((["b", "new", "a", "b"], [])):
        for given in (tags, "|".join(tags), tuple(tags), np.array(tags, object)):
            row = encode({"kind": "xy"[k], "tags": given, "age": 3 + k})
            a, b = feed.samples.offsets[k : k + 2]  # type: ignore[union-attr]
            assert sorted(row.ids) == sorted(feed.original[feed.samples.ids[a:b]].tolist())  # type: ignore[index,union-attr]
            if "layout" in options:
                assert list(row.slots or ()) == feed.samples.slots[a:b].tolist()  # type: ignore[union-attr]
                np.testing.assert_array_equal(np.float32(row.dense), feed.samples.dense[k])  # type: ignore[union-attr]


def test_separators_and_names(tmp_path: Path) -> None:
    text = "label;a:b;c\n1;x y;u:v\n0;y;u\n1;x;v\n"
    feed = read(tmp_path / "t.csv", text, multi=("a:b: ", "c::"))
    assert feed.schema["vocabulary"] == ["a:b=x", "a:b=y", "c=u", "c=v"]
    # Without a header a file of equal numbers of values would be taken for one with more columns.
    feed = read(tmp_path / "u.csv", "1,a|b|c\n0,b|c|d\n1,a|d|c\n", multi=("1",))
    assert feed.schema["columns"] == ["0", "1"]
    feed = read(tmp_path / "v.csv", "label,tags,n\n1,a,2\n0,b,3\n1,a,2\n", multi=("tags:;",))
    assert "No field of column `tags` has several values (with `;` between them)." in feed.notes


def test_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with pytest.raises(ConfigError, match=r"there is no column `tag` .--multi.*Did you mean `tags`"):
        read(path, FILE, multi=("tag",))
    with pytest.raises(ConfigError, match="named by both --categorical and --multi"):
        read(path, FILE, multi=("tags",), categorical=("tags",))
    with pytest.raises(ConfigError, match="names no separator"):
        read(path, FILE, multi=("tags:",))
    schema = read(path, FILE, multi=("tags",)).schema
    with pytest.raises(InputError, match="column `tags` is missing"):
        read(path, "label,kind,age\n1,x,2\n", schema)
    frame = pd.DataFrame({"kind": list("xyxyx"), "tags": LISTS, "age": range(5)})
    with pytest.raises(InputError, match="column `tags` holds lists, not one value a row; leave out --categorical"):
        hogwild.feed_of(frame, [0, 1, 0, 1, 0], config=FeedConfig(categorical=("tags",)))
    with pytest.raises(InputError, match=r"column `kind` holds lists .*one value a row"):
        hogwild.feed_of(frame.assign(kind=LISTS), schema=schema)
    with pytest.raises(InputError, match=r"column `tags` is of type list<.*double>"):
        hogwild.feed_of(frame.assign(tags=[[0.5]] * 5), schema=schema)


def test_a_column_that_looks_like_several_values_is_asked_about(tmp_path: Path) -> None:
    lines = "".join(f"{k % 2},{'abcdef'[k % 6]}|{'uvwxyz'[k // 6]}|q,{k}\n" for k in range(36))
    with pytest.raises(InputError, match=r"`a\|u\|q` would be several values with --multi tags:'\|'"):
        read(tmp_path / "t.csv", "label,tags,age\n" + lines)
    feed = read(tmp_path / "t.csv", "label,tags,age\n" + 2 * lines)
    assert any("would be several values with --multi tags:'|'" in note for note in feed.notes)
