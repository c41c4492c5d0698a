"""What a run on several nodes tells while it goes, and what one may ask of it: as of any run. With a real Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import hogwild
from hogwild.cluster import ClusterConfig, ClusterExecutor, Texts
from hogwild.cluster.node import Node
from hogwild.cluster.session import Session
from hogwild.errors import DivergedError
from hogwild.executor.events import Progress
from hogwild.executor.readers.watch import Watch
from places import SOURCE
from problems.tasks import count_program, touches

pytestmark = pytest.mark.full

ROWS, VISITS = 5000, 200_000
EXACT = {"nodes": 2, "workers_per_node": 1, "combine": "sum", "deltas": "float32", "sync_every": 2000}


def executor(**train: Any) -> ClusterExecutor:
    return ClusterExecutor(ClusterConfig("local", **EXACT), lr=1.0, **train)


@pytest.mark.parametrize("every", [150_000, "0.2s"])
def test_what_is_watched_is_of_the_samples_that_it_names(nodes: Session, every: int | str) -> None:
    """Each visit adds 1: every value is the number of its samples."""
    watch = Watch({"sum": lambda weights: float(weights.values.sum())}, every=every)
    with executor(epochs=8) as runs:
        events = list(runs.run(count_program(ROWS), touches(VISITS, ROWS), watch=watch))
    seen = [event for event in events if event.kind == "watched"]
    assert seen
    for event in seen:
        assert event.values == {"sum": event.samples}  # type: ignore[attr-defined]
    if isinstance(every, int):  # one look an interval, however late all stood still
        assert len({event.samples // every for event in seen}) == len(seen)


def test_parked_nodes_have_brought_everything_together(nodes: Session) -> None:
    program = count_program(ROWS)
    seen = []
    with executor(epochs=6) as runs:
        for event in runs.run(program, touches(VISITS, ROWS)):
            if event.kind == "progress" and not seen:
                runs.park()
            if event.kind == "parked":
                seen.append(event.samples)
                assert program.weights.values.sum() == event.samples
                place = runs.state().position
                assert place.epoch * VISITS + place.visits == event.samples
    assert seen
    assert program.weights.values.sum() == event.samples == 6 * VISITS


def test_patience_ends_a_run_that_learns_nothing_more(nodes: Session) -> None:
    random = np.random.default_rng(1)
    matrix = random.normal(size=(2000, 10)).astype(np.float32)
    labels = (matrix @ random.normal(size=10) > 0).astype(int)
    feed, other = hogwild.feed_of(matrix[:1000], labels[:1000]), hogwild.feed_of(matrix[1000:], 1 - labels[1000:])
    where = ClusterConfig("local", nodes=2, workers_per_node=1, sync_every=50)
    with ClusterExecutor(where, epochs=50, patience=2, best_by="loss", lr=0.1) as runs:
        events = list(runs.run(hogwild.Linear(), feed, valid=other))
    ends = [event for event in events if event.kind == "epoch"]
    assert events[-1].reason == "early"  # type: ignore[attr-defined]
    assert len(ends) == 3  # the opposite is learnt: the first epoch is the best one
    assert [event.best for event in ends] == [True, False, False]  # type: ignore[attr-defined]
    losses = [event.metrics["loss"] for event in ends]  # type: ignore[attr-defined]
    assert losses == sorted(losses)


def test_traffic_of_who_survives_a_fault_counts_once(nodes: Session) -> None:
    """What the run tells of a node that lived all along is what that node counted itself."""
    with executor(epochs=6) as runs:
        told: Any = None
        lost = 0
        for event in runs.run(count_program(ROWS), touches(VISITS, ROWS)):
            if event.kind == "progress" and event.samples and not lost:
                lost = runs.site.fleet.pids()["node 1"]
                os.kill(lost, signal.SIGKILL)
            told = event if event.kind == "nodes" else told
            if event.kind == "finished":
                own = runs.site.fleet.ask("status")
    assert event.samples == 6 * VISITS
    assert lost
    assert not psutil.pid_exists(lost) or psutil.Process(lost).status() == psutil.STATUS_ZOMBIE
    assert told.nodes[0]["exchanges"] == own[0].traffic.exchanges
    assert told.nodes[0]["sent"] == own[0].traffic.total.sent
    assert told.nodes[1]["exchanges"] >= own[1].traffic.exchanges  # with those of the one before it


def test_a_loss_that_runs_away_is_told() -> None:
    node = Node(1, ClusterConfig("local"))
    here = Progress(
        seconds=1.0, epoch=0, samples=10, total=20, loss=0.5, lr=0.1, samples_per_second=1.0, units_per_second=1.0,
        seconds_left=1.0, balance=(1.0,),
    )  # fmt: skip
    node._note(here)
    node._note(replace(here, loss=100.0))
    with pytest.raises(DivergedError, match=r"node 1 rose from 0\.5 to 200"):
        node._note(replace(here, loss=200.0))


def test_texts_are_one_file_or_several() -> None:
    assert Texts("one.txt").paths == Texts(Path("one.txt")).paths == Texts(["one.txt"]).paths == ("one.txt",)


def test_a_signal_to_all_stops_saves_and_goes_on(tmp_path: Path) -> None:
    """Ctrl-C in a terminal reaches every process of the group."""
    text, model, words = tmp_path / "text.txt", tmp_path / "model", 400_000
    text.write_text("".join(f"w{k % 97} w{k % 89}{' ' if k % 10 else chr(10)}" for k in range(words // 2)))
    command = [
        sys.executable, "-m", "hogwild", "train", "word2vec", str(text), "--cluster", "local", "--nodes", "2",
        "--workers-per-node", "1", "--dim", "16", "--sample", "0", "--sync-every", "200", "--output", str(model),
        "--log-dir", str(tmp_path / "log"), "--json", "--epochs", "40",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path)}
    run = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    limit = threading.Timer(180, run.kill)
    limit.start()
    log = tmp_path / "log" / "events.jsonl"
    while run.poll() is None and not (log.exists() and '"epoch"' in log.read_text()):
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate()
    limit.cancel()
    assert run.returncode == 130, err
    assert "Traceback" not in err
    assert "--resume to go on" in err.splitlines()[-1]
    told = json.loads(out)
    assert told["reason"] == "stopped"
    assert told["samples"] > 0
    command.append("--resume")
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["cluster"]["words"] == 40 * words
