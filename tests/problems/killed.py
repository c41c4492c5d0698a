"""A process that saves again and again, until it is killed."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable


def kill_while_saving(save: Callable[[int], None], first: int, seconds: float) -> None:
    """A child saves `first` and the numbers after it; it is killed so many seconds after the first one is saved."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for number in itertools.count(first):
                save(number)
                if number == first:
                    os.write(writing, b"saved")
        finally:
            os._exit(1)  # no clearing up, nor the rest of the test
    os.close(writing)
    saved = os.read(reading, 5)
    os.close(reading)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert saved == b"saved"
