"""Ctrl-C and SIGTERM: the first one lets a run stop in order, the second ends the process at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_INTERRUPTED = 130


class Interrupts:
    """Catches signals while it is open. `asked` turns true at the first one, for a loop that looks at it.

    Nothing else happens in the handler: it runs between two instructions of the main thread, which may hold any lock.
    Before `arm()` there is nothing to save, and a signal is a KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.asked = False
        self._armed = False
        self._before: dict[int, Any] = {}

    def arm(self) -> None:
        """From here on a signal asks for an orderly end."""
        self._armed = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._armed:
            raise KeyboardInterrupt
        if self.asked:
            if sys.stderr.isatty():
                os.write(2, b"\x1b[?25h\n")  # the bar hides the cursor
            os._exit(_INTERRUPTED)  # what is half written stands beside its name, and the next save sweeps it away
        self.asked = True

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
