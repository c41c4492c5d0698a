"""Tokens in columns: how lines are divided, what they are, which column is what."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import sys
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feeds.tagged.files import VERSE, names_of, read, sentences_of
from hogwild.config import TaggingConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.tagged.read import read_tagged
from reference import tagging as twin

POEM = [[("to", "TO", "B-VP"), ("be", "VB", "I-VP")], [("or", "CC", "O"), ("not", "RB", "O")]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "train.txt"


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences that do not fit into a block."""
    monkeypatch.setattr(Source, "blocks", partialmethod(Source.blocks, size=40))


# -- what lines are ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        VERSE,
        VERSE.replace(" ", "\t"),
        VERSE.replace(" ", "   "),
        VERSE.replace("\n", "\r\n"),
        VERSE.replace(" ", "\t").replace("\n", " \r\n"),
        "\ufeff" + VERSE,
        VERSE.rstrip("\n"),
        VERSE.replace("\n\n", "\n\n\n\n") + "\n\n",
        "\n \n" + VERSE.replace("\n\n", "\n \t \n"),
        VERSE.replace(" ", "\t").replace("\n\n", "\n\t\t\n"),
        "# a comment of many words\n" + VERSE,
        "#\n" + VERSE.replace("or ", "# no\nor ") + "#\n",
        "#begin document (x); part 0\n" + VERSE + "#end document\n",
        "-DOCSTART- -X- O\n\n" + VERSE,
        "-DOCSTART-\n" + VERSE.replace("\n\n", "\n-DOCSTART- -X- -X- O\n"),
    ],
)
def test_the_same_sentences_in_many_guises(file: Path, data: str) -> None:
    text = read(file, data)
    assert names_of(text) == ["w", "pos"]
    assert sentences_of(text) == POEM
    assert len(text) == 2
    assert text.tokens == 4
    assert repr(text) == f"<TaggedText of {file}: 2 sentences, 4 tokens, columns w, pos, 3 tags>"


def test_what_is_left_out_is_said(file: Path) -> None:
    notes = read(file, "# two\n-DOCSTART- -X- O O\n\n" + VERSE + "-DOCSTART- -X- O\n# x\n").notes
    assert "2 comment lines left out." in notes
    assert "2 -DOCSTART- lines left out." in notes
    assert not any("left out" in note for note in read(file, VERSE).notes)


def test_a_hash_with_columns_is_a_token(file: Path) -> None:
    data = "# a longer comment\n# # B-NP\n# 1 I-NP\n\nx NN B-NP\ny NN I-NP\n"
    assert sentences_of(read(file, data))[0] == [("#", "#", "B-NP"), ("#", "1", "I-NP")]
    assert sentences_of(read(file, "a O\n#tag O\n"))[0] == [("a", "O"), ("#tag", "O")]
    assert sentences_of(read(file, "a\n#\nb\n# not this\n", with_tags=False)) == [[("a",), ("#",), ("b",)]]


def test_a_comment_that_looks_like_a_token_is_said(file: Path) -> None:
    odd = read(file, VERSE + "\n# id 7\nx NN O\n\n# id 8\ny NN O\n").notes
    assert any("2 lines with the token `#`" in note and "`7`, `8`" in note for note in odd)
    assert not any("`#`" in note for note in read(file, VERSE + "# # O\n").notes)
    assert not any("`#`" in note for note in read(file, VERSE + "# # #\n").notes)  # the sign of a treebank


def test_a_token_that_begins_like_a_document(file: Path) -> None:
    data = "-DOC x O\n-- y O\n- z O\n"
    assert [row[0] for row in sentences_of(read(file, data))[0]] == ["-DOC", "--", "-"]


def test_blanks_belong_to_values_where_tabs_separate(file: Path) -> None:
    text = read(file, "New York\tNNP\tB-LOC\nis nice\tVB\tO \n")
    assert sentences_of(text) == [[("New York", "NNP", "B-LOC"), ("is nice", "VB", "O")]]
    assert sentences_of(read(file, "a\t\tO\nb\tX\tO\n"))[0] == [("a", "", "O"), ("b", "X", "O")]


def test_only_ascii_white_space_separates(file: Path) -> None:
    data = "10\u00a0000 CD O\na\u3000b NN O\n\u2028 X O\n\u0085 X O\n"
    assert [row[0] for row in sentences_of(read(file, data))[0]] == ["10\u00a0000", "a\u3000b", "\u2028", "\u0085"]


