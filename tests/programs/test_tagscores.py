"""Scores of taggers against seqeval, scikit-learn, sets of spans, and a published figure."""

from __future__ import annotations

import json
import lzma
import time
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import seqeval.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from sklearn.metrics import precision_recall_fscore_support

import hogwild
from hogwild.arrays import Chains
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.taggedtext import TaggedText, TextColumn
from hogwild.feeds.tagging import TaggingFeed
from hogwild.programs.chunks import coded
from hogwild.programs.scorecard import Score
from hogwild.programs.tagscores import UNSEEN, Lexicon, score_codes, score_feed, score_tags, vocabulary_of
from reference_tags import bmes, spans_of_words

DATA = Path(__file__).parents[3] / "shared" / "data"
CHUNKS = ["O", "O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("NP", "VP", "PP"))]


def random_pair(tags, sentences, noise=0.2, seed=0):
    """True and guessed tags; a share of the guesses is random."""
    rng = np.random.default_rng(seed)
    gold = [rng.choice(tags, rng.integers(1, 15)).tolist() for _ in range(sentences)]
    guess = [[str(rng.choice(tags)) if rng.random() < noise else tag for tag in sentence] for sentence in gold]
    return gold, guess


def flat(sentences):
    return [tag for sentence in sentences for tag in sentence]


def theirs(gold, guess):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return seqeval.metrics.classification_report(gold, guess, output_dict=True, zero_division=0)


# -- chunks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letters", ["BI", "BIES"])
@pytest.mark.parametrize("seed", range(3))
def test_chunks_as_seqeval_scores_them(letters, seed):
    tags = [tag for tag in CHUNKS if tag[0] in letters + "O"]
    gold, guess = random_pair(tags, 700, seed=seed)
    scores, expected = score_tags(gold, guess), theirs(gold, guess)
    assert scores.kind == "chunks"
    assert scores.accuracy == pytest.approx(np.mean(np.array(flat(gold)) == np.array(flat(guess))), abs=1e-12)
    rows = {row["name"]: row for row in scores.table()}
    assert set(rows) == {"NP", "VP", "PP"}
    for name, row in {**rows, "micro avg": {**scores.metrics(), "support": scores.total.support}}.items():
        assert row["precision"] == pytest.approx(expected[name]["precision"], abs=1e-12)
        assert row["recall"] == pytest.approx(expected[name]["recall"], abs=1e-12)
        assert row["f1"] == pytest.approx(expected[name]["f1-score"], abs=1e-12)
        assert row["support"] == expected[name]["support"]
    assert scores.macro_f1 == pytest.approx(expected["macro avg"]["f1-score"], abs=1e-12)
    assert 0.2 < scores.f1 < 0.9


SENTENCE = st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), min_size=1, max_size=6)


