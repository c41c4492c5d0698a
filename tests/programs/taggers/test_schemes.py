"""Schemes: what they allow is exactly what some placing of chunks is written as."""

from __future__ import annotations

import random
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from hogwild.config import TaggingConfig
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.tagged.open import open_tagging
from hogwild.feeds.tagged.schemes import (
    SCHEMES,
    SchemeErrors,
    allowed,
    chunks_of,
    coded,
    convert_tags,
    errors_of,
    kind_of,
    scheme_of,
    strays_of,
)
from reference.tagging import all_chunkings, encode

LETTERS = {"iob1": "BI", "iob2": "BI", "iobes": "BIES", "bmes": "BMES", "bilou": "BILU"}
TAGS = {scheme: ["O", *(f"{a}-{b}" for b in "XY" for a in letters)] for scheme, letters in LETTERS.items()}


def keeps(sentence, tags, rules):
    """Whether a sentence of tags follows the rules, one pair at a time."""
    codes = [tags.index(tag) for tag in sentence]
    pairs = all(rules.pairs[before, after] for before, after in pairwise(codes))
    return bool(rules.first[codes[0]] and pairs and rules.last[codes[-1]])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_allowed_is_what_chunks_are_written_as(scheme, length):
    tags = TAGS[scheme]
    rules = allowed(tags, scheme)
    written = {tuple(encode(chunks, length, scheme)) for chunks in all_chunkings(length, "XY")}
    assert {sentence for sentence in product(tags, repeat=length) if keeps(sentence, tags, rules)} == written


def test_letters_alone():
    tags = ["B", "M", "E", "S"]
    rules = allowed(tags, "bmes")
    assert rules.first.tolist() == [True, False, False, True]
    assert rules.last.tolist() == [False, False, True, True]
    follows = {before: {tags[k] for k in np.flatnonzero(rules.pairs[tags.index(before)])} for before in tags}
    assert follows == {"B": {"M", "E"}, "M": {"M", "E"}, "E": {"B", "S"}, "S": {"B", "S"}}


def test_no_scheme_allows_all():
    rules = allowed(["NOUN", "VERB"], "")
    assert rules.first.all()
    assert rules.last.all()
    assert rules.pairs.shape == (2, 2)
    assert rules.pairs.all()


def test_tags_of_no_scheme_are_bound_as_they_are_read():
    tags = ["O", "B-X", "I-X", "0", "Q-X"]
    rules = allowed(tags, "iob2")
    assert rules.first.tolist() == [True, True, False, True, False]
    assert rules.pairs[:, 4].tolist() == [False, True, True, False, True]
    assert rules.pairs[3].tolist() == [True, True, False, True, False]
    assert strays_of(tags) == ("0", "Q-X")


@pytest.mark.parametrize(
    ("tags", "kind", "scheme"),
    [
        ("O B-X I-X", "chunks", "iob2"),
        ("B-X I-X", "chunks", "iob2"),
        ("O B-X", "chunks", "iob2"),
        ("O I-X", "chunks", "iob1"),
        ("O B-X I-X I-Y", "chunks", "iob1"),
        ("O B I", "chunks", "iob2"),
        ("B I", "words", "iob2"),
        ("O B-X I-X E-X S-X", "chunks", "iobes"),
        ("O S-X", "chunks", "iobes"),
        ("O B-X E-X", "chunks", "iobes"),
        ("B M E S", "words", "bmes"),
        ("B E S", "words", "bmes"),
        ("B-X M-X E-X S-X", "chunks", "bmes"),
        ("O B M E W", "chunks", "bmes"),
        ("O B-X I-X L-X U-X", "chunks", "bilou"),
        ("O U-X", "chunks", "bilou"),
        ("O I-X E-X", "chunks", ""),             # IOE
        ("O B-X I-X S-X", "chunks", ""),         # no chunk could ever end
        ("NOUN VERB ADJ", "tags", ""),
        ("NN -LRB- . , PRP$", "tags", ""),
        ("O", "tags", ""),
        ("S", "tags", ""),
        ("B", "tags", ""),
        ("E S", "tags", ""),
        ("", "tags", ""),
        ("O B-X I-X B-Y I-Y 0", "chunks", "iob2"),    # one of five is misspelt
        ("O B-X NN VB", "tags", ""),
    ],
)
def test_schemes_of_tag_sets(tags, kind, scheme):
    assert kind_of(tags.split()) == kind
    assert scheme_of(tags.split()) == scheme


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("O I-X I-X B-X O/I-Y", "iob1"),
        ("O B-X I-X O/B-Y I-Y", "iob2"),
        ("O B-X I-X O/B-Y I-Y/I-X", "iob2"),     # one error against two
        ("O I-X O/I-Y/B-X", "iob1"),
        ("O O", ""),
        ("I-X B-X/B-X", "iob2"),                 # one against one
    ],
)
def test_text_tells_iob1_from_iob2(text, scheme):
    index: dict[str, int] = {}
    offsets, codes = coded([sentence.split() for sentence in text.split("/")], index)
    assert scheme_of(tuple(index), offsets, codes) == scheme


