"""Where data comes from: files, globs and standard input, compressed or not, through a command or not."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import shutil
import sys
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from hogwild.config import FeedConfig
from hogwild.config.places import cache_folder
from hogwild.errors import InputError
from hogwild.feeds.io.streams import Piped, Stream, compression_of, decoded, open_file, read_fully
from hogwild.feeds.io.workspace import drop_workspace, make_workspace, writing
from hogwild.messages import here
from hogwild.ownership import open_private, private_opener, random_name

# -- content hashes, kept on disk so that an unchanged file is not read again for its hash ----------------------------

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


# -- sources ----------------------------------------------------------------------------------------------------------

Bytes = npt.NDArray[np.uint8]
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

BLOCK = 1 << 21          # bytes of a block, unless one line is longer
STDIN = "standard input"
READ_AHEAD = 8           # bytes after a piece that may be read, for code that takes eight at a time
_BOM = b"\xef\xbb\xbf"
_NEWLINE = 10
BLANKS = (b" ", b"\n", b"\t", b"\r", b"\v", b"\f", b"\0")  # a NUL counts as one in running text
_NEAR = 4096             # bytes from the end in which white space is sought first


class Settings(Protocol):
    """What a source has to know of the options: FeedConfig and CorpusConfig have it."""

    @property
    def pipe(self) -> str:
        """Command that the file is sent through."""


class Piece(NamedTuple):
    """Running text from byte `offset` on, cut at white space. inside: it begins in the middle of a very long word."""

    offset: int
    inside: bool
    text: Bytes


class Source:
    """One file, or standard input.

    name: what messages call it; path: the file that holds its raw bytes; first: the byte of the text that `open` begins
    with, above 0 where others read what is before it.
    """

    first = 0

    def __init__(self, name: str, path: Path, config: Settings) -> None:
        self.name = name
        self.path = path
        self.pipe = config.pipe
        self.max_line = getattr(config, "max_line", sys.maxsize)
        self._head: tuple[bytes, BinaryIO] | None = None
        self._local: Path | None = None
        with open_file(path, name) as file:  # says at once that a file is missing or unreadable
            self._stamp = stamp_of(os.fstat(file.fileno()))

    def __repr__(self) -> str:
        return f"Source({self.name!r})"

    def place(self, line: int, column: int = 0) -> str:
        """`file:line:column` for messages; both count from 1; column 0 is left out."""
        return f"{self.name}:{line}:{column}" if column else f"{self.name}:{line}"

    def open(self) -> BinaryIO:
        """The bytes after the command and after decompression, from the beginning. The caller closes the stream."""
        if self._head is not None:
            (head, stream), self._head = self._head, None
            return cast(BinaryIO, Stream(stream, self.name, head=head))
        raw = open_file(self.path, self.name)
        if self.pipe:
            raw = cast(BinaryIO, Piped(self.pipe, raw, self.name))
        return decoded(raw, self.name)

    def head(self, count: int = 1 << 16) -> bytes:
        """The first bytes of what `open` gives; a command is not run twice for them."""
        head, stream = self._head or (b"", self.open())
        if len(head) < count:
            head += read_fully(stream, count - len(head))
        self._head = (head, stream)
        return head[:count]

    def plain(self) -> bool:
        """Whether the raw bytes of the file are already what `open` gives."""
        if self.pipe:
            return False
        with open_file(self.path, self.name) as file:
            return not compression_of(read_fully(file, 6))

    def local(self) -> Path:
        """A seekable file with the bytes that `open` gives: the file itself when it is plain, else a copy."""
        if self._local is None:
            self._local = self.path if self.plain() else _spool(self)
        return self._local

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[int, Bytes]]:
        """The text in blocks of about `size` bytes cut at line ends, each with the number of its first line.

        Every block ends with a newline: one is added where the last line has none. A byte-order mark is dropped.
        A line longer than `max_line` raises InputError before memory is taken for it.
        """
        line = 1
        kept = b""  # the beginning of a line that the last block cut off
        with self.open() as stream:
            while True:
                # Doubling: a long line is copied a few times only. One byte more for a missing newline.
                block = bytearray(max(size, min(2 * len(kept), self.max_line + 1)) + 1)
                block[: len(kept)] = kept
                filled = fill(stream, memoryview(block)[len(kept) : -1]) + len(kept)
                ended = filled < len(block) - 1
                if line == 1 and not self.first and block.startswith(_BOM) and not kept:
                    filled -= len(_BOM)
                    del block[: len(_BOM)]
                if ended and filled and block[filled - 1] != _NEWLINE:
                    block[filled] = _NEWLINE
                    filled += 1
                cut = block.rfind(b"\n", 0, filled) + 1
                kept = bytes(memoryview(block)[cut:filled])
                if cut:
                    text = np.frombuffer(block, dtype=np.uint8, count=cut)
                    self._check_lines(text, line)
                    yield line, text
                    line += int(np.count_nonzero(text == _NEWLINE))
                if len(kept) > self.max_line:
                    raise self._too_long(line)
                if ended:
                    return

    def pieces(self, size: int = BLOCK) -> Iterator[Piece]:
        """The text in pieces of up to `size` bytes cut at white space, however long its lines are.

        The last piece ends with a newline: one is added where there is none. A byte-order mark is dropped. A word that
        is longer than a piece is cut between two characters. READ_AHEAD more bytes after a piece may be read.
        """
        offset, inside = self.first, False
        kept = b""  # the beginning of a word that the last piece cut off
        with self.open() as stream:
            while True:
                block = bytearray(size + 1 + READ_AHEAD)
                block[: len(kept)] = kept
                filled = fill(stream, memoryview(block)[len(kept) : size]) + len(kept)
                start = len(_BOM) if offset == 0 and block.startswith(_BOM) else 0
                ended = filled < size
                cut = filled if ended else _after_last_blank(block, filled)
                inside_next = cut == 0
                if inside_next:
                    cut = _between_characters(block, filled)
                kept = bytes(memoryview(block)[cut:filled])
                if ended and (offset > 0 or cut > start) and (cut == start or block[cut - 1] != _NEWLINE):
                    block[cut] = _NEWLINE
                    cut += 1
                if cut > start:
                    yield Piece(offset + start, inside, np.frombuffer(block, np.uint8, cut - start, start))
                if ended:
                    return
                offset, inside = offset + cut, inside_next

    def fingerprint(self) -> str:
        """A hash of the raw bytes; kept on disk, so that an unchanged file is read for it only once."""
        return content_hash(self.path, self.name, self._stamp)

    def check_unchanged(self) -> None:
        """Raise InputError if the file was written to since this source was made."""
        with open_file(self.path, self.name) as file:
            if stamp_of(os.fstat(file.fileno())) != self._stamp:
                raise InputError(f"{self.name} changed while it was read; start again when it is complete.")

    def _check_lines(self, text: Bytes, first: int) -> None:
        if len(text) <= self.max_line + 1:
            return
        ends = np.flatnonzero(text == _NEWLINE)
        lengths = np.diff(ends, prepend=-1) - 1
        if int(lengths.max()) > self.max_line:
            raise self._too_long(first + int(np.argmax(lengths > self.max_line)))

    def _too_long(self, line: int) -> InputError:
        return InputError(f"{self.place(line)}: the line is longer than {self.max_line} bytes; is this the right"
                          " --format? If so, raise --max-line.")


def open_sources(paths: Paths, config: Settings | None = None) -> list[Source]:
    """Sources for files, globs (`**` too; sorted) and `-`, standard input, which like a pipe is read to its end."""
    config = config or FeedConfig()
    given: Any = paths
    one = isinstance(given, (str, os.PathLike)) or not isinstance(given, Iterable) or hasattr(given, "read")
    names = [given] if one else list(given)
    for name in names:
        if not isinstance(name, (str, os.PathLike, Source)):
            raise InputError(f"{type(name).__name__} is no name of a file; give a path, or several in a list. Data in"
                             " memory goes to feed_of, open streams into a file first.")  # fmt: skip
    if not names:
        raise InputError("no input file is given; name one, or `-` for standard input.")
    if names.count("-") > 1:
        raise InputError("standard input (`-`) is named twice; it can be read only once.")
    return [
        source
        for name in names
        for source in ([name] if isinstance(name, Source) else _sources_of(os.fspath(name), config))
    ]


def _sources_of(name: str, config: Settings) -> list[Source]:
    if name == "-":
        return [_copied(STDIN, standard_input(), config)]
    if not os.path.lexists(name) and glob.has_magic(name):
        found = sorted(path for path in glob.glob(name, recursive=True) if not os.path.isdir(path))
        if not found:
            raise InputError(f"no file matches `{name}`; check the pattern ({here()}).")
        return [Source(path, Path(path), config) for path in found]
    path = Path(name)
    if is_stream(name):
        with open_file(path, name) as stream:
            return [_copied(name, stream, config)]
    return [Source(name, path, config)]


def is_stream(name: str) -> bool:
    """Whether this can be read only once: standard input, a pipe, a device."""
    path = Path(name)
    return name == "-" or path.is_fifo() or path.is_char_device() or path.is_socket()


def standard_input() -> BinaryIO:
    """Standard input for data."""
    if sys.stdin is None:
        raise InputError(f"{STDIN} is closed; name a file, or send the data there.")
    return sys.stdin.buffer


def _copied(name: str, stream: BinaryIO, config: Settings) -> Source:
    """A source for a stream that can be read only once."""
    directory = _temporary("copy", stream)
    source = Source(name, directory / "copy", config)
    weakref.finalize(source, drop_workspace, directory)
    return source


def _spool(source: Source) -> Path:
    with source.open() as stream:
        directory = _temporary("decoded", stream)
    weakref.finalize(source, drop_workspace, directory)
    return directory / "decoded"


def _temporary(name: str, stream: BinaryIO) -> Path:
    directory = make_workspace("input")
    try:
        with writing(directory), open(directory / name, "wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
    except BaseException:
        drop_workspace(directory)
        raise
    return directory


def fill(stream: BinaryIO, room: memoryview) -> int:
    """Read until the room is full or the stream has ended; returns the bytes read."""
    filled = 0
    while filled < len(room):
        count = stream.readinto(room[filled:])  # type: ignore[attr-defined]
        if not count:
            break
        filled += count
    return filled


def _after_last_blank(block: bytearray, filled: int) -> int:
    """The place after the last white space; 0 if there is none."""
    near = _NEAR
    while True:
        start = max(0, filled - near)
        last = max(block.rfind(blank, start, filled) for blank in BLANKS)
        if last >= 0 or start == 0:
            return last + 1
        near *= 16


def _between_characters(block: bytearray, filled: int) -> int:
    """A place near the end where no character of UTF-8 is cut."""
    for place in range(filled - 1, max(0, filled - 5), -1):
        if block[place] & 0xC0 != 0x80:
            return place
    return filled  # not UTF-8 anyway
