"""Memory that several processes can map: files in memory, and arrays in them."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import HogwildError

_MAP_SHARED, _MAP_PRIVATE, _MAP_FIXED = 0x01, 0x02, 0x10
_MAP_ANONYMOUS = 0x1000 if sys.platform == "darwin" else 0x20
_MAP_POPULATE = 0x8000 if sys.platform == "linux" else 0  # pages now and at once, not one by one while training runs
_POPULATED = 1 << 28  # bytes up to which this is done: of larger arrays many pages may never be touched
_READ_WRITE = 0x3
_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
]  # fmt: skip
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def map_file(file: int, size: int, cells: int) -> npt.NDArray[np.float32]:
    """The first cells of an open file as an array that all who map it share."""
    how = _MAP_SHARED | (_MAP_POPULATE if size <= _POPULATED else 0)
    address = _check(_libc.mmap(None, size, _READ_WRITE, how, file, 0))
    buffer = (ctypes.c_float * cells).from_address(address)
    unmap = weakref.finalize(buffer, _libc.munmap, address, size)
    unmap.atexit = False  # at the end of the process somebody may still be reading
    return np.ctypeslib.as_array(buffer)


def round_to_pages(size: int) -> int:
    """Bytes rounded up to whole pages."""
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def memory_file(size: int) -> Any:
    """A file in memory, without a name: it is gone with the last process that has it open or mapped."""
    if hasattr(os, "memfd_create"):
        file = os.fdopen(os.memfd_create("hogwild-weights", os.MFD_CLOEXEC), "r+b", buffering=0)
    else:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    os.ftruncate(file.fileno(), size)
    return file


def make_private(address: int, size: int) -> None:
    """Lay private memory, with zeros, over so many bytes (whole pages) of a mapping of this process."""
    _check(_libc.mmap(address, size, _READ_WRITE, _MAP_FIXED | _MAP_PRIVATE | _MAP_ANONYMOUS, -1, 0))


def _check(address: int | None) -> int:
    if address is None or address == _FAILED:
        reason = os.strerror(ctypes.get_errno())
        raise HogwildError(f"memory for the workers' weights could not be mapped ({reason}); use --sharing all.")
    return address
