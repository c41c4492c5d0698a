"""Tagged text encoded with templates: the same features as with Python strings and dicts, whatever the threads."""

from __future__ import annotations

import lzma
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.arrays import Chains
from hogwild.errors import InputError
from hogwild.feeds.tagged import features
from hogwild.feeds.tagged.features import encode
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.templates import PRESETS, open_templates, parse_templates
from hogwild.feeds.tagged.text import TaggedText, TextColumn
from places import DATA
from reference import tagging as twin

FOLDER = DATA / "conll2000"
ALPHABET = ["a", "B", "c-", "7", "é", "漢", "xyz", "Xy", "", "_B-1", "a|b", "𝒳𝒴"]


def random_text(seed: int, sentences: int = 30) -> TaggedText:
    draw = random.Random(seed)

    def word() -> str:
        return "".join(draw.choices(ALPHABET, k=draw.choice((1, 1, 2, 3))))

    sizes = [draw.choice((1, 1, 2, 3, 9)) for _ in range(sentences)]
    rows = [[{"w": word(), "pos": draw.choice("NVA"), "c2": word()} for _ in range(size)] for size in sizes]
    return twin.text_of(rows, [draw.choices(["O", "B-X", "I-X", "B-Y"], (9, 3, 3, 1), k=size) for size in sizes])


def random_templates(seed: int) -> list[str]:
    draw = random.Random(seed)

    def value(depth: int) -> str:
        if draw.random() < 0.5 or not depth:
            return draw.choice(("w", "w", "pos", "c2"))
        name = draw.choice(list(twin.TRANSFORMS))
        number = f",{draw.randint(1, 4)}" if name in ("prefix", "suffix") else ""
        return f"{name}({value(depth - 1)}{number})"

    def atom() -> str:
        if draw.random() < 0.15:
            return f"same({value(1)})[{draw.randint(0, 2)},{draw.randint(-2, -1)}]"
        return f"{value(2)}[{draw.randint(-3, 3)}]"

    found = ["|".join(atom() for _ in range(draw.choice((1, 1, 2, 3)))) for _ in range(draw.randint(1, 12))]
    return list(dict.fromkeys([*found, "bias"] if draw.random() < 0.3 else [*found, "w[0]"]))


def check_against_twin(feed: TaggingFeed, text: TaggedText, lines: list[str], min_count: int = 1) -> None:
    rows = twin.features_of(lines, text)
    counts = twin.ranked([name for row in rows for name in row], min_count)
    assert feed.names == tuple(counts)
    assert feed.counts.tolist() == list(counts.values())
    named = twin.named_rows(feed.samples, feed.names)
    assert [set(row) for row in named] == [set(row) & set(counts) for row in rows]
    tags = twin.tags_of(text)
    assert feed.tags == tuple(twin.ranked(tags))
    assert [feed.tags[k] for k in feed.samples.tags] == tags
    feed.check()


@pytest.mark.parametrize("seed", range(12))
def test_the_same_as_with_strings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text, lines = random_text(seed), random_templates(seed)
    monkeypatch.setattr(features, "_ROOM", 4)
    if seed % 2:
        monkeypatch.setattr(features, "_PIECE", 50)  # keys: pieces end inside sentences
    min_count = 1 + seed % 3
    feed = encode(text, parse_templates(lines), min_count=min_count, threads=1 + seed % 4)
    check_against_twin(feed, text, lines, min_count)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text, templates = random_text(7, 200), open_templates("pos")
    whole = encode(text, templates, threads=1)
    monkeypatch.setattr(features, "_PIECE", 1000)
    for threads in (2, 5, 8):
        other = encode(text, templates, threads=threads)
        assert (other.names, other.tags, other.notes) == (whole.names, whole.tags, whole.notes)
        for first, second in zip(other.samples, whole.samples, strict=True):
            np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("threads", [1, 3])
