"""What visits cost on this machine: measured on a copy of the weights by one thread, and by two for what they cost
each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import limited_scratch
from hogwild.executor.plan import Plan
from hogwild.executor.virtual.machine import Machine, Pace, make_virtual
from hogwild.kernels.compiler.clock import ticks
from hogwild.kernels.loop.costs import spin, visit_timer
from hogwild.kernels.loop.modes import FreeMode
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.loop.span import Span, runner
from hogwild.kernels.loop.task import paced
from hogwild.kernels.loop.trace import Untraced
from hogwild.machine import cores

Times = npt.NDArray[np.float64]
_VISITS = 2000  # that are timed, at the most
_SECONDS = 0.3  # that this takes, about
_SPIN_SECONDS = 0.2
_GAP = 5e-4  # seconds: who is away for longer waits for the slice of another thread, not for an interrupt
_OUTLIERS = 0.97  # share of the visits, at least, in whose parts no other program had the core
_ENOUGH = 50  # visits, of which some can be left out
_MOST_CONTENTION = 4.0
_ALL = 0.97  # of the cores that a run can use: whoever has so much shares them with nobody


def measure(plan: Plan, weights: Any, lr: float) -> Pace:
    """Costs of the visits of a plan, on copies of these weights: it takes about a second."""
    task = paced(plan.task, "serial")
    copy = type(weights)(*(array.copy() for array in weights))
    schedule = Schedule(float(lr), 0.0, 0.0)
    scratch = limited_scratch(plan.room, plan.tables, np.uint64(plan.config.seed))
    virtual = make_virtual(plan, Machine(1))
    timer, loop, order = visit_timer(task, plan.samples, copy), runner(task, plan.samples, copy), plan.order(0)

    def span(first: int, stop: int) -> Span:
        return Span(order, schedule, first, stop, 0, 0, 0, 1)

    def time_them(count: int) -> tuple[Times, float]:
        times = np.zeros((count, 4))
        began = time.perf_counter()
        timer(task, plan.samples, copy, scratch, span(0, count), virtual, times)
        return times, time.perf_counter() - began

    def make(worker: int, count: int) -> float:
        """Ordinary visits by one of several threads; returns seconds of its processor for each."""
        own = limited_scratch(plan.room, plan.tables, np.uint64(worker + 1))
        began = time.thread_time()
        loop(task, FreeMode(), Untraced(), plan.samples, copy, own, span(worker * count, (worker + 1) * count))
        return (time.thread_time() - began) / count

    few = min(plan.visits, 16)
    time_them(few)  # compiles
    _, seconds = time_them(few)
    count = int(max(few, min(plan.visits, _VISITS, _SECONDS * few / max(seconds, 1e-9))))
    tick = _seconds_of_a_tick()
    times, _ = time_them(count)
    times[:, :3] *= tick
    make(0, 1)
    alone = min(make(0, count) for _ in range(3))
    half = max(1, count // 2)
    both = min(max(_at_once([lambda: make(0, half), lambda: make(1, half)])) for _ in range(3))
    contention = both / alone - 1 if cores() > 1 and plan.visits >= 2 else 0.0
    if len(times) >= _ENOUGH:
        times = times[(times[:, :3] <= np.quantile(times[:, :3], _OUTLIERS, axis=0)).all(axis=1)]
    lines = [_line(times[:, 3], times[:, part]) for part in range(3)]
    usual = lines[0][0] + lines[1][0] + (lines[0][1] + lines[1][1]) * times[:, 3]
    jitter = float(np.std(times[:, :2].sum(axis=1) / usual))
    fused = alone / max(float(times[:, :2].sum(axis=1).mean()), 1e-12)
    return Pace(
        lines[0], lines[1], lines[2], min(max(fused, 0.1), 2.0), float(times[:, 3].mean()), min(jitter, 0.5),
        contention=min(max(contention, 0.0), _MOST_CONTENTION), slice=measure_slice(tick),
    )  # fmt: skip


def _line(rows: Times, seconds: Times) -> tuple[float, float]:
    """Seconds of a visit, and of each of its rows, neither of them negative; the mean is kept."""
    mean_rows, mean = float(rows.mean()), float(seconds.mean())
    spread = float(((rows - mean_rows) ** 2).sum())
    each = float(((rows - mean_rows) * (seconds - mean)).sum()) / spread if spread > 0 else 0.0
    if each <= 0 or mean_rows <= 0:
        return max(mean, 1e-10), 0.0
    if mean - each * mean_rows < 0:
        return 0.0, mean / mean_rows
    return mean - each * mean_rows, each


def _seconds_of_a_tick() -> float:
    ticks()  # compiles
    began, first = time.perf_counter(), ticks()
    time.sleep(0.02)
    return (time.perf_counter() - began) / max(1, ticks() - first)


def _at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """What calls return that threads make at the same time."""
    found: list[Any] = [None] * len(calls)

    def keep(number: int) -> None:
        found[number] = calls[number]()

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def measure_slice(tick: float) -> float:
    """Seconds that a thread keeps a core while others wait for it: there is one thread more than cores."""
    long = int(_SPIN_SECONDS / tick)
    spin(1, 1)
    whole, away, times = np.sum(_at_once([lambda: spin(long, int(_GAP / tick))] * (cores() + 1)), axis=0)
    return min(max(float(whole - away) * tick / max(1, int(times)), 1e-4), 0.1)


def load_of(threads: int, busy: float) -> float:
    """Other threads that wanted a core while these kept so many of this machine's busy, as if all had equal shares."""
    there = cores()
    return max(0.0, threads * there / max(busy, 1e-2) - threads) if busy < _ALL * min(threads, there) else 0.0
