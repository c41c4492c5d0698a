"""A fork waits until no thread compiles: a child would find locks taken by threads that it does not have.

The compiler's state is whole between two functions only, so that new locks alone would not do. `subprocess` does not
wait: it starts another program.
"""

from __future__ import annotations

import os

from llvmlite.binding import ffi
from numba.core.compiler_lock import global_compiler_lock


def _take() -> None:
    # Both can be taken again by the thread that has them. In the order in which compiling takes them.
    global_compiler_lock.acquire()
    ffi.lib._lock.__enter__()


def _give_back() -> None:
    ffi.lib._lock.__exit__(None, None, None)
    global_compiler_lock.release()


def hold_forks() -> None:
    """From now on, forks wait for the compiler."""
    os.register_at_fork(before=_take, after_in_parent=_give_back, after_in_child=_give_back)
