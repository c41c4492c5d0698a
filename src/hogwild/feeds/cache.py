"""Encoded feeds kept on disk, found again by content and options, and safe when two runs make the same one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from hogwild.arrays import bytes_of
from hogwild.config import FeedConfig, cache_home
from hogwild.errors import InputError, SaveError
from hogwild.feeds.arrayfiles import VERSION, Damaged, read_header
from hogwild.feeds.chunk import Encoder
from hogwild.feeds.corpus import Corpus
from hogwild.feeds.feed import Feed
from hogwild.feeds.ratings import RatingFeed
from hogwild.feeds.source import Source
from hogwild.feeds.store import map_feed, write_feed
from hogwild.feeds.tagging import TaggingFeed
from hogwild.feeds.workspace import PREFIX, drop_workspace, feeds_home, make_workspace, release, size_of, sweep, writing
from hogwild.timeline import timed, timed_items

K = TypeVar("K", Feed, Corpus, TaggingFeed, RatingFeed)
Opener = Callable[[Path, Sequence[str], str], K]  # maps what a directory holds: (directory, names of sources, key)

_ATTEMPTS = 5
_COUNTED = {"rows": "targets", "tokens": "tags", "ratings": "users"}  # units with the array that has one item each
_CHECKED = 1 << 30  # bytes up to which an entry is read through before it is used: compiled code trusts its ids


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


def key_of(encoder: Encoder, sources: Sequence[Source], config: FeedConfig, schema: Mapping[str, Any]) -> str:
    """What identifies an encoded feed: the content of its files, the options that matter, the schema, our format.

    The format in `config` must be the one that was found, not `auto`.
    """
    options = asdict(config)
    del options["cache"]
    wanted = ("format", *getattr(encoder, "options", options))
    content = {
        "encoder": type(encoder).__name__,
        "options": {name: options[name] for name in wanted},
        "schema": schema,
    }
    if hasattr(encoder, "described"):
        content["described"] = encoder.described
    return key_from(content, sources)


def key_from(content: Mapping[str, Any], sources: Sequence[Source]) -> str:
    """What identifies that which is made of these sources as `content` says (JSON values only)."""
    with timed("hash"):
        whole = {**content, "version": VERSION, "content": [source.fingerprint() for source in sources]}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:32]


def load(key: str, sources: Sequence[Source]) -> Feed | None:
    """The feed with this key, or None if it is not there or not whole."""
    return load_entry(key, sources, map_feed)


def load_entry(key: str, sources: Sequence[Source], opener: Opener[K]) -> K | None:
    """What was kept under this key, or None if it is not there or not whole."""
    directory = feeds_home() / key
    found = _whole(directory, [source.name for source in sources], key, opener)
    if found is not None:
        with contextlib.suppress(OSError):  # a cache that is shared read-only is still a cache
            os.utime(directory)
    return found


def _whole(directory: Path, names: Sequence[str], key: str, opener: Opener[K]) -> K | None:
    try:
        found = opener(directory, names, key)
        return found.check() if bytes_of(found.samples) <= _CHECKED else found
    except (Damaged, InputError):
        return None


def make(encoder: Encoder, sources: Sequence[Source], key: str, keep: bool = True) -> Feed:
    """Encode the sources and open the result; see `make_entry`."""

    def write(workspace: Path) -> None:
        writer = write_feed(timed_items("parse", encoder.chunks(sources)), workspace)
        try:
            with timed("rank"):
                writer.finish(encoder.summary(), sources)
        finally:
            writer.close()

    return make_entry(write, sources, key, map_feed, keep)


def make_entry(
    write: Callable[[Path], None], sources: Sequence[Source], key: str, opener: Opener[K], keep: bool = True
) -> K:
    """Open what `write` puts into a directory; with `keep` it is found again under its key.

    Without, and where the cache cannot be written, its files lose their names once they are mapped, and their space
    when the arrays go.
    """
    sweep()
    workspace = make_workspace("feed")
    try:
        with timed("encode"):
            write(workspace)
        for source in sources:
            source.check_unchanged()
        names = [source.name for source in sources]
        if keep and workspace.parent == feeds_home():
            return _publish(workspace, key, names, opener)
        made: K = opener(workspace, names, key)
        lost = f"{feeds_home()} cannot be written, so the encoded data is not kept for the next run."
        return replace(made, notes=(*made.notes, lost)) if keep else made
    finally:
        drop_workspace(workspace)


def _publish(workspace: Path, key: str, names: Sequence[str], opener: Opener[K]) -> K:
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
            found = _whole(target, names, key, opener)
            if found is not None:
                return found
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
    """All encoded feeds and corpora, the last used first. Those that are not whole have 0 rows."""
    found = []
    home = feeds_home()
    for directory in home.iterdir() if home.is_dir() else ():
        if directory.name.startswith(PREFIX) or not directory.is_dir():
            continue
        try:
            header = read_header(directory)
            unit = _unit_of(header)
            rows = int(header["total"] if unit == "words" else header["arrays"][_COUNTED[unit]][1])
            sources = tuple(header["sources"])
        except (Damaged, KeyError, TypeError, ValueError):
            rows, unit, sources = 0, "rows", ()
        found.append(Entry(directory.name, size_of(directory), rows, unit, sources, directory.stat().st_mtime))
    return sorted(found, key=lambda entry: -entry.used)


def _unit_of(header: Mapping[str, Any]) -> str:
    for unit in ("tokens", "ratings"):
        if _COUNTED[unit] in header["arrays"]:
            return unit
    return "words" if "counts" in header["arrays"] else "rows"


def clear() -> int:
    """Remove all of them and what killed runs left; returns the bytes freed. Runs that use them go on."""
    freed = sweep()
    for entry in entries():
        directory = feeds_home() / entry.key
        shutil.rmtree(directory, ignore_errors=True)
        if directory.exists():
            raise SaveError(f"{directory} cannot be removed; check its permissions.")
        freed += entry.bytes
    shutil.rmtree(cache_home() / "hashes", ignore_errors=True)
    return freed
