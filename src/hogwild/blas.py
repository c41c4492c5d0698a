"""One BLAS thread a worker while anything runs, and what there was before when nothing does."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_limits: list[_Limits] = []  # of all runs since the last time that there was none
_runs = 0


class _Limits:
    """All libraries held to one thread, in all threads: for MKL threadpoolctl sets the limit of its own thread only."""

    def __init__(self) -> None:
        found = ThreadpoolController()
        mkl = found.select(internal_api="mkl").lib_controllers
        self._before: list[tuple[Any, int]] = [(lib.dynlib, int(lib.dynlib.MKL_Get_Max_Threads())) for lib in mkl]
        self._others = found.limit(limits=1)
        for library, _ in self._before:
            library.MKL_Set_Num_Threads(1)

    def restore(self) -> None:
        for library, threads in self._before:
            library.MKL_Set_Num_Threads(threads)
        self._others.restore_original_limits()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread. Runs may overlap and end in any order: the last one to end restores what was before."""
    global _runs
    with _lock:
        _limits.append(_Limits())  # each time: a library may have been loaded since
        _runs += 1
    try:
        yield
    finally:
        with _lock:
            _runs = max(0, _runs - 1)  # a run that was forked with us is none of ours
            while _runs == 0 and _limits:
                _limits.pop().restore()


def _alone() -> None:
    """In the child of a fork: the runs of other threads do not go on here. The next one to end restores."""
    global _runs
    _runs = 0
    _lock.release()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_alone)
