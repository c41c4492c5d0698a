"""Encoded feeds kept on disk, found again by content and options, and safe when two runs make the same one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from hogwild.arrays import bytes_of
from hogwild.config.places import cache_limit
from hogwild.errors import InputError, SaveError
from hogwild.feeds.io import workspace as workspaces
from hogwild.feeds.io.parallel import in_all
from hogwild.feeds.io.source import Source, forget
from hogwild.feeds.io.workspace import KIND, FullError, drop_workspace, feeds_home, make_workspace
from hogwild.feeds.storage.arrayfiles import DTYPES, HEADER, VERSION, Damaged, read_header
from hogwild.ownership import MARKER, is_marked, remove_marked
from hogwild.timeline import timed


class Keepable(Protocol):
    """A feed of any kind: a frozen dataclass."""

    @property
    def samples(self) -> Any:
        """Its arrays."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What its reader should know."""

    def check(self) -> Any:
        """Check all that compiled code will trust."""


K = TypeVar("K", bound=Keepable)
Opener = Callable[[Path, Sequence[str], str], K]  # maps what a directory holds: (directory, names of sources, key)

_ATTEMPTS = 5
_COUNTED = {"rows": "targets", "tokens": "tags", "ratings": "users"}  # units with the array that has one item each
_CHECKED = 1 << 30  # bytes up to which what was just made is read through: compiled code trusts its ids
_KEY = re.compile(r"[0-9a-f]{32}")
_FILES = re.compile("|".join((re.escape(HEADER), *DTYPES)))


@dataclass(frozen=True)
class Entry:
    """One encoded feed in the cache; `unit` says what its rows are: `rows`, `words` or tagged `tokens` of a text, or
    `ratings`."""

    key: str
    bytes: int
    rows: int
    unit: str
    sources: tuple[str, ...]
    used: float
    """When it was last opened, in seconds since 1970."""


def key_from(content: Mapping[str, Any], sources: Sequence[Source]) -> str:
    """What identifies that which is made of these sources as `content` says (JSON values only)."""
    with timed("hash"):
        whole = {**content, "version": VERSION, "content": in_all(lambda source: source.fingerprint(), sources)}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:32]


def digest_of(strings: Sequence[str] | None) -> str | None:
    """What stands for many strings in the content of a key."""
    return None if strings is None else hashlib.sha256(json.dumps(list(strings)).encode()).hexdigest()


def open_entry(
    write: Callable[[Path], None], sources: Sequence[Source], key: str, opener: Opener[K], keep: bool = True
) -> K:
    """What was kept under this key; else what `write` puts into a directory, kept for the next time."""
    found = load_entry(key, sources, opener) if keep else None
    return make_entry(write, sources, key, opener, keep) if found is None else found


def load_entry(key: str, sources: Sequence[Source], opener: Opener[K]) -> K | None:
    """What was kept under this key, or None if it is not there, not whole or not ours."""
    home = feeds_home()
    if home is None:
        return None
    found = _whole(home / key, [source.name for source in sources], key, opener)
    if found is not None:
        with contextlib.suppress(OSError):
            os.utime(home / key)  # the last to be evicted
    return found


def _whole(directory: Path, names: Sequence[str], key: str, opener: Opener[K]) -> K | None:
    if not is_marked(directory, KIND):
        return None
    try:
        return opener(directory, names, key)
    except (Damaged, InputError):
        return None


def make_entry(
    write: Callable[[Path], None], sources: Sequence[Source], key: str, opener: Opener[K], keep: bool = True
) -> K:
    """Open what `write` puts into a directory; with `keep` it is found again under its key.

    Without, and where the cache cannot be written, its files lose their names once they are mapped, and their space
    when the arrays go.
    """
    workspaces.sweep()
    names = [source.name for source in sources]
    workspace = make_workspace("feed")
    try:
        made: K = _made(workspace, write, sources, key, opener)
        lost = _keep(workspace, key, lambda entry: _whole(entry, names, key, opener) is not None) if keep else ""
    except FullError:
        drop_workspace(workspace)  # first: it may be that which fills the disk
        if not workspaces.leave_cache():
            raise
        workspace = make_workspace("feed")
        made = _made(workspace, write, sources, key, opener)
        lost = "the disk of the cache is full, so the encoded data is not kept for the next run." if keep else ""
    finally:
        drop_workspace(workspace)
    return cast(K, replace(cast(Any, made), notes=(*made.notes, lost))) if lost else made


