"""What visits cost on this machine, part by part, and how long a thread keeps a core: by which virtual workers go."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.arrays import NEXT, ORDER_KEY, ORDER_SHIFT, Step
from hogwild.kernels.compiler.clock import ticks
from hogwild.kernels.compiler.jit import fresh, in_package, kernel, loop
from hogwild.kernels.loop.guard import guard
from hogwild.kernels.loop.order import locate
from hogwild.kernels.loop.schedule import elapsed_at, rate_at
from hogwild.kernels.loop.task import apply, gradient
from hogwild.kernels.loop.virtual import save_rows


def _time_visits(task: Any, samples: Any, weights: Any, scratch: Any, span: Any, virtual: Any, times: Any) -> Any:
    """Make visits, and note of each the ticks of its gradient, of applying it, of copying its rows, and how many rows
    there were; returns the sum of losses."""
    scratch.count[ORDER_KEY] = span.order.key
    scratch.count[ORDER_SHIFT] = span.order.shift
    loss = 0.0
    for k in range(span.stop - span.start):
        progress = float(span.before + span.start + k)
        elapsed = np.float32(elapsed_at(span.schedule, progress) - elapsed_at(span.schedule, float(span.before)))
        step = Step(rate_at(span.schedule, progress), elapsed, span.private, span.worker, span.workers)
        visit = locate(span.order, span.start + k)
        scratch.clock[0] = elapsed
        scratch.count[NEXT] = visit
        began = ticks()
        loss += gradient(task, samples, visit, weights, scratch)
        guard(task, visit, scratch)
        read_ = ticks()
        apply(task, weights, scratch, step)
        written = ticks()
        save_rows(virtual, 0, scratch)
        times[k, 0], times[k, 1], times[k, 2] = read_ - began, written - read_, ticks() - written
        times[k, 3] = scratch.count[0]
    return loss


time_visits = loop(_time_visits)
time_fresh_visits = fresh(_time_visits)


def visit_timer(task: Any, samples: Any, weights: Any) -> Any:
    """As `virtual_runner`, for what visits cost."""
    return time_visits if in_package(task, samples, weights) else time_fresh_visits


@kernel
def spin(ticks_long: int, gap: int) -> Any:
    """Do nothing for so many ticks; returns how many it were, how many of them another thread had the core, and how
    often. gap: ticks between two looks at the counter from which on that must be so."""
    began = last = ticks()
    away, times = 0, 0
    while last - began < ticks_long:
        now = ticks()
        if now - last > gap:
            away += now - last
            times += 1
        last = now
    return last - began, away, times
