"""Word vectors as a program: every mode learns them, and what is learnt grows, is saved, measured and gone on with."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import ConfigError, CorpusConfig, InputError, Word2Vec
from hogwild.config import TrainConfig
from hogwild.errors import ModelError
from hogwild.executor.checkpoint import load_checkpoint
from hogwild.executor.checkpointer import Checkpointer, Output, identity_of
from hogwild.executor.trace import add_up
from word_topics import TOPICS, contrast, corpus, sentences

WIKI = Path(__file__).parents[2].parent / "shared" / "data" / "wiki" / "wiki100m.txt.xz"
RELATED = """king queen, one two, east west, north south, war army, january february, english language, god religion,
president government, blue red, france french, father son, species animals, she her, france germany, three four"""
DIM = 16
LR = 0.04


@pytest.fixture(scope="module")
def text() -> hogwild.Corpus:
    return corpus()


def made(cbow: bool = False, **options: Any) -> Word2Vec:
    """Small vectors; no word is left out."""
    return Word2Vec(**{"dim": DIM, "sample": 0, "cbow": cbow, **options})


def train(program: Word2Vec, text: hogwild.Corpus, **options: Any) -> Word2Vec:
    chosen = {"lr": LR, "epochs": 10, "threads": 1, "quiet": True, **options}
    assert hogwild.train(program, text, **chosen) is program
    return program


def epochs_of(program: Word2Vec, text: hogwild.Corpus, **options: Any) -> list[Any]:
    executor = hogwild.AsyncExecutor(**{"lr": LR, "epochs": 2, **options})
    return [event for event in executor.run(program, text) if event.kind == "epoch"]


def same(one: Word2Vec, other: Word2Vec) -> bool:
    pairs = zip(one.arrays().values(), other.arrays().values(), strict=True)
    return one.words == other.words and all(a.tobytes() == b.tobytes() for a, b in pairs)


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
    assert free["errors"] <= visits
    assert contrast(train(made(), text, mode="serial", trace=True).vectors) > 0.5


def test_a_trace_does_not_change_what_is_learnt(text: hogwild.Corpus) -> None:
    """It computes gradients and then applies them, where training without it does both in one."""
    traced, plain = (train(made(), text, mode="serial", epochs=2, trace=trace) for trace in (True, False))
    for one, other in zip(traced.weights, plain.weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


# -- growing --------------------------------------------------------------------------------------------------------


def test_more_text_brings_new_words_and_leaves_the_old_where_they_were() -> None:
    first, second = (
        hogwild.corpus_of(lines, CorpusConfig(min_count=1))
        for lines in ([["b", "a", "a", "c"]] * 20, [["d", "d", "a", "c", "c", "c"]] * 30)
    )
    program = train(made(), first, lr=0.005)
    before = {word: (program.vectors[word].copy(), program.weights.outputs[k].copy()) for k, word in enumerate("abc")}
    assert program.words == ("a", "b", "c")
    program.startup(second, 1)
    assert program.words == (*second.words, "b")
    assert dict(zip(program.words, program.counts.tolist(), strict=True)) == {"a": 70, "b": 20, "c": 110, "d": 60}
    for word, (vector, outputs) in before.items():
        row = program.words.index(word)
        np.testing.assert_array_equal(program.weights.inputs[row, :DIM], vector)
        np.testing.assert_array_equal(program.weights.outputs[row], outputs)
    new = program.words.index("d")
    assert 0 < np.abs(program.weights.inputs[new]).max() <= 1 / DIM
    assert not program.weights.outputs[new].any()


def test_after_more_text_words_stand_by_their_total_count() -> None:
    first, second = (
        hogwild.corpus_of(lines, CorpusConfig(min_count=1))
        for lines in ([["b", "a", "a", "c"]] * 20, [["d", "d", "a", "c", "c", "c"]] * 30)
    )
    program = train(made(), first, lr=0.005)
    kept = program.vectors["b"].copy()
    train(program, second, lr=0.005)
    assert program.words == ("c", "a", "d", "b")
    assert program.counts.tolist() == [110, 70, 60, 20]
    np.testing.assert_array_equal(program.vectors["b"], kept)  # the second text has it not
    assert np.abs(program.vectors["d"]).max() > 1 / DIM


def test_training_on_from_learnt_vectors_keeps_what_they_know(text: hogwild.Corpus) -> None:
    learnt = train(made(), text)
    again = made().begin_with(learnt.words, learnt.vectors.matrix)
    again.startup(text, 5)
    np.testing.assert_array_equal(again.vectors.matrix, learnt.vectors.matrix)
    assert contrast(train(again, text, epochs=1, lr=1e-3).vectors) > 0.5
    part = made().begin_with(TOPICS[0], [learnt.vectors[word] for word in TOPICS[0]])
    part.startup(text, 5)
    for word in TOPICS[0]:
        np.testing.assert_array_equal(part.vectors[word], learnt.vectors[word])
    assert np.abs(part.vectors[TOPICS[1][0]]).max() <= 1 / DIM


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (np.zeros((2, DIM - 1)), r"\(2, 15\), not \(2, 16\)"),
        (np.zeros((3, DIM)), r"\(3, 16\), not \(2, 16\)"),
        (np.zeros(DIM), r"\(16,\), not \(2, 16\)"),
        (np.full((2, DIM), np.nan), "not finite"),
        (np.full((2, DIM), 1e39), "not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_vectors_to_start_from_that_cannot_work(vectors: np.ndarray, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        made().begin_with(["a", "b"], vectors)


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


# -- saving ---------------------------------------------------------------------------------------------------------


def test_a_saved_model_is_the_same_and_opens_as_vectors(tmp_path: Path, text: hogwild.Corpus) -> None:
    program = train(made(window=4, negatives=3, pair_negatives=True), text, epochs=1)
    hogwild.save_model(tmp_path / "m", program)
    loaded = hogwild.load_model(tmp_path / "m").program
    assert isinstance(loaded, Word2Vec)
    assert loaded.config == program.config
    assert same(loaded, program)
    assert loaded.evaluate(text) == program.evaluate(text)
    vectors = hogwild.Vectors.load(tmp_path / "m")
    assert tuple(vectors.words) == program.words
    np.testing.assert_array_equal(vectors.matrix, program.vectors.matrix)
    assert vectors.most_similar("sea0")[0] == program.vectors.most_similar("sea0")[0]
    assert contrast(train(loaded, text).vectors) > 0.5


def test_a_run_gone_on_with_equals_one_without_a_break(tmp_path: Path, text: hogwild.Corpus) -> None:
    config = TrainConfig(mode="serial", epochs=4, lr=LR, seed=3)
    options = {"epochs": 4, "lr": LR, "seed": 3}
    whole = made()
    for _ in hogwild.AsyncExecutor(mode="serial").run(whole, text, **options):
        pass
    broken = made()
    identity = identity_of(broken, config, text)
    executor = hogwild.AsyncExecutor(mode="serial")
    saver = Checkpointer(executor, broken, Output(tmp_path / "m"), None, identity)
    events = executor.run(broken, text, **options)
    for event in events:
        if event.kind == "epoch":
            executor.park()
        saver(event)
        if event.kind == "parked":
            break
    events.close()  # type: ignore[attr-defined]
    found = load_checkpoint(tmp_path / "m", made(), identity)
    assert found is not None
    program, start = found
    assert start.position.epoch in (1, 2)
    executor = hogwild.AsyncExecutor(mode="serial")
    saver = Checkpointer(executor, program, Output(tmp_path / "m"), None, identity, start)
    for event in executor.run(program, text, start=start, **options):
        saver(event)
    assert same(program, whole)
    assert same(hogwild.load_model(tmp_path / "m").program, whole)


@pytest.mark.parametrize(
    "changed",
    [
        {"vectors": np.zeros((2, DIM + 1), np.float32)},
        {"vectors": np.zeros((3, DIM), np.float32)},
        {"vectors": np.zeros((2, DIM), np.float64)},
        {"vectors": np.zeros(2 * DIM, np.float32)},
        {"outputs": np.zeros((2, 1), np.float32)},
        {"outputs": np.zeros((1, DIM), np.float32)},
        {"counts": np.zeros(1, np.int64)},
        {"counts": np.zeros(2, np.float32)},
        {"more": np.zeros(2, np.float32)},
        {"counts": None},
    ],
)
def test_arrays_that_do_not_fit_are_refused(changed: dict[str, Any]) -> None:
    program = made(words=["a", "b"])
    arrays = {
        "vectors": np.ones((2, DIM), np.float32), "outputs": np.ones((2, DIM), np.float32), "counts": np.array([2, 1]),
    }  # fmt: skip
    program.restore(arrays)
    arrays = {name: array for name, array in {**arrays, **changed}.items() if array is not None}
    with pytest.raises(ModelError, match=next(iter(changed))):
        made(words=["a", "b"]).restore(arrays)


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
    monkeypatch.setattr("hogwild.programs.word2vec.memory", lambda: 1000)
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
