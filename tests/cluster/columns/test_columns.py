"""Nodes that have some columns each learn what one process does that sums up their scores; every word counts once."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import hogwild
from cluster.test_run import made_text
from hogwild.arrays import Floats
from hogwild.cluster import ClusterConfig, ClusterExecutor, Texts
from hogwild.cluster.columns.part import Part, columns_of
from hogwild.cluster.session import Session
from hogwild.errors import ConfigError
from hogwild.kernels.loop.schedule import make_schedule
from problems.tasks import count_program, touches

SEED, EPOCHS, DIM = 3, 2, 19


def simulate(path: Path, nodes: int, every: int, delay: int, workers: int = 1) -> list[Floats]:
    """The vectors and outputs of nodes in one process."""
    feed, program = hogwild.open_corpus(path), hogwild.Word2Vec(dim=DIM)
    program.startup(feed, SEED)
    columns = columns_of(DIM, nodes)
    parts = [
        Part(program.narrowed(b - a), feed, [array[:, a:b] for array in program.weights], SEED, workers, nodes)
        for a, b in columns
    ]
    visits = parts[0].visits
    config = program.training()
    schedule = make_schedule("linear", program.rate, visits, EPOCHS, 0.0, config.lr_end)
    for epoch in range(EPOCHS):
        flight: deque[Any] = deque()
        starts = deque(range(0, visits, every))
        while starts or flight:
            if starts and len(flight) <= delay:
                first = starts.popleft()
                found = [part.score(part.block(epoch, first, min(first + every, visits))) for part in parts]
                flight.append((found, np.sum([scored.scores for scored in found], axis=0, dtype=np.float32)))
            else:
                found, sums = flight.popleft()
                for part, scored in zip(parts, found, strict=True):
                    assert np.isfinite(part.learn(scored, sums, schedule))
    arrays = [part.arrays() for part in parts]
    for part in parts:
        part.close()
    return [np.concatenate(table, axis=1) for table in zip(*arrays, strict=True)]


def test_columns_are_divided_once() -> None:
    for dim, nodes in ((5, 5), (100, 3), (7, 2)):
        columns = columns_of(dim, nodes)
        assert [k for a, b in columns for k in range(a, b)] == list(range(dim))
        assert all(b > a for a, b in columns)
    with pytest.raises(ConfigError, match="6 nodes for vectors of 5 numbers"):
        columns_of(5, 6)


def test_any_number_of_nodes_learns_the_same(tmp_path: Path) -> None:
    """One visit a block, and no delay: all scores are those of now. Else they are nearly so."""
    path = tmp_path / "text.txt"
    made_text(path, 1500)
    whole = simulate(path, 1, 1, 0)
    for nodes in (2, 3):
        for one, other in zip(whole, simulate(path, nodes, 1, 0), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4)
    for one, other in zip(whole, simulate(path, 1, 9, 1), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    for one, other in zip(whole, simulate(path, 3, 9, 1), strict=True):
        assert np.abs(one - other).max() < 0.05 * np.abs(one).max()
    assert np.abs(whole[1]).max(axis=1).min() > 1e-3  # outputs begin with zeros, and every word has learnt


def test_workers_divide_a_block(tmp_path: Path) -> None:
    """Scores do not depend on how many there are, nor does what is learnt from visits far from each other."""
    path = tmp_path / "text.txt"
    made_text(path, 100)
    feed, program = hogwild.open_corpus(path), hogwild.Word2Vec(dim=DIM)
    program.startup(feed, SEED)
    found = []
    for workers in (1, 3):
        part = Part(program.narrowed(DIM), feed, [array[:, :DIM] for array in program.weights], SEED, workers, 1)
        scored = part.score(part.block(0, 1, 8))
        assert scored.shares[0][0].first == 1
        assert scored.stop == 8
        found.append(scored.scores)
        assert part.learn(scored, scored.scores, make_schedule("constant", 0.01, 1, 1)) > 0
        part.close()
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    "options",
    [{"combine": "sum"}, {"tier_rows": 0}, {"touched": False}, {"error_feedback": True}, {"max_delay": 2}],
    ids=str,
)
def test_flags_without_effect_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="with strategy columns"):
        ClusterConfig("local", strategy="columns", **options)


# -- with Ray ---------------------------------------------------------------------------------------------------------


def executor(**options: Any) -> ClusterExecutor:
    config = {"nodes": 2, "workers_per_node": 1, "strategy": "columns", **options}
    return ClusterExecutor(ClusterConfig("local", **config), epochs=EPOCHS, seed=SEED)


@pytest.mark.full
@pytest.mark.parametrize("delay", [0, 1])
def test_two_nodes_learn_what_one_process_does(nodes: Session, tmp_path: Path, delay: int) -> None:
    path = tmp_path / "text.txt"
    words = made_text(path, 1500)
    program = hogwild.Word2Vec(dim=DIM)
    with executor(sync_every=3, max_delay=delay, deltas="float32") as runs:
        events = list(runs.run(program, Texts((str(path),))))
    assert events[-1].units == EPOCHS * words
    visits = events[-1].samples // EPOCHS
    assert events[-1].samples == EPOCHS * visits == events[0].total
    assert [event.samples for event in events if event.kind == "epoch"] == [visits, 2 * visits]
    (*_, told) = [event for event in events if event.kind == "nodes"]
    assert [node["exchanges"] for node in told.nodes] == [EPOCHS * -(-visits // 3)] * 2
    assert sum(node["samples"] for node in told.nodes) == EPOCHS * visits
    assert all(node["kinds"]["changes"]["sent"] > 0 for node in told.nodes)
    for found, expected in zip(program.weights, simulate(path, 2, 3, delay), strict=True):
        np.testing.assert_allclose(found[:, :DIM], expected, atol=1e-4)
        assert not found[:, DIM:].any()


@pytest.mark.full
def test_as_it_comes(nodes: Session, tmp_path: Path) -> None:
    """Rounded scores, a block by the rule, a feed of the driver's, and a run that goes on where it was stopped."""
    path = tmp_path / "text.txt"
    words = made_text(path, 2000)
    feed, program = hogwild.open_corpus(path), hogwild.Word2Vec(dim=DIM, sample=0)
    with executor() as runs:
        for event in runs.run(program, feed, epochs=20):
            if event.kind == "progress" and event.samples:
                runs.stop()
        state = runs.state()
    assert event.kind == "finished"
    assert event.reason == "stopped"
    visits = program.visits(feed)
    assert state.position.epoch * visits + state.position.visits == event.samples
    with executor() as runs:
        *_, last = runs.run(program, feed, epochs=20, start=state)
    assert last.samples == 20 * visits
    assert last.units == 20 * words
    near = [name for name, _ in program.vectors.most_similar("t0w1", topn=20)]
    assert sum(name.startswith("t0") for name in near) >= 18


@pytest.mark.full
def test_what_has_no_columns_is_refused(nodes: Session, tmp_path: Path) -> None:
    with executor() as runs, pytest.raises(ConfigError, match="strategy columns is for word vectors"):
        list(runs.run(count_program(20), touches(10, 20), lr=1.0))
    path = tmp_path / "text.txt"
    made_text(path, 50)
    with executor() as runs, pytest.raises(ConfigError, match="mode locked has no effect"):
        list(runs.run(hogwild.Word2Vec(dim=8), hogwild.open_corpus(path), mode="locked"))


@pytest.mark.full
def test_a_killed_node_is_replaced(nodes: Session, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    words = made_text(path, 1500)
    program = hogwild.Word2Vec(dim=DIM, sample=0)
    lost = []
    with executor(sync_every=3) as runs:
        for event in runs.run(program, Texts((str(path),))):
            if event.kind == "progress" and event.samples and not lost:
                lost.append(runs.site.fleet.pids()["node 1"])
                psutil.Process(lost[0]).kill()
            elif event.kind == "lost":
                lost.append(event.what)
    assert "node 1" in lost[1]
    assert event.kind == "finished"
    assert event.units == EPOCHS * words
    assert np.isfinite(program.weights.inputs).all()
