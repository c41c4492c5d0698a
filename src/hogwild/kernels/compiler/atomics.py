"""Real atomics on int64 arrays, from LLVM: the only place where workers may wait for one another.

Ordering is sequentially consistent: these are used once a visit at the most, never once a weight.
With the JIT off, plain Python and a lock stand in.
"""

from __future__ import annotations

import ctypes
import platform
import threading
import time
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from hogwild.kernels.compiler.clock import ticks
from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.compiler.jit import kernel

_ORDER = "seq_cst"
_PAUSE = "llvm.x86.sse2.pause" if platform.machine().lower() in ("x86_64", "amd64") else ""
_LOCK = threading.Lock()
_SPINS = 64  # pauses before the time slice is given up: about 2 microseconds
_LONG = 500_000  # ticks of the processor for which a time slice was another process's: about 0.2 milliseconds
_ASLEEP = 1  # behind the cell that is waited for: how many workers sleep
_CROWDED = 2  # and for how many waits nobody yields, because others have the cores
_WAITS = 2000
_FUTEX = {("Linux", "x86_64"): 202, ("Linux", "aarch64"): 98}.get((platform.system(), platform.machine()))
_WAIT, _WAKE, _EVERYBODY = 128, 129, 2**31 - 1  # FUTEX_WAIT and FUTEX_WAKE of memory that one process has
_NAP = 5_000_000  # nanoseconds: so soon a worker that sleeps sees a stop flag, of which nobody wakes it


def _change(array: Any, index: int, value: Any, add: bool = False) -> Any:
    with _LOCK:
        before = array[index]
        array[index] = before + value if add else value
        return before


def _call(builder: Any, name: str, returns: Any) -> None:
    builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(returns, []), name), [])


@instruction(lambda array, index: array[index], types.int64)
def load(builder: Any, array: Any, index: Any) -> Any:
    """The number in a cell."""
    return builder.load_atomic(builder.gep(array, [index]), _ORDER, 8)


@instruction(_change)
def store(builder: Any, array: Any, index: Any, value: Any) -> None:
    """Write a number into a cell."""
    builder.store_atomic(value, builder.gep(array, [index]), _ORDER, 8)


@instruction(lambda address, value: ctypes.memmove(int(address), int(value).to_bytes(8, "little", signed=True), 8))
def publish(builder: Any, address: Any, value: Any) -> None:
    """Write a number to an address, in every turn of a loop and whole: others read it now and then, in no order."""
    builder.store_atomic(value, builder.inttoptr(address, ir.IntType(64).as_pointer()), "monotonic", 8)


@instruction(lambda array, index, value: _change(array, index, value, add=True), types.int64)
def fetch_add(builder: Any, array: Any, index: Any, value: Any) -> Any:
    """Add to a cell; returns what stood there."""
    return builder.atomic_rmw("add", builder.gep(array, [index]), value, _ORDER)


@instruction(_change, types.int64)
def exchange(builder: Any, array: Any, index: Any, value: Any) -> Any:
    """Write a number into a cell; returns what stood there."""
    return builder.atomic_rmw("xchg", builder.gep(array, [index]), value, _ORDER)


@instruction(lambda: None)
def pause(builder: Any) -> None:
    """Tell the processor that this is a loop that waits."""
    if _PAUSE:
        _call(builder, _PAUSE, ir.VoidType())


@instruction(lambda: time.sleep(0))
def give_way(builder: Any) -> None:
    """Let another thread run."""
    _call(builder, "sched_yield", ir.IntType(32))


def _futex(builder: Any, array: Any, index: Any, operation: int, value: Any, timeout: Any) -> None:
    whole, word = ir.IntType(64), ir.IntType(32)
    kind = ir.FunctionType(whole, [whole], var_arg=True)
    system_call = cgutils.get_or_insert_function(builder.module, kind, "syscall")
    place = builder.gep(array, [index])  # the lower half of the number comes first
    builder.call(system_call, [whole(_FUTEX), place, word(operation), value, timeout])


@instruction(lambda array, index, seen: time.sleep(0))
def sleep_while(builder: Any, array: Any, index: Any, seen: Any) -> None:
    """Sleep until somebody calls `wake`, but not if the cell is no more what was seen, and not for long."""
    if _FUTEX is None:
        _call(builder, "sched_yield", ir.IntType(32))
        return
    pair = ir.LiteralStructType([ir.IntType(64), ir.IntType(64)])
    timeout = cgutils.alloca_once_value(builder, pair([0, _NAP]))
    _futex(builder, array, index, _WAIT, builder.trunc(seen, ir.IntType(32)), timeout)


@instruction(lambda array, index: None)
def wake(builder: Any, array: Any, index: Any) -> None:
    """Wake all that sleep because of a cell."""
    if _FUTEX is not None:
        _futex(builder, array, index, _WAKE, ir.IntType(32)(_EVERYBODY), ir.IntType(64)(0))


@instruction(lambda target, source, size: ctypes.memmove(int(target), int(source), int(size)))
def copy_bytes(builder: Any, target: Any, source: Any, size: Any) -> None:
    """Copy bytes from one address to another."""
    byte = ir.IntType(8).as_pointer()
    cgutils.raw_memcpy(builder, builder.inttoptr(target, byte), builder.inttoptr(source, byte), size, 1)


@instruction(_change, types.float32)
def swap(builder: Any, array: Any, index: Any, value: Any) -> Any:
    """As `exchange`, of a float32 cell: nothing comes between the value that is replaced and its replacement."""
    whole = ir.IntType(32)
    place = builder.bitcast(builder.gep(array, [index]), whole.as_pointer())
    return builder.bitcast(builder.atomic_rmw("xchg", place, builder.bitcast(value, whole), _ORDER), ir.FloatType())


@kernel
def wait_for(cells: Any, index: int, least: int, stop: Any) -> bool:
    """Wait until cells[index] >= least, which `call_up` tells of. False if `stop[0]` was set meanwhile.

    Spins shortly, then yields the processor: ten workers on two cores take their turns. Where other processes have the
    cores, a worker that yields waits for milliseconds, as it has had its share of the time: then it sleeps until it is
    woken, which comes before those that compute. The two cells behind `index` are for that.
    """
    spins = 0
    seen = load(cells, index)
    while seen < least:
        if load(stop, 0) != 0:
            return False
        spins += 1
        if spins % _SPINS != 0:
            pause()
        elif load(cells, index + _CROWDED) > 0:
            fetch_add(cells, index + _CROWDED, -1)
            fetch_add(cells, index + _ASLEEP, 1)
            sleep_while(cells, index, seen)
            fetch_add(cells, index + _ASLEEP, -1)
        else:
            began = ticks()
            give_way()
            if ticks() - began > _LONG:
                store(cells, index + _CROWDED, _WAITS)
        seen = load(cells, index)
    return True


@kernel
def call_up(cells: Any, index: int) -> None:
    """Wake those that wait for a cell, which has just been changed."""
    if load(cells, index + _ASLEEP) != 0:
        wake(cells, index)


@kernel
def exchange_flag(stop: Any) -> int:
    """Set a stop flag that kernels poll; returns what it was."""
    return exchange(stop, 0, 1)
