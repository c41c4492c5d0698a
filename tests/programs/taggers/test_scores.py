"""Scores of taggers against seqeval, scikit-learn, sets of spans, and a published figure."""

from __future__ import annotations

import lzma
import time
import warnings
from collections import Counter

import numpy as np
import pytest
import seqeval.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from hogwild.feeds.tagged.schemes import coded
from hogwild.programs.taggers.scores import Lexicon, score_codes, score_tags
from places import DATA
from problems.tagged import CHUNKS, flat, random_pair
from reference.tagging import bmes, spans_of_words


def theirs(gold, guess):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return seqeval.metrics.classification_report(gold, guess, output_dict=True, zero_division=0)


# -- chunks ----------------------------------------------------------------------------------------------------------


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


# -- tags ------------------------------------------------------------------------------------------------------------


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


# -- words -----------------------------------------------------------------------------------------------------------


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


# -- real text -------------------------------------------------------------------------------------------------------


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
