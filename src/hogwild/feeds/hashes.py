"""Content hashes of files, kept on disk so that an unchanged file is not read again for its hash."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from pathlib import Path

from hogwild.config import cache_home
from hogwild.errors import InputError
from hogwild.feeds.streams import open_file

Stamp = tuple[int, int, int, int]

_PIECE = 1 << 22
_SETTLED = 2_000_000_000  # nanoseconds: a file written more recently could change again within one clock tick


def stamp_of(stat: os.stat_result) -> Stamp:
    """What changes when a file does: size, times of change, number of the inode."""
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


def content_hash(path: Path, name: str, stamp: Stamp) -> str:
    """sha256 of a file's bytes, from the memo if the file still has the stamp that was noted with it."""
    memo = cache_home() / "hashes" / (hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32] + ".json")
    known = _recall(memo, stamp)
    if known:
        return known
    digest = hashlib.sha256()
    piece = bytearray(_PIECE)
    with open_file(path, name) as file:
        while count := file.readinto(piece):  # type: ignore[attr-defined]
            digest.update(memoryview(piece)[:count])
        if stamp_of(os.fstat(file.fileno())) != stamp:
            raise InputError(f"{name} changed while it was read; start again when it is complete.")
    if time.time_ns() - stamp[2] > _SETTLED:
        _remember(memo, stamp, digest.hexdigest())
    return digest.hexdigest()


def _recall(memo: Path, stamp: Stamp) -> str:
    try:
        noted = json.loads(memo.read_text())
        return str(noted["sha256"]) if tuple(noted["stamp"]) == stamp else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _remember(memo: Path, stamp: Stamp, digest: str) -> None:
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=memo.parent, suffix=".tmp", delete=False) as file:
            json.dump({"stamp": stamp, "sha256": digest}, file)
        os.replace(file.name, memo)
    except OSError:
        return  # a memo that cannot be kept costs time only
