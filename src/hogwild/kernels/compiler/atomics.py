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

import numba as nb
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.compiler.jit import kernel

_ORDER = "seq_cst"
_PAUSE = "llvm.x86.sse2.pause" if platform.machine().lower() in ("x86_64", "amd64") else ""
_SPINS = 64  # pauses before the time slice is given up: about 2 microseconds


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array)
    return builder.gep(data.data, [index])


def _compiled() -> tuple[Any, ...]:
    @intrinsic
    def load(typingctx: Any, array: Any, index: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            return builder.load_atomic(pointer, _ORDER, 8)

        return types.int64(array, types.int64), build

    @intrinsic
    def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            builder.store_atomic(args[2], pointer, _ORDER, 8)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64), build

    @intrinsic
    def fetch_add(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            return builder.atomic_rmw("add", pointer, args[2], _ORDER)

        return types.int64(array, types.int64, types.int64), build

    @intrinsic
    def exchange(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            return builder.atomic_rmw("xchg", pointer, args[2], _ORDER)

        return types.int64(array, types.int64, types.int64), build

    @intrinsic
    def compare_exchange(typingctx: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            pair = builder.cmpxchg(pointer, args[2], args[3], _ORDER, _ORDER)
            return builder.zext(builder.extract_value(pair, 1), ir.IntType(8))

        return types.boolean(array, types.int64, types.int64, types.int64), build

    @intrinsic
    def pause(typingctx: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if _PAUSE:
                kind = ir.FunctionType(ir.VoidType(), [])
                builder.call(cgutils.get_or_insert_function(builder.module, kind, _PAUSE), [])
            return context.get_dummy_value()

        return types.void(), build

    @intrinsic
    def give_way(typingctx: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
            return context.get_dummy_value()

        return types.void(), build

    @intrinsic
    def copy_bytes(typingctx: Any, target: Any, source: Any, size: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            byte = ir.IntType(8).as_pointer()
            to, of = (builder.inttoptr(arg, byte) for arg in args[:2])
            cgutils.raw_memcpy(builder, to, of, args[2], 1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), build

    return load, store, fetch_add, exchange, compare_exchange, pause, give_way, copy_bytes


def _interpreted() -> tuple[Any, ...]:
    lock = threading.Lock()

    def load(array: Any, index: int) -> Any:
        return array[index]

    def store(array: Any, index: int, value: int) -> None:
        array[index] = value

    def fetch_add(array: Any, index: int, value: int) -> Any:
        with lock:
            before = array[index]
            array[index] += value
            return before

    def exchange(array: Any, index: int, value: int) -> Any:
        with lock:
            before = array[index]
            array[index] = value
            return before

    def compare_exchange(array: Any, index: int, expected: int, value: int) -> bool:
        with lock:
            if array[index] != expected:
                return False
            array[index] = value
            return True

    def pause() -> None:
        return None

    def give_way() -> None:
        time.sleep(0)

    def copy_bytes(target: int, source: int, size: int) -> None:
        ctypes.memmove(int(target), int(source), int(size))

    return load, store, fetch_add, exchange, compare_exchange, pause, give_way, copy_bytes


load, store, fetch_add, exchange, compare_exchange, pause, give_way, copy_bytes = (
    _interpreted() if nb.config.DISABLE_JIT else _compiled()
)


@kernel
def wait_for(cells: Any, index: int, least: int, stop: Any) -> bool:
    """Wait until cells[index] >= least. False if `stop[0]` was set meanwhile.

    Spins shortly, then yields the processor: ten workers on two cores still take their turns.
    """
    spins = 0
    while load(cells, index) < least:
        if load(stop, 0) != 0:
            return False
        spins += 1
        if spins % _SPINS == 0:
            give_way()
        else:
            pause()
    return True


@kernel
def exchange_flag(stop: Any) -> int:
    """Set a stop flag that kernels poll; returns what it was."""
    return exchange(stop, 0, 1)


# -- Exchange of one float32 cell in one step: nothing comes between the value that is replaced and its replacement ---


def _compiled_swap() -> Any:
    @intrinsic
    def swap(typingctx: Any, array: Any, row: Any, cell: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            place = cgutils.get_item_pointer(context, builder, signature.args[0], array, args[1:3])
            whole = ir.IntType(32)
            before = builder.atomic_rmw(
                "xchg", builder.bitcast(place, whole.as_pointer()), builder.bitcast(args[3], whole), "seq_cst"
            )
            return builder.bitcast(before, ir.FloatType())

        return types.float32(array, types.int64, types.int64, types.float32), build

    return swap


def _interpreted_swap() -> Any:
    lock = threading.Lock()

    def swap(array: Any, row: int, cell: int, value: Any) -> Any:
        with lock:
            before = array[row, cell]
            array[row, cell] = value
            return before

    return swap


# swap(array, row, cell, value): store the value at array[row, cell] and return what stood there.
swap = _interpreted_swap() if nb.config.DISABLE_JIT else _compiled_swap()
