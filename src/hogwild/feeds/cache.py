"""Encoded feeds kept on disk, found again by content and options, and safe when two runs make the same one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hogwild.arrays import bytes_of
from hogwild.config import FeedConfig, cache_home
from hogwild.errors import InputError, SaveError
from hogwild.feeds.chunk import Encoder
from hogwild.feeds.feed import Feed
from hogwild.feeds.source import Source
from hogwild.feeds.store import VERSION, Damaged, map_feed, read_header, write_feed
from hogwild.feeds.workspace import PREFIX, drop_workspace, feeds_home, make_workspace, release, size_of, sweep, writing

_ATTEMPTS = 5
_CHECKED = 1 << 30  # bytes up to which an entry is read through before it is used: compiled code trusts its ids


@dataclass(frozen=True)
class Entry:
    """One encoded feed in the cache."""

    key: str
    bytes: int
    rows: int
    sources: tuple[str, ...]
    used: float
    """When it was last opened, in seconds since 1970."""


def key_of(encoder: Encoder, sources: Sequence[Source], config: FeedConfig, schema: Mapping[str, Any]) -> str:
    """What identifies an encoded feed: the content of its files, the options that matter, the schema, our format.

    The format in `config` must be the one that was found, not `auto`.
    """
    options = asdict(config)
    del options["cache"]
    wanted = ("format", *getattr(encoder, "options", options))
    content = {
        "version": VERSION,
        "encoder": type(encoder).__name__,
        "content": [source.fingerprint() for source in sources],
        "options": {name: options[name] for name in wanted},
        "schema": schema,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def load(key: str, sources: Sequence[Source]) -> Feed | None:
    """The feed with this key, or None if it is not there or not whole."""
    directory = feeds_home() / key
    feed = _whole(directory, [source.name for source in sources], key)
    if feed is None:
        return None
    with contextlib.suppress(OSError):  # a cache that is shared read-only is still a cache
        os.utime(directory)
    return feed


def _whole(directory: Path, names: Sequence[str], key: str) -> Feed | None:
    try:
        feed = map_feed(directory, names, key)
        return feed.check() if bytes_of(feed.samples) <= _CHECKED else feed
    except (Damaged, InputError):
        return None


def make(encoder: Encoder, sources: Sequence[Source], key: str, keep: bool = True) -> Feed:
    """Encode the sources and open the result; with `keep` it is found again under its key.

    Without, and where the cache cannot be written, its files lose their names once they are mapped, and their space
    when the feed goes.
    """
    sweep()
    workspace = make_workspace("feed")
    try:
        writer = write_feed(encoder.chunks(sources), workspace)
        try:
            writer.finish(encoder.summary(), sources)
        finally:
            writer.close()
        for source in sources:
            source.check_unchanged()
        names = [source.name for source in sources]
        if keep and workspace.parent == feeds_home():
            return _publish(workspace, key, names)
        feed = map_feed(workspace, names, key)
        lost = f"{feeds_home()} cannot be written, so the encoded data is not kept for the next run."
        return replace(feed, notes=(*feed.notes, lost)) if keep else feed
    finally:
        drop_workspace(workspace)


def _publish(workspace: Path, key: str, names: Sequence[str]) -> Feed:
    """Give a finished workspace its name, and open it. Another run's is used if it was first and is whole."""
    target = feeds_home() / key
    with writing(target):
        release(workspace)
        for _ in range(_ATTEMPTS):
            try:
                os.rename(workspace, target)
                _sync_directory(target.parent)
            except OSError:
                if not target.exists():
                    raise
            feed = _whole(target, names, key)
            if feed is not None:
                return feed
            _discard(target)
    raise SaveError(f"{target} is broken and comes back; run `hogwild cache clear`.")


def _discard(target: Path) -> None:
    """Remove a directory in one step for all who look, whatever it holds."""
    grave = make_workspace("broken")
    try:
        os.rename(target, grave / "entry")
    except OSError:
        if target.is_dir():
            raise
        target.unlink(missing_ok=True)
    finally:
        drop_workspace(grave)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def entries() -> list[Entry]:
    """All encoded feeds, the last used first. Those that are not whole have 0 rows."""
    found = []
    home = feeds_home()
    for directory in home.iterdir() if home.is_dir() else ():
        if directory.name.startswith(PREFIX) or not directory.is_dir():
            continue
        try:
            header = read_header(directory)
            rows, sources = int(header["arrays"]["targets"][1]), tuple(header["sources"])
        except Damaged:
            rows, sources = 0, ()
        found.append(Entry(directory.name, size_of(directory), rows, sources, directory.stat().st_mtime))
    return sorted(found, key=lambda entry: -entry.used)


def clear() -> int:
    """Remove all encoded feeds and what killed runs left; returns the bytes freed. Runs that use them go on."""
    freed = sweep()
    for entry in entries():
        directory = feeds_home() / entry.key
        shutil.rmtree(directory, ignore_errors=True)
        if directory.exists():
            raise SaveError(f"{directory} cannot be removed; check its permissions.")
        freed += entry.bytes
    shutil.rmtree(cache_home() / "hashes", ignore_errors=True)
    return freed
