"""TFRecord files that we write: read by the slow twin, by us, and both ways with TensorFlow where it is installed."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import hogwild
from hogwild.arrays import BinaryRows, Rows, SlotRows, ValuedSlotRows
from hogwild.config import FeedConfig
from hogwild.errors import InputError, SaveError
from hogwild.feeds.tfrecord import write as tfrecordout
from hogwild.feeds.tfrecord.write import ExampleList, ExampleNames, encode_examples, write_tfrecord
from reference.tfrecord import example, features_of, record, records_of


def some_rows(count: int = 300, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 9, count)
    lengths[:2] = 0, 200  # an empty row, and one whose length takes two bytes
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    entries = int(offsets[-1])
    ids = np.minimum((2.0 ** rng.uniform(0, 31, entries)).astype(np.int64), 2**31 - 1).astype(np.int32)
    targets = rng.integers(-3, 300, count).astype(np.float32)
    return Rows(offsets, ids, rng.normal(size=entries).astype(np.float32), targets, np.ones(count, np.float32))


def test_bytes_are_those_of_the_twin() -> None:
    lists = [
        ExampleList("label", np.array([0, 1, 2]), np.array([-1, 7])),
        ExampleList("größe", np.array([0, 2, 2]), np.array([0.5, -2.0], np.float32)),
        ExampleList("x", np.array([0, 0, 3]), np.array([0, 2**62, 300])),
    ]
    first = example({"label": [-1], "größe": [0.5, -2.0], "x": []})
    found = records_of(encode_examples(lists).tobytes())
    assert found[0] == first
    assert features_of(found[1]) == {"label": [7], "größe": [], "x": [0, 2**62, 300]}
    plain = ExampleList("x", np.array([0, 2]), np.array([5, 6], np.int32))
    assert encode_examples([plain]).tobytes() == record(example({"x": [5, 6]}))
    with pytest.raises(InputError, match="feature `y` has 1 rows, but the first has 2"):
        encode_examples([lists[0], ExampleList("y", np.array([0, 1]), np.array([5]))])


@given(st.lists(arrays.arrays(np.int64, st.integers(0, 200)), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_integers_of_all_sizes(rows: list[Any]) -> None:
    offsets = np.cumsum([0, *map(len, rows)])
    found = records_of(encode_examples([ExampleList("n", offsets, np.concatenate(rows))]).tobytes())
    assert [features_of(data)["n"] for data in found] == [row.tolist() for row in rows]


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_rows_come_back(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecordout, "_AT_ONCE", 100)  # several runs
    path = tmp_path / name
    rows = some_rows()
    size = write_tfrecord(path, rows)
    content = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    assert size == len(content)
    whole = [features_of(data) for data in records_of(content)]
    assert [each["label"] for each in whole] == [[int(target)] for target in rows.targets]
    assert [ident for each in whole for ident in each["nz_idx"] or ()] == rows.ids.tolist()
    assert os.listdir(tmp_path) == [name]


def test_a_feed_is_written_and_read_again(tmp_path: Path) -> None:
    rows = some_rows(40)
    rows = rows._replace(ids=rows.ids % 1000, targets=rows.targets + np.float32(0.25))
    write_tfrecord(tmp_path / "a.tfrecord", rows)
    feed = hogwild.open_feed(tmp_path / "a.tfrecord")
    samples = feed.samples
    assert isinstance(samples, Rows)
    assert feed.original is not None
    for mine, found in ((rows.offsets, samples.offsets), (rows.ids, feed.original[samples.ids]),
                        (rows.values, samples.values), (rows.targets, samples.targets)):  # fmt: skip
        assert np.array_equal(mine, found)
    binary = BinaryRows(rows.offsets, rows.ids, rows.targets, rows.importance)
    write_tfrecord(tmp_path / "b.tfrecord", binary, ExampleNames(indices="words", label="y"))
    again = hogwild.open_feed(tmp_path / "b.tfrecord")
    assert isinstance(again.samples, BinaryRows)
    assert np.array_equal(again.samples.ids, samples.ids)


SLOTS = """
[[slot]]
name = "label"
type = "uint64"
label = true

[[slot]]
name = "ad"
type = "uint64"

[[slot]]
name = "numbers"
type = "float"
dense = true

