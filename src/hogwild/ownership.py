"""What this package made itself, and what nobody else could have written: it deletes only that, and trusts only that.

Private: a directory of this user's that nobody else may write to, nor to what it lies in. Marked: a directory that this
package made, told by a marker file in it that it also holds a lock on while it lives. No link is ever followed to
something that is deleted.
"""

from __future__ import annotations

import errno
import fcntl
import grp
import os
import pwd
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

MARKER = ".made-by-hogwild"
_SHORT = 200  # bytes of a marker
_TRIES = 10
_NO_LINK = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # nor wait for the writer of a pipe


class SharedError(OSError):
    """Others could have written what stands at a place, or could exchange it."""


# -- what may be trusted ----------------------------------------------------------------------------------------


def private_directory(path: Path) -> Path:
    """The directory with all links resolved, made with mode 700 where it is missing, whatever the umask.

    Raises SharedError where others could write to it or exchange it, and any other OSError where it cannot be made.
    """
    path = Path(os.path.realpath(path))
    _make(path)
    reason = why_shared(path)
    if reason:
        raise SharedError(errno.EPERM, reason)
    return path


def _make(path: Path) -> None:
    if path.is_dir():
        return
    _make(path.parent)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)  # the umask may have taken away more


def why_shared(path: Path) -> str:
    """Why others could have written to this directory, or "" if they could not. `path` has no links in it."""
    try:
        for place in (path, *path.parents):
            reason = _shared(place, os.lstat(place), place == path)
            if reason:
                return reason
    except OSError as error:
        return f"{path} cannot be looked at ({error.strerror})"
    return ""


def _shared(place: Path, found: os.stat_result, own: bool) -> str:
    if not stat.S_ISDIR(found.st_mode):
        return f"{place} is not a directory"
    if found.st_uid != os.geteuid() and (own or (found.st_uid != 0 and place.parent != place)):
        return f"{place} belongs to another user"
    others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    # In what it lies in, others may make names of their own as long as they cannot exchange ours.
    if others and (own or not (found.st_mode & stat.S_ISVTX or _alone(found))):
        return f"others may write to {place}"
    return ""


def _alone(found: os.stat_result) -> bool:
    """Whether only this user's own group may write, of which nobody else is a member."""
    if found.st_mode & stat.S_IWOTH:
        return False
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(found.st_gid)
    except KeyError:
        return False
    return group.gr_gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def open_private(name: str | Path, directory: int | None = None, flags: int = os.O_RDONLY) -> int:
    """Open a file, for reading unless the flags say more, that only this user could have written; raises SharedError
    for any other, or OSError."""
    descriptor = os.open(name, flags | _NO_LINK, dir_fd=directory)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise SharedError(errno.EPERM, "not a plain file of this user's", str(name))
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise SharedError(errno.EPERM, "others may write to it", str(name))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def private_opener(path: str, flags: int) -> int:
    """For `open(..., opener=private_opener)`: a new file has mode 600 whatever the umask, and no link is followed."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


# -- what may be deleted ----------------------------------------------------------------------------------------


def random_name() -> str:
    """Sixteen letters and digits that nobody can guess."""
    return secrets.token_hex(8)


def make_marked(parent: Path, prefix: str, kind: str) -> tuple[Path, int]:
    """A new directory, `prefix` and a random name, mode 700, with the marker of a kind; and the descriptor of its lock.

    The system gives the lock back when the process ends, however it ends: no lock, no living owner.
    """
    for _ in range(_TRIES):
        directory = parent / (prefix + random_name())
        os.mkdir(directory, 0o700)
        try:
            os.chmod(directory, 0o700)
            lock = _write_marker(directory, kind)
        except FileNotFoundError:
            continue  # a sweep was faster
        except OSError:
            with suppress(OSError):
                remove_unmarked(directory)
            raise
        if _lock(lock) is not False and os.fstat(lock).st_nlink:
            return directory, lock
        os.close(lock)  # a sweep was faster
    raise OSError(errno.EBUSY, "another process removes what this one makes", str(parent))


def mark(directory: Path, kind: str) -> None:
    """Put the marker of a kind into a directory that we made and that no process holds."""
    os.close(_write_marker(directory, kind))


def _write_marker(directory: Path, kind: str) -> int:
    marker = os.open(directory / MARKER, os.O_CREAT | os.O_EXCL | os.O_RDWR | _NO_LINK, 0o600)
    try:
        os.write(marker, kind.encode())
    except OSError:
        os.close(marker)
        raise
    return marker


def is_marked(directory: Path, kind: str) -> bool:
    """Whether this is a directory of this user's, no link, with our marker of this kind in it."""
    try:
        with _opened(directory) as descriptor:
            return _has_mark(descriptor, kind)
    except OSError:
        return False


