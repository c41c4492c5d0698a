"""Taggers of what a user has in memory: tokens, rows, dicts, one sentence or many; and what they refuse."""

from __future__ import annotations

import itertools
import random
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hogwild
from cli.sentences import make_sentence, write_sentences, write_words
from compiling import OFF
from hogwild.errors import ConfigError, HogwildWarning, InputError
from hogwild.feeds.tagged.features import encode
from hogwild.feeds.tagged.sentences import SentenceFeatures, text_of
from hogwild.feeds.tagged.templates import PRESETS, parse_templates
from hogwild.programs.taggers.crf import CRF

DOGS = [("the", "DT"), ("old", "JJ"), ("dog", "NN"), ("will", "MD"), ("see", "VB"), (".", ".")]
CHUNKS = ["B-NP", "I-NP", "I-NP", "B-VP", "I-VP", "O"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: Any) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("memory")
    write_sentences(place / "train.txt", 200)
    write_sentences(place / "test.txt", 60, seed=1)
    write_sentences(place / "pos.txt", 200, columns=(0, 1))
    write_words(place / "words.txt", 200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOGWILD_CACHE", str(place / "cache"))
        yield place


def train(path: Path, features: str = "chunking", **options: Any) -> CRF:
    feed = hogwild.open_tagging(path, hogwild.TaggingConfig(features=features))
    return hogwild.train(CRF(**options), feed, epochs=5, threads=1, mode="serial", lr=0.1, quiet=True)


@pytest.fixture(scope="module")
def chunker(place: Path) -> CRF:
    return train(place / "train.txt")


@pytest.fixture
def strict() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", HogwildWarning)
        yield


@pytest.mark.usefixtures("strict")
def test_a_sentence_in_memory_has_the_tags_of_the_file(chunker: CRF, place: Path) -> None:
    draw = random.Random(1)
    sentences = [[token[:2] for token in make_sentence(draw)] for _ in range(60)]
    expected = chunker.predict(chunker.open(place / "test.txt"))
    assert chunker.predict(place / "test.txt") == expected
    assert chunker.predict(str(place / "test.txt")) == expected
    assert chunker.predict(sentences) == chunker.predict(iter(sentences)) == expected
    assert [chunker.tag(sentence) for sentence in sentences] == expected
    assert chunker.tag(DOGS) == CHUNKS
    assert chunker.evaluate(place / "test.txt")["f1"] > 0.9


@pytest.mark.usefixtures("strict")
def test_shapes_of_tokens(chunker: CRF) -> None:
    dicts = [{"pos": pos, "w": word, "more": 1} for word, pos in DOGS]
    tagged = [[*token, "?"] for token in DOGS]
    for sentence in (dicts, tagged, tuple(DOGS), [list(token) for token in DOGS]):
        assert chunker.tag(sentence) == chunker.predict([sentence])[0] == CHUNKS
    assert chunker.tag(DOGS, constrain=True) == chunker.predict([DOGS], constrain=True)[0]
    assert chunker.predict([[], DOGS, []]) == [[], CHUNKS, []]
    assert chunker.predict([]) == []
    assert chunker.tag([]) == []
    assert chunker.predict_one(DOGS) == CHUNKS
    assert chunker.nbest([DOGS], 2)[0][0][1] == CHUNKS
    with pytest.raises(InputError, match="sentence 1 has no tokens; leave it out"):
        chunker.nbest([DOGS, []], 2)
    with pytest.raises(InputError, match="there are no sentences"):
        chunker.marginals([])
    assert chunker.marginals([DOGS]).shape == (6, 5)


@pytest.mark.usefixtures("strict")
def test_tokens_alone(place: Path) -> None:
    tagger = train(place / "pos.txt", "pos")
    words = [word for word, _ in DOGS]
    expected = tagger.tag(words)
    assert expected[:4] == ["DT", "JJ", "NN", "MD"]
    assert tagger.tag("the old dog will see .") == expected
    assert tagger.tag([{"w": word} for word in words]) == tagger.tag([(word,) for word in words]) == expected
    assert tagger.predict([words, "the old dog"]) == [expected, expected[:3]]
    with pytest.raises(InputError, match=r"sentence 0 is the word `the`; give a list of sentences, or one .* tag\(\)"):
        tagger.predict(words)


@pytest.mark.usefixtures("strict")
def test_segmented_text_is_letters(place: Path) -> None:
    segmenter = train(place / "words.txt", "segmentation")
    line = (place / "words.txt").read_text().splitlines()[0]
    tags = segmenter.tag(line)
    assert len(tags) == len("".join(line.split()))
    assert tags == segmenter.tag(line.replace(" ", "")) == segmenter.tag(list(line.replace(" ", "")))
    assert segmenter.predict([line.replace(" ", "")]) == [tags]


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        (["the", "dog"], "token 0 has the value `the`; the model looks at `w`, `pos`: give a row or a dict"),
        ([{"w": "of"}], "token 0 has no `pos`; the model looks at `w`, `pos`"),
        ([("a", "b", "c", "d")], "token 0 has 4 values"),
        ([("of", "IN"), ("of", 3)], "token 1 holds 3; give strings"),
        ([("of", None)], "token 0 holds None; give strings"),
        ([7], "token 0 is of type int"),
        ({"w": "of"}, "is of type dict; give a list of tokens"),
        ("of the", "token 0 has the value `of`"),
        (3, "is of type int"),
    ],
)
def test_what_is_no_sentence_of_a_model(chunker: CRF, sentence: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        chunker.tag(sentence)
    assert said in str(caught.value)
    with pytest.raises(InputError) as caught:
        chunker.predict([sentence, DOGS])
    assert said in str(caught.value)


def test_what_is_no_text(chunker: CRF) -> None:
    for data in (hogwild.feed_of([[1.0]], [0]), None, 7, b"text", {"w": ["of"]}):
        for use in (chunker.predict, chunker.evaluate, chunker.marginals):
            with pytest.raises(InputError, match=r"data is of type .*; give a list of sentences"):
                use(data)


def test_text_that_a_model_cannot_know(chunker: CRF) -> None:
    """Its templates look at columns; features of other names would be answered from transitions alone."""
    rows = [{"w": word, "pos": pos} for word, pos in DOGS]
    with pytest.raises(InputError, match=r"none of its 12 features is known .* program\.predict or program\.tag"):
        hogwild.tagging_of([rows], names=chunker.names, tags=chunker.tags)
    turned = [(pos, word) for word, pos in DOGS]  # columns in another order
    with pytest.warns(HogwildWarning, match="more than half of the features .* columns in the order"):
        chunker.tag(turned)
    with pytest.warns(HogwildWarning, match=r"% of its 114 features are not known .* columns in the order"):
        chunker.predict([turned])


def test_nothing_known_is_an_error(place: Path) -> None:
    (place / "words-only.txt").write_text("w[0]\n")
    tagger = train(place / "pos.txt", str(place / "words-only.txt"))
    assert tagger.tag(["the", "zzz"]) == ["DT", tagger.tag(["the", "zzz"])[1]]
    for use in (tagger.tag, lambda sentence: tagger.predict([sentence])):
        with pytest.raises(InputError, match=r"none of .* 2 features .*is known to the model, which could only guess"):
            use(["xxx", "zzz"])
    (place / "new.txt").write_text("xxx DT\nzzz NN\n")
    with pytest.raises(InputError, match=r"new\.txt: none of its 2 features .* --columns names those of the file"):
        tagger.predict(place / "new.txt")
    (place / "half.txt").write_text("the DT\nxxx DT\nzzz NN\n")
    for _ in range(2):  # the second time from the cache
        with pytest.warns(HogwildWarning, match=r"half\.txt: 67 % of its 3 features are not known"):
            tagger.evaluate(place / "half.txt")


def test_a_saved_model_tags(chunker: CRF, place: Path) -> None:
    hogwild.save_model(place / "model", chunker)  # it knows its own schema
    model = hogwild.load_model(place / "model")
    assert model.schema == chunker.schema
    assert model.program.tag(DOGS) == CHUNKS
    bare = CRF(tags=chunker.tags, names=chunker.names)
    bare.restore(chunker.arrays())
    for use in (bare.tag, bare.open, lambda sentence: bare.predict([sentence])):
        with pytest.raises(ConfigError, match="does not say how text becomes its features"):
            use(DOGS)


def test_a_feed_of_other_templates_is_refused(chunker: CRF, place: Path) -> None:
    (place / "other.txt").write_text("w[0]\npos[0]\n")
    other = hogwild.TaggingConfig(features=str(place / "other.txt"))
    feed = hogwild.open_tagging(place / "test.txt", other, names=chunker.names, tags=chunker.tags)
    for use in (chunker.predict, chunker.evaluate):
        with pytest.raises(ConfigError, match="features of other templates than the model's"):
            use(feed)


@pytest.mark.full
@pytest.mark.usefixtures("strict")
def test_features_that_python_made() -> None:
    X = [[{"w": "the", "n": 2.5}, {"w": "dog"}], [{"w": "a"}, {"w": "dog"}]]
    feed = hogwild.tagging_of(X, [["D", "N"], ["D", "N"]])
    program = hogwild.train(CRF(rich_edges=False), feed, epochs=9, threads=1, mode="serial", lr=0.3, quiet=True)
    assert program.tag(X[0]) == program.predict(X)[0] == ["D", "N"]
    assert program.predict([[], X[1]]) == [[], ["D", "N"]]
    assert program.tag([]) == []
    with pytest.raises(InputError, match="none of the 1 feature of the sentence is known"):
        program.tag([{"word": "the"}])


def test_training_again_changes_the_answers(place: Path) -> None:
    feed = hogwild.tagging_of([[["a"], ["b"]]], [["X", "Y"]])
    program = hogwild.train(CRF(rich_edges=False), feed, epochs=3, threads=1, mode="serial", lr=0.3, quiet=True)
    assert program.tag([["a"], ["b"]]) == ["X", "Y"]
    turned = hogwild.tagging_of([[["a"], ["b"]]] * 9, [["Y", "X"]] * 9, names=feed.names, tags=feed.tags)
    hogwild.train(program, turned, epochs=9, threads=1, mode="serial", lr=0.3, quiet=True)
    assert program.tag([["a"], ["b"]]) == ["Y", "X"]


OWN = "w[0]\nlower(w)[-1]|pos[1]\nsame(w)[0,-1]\nsame(class(w))[-3,1]\nbias\nsuffix(w,3)[0]|prefix(w,2)[2]\npos[-4]"


@pytest.mark.parametrize("text", [*PRESETS.values(), OWN], ids=[*PRESETS, "own"])
def test_features_of_one_sentence_are_those_of_compiled_code(text: str) -> None:
    draw = random.Random(3)
    templates = parse_templates(text)
    schema = {"format": "conll", "columns": ["w", "pos", "tag"], "tag": 2, "fields": []}
    for tokens in (1, 2, 3, 9):
        sentence = [(draw.choice(["to", "Be", "x-1", "Be", "等"]), draw.choice(["A", "B"])) for _ in range(tokens)]
        names = encode(text_of([sentence], schema), templates).names
        known = {name: place for place, name in enumerate(names[::2])}
        expected = encode(text_of([sentence], schema), templates, names=tuple(known))
        starts, ids = expected.samples.starts.tolist(), expected.samples.ids.tolist()
        rows, unknown = SentenceFeatures(schema, templates, known).rows(sentence)
        assert rows == [ids[first:last] for first, last in itertools.pairwise(starts)]
        assert unknown == expected.unknown


@pytest.mark.skipif(OFF, reason="speed of compiled code")
def test_one_sentence_takes_less_than_a_millisecond(chunker: CRF) -> None:
    sentence = DOGS * 4
    chunker.tag(sentence)
    times = []
    for _ in range(200):
        began = time.perf_counter()
        chunker.tag(sentence)
        times.append(time.perf_counter() - began)
    assert min(times) < 1e-3
