"""How long the compiler has worked in this process, wherever it was called from."""

from __future__ import annotations

from numba.core import event

_clock = event.TimingListener()
event.register("numba:compile", _clock)


def seconds_compiled() -> float:
    """Seconds since this module was imported; code that is read from the cache takes none."""
    return float(_clock.duration) if _clock.done else 0.0
