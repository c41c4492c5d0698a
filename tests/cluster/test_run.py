"""Runs on several nodes, with a real Ray: nothing is lost, nothing is counted twice, all nodes agree."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import hogwild
from hogwild.cluster import ClusterConfig, ClusterExecutor, Texts
from hogwild.cluster.session import Session
from hogwild.errors import ConfigError
from problems.tasks import count_program, touches

pytestmark = pytest.mark.full

ROWS = 5000  # more than are exchanged every time
EXACT = {"combine": "sum", "deltas": "float32"}
STRATEGIES = [
    {"strategy": "average"},
    {"strategy": "parameter-actor"},
    {"strategy": "parameter-actor", "shards": 2, "asynchronous": True},
]


def executor(options: dict[str, Any], **train: Any) -> ClusterExecutor:
    return ClusterExecutor(ClusterConfig("local", **{"nodes": 2, "workers_per_node": 1, **options}), **train)


@pytest.mark.parametrize("options", STRATEGIES, ids=lambda options: "-".join(map(str, options.values())))
def test_no_change_is_lost_and_none_counts_twice(nodes: Session, options: dict[str, Any]) -> None:
    """Integers in float cells, added by both nodes to the same rows."""
    program, samples = count_program(ROWS), touches(20_000, ROWS)
    with executor({**options, **EXACT, "sync_every": 700}) as runs:
        events = list(runs.run(program, samples, epochs=2, lr=1.0))
    assert events[-1].kind == "finished"
    assert events[-1].samples == 40_000
    assert events[-1].units == 40_000
    np.testing.assert_array_equal(program.weights.values[:, 0], 2 * np.bincount(samples.rows, minlength=ROWS))
    ends = [event for event in events if event.kind == "epoch"]
    assert [event.samples for event in ends] == [20_000, 40_000]
    (*_, told) = [event for event in events if event.kind == "nodes"]
    assert [node["samples"] for node in told.nodes] == [20_000, 20_000]
    sent, received = (sum(node[name] for node in told.nodes) for name in ("sent", "received"))
    assert sent > 0
    assert received > 0
    assert all(node["memory"] > 1e6 and node["exchanges"] >= 28 for node in told.nodes)


def test_nodes_agree_and_the_run_repeats(nodes: Session) -> None:
    """One worker a node and a given interval: the same bits twice, on both nodes."""
    random = np.random.default_rng(0)
    matrix = random.normal(size=(4000, 30)).astype(np.float32)
    feed = hogwild.feed_of(matrix, (matrix @ random.normal(size=30) > 0).astype(int))
    found = []
    for _ in range(2):
        program = hogwild.Linear(optimizer="adagrad", l2=1e-3)
        with executor({"sync_every": 100}) as runs:
            for event in runs.run(program, feed, epochs=2, lr=0.1):
                if event.kind == "epoch":
                    one, other = runs.site.fleet.ask("weights")
                    for mine, theirs, here in zip(one, other, program.weights, strict=True):
                        np.testing.assert_array_equal(mine, here)
                        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
        found.append(program.arrays(state=True))
        assert program.evaluate(feed)["accuracy"] > 0.95
    for name, array in found[0].items():
        assert array.tobytes() == found[1][name].tobytes(), name


def made_text(path: Path, sentences: int = 3000) -> int:
    """Two topics whose words keep to themselves; returns the words."""
    random = np.random.default_rng(5)
    words = 0
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(sentences):
            size, topic = int(random.integers(5, 15)), int(random.integers(2))
            file.write(" ".join(f"t{topic}w{word}" for word in random.integers(0, 40, size)) + "\n")
            words += size
    return words


@pytest.mark.parametrize("strategy", ["average", "gossip", "merge"])
def test_nodes_read_a_text_themselves(nodes: Session, tmp_path: Path, strategy: str) -> None:
    path = tmp_path / "text.txt"
    words = made_text(path)
    program = hogwild.Word2Vec(dim=16, sample=0)
    with executor({"strategy": strategy}, epochs=5) as runs:
        events = list(runs.run(program, Texts((str(path),))))
    whole = hogwild.open_corpus(path)
    assert program.words == whole.words
    np.testing.assert_array_equal(program.counts, whole.counts)
    assert events[-1].units == 5 * words
    near = [name for name, _ in program.vectors.most_similar("t0w1", topn=20)]
    assert sum(name.startswith("t0") for name in near) >= 18


@pytest.mark.parametrize("options", [*STRATEGIES, {"strategy": "gossip"}], ids=str)
def test_a_stopped_run_goes_on_where_it_stood(nodes: Session, options: dict[str, Any]) -> None:
    program, samples = count_program(ROWS), touches(100_000, ROWS)
    options = {**options, **EXACT, "sync_every": 500}
    counted = options["strategy"] != "gossip"  # there nodes hear the same twice: that is for directions, not for sums
    with executor(options) as runs:
        for event in runs.run(program, samples, epochs=3, lr=1.0):
            if event.kind == "progress" and event.samples:
                runs.stop()
        assert event.kind == "finished"
        state = runs.state()
    done = event.samples
    assert done < 300_000
    assert event.reason == "stopped"
    assert state.position.epoch * 100_000 + state.position.visits == done
    if counted:
        assert program.weights.values.sum() == done
    with executor(options) as runs:
        *_, last = runs.run(program, samples, epochs=3, lr=1.0, start=state)
    assert last.samples == 300_000
    if counted:
        np.testing.assert_array_equal(program.weights.values[:, 0], 3 * np.bincount(samples.rows, minlength=ROWS))


@pytest.mark.parametrize(
    ("options", "train", "message"),
    [
        ({"strategy": "merge"}, {}, "strategy merge is for word vectors"),
        ({}, {"trace": True}, "trace looks at workers of one machine"),
        ({}, {"patience": 2}, "patience needs validation data"),
        ({"nodes": 12}, {}, "12 nodes for 10 visits"),
    ],
)
def test_what_a_cluster_cannot_do_is_said(
    nodes: Session, options: dict[str, Any], train: dict[str, Any], message: str
) -> None:
    with executor(options, **train) as runs, pytest.raises(ConfigError, match=message):
        list(runs.run(count_program(20), touches(10, 20), lr=1.0))


@pytest.mark.parametrize("options", [STRATEGIES[2], {"strategy": "gossip"}], ids=["asynchronous", "gossip"])
def test_a_node_that_is_behind_ends_its_epoch_too(nodes: Session, options: dict[str, Any]) -> None:
    """All are asked to stand still when one is past its last exchange of the epoch and the other, stopped, is not."""
    program, samples = count_program(ROWS), touches(3_000_000, ROWS)
    with executor({**options, "sync_every": 700_000}) as runs:
        events = []
        for event in runs.run(program, samples, epochs=1, lr=1.0):
            events.append(event)
            if event.kind == "started":
                behind = psutil.Process(runs.site.fleet.pids()["node 1"])
                behind.suspend()
                threading.Timer(3.0, behind.resume).start()  # by then node 0 waits at the end of its epoch
                runs.park()
    assert [event.samples for event in events if event.kind == "epoch"] == [3_000_000]
    assert events[-1].samples == 3_000_000
    assert events[-1].kind == "finished"
