"""One BLAS thread a worker while anything runs, and what there was before when nothing does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_lock = threading.Lock()
_limits: list[threadpool_limits] = []  # of all runs since the last time that there was none
_runs = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread. Runs may overlap and end in any order: the last one to end restores what was before."""
    global _runs
    with _lock:
        _limits.append(threadpool_limits(limits=1))  # each time: a library may have been loaded since
        _runs += 1
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            while _runs == 0 and _limits:
                _limits.pop().restore_original_limits()
