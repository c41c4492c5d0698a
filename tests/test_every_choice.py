"""Every program with every update rule, mode and sharing that a user can choose, compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest

import hogwild
from hogwild.config import Mode, Optimizer
from problems import crf, mlp, tagged, word_topics

pytestmark = pytest.mark.full

RULES = get_args(Optimizer)
MODES = get_args(Mode)
PRIVATE = ("hot", "replica")
RATES = {"sgd": 0.1, "momentum": 0.02, "adagrad": 0.2, "adam": 0.02, "ftrl": 0.2}
EPOCHS = 4
TINY = {"hidden": 16, "word_dim": 8, "feature_dim": 4, "batch_size": 4, "l2": 1e-6}


class Kind(NamedTuple):
    """A program as users make it, and a feed that it learns from. An empty rule: the program has its own."""

    program: Callable[..., Any]
    feed: Callable[[], Any]
    rules: tuple[str, ...] = RULES
    rate: float = 1.0  # times the rate of the rule


def _rows(rows: int = 240, features: int = 12) -> Any:
    """Rows whose label a linear model learns."""
    random = np.random.default_rng(7)
    matrix = random.random((rows, features)) * (random.random((rows, features)) < 0.5)
    scores = matrix @ random.standard_normal(features)
    return hogwild.feed_of(matrix, ["high" if score > np.median(scores) else "low" for score in scores])


def _texts() -> Any:
    import scipy.sparse

    random = np.random.default_rng(3)
    labels = np.arange(240) % 2
    words = [np.unique(random.integers(0, 20, 8) + 20 * label * (random.random(8) < 0.8)) for label in labels]
    offsets = np.cumsum([0, *map(len, words)])
    ids = np.concatenate(words)
    matrix = scipy.sparse.csr_matrix((np.ones(len(ids)), ids, offsets), shape=(240, 40))
    return hogwild.feed_of(matrix, ["good" if label else "bad" for label in labels])


def _ratings() -> Any:
    random = np.random.default_rng(5)
    users, items = random.integers(0, 12, 400), random.integers(0, 10, 400)
    items = np.where(random.random(400) < 0.9, items - items % 2 + users % 2, items)
    names = [f"u{user}" for user in users], [f"i{item}" for item in items]
    return hogwild.ratings_of(*names, np.where(users % 2 == items % 2, 4.5, 1.5))


def _documents() -> Any:
    texts = [" ".join(words) for words in word_topics.sentences(80)]
    return hogwild.documents_of(texts, hogwild.DocumentConfig(min_count=1))


def _sentences() -> Any:
    return crf.make_feed(3, 3, lengths=[6, 9, 4, 7] * 20, features=15)


KINDS = {
    "linear": Kind(lambda **o: hogwild.Linear(l1=1e-5, l2=1e-4, **o), _rows),
    "fm": Kind(lambda **o: hogwild.FactorizationMachine(dim=4, l2=1e-4, l2_factors=1e-4, **o), _rows),
    "mlp": Kind(lambda **o: hogwild.SparseMLP(dim=4, hidden=(8,), batch_size=8, wide=True, **o), mlp.pair_feed),
    "text": Kind(lambda **o: hogwild.TextClassifier(dim=8, **o), _texts),
    "ratings": Kind(lambda **o: hogwild.MatrixFactorization(dim=4, **o), _ratings),
    "crf": Kind(lambda **o: hogwild.CRF(rich_edge_min_count=1, **o), _sentences, rate=0.5),
    "bilstm": Kind(lambda **o: hogwild.BiLSTM(**{**TINY, **o}), lambda: tagged.made_feed(80)),
    "skip-gram": Kind(lambda **_: word_topics.made(), lambda: word_topics.corpus(80), ("",)),
    "cbow": Kind(lambda **_: word_topics.made(cbow=True), lambda: word_topics.corpus(80), ("",)),
    "dm": Kind(lambda **_: hogwild.Doc2Vec(dim=16, sample=0), _documents, ("",)),
    "dbow": Kind(lambda **_: hogwild.Doc2Vec(dim=16, sample=0, dbow=True), _documents, ("",)),
    "dbow with words": Kind(lambda **_: hogwild.Doc2Vec(dim=16, sample=0, dbow=True, words=True), _documents, ("",)),
}


def _train(kind: Kind, rule: str, mode: str, **options: Any) -> tuple[list[Any], int]:
    """The ends of the epochs of a run, and the visits of one: of dense layers a visit is a batch of samples."""
    program = kind.program(**({"optimizer": rule} if rule else {}))
    feed = kind.feed()
    threads = 1 if mode == "serial" else 2
    lr = RATES[rule] * kind.rate if rule else None
    executor = hogwild.AsyncExecutor(threads=threads, mode=mode, lr=lr or program.rate, schedule="constant", **options)
    events = list(executor.run(program, feed, epochs=EPOCHS))
    visits = program.visits(feed)
    assert events[-1].samples == EPOCHS * program.epoch_samples(feed)
    assert all(np.isfinite(array).all() for array in program.arrays().values())
    return [event for event in events if event.kind == "epoch"], visits


CHOICES = [(name, rule) for name, kind in KINDS.items() for rule in kind.rules]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "rule"), CHOICES)
def test_every_mode_visits_all_and_learns(name: str, rule: str, mode: str) -> None:
    epochs, _ = _train(KINDS[name], rule, mode, sharing="all")
    assert len(epochs) == EPOCHS
    assert epochs[-1].loss < epochs[0].loss


@pytest.mark.parametrize("sharing", PRIVATE)
@pytest.mark.parametrize(("name", "rule"), CHOICES)
def test_private_copies_lose_no_visit(name: str, rule: str, sharing: str) -> None:
    """Two workers on private rows: how well that learns depends on how they take turns, so that only bounds hold."""
    epochs, _ = _train(KINDS[name], rule, "hogwild", sharing=sharing)
    assert all(math.isfinite(epoch.loss) for epoch in epochs)


TRACED = [("linear", "sgd"), ("mlp", "adam"), ("crf", "sgd"), ("bilstm", "adam"), ("skip-gram", ""), ("dbow", "")]


@pytest.mark.parametrize(("name", "rule"), TRACED)
def test_a_trace_counts_every_gradient_once(name: str, rule: str) -> None:
    epochs, visits = _train(KINDS[name], rule, "hogwild", sharing="all", trace=True)
    for epoch in epochs:
        assert sum(worker["gradients"] for worker in epoch.trace) == visits
        assert all(0 <= worker["errors"] <= worker["gradients"] for worker in epoch.trace)