@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_any_chunks_as_seqeval_scores_them(pairs):
    gold = [one[: min(len(one), len(two))] for one, two in pairs]
    guess = [two[: min(len(one), len(two))] for one, two in pairs]
    scores = score_tags(gold, guess, kind="chunks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = seqeval.metrics.f1_score(gold, guess, zero_division=0)
    assert scores.f1 == pytest.approx(expected, abs=1e-12)


def test_a_chunk_is_right_with_start_end_and_type():
    gold = [["B-X", "I-X", "O", "B-Y", "O", "B-X", "I-X"]]
    guess = [["B-X", "O", "O", "B-X", "B-Y", "B-X", "I-X"]]
    scores = score_tags(gold, guess)
    assert [(score.name, score.support, score.found, score.right) for score in scores.types] == [
        ("X", 2, 3, 1),
        ("Y", 1, 1, 0),
    ]
    assert (scores.precision, scores.recall, scores.f1) == (0.25, pytest.approx(1 / 3), pytest.approx(2 / 7))


def test_broken_tags_are_read_and_tags_that_differ_may_be_one_chunk():
    scores = score_tags([["O", "B-X", "I-X"]], [["O", "I-X", "I-X"]])
    assert (scores.f1, scores.accuracy, scores.whole) == (1.0, pytest.approx(2 / 3), 0)


def test_sentences_wholly_right():
    scores = score_tags([["O"], [], ["B-X", "O"], ["O", "O"]], [["O"], [], ["O", "O"], ["O", "O"]])
    assert (scores.sentences, scores.whole) == (3, 2)
    assert scores.metrics()["sentence_accuracy"] == pytest.approx(2 / 3)


def test_chunks_without_types():
    scores = score_tags([["B", "I", "O"]], [["B", "I", "B"]])
    assert (scores.kind, scores.precision, scores.recall) == ("chunks", 0.5, 1.0)
    assert scores.types[0].name == ""
    assert "(no type)" in scores.text()


@pytest.mark.parametrize(("gold", "guess"), [([], []), ([[]], [[]]), ([["O"]], [["O"]]), ([["O"]], [["B-X"]])])
def test_undefined_shares_are_zero(gold, guess):
    scores = score_tags(gold, guess, kind="chunks")
    assert (scores.precision, scores.recall, scores.f1) == (0.0, 0.0, 0.0)
    assert scores.accuracy == float(gold == guess and bool(flat(gold)))
    assert scores.text()


# -- tags --------------------------------------------------------------------------------------------------------------


def test_tags_as_scikit_learn_scores_them():
    tags = ["NOUN", "VERB", "ADJ", "-LRB-", ".", "O"]
    gold, guess = random_pair(tags, 300, noise=0.4)
    guess[0][0] = "NEVER"
    scores = score_tags(gold, guess)
    assert scores.kind == "tags"
    rows = scores.table()
    names = [row["name"] for row in rows]
    assert set(names) == {*tags, "NEVER"}
    expected = precision_recall_fscore_support(flat(gold), flat(guess), labels=names, zero_division=0)
    for key, column in zip(("precision", "recall", "f1", "support"), expected, strict=True):
        assert [row[key] for row in rows] == pytest.approx(column.tolist(), abs=1e-12)
    assert [row["found"] for row in rows] == [flat(guess).count(name) for name in names]
    assert scores.macro_f1 == pytest.approx(expected[2].mean())
    assert set(scores.metrics()) == {"accuracy", "macro_f1", "sentence_accuracy"}
    supports = [row["support"] for row in rows]
    assert supports == sorted(supports, reverse=True)


def test_new_tokens():
    gold, guess = [["A", "B", "A"], ["B"]], [["A", "A", "A"], ["B"]]
    scores = score_tags(gold, guess, kind="tags", lexicon=Lexicon(["the", "new", "old", "new"], ["the", "old"]))
    assert (scores.metrics()["oov_accuracy"], scores.metrics()["oov_share"]) == (0.5, 0.5)
    assert "2 tokens outside the vocabulary (50.00 % of all), 50.00 % right" in scores.text()


# -- words -------------------------------------------------------------------------------------------------------------


def cut(text, rng):
    """The characters in words of random lengths."""
    words = []
    while text:
        size = int(rng.integers(1, 5))
        words.append(text[:size])
        text = text[size:]
    return words


@pytest.mark.parametrize("seed", range(3))
def test_words_as_sets_of_spans(seed):
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list("abcd"), rng.integers(1, 30))) for _ in range(200)]
    gold, guess = ([cut(text, rng) for text in texts] for _ in range(2))
    known = {word for sentence in gold[:40] for word in sentence}
    right = found = there = new = new_right = 0
    for true, guessed in zip(gold, guess, strict=True):
        spans, others = spans_of_words(true), spans_of_words(guessed)
        right, found, there = right + len(spans & others), found + len(others), there + len(spans)
        for start, end in spans:
            if "".join(true)[start:end] not in known:
                new += 1
                new_right += (start, end) in others
    lexicon = Lexicon("".join(texts), known)
    scores = score_tags([bmes(words) for words in gold], [bmes(words) for words in guess], lexicon=lexicon)
    assert scores.kind == "words"
    assert new_right > 5
    assert scores.metrics() == {
        "accuracy": scores.accuracy,
        "precision": pytest.approx(right / found),
        "recall": pytest.approx(right / there),
        "f1": pytest.approx(2 * right / (found + there)),
        "sentence_accuracy": scores.sentence_accuracy,
        "oov_recall": pytest.approx(new_right / new),
        "oov_share": pytest.approx(new / there),
    }
    assert [row["name"] for row in scores.table()] == ["word"]


