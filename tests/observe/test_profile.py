"""Profiles: a table that sums to the wall time, and a trace file that viewers of the Trace Event Format open."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import hogwild
from hogwild.errors import ConfigError
from hogwild.observe.profile import Profile, check_trace_path
from hogwild.timeline import timed


def check_trace(path):
    """What the Trace Event Format asks of complete events; returns them by track."""
    trace = json.loads(path.read_text())
    names, tracks = {}, {}
    for event in trace["traceEvents"]:
        assert set(event) >= {"name", "ph", "pid", "tid", "args"}
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            if event["name"] == "thread_name":
                assert event["tid"] not in names
                names[event["tid"]] = event["args"]["name"]
            continue
        assert event["ph"] == "X"
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        tracks.setdefault(names[event["tid"]], []).append(event)
    for events in tracks.values():
        starts = [event["ts"] for event in events]
        assert starts == sorted(starts)
        ends = []
        for event in events:  # either inside of another or beside it
            end = event["ts"] + event["dur"]
            while ends and ends[-1] <= event["ts"]:
                ends.pop()
            assert not ends or end <= ends[-1], event
            ends.append(end)
    return tracks


def total(events, name):
    return sum(event["dur"] for event in events if event["name"] == name) / 1e6


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(1)
    matrix = random.normal(size=(4000, 8)).astype(np.float32)
    return hogwild.feed_of(matrix, (matrix[:, 0] > 0).astype(int))


def test_a_run_of_two_workers(problem, tmp_path):
    path = tmp_path / "trace.json"
    with Profile(path) as profile:
        with timed("load"):
            time.sleep(0.01)
        list(
            hogwild.AsyncExecutor(threads=2, sharing="all").run(
                hogwild.Linear(), problem, valid=problem, epochs=3, lr=0.1
            )
        )
    found = profile.report()
    phases, workers = found["phases"], found["workers"]
    assert sum(phases.values()) == pytest.approx(found["seconds"], rel=0.01)
    assert phases["load"] >= 0.01
    assert {"load", "compile", "train", "evaluate", "other"} <= set(phases)
    assert len(workers) == 2
    for worker in workers:
        assert sum(worker.values()) == pytest.approx(phases["train"], rel=0.02)
    tracks = check_trace(path)
    assert list(tracks)[:1] == ["main"]
    assert {"worker 0", "worker 1"} <= set(tracks)
    for k, worker in enumerate(workers):
        for name in ("train", "merge", "wait"):
            assert total(tracks[f"worker {k}"], name) == pytest.approx(worker[name], abs=1e-4)
    visits = sum(event["args"].get("visits", 0) for k in range(2) for event in tracks[f"worker {k}"])
    assert visits == 3 * 4000
    assert total(tracks["main"], "train") == pytest.approx(phases["train"], abs=1e-3)
    assert json.loads(path.read_text())["otherData"]["phases"] == pytest.approx(phases)
    table = profile.table().splitlines()
    assert table[0].startswith("where ")
    assert [line.split()[0] for line in table[1 : 1 + len(phases)]] == [name.split()[0] for name in phases]
    assert table[-1].split()[0] == "1"


def test_the_main_thread_waits_for_what_others_compile():
    with Profile() as profile:
        began = profile.timeline.began
        profile.timeline.add("load", began, began + 3.0, "main")
        profile.timeline.add("parse", began + 1.0, began + 3.0, "main")
        profile.timeline.add("compile", began + 0.5, began + 2.0, "feed_0")
    profile.seconds = 4.0
    phases = profile.report()["phases"]
    assert phases == pytest.approx({"load": 0.5, "parse": 1.0, "compile": 1.5, "other": 1.0})


def test_a_failed_run_writes_nothing_and_nothing_stays_open(tmp_path):
    with pytest.raises(ZeroDivisionError), Profile(tmp_path / "t.json"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with timed("x"):
        pass


def test_files_of_others_are_not_replaced(tmp_path):
    (tmp_path / "data.json").write_text('{"label": 1}')
    with pytest.raises(ConfigError, match="no profile of hogwild, so it is not replaced"):
        Profile(tmp_path / "data.json")
    (tmp_path / "empty.json").touch()
    for _ in range(2):
        with Profile(tmp_path / "empty.json"):
            pass
    check_trace_path(str(tmp_path / "empty.json"))
    assert check_trace(tmp_path / "empty.json") == {}
