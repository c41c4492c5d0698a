"""How long the compiler has worked in this process, wherever it was called from."""

from __future__ import annotations

import time
from typing import Any

from numba.core import event

from hogwild.timeline import current


class _Clock(event.Listener):
    """The compiler calls itself for inner functions: only the outermost call counts."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._began = 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            now = time.perf_counter()
            self.seconds += now - self._began
            timeline = current()
            if timeline is not None:
                timeline.add("compile", self._began, now)


_clock = _Clock()
event.register("numba:compile", _clock)


def seconds_compiled() -> float:
    """Seconds since this module was imported; code that is read from the cache takes none."""
    return _clock.seconds
