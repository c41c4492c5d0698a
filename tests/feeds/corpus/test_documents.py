"""Documents from files and from memory: lines and rows with their numbers and tags, and what cannot be read."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from hogwild import ConfigError, DocumentConfig, Documents, InputError, documents_of, open_documents
from hogwild.config import TrainConfig
from hogwild.feeds.held_out import hold_out

TEXTS = ["to be or not", "", "Be\tto  be ", "zoo", "to or to"]
ALL = DocumentConfig(min_count=1)
TWICE = DocumentConfig(min_count=2)


def read(documents: Documents) -> list[list[str]]:
    """The words of each document, as the ids say them."""
    starts = [0, *documents.ends.tolist()]
    ids = documents.samples.ids.tolist()
    assert all(ids[end - 1] == -1 for end in starts[1:])
    return [[documents.words[k] for k in ids[a : b - 1]] for a, b in pairwise(starts)]


def plain(texts: list[str]) -> list[list[str]]:
    return [text.split() for text in texts]


def test_every_line_is_a_document_and_its_number_is_its_tag(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(TEXTS[:3]) + "\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("\n".join(TEXTS[3:]).encode()))  # the last line has no end
    found = open_documents([tmp_path / "a.txt", tmp_path / "b.txt.gz"], ALL)
    assert read(found) == plain(TEXTS)
    assert (found.tags, found.names(), found.parts) == ((), ("0", "1", "2", "3", "4"), 5)
    assert found.sizes.tolist() == [4, 0, 3, 1, 3]
    assert (found.total, len(found)) == (11, 11)
    assert dict(zip(found.words, found.counts.tolist(), strict=True)) == {
        "to": 4, "or": 2, "be": 2, "Be": 1, "not": 1, "zoo": 1,
    }  # fmt: skip
    assert found.notes == ("1 of 5 documents has no word of the vocabulary: such vectors are all zeros.",)
    again = open_documents([tmp_path / "a.txt", tmp_path / "b.txt.gz"], ALL)  # from the cache
    assert (read(again), again.notes, again.fingerprint) == (read(found), found.notes, found.fingerprint)


def test_rare_words_are_left_out_and_documents_stay(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(TEXTS) + "\n")
    found = open_documents(tmp_path / "a.txt", TWICE)
    assert read(found) == [["to", "be", "or"], [], ["to", "be"], [], ["to", "or", "to"]]
    assert "2 of 5 documents have no word of the vocabulary" in found.notes[-1]
    lowered = open_documents(tmp_path / "a.txt", DocumentConfig(min_count=2, lowercase=True))
    assert read(lowered)[2] == ["be", "to", "be"]


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        sign = "\t" if path.suffix == ".tsv" else ","
        lines = [sign.join(rows[0])] + [sign.join(f'"{value}"' for value in row.values()) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    return path


ROWS = [{"n": k, "body": text, "name": f"doc {k}"} for k, text in enumerate(["to be", "or, not", "to be or"])]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.jsonl"])
def test_tables_have_columns_of_texts_and_tags(tmp_path: Path, name: str) -> None:
    path = write_table(tmp_path / name, ROWS)
    found = open_documents(path, DocumentConfig(min_count=1, text="body", id="name"))
    assert (read(found), found.tags) == (plain(["to be", "or, not", "to be or"]), ("doc 0", "doc 1", "doc 2"))
    numbers = open_documents(path, DocumentConfig(min_count=1, text="body", id="n"))
    assert numbers.tags == ("0", "1", "2")
    assert open_documents(path, DocumentConfig(min_count=1, text="body")).tags == ()
    assert (found.schema["format"], found.schema["text"], found.schema["id"]) == ("documents", "body", "name")
    # As a model reads new files: the columns of training, tags only if they are there.
    new = write_table(tmp_path / f"new-{name}", [{"body": "to or", "more": 1}, {"body": "xyz", "more": 2}])
    like = open_documents(new, ALL, found.words, found.schema)
    assert (read(like), like.tags, like.words) == ([["to", "or"], []], (), found.words)


def test_what_is_wrong_with_a_table(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", ROWS)
    with pytest.raises(ConfigError, match="which column holds the texts"):
        open_documents(path, ALL)
    with pytest.raises(ConfigError, match=r"no column `bodi` \(--text\).*Did you mean `body`"):
        open_documents(path, DocumentConfig(text="bodi"))
    twice = write_table(tmp_path / "b.csv", [ROWS[0], ROWS[1], {**ROWS[2], "name": "doc 0"}])
    with pytest.raises(InputError, match="the tag `doc 0` stands twice, for the documents 0 and 2"):
        open_documents(twice, DocumentConfig(min_count=1, text="body", id="name"))
    without = write_table(tmp_path / "c.csv", [ROWS[0], {**ROWS[1], "name": ""}])
    with pytest.raises(InputError, match=r"c\.csv:3: the document has no tag"):
        open_documents(without, DocumentConfig(min_count=1, text="body", id="name"))
    (tmp_path / "d.csv").write_text("n,body\n1,a\n2,b,c\n")
    with pytest.raises(InputError, match=r"d\.csv:3: expected 2 columns, found 3"):
        open_documents(tmp_path / "d.csv", DocumentConfig(min_count=1, text="body"))
    (tmp_path / "lines.txt").write_text("a b\n")
    with pytest.raises(ConfigError, match="read as lines"):
        open_documents(tmp_path / "lines.txt", DocumentConfig(text="body"))
    with pytest.raises(InputError, match=r"a\.csv is csv, but .*lines\.txt is lines"):
        open_documents([path, tmp_path / "lines.txt"], ALL)
    with pytest.raises(ConfigError, match="the files hold lines"):
        DocumentConfig(format="lines", text="body")


def test_files_without_documents_or_words(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "blank.txt").write_text("\n \n")
    for name in ("empty", "blank"):
        with pytest.raises(InputError, match="no words; is the file empty"):
            open_documents(tmp_path / f"{name}.txt", ALL)
    with pytest.raises(InputError, match="no documents"):
        open_documents(tmp_path / "empty.txt", ALL, vocabulary=["a"])
    assert read(open_documents(tmp_path / "blank.txt", ALL, vocabulary=["a"])) == [[], []]
    (tmp_path / "rare.txt").write_text("a b\nb c\n")
    with pytest.raises(InputError, match="Lower --min-count to 2"):
        open_documents(tmp_path / "rare.txt")
    (tmp_path / "odd.txt").write_bytes(b"a b\nb \xff a\n")
    with pytest.raises(InputError, match=r"odd\.txt:2:3: byte 0xff is not UTF-8"):
        open_documents(tmp_path / "odd.txt", ALL)
    for _ in range(2):  # the second time from the cache
        replaced = open_documents(tmp_path / "odd.txt", DocumentConfig(min_count=1, invalid_utf8="replace"))
        assert read(replaced) == [["a", "b"], ["b", "?", "a"]]
        assert replaced.notes == ("1 byte not UTF-8, read as `?`.",)


def test_texts_in_memory() -> None:
    assert read(documents_of(TEXTS, ALL)) == plain(TEXTS)
    assert read(documents_of(iter(TEXTS), ALL)) == plain(TEXTS)
    assert read(documents_of([["to", "be"], "or not"], ALL)) == [["to", "be"], ["or", "not"]]
    tagged = documents_of([("x", "a b"), (7, "b")], ALL)
    assert (tagged.tags, read(tagged)) == (("x", "7"), [["a", "b"], ["b"]])
    for wrong, said in (
        ("a b", "the documents are str"), ([("x", "a"), "b"], "document 1 is 'b'"), ([3], "document 0 is int"),
        ([("x", "a"), ("x", "b")], "`x` stands twice"), ([("", "a")], "an empty tag"), ([], "no words"),
        (["\ud800"], "half a surrogate pair"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            documents_of(wrong, ALL)


def test_a_part_keeps_its_tags_and_the_vocabulary_of_all() -> None:
    whole = documents_of(TEXTS, ALL)
    part = whole.part(np.array([0, 2, 4]), "some").check()
    assert (read(part), part.tags, part.words) == (plain([TEXTS[0], TEXTS[2], TEXTS[4]]), ("0", "2", "4"), whole.words)
    assert int(part.counts.sum()) == 10
    held = hold_out(TrainConfig(valid_last=0.4), whole)
    assert (read(held.feed), read(held.valid)) == (plain(TEXTS[:3]), plain(TEXTS[3:]))
    with pytest.raises(InputError, match="the data is damaged"):
        Documents(whole.samples, whole.words, whole.counts, 11, {}, ends=whole.ends[:-1]).check()
