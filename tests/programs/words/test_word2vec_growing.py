"""Word vectors that go on: more text, given vectors, saved models and runs with a break."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import ConfigError, CorpusConfig, Word2Vec
from hogwild.config import TrainConfig
from hogwild.errors import ModelError
from hogwild.executor.readers.checkpoint import Checkpointer, Output, identity_of, load_checkpoint
from problems.word_topics import DIM, LR, TOPICS, contrast, corpus, made, same, train


@pytest.fixture(scope="module")
def text() -> hogwild.Corpus:
    return corpus()


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


def test_a_text_counts_each_time_that_it_is_trained_on(text: hogwild.Corpus) -> None:
    program = train(made(), text, epochs=2)
    np.testing.assert_array_equal(program.counts, text.counts)
    train(program, text, epochs=1)
    np.testing.assert_array_equal(program.counts, 2 * text.counts)


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


FITTING = {"words": ["a", "b"], "vectors": np.zeros((2, DIM)), "outputs": np.zeros((2, DIM)), "counts": [2, 1]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"vectors": np.zeros((2, DIM - 1))}, r"vectors .* \(2, 15\), not \(2, 16\)"),
        ({"vectors": np.zeros((3, DIM))}, r"vectors .* \(3, 16\), not \(2, 16\)"),
        ({"vectors": np.zeros(DIM)}, r"vectors .* \(16,\), not \(2, 16\)"),
        ({"vectors": np.full((2, DIM), np.nan)}, "vectors .* not finite"),
        ({"vectors": np.full((2, DIM), 1e39)}, "vectors .* not finite"),
        ({"outputs": np.zeros((1, DIM))}, r"outputs .* \(1, 16\), not \(2, 16\)"),
        ({"outputs": np.full((2, DIM), np.inf)}, "outputs .* not finite"),
        ({"counts": [1, 2, 3]}, "counts .* 2 numbers"),
        ({"counts": [1, -2]}, "none below 0"),
        ({"words": ["a", "a"]}, "occurs twice"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_what_cannot_be_started_from(changed: dict[str, Any], said: str) -> None:
    assert made().begin_with(**FITTING).words == ("a", "b")
    with pytest.raises(ConfigError, match=said):
        made().begin_with(**{**FITTING, **changed})


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
    """From learnt vectors, some of whose words the text has not: rows are carried from order to order."""
    options = {"epochs": 4, "lr": LR, "seed": 3}
    random = np.random.default_rng(0)
    words = ("unseen", *TOPICS[0], "another")

    def begun() -> Word2Vec:
        vectors, outputs = random.normal(0, 0.1, (2, len(words), DIM))
        return made().begin_with(words, vectors, outputs, np.arange(len(words)) * 20)

    whole, random = begun(), np.random.default_rng(0)
    for _ in hogwild.AsyncExecutor(mode="serial").run(whole, text, **options):
        pass
    broken = begun()
    identity = identity_of(broken, TrainConfig(mode="serial", **options), text)
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
    assert program.counts.sum() == len(text) + 20 * sum(range(len(words)))
    assert (np.diff(program.counts) <= 0).all()


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
        {"earlier": np.zeros(3, np.int64)},
        {"earlier": np.zeros(2, np.float64)},
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