def test_with_the_names_of_a_model(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_PIECE", 64)
    lines = ["w[0]", "w[-1]|w[0]", "suffix(w,2)[0]", "bias"]
    templates = parse_templates(lines)
    model = encode(random_text(1), templates, min_count=2)
    names, tags = model.names[::-1], ("I-X", "O")
    text = random_text(2)
    feed = encode(text, templates, names=names, tags=tags, threads=threads)
    rows = twin.features_of(lines, text)
    assert feed.names == names
    named = twin.named_rows(feed.samples, names)
    assert [sorted(row) for row in named] == [sorted(set(row) & set(names)) for row in rows]
    assert feed.unknown == sum(name not in names for row in rows for name in row) > 0
    assert feed.counts.tolist() == [sum(name in row for row in rows) for name in names]
    gold = twin.tags_of(text)
    assert feed.samples.tags.tolist() == [tags.index(tag) if tag in tags else -1 for tag in gold]
    strange = twin.ranked([tag for tag in gold if tag not in tags])
    assert feed.strange == strange
    missed, note = feed.notes
    assert missed == f"{feed.unknown} of {sum(map(len, rows))} features not in the model, left out."
    assert all(f"`{tag}` ({count})" in note for tag, count in strange.items())
    assert f"{sum(strange.values())} tokens of {text.tokens}" in note


def test_the_words_of_a_sentence_are_looked_at_and_no_others() -> None:
    text = twin.text_of([[{"w": "a"}, {"w": "b"}], [{"w": "c"}]])
    feed = encode(text, parse_templates("w[-2]|w[2]\nw[1]\n"))
    rows = [sorted(row) for row in twin.named_rows(feed.samples, feed.names)]
    assert rows == [
        ["w[-2]|w[2]=_B-2|_E+1", "w[1]=b"],
        ["w[-2]|w[2]=_B-1|_E+2", "w[1]=_E+1"],
        ["w[-2]|w[2]=_B-2|_E+2", "w[1]=_E+1"],
    ]
    assert feed.samples.tags.tolist() == [-1, -1, -1]
    assert feed.tags == ()


def test_bias_alone() -> None:
    feed = encode(twin.text_of([[{"w": "a"}, {"w": "b"}], [{"w": "c"}]]), parse_templates("bias")).check()
    assert (feed.names, feed.counts.tolist(), feed.samples.ids.tolist()) == (("bias",), [3], [0, 0, 0])
    assert encode(twin.text_of([[{"w": "z"}]]), parse_templates("bias"), names=feed.names).unknown == 0


def test_names_that_are_spelt_alike_are_one_feature() -> None:
    text = twin.text_of([[{"w": "a|b", "pos": "c"}, {"w": "a", "pos": "b|c"}]])
    assert encode(text, parse_templates("w[0]|pos[0]")).names == ("w[0]|pos[0]=a|b|c",)


def test_templates_that_match_nothing_are_named() -> None:
    text = twin.text_of([[{"w": "ab"}, {"w": "cd"}]])
    feed = encode(text, parse_templates("w[0]\nprefix(w,3)[0]\nhasdigit(w)[0]\nsame(w)[0,1]"))
    (note,) = feed.notes
    assert note == (
        "Each of the templates `prefix(w,3)[0]`, `hasdigit(w)[0]`, `same(w)[0,1]` matches nothing in this text."
    )
    assert encode(text, parse_templates("w[0]\nhasdigit(w)[0]")).notes == (
        "The template `hasdigit(w)[0]` matches nothing in this text.",
    )
    with pytest.raises(InputError, match="no template matches anything"):
        encode(text, parse_templates("prefix(w,3)[0]\nhasdigit(w)[0]"))
    known = encode(text, parse_templates("w[0]\nhasdigit(w)[0]"), names=("hasdigit(w)[0]=1",))
    assert (known.unknown, len(known.samples.ids)) == (2, 0)
    assert known.notes == ("2 of 2 features not in the model, left out.",)


def test_rare_features_are_counted() -> None:
    text = twin.text_of([[{"w": word} for word in "aabc"]])
    feed = encode(text, parse_templates("w[0]\nw[-1]|w[0]"), min_count=2)
    assert feed.names == ("w[0]=a",)
    assert feed.notes == (
        "The template `w[-1]|w[0]` gives no feature that occurs 2 times.",
        "6 features left out that occur fewer than 2 times (--min-count): 6 occurrences.",
    )
    with pytest.raises(InputError, match="no feature occurs 3 times; lower --min-count"):
        encode(text, parse_templates("w[0]"), min_count=3)


def test_a_damaged_model() -> None:
    text = twin.text_of([[{"w": "a"}]], [["O"]])
    with pytest.raises(InputError, match="the features of the model hold `w\\[0\\]=b` twice"):
        encode(text, parse_templates("w[0]"), names=("w[0]=a", "w[0]=b", "w[0]=b"))
    with pytest.raises(InputError, match="the tags of the model hold `O` twice"):
        encode(text, parse_templates("w[0]"), tags=("O", "O"))
    feed = encode(text, parse_templates("w[0]"), names=(), tags=())
    assert (feed.unknown, feed.strange, feed.samples.tags.tolist()) == (1, {"O": 1}, [-1])


def test_what_is_no_text() -> None:
    with pytest.raises(InputError, match="half a surrogate pair"):
        encode(twin.text_of([[{"w": "\ud800"}]]), parse_templates("w[0]"))
    empty = TaggedText((), None, np.zeros(1, np.int64), source="empty.txt")
    with pytest.raises(InputError, match=r"empty.txt: no tokens"):
        encode(empty, parse_templates("bias"))


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": np.array([0, 2, 2, 3])},
        {"offsets": np.array([1, 3])},
        {"offsets": np.array([0, 4])},
        {"columns": (TextColumn("w", np.array([0, 1, 3], np.int32), ("a", "b", "c")),)},
        {"columns": (TextColumn("w", np.array([0, 1, -1], np.int32), ("a", "b", "c")),)},
        {"columns": (TextColumn("w", np.array([0, 1], np.int32), ("a", "b", "c")),)},
    ],
)
def test_parts_that_do_not_fit_never_reach_compiled_code(change: dict[str, Any]) -> None:
    text = twin.text_of([[{"w": "a"}, {"w": "b"}], [{"w": "c"}]])
    with pytest.raises(InputError, match="do not fit each other"):
        encode(replace(text, **change), parse_templates("w[0]"))


