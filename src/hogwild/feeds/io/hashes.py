"""Content hashes of files, kept on disk so that an unchanged file is not read again for its hash."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from hogwild.config.places import cache_folder
from hogwild.errors import InputError
from hogwild.feeds.io.streams import open_file
from hogwild.ownership import open_private, private_opener, random_name

Stamp = tuple[int, int, int, int]

_PIECE = 1 << 22
_MEMO = re.compile(r"[0-9a-f]{32}\.json(\.[0-9a-f]{16})?")
_LONGEST = 4096  # bytes of a memo
_SETTLED = 2_000_000_000  # nanoseconds: a file written more recently could change again within one clock tick


def stamp_of(stat: os.stat_result) -> Stamp:
    """What changes when a file does: size, times of change, number of the inode."""
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


def content_hash(path: Path, name: str, stamp: Stamp) -> str:
    """sha256 of a file's bytes, from the memo if the file still has the stamp that was noted with it."""
    folder = cache_folder("hashes")
    memo = folder and folder / (hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32] + ".json")
    known = _recall(memo, stamp) if memo else ""
    if known:
        return known
    digest = hashlib.sha256()
    piece = bytearray(_PIECE)
    with open_file(path, name) as file:
        while count := file.readinto(piece):  # type: ignore[attr-defined]
            digest.update(memoryview(piece)[:count])
        if stamp_of(os.fstat(file.fileno())) != stamp:
            raise InputError(f"{name} changed while it was read; start again when it is complete.")
    if memo and time.time_ns() - stamp[2] > _SETTLED:
        _remember(memo, stamp, digest.hexdigest())
    return digest.hexdigest()


def _recall(memo: Path, stamp: Stamp) -> str:
    try:
        with open(open_private(memo), "rb") as file:
            noted = json.loads(file.read(_LONGEST))
        return str(noted["sha256"]) if tuple(noted["stamp"]) == stamp else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _remember(memo: Path, stamp: Stamp, digest: str) -> None:
    beside = memo.with_name(f"{memo.name}.{random_name()}")
    try:
        with open(beside, "x", opener=private_opener) as file:
            json.dump({"stamp": stamp, "sha256": digest}, file)
        os.replace(beside, memo)
    except OSError:  # a memo that cannot be kept costs time only
        with suppress(OSError):
            beside.unlink()


def forget() -> None:
    """Remove all memos."""
    folder = cache_folder("hashes")
    for memo in folder.iterdir() if folder else ():
        if _MEMO.fullmatch(memo.name) and memo.is_file() and not memo.is_symlink():
            memo.unlink()
