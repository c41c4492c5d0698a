"""Events as JSON lines: one object a line, flushed at once, so that a log can be followed and survives a crash."""

from __future__ import annotations

import contextlib
import json
import math
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from hogwild.errors import SaveError
from hogwild.executor.events import Event, Progress

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


class JsonLines:
    """Appends events to `events.jsonl` in a directory; each run begins with a line `"event": "started"`.

    `problem` says why the log ended before the run, if it did: a full disk must not cost the training.

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
        self.path = Path(directory) / NAME
        self.problem = ""
        self._next = 0.0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise SaveError(f"{self.path}: {error.strerror}; choose another --log-dir.") from error

    def __call__(self, event: Event) -> None:
        """Write one line; of progress, about one a second."""
        if self.problem:
            return
        if isinstance(event, Progress):
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + _PROGRESS_EVERY
        record = plain({**event.record(), "time": time.time()})
        try:
            self._file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
            self._file.flush()
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}; the log ends here, training goes on."

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(OSError):  # what a full disk did not take
            self._file.close()
