"""Machines that join Ray while a run goes on become nodes of it at the end of the epoch. With a real Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.cluster import ClusterConfig, ClusterExecutor, Texts
from hogwild.cluster import session as sessions
from hogwild.cluster.session import Session
from hogwild.cluster.site import Site
from hogwild.errors import ClusterError
from problems.tasks import count_program, touches

pytestmark = pytest.mark.full

ROWS, VISITS, EPOCHS = 3000, 200_001, 4


def _run(nodes: Session, options: dict[str, Any], program: Any, feed: Any, **train: Any) -> list[Any]:
    """All events of a run to whose Ray a node is added in the first epoch."""
    events = []
    with ClusterExecutor(ClusterConfig("auto", workers_per_node=1, **options), **train) as runs:
        there = len(nodes.places)
        for event in runs.run(program, feed, epochs=EPOCHS):
            events.append(event)
            if event.kind == "started":
                assert runs.site.count == there
                nodes.add_place()
        assert runs.site.count == there + 1
    told_of = [event for event in events if event.kind == "joined"]
    assert [(event.nodes, event.refused, event.epoch) for event in told_of] == [(there + 1, "", 1)]
    *_, told = [event for event in events if event.kind == "nodes"]
    assert len(told.nodes) == there + 1
    assert all(node["exchanges"] for node in told.nodes)
    return events


@pytest.mark.parametrize(
    "options",
    [{"strategy": "average"}, {"strategy": "parameter-actor", "asynchronous": True, "shards": 2}],
    ids=["average", "asynchronous"],
)
def test_one_more_node_and_no_count_is_wrong(nodes: Session, options: dict[str, Any]) -> None:
    program, samples = count_program(ROWS), touches(VISITS, ROWS)
    exact = {**options, "combine": "sum", "deltas": "float32", "sync_every": 5000}
    events = _run(nodes, exact, program, samples, lr=1.0)
    np.testing.assert_array_equal(program.weights.values[:, 0], EPOCHS * np.bincount(samples.rows, minlength=ROWS))
    assert [event.samples for event in events if event.kind == "epoch"] == [VISITS * k for k in range(1, EPOCHS + 1)]
    assert events[-1].samples == EPOCHS * VISITS


def test_a_text_is_cut_anew(nodes: Session, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    words = 200_000
    path.write_text("".join(f"w{k % 97} w{k % 89}{' ' if k % 10 else chr(10)}" for k in range(words // 2)))
    program = hogwild.Word2Vec(dim=8, sample=0)
    events = _run(nodes, {}, program, Texts(path))
    assert events[-1].units == EPOCHS * words
    assert program.words == hogwild.open_corpus(path).words


def test_a_fault_while_the_text_is_cut_anew(nodes: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cut once more, and no count is wrong."""
    path, words = tmp_path / "text.txt", 200_000
    path.write_text("".join(f"w{k % 97} w{k % 89}{' ' if k % 10 else chr(10)}" for k in range(words // 2)))
    again, calls = Site.open_again, []

    def fail_once(site: Site) -> Any:
        calls.append(site)
        if len(calls) == 1:
            raise ClusterError("a fetcher died")
        return again(site)

    monkeypatch.setattr(Site, "open_again", fail_once)
    events = _run(nodes, {}, hogwild.Word2Vec(dim=8, sample=0), Texts(path))
    assert len(calls) == 2
    assert [event.why for event in events if event.kind == "lost"] == ["a fetcher died"]
    assert events[-1].units == EPOCHS * words


def test_too_little_to_do_for_one_more(nodes: Session) -> None:
    program, samples = count_program(ROWS), touches(48 * (len(nodes.places) + 1) - 1, ROWS)
    exact = {"combine": "sum", "deltas": "float32", "sync_every": 10}
    with ClusterExecutor(ClusterConfig("auto", workers_per_node=1, **exact), lr=1.0, epochs=3) as runs:
        there = len(nodes.places)
        for event in runs.run(program, samples):
            if event.kind == "started":
                nodes.add_place()
        assert runs.site.count == there
    assert program.weights.values.sum() == event.samples == 3 * len(samples.rows)


def test_one_with_another_version_stays_outside(nodes: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    program, samples = count_program(ROWS), touches(VISITS, ROWS)
    there, other = len(nodes.places), dict.fromkeys(sessions.own_versions(), "0.1")
    with ClusterExecutor(ClusterConfig("auto", workers_per_node=1), lr=1.0, epochs=3) as runs:
        events = []
        for event in runs.run(program, samples):
            events.append(event)
            if event.kind == "started":
                nodes.add_place()
                monkeypatch.setattr(sessions, "own_versions", lambda: other)  # of this side: the node's differ from it
        assert runs.site.count == there
    (joined,) = [event for event in events if event.kind == "joined"]  # told once, not at every epoch
    assert joined.nodes == there
    assert "install the same" in joined.refused
    assert events[-1].samples == 3 * VISITS
