"""Every program whose weights are arrays learns on two nodes: counts are exact, and it learns what it should."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse

import hogwild
from hogwild.cluster import ClusterConfig, ClusterExecutor
from hogwild.cluster.session import Session

pytestmark = pytest.mark.full


def rows(place: Path) -> Any:
    random = np.random.default_rng(0)
    matrix = sparse.random(3000, 60, 0.2, format="csr", random_state=0, dtype=np.float32)
    return hogwild.feed_of(matrix, (matrix @ random.normal(size=60) > 0).astype(int))


def ratings(place: Path) -> Any:
    random = np.random.default_rng(0)
    left, right = random.normal(size=(50, 3)), random.normal(size=(40, 3))
    who, what = random.integers(0, 50, 4000), random.integers(0, 40, 4000)
    return hogwild.ratings_of(who.astype(str), what.astype(str), (left[who] * right[what]).sum(1))


def texts(place: Path) -> Any:
    random = np.random.default_rng(0)
    path = place / "texts.tsv"
    labels = random.integers(0, 2, 1500)
    path.write_text("".join(f"{k}\t{' '.join(f'{k}w{w}' for w in random.integers(0, 30, 8))}\n" for k in labels))
    return hogwild.open_feed([path], hogwild.FeedConfig(format="text", cache=False))


def sentences(place: Path) -> Any:
    random = np.random.default_rng(0)
    made = []
    for _ in range(400):
        words = random.integers(0, 20, random.integers(3, 9))
        made.append([(f"w{word}", "A" if word < 10 else "B") for word in words])
    path = place / "tagged.txt"
    path.write_text("\n\n".join("\n".join(f"{word} {tag}" for word, tag in sentence) for sentence in made) + "\n")
    return hogwild.open_tagging(path, hogwild.TaggingConfig(features="pos"))


CASES: dict[str, tuple[Callable[[], Any], Callable[[Path], Any], dict[str, Any], str, float]] = {
    "linear": (lambda: hogwild.Linear(l2=1e-4), rows, {}, "accuracy", 0.9),
    "fm": (lambda: hogwild.FactorizationMachine(dim=4), rows, {}, "accuracy", 0.85),
    "mlp": (lambda: hogwild.SparseMLP(dim=4, hidden=(8,), batch_size=16), rows, {}, "accuracy", 0.8),
    "mf": (lambda: hogwild.MatrixFactorization(dim=4), ratings, {}, "rmse", -1.2),
    "text": (lambda: hogwild.TextClassifier(dim=8), texts, {}, "accuracy", 0.95),
    "crf": (hogwild.CRF, sentences, {}, "accuracy", 0.95),
    "bilstm": (lambda: hogwild.BiLSTM(hidden=8, word_dim=8, batch_size=4), sentences, {}, "accuracy", 0.9),
}


@pytest.mark.parametrize("name", CASES)
def test_two_nodes_learn(nodes: Session, tmp_path: Path, name: str) -> None:
    make, open_data, options, metric, least = CASES[name]
    program, feed = make(), open_data(tmp_path)
    config = ClusterConfig("local", nodes=2, workers_per_node=1, **options)
    with ClusterExecutor(config, epochs=8) as executor:
        *_, last = executor.run(program, feed)
    assert last.samples == 8 * program.epoch_samples(feed)
    found = program.evaluate(feed)[metric]
    assert (found if least > 0 else -found) > least
    assert all(np.isfinite(array).all() for array in program.weights)
