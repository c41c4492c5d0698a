"""Columns for a model: found again in other files, which may lack the tags and whatever the model does not look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from feeds.tagged.files import VERSE, names_of, read, sentences_of
from hogwild.config import TaggingConfig
from hogwild.errors import InputError, ModelError
from hogwild.feeds.tagged.columns import narrowed
from hogwild.feeds.tagged.open import open_tagging


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "train.txt"


def test_a_schema_fixes_the_columns(file: Path) -> None:
    schema = read(file, VERSE, columns=("w", "x", "y"), tag_column="x").schema
    assert schema == {"format": "conll", "columns": ["w", "x", "y"], "tag": 1, "fields": []}
    text = read(file, "a B c\n", schema)
    assert names_of(text) == ["w", "y"]
    assert sentences_of(text) == [[("a", "c", "B")]]
    assert text.schema == schema
    assert text.notes == ()
    with pytest.raises(InputError, match=r"2 columns found, 3 expected \(w, x, y\)"):
        read(file, "a c\n", schema)


@pytest.mark.parametrize("data", ["a X B\nb Y O\n", "a X\nb Y\n"])
def test_prediction_with_tags_and_without(file: Path, data: str) -> None:
    schema = read(file, VERSE).schema
    text = read(file, data, schema, with_tags=False)
    assert names_of(text) == ["w", "pos"]
    assert text.tags is None
    assert sentences_of(text) == [[("a", "X"), ("b", "Y")]]
    assert text.schema == schema


@pytest.mark.parametrize("data", ["a T x\n", "a x\n", "a\n"])
def test_prediction_may_lack_what_is_not_used(file: Path, data: str) -> None:
    schema = read(file, VERSE, columns=("w", "tag", "-")).schema
    assert sentences_of(read(file, data, schema, with_tags=False)) == [[("a",)]]


def test_prediction_with_too_many_columns(file: Path) -> None:
    schema = read(file, VERSE).schema
    with pytest.raises(InputError, match=r"4 columns found, 3 expected \(w, pos, tag\)"):
        read(file, "a b c d\n", schema, with_tags=False)
    with pytest.raises(InputError, match=r"train\.txt:2: expected 2 columns, found 3"):
        read(file, "a b\na b c\n", schema, with_tags=False)


def test_columns_of_the_user_go_before_those_of_the_model(file: Path) -> None:
    schema = read(file, VERSE).schema
    text = read(file, "1 a X\n", schema, with_tags=False, columns=("-", "w", "pos"))
    assert sentences_of(text) == [[("a", "X")]]
    text = read(file, "X a B\n", schema, columns=("pos", "w", "tag"))
    assert names_of(text) == ["w", "pos"]
    assert sentences_of(text) == [[("a", "X", "B")]]
    with pytest.raises(InputError, match="the model needs a column `pos`; the columns are w"):
        read(file, "1 a B\n", schema, columns=("-", "w", "tag"))


@pytest.mark.parametrize(
    "change",
    [{"columns": 3}, {"columns": ["w", 2, "tag"]}, {"tag": 3}, {"tag": True}, {"fields": ["x"]}, {"fields": None}],
)
def test_a_damaged_schema(file: Path, change: Any) -> None:
    schema = read(file, VERSE).schema | change
    with pytest.raises(ModelError, match="columns is damaged"):
        read(file, VERSE, schema)


def test_a_schema_of_another_kind(file: Path) -> None:
    with pytest.raises(InputError, match="not trained on tagged text"):
        read(file, VERSE, {"format": "svmlight", "features": 3})


@pytest.mark.parametrize("data", ["a X T\n", "a X\n", "a\n"])
def test_what_a_model_does_not_look_at_may_be_missing(file: Path, data: str) -> None:
    schema = narrowed(read(file, VERSE).schema, {"w"})
    text = read(file, data, schema, with_tags=False)
    assert sentences_of(text) == [[("a",)]]
    assert text.schema == schema
    assert narrowed(schema, set()) == schema
    assert sentences_of(read(file, VERSE, schema))[0] == [("to", "B-VP"), ("be", "I-VP")]


def test_words_alone_are_enough_for_templates_that_look_at_words(file: Path) -> None:
    file.write_text(VERSE)
    feed = open_tagging(file, TaggingConfig(features="pos", cache=False))
    assert feed.schema["columns"] == ["w", "-", "tag"]
    file.write_text("or\nto\n")
    found = open_tagging(file, schema=feed.schema, names=feed.names, tags=feed.tags, with_tags=False)
    assert found.text is not None
    assert sentences_of(found.text) == [[("or",), ("to",)]]