@pytest.mark.parametrize("scheme", SCHEMES)
def test_errors_are_counted_one_token_at_a_time(scheme):
    rng = np.random.default_rng(5)
    tags = TAGS[scheme]
    rules = allowed(tags, scheme)
    sentences = [[], *(rng.integers(0, len(tags), rng.integers(1, 9)).tolist() for _ in range(200)), []]
    count = 0
    for sentence in sentences:
        for place, code in enumerate(sentence):
            wrong = not (rules.pairs[sentence[place - 1], code] if place else rules.first[code])
            count += wrong or (place == len(sentence) - 1 and not rules.last[code])
    offsets = np.cumsum([0, *map(len, sentences)])
    codes = np.array([code for sentence in sentences for code in sentence], np.int32)
    found = errors_of(offsets, codes, tags, scheme)
    assert found.count == count > 50
    assert errors_of(offsets, codes, tags, "") == SchemeErrors("")


@pytest.mark.parametrize(
    ("text", "scheme", "first"),
    [
        ("O O/O B-X I-X I-Y", "iob2", "`I-Y` after `I-X`, sentence 2, token 4"),
        ("O/I-X O", "iob2", "`I-X` at the start, sentence 2, token 1"),
        ("B-X E-X/S-X B-X", "iobes", "`B-X` at the end, sentence 2, token 2"),
        ("O B-X O", "bilou", "`O` after `B-X`, sentence 1, token 3"),
    ],
)
def test_the_first_error_is_named(text, scheme, first):
    index: dict[str, int] = {}
    offsets, codes = coded([sentence.split() for sentence in text.split("/")], index)
    found = errors_of(offsets, codes, tuple(index), scheme)
    assert (found.count, found.first) == (1, first)
    assert found.note("train.txt") == (
        f"train.txt: 1 tag breaks the {scheme.upper()} rules (first: {first}): read as the CoNLL rules do."
    )


def test_nothing_broken_is_nothing_to_say():
    assert errors_of(np.array([0]), np.zeros(0, np.int32), ["O"], "iob2").note() == ""
    assert SchemeErrors("iob1", 1200, "x").note() == (
        "1,200 tags break the IOB1 rules (first: x): read as the CoNLL rules do."
    )


def test_what_cannot_work_is_told():
    with pytest.raises(ConfigError, match="there is no scheme `iob3`; use one of iob1, iob2"):
        allowed(["O"], "iob3")
    with pytest.raises(InputError, match=r"2 tags \(E-X\) cannot stand in IOB2"):
        allowed(["O", "B-X", "E-X", "S-X"], "iob2")
    for codes in ([0, -1], [0, 2]):
        with pytest.raises(InputError, match="a tag has a number outside 0 … 1"):
            errors_of(np.array([0, 2]), np.array(codes), ["O", "I-X"], "iob2")


# -- from one scheme to another -------------------------------------------------------------------------------------

BIO = [["B-NP", "I-NP", "I-NP", "O", "B-VP", "B-VP", "I-VP"], ["B-NP", "B-PP"], ["O"], ["B-NP", "I-NP"], []]


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("iob1", [["I-NP", "I-NP", "I-NP", "O", "I-VP", "B-VP", "I-VP"], ["I-NP", "I-PP"]]),
        ("iobes", [["B-NP", "I-NP", "E-NP", "O", "S-VP", "B-VP", "E-VP"], ["S-NP", "S-PP"]]),
        ("bilou", [["B-NP", "I-NP", "L-NP", "O", "U-VP", "B-VP", "L-VP"], ["U-NP", "U-PP"]]),
        ("bmes", [["B-NP", "M-NP", "E-NP", "O", "S-VP", "B-VP", "E-VP"], ["S-NP", "S-PP"]]),
        ("BIO", BIO[:2]),
        ("iob2", BIO[:2]),
    ],
)
def test_the_same_chunks_in_another_scheme(scheme: str, expected: list[list[str]]) -> None:
    assert convert_tags(BIO, scheme)[:2] == expected
    assert convert_tags(convert_tags(BIO, scheme), "bio") == BIO