def test_one_stray_tab_is_a_blank(file: Path) -> None:
    assert sentences_of(read(file, VERSE.replace("or ", "or\t"))) == POEM


def test_comments_without_end_before_the_first_token(file: Path) -> None:
    assert sentences_of(read(file, "# a longer comment\n\n" * 3000 + VERSE)) == POEM


def test_many_columns(file: Path) -> None:
    data = "".join(" ".join(f"v{(k * t) % 7}" for k in range(30)) + "\n" for t in range(5))
    text = read(file, data)
    assert names_of(text) == ["w", "pos", *(f"c{k}" for k in range(2, 29))]
    assert sentences_of(text)[0][3] == tuple(f"v{(k * 3) % 7}" for k in range(30))


@pytest.mark.parametrize("seed", range(20))
def test_random_files_are_read_as_the_twin_reads_them(file: Path, seed: int, small_blocks: None) -> None:
    rng = random.Random(seed)
    columns = rng.randint(1, 5)
    tabs = columns > 1 and rng.random() < 0.5
    values = ["a", "b", "é", "水", "🙂", "#", "##", "-", "-x", "O", "B-NP", "longer" * 9]
    values += ["x y", ""] if tabs else []
    ends = rng.choice([["\n"], ["\r\n"], ["\n", "\r\n", " \n"]])
    parts = []
    for _ in range(rng.randint(1, 60)):
        kind = rng.random()
        if kind < 0.15:
            parts.append(rng.choice(["", " ", "  "]))
        elif kind < 0.2:
            parts.append(rng.choice(["-DOCSTART-", "# " + "x " * 9, "-DOCSTART- -X- O"]))
        else:
            row = [rng.choice(values) for _ in range(columns)]
            row[0] = row[0].strip() or "z"
            row[-1] = row[-1].strip() or "T"
            blank = "\t" if tabs else rng.choice([" ", "  "])
            parts.append(blank.join(row))
    # A first line that is no comment: what is judged by must not be random.
    parts.insert(0, ("\t" if tabs else " ").join(["first"] * columns))
    data = "".join(part + rng.choice(ends) for part in parts)[: rng.choice([None, -1])].encode()
    with_tags = columns > 1
    expected = twin.conll_sentences(data, columns, tabs)
    assert sentences_of(read(file, data, with_tags=with_tags)) == expected


def test_sentences_across_blocks(file: Path, small_blocks: None) -> None:
    long = [(f"word{k}", f"T{k % 3}") for k in range(50)]
    data = "".join(f"{w} {t}\n" for w, t in long)
    text = read(file, data + "\nx T0\n\t\n" + data + "# the end\n\ny T1\n")
    assert sentences_of(text) == [long, [("x", "T0")], long, [("y", "T1")]]
    with pytest.raises(InputError, match=r"train\.txt:57: expected 2 columns, found 3"):
        read(file, data + "\n" + "x O\n" * 5 + "x O O\n")


def test_a_very_long_sentence_and_a_very_long_value(file: Path) -> None:
    text = read(file, "".join(f"w{k % 1000} T{k % 2}\n" for k in range(100_000)) + "x" * 5_000_000 + " T0\n")
    assert len(text) == 1
    assert text.tokens == 100_001
    assert len(text.columns[0].values[-1]) == 5_000_000
    assert f"{file} has no blank line: its 100,001 tokens are one sentence." in text.notes


def test_a_line_of_blanks_without_end(file: Path) -> None:
    blanks = " " * 3_000_000
    assert sentences_of(read(file, f"{VERSE}{blanks}\n{blanks}x Y Z\n"))[2] == [("x", "Y", "Z")]


# -- where files come from ---------------------------------------------------------------------------------------------


def test_compressed_files_globs_and_several(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(VERSE.encode()))
    (tmp_path / "b.txt.xz").write_bytes(lzma.compress(VERSE.replace(" ", "\t").encode()))
    (tmp_path / "c.txt.bz2").write_bytes(bz2.compress(b"x Y Z"))
    text = read_tagged(str(tmp_path / "*.txt.*"), TaggingConfig())
    assert sentences_of(text) == [*POEM, *POEM, [("x", "Y", "Z")]]
    assert text.source == f"{tmp_path / 'a.txt.gz'} and 2 more"


