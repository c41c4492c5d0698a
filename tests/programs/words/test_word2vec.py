"""Word vectors as a program: every mode and sharing learns them; losses, traces and real text."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import ConfigError, CorpusConfig, InputError, Word2Vec
from hogwild.executor.trace import add_up
from places import DATA
from problems.word_topics import DIM, LR, contrast, corpus, made, same, sentences, train

WIKI = DATA / "wiki" / "wiki100m.txt.xz"
RELATED = """king queen, one two, east west, north south, war army, january february, english language, god religion,
president government, blue red, france french, father son, species animals, she her, france germany, three four"""


@pytest.fixture(scope="module")
def text() -> hogwild.Corpus:
    return corpus()


def epochs_of(program: Word2Vec, text: hogwild.Corpus, **options: Any) -> list[Any]:
    executor = hogwild.AsyncExecutor(**{"lr": LR, "epochs": 2, **options})
    return [event for event in executor.run(program, text) if event.kind == "epoch"]


# -- learning -------------------------------------------------------------------------------------------------------


def test_the_topics_are_not_told_apart_by_chance(text: hogwild.Corpus) -> None:
    program = made()
    program.startup(text, 1)
    assert abs(contrast(program.vectors)) < 0.2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
@pytest.mark.parametrize("cbow", [False, True], ids=["skip-gram", "cbow"])
def test_every_sharing_tells_the_topics_apart(text: hogwild.Corpus, cbow: bool, sharing: str, threads: int) -> None:
    program = train(made(cbow), text, sharing=sharing, threads=threads)
    assert contrast(program.vectors) > 0.5
    assert not program.weights.inputs[:, DIM:].any()


# Each mode is compiled for each model: half of the pairs must do.
@pytest.mark.parametrize(
    ("mode", "cbow"),
    [("serial", False), ("serial", True), ("locked", False), ("round-robin", True), ("minibatch", False)],
)
def test_every_mode_tells_the_topics_apart(text: hogwild.Corpus, mode: str, cbow: bool) -> None:
    for threads in (1,) if mode == "serial" else (1, 2):
        assert contrast(train(made(cbow), text, mode=mode, threads=threads).vectors) > 0.5


@pytest.mark.parametrize("cbow", [False, True], ids=["skip-gram", "cbow"])
@pytest.mark.parametrize(
    "options", [{"pair_negatives": True}, {"window": 1}, {"window": 30}, {"negatives": 1}, {"sample": 0.05}, {"dim": 3}]
)
def test_every_option_tells_the_topics_apart(text: hogwild.Corpus, cbow: bool, options: dict[str, Any]) -> None:
    assert contrast(train(made(cbow, **options), text, epochs=15).vectors) > 0.4


def test_one_endless_sentence_is_learnt_from() -> None:
    joined = [[word for sentence in sentences(400) for word in sentence]]
    endless = hogwild.corpus_of(joined, CorpusConfig(min_count=1))
    assert len(endless) == 4000
    assert contrast(train(made(window=2), endless).vectors) > 0.4


def test_serial_is_repeatable_and_the_seed_counts(text: hogwild.Corpus) -> None:
    one, other, third = (train(made(), text, mode="serial", seed=seed) for seed in (1, 1, 2))
    assert same(one, other)
    assert not same(one, third)


def test_the_loss_is_right_under_threads(text: hogwild.Corpus) -> None:
    """At a rate that changes nothing all workers together must find what one finds; a sample of windows is drawn."""
    alone, *others = (
        epochs_of(made(), text, lr=1e-9, **options)[-1].loss
        for options in ({"mode": "serial"}, {"threads": 2}, {"threads": 2, "sharing": "replica"})
    )
    # With outputs at zero every score is zero: a word has on the average 2 to 2 * window neighbours, six terms each.
    assert alone > np.log(2) * 6
    assert others == pytest.approx([alone] * 2, rel=2e-2)
    exact = made(window=1, pair_negatives=True)  # windows of one size: nothing is left to chance but the negatives
    alone, *others = (
        epochs_of(exact, text, lr=1e-9, **options)[-1].loss
        for options in ({"mode": "serial"}, {"threads": 2}, {"threads": 2, "sharing": "hot"})
    )
    pairs = 18 / 10 * 6  # of a sentence of ten words, with five negatives each
    assert alone == pytest.approx(pairs * np.log(2), rel=1e-4)
    assert others == pytest.approx([alone] * 2, rel=1e-6)


def test_a_trace_counts_every_visit_and_serial_has_no_errors(text: hogwild.Corpus) -> None:
    program = made()
    serial = add_up(epochs_of(program, text, mode="serial", trace=True)[-1].trace)
    visits = program.visits(text)
    assert serial["gradients"] == visits
    assert serial["errors"] == serial["delay"]["max"] == 0
    assert serial["wrong"]["max"] == 0.0
    free = add_up(epochs_of(program, text, threads=2, sharing="all", trace=True)[-1].trace)
    assert free["gradients"] == visits
    assert free["errors"] <= free["looked_at"] <= visits
    assert contrast(train(made(), text, mode="serial", trace=True).vectors) > 0.5


def test_a_trace_does_not_change_what_is_learnt(text: hogwild.Corpus) -> None:
    """Where it looks, it computes gradients and then applies them; training without it does both in one."""
    traced, plain = (train(made(), text, mode="serial", epochs=2, trace=trace) for trace in (True, False))
    for one, other in zip(traced.weights, plain.weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


# -- measuring ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cbow", [False, True], ids=["skip-gram", "cbow"])
def test_held_out_text_of_the_same_language_costs_less(text: hogwild.Corpus, cbow: bool) -> None:
    program = made(cbow)
    program.startup(text, 1)
    held_out = corpus(50, seed=9, vocabulary=program.words)
    shuffled = [word for sentence in sentences(50, seed=9) for word in sentence]
    np.random.default_rng(0).shuffle(shuffled)
    mixed = hogwild.corpus_of([shuffled], CorpusConfig(min_count=1), vocabulary=program.words)
    before = program.evaluate(held_out)["loss"]
    train(program, text)
    after = program.evaluate(held_out)["loss"]
    assert after == program.evaluate(held_out)["loss"]
    assert after < 0.95 * before
    assert after < program.evaluate(mixed)["loss"]


def test_a_loss_of_zeros_is_known(text: hogwild.Corpus) -> None:
    """Outputs begin at zero: every score is zero, and every pair with its negatives costs 6 log 2."""
    for pairs in (False, True):
        program = made(window=1, pair_negatives=pairs)
        program.startup(text, 1)
        assert program.evaluate(text)["loss"] == pytest.approx(1.8 * 6 * np.log(2), rel=1e-5)
        cbow = made(True, window=1, pair_negatives=pairs)
        cbow.startup(text, 1)
        assert cbow.evaluate(text)["loss"] == pytest.approx(6 * np.log(2), rel=1e-5)


def test_validation_keeps_the_best_epoch(text: hogwild.Corpus) -> None:
    held_out = corpus(50, seed=9, vocabulary=text.words)
    executor = hogwild.AsyncExecutor(mode="serial", lr=LR, epochs=3)
    ends = [event for event in executor.run(made(), text, valid=held_out) if event.kind == "epoch"]
    losses = [event.metrics["loss"] for event in ends]
    assert losses[-1] < losses[0]
    assert ends[int(np.argmin(losses))].is_best


def test_text_in_another_vocabulary_is_refused(text: hogwild.Corpus) -> None:
    program = train(made(), text, epochs=1)
    with pytest.raises(ConfigError, match=r"another vocabulary.*vocabulary=program\.words"):
        program.evaluate(hogwild.corpus_of([["a", "b"]], CorpusConfig(min_count=1)))


@pytest.mark.parametrize("cbow", [False, True], ids=["skip-gram", "cbow"])
def test_shared_negatives_are_even_in_number(cbow: bool) -> None:
    """Compiled code takes them two at a time, and would leave an odd one out."""
    assert made(cbow).task.shared % 2 == 0
    assert made(cbow).task.shared > 0
    assert made(cbow, pair_negatives=True).task.shared == 0


# -- what cannot work -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"dim": 0}, {"dim": 5000}, {"window": 0}, {"window": 101}, {"negatives": 0}, {"sample": 2}, {"sample": -1}],
)
def test_options_that_cannot_work(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        Word2Vec(**options)


def test_rows_of_features_are_no_text() -> None:
    feed = hogwild.feed_of(np.eye(3), ["a", "b", "a"])
    with pytest.raises(ConfigError, match=r"Feed is no text; use hogwild\.open_corpus"):
        train(made(), feed)


def test_one_word_is_not_enough() -> None:
    with pytest.raises(InputError, match=r"at least two different words.*only `a`"):
        train(made(), hogwild.corpus_of([["a"] * 20], CorpusConfig(min_count=1)))


def test_there_are_no_vectors_before_training() -> None:
    with pytest.raises(ConfigError, match="no vectors yet"):
        _ = made().vectors
    with pytest.raises(ConfigError, match="no weights yet"):
        made().arrays()


def test_more_words_than_memory_are_refused(monkeypatch: pytest.MonkeyPatch, text: hogwild.Corpus) -> None:
    monkeypatch.setattr("hogwild.machine.memory", lambda: 1000)
    with pytest.raises(ConfigError, match=r"52 words of 16 numbers need .* GB.*--min-count"):
        made().startup(text, 1)


# -- real text ------------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.skipif(not WIKI.exists(), reason="needs ../shared/data/wiki")
def test_related_words_of_real_text_become_alike(tmp_path: Path) -> None:
    with lzma.open(WIKI) as stream:
        (tmp_path / "wiki.txt").write_bytes(stream.read(2_000_000).rpartition(b" ")[0])
    text = hogwild.open_corpus(tmp_path / "wiki.txt", CorpusConfig(cache=False))
    pairs = [pair.split() for pair in RELATED.split(",")]
    others = ~np.eye(len(pairs), dtype=bool)
    for cbow, lr, margin in ((False, 0.025, 0.2), (True, 0.05, 0.07)):
        program = train(made(cbow, sample=1e-3), text, lr=lr, epochs=5, threads=2)
        one, other = (np.array([program.vectors[pair[side]] for pair in pairs]) for side in (0, 1))
        one, other = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (one, other))
        alike = one @ other.T
        assert np.diag(alike).mean() > alike[others].mean() + margin
        nearest = [word for word, _ in program.vectors.most_similar("three")]
        assert {"two", "four", "five", "six"} & set(nearest)
