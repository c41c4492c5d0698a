"""Arrays in the files of one directory, with a header. Written a piece at a time, opened by mapping them."""

from __future__ import annotations

import errno
import json
import mmap
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from hogwild.errors import HogwildError, InputError
from hogwild.feeds.io.parallel import in_all
from hogwild.feeds.io.workspace import writing
from hogwild.kernels.ids.crc32c import crc32c
from hogwild.machine import cores
from hogwild.ownership import open_private, private_opener

VERSION = 4
HEADER = "feed.json"
DTYPES = {
    "offsets": "int64", "ids": "int32", "values": "float32", "targets": "float32", "importance": "float32",
    "lines": "int64", "original": "int32", "counts": "int64", "words": "uint8", "letters": "int32",
    "starts": "int64", "tags": "int32", "codes": "int32", "columns": "uint8", "column_letters": "int32",
    "users": "int32", "items": "int32",
    "slots": "uint16", "dense": "float32", "titles": "uint8", "title_letters": "int32",
}
_PIECE = 1 << 24  # bytes that a thread checks at a time
# Linux: pages that are never written need no memory set aside, so that data may be larger than memory.
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


class Damaged(Exception):
    """A directory does not hold what its header says."""


class ArrayWriter:
    """Appends to the arrays of a directory; a context. Only `seal` makes an entry of it.

    lasting: False for what is mapped and then forgotten, which need not be on disk.
    """

    lasting = True

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sizes: dict[str, int] = {}
        self._files: dict[str, BinaryIO] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def write(self, name: str, array: npt.NDArray[Any]) -> None:
        """Append to an array."""
        data = np.ascontiguousarray(array, dtype=DTYPES[name])
        with writing(self.directory):
            if name not in self._files:
                path = self.directory / name
                self._files[name] = open(path, "wb", buffering=0, opener=private_opener)  # noqa: SIM115
            write_whole(self._files[name], data)
        self.sizes[name] = self.sizes.get(name, 0) + len(data)

    def write_strings(self, name: str, letters: str, strings: Sequence[str]) -> None:
        """Append strings: their bytes to one array, the numbers of their characters to another."""
        try:
            self.write(name, np.frombuffer("".join(strings).encode(), np.uint8))
        except UnicodeEncodeError as error:
            raise InputError(f"a value holds half a surrogate pair ({error.reason}); it is no text.") from None
        self.write(letters, np.fromiter(map(len, strings), np.int32, len(strings)))

    def seal(self, header: dict[str, Any]) -> None:
        """Write the header; all is on disk when this returns, unless it is not to last."""

        def finished(name: str) -> tuple[str, int, int]:
            if self.lasting and name in self._files:
                os.fsync(self._files[name].fileno())
            size = self.sizes[name]
            return DTYPES[name], size, checksum_of(map_file(self.directory / name, DTYPES[name], size))

        with writing(self.directory):
            arrays = dict(zip(self.sizes, in_all(finished, list(self.sizes)), strict=True))
            self.close()
            text = json.dumps({"version": VERSION, "arrays": arrays, **header}, ensure_ascii=False)
            with open(self.directory / HEADER, "wb", opener=private_opener) as file:
                # Half of a surrogate pair, as names of files may hold, is escaped as JSON escapes it.
                file.write(text.encode("utf-8", "backslashreplace"))
                file.flush()
                if self.lasting:
                    os.fsync(file.fileno())

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        self._files = {}


def write_whole(file: BinaryIO, array: npt.NDArray[Any]) -> None:
    """Append an array to a file that has no buffer."""
    rest = array.data.cast("B") if len(array) else memoryview(b"")
    while len(rest):
        rest = rest[file.write(rest) :]


def read_strings(data: npt.NDArray[Any], letters: npt.NDArray[Any], least: int = 1) -> tuple[str, ...]:
    """What `write_strings` wrote; `least` characters each. Raises Damaged."""
    text = data.tobytes().decode()
    if len(letters) and (int(letters.min()) < least or int(letters.sum()) != len(text)):
        raise Damaged("its names do not fit together")
    return cut_text(text, letters.tolist())


def cut_text(text: str, letters: Iterable[int]) -> tuple[str, ...]:
    """Strings that stand one after another, from the number of their characters."""
    return tuple(text[start:end] for start, end in pairwise(accumulate(letters, initial=0)))


def title_of(names: Sequence[str], otherwise: str) -> str:
    """How several sources are called together."""
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names) or otherwise


def checksum_of(array: npt.NDArray[Any]) -> int:
    """CRC-32C of an array, of a long one that of the CRCs of its pieces: on all cores, fast enough to be always on."""
    data = array.reshape(-1).view(np.uint8)

    def check(start: int) -> int:
        piece = data[start : start + _PIECE]
        return int(crc32c(piece.ctypes.data, len(piece)))

    starts = range(0, len(data), _PIECE)
    if len(starts) <= 1:
        return check(0)
    with ThreadPoolExecutor(cores()) as pool:
        found = np.fromiter(pool.map(check, starts), np.uint32, len(starts))
    return int(crc32c(found.ctypes.data, found.nbytes))


def read_header(directory: Path) -> dict[str, Any]:
    """The header, after checking that every array has its size. Raises Damaged."""
    try:
        with open(open_private(directory / HEADER), encoding="utf-8") as file:
            header: dict[str, Any] = json.load(file)
        if header["version"] != VERSION:
            raise Damaged(f"it has version {header['version']}, not {VERSION}")
        for name, (dtype, size, _) in header["arrays"].items():
            if dtype != DTYPES[name]:
                raise Damaged(f"{name} is {dtype}")
            if size and os.path.getsize(directory / name) != size * np.dtype(dtype).itemsize:
                raise Damaged(f"{name} has the wrong size")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(str(error)) from None
    return header


@contextmanager
def mapping(directory: Path) -> Iterator[tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]]:
    """The header and the arrays of a directory; whatever does not fit while they are used raises Damaged."""
    header = read_header(directory)
    try:
        yield header, map_arrays(directory, header)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise Damaged(str(error)) from None


def map_arrays(directory: Path, header: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Map all arrays that a header names, and compare their checksums: compiled code trusts them. Raises Damaged."""
    found = {}
    try:
        for name, (dtype, size, checksum) in header["arrays"].items():
            found[name] = map_file(open_private(directory / name), dtype, size) if size else np.empty(0, dtype)
            if checksum_of(found[name]) != checksum:
                raise Damaged(f"{name} was changed")
    except OSError as error:
        if error.errno == errno.ENOMEM:  # the entry is whole, and must stay
            size = sum(size * np.dtype(dtype).itemsize for dtype, size, _ in header["arrays"].values())
            raise HogwildError(f"{size / 1e9:.1f} GB of encoded data do not fit the addresses that this process may"
                               " use; raise the limit (`ulimit -v unlimited`).") from error
        raise Damaged(str(error)) from None
    return found


def map_file(path: Path | int, dtype: str, size: int) -> npt.NDArray[Any]:
    """Map a file, which may be given by its descriptor, privately: what is written to the array never reaches the file.

    Not read-only, because compiled code would then be compiled once more for read-only arrays.
    """
    if not size:
        return np.empty(0, dtype)
    length = size * np.dtype(dtype).itemsize
    with open(path, "rb") as file:
        private = mmap.MAP_PRIVATE | _NO_RESERVE
        try:
            memory = mmap.mmap(file.fileno(), length, flags=private, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        except OSError:  # a system that sets memory aside all the same
            memory = mmap.mmap(file.fileno(), length, prot=mmap.PROT_READ)
    return np.frombuffer(memory, dtype)