def test_standard_input_and_a_command(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(VERSE.encode())))
    assert sentences_of(read_tagged("-", TaggingConfig())) == POEM
    assert sentences_of(read(file, VERSE.replace(" ", "|"), pipe="tr '|' ' '")) == POEM
    with pytest.raises(InputError, match="`false` failed with exit code"):
        read(file, VERSE, pipe="false")


def test_other_columns_in_the_second_file(tmp_path: Path) -> None:
    for name, data in (("a", VERSE), ("b", "x O\n")):
        (tmp_path / name).write_text(data)
    with pytest.raises(InputError, match="b: 2 columns found, but 3 in the file before"):
        read_tagged([tmp_path / "a", tmp_path / "b"], TaggingConfig())


def test_empty_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text(VERSE)
    (tmp_path / "c").write_text("\n\n# none\n-DOCSTART- O\n")
    for name in "ac":
        with pytest.raises(InputError, match=f"{name}: no sentences; is the file empty"):
            read_tagged(tmp_path / name, TaggingConfig())
    text = read_tagged([tmp_path / name for name in "abc"], TaggingConfig())
    assert sentences_of(text) == POEM
    assert f"No sentence in {tmp_path / 'a'}, {tmp_path / 'c'}." in text.notes


# -- which column is what ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "names", "first"),
    [
        ({}, ["w", "pos"], ("to", "TO", "B-VP")),
        ({"tag_column": "2"}, ["w", "pos"], ("to", "TO", "B-VP")),
        ({"tag_column": "-1"}, ["w", "pos"], ("to", "TO", "B-VP")),
        ({"tag_column": "1"}, ["w"], ("to", "TO")),
        ({"tag_column": "pos"}, ["w"], ("to", "TO")),
        ({"tag_column": "0"}, ["w"], ("TO", "to")),
        ({"columns": ("w", "tag", "-")}, ["w"], ("to", "TO")),
        ({"columns": ("w", "tag", "x")}, ["w", "x"], ("to", "B-VP", "TO")),
        ({"columns": ("w", "x", "y")}, ["w", "x"], ("to", "TO", "B-VP")),
        ({"columns": ("-", "w", "y")}, ["w"], ("TO", "B-VP")),
        ({"columns": ("w", "x", "y"), "tag_column": "x"}, ["w", "y"], ("to", "B-VP", "TO")),
        ({"columns": ("w", "-", "-"), "tag_column": "1"}, ["w"], ("to", "TO")),
        ({"columns": ("tag", "-", "w")}, ["w"], ("B-VP", "to")),
    ],
)
def test_columns_by_name_and_number(file: Path, options: Any, names: list[str], first: tuple[str, ...]) -> None:
    text = read(file, VERSE, **options)
    assert names_of(text) == names
    assert sentences_of(text)[0][0] == first


