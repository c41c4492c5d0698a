"""Where the time of a run went: a table, and a trace file that Chrome's trace viewer and Perfetto open.

The file is in the Trace Event Format: complete events (`"ph": "X"`) with microseconds since the profile began, one
track for each thread, its name as metadata.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from hogwild.errors import ConfigError
from hogwild.executor.spanlog import Entry, SpanLog
from hogwild.feeds.io.outfile import write_file
from hogwild.timeline import Interval, Timeline, own_track, recording

OURS = '{"otherData": {"made_by": "hogwild"'  # what a file of ours begins with
PARTS = {
    "load": "open what is encoded",
    "hash": "look for it in the cache",
    "read": "read the files",
    "parse": "parse them",
    "encode": "write arrays",
    "rank": "rank features by frequency",
    "import": "import libraries",
    "compile": "compile, or load what was compiled before",
    "startup": "allocate and initialise weights",
    "prepare": "get ready",
    "calibrate": "find a learning rate",
    "try sharing": "find the best sharing",
    "train": "train",
    "merge": "merge what workers have for themselves",
    "evaluate": "evaluate",
    "save": "save",
}
_PROCESS = 1
_MICRO = 1e6
_OPERATIONS = 15  # that are told
_STEPS = 1024  # of a microsecond


class Profile:
    """Keeps where the time goes while it is open; `with Profile("trace.json"):` writes the file at its end.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> with hogwild.Profile() as profile:
    ...     feed = hogwild.feed_of(np.array([[0.0], [1.0]]), [0, 1])
    ...     _ = hogwild.train(hogwild.Linear(), feed, epochs=2, lr=0.5, threads=1, quiet=True)
    >>> list(profile.report()["workers"][0])
    ['train', 'merge', 'wait', 'other']
    """

    def __init__(self, path: str | os.PathLike[str] = "") -> None:
        self.path = os.fspath(path)
        self.timeline = Timeline()
        self.seconds = 0.0
        self.track = own_track()
        """The thread that trains; workers and readers have tracks of their own."""
        self._open = ExitStack()
        check_trace_path(self.path)

    def __enter__(self) -> Profile:
        self.timeline.began = time.perf_counter()
        self.track = own_track()
        self._open.enter_context(recording(self.timeline))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()
        self.seconds = time.perf_counter() - self.timeline.began
        if self.path and kind is None:
            self.write(self.path)

    # -- numbers ----------------------------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """Seconds in all, by phase, and for each worker by what it did."""
        total = self.seconds or time.perf_counter() - self.timeline.began
        phases = self._phases()
        known = {name: phases[name] for name in PARTS if name in phases}
        others = {name: seconds for name, seconds in phases.items() if name not in PARTS}
        rest = max(0.0, total - sum(known.values()) - sum(others.values()))
        return {
            "seconds": total,
            "phases": {**known, **others, "other": rest},
            "workers": [worker for log in self.timeline.logs for worker in log.totals()],
            **({"operations": self._operations()} if self.timeline.operations else {}),
        }

    def _operations(self) -> dict[str, dict[str, float]]:
        """Those of PyTorch that took longest, on a device if they ran there."""
        found = sorted(self.timeline.operations.items(), key=lambda each: (-each[1].device_seconds, -each[1].seconds))
        return {name: operation._asdict() for name, operation in found[:_OPERATIONS]}

    def _phases(self) -> dict[str, float]:
        """Seconds of the main thread by what it did. While another thread compiles for it, it waits for that."""
        whole = self._whole()
        compiled = sorted(
            (each.start, each.stop)
            for each in whole.intervals if each.name == "compile" and each.track != self.track
        )  # fmt: skip
        phases: dict[str, float] = {}
        for name, start, stop in whole.own_parts(self.track):
            waited = sum(max(0.0, min(stop, end) - max(start, begin)) for begin, end in compiled)
            waited = 0.0 if name in ("train", "compile") else waited
            phases[name] = phases.get(name, 0.0) + stop - start - waited
            if waited:
                phases["compile"] = phases.get("compile", 0.0) + waited
        return phases

    def _whole(self) -> Timeline:
        """The timeline, with the times in which the main thread waited for workers."""
        whole = Timeline()
        trained = [Interval(self.track, "train", *run) for log in self.timeline.logs for run in log.runs]
        whole.intervals = self.timeline.intervals + trained
        return whole

    def table(self) -> str:
        """The same for people."""
        found = self.report()
        total = found["seconds"]
        lines = [f"where {total:.3g} s went:"]
        for name, seconds in found["phases"].items():
            meaning = PARTS.get(name, "all else" if name == "other" else "")
            lines.append(f"  {name:12} {seconds:9.3f} s {seconds / max(total, 1e-9):6.1%}  {meaning}".rstrip())
        if found["workers"]:
            names = list(found["workers"][0])
            lines.append("each worker while training, in seconds:")
            lines.append("  " + "worker".ljust(8) + "".join(f"{name:>9}" for name in names))
            for k, worker in enumerate(found["workers"]):
                lines.append(f"  {k:<8}" + "".join(f"{worker[name]:9.3f}" for name in names))
        if operations := found.get("operations"):
            lines.append("operations of PyTorch in the first spans of worker 0, and what they took:")
            lines.append(f"  {'':32}{'calls':>9}{'seconds':>10}{'on device':>11}")
            for name, each in operations.items():
                seconds = f"{each['seconds']:10.4f}{each['device_seconds']:11.4f}"
                lines.append(f"  {name[:32]:32}{each['calls']:9,}{seconds}")
        return "\n".join(lines)

    # -- the file ---------------------------------------------------------------------------------------------------

    def write(self, path: str) -> None:
        """Write the trace file."""
        with write_file(path) as stream:
            about = {"made_by": "hogwild", **self.report()}
            stream.write(f'{{"otherData": {json.dumps(about)},\n"displayTimeUnit": "ms",\n"traceEvents": ['.encode())
            between = b"\n"
            for event in self.events():
                stream.write(between + json.dumps(event).encode())
                between = b",\n"
            stream.write(b"\n]}\n")

    def events(self) -> Iterator[dict[str, Any]]:
        """Events of the Trace Event Format, those of a track in the order of time."""
        intervals = self._whole().intervals
        for k, log in enumerate(self.timeline.logs):
            intervals += _intervals(log, f", run {k + 1}" if len(self.timeline.logs) > 1 else "")
        tracks: dict[str, list[Interval]] = {self.track: []}
        for each in intervals:
            tracks.setdefault(each.track, []).append(each)
        yield {"name": "process_name", "ph": "M", "pid": _PROCESS, "tid": 0, "args": {"name": "hogwild"}}
        for number, (track, its) in enumerate(tracks.items()):
            place = {"pid": _PROCESS, "tid": number}
            yield {"name": "thread_name", "ph": "M", **place, "args": {"name": track}}
            yield {"name": "thread_sort_index", "ph": "M", **place, "args": {"sort_index": number}}
            for each in sorted(its, key=lambda each: (each.start, -each.stop)):
                start, stop = self._moment(each.start), self._moment(each.stop)
                yield {
                    "name": each.name, "cat": "hogwild", "ph": "X", **place, "ts": start, "dur": stop - start,
                    "args": each.facts,
                }  # fmt: skip

    def _moment(self, seconds: float) -> float:
        """Microseconds since the beginning, in steps of 2^-10: so start + duration is exactly where the next starts,
        and no viewer sees two events overlap."""
        return round((seconds - self.timeline.began) * _MICRO * _STEPS) / _STEPS


def _intervals(log: SpanLog, run: str) -> list[Interval]:
    """What workers did, as intervals on tracks of their own."""
    each = log.tick_seconds()
    found: list[Interval] = []
    for worker, entries in enumerate(log.entries):
        for entry in entries:
            found += _parts(entry, f"worker {worker}{run}", log.phases, each)
    return found


def _parts(entry: Entry, track: str, phases: tuple[str, ...], tick: float) -> Iterator[Interval]:
    """Waiting, training and merging one after the other, as they are in a single span; inside of training its phases
    as long as they were in all visits together."""
    start = entry.start
    facts = {"epoch": entry.epoch + 1, "visits": entry.visits, "spans": entry.spans}
    for name, seconds in (("wait", entry.wait), ("train", entry.train), ("merge", entry.merge)):
        stop = min(start + seconds, entry.stop)
        if stop > start:
            yield Interval(track, name, start, stop, facts if name == "train" else {})
        if name == "train":
            inner = start
            for phase, count in zip(phases, entry.ticks, strict=True):
                until = min(inner + count * tick, stop)
                if until > inner:
                    yield Interval(track, phase, inner, until, {"summed": True})
                inner = until
        start = stop


def check_trace_path(path: str) -> None:
    """Raise ConfigError rather than replace a file that is no trace of ours, perhaps somebody's data."""
    if not path or not Path(path).is_file():
        return
    with open(path, "rb") as file:
        head = file.read(len(OURS))
    if head and head != OURS.encode():
        raise ConfigError(f"{path} is there and no profile of hogwild, so it is not replaced; give another name.")
