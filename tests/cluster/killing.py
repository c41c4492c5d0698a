"""Runs on several nodes of which a process is killed at a random moment."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import hogwild
from hogwild.cluster import ClusterConfig, ClusterExecutor, Texts
from hogwild.errors import HogwildError
from hogwild.executor.events import Event
from places import SOURCE
from problems.tasks import count_program, touches

ROWS, VISITS, EPOCHS = 3000, 400_000, 4
CONFIGS: dict[str, dict[str, Any]] = {
    "node": {"strategy": "average"},
    "fetcher": {"strategy": "average"},
    "parameter actor": {"strategy": "parameter-actor", "shards": 2},
}


class Killer(threading.Thread):
    """Waits for a process of a kind, then for a while, and kills it. killed: its name, empty if the run was over."""

    def __init__(self, executor: ClusterExecutor, kind: str, after: float) -> None:
        super().__init__(daemon=True)
        self._executor, self._kind, self._after = executor, kind, after
        self.over = False
        self.killed = ""

    def run(self) -> None:
        chosen: list[tuple[str, int]] = []
        while not chosen and not self.over:
            time.sleep(0.05)
            fleet = self._executor.site._fleet
            try:
                found = fleet.pids() if fleet is not None else {}
            except (HogwildError, RuntimeError):  # begun this very moment
                continue
            chosen = [item for item in found.items() if item[0].startswith(self._kind)]
        time.sleep(self._after)
        if chosen and not self.over:
            self.killed, pid = random.choice(chosen)
            os.kill(pid, signal.SIGKILL)


def run_and_kill(kind: str, after: float, place: Path) -> tuple[str, list[Event]]:
    """Train, kill a process of this kind after so many seconds, and check every count; who was killed, and all events.

    Counting rows shows each change that is lost or counted twice; a text has its fetchers, and its words are counted.
    """
    options = {"nodes": 2, "workers_per_node": 1, "combine": "sum", "deltas": "float32", **CONFIGS[kind]}
    if kind == "fetcher":
        path = place / "text.txt"
        words = 60_000
        path.write_text("".join(f"w{k % 97} w{k % 89}{' ' if k % 10 else chr(10)}" for k in range(words // 2)))
        options["combine"] = "project"
    with ClusterExecutor(ClusterConfig("local", **options), epochs=EPOCHS, seed=3) as executor:
        killer = Killer(executor, kind, after)
        killer.start()
        program: Any
        if kind == "fetcher":
            program = hogwild.Word2Vec(dim=8, sample=0)
            events = list(executor.run(program, Texts((str(path),))))
            assert events[-1].units == EPOCHS * words  # type: ignore[attr-defined]
        else:
            program, samples = count_program(ROWS), touches(VISITS, ROWS)
            events = list(executor.run(program, samples, lr=1.0))
            whole = EPOCHS * np.bincount(samples.rows, minlength=ROWS)
            np.testing.assert_array_equal(program.weights.values[:, 0], whole)
            assert events[-1].samples == EPOCHS * VISITS
        killer.over = True
        killer.join()
    assert events[-1].kind == "finished"
    assert events[-1].reason == "done"  # type: ignore[attr-defined]
    return killer.killed, events


def kill_driver(after: float, place: Path) -> bool:
    """Kill the command so long after its first checkpoint, call it again with --resume, and check the count of words.

    Whether it was killed before its end.
    """
    text, model = place / "text.txt", place / "model"
    words, epochs = 400_000, 40
    text.write_text("".join(f"w{k % 97} w{k % 89}{' ' if k % 10 else chr(10)}" for k in range(words // 2)))
    command = [
        sys.executable, "-m", "hogwild", "train", "word2vec", str(text), "--cluster", "local", "--nodes", "2",
        "--workers-per-node", "1", "--epochs", str(epochs), "--dim", "32", "--sample", "0", "--sync-every", "200",
        "--output", str(model), "--checkpoint-every", "1epoch", "--resume", "--json",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(place)}
    first = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    checkpoint = place / "model.checkpoint"
    until = time.monotonic() + 150
    while not checkpoint.exists() and first.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(after)
    killed = first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    assert not killed or checkpoint.exists()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    if killed:
        assert told["cluster"]["words"] == epochs * words
        assert "goes on after" in done.stderr or "nothing is left to do" in done.stderr
    return killed
