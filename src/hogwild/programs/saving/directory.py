"""Replace a whole directory in one step: whoever looks finds the old one or the new one, complete.

The new one is written to a directory of our own beside (`.NAME.hogwild-RANDOM/new`, mode 700, marked and locked as
ownership.py says), flushed to the disk file by file, and then exchanged with the old one in a single call of the
system (Linux `renameat2`, macOS `renamex_np`). SIGKILL before that call leaves the old directory, after it the new
one; what is left in the directory of ours is swept away by the next save. We keep plain file names inside
(`weights.safetensors`, not one a version), because other tools look for them; the alternative, versions inside the
directory and one pointer file, gives that up.

File systems that cannot exchange (NFS, some FUSE) get two renames: the old one aside to `.NAME.hogwild-RANDOM/old-0`,
the new one in. Between the two nothing stands under the name; readers then look aside (`find`), and the next save puts
it back, so that there too a killed process costs nothing.

Nobody waits for anybody: of saves at the same time each finds that another was faster and goes round again, and the
last one stays. Only files that this package wrote are ever removed, and only out of a directory of our own.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from hogwild import ownership
from hogwild.errors import SaveError
from hogwild.messages import remedy

T = TypeVar("T")
Check = Callable[[int], None]
"""Raises SaveError unless the directory with this descriptor, which is not empty, may be replaced."""

_FILES = re.compile(r"config\.json|[a-z]+\.safetensors|vocabulary-\d+\.txt|\.DS_Store")  # the last is the Finder's
_FOLDERS = r"new|old-\d+"
_KIND = "hogwild saving"
_RANDOM = re.compile(r"[0-9a-f]{16}")
_ROUNDS = 1000  # times that other saves may be faster
_MISSES = 3  # times that nothing may be found before there is nothing: another save may be between two renames
_SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_CWD = -100  # AT_FDCWD of Linux: paths are relative to the working directory
_REMEDIES = {
    errno.ENOTDIR: "a file stands where a directory is needed: choose another place",
    errno.EEXIST: "a file stands where a directory is needed: choose another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "links that lead to each other lead nowhere: choose another place",
}


def find(path: Path) -> Path:
    """Where the directory stands: `path`, or its old version where a save was killed between two renames."""
    target = Path(os.path.realpath(path))
    if not os.path.lexists(target):
        with suppress(OSError):
            return next((old for staging in _beside(target) for old in _olds(staging)), path)
    return path


def check_output(path: Path, check_old: Check) -> None:
    """Raise SaveError now for what would make `replace_directory` fail later; creates missing parents."""
    with _saving(path), _staging(_target(path), check_old):  # proves that the place can be written to
        pass


def replace_directory(path: Path, fill: Callable[[Path], None], check_old: Check) -> None:
    """Let `fill` write the files of a new directory, then put it in the place of `path` in one step.

    Modes and group stay as they were, of the directory and of files of the same name.
    """
    with _saving(path):
        target = _target(path)
        with _staging(target, check_old) as staging:
            os.mkdir(staging / "new")
            fill(staging / "new")
            _keep_permissions(staging / "new", target)
            _sync(staging / "new")
            _put(staging, target, check_old)
            _sync(target.parent)


def remove_directory(path: Path, check_old: Check) -> None:
    """Remove a directory that `replace_directory` made."""
    with _saving(path), _staging(path, check_old) as staging:
        _set_aside(path, staging / "old-0", check_old)


def _target(path: Path) -> Path:
    """The directory itself where `path` is a link to it, so that the link stays; its parents are made."""
    with suppress(FileNotFoundError):
        os.stat(path)  # a loop of links is an error of the system, which realpath keeps for itself
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


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
def _staging(target: Path, check_old: Check) -> Iterator[Path]:
    """A directory of our own beside `target`; whatever we put there is removed at the end."""
    _sweep(target)
    _occupied(target, check_old)
    staging, lock = ownership.make_marked(target.parent, _prefix(target), _KIND)
    try:
        _check_movable(target)
        yield staging
    finally:
        ownership.drop_marked(staging, lock, _FILES, _FOLDERS)


# -- what stands there ------------------------------------------------------------------------------------------


def _occupied(target: Path, check_old: Check) -> bool:
    """Whether a directory stands there that is not empty; raises SaveError for what may not be replaced."""

    def look(directory: int) -> bool:
        _check_kind(target)
        if not os.listdir(directory):
            return False
        check_old(directory)
        return True

    return bool(_look(target, look))


def _look(target: Path, look: Callable[[int], T]) -> T | None:
    """What `look` makes of the open directory, None if there is none. What another save takes away meanwhile is no
    error: what stands there then is looked at."""
    for _ in range(_ROUNDS):
        try:
            descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            raise SaveError(f"cannot save to {target}: it is a file; choose another place or move it away.") from None
        try:
            return look(descriptor)
        except (SaveError, FileNotFoundError):
            if stands(target, descriptor):
                raise
        finally:
            os.close(descriptor)
    raise _too_busy(target)


def _check_kind(target: Path) -> None:
    if os.path.ismount(target):
        raise SaveError(f"cannot save to {target}: it is a mount point; name a directory inside it.")
    with suppress(FileNotFoundError):  # the working directory may be gone
        if Path.cwd().is_relative_to(target):
            raise SaveError(f"cannot save to {target}: it holds the working directory; name a directory inside it.")


def _check_movable(target: Path) -> None:
    """What stands there is moved: that takes the right to write to it, and in places like /tmp to own it."""

    def look(directory: int) -> None:
        parent, user, effective = os.stat(target.parent), os.geteuid(), os.access in os.supports_effective_ids
        kept = parent.st_mode & stat.S_ISVTX and user not in (0, parent.st_uid, os.fstat(directory).st_uid)
        if kept or not os.access(".", os.W_OK | os.X_OK, dir_fd=directory, effective_ids=effective):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))

    _look(target, look)


def stands(path: Path, descriptor: int, follow: bool = False) -> bool:
    """Whether what is open still stands there; `follow` a link that does."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=follow), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _keep_permissions(new: Path, target: Path) -> None:
    """As what is replaced has them; a first one as anything that is made in this place."""

    def look(directory: int) -> dict[str, os.stat_result]:
        names = [".", *os.listdir(directory)]
        return {name: os.stat(name, dir_fd=directory, follow_symlinks=False) for name in names}

    old = None
    for _ in range(_MISSES):
        with suppress(FileNotFoundError):  # what stood aside was removed meanwhile
            old = old or _look(find(target), look)
    if old is None:
        parent = os.stat(target.parent)
        if parent.st_mode & stat.S_ISGID:
            for made in (*new.iterdir(), new):
                ownership.give_group(made, parent.st_gid)
            os.chmod(new, stat.S_IMODE(os.stat(new).st_mode) | stat.S_ISGID)
        return
    for file in new.iterdir():
        like = old.get(file.name) or old.get("config.json")
        if like is not None:
            ownership.keep_permissions(file, like)
    ownership.keep_permissions(new, old["."])