def test_a_very_long_sentence() -> None:
    size = 100_000
    words = [{"w": str(k % 1000)} for k in range(size)]
    feed = encode(twin.text_of([words], [["O"] * size]), parse_templates("w[0]\nw[-1]|w[0]\nw[-2]"), threads=2)
    assert (feed.longest, feed.most_features) == (size, 3 * size)
    assert feed.names[:2] == ("w[0]=0", "w[0]=1")
    assert len(feed.names) == 1000 + 1001 + 1002
    assert feed.tags == ("O",)


@pytest.mark.parametrize("name", list(PRESETS))
def test_presets_against_strings(name: str) -> None:
    text = random_text(3)
    # The twin has no classes of characters and hyphens.
    lines = [line for line in open_templates(name).lines() if "class" not in line and "hyphen" not in line]
    check_against_twin(encode(text, parse_templates(lines)), text, lines)


def _read(path: Path) -> tuple[list[twin.Sentence], list[list[str]]]:
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        blocks = [[line.split() for line in block.splitlines()] for block in stream.read().split("\n\n") if block]
    return [[{"w": w, "pos": p} for w, p, _ in block] for block in blocks], [[row[2] for row in b] for b in blocks]


def standard_features(sentence: twin.Sentence, i: int) -> dict[str, str]:
    """The 19 standard features as users of CRFsuite make them, by the template that they stand for."""

    def at(column: str, k: int) -> str:
        if 0 <= k < len(sentence):
            return sentence[k][column]
        return f"BOS{k}" if k < 0 else f"EOS{k - len(sentence)}"

    spans = {"w": [(-2, -2), (-1, -1), (0, 0), (1, 1), (2, 2), (-1, 0), (0, 1)]}
    spans["pos"] = [*spans["w"], (-2, -1), (1, 2), (-2, 0), (-1, 1), (0, 2)]
    found = {}
    for column, places in spans.items():
        for first, last in places:
            window = range(first, last + 1)
            found["|".join(f"{column}[{k}]" for k in window)] = "/".join(at(column, i + k) for k in window)
    return found


@pytest.mark.data
@pytest.mark.skipif(not FOLDER.exists(), reason="needs ../shared/data/conll2000")
def test_the_standard_features_of_a_corpus() -> None:
    (path,) = FOLDER.glob("train*")
    sentences, tags = _read(path)
    text = twin.text_of(sentences, tags)
    feed = encode(text, open_templates("chunking"))
    assert isinstance(feed.samples, Chains)
    assert (len(feed), feed.tokens, len(feed.names), len(feed.tags)) == (8936, 211_727, 338_551, 22)
    assert len(feed.samples.ids) == 19 * 211_727
    # One to one: what we call a feature decides what they call it, and the other way round.
    few = 30_000
    ours = twin.named_rows(feed.samples._replace(starts=feed.samples.starts[: few + 1]), feed.names)
    theirs = [standard_features(rows, i) for rows in sentences[:2000] for i in range(len(rows))]
    pairs = set()
    for names, values in zip(ours, theirs, strict=False):
        mine = {name.partition("=")[0]: name for name in names}
        assert mine.keys() == values.keys()
        pairs |= {(name, template, values[template]) for template, name in mine.items()}
    assert len({name for name, _, _ in pairs}) == len({pair[1:] for pair in pairs}) == len(pairs) > 50_000
