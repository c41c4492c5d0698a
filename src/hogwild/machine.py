"""What this process may use of the machine: its cores and its memory, as the system or a container limits them."""

from __future__ import annotations

import math
import os
import platform
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

_CONTROL = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_PROCESSORS = Path("/proc/cpuinfo")


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
    allowed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for group in _groups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            allowed = min((allowed, *_numbers(group / name)))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return allowed if limit == resource.RLIM_INFINITY else min(allowed, limit)


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
