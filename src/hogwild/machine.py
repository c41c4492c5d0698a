"""What this process may use of the machine: its cores and its memory, as the system or a container limits them."""

from __future__ import annotations

import math
import os
import platform
import resource
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

from hogwild.errors import ConfigError

_CONTROL = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_PROCESSORS = Path("/proc/cpuinfo")
_SECONDS = 1.0  # that limits of memory are remembered: to read them takes half a millisecond


def cores() -> int:
    """Cores that this process may keep busy, at least one."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for group in _groups("cpu"):
        limit = _numbers(group / "cpu.max")
        limit = limit or _numbers(group / "cpu.cfs_quota_us") + _numbers(group / "cpu.cfs_period_us")
        if len(limit) == 2 and min(limit) > 0:  # microseconds of work in so many
            allowed = min(allowed, math.ceil(limit[0] / limit[1]))
    return max(1, allowed)


def memory() -> int:
    """Bytes of memory that this process may use."""
    allowed = min((os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_limits_of_groups()))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return allowed if limit == resource.RLIM_INFINITY else min(allowed, limit)


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Raise ConfigError, before it is taken, for more memory than there is; what: what needs it, with the verb."""
    if needed > (there := memory()):
        raise ConfigError(f"{what} {needed / 1e9:.1f} GB, and this machine has {there / 1e9:.1f} GB; {remedy}")


def processor() -> str:
    """The name of the processor, as far as the system tells it."""
    try:
        for line in _PROCESSORS.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip().lower() in ("model name", "hardware") and value.strip():
                return value.strip()
    except OSError:
        pass
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        if asked.stdout.strip():
            return asked.stdout.strip()
    return platform.processor() or platform.machine() or "unknown"


def describe() -> dict[str, Any]:
    """The machine as reports tell it; `load_before`: processes that were busy in the last minute, None if unknown."""
    try:
        load: float | None = os.getloadavg()[0]
    except OSError:
        load = None
    return {
        "cores": cores(), "processor": processor(), "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(), "load_before": load,
    }  # fmt: skip


_remembered: tuple[float, Path, Path, tuple[int, ...]] | None = None  # when limits were read, from where


def _limits_of_groups() -> tuple[int, ...]:
    """Bytes that control groups allow, each of those that limit them; what was so a moment ago is near enough."""
    global _remembered
    now = time.monotonic()
    if _remembered and now - _remembered[0] < _SECONDS and _remembered[1:3] == (_OWN, _CONTROL):
        return _remembered[3]
    names = ("memory.max", "memory.limit_in_bytes")
    limits = tuple(limit for group in _groups("memory") for name in names for limit in _numbers(group / name))
    _remembered = (now, _OWN, _CONTROL, limits)
    return limits


def _groups(controller: str) -> Iterator[Path]:
    """Control groups of this process, with all they lie in: any of them may have the lowest limit."""
    try:
        lines = _OWN.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number != "0" and controller not in controllers.split(","):
            continue
        root = _CONTROL if number == "0" else _CONTROL / controller
        inside = Path(path.lstrip("/"))
        yield from (root / part for part in (inside, *inside.parents))


def _numbers(file: Path) -> tuple[int, ...]:
    """The numbers of a file; none where it is missing or says `max`."""
    try:
        return tuple(int(word) for word in file.read_text().split())
    except (OSError, ValueError):
        return ()


# -- one BLAS thread a worker while anything runs, and what there was before when nothing does ------------------------

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
