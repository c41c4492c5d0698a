"""Virtual nodes: as real ones where those are exact, the same again, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from cluster.test_programs import CASES
from hogwild.cluster import ClusterConfig, ClusterExecutor
from hogwild.cluster.forecast.nodes import NodesLab, Wire, simulate
from hogwild.cluster.session import Session
from hogwild.config import TrainConfig
from hogwild.errors import ConfigError
from hogwild.executor.virtual.machine import Machine
from hogwild.executor.virtual.simulate import silent

EXCHANGES: dict[str, dict[str, Any]] = {
    "linear": {"sync_every": 101},
    "fm": {"sync_every": 70, "max_delay": 0, "combine": "sum", "deltas": "float32"},
    "mlp": {"sync_every": 7, "combine": "mean", "deltas": "bfloat16"},
    "mf": {"sync_every": 90, "strategy": "parameter-actor", "max_delay": 2, "deltas": "int4", "tier_rows": 8},
    "text": {"sync_every": 40, "touched": False},
    "crf": {"sync_every": 13, "error_feedback": True, "tier_rows": 16},
    "bilstm": {"sync_every": 5, "max_delay": 0},
}


def data(rows: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(5).normal(size=(rows, 6)).astype(np.float32)
    return X, X[:, 0] > X[:, 1]


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_one_worker_a_node_learns_bit_for_bit_what_real_nodes_learn(nodes: Session, tmp_path: Path, name: str) -> None:
    make, open_data, options, _, _ = CASES[name]
    program, feed, given = make(), open_data(tmp_path), {**options, "epochs": 3, "seed": 4}
    exchange = EXCHANGES[name]
    with ClusterExecutor(ClusterConfig("local", nodes=2, workers_per_node=1, **exchange), **given) as executor:
        events = list(executor.run(program, feed, valid=feed))
    ends = [event for event in events if event.kind == "epoch"]
    where = ClusterConfig("virtual", **exchange)
    found = simulate(make(), feed, valid=feed, cluster=where, **{**given, "lr": events[0].lr}).predictions[0]
    assert list(found.losses) == [end.loss for end in ends]
    assert found.metrics == ends[-1].metrics
    assert found.gradients == 3 * program.visits(feed)


def test_the_same_again_with_several_workers_a_node_that_cost_the_same() -> None:
    program, config = hogwild.Linear(), ClusterConfig("virtual", nodes=3)
    lab = NodesLab(program, program.feed_from(data()), None, TrainConfig(epochs=2, seed=7), silent, config)
    one, other = (lab.simulated(Machine(workers=2), 0.1) for _ in range(2))
    assert replace(one, taken=0, busy=0) == replace(other, taken=0, busy=0)
    assert one.sent > 0 < one.error_rate
    assert (one.nodes, one.workers, one.gradients, one.every) == (3, 2, 2 * 1500, 500 // 48)


def test_a_node_alone_is_one_machine() -> None:
    alone = simulate(hogwild.Linear(), data(), nodes=1, epochs=2, lr=0.1).predictions[0]
    machine = hogwild.simulate(hogwild.Linear(), data(), workers=(1,), epochs=2, lr=0.1).predictions[0]
    assert alone.losses == machine.losses
    assert (alone.nodes, alone.sent) == (1, 0)


def test_a_slower_wire_takes_longer_and_changes_nothing_else() -> None:
    options: dict[str, Any] = {"nodes": 2, "epochs": 1, "lr": 0.1}
    fast, slow = (
        simulate(hogwild.Linear(), data(), wire=Wire(rate, latency), **options).predictions[0]
        for rate, latency in ((1e12, 1e-6), (1e6, 1e-1))
    )
    assert slow.losses == fast.losses
    assert slow.sent == fast.sent
    assert slow.seconds > 10 * fast.seconds


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"cluster": ClusterConfig("local")}, "a simulation has cluster virtual"),
        ({"cluster": ClusterConfig("virtual", strategy="gossip")}, "strategy is gossip"),
        ({"cluster": ClusterConfig("virtual", strategy="parameter-actor", asynchronous=True)}, "asynchronous"),
        ({"cluster": ClusterConfig("virtual", workers_per_node=3)}, "workers_per_node"),
        ({"nodes": 200}, "200 nodes for 150 visits"),
        ({"nodes": 0}, "nodes is 0"),
        ({"mode": "serial"}, "mode is serial"),
    ],
)
def test_what_cannot_be_simulated(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        simulate(hogwild.Linear(), data(150), lr=0.1, epochs=1, **options)


def test_virtual_nodes_train_nothing() -> None:
    with pytest.raises(ConfigError, match="virtual nodes train nothing"):
        ClusterExecutor(ClusterConfig("virtual"))
