"""Arrays whose leading part is private to a worker while the rest is common, with no branch in compiled code.

The common array lies in a memory file. A worker maps that file once more and lays private memory over the first
pages of its own mapping: to a kernel it is one plain array.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
import weakref
from typing import Any

import numpy as np

from hogwild.arrays import CELL, Floats
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


class CommonArray:
    """A flat float32 array in a memory file, of which workers can have views with a private beginning."""

    def __init__(self, values: Floats) -> None:
        self._cells = values.size
        self._bytes = max(round_to_pages(values.nbytes), mmap.PAGESIZE)
        self._file = _memory_file(self._bytes)
        self.array = self._map()
        self.array[:] = values.reshape(-1)

    def view(self, private_cells: int) -> Floats:
        """A view whose first cells (whole pages) are private and begin as a copy of the common ones."""
        view = self._map()
        size = round_to_pages(private_cells * CELL)
        if size:
            address = view.ctypes.data
            _check(_libc.mmap(address, size, _READ_WRITE, _MAP_FIXED | _MAP_PRIVATE | _MAP_ANONYMOUS, -1, 0))
            cells = min(size // CELL, self._cells)
            view[:cells] = self.array[:cells]
        return view

    def _map(self) -> Floats:
        how = _MAP_SHARED | (_MAP_POPULATE if self._bytes <= _POPULATED else 0)
        address = _check(_libc.mmap(None, self._bytes, _READ_WRITE, how, self._file.fileno(), 0))
        buffer = (ctypes.c_float * self._cells).from_address(address)
        unmap = weakref.finalize(buffer, _libc.munmap, address, self._bytes)
        unmap.atexit = False  # at the end of the process somebody may still be reading
        return np.ctypeslib.as_array(buffer)


def round_to_pages(size: int) -> int:
    """Bytes rounded up to whole pages."""
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _memory_file(size: int) -> Any:
    if hasattr(os, "memfd_create"):
        file = os.fdopen(os.memfd_create("hogwild-weights", os.MFD_CLOEXEC), "r+b", buffering=0)
    else:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    os.ftruncate(file.fileno(), size)
    return file


def _check(address: int | None) -> int:
    if address is None or address == _FAILED:
        reason = os.strerror(ctypes.get_errno())
        raise HogwildError(f"memory for the workers' weights could not be mapped ({reason}); use --sharing all.")
    return address
