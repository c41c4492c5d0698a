"""JSON lines: which fields are columns, and what is said of objects that do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from feeds.tagged.files import names_of, read, sentences_of
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.tagged.columns import narrowed

FIRST: dict[str, Any] = {"id": 7, "tokens": ["to", "be"], "tags": ["B", "I"], "pos": ["TO", "VB"], "spans": [[0, 2]]}
SECOND: dict[str, Any] = {"tokens": ["or"], "pos": ["CC"], "tags": ["O"]}
POEM = [[("to", "TO", "B"), ("be", "VB", "I")], [("or", "CC", "O")]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "train.jsonl"


def lines(*objects: Any) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def test_tokens_tags_and_further_lists(file: Path) -> None:
    text = read(file, lines(FIRST, SECOND))
    assert names_of(text) == ["w", "pos"]
    assert sentences_of(text) == POEM
    assert text.notes == ("Columns: w (tokens), pos; tags: tags (--columns and --tag-column say otherwise).",)


@pytest.mark.parametrize("change", [("\n", "\r\n"), ("\n", "\n\n  \n"), ("{", " {"), ("to", "\\u0074o")])
def test_line_ends_blank_lines_and_escapes(file: Path, change: tuple[str, str]) -> None:
    assert sentences_of(read(file, "\ufeff" + lines(FIRST, SECOND).replace(*change))) == POEM


def test_whole_numbers_are_texts(file: Path) -> None:
    text = read(file, lines({"words": ["a", 1999], "labels": [0, -1]}))
    assert names_of(text) == ["w"]
    assert sentences_of(text) == [[("a", "0"), ("1999", "-1")]]


FOUR = {"tokens": ["a"], "pos_tags": ["X"], "ner_tags": [3], "w2": ["b"]}


@pytest.mark.parametrize(
    ("options", "names", "first"),
    [
        ({"tag_column": "ner_tags"}, ["w", "pos_tags", "w2"], ("a", "X", "b", "3")),
        ({"tag_column": "1"}, ["w", "ner_tags", "w2"], ("a", "3", "b", "X")),
        ({"columns": ("tokens",), "tag_column": "ner_tags"}, ["w"], ("a", "3")),
        ({"columns": ("tokens", "pos=pos_tags"), "tag_column": "ner_tags"}, ["w", "pos"], ("a", "X", "3")),
        ({"columns": ("w=w2", "tokens", "-", "tag=pos_tags")}, ["w", "tokens"], ("b", "a", "X")),
        ({"columns": ("w2", "tokens", "ner_tags")}, ["w2", "w"], ("b", "a", "3")),
        ({"columns": ("w2", "tokens", "ner_tags"), "tag_column": "0"}, ["w", "ner_tags"], ("a", "3", "b")),
    ],
)
def test_fields_by_name(file: Path, options: Any, names: list[str], first: tuple[str, ...]) -> None:
    text = read(file, lines(FOUR), **options)
    assert names_of(text) == names
    assert sentences_of(text) == [[first]]


def test_the_only_field_that_is_called_so_holds_the_tags(file: Path) -> None:
    assert sentences_of(read(file, lines({"tokens": ["a"], "upos_tags": ["X"]}))) == [[("a", "X")]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, InputError, r"train\.jsonl:1: no field `tags`; the columns are tokens, pos_tags, ner_tags, w2\. Say with"),
        ({"tag_column": "nertags"}, ConfigError, r"no column `nertags` \(--tag-column\).*Did you mean `ner_tags`"),
        ({"tag_column": "4"}, ConfigError, r"there is no column `4`"),
        ({"columns": ("-",)}, ConfigError, r"--columns names no column"),
        ({"columns": ("tokens", "w=tokens", "ner_tags")}, ConfigError, r"names `tokens` twice"),
        ({"columns": ("ner_tags",), "tag_column": "ner_tags"}, ConfigError, r"no column is left for features"),
        ({"columns": ("tokens", "foo", "ner_tags")}, InputError, r"train\.jsonl:1: no field `foo`; the columns"),
        ({"columns": ("tokens",)}, InputError, r"which column holds the tags is not known"),
    ],
)
def test_fields_that_cannot_be(file: Path, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read(file, lines(FOUR), **options)


def test_no_words(file: Path) -> None:
    with pytest.raises(InputError, match=r"train\.jsonl:1: no field `tokens` or `words`; the columns are a, tags"):
        read(file, lines({"a": ["x"], "tags": ["O"]}))
    assert names_of(read(file, lines({"a": ["x"], "tags": ["O"]}), columns=("w=a",))) == ["w"]


def change(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in (SECOND | fields).items() if value != "drop"}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (change(tags=["O", "O"]), r"`tags` has length 2, but `tokens` 1"),
        (change(pos=[]), r"`pos` has length 0, but `tokens` 1"),
        (change(tags="drop"), r"no field `tags`; the columns are tokens, pos"),
        (change(tokens="drop"), r"no field `tokens`"),
        (change(tags="O"), r"`tags` is a text instead of a list"),
        (change(pos=None), r"`pos` is null instead of a list"),
        (change(tags=[None]), r"`tags`\[0\] is null; texts and whole numbers are read"),
        (change(tags=[True]), r"`tags`\[0\] is true or false"),
        (change(tokens=[1.5]), r"`tokens`\[0\] is a number"),
        (change(tokens=[["x"]]), r"`tokens`\[0\] is a list"),
        (change(tags=[""]), r"`tags`\[0\] is an empty tag"),
        (change(tokens=["\ud800"]), r"`tokens` has `\\ud800`, which is half of a character"),
        ([1, 2], r"a list instead of an object; write one object a line"),
        (3, r"a number instead of an object"),
    ],
)
def test_objects_that_do_not_fit(file: Path, bad: Any, message: str) -> None:
    data = lines(FIRST, SECOND) + "\n" + lines(bad, SECOND)
    with pytest.raises(InputError, match=r"train\.jsonl:4: " + message):
        read(file, data)
    text = read(file, data, bad_lines="skip", bad_share=0.3)
    assert sentences_of(text) == [*POEM, POEM[1]]
    assert "1 of 4 sentences malformed and skipped" in " ".join(text.notes)
    with pytest.raises(InputError, match="1 of 4 sentences are malformed"):
        read(file, data, bad_lines="skip", bad_share=0.2)


NO_JSON = ['{"tokens": ["a"]', "{'tokens': []}", "nonsense", "[" * 100_000, "{", '{"a": ' + "9" * 5000 + "}"]


@pytest.mark.parametrize("bad", NO_JSON, ids=range(len(NO_JSON)))
def test_lines_that_are_no_json(file: Path, bad: str) -> None:
    with pytest.raises(InputError, match=r"train\.jsonl:3: (not JSON \(.*\); write one object|lists inside lists)"):
        read(file, lines(FIRST, SECOND) + bad + "\n")


def test_a_file_that_is_one_json_list(file: Path) -> None:
    with pytest.raises(InputError, match=r"train\.jsonl:1: .*write one object a line, as `jq -c` does"):
        read(file, json.dumps([FIRST, SECOND], indent=1))


def test_a_field_that_is_wrong_once_is_still_a_column(file: Path) -> None:
    data = lines(FIRST, SECOND, change(pos=["X", "Y"]))
    with pytest.raises(InputError, match=r"train\.jsonl:3: `pos` has length 2"):
        read(file, data)


def test_lists_that_are_only_sometimes_as_long_are_no_columns(file: Path) -> None:
    odd = [{**SECOND, "spans": ["x"] * k} for k in (1, 2, 3)]
    assert names_of(read(file, lines(*odd))) == ["w", "pos"]


def test_empty_sentences_are_counted(file: Path) -> None:
    text = read(file, lines(FIRST, {"tokens": [], "tags": [], "pos": []}, SECOND))
    assert sentences_of(text) == POEM
    assert "1 empty sentence left out." in text.notes
    with pytest.raises(InputError, match="no sentences"):
        read(file, lines({"tokens": [], "tags": []}))
    with pytest.raises(InputError, match="no sentences"):
        read(file, "\n")


def test_a_model_reads_objects_with_tags_and_without(file: Path) -> None:
    schema = read(file, lines(FIRST, SECOND)).schema
    assert schema == {"format": "jsonl", "columns": ["w", "tags", "pos"], "tag": 1, "fields": ["tokens", "tags", "pos"]}
    data = lines(SECOND, change(tags="drop"), change(tags=3))
    text = read(file, data, schema, with_tags=False)
    assert text.tags is None
    assert sentences_of(text) == [[("or", "CC")]] * 3
    assert text.schema == schema
    assert sentences_of(read(file, lines(SECOND), schema)) == POEM[1:]
    with pytest.raises(InputError, match="no field `tags`"):
        read(file, data, schema)
    assert sentences_of(read(file, lines(change(gold=["Q"])), schema, tag_column="gold")) == [[("or", "CC", "Q")]]


def test_a_model_of_columns_reads_json(file: Path) -> None:
    schema = read(file, "to TO B\n", format="conll").schema
    assert sentences_of(read(file, lines(SECOND), schema, format="jsonl")) == POEM[1:]
    with pytest.raises(InputError, match="the model needs a column `pos`; the columns are w"):
        read(file, lines({"tokens": ["a"], "tags": ["O"]}), schema, format="jsonl")


def test_more_sentences_than_are_judged_by_or_coded_at_once(file: Path) -> None:
    text = read(file, lines(*({"tokens": [f"w{k}"], "tags": [k % 3]} for k in range(2500))))
    assert sentences_of(text) == [[(f"w{k}", str(k % 3))] for k in range(2500)]


def test_what_a_model_does_not_look_at_may_be_missing(file: Path) -> None:
    schema = narrowed(read(file, lines(FIRST, SECOND)).schema, {"w"})
    assert schema == {"format": "jsonl", "columns": ["w", "tags"], "tag": 1, "fields": ["tokens", "tags"]}
    assert sentences_of(read(file, lines({"tokens": ["x"]}), schema, with_tags=False)) == [[("x",)]]
