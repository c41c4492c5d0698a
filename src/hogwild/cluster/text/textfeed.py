"""Word ids on their way from the process that encodes a text to the one that trains on it, in a file that both map.

The file has its whole size from the beginning. The writer appends, and says in a cell how many ids there are; the
reader trains on those. Both run on one machine, as one user.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from hogwild.arrays import Ids, Offsets
from hogwild.errors import InputError
from hogwild.feeds.io.workspace import writing
from hogwild.ownership import open_private, private_opener

_SIGN = 0x6464_6565_4674_7854   # a file that is one of these, whole
_SIGN_CELL, _SIZE_CELL, _READY_CELL = range(3)
_HEADER = 64                    # bytes before the ids: a cache line of eight cells
_ID = 4
_SHORTEST, _LONGEST = 0.0005, 0.05  # seconds between two looks


class Appender:
    """Makes the file and fills it; a context. Who made its directory removes it.

    Parameters
    ----------
    path
        A name that is not taken, in a directory of this user's.
    size
        How many ids there will be.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with Appender(Path(directory, "ids"), 3) as appender:
    ...         feed = TextFeed.open(appender.path)
    ...         appender.write(np.array([4, 2], np.int32))
    ...     feed.ready, feed.wait(2, seconds=1), feed.wait(3, seconds=0), feed.ids.tolist()
    (2, True, False, [4, 2, 0])
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        with writing(path):
            self._file = open(path, "x+b", buffering=0, opener=private_opener)  # noqa: SIM115
            try:
                length = _HEADER + _ID * size
                if hasattr(os, "posix_fallocate"):  # a full disk is told now
                    os.posix_fallocate(self._file.fileno(), 0, length)
                self._file.truncate(length)
                self._header = _header(self._file.fileno(), mmap.PROT_READ | mmap.PROT_WRITE)
            except BaseException:
                self._file.close()
                path.unlink()
                raise
        self._header[_SIZE_CELL] = size
        self._header[_SIGN_CELL] = _SIGN

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def ready(self) -> int:
        """Ids that were appended."""
        return int(self._header[_READY_CELL])

    def write(self, ids: Ids) -> None:
        """Append ids, and let the reader have them."""
        ready = self.ready
        if ready + len(ids) > self.size:
            raise ValueError(f"{ready + len(ids):,} ids for a text of {self.size:,}")
        data = np.ascontiguousarray(ids, np.int32).data.cast("B") if len(ids) else memoryview(b"")
        place = _HEADER + _ID * ready
        with writing(self.path):  # by a call, not by the mapping: there a disk that fails would end the process
            while len(data):
                count = os.pwrite(self._file.fileno(), data, place)
                data, place = data[count:], place + count
        # After the data, and in one store of eight bytes: a reader sees the old number or the new one.
        self._header[_READY_CELL] = ready + len(ids)

    def close(self) -> None:
        """No more ids come. The reader keeps what it has."""
        self._file.close()


class TextFeed:
    """The reader's side.

    ids: an array of the whole size; those from `ready` on are not there yet, and read as 0.
    """

    def __init__(self, path: Path, header: Offsets, ids: Ids) -> None:
        self._path, self._header, self.ids = path, header, ids

    @classmethod
    def open(cls, path: Path) -> TextFeed:
        """Map a file that an Appender has made. Raises InputError for any other."""
        try:
            # Writable, because code would be compiled once more for read-only arrays. Nobody writes.
            with open(open_private(path, flags=os.O_RDWR), "r+b", buffering=0) as file:
                length = os.fstat(file.fileno()).st_size
                header = _header(file.fileno(), mmap.PROT_READ) if length >= _HEADER else np.zeros(3, np.int64)
                size = int(header[_SIZE_CELL])
                if int(header[_SIGN_CELL]) != _SIGN or size < 0 or length != _HEADER + _ID * size:
                    raise InputError(f"{path} is not the text of a node; it is damaged, or another file.")
                memory = mmap.mmap(file.fileno(), length)
        except OSError as error:
            raise InputError(f"{path} cannot be mapped: {error.strerror or error}.") from None
        return cls(path, header, np.frombuffer(memory, np.int32, size, _HEADER))

    def overlay(self) -> tuple[mmap.mmap, Ids]:
        """The file mapped once more, and its ids there: what is written to them stays in this process."""
        with open(open_private(self._path, flags=os.O_RDWR), "r+b", buffering=0) as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return memory, np.frombuffer(memory, np.int32, len(self), _HEADER)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ready(self) -> int:
        """Ids that are there, from the first one on. It stops short of the size if the writer has died."""
        return int(self._header[_READY_CELL])

    def wait(self, count: int, seconds: float) -> bool:
        """Wait until the first `count` ids are there, or all, but no longer than that; whether they are."""
        least, deadline, pause = min(count, len(self)), time.monotonic() + seconds, _SHORTEST
        while self.ready < least:
            left = deadline - time.monotonic()
            if left <= 0:
                return self.ready >= least
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST)
        return True


def _header(file: int, protection: int) -> Offsets:
    return np.frombuffer(mmap.mmap(file, _HEADER, prot=protection), np.int64)
