"""Memory for tables of weights: asked of the system page by page, in large pages where it allows them."""

from __future__ import annotations

import mmap

import numpy as np

from hogwild.arrays import CELL, Floats
from hogwild.errors import ConfigError
from hogwild.machine import memory


def make_table(rows: int, cells: int, remedy: str) -> Floats:
    """Zeros, flat, for so many rows; they begin at a page, and take memory once they are touched.

    Raises ConfigError, before anything is allocated, for a table that is larger than the memory of this machine.
    """
    size = rows * cells * CELL
    if size > memory():
        raise ConfigError(
            f"a table of {rows:,} rows of {cells} cells needs {size / 1e9:.1f} GB, and this machine has "
            f"{memory() / 1e9:.1f} GB; {remedy}"
        )
    room = mmap.mmap(-1, max(size, mmap.PAGESIZE), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        room.madvise(mmap.MADV_HUGEPAGE)  # random rows of a large table: a page of 4 kB each would miss every time
    return np.frombuffer(room, np.float32, rows * cells)
