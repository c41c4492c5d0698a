"""TFRecord files against their slow twin, and everything that can be wrong with a record."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hogwild
from hogwild.arrays import BinaryRows, Rows
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, HogwildError, InputError, ModelError
from hogwild.feeds.io.source import Source, open_sources
from hogwild.feeds.sparse.encoder import Summary
from hogwild.feeds.tfrecord.plan import features_of as seen_in
from hogwild.feeds.tfrecord.read import TfrecordEncoder, record_blocks
from reference.tfrecord import entry, example, feature, field, masked, record, varint

Row = tuple[float, list[int], list[float]]


def rows_of(encoder: TfrecordEncoder, sources: list[Source]) -> tuple[list[Row], list[int]]:
    rows: list[Row] = []
    lines: list[int] = []
    with np.errstate(over="ignore"):
        for chunk in encoder.chunks(sources):
            values = chunk.values if len(chunk.values) else np.ones(len(chunk.ids), np.float32)
            ends = np.cumsum(chunk.lengths)
            for target, start, end in zip(chunk.targets, ends - chunk.lengths, ends, strict=True):
                rows.append((float(target), chunk.ids[start:end].tolist(), values[start:end].tolist()))
            lines += chunk.lines.tolist()
    return rows, lines


def encode(
    path: Path, content: bytes, schema: dict[str, Any] | None = None, **options: Any
) -> tuple[list[Row], list[int], Summary]:
    """Rows, numbers of records and summary of a file with this content."""
    path.write_bytes(content)
    config = FeedConfig(**options)
    encoder = TfrecordEncoder(config, schema)
    return *rows_of(encoder, open_sources(path, config)), encoder.summary()


def sparse(ids: list[int], values: list[float], label: Any = 1, **more: Any) -> bytes:
    """A record with the names that are read by default."""
    return record(example({"nz_idx": ids, "nz_values": values, "label": [label], **more}))


NO_FLOATS = field(2, b"")
EMPTY = record(field(1, entry("nz_idx", feature([])) + entry("nz_values", NO_FLOATS) + entry("label", feature([4]))))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.tfrecord"


def test_rows_by_hand(path: Path) -> None:
    # Byte for byte: label 3 as int64, ids 5 and 300, values 0.5 and -2.
    label = bytes.fromhex("0a0e0a056c6162656c12051a030a0103")
    ids = bytes.fromhex("0a110a066e7a5f69647812071a050a0305ac02")
    values = bytes.fromhex("0a190a096e7a5f76616c756573120c120a0a080000003f000000c0")
    data = b"\x0a\x3e" + label + ids + values
    assert data == example({"label": [3], "nz_idx": [5, 300], "nz_values": [0.5, -2.0]})
    rows, lines, summary = encode(path, record(data) + sparse([7], [1.5], 2.5))
    assert rows == [(3.0, [5, 300], [0.5, -2.0]), (2.5, [7], [1.5])]
    assert lines == [1, 2]
    assert summary.features == 301
    assert summary.schema == {
        "format": "tfrecord", "indices": "nz_idx", "values": "nz_values", "label": "label", "features": 301,
    }  # fmt: skip
    assert summary.notes == (
        "Ids are in `nz_idx`, values in `nz_values`, the label in `label` (--indices, --values and --label choose"
        " others).",
    )


def shuffled(features: dict[str, Any], rng: random.Random) -> bytes:
    """An Example as nobody writes it, but anybody may: any order, unknown fields, lists in pieces."""
    junk = [field(9, b"x"), varint(5 << 3) + varint(-1), varint(6 << 3 | 5) + bytes(4), varint(99 << 3 | 1) + bytes(8)]
    parts = []
    for name, values in features.items():
        whole = feature(values, packed=rng.random() < 0.5)
        if len(values) > 2 and rng.random() < 0.3:  # packed and not, in one list
            number = 2 if isinstance(values[0], float) else 3
            pieces = [feature(values[:1], True), feature(values[1:2], False), feature(values[2:], True)]
            bodies = [piece[len(piece) - _body(piece) :] for piece in pieces]
            whole = field(number, rng.choice(junk).join(bodies))
        parts.append(entry(name, whole + rng.choice(junk), swapped=rng.random() < 0.5))
    parts += [entry("other", feature([b"text", b""])), entry("", feature([1])), rng.choice(junk)]
    rng.shuffle(parts)
    cut = rng.randrange(len(parts) + 1)
    # Two Features messages are one message in two parts.
    return rng.choice(junk) + field(1, b"".join(parts[:cut])) + field(1, b"".join(parts[cut:]))


def _body(piece: bytes) -> int:
    """Bytes of the content of a short field."""
    at = 1
    while piece[at] >= 128:
        at += 1
    return len(piece) - at - 1


numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
ids = st.integers(0, 2**31 - 1) | st.integers(0, 300)


@given(st.lists(st.tuples(st.lists(st.tuples(ids, numbers), max_size=12), numbers), max_size=8), st.randoms())
@settings(max_examples=60, deadline=None)
def test_random_examples(tmp_path_factory: pytest.TempPathFactory, rows: list[Any], rng: random.Random) -> None:
    path = tmp_path_factory.mktemp("random") / "a.tfrecord"
    content, expected = b"", []
    for pairs, label in rows:
        features: dict[str, Any] = {"nz_idx": [i for i, _ in pairs], "nz_values": [v for _, v in pairs]}
        features["label"] = [float(label)] if rng.random() < 0.5 else [int(label) % 10]
        content += record(shuffled(features, rng)) if pairs else EMPTY
        expected.append((float(features["label"][0]) if pairs else 4.0, features["nz_idx"], features["nz_values"]))
    found, lines, _ = encode(path, content)
    assert found == expected
    assert lines == list(range(1, len(rows) + 1))


def test_long_varints_and_the_last_id(path: Path) -> None:
    padded = bytes([0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00])  # 5 in ten bytes
    nine = bytes([0x87, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00])
    packed = field(3, field(1, padded + varint(2**31 - 1) + nine + varint(128)))
    data = field(1, entry("nz_idx", packed) + entry("label", feature([-7])))
    rows, _, summary = encode(path, record(data), binary=True)
    assert rows == [(-7.0, [5, 2**31 - 1, 7, 128], [1.0] * 4)]
    assert summary.features == 2**31


def test_of_two_features_with_one_name_the_last_counts(path: Path) -> None:
    twice = entry("nz_idx", feature([1, 2])) + entry("label", feature([0]))
    data = field(1, twice + entry("nz_idx", feature([9])) + entry("nz_values", feature([3.0])))
    assert encode(path, record(data))[0] == [(0.0, [9], [3.0])]


def test_values_that_are_not_read(path: Path) -> None:
    content = sparse([3, 4], [1.0, 1.0], 0) + sparse([5], [2.0])
    rows, _, summary = encode(path, content, binary=True)
    assert rows == [(0.0, [3, 4], [1.0, 1.0]), (1.0, [5], [1.0])]
    assert summary.notes[1] == "Features that are not read: nz_values."
    assert isinstance(hogwild.open_feed(path, FeedConfig(binary=True, cache=False)).samples, BinaryRows)
    feed = hogwild.open_feed(path, FeedConfig(cache=False))
    assert isinstance(feed.samples, Rows)
    assert (feed.features, feed.place(1)) == (6, f"{path}:2")
    path.write_bytes(sparse([3, 4], [1.0, 1.0], 0))
    assert isinstance(hogwild.open_feed(path, FeedConfig(cache=False)).samples, BinaryRows)  # all are 1


def test_ids_are_ranked_and_features_fixed(path: Path) -> None:
    path.write_bytes(sparse([7, 2], [1.0, 2.0]) + sparse([2], [3.0]))
    feed = hogwild.open_feed(path, FeedConfig(features=10))
    assert feed.features == 10
    assert feed.original is not None
    assert feed.original[feed.samples.ids].tolist() == [7, 2, 2]  # type: ignore[union-attr]
    assert feed.original[0] == 2


def test_names_that_are_found_out_or_given(path: Path) -> None:
    other = [record(example({"x": [3, 4], "w": [0.5, 0.25], "y": [float(k)], "size": [1.5, 2.5, 3.5]})) for k in (0, 1)]
    rows, _, summary = encode(path, b"".join(other))
    assert rows == [(0.0, [3, 4], [0.5, 0.25]), (1.0, [3, 4], [0.5, 0.25])]
    assert summary.notes == (
        "Ids are in `x`, values in `w`, the label in `y` (--indices, --values and --label choose others).",
        "Features that are not read: size.",
    )
    rows, _, summary = encode(path, b"".join(other), indices="x", values="w", label="y")
    assert summary.notes == ("Features that are not read: size.",)
    both = record(example({"a": [1, 2], "b": [3, 4], "c": [0.5, 0.5], "score": [1.0]}))
    with pytest.raises(InputError, match=r"which feature holds the ids\? it has `a` \(2 integers\), `b` \(2"):
        encode(path, both)
    assert encode(path, both, indices="b")[0] == [(1.0, [3, 4], [0.5, 0.5])]
    assert encode(path, record(example({"a": [1, 2], "y": [1]})))[0] == [(1.0, [1, 2], [1.0, 1.0])]
    with pytest.raises(InputError, match="which feature is the label"):
        encode(path, record(example({"a": [1, 2], "b": [1.5, 2.5]})))
    with pytest.raises(InputError, match=r"no feature `indexes` \(--indices\)"):
        encode(path, both, indices="indexes")
    with pytest.raises(ConfigError, match="different features"):
        encode(path, both, indices="a", values="a", label="score")
    with pytest.raises(ConfigError, match="--binary says"):
        encode(path, both, indices="a", values="c", binary=True)


GOOD = sparse([1, 2], [0.5, 0.25])

BAD = {
    "is missing; it has `label` (1 integers), `nz_values` (1 floats)": example({"nz_values": [1.0], "label": [1]}),
    "feature `nz_values` is missing": example({"nz_idx": [1], "label": [1]}),
    "feature `label` is missing": example({"nz_idx": [1], "nz_values": [1.0]}),
    "feature `label` is missing; it has `label` (0 no list)": example(
        {"nz_idx": [1], "nz_values": [1.0], "label": None}
    ),
    "feature `nz_idx` has 2 ids, but 3 values beside them": example(
        {"nz_idx": [1, 2], "nz_values": [1.0, 2.0, 3.0], "label": [1]}
    ),
    "feature `nz_idx`: id -1 is below 0": example({"nz_idx": [1, -1], "nz_values": [1.0, 2.0], "label": [1]}),
    "id 2147483648 lies past 2147483647, the largest possible": example(
        {"nz_idx": [2**31], "nz_values": [1.0], "label": [1]}
    ),
    "feature `nz_values` holds a number that is not finite": example(
        {"nz_idx": [1, 2], "nz_values": [1.0, float("nan")], "label": [1]}
    ),
    "feature `label` holds a number that is not finite": example(
        {"nz_idx": [1], "nz_values": [1.0], "label": [float("inf")]}
    ),
    "feature `nz_idx` is a list of floats": example({"nz_idx": [1.0], "nz_values": [1.0], "label": [1]}),
    "feature `nz_idx` is a list of bytes": example({"nz_idx": [b"1"], "nz_values": [1.0], "label": [1]}),
    "feature `nz_values` is a list of integers": example({"nz_idx": [1], "nz_values": [1], "label": [1]}),
    "feature `label` is a list of bytes": example({"nz_idx": [1], "nz_values": [1.0], "label": [b"1"]}),
    "has 2 numbers; it must have one": example({"nz_idx": [1], "nz_values": [1.0], "label": [1, 0]}),
    "has 0 numbers; it must have one": example({"nz_idx": [1], "nz_values": [1.0], "label": []}),
    "the label 16777217 is past 16777216": example({"nz_idx": [1], "nz_values": [1.0], "label": [2**24 + 1]}),
    "not a well-formed tf.train.Example": b"\x0a\x7f",
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_with_a_record(path: Path, what: str) -> None:
    content = GOOD + record(BAD[what]) + GOOD
    with pytest.raises(InputError) as caught:
        encode(path, content)
    where = f"{path}: record 2 (byte {len(GOOD)}): "
    assert str(caught.value).startswith(where)
    assert what in str(caught.value)
    assert str(caught.value).endswith("Correct the record, or skip such records with --bad-lines skip.")
    rows, lines, summary = encode(path, content, bad_lines="skip", bad_share=0.5)
    assert lines == [1, 3]
    assert rows[1] == (1.0, [1, 2], [0.5, 0.25])
    assert summary.features == 3
    assert summary.notes[-1].startswith(f"1 of 3 records malformed and skipped: {where}")
    with pytest.raises(InputError, match="1 of 3 records are malformed"):
        encode(path, content, bad_lines="skip")


def test_malformed_messages(path: Path) -> None:
    whole = example({"nz_idx": [1, 300], "nz_values": [0.5, 0.25], "label": [1]})
    endless = b"\xff" * 11
    inside = [
        endless, field(1, endless), entry("nz_idx", endless), entry("nz_idx", field(3, endless)),
        entry("nz_idx", field(3, field(1, b"\x01\x80"))),
        entry("nz_idx", feature([])) + entry("nz_values", NO_FLOATS) + entry("label", field(3, field(1, endless))),
        entry("nz_idx", feature([1])) + entry("label", feature([1])) + entry("nz_values", field(2, field(1, b"abcde"))),
    ]  # fmt: skip
    after = [b"\x0a", endless, b"\x0b\x0c", b"\x07\x00", b"\x02\x00", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
    for data in (whole[:-1], *(whole + more for more in after), *(field(1, content) for content in inside)):
        with pytest.raises(InputError, match=r"record 2 .*not a well-formed"):
            encode(path, GOOD + record(data), indices="nz_idx", values="nz_values", label="label")


def test_dense_size(path: Path) -> None:
    assert encode(path, GOOD, features=3)[2].features == 3
    with pytest.raises(InputError) as caught:
        encode(path, GOOD + sparse([1, 5, 3], [1.0] * 3), features=3)
    assert str(caught.value) == (
        f"{path}: record 2 (byte {len(GOOD)}): feature `nz_idx`: id 5 lies past the 3 features that were asked for"
        " (--features). Correct the record, or skip such records with --bad-lines skip."
    )


def test_wrong_checksums(path: Path) -> None:
    last = len(GOOD) - 5  # the last byte of the data
    for place in (12, last, len(GOOD) - 1):
        content = bytearray(GOOD * 3)
        content[len(GOOD) + place] ^= 4
        with pytest.raises(InputError) as caught:
            encode(path, bytes(content))
        assert f"record 2 (byte {len(GOOD)}): its data has a wrong checksum. Copy or" in str(caught.value)
        assert encode(path, bytes(content), bad_lines="skip", bad_share=0.5)[1] == [1, 3]
    for place in (0, 7, 8, 11):
        content = bytearray(GOOD * 3)
        content[len(GOOD) + place] ^= 4
        with pytest.raises(InputError, match=rf"record 2 \(byte {len(GOOD)}\): its length has a wrong checksum, so"):
            encode(path, bytes(content), bad_lines="skip")
    with pytest.raises(InputError, match=r"record 1 \(byte 0\): .* is this a TFRecord file"):
        encode(path, b"no records at all")


def test_truncated_files(path: Path) -> None:
    for cut in range(1, len(GOOD)):
        needed = f"of {len(GOOD)} bytes" if cut >= 12 else "of at least 16 bytes"
        with pytest.raises(InputError) as caught:
            encode(path, GOOD + GOOD[:cut], bad_lines="skip")
        where = f"record 2 (byte {len(GOOD)})"
        assert f"{where}: the file ends within the record, after {cut} {needed};" in str(caught.value)


@pytest.mark.parametrize("length", [2**26, 2**31, 2**60, 2**64 - 1])
def test_lengths_that_no_record_has_take_no_memory(path: Path, length: int) -> None:
    head = struct.pack("<Q", length)
    with pytest.raises(InputError, match=rf"record 2 .*: it is {length} bytes long, more than the 67108863"):
        encode(path, GOOD + head + masked(head) + bytes(100), max_line=2**26 - 1)


def test_records_larger_than_blocks_and_at_their_ends(path: Path) -> None:
    rng = np.random.default_rng(1)
    sizes = [*rng.integers(0, 30, 200).tolist(), 400, 3, 900, 0]
    written = [sparse(list(range(size)), [0.5] * size) if size else EMPTY for size in sizes]
    path.write_bytes(b"".join(written))
    (source,) = open_sources(path, FeedConfig())
    for size in (64, 333, 1024):
        blocks = list(record_blocks(source, size=size))
        assert b"".join(block.data.tobytes() for block in blocks) == path.read_bytes()
        found = [data for block in blocks for data in block.records()]
        assert found == [data[12:-4] for data in written]
        numbers = np.cumsum([1, *(sum(1 for _ in block.records()) for block in blocks)])
        assert [block.record for block in blocks] == numbers[:-1].tolist()
        assert [block.offset for block in blocks] == np.cumsum([0, *(len(b.data) for b in blocks)])[:-1].tolist()
        assert not any(block.problem for block in blocks)


def test_a_long_record_takes_memory_as_it_is_read(path: Path) -> None:
    head = struct.pack("<Q", 1 << 40)
    path.write_bytes(GOOD + head + masked(head) + bytes(5000))
    (source,) = open_sources(path, FeedConfig(max_line=1 << 41))
    blocks = list(record_blocks(source, size=256))
    assert max(len(block.room) for block in blocks) < 20_000
    assert f"after 5012 of {16 + (1 << 40)} bytes" in blocks[-1].problem


def test_several_files_compressed_by_content_and_empty(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecords").write_bytes(GOOD)
    (tmp_path / "b.tfrecord.gz").write_bytes(gzip.compress(GOOD * 2))
    (tmp_path / "c").write_bytes(GOOD)
    (tmp_path / "d.tfrecord").write_bytes(b"")
    feed = hogwild.open_feed([tmp_path / name for name in ("d.tfrecord", "a.tfrecords", "b.tfrecord.gz", "c")])
    assert len(feed) == 4
    assert [feed.place(row) for row in range(4)] == [
        f"{tmp_path}/{place}" for place in ("a.tfrecords:1", "b.tfrecord.gz:1", "b.tfrecord.gz:2", "c:1")
    ]
    with pytest.raises(InputError, match="no rows"):
        hogwild.open_feed(tmp_path / "d.tfrecord")


def test_the_schema_of_a_model(path: Path) -> None:
    schema = encode(path, GOOD)[2].schema
    rows, _, summary = encode(path, sparse([1, 3, 2], [1.0, 2.0, 3.0]) + sparse([9], [1.0]), schema)
    assert rows == [(1.0, [1, 2], [1.0, 3.0]), (1.0, [], [])]
    assert summary.features == 3
    assert summary.notes == ("2 values left out: their ids lie past the 3 known features.",)
    plain = record(example({"nz_idx": [1], "nz_values": [2.0]}))
    with pytest.raises(InputError, match="`label` is missing"):
        encode(path, plain, schema)
    rows, _, summary = encode(path, plain + GOOD, schema, unlabelled=True)
    assert [row[0] for row in rows] == [0.0, 1.0]
    assert summary.notes == ("1 row without a label, which predictions do not need.",)
    named = record(example({"nz_idx": [1], "nz_values": [2.0], "clicked": [5]}))
    assert encode(path, named, schema, label="clicked")[0] == [(5.0, [1], [2.0])]
    with pytest.raises(InputError, match="trained on svmlight"):
        TfrecordEncoder(FeedConfig(), {"format": "svmlight"})
    for damaged in ({"indices": 3}, {"features": "many"}, {"indices": None}):
        with pytest.raises(ModelError):
            TfrecordEncoder(FeedConfig(), {**schema, **damaged})


def test_damaged_files_never_end_in_anything_but_an_error(path: Path) -> None:
    """Bytes changed at random inside records whose checksums fit."""
    rng = random.Random(5)
    whole = example({"label": [1], "nz_idx": [3, 70000, 2], "nz_values": [1.0, 2.0, 3.0]})
    good = 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.choice([rng.randrange(256), 0, 255, 0x0A, 0x80])
        cut = bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        try:
            rows, _, _ = encode(path, GOOD + record(cut), indices="nz_idx", values="nz_values", label="label")
        except HogwildError:
            continue
        good += 1
        seen = seen_in(cut)
        assert seen["nz_idx"].count == seen["nz_values"].count == len(rows[1][1])
        assert all(0 <= ident < 2**31 for ident in rows[1][1])
        assert np.isfinite(rows[1][2]).all()
    assert good > 20
