"""When what was done, by which thread: kept while somebody asks for it, and free of cost while nobody does.

`with recording(Timeline()):` keeps what all code inside of it tells by `timed`. There is one timeline at a time.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

MAIN = "main"


class Interval(NamedTuple):
    """Something done on one track, in seconds of `time.perf_counter`."""

    track: str
    name: str
    start: float
    stop: float
    facts: dict[str, Any] = {}  # noqa: RUF012  # never written to


class Operation(NamedTuple):
    """What the calls of one operation of PyTorch took, without those that it called itself."""

    calls: int
    seconds: float
    """Of the processor."""
    device_seconds: float

    def plus(self, other: Operation) -> Operation:
        """Both together."""
        seconds, there = self.seconds + other.seconds, self.device_seconds + other.device_seconds
        return Operation(self.calls + other.calls, seconds, there)


class Timeline:
    """Intervals of all threads, in the order of their ends."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.intervals: list[Interval] = []
        self.logs: list[Any] = []
        """What workers did, one log a run: see executor/spanlog.py."""
        self.operations: dict[str, Operation] = {}
        """Of some visits on a device, by name."""

    def count(self, name: str, calls: Operation) -> None:
        """Some calls of an operation."""
        known = self.operations.get(name)
        self.operations[name] = calls if known is None else known.plus(calls)

    def add(self, name: str, start: float, stop: float, track: str = "", **facts: Any) -> None:
        """Keep an interval, on the track of this thread if none is named."""
        # Appending to a list is atomic: threads need no lock here.
        self.intervals.append(Interval(track or own_track(), name, start, stop, facts))

    def own_parts(self, track: str) -> list[tuple[str, float, float]]:
        """(name, start, stop) of what was done on one track; time inside of an inner interval belongs to that alone."""
        found: list[tuple[str, float, float]] = []
        open_ones: list[Interval] = []
        reached = -math.inf  # up to where time has been given away

        def close_until(moment: float) -> None:
            nonlocal reached
            while open_ones and open_ones[-1].stop <= moment:
                last = open_ones.pop()
                found.append((last.name, reached, max(reached, last.stop)))
                reached = max(reached, last.stop)

        here = (each for each in self.intervals if each.track == track)
        for each in sorted(here, key=lambda each: (each.start, -each.stop)):
            close_until(each.start)
            if open_ones:
                found.append((open_ones[-1].name, reached, max(reached, each.start)))
            reached = max(reached, each.start)
            open_ones.append(each)
        close_until(math.inf)
        return found


_current: Timeline | None = None


def current() -> Timeline | None:
    """The timeline that is kept now, if one is."""
    return _current


@contextmanager
def recording(timeline: Timeline) -> Iterator[Timeline]:
    """Keep what happens inside."""
    global _current
    before, _current = _current, timeline
    try:
        yield timeline
    finally:
        _current = before


def timed(name: str) -> AbstractContextManager[Any]:
    """Tell the timeline, if one is kept, when the code inside ran."""
    return nullcontext() if _current is None else _timing(_current, name)


@contextmanager
def _timing(timeline: Timeline, name: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        timeline.add(name, start, time.perf_counter())


def timed_items(name: str, items: Iterable[T]) -> Iterable[T]:
    """The same items; the timeline, if one is kept, is told how long each took to come."""
    return items if _current is None else _items(_current, name, items)


def _items(timeline: Timeline, name: str, items: Iterable[T]) -> Iterator[T]:
    source = iter(items)
    while True:
        start = time.perf_counter()
        try:
            item = next(source)
        except StopIteration:
            return
        finally:
            timeline.add(name, start, time.perf_counter())
        yield item


def own_track() -> str:
    """What the track of this thread is called."""
    thread = threading.current_thread()
    return MAIN if thread is threading.main_thread() else thread.name