def test_what_was_decided_is_said(file: Path) -> None:
    assert "Columns: w, pos; tags: column 2 (--columns and --tag-column say otherwise)." in read(file, VERSE).notes
    notes = read(file, VERSE, tag_column="1").notes
    assert "Columns: w; tags: column 1; not used: column 2 (--columns and --tag-column say otherwise)." in notes
    assert read(file, VERSE, columns=("w", "tag", "-"), format="conll").notes == ()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tag_column": "3"}, ConfigError, r"train\.txt: there is no column `3` \(--tag-column\); the columns"),
        ({"tag_column": "-4"}, ConfigError, r"there is no column `-4`"),
        ({"tag_column": "tga"}, ConfigError, r"there is no column `tga` .*Did you mean `tag`\?"),
        ({"columns": ("w", "x", "y"), "tag_column": "pos"}, ConfigError, r"no column `pos`.* the columns are w, x, y"),
        ({"columns": ("w", "tag")}, InputError, r"train\.txt: 3 columns found, 2 expected \(w, tag\); name all"),
        ({"columns": ("w", "pos", "x", "tag")}, InputError, r"3 columns found, 4 expected"),
        ({"columns": ("w", "w", "tag")}, ConfigError, r"names `w` twice"),
        ({"columns": ("w", "x y", "tag")}, ConfigError, r"cannot be named `x y`"),
        ({"columns": ("w", "w=x", "tag")}, ConfigError, r"cannot be named `w=x`"),
        ({"columns": ("w", "x", "-")}, ConfigError, r"the last column is `-`, and none is named `tag`"),
        ({"columns": ("-", "-", "tag")}, ConfigError, r"no column is left for features"),
        ({"format": "conllu"}, InputError, r"3 columns found, but CoNLL-U has 10"),
    ],
)
def test_columns_that_cannot_be(file: Path, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read(file, VERSE, **options)


def test_words_alone_have_no_tags(file: Path) -> None:
    with pytest.raises(InputError, match="one column only"):
        read(file, "to\nbe\n")
    text = read(file, "to\nbe\n\nor\n", with_tags=False)
    assert text.tags is None
    assert sentences_of(text) == [[("to",), ("be",)], [("or",)]]


def test_one_tag_is_fine(file: Path) -> None:
    text = read(file, "a O\nb O\n")
    assert text.tags is not None
    assert text.tags.values == ("O",)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (VERSE + "x NN\n", r"train\.txt:6: expected 3 columns, found 2\. Correct the line, check --format"),
        (VERSE + "\nx NN O\n\n\ny NN O O\n", r"train\.txt:10: expected 3 columns, found 4"),
        ("\ufeff\r\n" + VERSE.replace("be VB", "be"), r"train\.txt:3: expected 3 columns, found 2"),
        (VERSE.replace(" ", "\t") + "x\ty\tz\t\n", r"train\.txt:6: expected 3 columns, found 4"),
        (VERSE.replace(" ", "\t") + "x\ty\t\n", r"train\.txt:6: the tag \(column 2\) is empty"),
        (VERSE + "#x y\n", r"train\.txt:6: expected 3 columns, found 2"),
        (VERSE.replace("\n", "\r"), r"carriage returns only"),
        ("a " * 2000 + "\n", r"2,000 columns found; is this the right --format"),
        (VERSE.encode("utf-16"), r"UTF-16"),
        (VERSE.encode() + b"\nM\xfcller NN O\n", r"train\.txt:7:2: byte 0xfc is not UTF-8"),
        ((VERSE + "ü NN O\n").encode() + b"\xe9t\xe9 NN O\n", r"train\.txt:7:1: byte 0xe9 is not UTF-8"),
        (VERSE.encode() + b"\0 NN O\n", r"train\.txt:6:1: a NUL byte"),
    ],
)
def test_bad_input_says_where_and_what(file: Path, data: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(file, data)


def test_bytes_that_are_not_utf8_may_be_replaced(file: Path) -> None:
    text = read(file, VERSE.encode() + b"M\xfcller\xff NN O\n", invalid_utf8="replace")
    assert sentences_of(text)[1][-1] == ("M?ller?", "NN", "O")
    assert "2 bytes not UTF-8, read as `?`." in text.notes
    with pytest.raises(InputError, match="a NUL byte"):
        read(file, VERSE.encode() + b"\0 NN O\n", invalid_utf8="replace")


def test_bad_sentences_may_be_skipped(file: Path, small_blocks: None) -> None:
    data = VERSE + "bad line\nworse\n\n" + VERSE + "\n" + VERSE.replace("be VB", "be")
    text = read(file, data, bad_lines="skip", bad_share=0.5)
    assert sentences_of(text) == [POEM[0], *POEM, POEM[1]]
    expected = f"2 of 6 sentences malformed and skipped: {file}:6: expected 3 columns, found 2; {file}:16: expected"
    assert any(note.startswith(expected) for note in text.notes)
    with pytest.raises(InputError, match=r"2 of 6 sentences are malformed, more than the share 0\.3"):
        read(file, data, bad_lines="skip", bad_share=0.3)
    with pytest.raises(InputError, match="1 of 1 sentences are malformed"):
        read(file, "a\tb\nc\t\n", bad_lines="skip", bad_share=0.5)


def test_an_empty_tag_costs_its_sentence(file: Path) -> None:
    data = "a\tO\nb\t\n\na\tO\nc\tO\n\nb\t\n"
    text = read(file, data, bad_lines="skip", bad_share=1)
    assert sentences_of(text) == [[("a", "O"), ("c", "O")]]
    assert np.array_equal(text.columns[0].codes, [0, 1])
    assert "2 of 3 sentences malformed and skipped" in " ".join(text.notes)
