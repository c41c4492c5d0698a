"""Files of rows that two nodes read, each its part: what they learn, what is where, what a kill costs. A real Ray."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from cluster.killing import Killer
from hogwild.cluster import ClusterConfig, ClusterExecutor, Rows, Texts
from hogwild.cluster.session import Session
from hogwild.config import CorpusConfig, FeedConfig
from hogwild.errors import ConfigError, InputError

pytestmark = pytest.mark.full

COUNT = 1200


def executor(strategy: str = "average", **train: Any) -> ClusterExecutor:
    return ClusterExecutor(ClusterConfig("local", nodes=2, workers_per_node=1, strategy=strategy), **train)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second half has three labels, the first half two; each label has towns of its own."""
    draw, path = random.Random(0), tmp_path_factory.mktemp("rows") / "rows.csv"
    lines = ["label,size,town"]
    for row in range(COUNT):
        label = draw.randrange(2 if row < COUNT // 2 else 3)
        size = "" if draw.random() < 0.1 else f"{draw.gauss(label, 0.3):.3f}"
        lines.append(f"{('ham', 'spam', 'other')[label]},{size},{label}t{draw.randrange(30)}")
    path.write_text("\n".join(lines) + "\n")
    return path


PROGRAMS = {
    "linear": (lambda: hogwild.Linear(class_weight="balanced"), "flat", "average", 6),
    "mlp": (lambda: hogwild.SparseMLP(dim=4, hidden=(8,), class_weight="balanced"), "slots", "parameter-actor", 40),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes_learn_from_their_parts(nodes: Session, table: Path, name: str) -> None:
    make, layout, strategy, epochs = PROGRAMS[name]
    config = FeedConfig(cache=False, layout=layout)
    whole = hogwild.open_feed(table, config)
    program = make()
    with executor(strategy, epochs=epochs) as runs:
        feed = runs.open(Rows(str(table), config))
        *_, told, last = runs.run(program, feed, valid=whole)
    assert last.samples == epochs * COUNT
    assert [node["samples"] for node in told.nodes] == [epochs * size for size in np.diff(feed.bounds)]
    assert 0.4 * COUNT < feed.bounds[1] < 0.6 * COUNT
    assert (program.schema, program.classes) == (whole.schema, ("ham", "other", "spam"))
    assert program.evaluate(whole)["accuracy"] > 0.9
    # Here are labels and sizes alone, and nothing that could be taken for features.
    assert feed.samples.ids.strides == (0,)
    np.testing.assert_array_equal(feed.samples.targets, whole.samples.targets)
    with pytest.raises(InputError, match="rows are with the nodes"):
        program.evaluate(feed)


@pytest.mark.parametrize("kind", ["fetcher", "node"])
def test_a_killed_process_costs_no_row(nodes: Session, tmp_path: Path, kind: str) -> None:
    draw = random.Random(kind)
    path, rows, epochs = tmp_path / "rows.svm", 60_000, 6
    path.write_text("".join(f"{k % 2} {1 + k % 2}:1 {draw.randrange(3, 99)}:1\n" for k in range(rows)))
    with executor(epochs=epochs, lr=0.1) as runs:
        killer = Killer(runs, kind, draw.uniform(0.0, 2.0))
        killer.start()
        program = hogwild.Linear()
        events = list(runs.run(program, Rows(str(path), FeedConfig(cache=False))))
        killer.over = True
        killer.join()
    assert events[-1].kind == "finished"
    assert events[-1].samples == epochs * rows
    assert program.evaluate(hogwild.open_feed(path, FeedConfig(cache=False)))["accuracy"] == 1.0


def test_phrases_of_a_text_and_a_killed_fetcher(nodes: Session, tmp_path: Path) -> None:
    path, draw, epochs = tmp_path / "text.txt", random.Random(1), 30
    sentences = (draw.choices(["new york", "paris", *"abcdefgh"], k=9) for _ in range(4000))
    path.write_text("".join(" ".join(words) + "\n" for words in sentences))
    config = CorpusConfig(phrases=1, phrase_threshold=0.02, min_count=1, cache=False)
    whole = hogwild.open_corpus(path, config)
    with executor(epochs=epochs) as runs:
        killer = Killer(runs, "fetcher", draw.uniform(0.0, 3.0))
        killer.start()
        program = hogwild.Word2Vec(dim=8, sample=0)
        events = list(runs.run(program, Texts(str(path), config)))
        killer.over = True
        killer.join()
    assert "new_york" in program.words
    assert program.words == whole.words
    assert events[-1].units == epochs * whole.total


def test_what_only_text_can(nodes: Session, table: Path) -> None:
    with executor("merge") as runs, pytest.raises(ConfigError, match="strategy merge is for word vectors"):
        runs.open(Rows(str(table)))
