"""Ctrl-C and SIGTERM: the first one lets a run stop in order, the second ends the process at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_INTERRUPTED = 130
_MOMENT = 0.05  # seconds: long enough for a callback to be over


@contextlib.contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """Interrupts that come while the compiler calls back, which Python would print and forget, count all the same.

    They are raised once more a moment later. What they broke in the meantime is not told as an error of its own.
    """
    before, again = sys.unraisablehook, list[threading.Timer]()
    main = threading.get_ident()

    def hook(lost: Any) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            before(lost)
            return
        again.append(threading.Timer(_MOMENT, signal.pthread_kill, (main, signal.SIGINT)))
        again[-1].daemon = True
        again[-1].start()

    sys.unraisablehook = hook
    try:
        yield
    except Exception:
        if again:
            raise KeyboardInterrupt from None
        raise
    finally:
        try:
            for timer in again:
                timer.cancel()
                timer.join()  # what comes too late to be cancelled interrupts here, not after us
        finally:
            sys.unraisablehook = before


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