def test_words_of_broken_tags_cover_the_sentence():
    scores = score_tags([bmes(["ab", "c"])], [["M", "S", "M"]])
    assert (scores.total.support, scores.total.found, scores.total.right) == (2, 3, 1)


# -- tags that the model does not know ---------------------------------------------------------------------------------


def feed_of_tags(sentences, tags, text=True, schema=None):
    """A feed as a model with these tags reads it; a token is its tag in lower case."""
    names = tuple(dict.fromkeys(flat(sentences)))
    offsets, column = coded(sentences, {name: k for k, name in enumerate(names)})
    final = np.array([tags.index(name) if name in tags else -1 for name in names], np.int32)[column]
    strange = dict(Counter(tag for tag in flat(sentences) if tag not in tags))
    words = TextColumn("word", column, tuple(name.lower() for name in names))
    return TaggingFeed(
        samples=Chains(offsets, np.zeros(len(column) + 1, np.int64), np.zeros(0, np.int32), final),
        names=(),
        counts=np.zeros(0, np.int64),
        tags=tuple(tags),
        strange=strange,
        schema=schema or {},
        text=TaggedText((words,), TextColumn("tag", column, names), offsets) if text else None,
        source="test.txt",
    )


def test_unseen_tags_are_chunks_that_are_not_found():
    gold = [["B-NP", "I-NP", "B-LST", "I-LST", "O"], ["B-UCP"]]
    guess = [["B-NP", "I-NP", "O", "O", "O"], ["B-NP"]]
    model = ["O", "B-NP", "I-NP"]
    codes = np.array([model.index(tag) for tag in flat(guess)], np.int32)
    scores = score_feed(feed_of_tags(gold, model), codes)
    assert scores.unseen == {"B-LST": 1, "I-LST": 1, "B-UCP": 1}
    assert (scores.total.support, scores.total.found, scores.total.right) == (3, 2, 1)
    assert (scores.right, scores.tokens) == (3, 6)
    assert scores == replace(score_tags(gold, guess), unseen=scores.unseen)
    assert scores.to_json()["unseen"] == scores.unseen


def test_unseen_tags_without_names_are_wrong_one_by_one():
    gold = [["B-NP", "B-LST", "I-LST"]]
    model = ["O", "B-NP"]
    feed = feed_of_tags(gold, model, text=False)
    scores = score_feed(feed, np.array([1, 0, 0]))
    assert scores.unseen == {"B-LST": 1, "I-LST": 1}
    assert [(score.name, score.support, score.found) for score in scores.types] == [(UNSEEN, 2, 0), ("NP", 1, 1)]
    plain = score_codes(feed.samples.offsets, feed.samples.tags, np.array([1, 0, 0]), ["NOUN", "VERB"])
    assert [(score.name, score.support, score.right) for score in plain.types] == [
        (UNSEEN, 2, 0),
        ("VERB", 1, 1),
        ("NOUN", 0, 0),
    ]


