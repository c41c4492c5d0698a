"""JSON lines as tables: against CSV of the same rows, both ways of reading against each other, and bad lines."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.config import FeedConfig, RatingConfig
from hogwild.errors import InputError
from hogwild.feeds.objects import read
from hogwild.feeds.objects.values import NUMBER, TEXT, TEXTS, TRUTH, WHOLE
from hogwild.feeds.open import open_feed
from hogwild.feeds.ratings.open import open_ratings
from hogwild.feeds.sparse.feed import Feed


def rows(count: int) -> list[dict[str, Any]]:
    made = random.Random(count)
    found = []
    for _ in range(count):
        row = {"label": made.choice(["yes", "no"]), "age": made.choice([made.randrange(90), 0.25, None]),
               "site": made.choice(["a.org", "b", "größer", None]), "code": made.randrange(4)}  # fmt: skip
        found.append({name: value for name, value in row.items() if made.random() < 0.9 or name == "label"})
    return found


def write(path: Path, objects: list[Any]) -> Path:
    path.write_text("".join(each if isinstance(each, str) else json.dumps(each) + "\n" for each in objects))
    return path


def same(one: Feed, other: Feed) -> bool:
    pairs = zip((*one.samples, one.original), (*other.samples, other.original), strict=True)
    return one.labels == other.labels and all(np.array_equal(mine, its) for mine, its in pairs)


def test_as_csv(tmp_path):
    objects, config = rows(300), FeedConfig(categorical=("code",))
    names = ("label", "age", "site", "code")
    lines = [",".join("" if row.get(name) is None else str(row[name]) for name in names) for row in objects]
    (tmp_path / "rows.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
    table = open_feed(tmp_path / "rows.csv", config)
    feed = open_feed(write(tmp_path / "rows.jsonl", [dict.fromkeys(names, None) | row for row in objects]), config)
    assert same(feed, table)
    again = open_feed(write(tmp_path / "rows", objects), config, table.schema)  # keys left out, no name, model of a CSV
    assert same(again, table)
    assert open_feed(tmp_path / "rows.csv", config, feed.schema).samples.ids.tolist() == table.samples.ids.tolist()


def test_both_ways_of_reading_are_one(monkeypatch):
    wanted = read.Wanted({"a": NUMBER, "b": TEXT, "c": WHOLE, "d": TRUTH, "e": TEXTS}, frozenset(), frozenset("abcde"))
    text = b"\n".join([
        b'{"a": 1, "b": "x [{", "c": 7, "d": true, "e": ["u", "v"]}', b"  ", b'{"a": -2.5e3, "b": null, "e": []}',
        b'{"c": 12345678901, "b": "\\u00fc\\n", "x": {"y": [1]}}\n',
    ])  # fmt: skip
    data = np.frombuffer(bytearray(text), np.uint8)
    fast = read.read_columns(data, wanted)
    monkeypatch.setattr(read, "_DEEPEST", 0)
    slow = read.read_columns(data, wanted)
    assert fast.lines.tolist() == slow.lines.tolist() == [0, 2, 3]
    assert fast.late == slow.late == {"x"}
    for name in wanted.kinds:
        mine = [value if name != "c" or value is None else str(value) for value in fast.arrays[name].to_pylist()]
        assert mine == slow.arrays[name].to_pylist()


@pytest.mark.parametrize(
    ("line", "why"),
    [('{"label": "no", "age": {"years": 3}}\n', "3: column `age`: an object, where the first lines have a number"),
     ('{"label": "no", "age": "old"}\n', "3: column `age`: a text, where the first lines have a number"),
     ('{"label": "no", "age": [1]}\n', "3: column `age`: a list of whole numbers, where"),
     ('{"label": "no", "age": 1, "age": 2}\n', "3: the field `age` stands there twice"),
     ('{"label": "no", "age": 1} {"label": "no"}\n', r"3: not JSON \(Extra data"),
     ('{"label": "no", "age": \n', r"3: not JSON \("), ("[1, 2]\n", "3: a list of whole numbers instead of an object"),
     ('{"age": 1}\n', "3: the label is missing"),
     ('{"label": "no", "age": 1e999}\n', "3: column `age`: `inf` is not a"),
     ('{"label": "no", "age": ' + "[" * 100_000 + "\n", "3: lists or objects inside each other without end"),
     ('{"label": "no", "age": ' + "9" * 400 + "}\n", "3: column `age`: .* is not a finite number"),
     ('{"label": "no", "site": "\\ud800"}\n', "3: column `site`: `.ud800` is half of a character")],
)  # fmt: skip
def test_bad_lines(tmp_path, monkeypatch, line, why):
    monkeypatch.setattr("hogwild.feeds.tables.objects.SAMPLE", 2)
    good = [{"label": "yes", "age": 3, "site": "a"}, {"label": "no", "age": 4, "site": "b"}]
    path = write(tmp_path / "rows.jsonl", [*good, line, *good])
    with pytest.raises(InputError, match=r"rows\.jsonl:" + why):
        open_feed(path, FeedConfig())
    feed = open_feed(path, FeedConfig(bad_lines="skip", bad_share=1.0))
    assert feed.lines.tolist() == [1, 2, 4, 5]


def test_fields_that_can_be_no_columns(tmp_path):
    path = write(tmp_path / "rows.jsonl", [{"label": 1, "a": 2}, {"label": 0, "a": {"b": 3}}])
    with pytest.raises(InputError, match=r"column `a` is an object in line 2, and a whole number before \(.*jsonl:2\)"):
        open_feed(path)
    path = write(tmp_path / "rows.jsonl", [{"label": 1, "a": {"b": 3}}])
    with pytest.raises(InputError, match=r"column `a` is an object \(.*rows.jsonl:1\); give each of its parts a field"):
        open_feed(path)
    with pytest.raises(InputError, match=r"rows.jsonl:1: a number instead of an object|a whole number instead"):
        open_feed(write(path, ["5\n", "6\n"]))
    with pytest.raises(InputError, match="no rows"):
        open_feed(write(path, []))


def test_fields_that_come_late_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr("hogwild.feeds.tables.objects.SAMPLE", 2)
    good = [{"label": "yes", "age": 3}, {"label": "no", "age": 4}]
    feed = open_feed(write(tmp_path / "rows.jsonl", [*good, {**good[0], "late": 5}]))
    assert "Fields that the first lines do not have are not read: late." in feed.notes
    wide = open_feed(write(tmp_path / "rows.jsonl", [{**row, "site": "a"} for row in good]))
    few = open_feed(write(tmp_path / "few.jsonl", good), FeedConfig(), wide.schema)
    assert any("few.jsonl: the first lines have no site" in note for note in few.notes)
    with pytest.raises(InputError, match="column `age` is missing"):
        open_feed(write(tmp_path / "few.jsonl", [{"label": "yes"}]), FeedConfig(), wide.schema)


def test_lists_are_labels(tmp_path):
    objects = [{"labels": ["b", "a"], "text": "one"}, {"labels": [], "text": "two"}, {"labels": ["a"], "text": None}]
    feed = open_feed(write(tmp_path / "rows.ndjson", objects), FeedConfig(hash_bits=8))
    assert [feed.sets[int(number)] for number in feed.samples.targets] == [(0, 1), (), (0,)]
    assert feed.schema["text"] == "text"
    numbers = [{**row, "labels": [len(name) for name in row["labels"]]} for row in objects]
    assert open_feed(write(tmp_path / "rows.ndjson", numbers), FeedConfig(hash_bits=8)).labels == ("1",)


def test_ratings(tmp_path):
    objects = [{"user": "ann", "item": 5, "rating": 4, "at": "x"}, {"user": "bob", "item": 7, "rating": 2.5}]
    feed = open_ratings(write(tmp_path / "r.jsonl", objects))
    (tmp_path / "r.csv").write_text("user,item,rating\nann,5,4\nbob,7,2.5\n")
    table = open_ratings(tmp_path / "r.csv")
    assert (feed.users, feed.items) == (table.users, table.items)
    assert feed.samples.values.tolist() == table.samples.values.tolist()
    bad = write(tmp_path / "r.jsonl", [*objects, {"user": "ann", "rating": 1}])
    with pytest.raises(InputError, match="jsonl:3: there is no item"):
        open_ratings(bad)
    kept = open_ratings(bad, RatingConfig(bad_lines="skip", bad_share=1.0))
    assert len(kept.samples.users) == 2


def test_from_python(tmp_path):
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows(50)).encode()))
    assert len(hogwild.open_feed(path)) == 50
