"""All logs of a run together: what --log-dir asks for."""

from __future__ import annotations

import json
import math
import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.errors import SaveError
from hogwild.executor.events import EpochEnded, Event, Nodes, Progress, Watched

# -- Events as JSON lines: one object a line, flushed at once, so that a log can be followed and survives a crash -----


NAME = "events.jsonl"
_PROGRESS_EVERY = 1.0  # seconds; the executor reports ten times as often


def plain(value: Any) -> Any:
    """The value with numbers that JSON does not have (NaN, infinities) replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


class Log(AbstractContextManager["Log"], ABC):
    """A file of events, of progress about one a second, flushed at once.

    `problem` says why it ended before the run, if it did: a full disk must not cost the training.
    """

    ends = "the log ends here"

    def __init__(self, path: Path, **how: Any) -> None:
        self.path, self.problem = path, ""
        self._next = 0.0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: Any = open(path, **how)  # noqa: SIM115
        except OSError as error:
            raise SaveError(f"{path}: {error.strerror}; choose another --log-dir.") from error

    def __call__(self, event: Event) -> None:
        """Write an event."""
        if isinstance(event, Progress):
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + _PROGRESS_EVERY
        self._try(lambda: self._write(event))

    def _try(self, write: Callable[[], None]) -> None:
        if self.problem:
            return
        try:
            write()
            self._file.flush()
        except OSError as error:
            self.problem = f"{self}: {error.strerror}; {self.ends}, training goes on."

    @abstractmethod
    def _write(self, event: Event) -> None: ...

    def __str__(self) -> str:
        return str(self.path)

    def __exit__(self, *how: object) -> None:
        with suppress(OSError):  # what a full disk did not take
            self._file.close()


class JsonLines(Log):
    """Appends events to `events.jsonl` in a directory; each run begins with a line `"event": "started"`.

    Examples
    --------
    >>> import tempfile
    >>> from hogwild.executor.events import Parked
    >>> directory = tempfile.mkdtemp()
    >>> with JsonLines(directory) as log:
    ...     log(Parked(seconds=1.5, epoch=0, samples=10))
    >>> print((Path(directory) / "events.jsonl").read_text().split(", \\"time")[0])
    {"event": "parked", "seconds": 1.5, "epoch": 0, "samples": 10
    """

    def __init__(self, directory: str | Path) -> None:
        super().__init__(Path(directory) / NAME, mode="a", encoding="utf-8", errors="backslashreplace")

    def _write(self, event: Event) -> None:
        self._put(event.record())

    def add(self, record: Mapping[str, Any]) -> None:
        """Write a record that is no event: `run`, what a command is about to do, or `summary`, what came of it."""
        self._try(lambda: self._put(record))

    def _put(self, record: Mapping[str, Any]) -> None:
        line = plain({**record, "time": time.time()})
        self._file.write(json.dumps(line, ensure_ascii=False, allow_nan=False, default=str) + "\n")


# -- Events as TensorBoard scalars (extra `tensorboard`); the step is the number of visits made -----------------------


_FILE_VERSION = "brain.Event:2"  # that TensorBoard expects at the head of a file
_MOST = 16  # cells of a watched array that get a curve each; more are shown by their least, mean and largest


def available() -> bool:
    """Whether the extra is installed."""
    from importlib.util import find_spec

    return find_spec("tensorboard") is not None


def scalars(event: Event) -> Iterator[tuple[str, float]]:
    """The curves that an event adds a point to."""
    if isinstance(event, Progress):
        yield "train/loss", event.loss
        yield "train/lr", event.lr
        yield "train/samples_per_second", event.samples_per_second
        yield "train/units_per_second", event.units_per_second
    elif isinstance(event, EpochEnded):
        yield "epoch/loss", event.loss
        yield "epoch/seconds", event.epoch_seconds
        for name, value in event.metrics.items():
            yield f"valid/{name}", value
        for entry in event.trace:
            yield f"trace/error_rate/worker {entry['worker']}", entry["error_rate"]
            yield f"trace/delayed_rate/worker {entry['worker']}", entry["delayed"] / max(1, entry["looked_at"])
            yield f"trace/delay/worker {entry['worker']}", entry["delay"]["mean"]
    elif isinstance(event, Nodes):
        for node in event.nodes:
            for name in ("sent", "received", "seconds_waited", "units_per_second", "cores", "memory"):
                if name in node:
                    yield f"node {node['node']}/{name}", node[name]
    elif isinstance(event, Watched):
        for name, value in event.values.items():
            yield from _watched(f"watch/{name}", value)


def _watched(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if not isinstance(value, list):
        yield name, float(value)
        return
    cells = np.array(value, np.float64)
    if cells.size <= _MOST:
        for place, cell in np.ndenumerate(cells):
            yield f"{name}/{','.join(map(str, place))}", float(cell)
    else:
        numbers = cells.reshape(-1).tolist()
        yield from ((f"{name}/min", min(numbers)), (f"{name}/mean", sum(numbers) / len(numbers)))
        yield f"{name}/max", max(numbers)


class TensorBoard(Log):
    """Writes an event file of TensorBoard's own format into a directory; look with `tensorboard --logdir DIRECTORY`."""

    ends = "its curves end here"

    def __init__(self, directory: str | Path) -> None:
        from tensorboard.compat.proto.event_pb2 import Event as Record
        from tensorboard.summary.writer.record_writer import RecordWriter

        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        super().__init__(Path(directory) / name, mode="ab")
        # Not TensorBoard's own writer: its thread meets a full disk with a traceback.
        self._writer = RecordWriter(self._file)
        head = Record(wall_time=time.time(), file_version=_FILE_VERSION)
        self._try(lambda: self._writer.write(head.SerializeToString()))

    def __str__(self) -> str:
        return "TensorBoard"

    def _write(self, event: Event) -> None:
        from tensorboard.compat.proto.event_pb2 import Event as Record
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars(event) if math.isfinite(value)]
        if values:
            record = Record(step=event.samples, wall_time=time.time(), summary=Summary(value=values))
            self._writer.write(record.SerializeToString())


# -- Both together ----------------------------------------------------------------------------------------------------


class Logs(AbstractContextManager["Logs"]):
    """A reader of events that passes them to JSON lines and, where it is installed, to TensorBoard.

    An empty directory name means no logs. `notes` are sentences for the user.
    """

    def __init__(self, directory: str) -> None:
        self._stack = ExitStack()
        self._readers: list[Log] = []
        self._missing = ""
        if not directory:
            return
        self._readers.append(self._stack.enter_context(JsonLines(directory)))
        if available():
            self._readers.append(self._stack.enter_context(TensorBoard(directory)))
        else:
            self._missing = "JSON lines only: for curves too, pip install 'hogwild[tensorboard]'."

    @property
    def notes(self) -> list[str]:
        """What the user should know about the logs."""
        return [note for note in (self._missing, *(reader.problem for reader in self._readers)) if note]

    def __call__(self, event: Event) -> None:
        """Pass an event on."""
        for reader in self._readers:
            reader(event)

    def add(self, record: Mapping[str, Any]) -> None:
        """Write a record that is no event, where there are JSON lines."""
        for reader in self._readers:
            if isinstance(reader, JsonLines):
                reader.add(record)

    def __exit__(self, *how: object) -> None:
        self._stack.close()


def log_summary(directory: str, record: Mapping[str, Any]) -> str:
    """Add what came of a run to its log, if there is one; why that could not be, if so."""
    if not directory:
        return ""
    log = JsonLines(directory)
    with log:
        log.add(record)
    return log.problem