def _made(workspace: Path, write: Callable[[Path], None], sources: Sequence[Source], key: str, opener: Opener[K]) -> K:
    """What `write` has put into the workspace, mapped."""
    with timed("encode"):
        write(workspace)
    for source in sources:
        source.check_unchanged()
    made = opener(workspace, [source.name for source in sources], key)
    if bytes_of(made.samples) <= _CHECKED:
        made.check()
    return made


def _keep(workspace: Path, key: str, is_whole: Callable[[Path], bool]) -> str:
    """Give a finished workspace its name in the cache; returns why that cannot be, or "".

    Another run's entry stays if it was first and is whole. The arrays of the workspace are mapped already: whatever
    becomes of the names of their files, they stay.
    """
    home = feeds_home()
    if home is None or workspace.parent != home:
        return "" if home is None else f"{home} cannot be written, so the encoded data is not kept for the next run."
    limit, size = cache_limit(home), _size_of(workspace)
    if not limit:
        return ""
    if size > limit:
        return (f"the encoded data takes {size / 1e9:.3g} GB, more than the cache may hold ({limit / 1e9:.3g} GB), and"
                " is not kept for the next run; HOGWILD_CACHE_SIZE sets the limit.")
    _make_room(home, limit - size, key)
    target = home / key
    for _ in range(_ATTEMPTS):
        try:
            os.rename(workspace, target)
        except OSError:
            if is_whole(target):
                return ""
            if not _discard(target):
                break
            continue
        workspaces.release(workspace)
        with contextlib.suppress(OSError):
            _sync_directory(home)
        return ""
    return f"{target} cannot be replaced, so the encoded data is not kept for the next run."


def _make_room(home: Path, room: int, key: str) -> None:
    """Evict what was used longest ago until the rest fits; who uses it goes on, as its arrays are mapped."""
    for directory, size, _ in _kept(home):
        room -= size
        if room < 0 and directory.name != key:
            with contextlib.suppress(OSError):
                room += remove_marked(directory, KIND, _FILES)


def _kept(home: Path) -> list[tuple[Path, int, float]]:
    """Entries with their bytes and when they were last used, the last used first."""
    found = []
    for directory in home.iterdir():
        if _KEY.fullmatch(directory.name) and is_marked(directory, KIND):
            with contextlib.suppress(FileNotFoundError):  # another run has removed it
                found.append((directory, _size_of(directory), directory.stat().st_mtime))
    return sorted(found, key=lambda entry: -entry[2])


def _discard(target: Path) -> bool:
    """Remove an entry of ours in one step for all who look; False where it is not ours."""
    if not is_marked(target, KIND):
        return not target.exists() and not target.is_symlink()
    grave = make_workspace("broken")
    try:
        os.rename(target, grave / workspaces.INNER)
    except OSError:
        return not target.exists()
    finally:
        drop_workspace(grave)
    return True


def _size_of(directory: Path) -> int:
    """Bytes of all files in a directory."""
    total = 0
    with contextlib.suppress(OSError), os.scandir(directory) as found:  # it may be removed meanwhile
        total = sum(entry.stat(follow_symlinks=False).st_size for entry in found)
    return total


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def entries() -> list[Entry]:
    """All encoded feeds and corpora, the last used first. Those that are not whole have 0 rows."""
    home = feeds_home()
    return [_described(*entry) for entry in _kept(home)] if home else []


def _described(directory: Path, size: int, used: float) -> Entry:
    try:
        header = read_header(directory)
        unit = _unit_of(header)
        rows = int(header["total"] if unit == "words" else header["arrays"][_COUNTED[unit]][1])
        return Entry(directory.name, size, rows, unit, tuple(map(str, header["sources"])), used)
    except (Damaged, KeyError, TypeError, ValueError):
        return Entry(directory.name, size, 0, "rows", (), used)


def _unit_of(header: Mapping[str, Any]) -> str:
    for unit in ("tokens", "ratings"):
        if _COUNTED[unit] in header["arrays"]:
            return unit
    return "words" if "counts" in header["arrays"] else "rows"


def clear() -> int:
    """Remove all of them and what killed runs left; returns the bytes freed. Runs that use them go on."""
    freed, home = workspaces.sweep(), feeds_home()
    for directory, _, _ in _kept(home) if home else ():
        try:
            freed += remove_marked(directory, KIND, _FILES)
        except OSError as error:
            raise SaveError(f"{directory} cannot be removed ({error.strerror}); check its permissions.") from None
        if directory.exists():
            stranger = min(set(os.listdir(directory)) - {MARKER})
            raise SaveError(f"{directory} also holds {stranger!r}, which is not ours, and stays; move that elsewhere.")
    forget()
    return freed
