"""The log of workers: every second of every worker is somewhere, also when entries are joined."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hogwild.executor import spanlog
from hogwild.executor.spanlog import Entry, SpanLog, log_of, thinned, timed_task
from hogwild.kernels.compiler.clock import Timed, Untimed
from hogwild.timeline import Timeline, recording


class Task(tuple):
    """Nothing to time."""


def entry(epoch: int, start: float, **changes: object) -> Entry:
    return Entry(epoch, start, start + 1.0, 0.25, 0.5, 0.25, 10, 1, (3, 4, 5))._replace(**changes)


def test_neighbours_of_one_epoch_are_joined_and_nothing_is_lost() -> None:
    entries = [entry(0, 0.0), entry(0, 1.0), entry(0, 2.0), entry(1, 5.0), entry(1, 6.0)]
    joined = thinned(entries)
    assert [(each.epoch, each.start, each.stop, each.spans) for each in joined] == [
        (0, 0.0, 2.0, 2), (0, 2.0, 3.0, 1), (1, 5.0, 7.0, 2),
    ]  # fmt: skip
    for name in ("wait", "train", "merge", "visits", "spans"):
        assert sum(getattr(each, name) for each in joined) == sum(getattr(each, name) for each in entries)
    assert joined[0].ticks == (6, 8, 10)
    assert len(thinned(joined)) == 2


def test_the_seconds_of_a_worker_sum_to_the_time_it_was_loose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spanlog, "_MOST", 5)
    log = SpanLog(2, timed=False)
    free = time.perf_counter()
    least = most = 0.0  # seconds of waiting
    time.sleep(0.01)  # nobody is to work yet: this is no waiting
    for epoch in range(2):
        before = time.perf_counter()
        log.open()
        opened = time.perf_counter()
        for _ in range(4):
            began = time.perf_counter()
            least, most = least + began - max(free, opened), most + began - max(free, before)
            time.sleep(0.001)
            trained = time.perf_counter()
            merged = time.perf_counter()
            log.add(0, epoch, 7, (free, began, trained, merged), ())
            free = time.perf_counter()
        least += time.perf_counter() - merged
        log.close(epoch)
        most += time.perf_counter() - merged
        time.sleep(0.01)
    wall = sum(stop - start for start, stop in log.runs)
    assert wall > 0.008
    busy, lazy = log.totals()
    assert list(busy) == ["train", "merge", "wait", "other"]
    assert sum(busy.values()) == pytest.approx(wall)
    assert 0.008 <= busy["train"] <= wall
    assert least <= busy["wait"] + 1e-9
    assert busy["wait"] <= most + 1e-9
    assert lazy["wait"] == pytest.approx(wall)
    assert len(log.entries[0]) <= 6
    assert sum(each.visits for each in log.entries[0]) == 56


def test_phases_are_parts_of_training() -> None:
    log = SpanLog(1, timed=True)
    log.open()
    began = time.perf_counter()
    time.sleep(0.02)
    passed = time.perf_counter()
    each = log.tick_seconds()
    seconds = np.array([0.004, 0.008, 0.002])
    phases = (seconds / each).astype(int).tolist()
    log.add(0, 0, 1, (began, began, passed, passed), phases)
    log.close(0)
    (found,) = log.totals()
    assert list(found) == ["lookup", "dense", "update", "loop", "merge", "wait", "other"]
    assert found["lookup"] == pytest.approx(0.004, rel=0.2)
    assert found["dense"] == pytest.approx(0.008, rel=0.2)
    assert found["loop"] == pytest.approx(passed - began - 0.014, rel=0.2)


def test_clocks_are_on_only_while_a_timeline_is_kept() -> None:
    from typing import NamedTuple

    class Clocked(NamedTuple):
        timer: object

    assert timed_task(Clocked(Untimed())).timer == Untimed()
    assert log_of(Clocked(Untimed()), 2) is None
    with recording(Timeline()) as kept:
        task = timed_task(Clocked(Untimed()))
        assert isinstance(task.timer, Timed)
        assert timed_task(Task()) == Task()
        log = log_of(task, 2)
        assert log is not None
        assert log.phases
        other = log_of(Task(), 2)
        assert other is not None
        assert not other.phases
        assert kept.logs == [log, other]
