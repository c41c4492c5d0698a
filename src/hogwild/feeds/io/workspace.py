"""Temporary directories beside the cache. What a killed run leaves behind, the next one sweeps away."""

from __future__ import annotations

import errno
import mmap
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from hogwild import messages
from hogwild.arrays import CELL, Floats
from hogwild.config.places import cache_folder
from hogwild.errors import SaveError
from hogwild.ownership import drop_marked, make_marked, remove_marked

KIND = "hogwild feed"
PREFIX = ".hogwild-making-"
FULL = (errno.ENOSPC, errno.EDQUOT)
_NAME = re.compile(re.escape(PREFIX) + r"[a-z]+-[0-9a-f]{16}")
_FILES = re.compile(r"[a-z][\w.-]*")
INNER = "entry"
_left: set[Path] = set()  # caches whose disks are full
_held: dict[Path, int] = {}  # descriptors with the locks; the system releases them when the process ends


class FullError(SaveError):
    """A disk is full."""


def feeds_home() -> Path | None:
    """Where encoded feeds are kept; None if they are not."""
    home = cache_folder("feeds")
    return None if home in _left else home


def leave_cache() -> bool:
    """From now on do without a cache whose disk is full; False where temporary files are on the same disk."""
    home = feeds_home()
    if home is None or home.stat().st_dev == os.stat(tempfile.gettempdir()).st_dev:
        return False
    _left.add(home)
    return True


def make_workspace(purpose: str) -> Path:
    """A new directory on the disk of the cache, or among temporary files if the cache cannot be written.

    It is locked while this process lives: `sweep` leaves it alone.
    """
    home = feeds_home()
    if home is not None:
        with suppress(OSError):
            return _hold(home, purpose)
    home = Path(tempfile.gettempdir())
    with writing(home):
        return _hold(home, purpose)


def _hold(home: Path, purpose: str) -> Path:
    directory, lock = make_marked(home, f"{PREFIX}{purpose}-", KIND)
    _held[directory] = lock
    return directory


def drop_workspace(directory: Path) -> None:
    """Remove a workspace and its lock."""
    lock = _held.pop(directory, None)
    if lock is not None:
        drop_marked(directory, lock, _FILES, INNER)


def release(directory: Path) -> None:
    """Let go of the lock, before the directory gets another name."""
    os.close(_held.pop(directory))


def sweep() -> int:
    """Remove workspaces whose process has ended; returns the bytes freed."""
    freed = 0
    for home in (feeds_home(), Path(tempfile.gettempdir())):
        with suppress(OSError):
            for directory in home.iterdir() if home else ():
                if _NAME.fullmatch(directory.name) and directory not in _held:
                    freed += remove_marked(directory, KIND, _FILES, INNER, orphans=True)
    return freed


def mapped_floats(cells: int) -> Floats:
    """Zeros in a file that has no name and goes with the process."""
    home = feeds_home() or Path(tempfile.gettempdir())
    with writing(home), tempfile.TemporaryFile(dir=home, buffering=0) as file:
        size = max(1, CELL * cells)
        if hasattr(os, "posix_fallocate"):  # a full disk is told now
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        memory = mmap.mmap(file.fileno(), size)
    return np.frombuffer(memory, np.float32, cells)


@contextmanager
def writing(what: Path) -> Iterator[None]:
    """Turn what the disk refuses into a SaveError of one line."""
    try:
        yield
    except OSError as error:
        kind, remedy = SaveError, "check its permissions, or set HOGWILD_CACHE to another directory"
        if error.errno in FULL:
            kind, remedy = FullError, "free space (`hogwild cache clear`), or set HOGWILD_CACHE to a larger disk"
        else:
            remedy = messages.remedy(error, remedy)
        raise kind(f"{what} cannot be written: {error.strerror or error}; {remedy}.") from None
