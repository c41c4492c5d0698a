"""Sentences are written again as they were read, with a tag more."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feeds.tagged.files import VERSE, read, sentences_of
from hogwild.config import TaggingConfig
from hogwild.errors import InputError
from hogwild.feeds.tagged.read import read_tagged
from hogwild.feeds.tagged.text import TaggedText, TextColumn
from hogwild.feeds.tagged.write import write_tagged


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


def written(text: TaggedText, tags: Any = None) -> str:
    """The file with tags 1, 2, …"""
    return "".join(write_tagged(text, [str(k + 1) for k in range(text.tokens)] if tags is None else tags))


def test_columns(file: Path) -> None:
    assert written(read(file, "# x\n" + VERSE)) == "to TO B-VP 1\nbe VB I-VP 2\n\nor CC O 3\nnot RB O 4\n\n"
    assert written(read(file, VERSE.replace(" ", "\t"))) == VERSE_WITH_TABS
    assert written(read(file, VERSE, columns=("w", "-", "tag"))).startswith("to TO B-VP 1\n")


VERSE_WITH_TABS = "to\tTO\tB-VP\t1\nbe\tVB\tI-VP\t2\n\nor\tCC\tO\t3\nnot\tRB\tO\t4\n\n"


def test_lists_of_lists_and_arrays(file: Path) -> None:
    text = read(file, VERSE)
    expected = written(text, ["1", "2", "3", "4"])
    assert written(text, [["1", "2"], ("3", "4")]) == expected
    assert written(text, np.array(["1", "2", "3", "4"])) == expected
    assert len(list(write_tagged(text, [["1", "2"], ["3", "4"]]))) == 2


@pytest.mark.parametrize("tags", [[], ["1"], [["1", "2"]], [["1", "2", "3"], ["4"]], [["1", "2"], ["3", "4"], []]])
def test_tags_that_do_not_fit(file: Path, tags: Any) -> None:
    with pytest.raises(InputError, match="one tag for each of its 4 tokens"):
        write_tagged(read(file, VERSE), tags)


def test_a_text_that_was_not_read() -> None:
    text = TaggedText((TextColumn("w", np.zeros(1, np.int32), ("a",)),), None, np.array([0, 1]))
    with pytest.raises(InputError, match="not read from files"):
        write_tagged(text, ["O"])


def test_columns_without_the_tag_that_a_model_knows(file: Path) -> None:
    schema = read(file, VERSE).schema
    assert written(read(file, "to TO\n", schema, with_tags=False)) == "to TO 1\n\n"
    assert written(read(file, "to TO B\n", schema, with_tags=False)) == "to TO B 1\n\n"


def test_tabs_where_one_file_has_them_or_a_tag_has_a_blank(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x O\n")
    (tmp_path / "b").write_text("New York\tB\n")
    text = read_tagged([tmp_path / "a", tmp_path / "b"], TaggingConfig())
    assert written(text) == "x\tO\t1\n\nNew York\tB\t2\n\n"
    assert written(read(tmp_path / "a", "x O\n"), ["a b"]) == "x\tO\ta b\n\n"


def test_conllu(file: Path) -> None:
    row = "1\tVas\taller\tVERB\tV\t_\t0\troot\t_\tGloss=go to"
    text = read(file, f"# c\n{row}\n1-2\tau\t_\t_\t_\t_\t_\t_\t_\t_\n", format="conllu")
    assert written(text) == f"{row}\t1\n\n"


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ("BESBME", "ab c def"),
        ("SSSSSS", "a b c d e f"),
        ("BMMMME", "abcdef"),
        ("MMSMEE", "ab c de f"),  # what no segmentation is tagged like
        ("BBEBMM", "a bc def"),
    ],
)
def test_words_from_tags(file: Path, tags: str, words: str) -> None:
    assert written(read(file, "abc def\n", format="segmented"), list(tags)) == words + "\n"


def test_a_line_for_every_line_of_segmented_text(file: Path) -> None:
    text = read(file, "\nab\n \n\ncd", format="segmented", with_tags=False)
    assert written(text, list("SSBE")) == "\na b\n\n\ncd\n"


def test_json_objects_keep_what_they_had(file: Path) -> None:
    first = '{"id":1, "tokens": ["a", "b"], "tags": ["X", "Y"] }'
    text = read(file, first + '\n{"tokens": [], "tags": []}\n{"tokens":["c"],"tags":["Z"]}', format="jsonl")
    out = written(text, ["1", "é", "3"]).splitlines()
    assert out[0] == '{"id":1, "tokens": ["a", "b"], "tags": ["X", "Y"], "predicted": ["1", "é"]}'
    assert out[1] == '{"tokens": [], "tags": [], "predicted": []}'
    assert json.loads(out[2]) == {"tokens": ["c"], "tags": ["Z"], "predicted": ["3"]}


def test_an_earlier_prediction_is_replaced(file: Path) -> None:
    text = read(file, '{"tokens": ["c"], "predicted": ["Z"], "tags": ["Y"]}', format="jsonl")
    assert json.loads(written(text)) == {"tokens": ["c"], "predicted": ["1"], "tags": ["Y"]}


# -- random texts, written and read again ------------------------------------------------------------------------------

Sentences = list[list[tuple[str, str]]]


def as_columns(sentences: Sentences) -> str:
    return "".join("".join(f"{w} X {t}\n" for w, t in sentence) + "\n" for sentence in sentences)


def as_conllu(sentences: Sentences) -> str:
    rest = "\t_" * 6
    rows = [[f"{k}\t{w}\t_\t{t}{rest}\n" for k, (w, t) in enumerate(sentence, 1)] for sentence in sentences]
    return "".join("# c\n" + "".join(each) + "\n" for each in rows)


def as_json(sentences: Sentences) -> str:
    objects = [{"tokens": [w for w, _ in sentence], "tags": [t for _, t in sentence]} for sentence in sentences]
    return "".join(json.dumps(each, ensure_ascii=k % 2 == 0) + "\n" for k, each in enumerate(objects))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("form", "data_of", "again"),
    [
        ("conll", as_columns, {"format": "conll"}),
        ("conllu", as_conllu, {"format": "conll", "columns": ("-", "w", *"-" * 8, "tag")}),
        ("jsonl", as_json, {"format": "jsonl", "columns": ("tokens",), "tag_column": "predicted"}),
    ],
)
def test_what_is_written_is_read_again(file: Path, seed: int, form: str, data_of: Any, again: Any) -> None:
    rng = random.Random(seed)
    letters = ["a", "b", "é", "水", "🙂", "#", "-", '"', "\\", "{", "'"]

    def token() -> tuple[str, str]:
        return "".join(rng.choices(letters, k=rng.randint(1, 4))), rng.choice(["O", "B-X", "I-X"])

    sentences = [[token() for _ in range(rng.randint(1, 9))] for _ in range(rng.randint(1, 20))]
    text = read(file, data_of(sentences), format=form)
    predicted = [[f"P-{tag}" for _, tag in sentence] for sentence in sentences]
    second = read(file, written(text, predicted), **again)
    assert [[row[0] for row in sentence] for sentence in sentences_of(second)] == [[w for w, _ in s] for s in sentences]
    assert [[row[-1] for row in sentence] for sentence in sentences_of(second)] == predicted


@pytest.mark.parametrize("seed", range(4))
def test_segmented_text_is_written_as_it_was(file: Path, seed: int) -> None:
    rng = random.Random(seed)
    lines = [[rng.choice(["水", "ab", "🙂é!", "x"]) for _ in range(rng.randint(0, 9))] for _ in range(20)]
    data = "".join(" ".join(words) + "\n" for words in [["first"], *lines])
    text = read(file, data, format="segmented")
    assert text.tags is not None
    assert written(text, [text.tags.strings(*bound) for bound in pairwise(text.offsets.tolist())]) == data
