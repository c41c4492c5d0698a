"""Segmented text: characters as tokens, B, M, E and S as tags."""

from __future__ import annotations

import random
from functools import partialmethod
from itertools import pairwise
from pathlib import Path

import pytest

from feeds.tagged.files import names_of, read, sentences_of
from hogwild.config import TaggingConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.tagged.read import read_tagged
from hogwild.feeds.tagged.write import write_tagged
from reference import tagging as twin

LINES = "大 多数 的 加长型\n\n  A-AVG 🙂 \n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "zh.txt"


def test_characters_and_tags(file: Path) -> None:
    text = read(file, LINES, format="segmented")
    assert names_of(text) == ["w"]
    letters = ["".join(letter for letter, _ in sentence) for sentence in sentences_of(text)]
    assert letters == ["大多数的加长型", "A-AVG🙂"]
    assert ["".join(tag for _, tag in sentence) for sentence in sentences_of(text)] == ["SBESBME", "BMMMES"]
    assert text.schema == {"format": "segmented", "columns": ["w", "tag"], "tag": 1, "fields": []}
    assert text.notes == ()


def test_all_white_space_separates(file: Path) -> None:
    text = read(file, "\ufeff甲乙\u3000丙\u00a0丁\t戊\r\n己  庚\u2028辛", format="segmented")
    assert ["".join(tag for _, tag in sentence) for sentence in sentences_of(text)] == ["BESSS", "SSS"]


def test_only_tags_that_occur(file: Path) -> None:
    text = read(file, "a b\n", format="segmented")
    assert text.tags is not None
    assert text.tags.values == ("S",)


def test_raw_text_without_tags(file: Path) -> None:
    schema = read(file, LINES, format="segmented").schema
    raw = read(file, "大多数的\n加长型\n", schema, with_tags=False)
    assert raw.tags is None
    assert sentences_of(raw) == [[(letter,) for letter in line] for line in ("大多数的", "加长型")]
    assert raw.notes == ()
    divided = read(file, "大 多数的\n加长型\n", schema, with_tags=False)
    assert sentences_of(divided) == sentences_of(raw)
    assert divided.notes == ("White space in 1 line left out: words are found anew.",)


def test_a_model_of_segmented_text_reads_columns(file: Path) -> None:
    schema = read(file, LINES, format="segmented").schema
    assert sentences_of(read(file, "大\n多\n", schema, with_tags=False, format="conll")) == [[("大",), ("多",)]]
    assert sentences_of(read(file, "大 S\n多 B\n", schema, format="conll")) == [[("大", "S"), ("多", "B")]]


@pytest.mark.parametrize("seed", range(10))
def test_random_texts_are_read_as_the_twin_reads_them(file: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Source, "blocks", partialmethod(Source.blocks, size=50))
    rng = random.Random(seed)
    letters = ["a", "é", "水", "🙂", " ", " ", "  ", "\u3000", "\n", "\n", "\u00a0", "\t", "\x1c", "\u200b"]
    data = "x" + "".join(rng.choice(letters) for _ in range(rng.randint(1, 400)))
    assert sentences_of(read(file, data, format="segmented")) == twin.segmented_sentences(data)


def test_a_line_of_100_000_characters(file: Path) -> None:
    text = read(file, "水火 " * 50_000 + "\n火\n", format="segmented")
    assert len(text) == 2
    assert text.tokens == 100_001


def test_bad_input(file: Path) -> None:
    with pytest.raises(InputError, match="no sentences"):
        read(file, " \n\u3000\n", format="segmented")
    with pytest.raises(InputError, match="no sentences"):
        read(file, "", format="segmented")
    with pytest.raises(InputError, match=r"zh\.txt:2:2: byte 0xb4 is not UTF-8"):
        read(file, "大\n".encode() + b"a\xb4\xf3\n", format="segmented")
    with pytest.raises(ConfigError, match="segmented text has no columns"):
        read(file, LINES, format="segmented", columns=("w", "tag"))
    schema = read(file, "a x O\n").schema
    with pytest.raises(InputError, match="the model needs a column `pos`; the columns are w"):
        read(file, LINES, schema, format="segmented")


# -- lines of tokens ------------------------------------------------------------------------------------------------


def test_lines_of_tokens(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Source, "blocks", partialmethod(Source.blocks, size=40))
    model = read(file, "to TO\nbe VB\n").schema
    data = "\ufeffThe  dog\tbarks .\r\n\n \u6c34\u00a0x ok\nlast" + "\na b c" * 20
    file.write_text(data, encoding="utf-8")
    text = read_tagged(file, TaggingConfig(format="tokens"), schema=model, with_tags=False)
    words = [text.columns[0].strings(a, b) for a, b in pairwise(text.offsets.tolist())]
    expected = [["The", "dog", "barks", "."], ["\u6c34\u00a0x", "ok"], ["last"], *([["a", "b", "c"]] * 20)]
    assert words == expected
    lines = "".join(write_tagged(text, [["T"] * len(row) for row in words]))
    assert lines.startswith("The T\ndog T\nbarks T\n. T\n\n")


def test_what_lines_of_tokens_are_not_for(file: Path) -> None:
    with pytest.raises(InputError, match="lines of tokens have no tags to train or evaluate on"):
        read(file, "to be", format="tokens")
    schema = read(file, "a x O\n").schema
    with pytest.raises(InputError, match="the model needs a column `pos`; the columns are w"):
        read_tagged(file, TaggingConfig(format="tokens"), schema=schema, with_tags=False)
    with pytest.raises(ConfigError, match="lines of tokens have no columns"):
        read_tagged(file, TaggingConfig(format="tokens", columns=("w",)), with_tags=False)
    file.write_text("the dog barks\nthe dog\n")
    narrow = {"format": "conll", "columns": ["w", "tag"], "tag": 1, "fields": []}
    with pytest.raises(InputError, match=r"check --format \(tokens: a sentence a line\)"):
        read_tagged(file, schema=narrow, with_tags=False)
