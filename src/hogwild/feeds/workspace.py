"""Temporary directories beside the cache. What a killed run leaves behind, the next one sweeps away."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hogwild import messages
from hogwild.config import cache_home
from hogwild.errors import SaveError

PREFIX = ".making-"
FULL = (errno.ENOSPC, errno.EDQUOT)
_LOCK = "lock"
_UNLOCKED = 3600  # seconds after which a workspace that never got its lock is taken for dead
_held: dict[Path, int] = {}  # descriptors with the locks; the system releases them when the process ends


def feeds_home() -> Path:
    """Where encoded feeds are kept."""
    return cache_home() / "feeds"


def make_workspace(purpose: str) -> Path:
    """A new directory on the disk of the cache, or among temporary files if the cache cannot be written.

    It is locked while this process lives: `sweep` leaves it alone.
    """
    home = feeds_home() if cache_is_writable() else Path(tempfile.gettempdir())
    with writing(home):
        directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-", dir=home))
        lock = os.open(directory / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        _held[directory] = lock
    return directory


def cache_is_writable() -> bool:
    """Whether encoded feeds can be kept: not so in a read-only home."""
    try:
        feeds_home().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in FULL:
            raise SaveError(_refused(feeds_home(), error)) from None
        return False
    return os.access(feeds_home(), os.W_OK | os.X_OK)


def drop_workspace(directory: Path) -> None:
    """Remove a workspace and its lock."""
    shutil.rmtree(directory, ignore_errors=True)
    release(directory)


def release(directory: Path) -> None:
    """Let go of the lock, before the directory gets another name."""
    lock = _held.pop(directory, None)
    if lock is not None:
        (directory / _LOCK).unlink(missing_ok=True)
        os.close(lock)


def sweep() -> int:
    """Remove workspaces whose process has ended; returns the bytes freed."""
    freed = 0
    for directory in feeds_home().glob(PREFIX + "*"):
        if directory not in _held and _abandoned(directory):
            freed += size_of(directory)
            shutil.rmtree(directory, ignore_errors=True)
    return freed


def _abandoned(directory: Path) -> bool:
    try:
        lock = os.open(directory / _LOCK, os.O_RDWR)
    except OSError:
        try:
            return time.time() - directory.stat().st_mtime > _UNLOCKED
        except OSError:
            return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(lock)


def size_of(directory: Path) -> int:
    """Bytes of all files in a directory."""
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue  # removed meanwhile
    return total


@contextmanager
def writing(what: Path) -> Iterator[None]:
    """Turn what the disk refuses into a SaveError of one line."""
    try:
        yield
    except OSError as error:
        raise SaveError(_refused(what, error)) from None


def _refused(what: Path, error: OSError) -> str:
    remedy = messages.remedy(error, "check its permissions, or set HOGWILD_CACHE to another directory")
    if error.errno in FULL:
        remedy = "free space (`hogwild cache clear`), or set HOGWILD_CACHE to a larger disk"
    return f"{what} cannot be written: {error.strerror or error}; {remedy}."
