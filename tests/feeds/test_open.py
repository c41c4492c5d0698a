"""Choosing the format, and opening several files."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.source import open_sources
from hogwild.feeds.open import format_of, open_feed

BY_NAME = [
    ("a.svm", "svmlight"),
    ("a.LIBSVM.gz", "svmlight"),
    ("a.csv", "csv"),
    ("a.tsv.zst", "tsv"),
    ("a.parquet", "parquet"),
    ("a.feather", "arrow"),
]
BY_CONTENT = [
    (b"1 1:2 3:4\n", "svmlight"),
    (b"# c\n\n+1 qid:3 1:2\n0\n", "svmlight"),
    (b"\xef\xbb\xbf-1.5 7:1", "svmlight"),
    (b"", "svmlight"),
    (b"a,b,c\n1,2,3\n", "csv"),
    (b"a\tb\tc\n1\t2\t3\n", "tsv"),
    (b"pos\ta fine film, really\nneg\tno\n", "text"),
    (b"pos\ta, b\tc\nneg\tno\n\n", "text"),
    (b"a;b\n1;2\n", "csv"),
    (b"PAR1....", "parquet"),
    (b"ARROW1\x00\x00", "arrow"),
    (gzip.compress(b"a,b,c\n1,2,3\n", mtime=0), "csv"),
]


@pytest.mark.parametrize(("name", "form"), BY_NAME)
def test_the_format_by_name(tmp_path: Path, name: str, form: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    assert format_of(open_sources(tmp_path / name), FeedConfig()) == form
    assert format_of(open_sources(tmp_path / name), FeedConfig(format="text")) == "text"


@pytest.mark.parametrize(("content", "form"), BY_CONTENT)
def test_the_format_by_content(tmp_path: Path, content: bytes, form: str) -> None:
    (tmp_path / "data.txt").write_bytes(content)
    assert format_of(open_sources(tmp_path / "data.txt"), FeedConfig()) == form


@pytest.mark.parametrize(
    ("lines", "form"),
    [
        ("pos\ta fine film\nneg\tno\nneg\ta dull plot\n", "text"),
        ("label\ttext\npos\ta fine film\nneg\ta dull plot\n", "text"),
        ("yes\t3.5\nno\t2\n", "tsv"),
        ("yes\tnew york\t3\nno\tsan juan\t2\n", "tsv"),
    ],
)
def test_a_tsv_of_labels_and_prose_is_text(tmp_path: Path, lines: str, form: str) -> None:
    (tmp_path / "data.tsv").write_text(lines)
    assert format_of(open_sources(tmp_path / "data.tsv"), FeedConfig()) == form
    table = FeedConfig(categorical=("1",))
    assert format_of(open_sources(tmp_path / "data.tsv"), table) == "tsv"


@pytest.mark.parametrize("line", ["a fine plot\n", "fine, but long; really\n", ""])
def test_what_the_model_was_trained_on_settles_what_content_cannot(tmp_path: Path, line: str) -> None:
    (tmp_path / "train.tsv").write_text("pos\ta fine film\nneg\ta dull plot\n")
    (tmp_path / "new").write_text(line)
    schema = open_feed(tmp_path / "train.tsv").schema
    assert format_of(open_sources(tmp_path / "new"), FeedConfig(), schema) == "text"
    assert format_of(open_sources(tmp_path / "new"), FeedConfig()) != "text"


def test_a_table_of_one_column_for_a_model_of_text(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('review,label\n"a fine, warm film",pos\n"a dull plot",neg\n')
    schema = open_feed(tmp_path / "train.csv", FeedConfig(text="review")).schema
    (tmp_path / "new").write_text('review\n"a fine, warm film"\n')
    assert format_of(open_sources(tmp_path / "new"), FeedConfig(), schema) == "csv"
    whole, new = (open_feed(tmp_path / name, FeedConfig(unlabelled=True), schema) for name in ("train.csv", "new"))
    assert len(new) == 1
    assert len(new.samples.ids) == whole.samples.offsets[1]  # type: ignore[union-attr]


@pytest.mark.parametrize("given", [io.StringIO("a"), [io.BytesIO(b"a")], 3, None])
def test_what_is_no_name_of_a_file(given: Any) -> None:
    with pytest.raises(InputError, match="is no name of a file; give a path"):
        open_feed(given)


def test_files_of_two_formats(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1\n")
    (tmp_path / "b.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"a\.svm looks like svmlight, but .*b\.csv like csv"):
        open_feed([tmp_path / "a.svm", tmp_path / "b.csv"])


def test_one_file_in_two_formats_is_two_entries(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("label,b\tc\n1,2\t3\n0,5\t7\n")
    keys = {open_feed(tmp_path / "a", FeedConfig(format=form)).fingerprint for form in ("csv", "tsv")}  # type: ignore[arg-type]
    assert len(keys) == 2


def test_several_files_are_one_feed(tmp_path: Path) -> None:
    (tmp_path / "b.svm.gz").write_bytes(gzip.compress(b"# c\n1 2:1\n1 3:1\n", mtime=0))
    (tmp_path / "a.svm").write_text("0 0:1\n")
    feed = open_feed(str(tmp_path / "*.svm*"))
    assert feed.samples.targets.tolist() == [0, 1, 1]
    assert [feed.place(row).rpartition("/")[2] for row in range(3)] == ["a.svm:1", "b.svm.gz:2", "b.svm.gz:3"]
    assert feed.features == 4
    assert feed.source.endswith("a.svm and 1 more")


def test_standard_input_and_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 1:1\n0 2:1\n")))
    feed = open_feed("-", FeedConfig(pipe="sed s/^1/7/"))
    assert feed.samples.targets.tolist() == [7, 0]
    assert feed.place(1) == "standard input:2"


def test_a_failing_command_leaves_nothing(tmp_path: Path, home: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with pytest.raises(InputError, match="failed with exit code 1"):
        open_feed(tmp_path / "a.svm", FeedConfig(pipe="cat; false"))
    assert list((home / "feeds").iterdir()) == []