def remove_marked(directory: Path, kind: str, names: re.Pattern[str], folders: str = "", orphans: bool = False) -> int:
    """Remove a directory with the marker of this kind that no living process holds; returns the bytes freed.

    Only plain files with these names go, also those in folders whose whole names the pattern `folders` fits; whatever
    else is found stays, and so does the directory. Raises OSError where the system refuses.
    orphans: only where its maker is known to have ended, which file systems without locks do not tell.
    """
    with suppress(FileNotFoundError), _opened(directory) as descriptor:
        if not _has_mark(descriptor, kind):
            return 0
        with _closing(os.open(MARKER, os.O_RDWR | _NO_LINK, dir_fd=descriptor)) as lock:
            free = _lock(lock)
            if free is False or (orphans and free is None):
                return 0
            return _empty(directory, descriptor, names, folders)
    return 0


def drop_marked(directory: Path, lock: int, names: re.Pattern[str], folders: str = "") -> None:
    """Remove a directory that this process made and still holds by its lock; gives up where the system refuses."""
    with suppress(OSError), _opened(directory) as descriptor:
        _empty(directory, descriptor, names, folders)
    os.close(lock)


def remove_unmarked(directory: Path) -> None:
    """Remove a directory whose maker ended before its marker was written: it holds nothing but an empty marker.

    Only for a name that nobody else makes. Raises OSError where the system refuses.
    """
    with _opened(directory) as descriptor:
        if os.fstat(descriptor).st_uid != os.geteuid() or os.listdir(descriptor) not in ([], [MARKER]):
            return
        with suppress(FileNotFoundError), _closing(os.open(MARKER, os.O_RDWR | _NO_LINK, dir_fd=descriptor)) as lock:
            if os.fstat(lock).st_size or not _lock(lock):
                return
            os.unlink(MARKER, dir_fd=descriptor)
        os.rmdir(directory)


def _empty(directory: Path, descriptor: int, names: re.Pattern[str], folders: str) -> int:
    freed = 0
    inside = re.compile(f"{names.pattern}|{re.escape(MARKER)}")
    for folder in os.listdir(descriptor) if folders else ():
        with suppress(FileNotFoundError, NotADirectoryError):
            if re.fullmatch(folders, folder):
                with _opened(folder, descriptor) as inner:
                    freed += _unlink_all(inner, inside, all_owners=True)  # nobody but us could put it there
                try:
                    os.rmdir(folder, dir_fd=descriptor)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # strangers in it stay
                        raise
    freed += _unlink_all(descriptor, names)
    if os.listdir(descriptor) == [MARKER]:
        freed += os.stat(MARKER, dir_fd=descriptor, follow_symlinks=False).st_size
        os.unlink(MARKER, dir_fd=descriptor)
        os.rmdir(directory)
    return freed


def _unlink_all(descriptor: int, names: re.Pattern[str], all_owners: bool = False) -> int:
    """Unlink all plain files of this user's that have such names."""
    freed = 0
    for name in sorted(os.listdir(descriptor), key=lambda name: name != "config.json"):  # without it nobody reads it
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        ours = all_owners or found.st_uid == os.geteuid()
        if names.fullmatch(name) and stat.S_ISREG(found.st_mode) and ours:
            os.unlink(name, dir_fd=descriptor)
            freed += found.st_size
    return freed


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _opened(directory: str | Path, within: int | None = None) -> AbstractContextManager[int]:
    return _closing(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=within))


def _has_mark(directory: int, kind: str) -> bool:
    if os.fstat(directory).st_uid != os.geteuid():
        return False
    try:
        marker = open_private(MARKER, directory)
    except OSError:
        return False
    with _closing(marker):
        return os.read(marker, _SHORT) == kind.encode()


def _lock(descriptor: int) -> bool | None:
    """Whether the lock could be taken; None where the file system has none."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


# -- whoever could read the old one can read the new one, and nobody else ---------------------------------------------

def keep_permissions(new: Path, old: os.stat_result) -> None:
    """Give a file or directory the mode of the one that it replaces, and its group where the system allows that.

    Where it does not, the group that the new one has gets what all others have: it may be another one. Only root can
    give it the owner too: then a user's model stays the user's.
    """
    if os.geteuid() == 0 and os.stat(new).st_uid != old.st_uid:
        os.chown(new, old.st_uid, -1)
    mode = stat.S_IMODE(old.st_mode)
    if not give_group(new, old.st_gid):
        mode = mode & ~(stat.S_IRWXG | stat.S_ISGID) | (mode & stat.S_IRWXO) << 3
    os.chmod(new, mode)


def give_group(new: Path, group: int) -> bool:
    """Whether it has this group now."""
    if os.stat(new).st_gid != group:
        try:
            os.chown(new, -1, group)
        except PermissionError:
            return False
    return True