def test_what_is_looked_for_goes_by_the_model():
    """A test set with many strange tags does not turn chunks into plain tags."""
    gold = [["B-NP", "NN", "VB", "JJ", "RB"]]
    assert score_feed(feed_of_tags(gold, ["O", "B-NP"]), np.array([1, 0, 0, 0, 0])).kind == "chunks"
    assert score_tags(gold, gold).kind == "tags"
    segmented = feed_of_tags([["S", "S"]], ["S"], schema={"format": "segmented"})
    assert score_feed(segmented, np.array([0, 0])).kind == "words"
    assert score_feed(feed_of_tags([["S", "S"]], ["S"]), np.array([0, 0])).kind == "tags"


def test_vocabularies_of_feeds():
    words = feed_of_tags([["B", "M", "E", "S"], ["S", "B", "E"]], ["B", "M", "E", "S"])
    assert vocabulary_of(words) == {"bme", "s", "be"}
    assert score_feed(words, np.array([0, 1, 2, 3, 3, 3, 3]), {"s"}).metrics()["oov_recall"] == 0.5
    assert vocabulary_of(feed_of_tags([["NOUN", "VERB"], ["NOUN"]], ["NOUN", "VERB"])) == {"noun", "verb"}
    with pytest.raises(InputError, match=r"test\.txt: holds no words, only features"):
        vocabulary_of(feed_of_tags([["NOUN"]], ["NOUN"], text=False))


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "guess", "message"),
    [
        ([["O"]], [], "there are 1 sentences but predictions for 0"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "sentence 2 has 2 tags, but 1 predicted"),
        ([["O", "O"], ["O"]], [["O"], ["O", "O"]], "sentence 1 has 2 tags, but 1 predicted"),
        (["O"], ["O"], "give a list of tags a sentence"),
    ],
)
def test_sentences_that_do_not_fit(gold, guess, message):
    with pytest.raises(InputError, match=message):
        score_tags(gold, guess)


@pytest.mark.parametrize(
    ("offsets", "gold", "guess", "tags", "message"),
    [
        ([0, 2], [0, 0], [0], ["O"], "2 tags, but 1 predicted"),
        ([0, 1], [0, 0], [0, 0], ["O"], "offsets of sentences"),
        ([1, 2], [0, 0], [0, 0], ["O"], "offsets of sentences"),
        ([0, 2, 1, 2], [0, 0], [0, 0], ["O"], "offsets of sentences"),
        ([0, 2], [0, 0], [0, -1], ["O"], "a predicted tag has a number outside 0 … 0"),
        ([0, 2], [0, 1], [0, 0], ["O"], "a true tag has a number outside -1 … 0"),
        ([0, 2], [0, -2], [0, 0], ["O"], "a true tag has a number outside -1 … 0"),
        ([0, 2], [0, 1], [0, 0], ["O", "O"], "a tag stands twice"),
    ],
)
def test_codes_that_do_not_fit(offsets, gold, guess, tags, message):
    with pytest.raises(InputError, match=message):
        score_codes(np.array(offsets), np.array(gold), np.array(guess), tags)


def test_other_things_that_do_not_fit():
    with pytest.raises(ConfigError, match="kind is `pos`; it must be one of auto, chunks, words, tags"):
        score_tags([["O"]], [["O"]], kind="pos")
    with pytest.raises(InputError, match="the lexicon has 2 tokens, the text 1"):
        score_tags([["O"]], [["O"]], lexicon=Lexicon(["a", "b"], []))
    feed = feed_of_tags([["O"]], ["O"])
    untagged = TaggedText(feed.text.columns, None, feed.text.offsets)
    blind = TaggingFeed(feed.samples, feed.names, feed.counts, feed.tags, text=untagged, source="test.txt")
    with pytest.raises(InputError, match=r"test\.txt: has no tags to compare with"):
        score_feed(blind, np.array([0]))


# -- how they are shown ------------------------------------------------------------------------------------------------


