"""Real data: the numbers that are known of it, and the same tokens as a plain loop finds."""

from __future__ import annotations

import lzma
from collections import Counter

import pytest

from feeds.tagged.files import check, names_of, sentences_of
from hogwild.config import TaggingConfig
from hogwild.feeds.tagged.read import read_tagged
from hogwild.feeds.tagged.write import write_tagged
from places import DATA
from reference import tagging as twin

pytestmark = [pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data"), pytest.mark.data]


def test_chunks() -> None:
    path = DATA / "conll2000" / "train.txt.xz"
    text = check(read_tagged(path))
    assert (len(text), text.tokens) == (8936, 211727)
    assert names_of(text) == ["w", "pos"]
    assert text.tags is not None
    assert len(text.tags.values) == 22
    assert Counter(text.tags.strings())["B-NP"] == 55081
    assert sentences_of(text) == twin.conll_sentences(lzma.decompress(path.read_bytes()), 3, False)
    assert not any("`#`" in note for note in text.notes)  # pound signs are tokens


@pytest.mark.parametrize("options", [{"tag_column": "1"}, {"columns": ("w", "tag", "-")}])
def test_parts_of_speech(options: dict[str, object]) -> None:
    path = DATA / "ud_ewt" / "test.conll.xz"
    text = check(read_tagged(path, TaggingConfig(**options)))  # type: ignore[arg-type]
    rows = twin.conll_sentences(lzma.decompress(path.read_bytes()), 3, True)
    assert names_of(text) == ["w"]
    assert sentences_of(text) == [[row[:2] for row in sentence] for sentence in rows]
    assert text.tags is not None
    assert len(text.tags.values) == 17
    lines = [f"{w}\t{u}\t{x}\t{u}\n" for sentence in rows for w, u, x in sentence]
    assert "".join(write_tagged(text, text.tags.strings())).replace("\n\n", "\n") == "".join(lines)


def test_words_of_chinese() -> None:
    path = DATA / "segmentation" / "udc_dev.txt.xz"
    text = check(read_tagged(path))
    plain = lzma.decompress(path.read_bytes()).decode()
    assert text.schema["format"] == "segmented"
    assert sentences_of(text) == twin.segmented_sentences(plain)
    assert text.tags is not None
    assert "".join(write_tagged(text, text.tags.strings())) == plain
