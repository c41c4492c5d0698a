"""Several labels a row in tables: lists of Parquet files, and fields with a separator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hogwild
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.feed import Feed


def sets(feed: Feed) -> list[tuple[str, ...]]:
    return [tuple(feed.labels[place] for place in feed.sets[int(number)]) for number in feed.samples.targets]


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.int64())])
def test_lists(tmp_path, kind):
    rows: list[Any] = [["2", "1"], [], ["1"]]
    lists = rows if kind.value_type == pa.string() else [[int(label) for label in row] for row in rows]
    table = {"labels": pa.array(lists, kind), "text": ["one", "two", "three"], "size": [1, 2, 3]}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    feed = open_feed(tmp_path / "rows.parquet", FeedConfig(text="text"))
    assert sets(feed) == [("1", "2"), (), ("1",)]
    pq.write_table(pa.table({**table, "labels": pa.array([["1"], None, ["3"]])}), tmp_path / "more.parquet")
    with pytest.raises(InputError, match=r"more.parquet:2: the label is missing"):
        open_feed(tmp_path / "more.parquet", FeedConfig(text="text"), feed.schema)
    config = FeedConfig(text="text", bad_lines="skip", bad_share=1.0)
    more = open_feed(tmp_path / "more.parquet", config, feed.schema)
    assert sets(more) == [("1",), ()]


def test_fields_with_a_separator(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("colour,label\n3,red|round\n4, round \n5,\n")
    config = FeedConfig(label_separator="|", several_labels=True)
    feed = open_feed(path, config)
    assert sets(feed) == [("red", "round"), ("round",), ()]
    one = open_feed(path, FeedConfig(bad_lines="skip", bad_share=1.0))
    assert one.labels == ("red|round", "round")
    assert one.sets == ()


def test_lists_in_memory():
    x = np.eye(3)
    feed = hogwild.feed_of(x, [["b", "a"], set(), (1,)])
    assert sets(feed) == [("a", "b"), (), ("1",)]
    texts = hogwild.feed_of(["one", "two"], [["b", "a"], []], config=FeedConfig(hash_bits=8))
    assert sets(texts) == [("a", "b"), ()]
    with pytest.raises(InputError, match="row 1; labels are words"):
        hogwild.feed_of(x, [["a"], [None], []])
    with pytest.raises(InputError, match="3 rows, but y has 2 lists"):
        hogwild.feed_of(x, [["a"], []])