def test_text_for_the_terminal():
    scores = score_tags([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "B-PP", "O"]])
    assert scores.text().splitlines() == [
        "4 tokens, 50.00 % with the right tag",
        "1 sentence, 0.00 % all right",
        "",
        "type  precision  recall      f1  support  found",
        "NP       100.00  100.00  100.00        1      1",
        "VP         0.00    0.00    0.00        1      0",
        "PP         0.00    0.00    0.00        0      1",
        "all       50.00   50.00   50.00        2      2",
    ]
    words = score_tags([["B", "E", "S"]], [["B", "E", "S"]]).text().splitlines()
    assert words[-2:] == [
        "word       precision  recall      f1  support  found",
        "all words     100.00  100.00  100.00        2      2",
    ]


def test_text_has_eighty_columns_and_not_too_many_rows():
    tags = ["B-" + "名" * 60, "B-" + "x" * 90, "B-\x1b[31mred", *(f"B-{k}" for k in range(100))]
    scores = score_tags([tags], [tags])
    lines = scores.text().splitlines()
    assert len(lines) == 2 + 1 + 1 + 60 + 1 + 2
    assert lines[-1] == "43 types more, with less support, are not shown."
    lines = scores.text(rows=200).splitlines()
    assert len(lines) == 2 + 1 + 1 + 103 + 1
    assert "\x1b" not in "".join(lines)
    assert {cell_len(line) for line in lines[3:]} == {cell_len(lines[-1])}
    millions = replace(scores, total=Score("all", 2_345_678, 1_234_567, 1_000_000))
    assert max(cell_len(line) for line in millions.text(rows=200).splitlines()) == 79


def test_json_is_json():
    gold, guess = random_pair(CHUNKS, 20)
    scores = score_tags(gold, guess, lexicon=Lexicon(flat(gold), {"O"}))
    shown = json.loads(json.dumps(scores.to_json(), allow_nan=False))
    assert shown["metrics"] == scores.metrics()
    assert shown["types"] == scores.table()
    assert shown["counts"]["right_tokens"] == scores.right
    assert shown["counts"]["oov_support"] == len(flat(gold)) - flat(gold).count("O")
    assert shown["kind"] == "chunks"
    assert shown["metrics"]["oov_share"] == pytest.approx(1 - flat(gold).count("O") / len(flat(gold)))


def test_names_of_the_package():
    assert hogwild.score_tags is score_tags
    assert hogwild.chunks_of(["I-X"]) == [(0, 1, "X")]
    assert hogwild.TagScores is type(score_tags([], []))


# -- real text ---------------------------------------------------------------------------------------------------------


def read_columns(path):
    with lzma.open(path, "rt") as stream:
        blocks = stream.read().strip().split("\n\n")
    return [[line.split() for line in block.splitlines()] for block in blocks]


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data/conll2000")
def test_the_baseline_of_conll_2000():
    """The most frequent chunk tag of each part of speech: the task's figures, as its script printed them."""
    train, test = (read_columns(DATA / "conll2000" / f"{part}.txt.xz") for part in ("train", "test"))
    counts: dict[str, Counter[str]] = {}
    for _, pos, tag in flat(train):
        counts.setdefault(pos, Counter())[tag] += 1
    usual = {pos: tags.most_common(1)[0][0] for pos, tags in counts.items()}
    gold = [[tag for *_, tag in sentence] for sentence in test]
    guess = [[usual[pos] for _, pos, _ in sentence] for sentence in test]
    scores = score_tags(gold, guess)
    points = [round(100 * share, 2) for share in (scores.accuracy, scores.precision, scores.recall, scores.f1)]
    assert points == [77.29, 72.58, 82.14, 77.07]
    assert (scores.tokens, scores.total.support) == (47_377, 23_852)
    index: dict[str, int] = {}
    (offsets, true), (_, guessed) = coded(gold, index), coded(guess, index)
    began = time.process_time()
    for _ in range(4):
        assert score_codes(offsets, true, guessed, tuple(index)) == scores
    assert (time.process_time() - began) / 4 < 0.05  # 0.002 s on an idle machine
