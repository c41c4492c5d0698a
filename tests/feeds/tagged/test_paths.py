"""Several ways to tag a sentence, and probabilities, are written beside the text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path as File

import pytest

from hogwild.config import TaggingConfig
from hogwild.errors import InputError
from hogwild.feeds.tagged.read import read_tagged
from hogwild.feeds.tagged.text import TaggedText
from hogwild.feeds.tagged.write import Path, write_paths

TAGS = ("X", "Y")
PATHS = [
    [Path(["X", "Y"], [0.75, 1.0], 0.5), Path(["Y", "Y"], [0.25, 1.0], 0.125)],
    [Path(["X"], [1 / 3], 1e-7)],
]


def read(place: File, name: str, content: str, form: str = "auto") -> TaggedText:
    (place / name).write_text(content)
    return read_tagged(place / name, TaggingConfig(format=form), with_tags=False)  # type: ignore[arg-type]


def test_columns(tmp_path: File) -> None:
    text = read(tmp_path, "a.txt", "to a\nbe b\n\nor c\n")
    assert list(write_paths(text, PATHS, TAGS)) == [
        "# 1 0.5\nto a X 0.75\nbe b Y 1\n\n# 2 0.125\nto a Y 0.25\nbe b Y 1\n\n",
        "# 1 1e-07\nor c X 0.333333\n\n",
    ]
    bare = [[Path(path.tags) for path in paths] for paths in PATHS]
    assert list(write_paths(text, bare, TAGS)) == ["to a X\nbe b Y\n\nto a Y\nbe b Y\n\n", "or c X\n\n"]


def test_a_tag_with_a_blank_makes_tabs(tmp_path: File) -> None:
    text = read(tmp_path, "a.txt", "to a\n")
    assert "".join(write_paths(text, [[Path(["X"])]], ("X", "two words"))) == "to\ta\tX\n\n"


def test_json_lines_have_fields(tmp_path: File) -> None:
    lines = ['{"tokens": ["to", "be"]}', '{"tokens": []}', '{"tokens": ["or"], "rank": 7}']
    text = read(tmp_path, "a.jsonl", "\n".join(lines) + "\n")
    found = [json.loads(line) for line in "".join(write_paths(text, PATHS, TAGS)).splitlines()]
    assert found == [
        {"tokens": ["to", "be"], "predicted": ["X", "Y"], "probabilities": [0.75, 1], "rank": 1, "probability": 0.5},
        {"tokens": ["to", "be"], "predicted": ["Y", "Y"], "probabilities": [0.25, 1], "rank": 2, "probability": 0.125},
        {"tokens": [], "predicted": []},
        {"tokens": ["or"], "rank": 1, "predicted": ["X"], "probabilities": [0.333333], "probability": 1e-07},
    ]


def test_words(tmp_path: File) -> None:
    text = read(tmp_path, "a.txt", "\ntobe\n", "segmented")
    paths = [[Path(["B", "E", "B", "E"], None, 0.5), Path(["B", "M", "M", "E"], None, 0.25)]]
    assert "".join(write_paths(text, paths, "BMES")) == "\n# 1 0.5\nto be\n# 2 0.25\ntobe\n"


def test_sentences_are_asked_for_one_by_one(tmp_path: File) -> None:
    asked = []

    def paths() -> Iterator[Sequence[Path]]:
        for k, found in enumerate(PATHS):
            asked.append(k)
            yield found

    lines = write_paths(read(tmp_path, "a.txt", "to a\nbe b\n\nor c\n"), paths(), TAGS)
    assert asked == []
    next(lines)
    assert asked == [0]


def test_a_text_that_was_not_read(tmp_path: File) -> None:
    text = read(tmp_path, "a.txt", "to a\n")
    with pytest.raises(InputError, match="not read from files"):
        write_paths(TaggedText(text.columns, None, text.offsets), [], TAGS)
