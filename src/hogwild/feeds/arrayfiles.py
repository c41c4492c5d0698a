"""Arrays in the files of one directory, with a header. Written a piece at a time, opened by mapping them."""

from __future__ import annotations

import errno
import json
import mmap
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hogwild.errors import HogwildError
from hogwild.feeds.workspace import writing

VERSION = 1
HEADER = "feed.json"
DTYPES = {
    "offsets": "int64", "ids": "int32", "values": "float32", "targets": "float32", "importance": "float32",
    "lines": "int64", "original": "int32", "counts": "int64", "words": "uint8", "letters": "int32",
    "starts": "int64", "tags": "int32", "codes": "int32", "columns": "uint8", "column_letters": "int32",
    "users": "int32", "items": "int32",
    "slots": "uint16", "dense": "float32",
}
# Linux: pages that are never written need no memory set aside, so that data may be larger than memory.
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


class Damaged(Exception):
    """A directory does not hold what its header says."""


class ArrayWriter:
    """Appends to the arrays of a directory. Only `seal` makes an entry of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sizes: dict[str, int] = {}
        self._files: dict[str, BinaryIO] = {}

    def write(self, name: str, array: npt.NDArray[Any]) -> None:
        """Append to an array."""
        data = np.ascontiguousarray(array, dtype=DTYPES[name])
        with writing(self.directory):
            if name not in self._files:
                self._files[name] = open(self.directory / name, "wb", buffering=0)  # noqa: SIM115
            rest = data.data.cast("B") if len(data) else memoryview(b"")
            while len(rest):
                rest = rest[self._files[name].write(rest) :]
        self.sizes[name] = self.sizes.get(name, 0) + len(data)

    def seal(self, header: dict[str, Any]) -> None:
        """Write the header; all is on disk when this returns."""
        arrays = {name: [DTYPES[name], size] for name, size in self.sizes.items()}
        with writing(self.directory):
            self.close(sync=True)
            with open(self.directory / HEADER, "w", encoding="utf-8") as file:
                file.write(json.dumps({"version": VERSION, "arrays": arrays, **header}, ensure_ascii=False))
                file.flush()
                os.fsync(file.fileno())

    def close(self, sync: bool = False) -> None:
        """Close the files."""
        for file in self._files.values():
            if sync:
                os.fsync(file.fileno())
            file.close()
        self._files = {}


def read_header(directory: Path) -> dict[str, Any]:
    """The header, after checking that every array has its size. Raises Damaged."""
    try:
        header: dict[str, Any] = json.loads((directory / HEADER).read_text(encoding="utf-8"))
        if header["version"] != VERSION:
            raise Damaged(f"it has version {header['version']}, not {VERSION}")
        for name, (dtype, size) in header["arrays"].items():
            if dtype != DTYPES[name]:
                raise Damaged(f"{name} is {dtype}")
            if size and os.path.getsize(directory / name) != size * np.dtype(dtype).itemsize:
                raise Damaged(f"{name} has the wrong size")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(str(error)) from None
    return header


def map_arrays(directory: Path, header: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Map all arrays that a header names. Raises Damaged."""
    try:
        return {name: map_file(directory / name, dtype, size) for name, (dtype, size) in header["arrays"].items()}
    except OSError as error:
        if error.errno == errno.ENOMEM:  # the entry is whole, and must stay
            size = sum(size * np.dtype(dtype).itemsize for dtype, size in header["arrays"].values())
            raise HogwildError(
                f"{size / 1e9:.1f} GB of encoded data do not fit the addresses that this process may use; raise the "
                "limit (`ulimit -v unlimited`)."
            ) from error
        raise Damaged(str(error)) from None


def map_file(path: Path, dtype: str, size: int) -> npt.NDArray[Any]:
    """Map a file privately: what is written to the array never reaches the file.

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
