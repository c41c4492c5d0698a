"""fastText's lines as a feed: against `label<TAB>text` of the same texts, and all that can be wrong with them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import open_sources
from hogwild.feeds.open import format_of, open_feed
from hogwild.feeds.sparse.feed import Feed

ONE = "__label__pos A fine film\n__label__neg Bad.\n\n__label__pos\n"
SEVERAL = "__label__b __label__a one two\nthree __label__a four\n__label__a\t__label__b __label__a five\n"


def read(path: Path, lines: str | bytes, schema: dict[str, Any] | None = None, **options: Any) -> Feed:
    path.write_bytes(lines.encode() if isinstance(lines, str) else lines)
    return open_feed(path, FeedConfig(**{"bad_share": 1.0, "hash_bits": 10, **options}), schema)


def same_features(one: Feed, other: Feed) -> bool:
    pairs = zip((one.samples.offsets, _own(one)), (other.samples.offsets, _own(other)), strict=True)
    return all(np.array_equal(mine, its) for mine, its in pairs)


def _own(feed: Feed) -> Any:
    assert feed.original is not None
    return feed.original[feed.samples.ids]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "films.txt"


def test_one_label_a_line_is_labelled_text(file):
    feed = read(file, ONE)
    assert feed.labels == ("neg", "pos")
    assert feed.sets == ()
    assert feed.samples.targets.tolist() == [1.0, 0.0, 1.0]
    assert feed.lines.tolist() == [1, 2, 4]
    assert feed.schema["labels"] == {"kind": "words", "names": ["neg", "pos"]}
    tabs = read(file.with_name("tabs.txt"), "pos\tA fine film\nneg\tBad.\npos\t\n", format="text")
    assert same_features(feed, tabs)


def test_several_labels_stand_anywhere(file):
    feed = read(file, SEVERAL)
    assert feed.labels == ("a", "b")
    assert [feed.sets[int(number)] for number in feed.samples.targets] == [(0, 1), (0,), (0, 1)]
    assert feed.schema["labels"] == {"kind": "sets", "names": ["a", "b"]}
    assert "up to 2 labels of 2" in " ".join(feed.notes)
    assert "several a row" in repr(feed)
    plain = read(file.with_name("plain.txt"), "one two\nthree four\nfive\n", feed.schema, unlabelled=True)
    assert same_features(feed, plain), "labels are no words of the text"
    assert plain.sets == ((),)
    again = open_feed(file, FeedConfig(hash_bits=10))
    assert again.sets == feed.sets, "the cache keeps them"


def test_further_files_have_the_labels_of_the_first(file):
    schema = read(file, SEVERAL).schema
    more = read(file.with_name("more.txt"), "__label__b __label__new six\nseven\n", schema)
    assert [more.sets[int(number)] for number in more.samples.targets] == [(1,), ()]
    assert more.labels == ("a", "b")
    assert "1 label left out: training never saw them." in more.notes
    alone = read(file, ONE).schema
    with pytest.raises(InputError, match=r"more.txt:1: there are 2 labels \(b, new\), but the model"):
        read(file.with_name("more.txt"), "__label__b __label__new six\n", alone)
    with pytest.raises(InputError, match=r"more.txt:1: the label `b` is none of neg, pos"):
        read(file.with_name("more.txt"), "__label__b six\n", alone)


@pytest.mark.parametrize(
    ("lines", "why"),
    [("__label__a x\nno label\n", "2: the label is missing .labels begin"),
     ("__label__a x\n__label__ y\n", "2: a label has no name"), (b"__label__a \xff\n", "byte 0xff is not UTF-8")],
)  # fmt: skip
def test_malformed_lines(file, lines, why):
    with pytest.raises(InputError, match=why):
        read(file, lines)
    if isinstance(lines, str):
        feed = read(file, lines + "__label__b z\n", bad_lines="skip")
        assert feed.labels == ("a", "b")
        assert len(feed) == 2


def test_a_line_without_labels_has_none_where_several_are_asked_for(file):
    feed = read(file, "__label__a x\nno label\n__label__b y\n", several_labels=True)
    assert [feed.sets[int(number)] for number in feed.samples.targets] == [(0,), (), (1,)]


def test_recognised_by_content(file):
    def found(lines: bytes, name: str = "films.txt", **options: Any) -> str:
        path = file.with_name(name)
        path.write_bytes(lines)
        config = FeedConfig(**options)
        return format_of(open_sources(path, config), config)

    assert found(ONE.encode()) == "fasttext"
    assert found(gzip.compress(ONE.encode()), "films.gz") == "fasttext"
    assert found(b"#a one, two\n", label_prefix="#") == "fasttext"
    assert found(b"pos\tone __label__x\n") == "text"
    with pytest.raises(ConfigError, match="label_prefix"):
        FeedConfig(label_prefix="a b")


def test_texts_of_other_files_fit(file):
    schema = read(file, ONE).schema
    tabs = read(file.with_name("tabs.txt"), "neg\tA fine film\n", schema)
    assert tabs.samples.targets.tolist() == [0.0]
    spare = read(file.with_name("x.tsv"), "a,b\tred|round\n", label="1", text="0", label_separator="|")
    assert spare.labels == ("red", "round")