[[slot]]
name = "word"
type = "uint64"
"""
WEIGHTED = SLOTS.replace('"ad"\ntype = "uint64"', '"ad"\ntype = "uint64"\nvalues = "ad_values"').replace(
    '"word"\ntype = "uint64"', '"word"\ntype = "uint64"\nvalues = "word_values"'
)
VALUES = '\n[[slot]]\nname = "ad_values"\ntype = "float"\n\n[[slot]]\nname = "word_values"\ntype = "float"\n'


def test_slots_are_written_and_read_again(tmp_path: Path) -> None:
    rows = SlotRows(
        np.array([0, 3, 3, 5]), np.array([7, 7, 4, 9, 7], np.int32), np.array([0, 1, 1, 0, 1], np.uint16),
        np.array([[1, 2], [0, -4], [3, 2]], np.float32), np.array([1, 0, 0], np.float32), np.ones(3, np.float32),
    )  # fmt: skip
    path = tmp_path / "a.tfrecord"
    names = ExampleNames(slots=("ad", "word"), dense="numbers")
    with pytest.raises(InputError, match="samples have 2 slots, but 1 are named"):
        write_tfrecord(path, rows, names._replace(slots=("ad",)))
    assert not os.listdir(tmp_path)
    (tmp_path / "slots.toml").write_text(SLOTS)
    write_tfrecord(path, rows, names)
    feed = hogwild.open_feed(path, FeedConfig(slots=str(tmp_path / "slots.toml"), scale=False))
    samples = feed.samples
    assert isinstance(samples, SlotRows)
    assert (feed.slots, feed.dense) == (("ad", "word"), ("numbers1", "numbers2"))
    for mine, found in ((rows.offsets, samples.offsets), (rows.slots, samples.slots), (rows.dense, samples.dense),
                        (rows.targets, samples.targets)):  # fmt: skip
        assert np.array_equal(mine, found)
    assert feed.original is not None
    assert feed.original[samples.ids].tolist() == [0, 2, 3, 1, 2]  # ad 7, ad 9, word 7, word 4
    valued = ValuedSlotRows(*rows, np.array([1, 2, 3, 4, 5], np.float32))
    (tmp_path / "slots.toml").write_text(WEIGHTED + VALUES)
    write_tfrecord(path, valued, names)
    again = hogwild.open_feed(path, FeedConfig(slots=str(tmp_path / "slots.toml"))).samples
    assert isinstance(again, ValuedSlotRows)
    assert again.values.tolist() == [1, 2, 3, 4, 5]


def test_what_stood_there_stays_until_all_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"before")
    with monkeypatch.context() as patched:
        patched.setattr(tfrecordout.os, "replace", _refuse)
        with pytest.raises(SaveError, match="No space"):
            write_tfrecord(path, some_rows(5))
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == [path.name]
    with pytest.raises(SaveError, match="No such file"):
        write_tfrecord(tmp_path / "nowhere" / "a", some_rows(5))


def _refuse(*paths: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.peers
def test_tensorflow_reads_what_we_write(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    rows = some_rows()
    for name, compression in (("a.tfrecord", ""), ("a.tfrecord.gz", "GZIP")):
        path = tmp_path / name
        write_tfrecord(path, rows)
        data = tf.data.TFRecordDataset(str(path), compression_type=compression).batch(len(rows.targets))
        parts = {"nz_idx": tf.io.VarLenFeature(tf.int64), "nz_values": tf.io.VarLenFeature(tf.float32)}
        (found,) = [tf.io.parse_example(each, {**parts, "label": tf.io.FixedLenFeature([], tf.int64)}) for each in data]
        assert np.array_equal(found["label"].numpy(), rows.targets)
        assert np.array_equal(found["nz_idx"].values.numpy(), rows.ids)
        assert np.array_equal(found["nz_values"].values.numpy(), rows.values)
        counts = np.bincount(found["nz_idx"].indices.numpy()[:, 0], minlength=len(rows.targets))
        assert np.array_equal(counts, np.diff(rows.offsets))


@pytest.mark.peers
def test_we_read_what_tensorflow_writes(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    rows = some_rows()
    rows = rows._replace(ids=rows.ids % 100_000)
    for name, compression in (("a.tfrecord", ""), ("a.tfrecord.gz", "GZIP")):
        with tf.io.TFRecordWriter(str(tmp_path / name), options=compression) as writer:
            for k, (first, last) in enumerate(zip(rows.offsets, rows.offsets[1:], strict=False)):
                lists = {
                    "nz_idx": tf.train.Feature(int64_list=tf.train.Int64List(value=rows.ids[first:last])),
                    "nz_values": tf.train.Feature(float_list=tf.train.FloatList(value=rows.values[first:last])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(rows.targets[k])])),
                    "note": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"not read"])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString())
        feed = hogwild.open_feed(tmp_path / name)
        samples = feed.samples
        assert isinstance(samples, Rows)
        assert feed.original is not None
        for mine, found in ((rows.offsets, samples.offsets), (rows.ids, feed.original[samples.ids]),
                            (rows.values, samples.values), (rows.targets, samples.targets)):  # fmt: skip
            assert np.array_equal(mine, found)
        assert feed.notes[1] == "Features that are not read: note."
