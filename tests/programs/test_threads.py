"""Metrics are the same, bit for bit, whatever the number of threads; validation has the cores of the workers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse

import hogwild
from hogwild.machine import cores
from problems.crf import fill
from test_own_program import TEST, TRAIN, own


def _rows(classes: int = 2) -> hogwild.Feed:
    random = np.random.default_rng(classes)
    matrix = sparse.random_array((1500, 40), density=0.2, format="csr", rng=random, dtype=np.float32)
    return hogwild.feed_of(matrix, [f"c{k % classes}" for k in range(1500)], random.random(1500))


def _ready(program: Any, feed: Any) -> tuple[Any, Any]:
    """The program with random weights, as if it had been trained on the feed."""
    program.startup(feed, 1)
    random = np.random.default_rng(4)
    for array in program.weights:
        array += random.normal(0, 0.1, array.shape).astype(np.float32)
    return program, feed


def _linear() -> Any:
    return _ready(hogwild.Linear(), _rows())


def _classes() -> Any:
    return _ready(hogwild.Linear(), _rows(classes=3))


def _fm() -> Any:
    return _ready(hogwild.FactorizationMachine(dim=3), _rows())


def _mlp() -> Any:
    return _ready(hogwild.SparseMLP(dim=4, hidden=(8,)), _rows())


def _text() -> Any:
    return _ready(hogwild.TextClassifier(dim=8, counts=True), _rows(classes=3))


def _pairs(rows: int, most: int, seed: int = 1) -> tuple[list[str], list[str]]:
    random = np.random.default_rng(seed)
    return [f"u{k}" for k in random.integers(0, most, rows)], [f"i{k}" for k in random.integers(0, most, rows)]


def _ratings() -> Any:
    users, items = _pairs(100_000, 50)
    return _ready(hogwild.MatrixFactorization(dim=4), hogwild.ratings_of(users, items, [len(name) for name in users]))


def _ranking() -> Any:
    program, _ = _ready(hogwild.MatrixFactorization(dim=4), hogwild.ratings_of(*_pairs(20_000, 3000)))
    names = program.users, program.items
    return program, hogwild.ratings_of(*_pairs(5000, 3000, seed=2), names=names)  # three blocks of users


def _crf() -> Any:
    random = np.random.default_rng(1)
    words = [[f"w{k}" for k in random.integers(0, 30, size)] for size in random.integers(1, 12, 400)]
    tags = [["B" if word < "w2" else "I" if word < "w3" else "O" for word in sentence] for sentence in words]
    feed = hogwild.tagging_of([[[word] for word in sentence] for sentence in words], tags)
    program = hogwild.CRF(rich_edges=True, rich_edge_min_count=1)
    program.startup(feed, 1)
    fill(program, 3)
    return program, feed


def _words(cbow: bool = False) -> Any:
    lines = [[f"w{k}" for k in line] for line in np.random.default_rng(1).geometric(0.05, (9000, 25)).tolist()]
    corpus = hogwild.corpus_of(lines, hogwild.CorpusConfig(min_count=1))  # some four pieces
    program, _ = _ready(hogwild.Word2Vec(dim=8, cbow=cbow), corpus)
    program.weights.inputs[:, 8:], program.weights.outputs[:, 8:] = 0, 0
    return program, corpus


MADE = {
    "linear": _linear, "classes": _classes, "fm": _fm, "sparse_mlp": _mlp, "text": _text, "ratings": _ratings,
    "ranking": _ranking, "crf": _crf, "skip-gram": _words, "cbow": partial(_words, cbow=True),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_metrics_have_the_same_bits_in_any_number_of_threads(name: str) -> None:
    program, feed = MADE[name]()
    once = program.evaluate(feed)
    assert len(once) == 1 if name in ("skip-gram", "cbow") else len(once) > 2
    assert all(np.isfinite(value) for value in once.values())
    for threads in (1, 2, 3):
        assert program.evaluate(feed, threads) == once


def test_the_loss_of_words_counts_every_piece() -> None:
    program, corpus = _words()
    ends = np.flatnonzero(corpus.samples.ids < 0)
    lines = [[corpus.words[k] for k in line if k >= 0] for line in np.split(corpus.samples.ids, ends)]
    piece = hogwild.corpus_of(lines[:2000], hogwild.CorpusConfig(min_count=1), program.words)
    assert len(piece.samples.ids) < 64 * 1024 < len(corpus.samples.ids) / 3
    one, whole = program.evaluate(piece)["loss"], program.evaluate(corpus, 3)["loss"]
    assert whole == pytest.approx(one, rel=0.05)  # other lines, of words with the same chances
    assert whole != one


def _asked(evaluate: Any) -> Any:
    whole = own.make_program()
    whole.startup(TRAIN, 1)
    return hogwild.CustomProgram(whole.task, own.make_vectors, room=whole.room(TRAIN), evaluate=evaluate)


def test_a_function_of_the_users_is_told_the_threads_if_it_asks() -> None:
    told: list[int] = []

    def with_threads(weights: Any, feed: Any, threads: int = 1) -> dict[str, float]:
        told.append(threads)
        return own.errors(weights, feed)

    def anything(weights: Any, feed: Any, **others: Any) -> dict[str, float]:
        assert not others
        return own.errors(weights, feed)

    def by_place(weights: Any, feed: Any, threads: int = 7, /) -> dict[str, float]:
        assert threads == 7
        return own.errors(weights, feed)

    expected = own.errors(own.make_vectors(), TEST)
    for evaluate in (own.errors, with_threads, partial(with_threads), anything, by_place):
        program = _asked(evaluate)
        program.startup(TRAIN, 1)
        for threads in (1, 2, 3):
            assert program.evaluate(TEST, threads) == expected
    assert told == [1, 2, 3, 1, 2, 3]
    assert _asked(dict)._takes_threads is False  # tells nothing of its parameters


@pytest.mark.parametrize(("mode", "workers"), [("hogwild", 1), ("hogwild", 2), ("hogwild", 5), ("serial", 1)])
def test_validation_has_the_cores_of_the_workers(mode: str, workers: int) -> None:
    program = _asked(lambda weights, feed, threads: {"loss": float(threads)})
    executor = hogwild.AsyncExecutor(threads=workers, mode=mode, epochs=2, lr=0.1)
    found = [event.metrics["loss"] for event in executor.run(program, TRAIN, valid=TEST) if event.kind == "epoch"]
    assert found == [min(workers, cores())] * 2
