"""Phrases, compared with a twin and with gensim."""

from __future__ import annotations

import random
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.config import CorpusConfig
from hogwild.feeds.corpus import phrases
from hogwild.feeds.corpus.feed import Corpus
from hogwild.feeds.corpus.open import corpus_of, open_corpus
from reference import corpus as twin


def text_of(seed: int, size: int = 300) -> twin.Sentences:
    """Sentences in which some words follow others more often than by chance."""
    rng = random.Random(seed)
    names = [["new", "york"], ["los", "angeles"], ["new", "york", "times"], ["aa", "aa"]]
    plain = [f"w{k}" for k in range(40)] + ["new", "times"]
    sentences = []
    for _ in range(size):
        parts = [rng.choice(names) if rng.random() < 0.3 else [rng.choice(plain)] for _ in range(rng.randint(0, 12))]
        sentences.append([word for part in parts for word in part])
    return sentences


def sentences_in(corpus: Corpus) -> twin.Sentences:
    found: twin.Sentences = [[]]
    for ident in corpus.samples.ids.tolist():
        if ident == -1:
            found.append([])
        else:
            found[-1].append(corpus.words[ident])
    return found[:-1]


def config(**options: Any) -> CorpusConfig:
    return CorpusConfig(**{"min_count": 1, "phrases": 1, "phrase_threshold": 1.0, "cache": False, **options})


@pytest.mark.parametrize(("seed", "threshold", "least"), [(1, 1.0, 5), (2, 3.0, 1), (3, 0.3, 1), (4, 1e9, 5)])
def test_phrases_are_those_of_gensim(seed: int, threshold: float, least: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = pytest.importorskip("gensim.models.phrases", reason="gensim is not installed")

    sentences = text_of(seed)
    model = theirs.Phrases(sentences, min_count=least, threshold=threshold)
    expected = [joined for sentence in sentences if (joined := model[sentence])]
    corpus = corpus_of(sentences, config(phrase_threshold=threshold, phrase_min_count=least))
    assert sentences_in(corpus) == expected
    joins = sum(map(len, sentences)) - sum(map(len, expected))
    assert (joins > 0) == (threshold < 1e9)
    assert corpus.notes[0].endswith(f"joined at {joins:,} places.")
    assert corpus.total == len(corpus) == sum(map(len, expected))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_several_passes_and_threads(tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases, "_PART", 7)  # cuts fall between the words of phrases
    monkeypatch.setattr(phrases, "_FIRST", 4)
    file = tmp_path / "text.txt"
    sentences = text_of(5)
    file.write_text("\n".join(" ".join(sentence) for sentence in sentences))
    expected = sentences
    for _ in range(2):
        expected = twin.join_phrases(expected, 5, 1.0)
    expected = [sentence for sentence in expected if sentence]
    corpus = open_corpus(file, config(phrases=2), threads=threads)
    assert sentences_in(corpus) == expected
    assert "new_york_times" in corpus.words
    counts = twin.vocabulary_of(expected)
    assert dict(zip(corpus.words, corpus.counts.tolist(), strict=True)) == counts
    assert corpus.words == tuple(counts)
    rare = open_corpus(file, config(phrases=2, min_count=60), threads=threads)
    assert rare.words == tuple(twin.vocabulary_of(expected, 60)), "rare words are dropped afterwards"
    assert rare.samples.ids.tolist() == twin.ids_of(expected, rare.words)


def test_an_endless_line(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    words = [word for sentence in text_of(6) for word in sentence]
    file.write_text(" ".join(words))
    assert sentences_in(open_corpus(file, config())) == twin.join_phrases([words], 5, 1.0)


def test_a_phrase_that_is_a_word_already() -> None:
    sentences = [["a", "b"], ["a_b"], ["c", "d"], ["e"]] * 10
    corpus = corpus_of(sentences, config(phrase_min_count=1, phrase_threshold=0.1))
    assert corpus.words == ("a_b", "c_d", "e")
    assert corpus.counts.tolist() == [20, 10, 10]


def test_phrases_of_a_given_vocabulary() -> None:
    corpus = corpus_of(
        [["in", "new", "york", "new", "york", "times"], ["york", "new"]],
        config(phrases=2),
        vocabulary=["new", "new_york", "new_york_times"],
    )
    assert sentences_in(corpus) == [["new_york", "new_york_times"], ["new"]]
    assert corpus.counts.tolist() == [1, 1, 1]
    assert corpus.total == 5


def test_phrases_to_keep_are_joined_whatever_their_score() -> None:
    sentences = [["new", "york"], ["old", "york"], ["new", "york"], ["tea"]] * 3
    usual = corpus_of(sentences, config(phrase_threshold=1e9))
    assert set(usual.words) == {"new", "york", "old", "tea"}
    kept = corpus_of(sentences, config(phrase_threshold=1e9, min_count=2), keep=["new_york", "tea"])
    assert dict(zip(kept.words, kept.counts.tolist(), strict=True)) == {"new_york": 6, "old": 3, "tea": 3, "york": 3}
    scored = corpus_of(text_of(7), config(phrase_threshold=1.0))
    met = {f"{a}_{b}" for sentence in text_of(7) for a, b in pairwise(sentence) if {a[0], b[0]} == {"w"}}
    rare = min(met - set(scored.words))
    more = corpus_of(text_of(7), config(phrase_threshold=1.0), keep=[rare])
    assert {word for word in more.words if "_" in word} == {word for word in scored.words if "_" in word} | {rare}


def test_more_pairs_than_memory_is_set_aside_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases, "PAIRS_A_WORD", 1)
    monkeypatch.setattr(phrases, "_FIRST", 8)
    corpus = corpus_of(text_of(7, 600), config(phrase_min_count=20, max_vocabulary=512))
    assert "los_angeles" in corpus.words
    (note,) = [note for note in corpus.notes if "different pairs" in note]
    assert "Pass 1: more than 512 different pairs" in note
    assert "may be low by" in note


def test_dropped_pairs_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases, "_FIRST", 8)
    text = np.random.default_rng(1).integers(0, 60, 4000).astype(np.int32)
    tables = [phrases.count_all(text, threads, 256) for threads in (1, 2, 3)]
    assert tables[0][1] > 0
    for pairs, lost in tables:
        assert lost == tables[0][1]
        found = pairs.keys != 0
        first = tables[0][0].keys != 0
        assert dict(zip(pairs.keys[found].tolist(), pairs.numbers[found].tolist(), strict=True)) == dict(
            zip(tables[0][0].keys[first].tolist(), tables[0][0].numbers[first].tolist(), strict=True)
        )
