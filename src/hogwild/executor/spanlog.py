"""What each worker did when, span by span, for a profile: waiting, training with its phases, merging."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from hogwild.kernels.compiler.clock import PHASES, Timed, ticks
from hogwild.timeline import current

_MOST = 1 << 14  # entries of a worker; when there are more, two neighbours become one


class Entry(NamedTuple):
    """A span of a worker, or several: from when to when, and how long it did what in between, in seconds.

    ticks: of the phases of its visits, where they are timed.
    """

    epoch: int
    start: float
    stop: float
    wait: float
    train: float
    merge: float
    visits: int
    spans: int
    ticks: tuple[int, ...]

    def joined(self, other: Entry) -> Entry:
        """This and the next one as one."""
        return Entry(
            self.epoch, self.start, other.stop, self.wait + other.wait, self.train + other.train,
            self.merge + other.merge, self.visits + other.visits, self.spans + other.spans,
            tuple(a + b for a, b in zip(self.ticks, other.ticks, strict=True)),
        )  # fmt: skip


class SpanLog:
    """The entries of all workers. `open` and `close` are called where the workers stand still."""

    def __init__(self, workers: int, timed: bool) -> None:
        self.phases: tuple[str, ...] = PHASES if timed else ()
        self.entries: list[list[Entry]] = [[] for _ in range(workers)]
        self.runs: list[tuple[float, float]] = []
        """When workers were let loose, and when they stood still again."""
        self._opened = 0.0
        self._before = [(0,) * len(self.phases)] * workers
        self._ticks = (ticks(), time.perf_counter()) if timed else (0, 0.0)

    def open(self) -> None:
        """Workers are let loose."""
        self._opened = time.perf_counter()

    def close(self, epoch: int) -> None:
        """All stand still: each has waited since its last span."""
        now = time.perf_counter()
        self.runs.append((self._opened, now))
        for entries in self.entries:
            since = max(self._opened, entries[-1].stop if entries else 0.0)
            if now > since:
                entries.append(Entry(epoch, since, now, now - since, 0.0, 0.0, 0, 0, (0,) * len(self.phases)))

    def add(
        self, worker: int, epoch: int, visits: int, times: tuple[float, float, float, float], phases: Sequence[int]
    ) -> None:
        """A span has ended. times: when the worker was free, began, had trained, had merged; phases: ticks so far."""
        free, began, trained, merged = times
        since = max(free, self._opened)  # before that nobody was to work
        counts = tuple(phases[: len(self.phases)])
        passed = tuple(now - before for now, before in zip(counts, self._before[worker], strict=True))
        self._before[worker] = counts
        entries = self.entries[worker]
        entries.append(
            Entry(epoch, since, merged, began - since, trained - began, merged - trained, visits, 1, passed)
        )
        if len(entries) > _MOST:
            self.entries[worker] = thinned(entries)

    def tick_seconds(self) -> float:
        """Seconds of a tick; 0 where nothing is timed."""
        if not self.phases:
            return 0.0
        passed = ticks() - self._ticks[0]
        return (time.perf_counter() - self._ticks[1]) / passed if passed > 0 else 0.0

    def totals(self) -> list[dict[str, float]]:
        """Seconds of each worker by what it did; they sum to the time in which workers were loose.

        Phases are parts of training; `loop` is the rest of it: the order of visits, rates, sums of losses.
        """
        wall = sum(stop - start for start, stop in self.runs)
        return [self._total(entries, wall) for entries in self.entries]

    def _total(self, entries: list[Entry], wall: float) -> dict[str, float]:
        wait, train = sum(entry.wait for entry in entries), sum(entry.train for entry in entries)
        merge = sum(entry.merge for entry in entries)
        each = self.tick_seconds()
        parts = {name: each * sum(entry.ticks[k] for entry in entries) for k, name in enumerate(self.phases)}
        rest = {"loop" if parts else "train": max(0.0, train - sum(parts.values()))}
        return {**parts, **rest, "merge": merge, "wait": wait, "other": max(0.0, wall - train - merge - wait)}


def log_of(task: Any, workers: int) -> SpanLog | None:
    """The log of a run of this task; None while no timeline is kept."""
    timeline = current()
    if timeline is None:
        return None
    log = SpanLog(workers, isinstance(getattr(task, "timer", None), Timed))
    timeline.logs.append(log)
    return log


def timed_task(task: Any) -> Any:
    """The task with its clock on, if it has one and a timeline is kept."""
    return task._replace(timer=Timed()) if current() is not None and hasattr(task, "timer") else task


def thinned(entries: list[Entry]) -> list[Entry]:
    """Two neighbours of one epoch as one; nothing is lost but when exactly."""
    found: list[Entry] = []
    waiting: Entry | None = None
    for entry in entries:
        if waiting is None or waiting.epoch != entry.epoch:
            found += [waiting] if waiting is not None else []
            waiting = entry
        else:
            found.append(waiting.joined(entry))
            waiting = None
    return found if waiting is None else [*found, waiting]
