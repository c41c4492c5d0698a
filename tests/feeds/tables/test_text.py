"""Labelled text as a feed."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feeds.sparse.files import lines_of, rows_of, targets_of
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.io.blocks import blocks_of
from hogwild.feeds.io.source import Source, open_sources
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.texts.lines import TextEncoder
from places import DATA
from reference import text as twin

SEED = FeedConfig.hash_seed
IMDB = DATA / "imdb"
BITS = 14
FILM = "pos\tA fine, fine film\nneg\tBad.\npos\t\n"


def read(path: Path, lines: str | bytes, schema: dict[str, Any] | None = None, **options: Any) -> Feed:
    path.write_bytes(lines.encode() if isinstance(lines, str) else lines)
    return open_feed(path, FeedConfig(**{"format": "text", "bad_share": 1.0, "hash_bits": BITS, **options}), schema)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "films.txt"


def bag(text: str, bits: int = BITS, ngrams: int = 2, normalize: bool = True) -> Any:
    return pytest.approx(twin.bag_of(twin.words_of(text), SEED, bits, ngrams, normalize))


def test_words_are_hashed_and_labels_sorted(file: Path) -> None:
    feed = read(file, FILM)
    assert rows_of(feed) == [bag("A fine, fine film"), bag("Bad."), {}]
    assert feed.labels == ("neg", "pos")
    assert targets_of(feed) == [1, 0, 1]
    assert feed.features == 1 << BITS
    assert lines_of(feed) == [1, 2, 3]


def test_parts_of_words_are_features_too(file: Path) -> None:
    """In files, and in one text at a time; models without them say nothing of them."""
    line = "Größe isn't so fine"
    feed = read(file, f"pos\t{line}\nneg\tBad.\n", subwords="2:4")
    assert rows_of(feed)[0] == pytest.approx(twin.bag_of(twin.words_of(line), SEED, BITS, 2, True, (2, 4)))
    assert feed.schema["hashing"]["subwords"] == "2:4"
    assert "subwords" not in read(file, FILM).schema["hashing"]
    again = read(file, f"pos\t{line}\n", schema=feed.schema)
    assert rows_of(again)[0] == rows_of(feed)[0]
    with pytest.raises(ConfigError, match="as 3:6"):
        read(file, FILM, subwords="3")
    with pytest.raises(ModelError):
        read(file, FILM, schema={**feed.schema, "hashing": {**feed.schema["hashing"], "subwords": "9:1"}})


def test_options_of_hashing(file: Path) -> None:
    feed = read(file, FILM, hash_bits=5, ngrams=3, normalize=False)
    assert rows_of(feed)[0] == bag("A fine, fine film", 5, 3, False)
    assert feed.features == 32
    loud = read(file, "1\tFine\n0\tfine\n", lowercase=False)
    assert rows_of(loud)[0].keys() != rows_of(loud)[1].keys()


def test_numbers_stay_numbers(file: Path) -> None:
    feed = read(file, "4.5\tgood\n-1\tbad\n 1e2 \tsuper\r\n")
    assert targets_of(feed) == [4.5, -1, 100]
    assert feed.labels == ()


def test_a_header_names_the_columns(file: Path) -> None:
    lines = "id\tlabel\trating\ttext\n7\t1\t9\tgood\tand long\n8\t0\t2\tbad\n"
    feed = read(file, lines, label="label", text="text")
    assert rows_of(feed) == [bag("good and long"), bag("bad")]
    assert targets_of(feed) == [1, 0]
    assert lines_of(feed) == [2, 3]
    assert feed.notes == ("Columns: 2 not read (id, rating).",)
    assert targets_of(read(file, lines, label="rating", text="text")) == [9, 2]
    assert targets_of(read(file, lines)) == [1, 0], "usual names are found"
    assert rows_of(read(file, lines.replace("\tand", ""), text="id")) == [bag("7"), bag("8")]


def test_columns_by_number(file: Path) -> None:
    feed = read(file, "good\tx\t1\nbad\ty\t0\n", label="-1", text="0")
    assert rows_of(feed) == [bag("good"), bag("bad")]
    assert targets_of(feed) == [1, 0]


@pytest.mark.parametrize(
    ("lines", "header", "rows"),
    [
        ("label\ttext\n1\tgood\n", "auto", 1),
        ("sentiment\treview\n1\tgood\n0\tbad\n", "auto", 2),
        ("pos\tgood\nneg\tbad\n", "auto", 2),
        ("label\ttext\n1\tgood\n", "no", 2),
        ("pos\tgood\nneg\tbad\n", "yes", 1),
        ("\n\nlabel\ttext\n1\tgood\n", "auto", 1),
    ],
)
def test_whether_there_is_a_header(file: Path, lines: str, header: str, rows: int) -> None:
    assert len(read(file, lines, header=header)) == rows


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("1\tgood\nno tab here\n", r"films\.txt:2: there is no tab; expected label<TAB>text\. Correct"),
        ("1\tgood\n\tbad\n", r"films\.txt:2: the label is missing"),
        ("1\tgood\nx\tbad\n" + "1\ta\n" * 3, None),
        ("1\tgood\nnan\tbad\n", r"films\.txt:2: the label `nan` is not a finite float32 number"),
        ("1\tgood\n0\tb\0d\n", r"films\.txt:2:4: a NUL byte: this is no text"),
        (b"1\tgood\n0\tb\xe9d\n", r"films\.txt:2:4: byte 0xe9 is not UTF-8; .*--invalid-utf8 replace"),
        ("1\tgood\n".encode("utf-16"), r"looks like UTF-16; convert it with `iconv"),
        ("", "no rows; is the file empty"),
        ("label\ttext\n", "no rows"),
        ("\x7fELF\x01\x02\0\0\0", "NUL byte"),
    ],
)
def test_bad_lines_stop(file: Path, lines: str | bytes, message: str | None) -> None:
    if message is None:  # words among the first labels: all are words then
        assert read(file, lines).labels == ("1", "x")
        return
    with pytest.raises(InputError, match=message):
        read(file, lines)


def test_a_word_after_a_block_of_numbers_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Source, "blocks", lambda self, size=100: _small_blocks(self, size))
    with pytest.raises(InputError, match=r"films\.txt:102: the label `oops` is not a number, but the first labels"):
        read(file, "1\tword\n" * 100 + "0\tbad\noops\tbad\n")


def test_fields_of_a_header_are_counted(file: Path) -> None:
    with pytest.raises(InputError, match=r"films\.txt:3: expected 3 tab-separated fields, found 2"):
        read(file, "label\tid\ttext\n1\t2\tgood\n1\tgood\n")
    with pytest.raises(InputError, match=r"films\.txt:2: expected 3 tab-separated fields, found 4"):
        read(file, "text\tid\tlabel\na\tb\t1\t1\n")


def test_bad_lines_are_skipped_and_counted(file: Path) -> None:
    feed = read(file, "1\tgood\nno tab\n\tno label\n\n0\tbad\n", bad_lines="skip")
    assert rows_of(feed) == [bag("good"), bag("bad")]
    assert lines_of(feed) == [1, 5]
    assert feed.notes[0].startswith("2 of 4 lines malformed and skipped: ")
    with pytest.raises(InputError, match=r"2 of 4 lines are malformed, more than the share 0\.4"):
        read(file, "1\tgood\nno tab\n\tno label\n\n0\tbad\n", bad_lines="skip", bad_share=0.4)


def test_invalid_utf8_is_replaced_and_counted(file: Path) -> None:
    feed = read(file, b"1\tgo\xffod\n0\tb\xc3\xa9\n", invalid_utf8="replace")
    assert rows_of(feed) == [bag("go od"), bag("bé")]
    assert feed.notes == ("1 byte not UTF-8, read as `?`.",)


def test_crlf_bom_and_no_newline_at_the_end(file: Path) -> None:
    feed = read(file, b"\xef\xbb\xbflabel\ttext\r\npos\tgood\r\nneg\tbad")
    assert rows_of(feed) == [bag("good"), bag("bad")]
    assert feed.labels == ("neg", "pos")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "lable"}, r"no column `lable` \(--label\); the columns are label, id, text\. Did you mean `label`"),
        ({"text": "7"}, r"no column `7` \(--text\)"),
        ({"text": "Text"}, r"Did you mean `text`\?"),
        ({"label": "-4"}, r"no column `-4`"),
    ],
)
def test_wrong_columns(file: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(file, "label\tid\ttext\n1\t2\tgood\n", **options)


def test_label_and_text_are_two_columns(file: Path) -> None:
    with pytest.raises(InputError, match="column `text` cannot be both label and text"):
        read(file, "label\ttext\n1\tgood\n", label="text", text="text")


def test_a_name_without_a_header(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no column `stars`.*the file has no header and 2 columns, 0 to 1"):
        read(file, "1\tgood\n0\tbad\n", label="stars")


def test_the_schema_gives_the_same_ids_again(file: Path) -> None:
    feed = read(file, FILM, hash_bits=9, ngrams=1)
    schema = json.loads(json.dumps(feed.schema))
    again = read(file, "pos\tfine film\npos\tbad\n", schema)
    assert rows_of(again) == [bag("fine film", 9, 1), bag("bad", 9, 1)]
    assert again.labels == ("neg", "pos")
    assert targets_of(again) == [1, 1]
    assert again.schema == feed.schema
    with pytest.raises(InputError, match=r"films\.txt:2: the label `meh` is none of neg, pos"):
        read(file, "pos\tfine\nmeh\tbad\n", schema)


def test_prediction_without_labels(file: Path) -> None:
    schema = read(file, FILM).schema
    bare = read(file, "fine film\nBad.\n", schema, unlabelled=True)
    assert rows_of(bare) == [bag("fine film"), bag("Bad.")]
    assert targets_of(bare) == [0, 0]
    assert bare.notes == ("1 file without labels, which predictions do not need.",)
    some = read(file, "pos\tfine film\n\tBad.\n?\tso\n", schema, unlabelled=True)
    assert targets_of(some) == [1, 0, 0]
    assert some.notes == ("2 rows without a known label, which predictions do not need.",)
    with pytest.raises(InputError, match="there is no tab"):
        read(file, "fine film\nBad.\n", schema)


def test_prediction_without_labels_under_a_header(file: Path) -> None:
    lines = "label\tid\ttext\n1\t2\tgood\n0\t3\tbad\n"
    schema = read(file, lines).schema
    by_name = read(file, "text\tid\ngood\t5\n", schema, unlabelled=True)
    assert rows_of(by_name) == [bag("good")]
    by_place = read(file, "5\tgood\n", schema, unlabelled=True)
    assert rows_of(by_place) == [bag("good")]
    plain = read(file, "good film\nbad\tfilm\n", schema, unlabelled=True)
    assert rows_of(plain) == [bag("good film"), bag("bad film")], "nothing but text"
    assert rows_of(read(file, "0\t5\tgood\n", schema)) == [bag("good")], "a file without the header"
    with pytest.raises(InputError, match="the label column `label` is missing; the columns are text, id"):
        read(file, "text\tid\ngood\t5\n", schema)
    with pytest.raises(InputError, match="column `text` is missing"):
        read(file, "label\tid\tbody\n1\t5\tgood\n", schema)


def test_another_label_column_for_another_file(file: Path) -> None:
    schema = read(file, "label\ttext\npos\tgood\nneg\tbad\n").schema
    feed = read(file, "gold\ttext\nneg\tgood\n", schema, label="gold")
    assert targets_of(feed) == [0]
    assert feed.schema == schema
    assert targets_of(read(file, "label\ttext\npos\tgood\n", schema, label="-2")) == [1], "numbers were for training"


def test_a_schema_of_another_kind(file: Path) -> None:
    with pytest.raises(InputError, match="trained on svmlight, but this is labelled text"):
        read(file, FILM, {"format": "svmlight", "features": 3})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("columns", 5), ("labels", {"names": 3}), ("hashing", {"bits": 99}), ("hashing", {"bits": 20}), ("text", None),
        ("labels", [1]),
    ],
)  # fmt: skip
def test_a_damaged_schema(file: Path, key: str, value: Any) -> None:
    schema = {**read(file, FILM).schema, key: value}
    with pytest.raises((ModelError, InputError)):
        read(file, FILM, schema)


def test_several_files_and_their_headers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("label\ttext\npos\tgood\n")
    (tmp_path / "b.txt").write_text("text\tlabel\nbad\tneg\n")
    (tmp_path / "c.txt").write_text("pos\tfine\n")
    config = FeedConfig(format="text", hash_bits=BITS)
    feed = open_feed([tmp_path / name for name in ("a.txt", "b.txt", "c.txt")], config)
    assert rows_of(feed) == [bag("good"), bag("bad"), bag("fine")]
    assert targets_of(feed) == [1, 0, 1]
    assert [feed.place(row).removeprefix(f"{tmp_path}/") for row in range(3)] == ["a.txt:2", "b.txt:2", "c.txt:1"]


def test_the_order_is_that_of_the_file_whatever_the_threads(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{k % 7}\tword{k} common {'x ' * (k % 50)}" for k in range(3000)]
    file.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(Source, "blocks", lambda self, size=4096: _small_blocks(self, size))
    config = FeedConfig(format="text", ngrams=1)
    found = {}
    for threads in (1, 4):
        chunks = list(TextEncoder(config, threads=threads).chunks(open_sources(file, config)))
        assert len(chunks) > 20
        found[threads] = [np.concatenate(parts) for parts in zip(*(chunk[:5] for chunk in chunks), strict=True)]
    for one, other in zip(found[1], found[4], strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[1][4].tolist() == list(range(1, 3001))
    assert found[1][3].tolist() == [k % 7 for k in range(3000)]


_blocks = Source.blocks


def _small_blocks(source: Source, size: int) -> Any:
    return _blocks(source, size)


def test_blocks_after_a_header_keep_their_line_numbers(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("".join(f"line {k}\n" for k in range(1, 40)))
    monkeypatch.setattr(Source, "blocks", lambda self, size=16: _small_blocks(self, size))
    (source,) = open_sources(file)
    blocks = list(blocks_of(source, 0, 5))
    assert blocks[0].line == 6
    assert all(block.text.tobytes().startswith(b"line %d\n" % block.line) for block in blocks)


@pytest.mark.data
@pytest.mark.skipif(not IMDB.exists(), reason="needs ../shared/data/imdb")
def test_film_reviews(tmp_path: Path) -> None:
    with lzma.open(IMDB / "train.tsv.xz", "rt", encoding="utf-8") as stream:
        lines = [next(stream) for _ in range(1501)]
    path = tmp_path / "imdb.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    feed = open_feed(path, FeedConfig(label="label", text="text", hash_bits=BITS))
    texts = [line.rstrip("\n").split("\t") for line in lines[1:]]
    assert targets_of(feed) == [float(fields[0]) for fields in texts]
    for row, fields in list(zip(rows_of(feed), texts, strict=True))[:60]:
        assert row == bag(fields[3])
    norms = np.sqrt([sum(value * value for value in row.values()) for row in rows_of(feed)])
    np.testing.assert_allclose(norms, 1, rtol=1e-5)
