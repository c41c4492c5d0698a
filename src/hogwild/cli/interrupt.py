"""Ctrl-C, SIGTERM and SIGHUP: the first lets a run stop in order, the next one ends the process at once.

Signals within a second are one: `timeout -s INT` sends one to the process and another to its group.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130
_MOMENT = 0.05  # seconds: long enough for a callback to be over
_TOGETHER = 1.0  # seconds within which signals are one
_sent_again = False  # the next signal is one of ours, in the place of one that was lost


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
        again.append(threading.Timer(_MOMENT, _send_again, (main,)))
        again[-1].daemon = True
        again[-1].start()

    sys.unraisablehook = hook
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        with Interrupts((signal.SIGINT,) if ours else ()):
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


def _send_again(thread: int) -> None:
    global _sent_again
    _sent_again = True
    signal.pthread_kill(thread, signal.SIGINT)


def ignore_signals() -> None:
    """For the end of a process that was interrupted: its exit code stands."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class Interrupts:
    """Catches signals while it is open. `asked` turns true at the first one, for a loop that looks at it.

    Nothing else happens in the handler: it runs between two instructions of the main thread, which may hold any lock.
    Before `arm()` there is nothing to save, and a signal is a KeyboardInterrupt.
    """

    def __init__(self, signals: tuple[signal.Signals, ...] = _SIGNALS) -> None:
        self.asked = False
        self._signals = signals
        self._armed = False
        self._open = False
        self._first = -math.inf  # when the first of those that are one came
        self._before: dict[int, Any] = {}
        self._handling = threading.Lock()

    def arm(self) -> None:
        """From here on a signal asks for an orderly end."""
        self._armed = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        global _sent_again
        if not self._handling.acquire(blocking=False):
            return  # it came while this very function deals with another
        try:
            if _sent_again or not self._recent():
                _sent_again = False
                self._take(number)
        finally:
            self._handling.release()

    def _take(self, number: int) -> None:
        if not self._open:
            signal.signal(number, self._before[number])
            signal.raise_signal(number)
            return
        self._first = time.monotonic()
        if not self._armed:
            raise KeyboardInterrupt
        if self.asked:
            with contextlib.suppress(OSError):
                if os.isatty(2):
                    os.write(2, b"\x1b[?25h\n")  # the bar hides the cursor
            os._exit(_INTERRUPTED)  # what is half written stands beside its name, and the next save sweeps it away
        self.asked = True

    def _recent(self) -> bool:
        return time.monotonic() - self._first < _TOGETHER

    def __enter__(self) -> Interrupts:
        self._open = True
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                before = signal.getsignal(number)
                if number != signal.SIGHUP or before is not signal.SIG_IGN:  # nohup: it stays ignored
                    self._before[number] = before
                    signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open = False
        if self._recent():
            return  # another may be on its way: it finds the handler, which gives way to the one before when it is late
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, handler)
