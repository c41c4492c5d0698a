"""Replace a whole directory in one step: whoever looks finds the old one or the new one, complete.

The new one is written beside (`.NAME.tmp-PID-RANDOM`), flushed to the disk file by file, and then exchanged with the
old one in a single call of the system (Linux `renameat2`, macOS `renamex_np`). SIGKILL before that call leaves the old
directory, after it the new one; what is left beside is swept away by the next save. We keep plain file names inside
(`weights.safetensors`, not one a version), because other tools look for them; the alternative, versions inside the
directory and one pointer file, gives that up.

File systems that cannot exchange (NFS, some FUSE) get two renames: the old one aside to `.NAME.old-…`, the new one in.
Between the two nothing stands under the name; readers then look at `.NAME.old-…` (`find`), and the next save puts it
back, so that there too a killed process costs nothing.

Only files that this package wrote are ever removed.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hogwild.errors import SaveError
from hogwild.messages import remedy

_OURS = re.compile(r"config\.json|[a-z]+\.safetensors|vocabulary-\d+\.txt|\.DS_Store")  # the last is the Finder's
_SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_CWD = -100  # AT_FDCWD of Linux: paths are relative to the working directory
_REMEDIES = {
    errno.ENOTDIR: "a file stands where a directory is needed: choose another place",
    errno.EEXIST: "a file stands where a directory is needed: choose another place",
}


def find(path: Path) -> Path:
    """Where the directory stands: `path`, or its old version where a save was killed between two renames."""
    target = Path(os.path.realpath(path))
    if not target.exists() and target.parent.is_dir():
        return next((aside for aside in _beside(target, "old") if (aside / "config.json").exists()), path)
    return path


def check_output(path: Path, check_old: Callable[[Path], None]) -> None:
    """Raise SaveError now for what would make `replace_directory` fail later; creates missing parents.

    check_old: raises SaveError unless it may be replaced; called with a directory that is not empty.
    """
    with _saving(path):
        target = _target(path)
        with _staging(target, check_old):  # proves that the place can be written to
            pass


def replace_directory(path: Path, fill: Callable[[Path], None], check_old: Callable[[Path], None]) -> None:
    """Let `fill` write the files of a new directory, then put it in the place of `path` in one step."""
    with _saving(path):
        target = _target(path)
        with _staging(target, check_old) as new:
            fill(new)
            _sync(new)
            with _turn(target.parent):
                _check_target(target, check_old)
                _put(new, target)


def _target(path: Path) -> Path:
    """The directory itself where `path` is a link to it, so that the link stays; its parents are made."""
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _check_target(target: Path, check_old: Callable[[Path], None]) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise SaveError(f"cannot save to {target}: it is a file; choose another place or move it away.")
    if os.path.ismount(target):
        raise SaveError(f"cannot save to {target}: it is a mount point; name a directory inside it.")
    if _works_in(target):
        raise SaveError(f"cannot save to {target}: it holds the working directory; name a directory inside it.")
    if any(target.iterdir()):
        check_old(target)


def _works_in(target: Path) -> bool:
    try:
        return Path.cwd().is_relative_to(target)
    except FileNotFoundError:  # the working directory was deleted
        return False


@contextmanager
def _saving(path: Path) -> Iterator[None]:
    """Turn errors of the system into one line. What stood at `path` is untouched."""
    try:
        yield
    except OSError as error:
        otherwise = _REMEDIES.get(error.errno or 0, "choose a place that you may write to, its parent included")
        reason = f"{error.strerror or error}; {remedy(error, otherwise)}. What stood there is untouched."
        raise SaveError(f"cannot save to {path}: {reason}") from error


@contextmanager
def _staging(target: Path, check_old: Callable[[Path], None]) -> Iterator[Path]:
    """A fresh directory beside `target`, locked as long as it is in use; whatever is there at the end is removed."""
    with _turn(target.parent):
        _sweep(target)
        _check_target(target, check_old)
        new = _aside(target, "tmp")
        new.mkdir()
        lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY)
        _lock(lock)
    try:
        yield new
    finally:
        with suppress(OSError):
            _remove(new)
        os.close(lock)


@contextmanager
def _turn(parent: Path) -> Iterator[None]:
    """Names in `parent` are changed by one save at a time; readers do not wait."""
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def _put(new: Path, target: Path) -> None:
    """Put `new` in place; what stood there goes to `new`, or is removed."""
    old = None
    if not target.exists() or not any(target.iterdir()):
        os.rename(new, target)
    elif not _exchange(new, target):
        old = _aside(target, "old")
        os.rename(target, old)
        try:
            os.rename(new, target)
        except OSError:
            os.rename(old, target)
            raise
    _sync(target.parent)
    if old:
        _remove(old)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two directories in one step; False where system or file system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if hasattr(libc, "renameat2"):
        failed = libc.renameat2(_CWD, first, _CWD, second, _SWAP)
    elif hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(first, second, _SWAP)
    else:
        return False
    if failed and ctypes.get_errno() not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(other))
    return not failed


def _sweep(target: Path) -> None:
    """Clear up after saves that were killed."""
    for aside in _beside(target, "old"):
        if target.exists():
            _remove(aside)
        elif (aside / "config.json").exists():
            os.rename(aside, target)
    for left in _beside(target, "tmp"):
        with suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
            try:
                if _lock(lock):
                    _remove(left)
            finally:
                os.close(lock)


def _aside(target: Path, kind: str) -> Path:
    return target.with_name(f".{target.name}.{kind}-{os.getpid()}-{secrets.token_hex(4)}")


def _beside(target: Path, kind: str) -> list[Path]:
    prefix = f".{target.name}.{kind}-"
    return sorted(entry for entry in target.parent.iterdir() if entry.name.startswith(prefix))


def _remove(directory: Path) -> None:
    """Remove our files and, if it is then empty, the directory. config.json goes first: without it nobody reads it."""
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(directory), key=lambda name: name != "config.json"):
            if _OURS.fullmatch(name):
                with suppress(FileNotFoundError):
                    os.unlink(directory / name)
        with suppress(OSError):  # a file of the user's came in: it stays
            os.rmdir(directory)


def _lock(descriptor: int, wait: bool = False) -> bool:
    """Whether the lock of a directory could be taken: not where another has it, or the file system has no locks.

    The system gives a lock back when the process ends, however it ends: no lock, no living owner.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sync(directory: Path) -> None:
    """Flush the names in a directory to the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # not all file systems can
            raise
    finally:
        os.close(descriptor)
