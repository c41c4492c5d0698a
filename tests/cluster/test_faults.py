"""Processes die, and the run goes on with exact counts; or it ends, and says why. With a real Ray."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from cluster.killing import CONFIGS, kill_driver, run_and_kill
from hogwild.cluster import ClusterConfig, ClusterExecutor
from hogwild.cluster.session import Session
from hogwild.errors import WorkerError
from problems.tasks import fail_program, touches

pytestmark = pytest.mark.full


@pytest.mark.parametrize("moment", range(3))
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_killed_process_costs_no_count(nodes: Session, tmp_path: Path, kind: str, moment: int) -> None:
    after = random.Random(f"{kind} {moment}").uniform(0.0, 1.5)
    killed, events = run_and_kill(kind, after, tmp_path)
    lost = [event for event in events if event.kind == "lost"]
    if killed and kind != "fetcher":  # one that has encoded everything is not missed; the others may die after the end
        assert len(lost) <= 2
    for event in lost:
        assert event.why  # type: ignore[attr-defined]


def test_an_error_of_a_worker_that_comes_again_ends_the_run(nodes: Session) -> None:
    began = time.monotonic()
    kinds: list[str] = []
    with ClusterExecutor(ClusterConfig("local", nodes=2, workers_per_node=1)) as executor:
        events = executor.run(fail_program(500), touches(2000, 20), lr=1.0)
        with pytest.raises(WorkerError, match="planted"):
            kinds.extend(event.kind for event in events)
    assert kinds.count("lost") == 3
    assert time.monotonic() - began < 120


def test_a_killed_driver_leaves_nothing_and_resumes(tmp_path: Path) -> None:
    assert kill_driver(random.Random(1).uniform(0.0, 1.0), tmp_path)
    assert not list(tmp_path.glob("hogwild-ray-*"))