# -- putting the new one in its place ---------------------------------------------------------------------------


def _put(staging: Path, target: Path, check_old: Check) -> None:
    """Put `new` of a directory of ours in place; what stood there is then in the directory of ours."""
    new = staging / "new"
    for number in range(_ROUNDS):
        try:
            if not _occupied(target, check_old):
                os.rename(new, target)
                return
            if _exchange(new, target):
                try:
                    _occupied(new, check_old)
                except BaseException:
                    _exchange(new, target)  # something of the user's came in at the last moment
                    raise
                return
            old = staging / f"old-{number}"
            _set_aside(target, old, check_old)
            try:
                os.rename(new, target)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    os.rename(old, target)
                raise
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT) or not new.is_dir():
                raise
            # Another save was faster: one put in, or took away, what we did not see.
    raise _too_busy(target)


def _set_aside(target: Path, old: Path, check_old: Check) -> None:
    os.rename(target, old)
    try:
        _occupied(old, check_old)
    except BaseException:
        os.rename(old, target)
        raise


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


def _too_busy(target: Path) -> SaveError:
    return SaveError(f"cannot save to {target}: others replace it all the time; choose a place of its own.")


# -- what killed saves left -------------------------------------------------------------------------------------


def _sweep(target: Path) -> None:
    """Clear up after saves that were killed."""
    for staging in _beside(target):
        with suppress(OSError):  # another save was faster
            for old in _olds(staging) if not os.path.lexists(target) else ():
                os.rename(old, target)
        with suppress(OSError):
            ownership.remove_marked(staging, _KIND, _FILES, _FOLDERS, orphans=True)
    for name in _names(target):
        with suppress(OSError):
            ownership.remove_unmarked(target.parent / name)


def _prefix(target: Path) -> str:
    return f".{target.name}.hogwild-"


def _names(target: Path) -> list[str]:
    """Names beside `target` that only we make."""
    prefix = _prefix(target)
    found = (name for name in os.listdir(target.parent) if name.startswith(prefix))
    return sorted(name for name in found if _RANDOM.fullmatch(name, len(prefix)))


def _beside(target: Path) -> list[Path]:
    """Directories of ours in which saves of `target` are or were at work."""
    return [target.parent / name for name in _names(target) if ownership.is_marked(target.parent / name, _KIND)]


def _olds(staging: Path) -> list[Path]:
    """What was set aside there, the newest first."""
    found = [name for name in os.listdir(staging) if re.fullmatch(r"old-\d+", name)]
    olds = (staging / name for name in sorted(found, key=lambda name: -int(name[4:])))
    return [old for old in olds if (old / "config.json").exists()]


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
