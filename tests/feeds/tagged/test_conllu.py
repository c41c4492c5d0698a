"""CoNLL-U: ten columns with names, multiword tokens, empty nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from feeds.tagged.files import names_of, read, sentences_of
from hogwild.errors import ConfigError, InputError

FRENCH = """\
# sent_id = 1
# text = Vas au nouveau parc.
1\tVas\taller\tVERB\tV\tMood=Ind\t0\troot\t_\t_
2-3\tau\t_\t_\t_\t_\t_\t_\t_\t_
2\tà\tà\tADP\tP\t_\t4\tcase\t_\t_
3\tle\tle\tDET\tD\t_\t4\tdet\t_\tGloss=the one
3.1\tnew\tnew\tX\tX\t_\t_\t_\t_\t_

#comment without a blank
1\t#\t#\tSYM\t#\t_\t0\troot\t_\tSpaceAfter=No
"""
WORDS = [[("Vas", "VERB"), ("à", "ADP"), ("le", "DET")], [("#", "SYM")]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "fr.conllu"


def test_words_and_tags(file: Path) -> None:
    text = read(file, FRENCH)
    assert names_of(text) == ["w"]
    assert sentences_of(text) == WORDS
    assert text.schema["format"] == "conllu"
    assert "1 multiword line left out." in text.notes
    assert "1 empty node left out." in text.notes
    assert "3 comment lines left out." in text.notes
    assert "Columns: w; tags: upos (--columns and --tag-column say otherwise)." in text.notes


@pytest.mark.parametrize("data", [FRENCH.replace("\n", "\r\n"), "\ufeff" + FRENCH + "\n\n", FRENCH.rstrip("\n")])
def test_line_ends(file: Path, data: str) -> None:
    assert sentences_of(read(file, data)) == WORDS


@pytest.mark.parametrize(
    ("options", "names", "second"),
    [
        ({"tag_column": "xpos"}, ["w"], ("à", "P")),
        ({"tag_column": "4"}, ["w"], ("à", "P")),
        ({"columns": ("form", "lemma")}, ["w", "lemma"], ("à", "à", "ADP")),
        ({"columns": ("w", "upos")}, ["w"], ("à", "ADP")),
        ({"columns": ("w", "pos=xpos")}, ["w", "pos"], ("à", "P", "ADP")),
        ({"columns": ("w", "pos=upos"), "tag_column": "deprel"}, ["w", "pos"], ("à", "ADP", "case")),
    ],
)
def test_columns_by_name(file: Path, options: Any, names: list[str], second: tuple[str, ...]) -> None:
    text = read(file, FRENCH, **options)
    assert names_of(text) == names
    assert sentences_of(text)[0][1] == second


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ("w", "wordform")}, r"fr\.conllu: there is no column `wordform` \(--columns\)"),
        ({"tag_column": "ner"}, r"there is no column `ner` \(--tag-column\)"),
        ({"tag_column": "10"}, r"there is no column `10`"),
        ({"columns": ("a=form", "a=lemma")}, r"names `a` twice"),
    ],
)
def test_columns_that_cannot_be(file: Path, options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(file, FRENCH, **options)


def test_a_model_reads_text_without_tags(file: Path) -> None:
    schema = read(file, FRENCH, columns=("w", "pos=xpos")).schema
    blank = FRENCH.replace("VERB", "_").replace("ADP", "_").replace("DET", "_").replace("SYM", "_")
    text = read(file, blank, schema, with_tags=False)
    assert names_of(text) == ["w", "pos"]
    assert text.tags is None
    assert sentences_of(text)[0] == [("Vas", "V"), ("à", "P"), ("le", "D")]
    assert "4 tokens tagged `_`, which in CoNLL-U means no tag." in read(file, blank).notes


def test_a_model_of_conllu_reads_plain_columns(file: Path) -> None:
    schema = read(file, FRENCH).schema
    assert sentences_of(read(file, "à\nle\n", schema, with_tags=False, format="conll")) == [[("à",), ("le",)]]
    assert sentences_of(read(file, "à ADP\n", schema, format="conll")) == [[("à", "ADP")]]


def test_bad_lines(file: Path) -> None:
    with pytest.raises(InputError, match=r"fr\.conllu:5: `x` is no number of a token \(column id\)"):
        read(file, FRENCH.replace("\n2\t", "\nx\t"))
    with pytest.raises(InputError, match=r"fr\.conllu:5: expected 10 columns, found 9"):
        read(file, FRENCH.replace("\t4\tcase", "\t4"))
    text = read(file, FRENCH.replace("\n2\t", "\nx\t"), bad_lines="skip", bad_share=0.5)
    assert sentences_of(text) == WORDS[1:]