@pytest.mark.parametrize("seed", range(20))
def test_random_tags_keep_their_chunks(seed: int) -> None:
    draw = random.Random(seed)
    tags = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("A", "B"))]
    sentences = [[draw.choice(tags) for _ in range(draw.randint(0, 9))] for _ in range(20)]
    for scheme in SCHEMES:
        found = convert_tags(sentences, scheme)
        assert [chunks_of(tags) for tags in found] == [chunks_of(tags) for tags in sentences]
        names = tuple(dict.fromkeys(tag for tags in found for tag in tags))
        index: dict[str, int] = {}
        assert errors_of(*coded(found, index), names, scheme).count == 0


def test_letters_alone_and_tags_of_no_scheme() -> None:
    assert convert_tags([["B", "M", "E", "S"]], "bio") == [["B", "I", "I", "B"]]
    assert convert_tags([["B", "I", "O"]], "bilou") == [["B", "L", "O"]]
    with pytest.raises(ConfigError, match="tags such as NOUN, VERB mark no chunks"):
        convert_tags([["NOUN", "VERB"]], "bio")
    with pytest.raises(ConfigError, match="there is no scheme `biose`; use one of iob1"):
        convert_tags(BIO, "biose")


def test_tags_are_changed_as_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOGWILD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "train.txt").write_text("to TO I-VP\nbe VB I-VP\n\nor CC O\nnot RB I-ADVP\nto TO B-ADVP\n")
    feed = open_tagging(tmp_path / "train.txt", TaggingConfig(scheme="iobes"))
    assert feed.text is not None
    assert feed.text.tags is not None
    assert feed.text.tags.strings() == ["B-VP", "E-VP", "O", "S-ADVP", "S-ADVP"]
    assert feed.schema["scheme"] == "iobes"
    again = open_tagging(tmp_path / "train.txt", schema=feed.schema, names=feed.names, tags=feed.tags)
    assert again.samples.tags.tolist() == feed.samples.tags.tolist()
    assert again.strange == {}
    with pytest.raises(ModelError, match="scheme of its tags is damaged"):
        open_tagging(tmp_path / "train.txt", schema={**feed.schema, "scheme": 7}, names=feed.names, tags=feed.tags)


# -- some chunks alone -------------------------------------------------------------------------------------------------

SOME = "a D B-NP\nb N I-NP\nc V B-VP\nd N B-NP\ne . O\n\nf V I-VP\ng N B-NP\n\n"


def tags_of(feed):
    return [feed.tags[code] for code in feed.samples.tags.tolist()]


def test_other_chunks_become_outside(tmp_path):
    (tmp_path / "a.txt").write_text(SOME)
    wanted = ["B-NP", "I-NP", "O", "B-NP", "O", "O", "B-NP"]
    feed = open_tagging(tmp_path / "a.txt", TaggingConfig(chunks=("NP",)))
    assert tags_of(feed) == wanted
    assert sorted(feed.tags) == ["B-NP", "I-NP", "O"]
    assert tags_of(open_tagging(tmp_path / "a.txt", TaggingConfig(chunks=("NP",)))) == wanted  # from the cache
    assert sorted(open_tagging(tmp_path / "a.txt").tags) == ["B-NP", "B-VP", "I-NP", "I-VP", "O"]
    both = open_tagging(tmp_path / "a.txt", TaggingConfig(chunks=("NP,VP",), scheme="iobes"))
    assert tags_of(both) == ["B-NP", "E-NP", "S-VP", "S-NP", "O", "S-VP", "S-NP"]


def test_text_for_a_model_has_the_same_chunks_taken_out(tmp_path):
    (tmp_path / "a.txt").write_text(SOME)
    (tmp_path / "verbs.txt").write_text("c V B-VP\nd N I-VP\n\n")
    feed = open_tagging(tmp_path / "a.txt", TaggingConfig(chunks=("NP",)))
    other = open_tagging(tmp_path / "verbs.txt", schema=feed.schema, names=feed.names, tags=feed.tags)
    assert (tags_of(other), other.strange) == (["O", "O"], {})
    with pytest.raises(ModelError, match="damaged"):
        open_tagging(tmp_path / "a.txt", schema={**feed.schema, "chunks": "NP"})


def test_chunks_that_are_not_there_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text(SOME)
    with pytest.raises(InputError, match="no chunk of type PP; its types are NP, VP"):
        open_tagging(tmp_path / "a.txt", TaggingConfig(chunks=("NP", "PP")))
    (tmp_path / "pos.txt").write_text("a N\nb V\n\n")
    with pytest.raises(InputError, match="its tags mark no chunks"):
        open_tagging(tmp_path / "pos.txt", TaggingConfig(chunks=("NP",)))
