"""Where the time of a visit goes: a task says which phase has just ended, the worker's own scratch keeps the ticks.

A task carries a `timer`: `Untimed()` costs nothing, as nothing of it is in the compiled code; `Timed()` reads the
processor's counter, some 10 nanoseconds a mark, and adds what has passed since the mark before to the phase that ends.
Ticks have a constant rate, the same on all cores, which whoever wants seconds measures: see `ticks`.
"""

from __future__ import annotations

import platform
import time
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, event, types

from hogwild.arrays import PHASE_TICKS, TICK
from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.compiler.jit import choice, kernel
from hogwild.timeline import current

# -- How long the compiler has worked in this process, wherever it was called from ------------------------------------


class _Clock(event.Listener):
    """The compiler calls itself for inner functions: only the outermost call counts."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._began = 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            now = time.perf_counter()
            self.seconds += now - self._began
            timeline = current()
            if timeline is not None:
                timeline.add("compile", self._began, now)


_clock = _Clock()
event.register("numba:compile", _clock)


def seconds_compiled() -> float:
    """Seconds since this module was imported; code that is read from the cache takes none."""
    return _clock.seconds


LOOKUP, DENSE, UPDATE = range(3)
PHASES = ("lookup", "dense", "update")
_MACHINE = platform.machine().lower()


class Untimed(NamedTuple):
    """No clock: nothing of it is in the compiled code."""


class Timed(NamedTuple):
    """Ticks of each phase are summed in the scratch of the worker."""


@instruction(time.perf_counter_ns, types.int64)
def _counter(builder: Any) -> Any:
    kind = ir.FunctionType(ir.IntType(64), [])
    if _MACHINE in ("arm64", "aarch64"):
        # the counter of cycles traps in programs of users there; the one of the clock does not
        return builder.call(ir.InlineAsm(kind, "mrs $0, cntvct_el0", "=r", side_effect=True), [])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter"), [])


@kernel
def ticks() -> int:
    """The counter now; two readings with a clock beside them give its rate."""
    return _counter()


@choice
def start(timer: Any, scratch: Any) -> None:
    """A visit begins: what has passed since the last mark belongs to no phase."""


@choice
def mark(timer: Any, scratch: Any, phase: int) -> None:
    """A phase has ended: it gets the time since the last mark, or since `start`."""


start.of(Untimed)(lambda timer, scratch: None)
mark.of(Untimed)(lambda timer, scratch, phase: None)


@start.of(Timed)
def _start(timer: Any, scratch: Any) -> None:
    scratch.count[TICK] = _counter()


@mark.of(Timed)
def _mark(timer: Any, scratch: Any, phase: int) -> None:
    now = _counter()
    scratch.count[PHASE_TICKS + phase] += now - scratch.count[TICK]
    scratch.count[TICK] = now
