"""The one training loop: a worker's span of visits, for every task, mode and trace."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import NEXT, ORDER_KEY, ORDER_SHIFT, Step
from hogwild.kernels.compiler.jit import choice, fresh, in_package, kernel
from hogwild.kernels.loop.guard import guard
from hogwild.kernels.loop.modes import (
    FreeMode,
    Locked,
    await_turn,
    deliver,
    deliver_rest,
    enter,
    first_offset,
    leave,
    round_size,
    sums_up,
    updates,
)
from hogwild.kernels.loop.order import Order, locate
from hogwild.kernels.loop.schedule import Schedule, elapsed_at, rate_at
from hogwild.kernels.loop.task import fused, gradient
from hogwild.kernels.loop.trace import (
    GRADIENTS,
    Passing,
    Traced,
    Untraced,
    begin_writing,
    count_update,
    end_reading,
    end_writing,
    open_visit,
    settle,
)


class Span(NamedTuple):
    """A run of positions of an epoch that one worker has claimed, and what holds for all of them.

    before: visits of the epochs before this one; private, worker, workers: see Step. loss: the worker's sum of this
    epoch so far, to which visits add one by one, so that the sum does not depend on where spans are cut.
    """

    order: Order
    schedule: Schedule
    start: int
    stop: int
    before: int
    private: int
    worker: int
    workers: int
    loss: float = 0.0


def _run_span(task: Any, mode: Any, probe: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    scratch.count[ORDER_KEY] = span.order.key
    scratch.count[ORDER_SHIFT] = span.order.shift
    return go_through(probe, task, mode, samples, weights, scratch, span)


@choice
def go_through(probe: Any, task: Any, mode: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    """Make the visits of a span; returns the new sum of losses."""


@go_through.of(Untraced, Passing)
def _go_through(probe: Any, task: Any, mode: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    loss = span.loss
    epoch_began = elapsed_at(span.schedule, float(span.before))
    # Rounds are whole: a worker without a visit in the last round still takes its turn.
    size = round_size(mode)
    end = span.start + (span.stop - span.start + size - 1) // size * size
    upcoming = locate(span.order, min(span.start + first_offset(mode), span.order.samples - 1))
    for position in range(span.start + first_offset(mode), end, size):
        # A turn past the end may still apply the rest of a batch: at the rate of the last visit, not below zero.
        progress = float(span.before + min(position, span.stop - 1))
        rate = rate_at(span.schedule, progress)
        elapsed = np.float32(elapsed_at(span.schedule, progress) - epoch_began)
        step = Step(rate, elapsed, span.private, span.worker, span.workers)
        scratch.clock[0] = elapsed
        if position < span.stop:
            visit = upcoming
            upcoming = locate(span.order, min(position + size, span.order.samples - 1))
            scratch.count[NEXT] = upcoming
            loss += take(mode, probe, position, task, samples, visit, weights, scratch, step)
        else:
            idle(mode, position, task, weights, scratch, step)
    return loss


@go_through.of(Traced)
def _look_now_and_then(probe: Any, task: Any, mode: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    """Every so often one visit is looked at, in a loop of its own: those between are made as if there were no trace."""
    size, start, loss = round_size(mode), span.start, span.loss
    while start < span.stop:
        ahead = -probe.counts[GRADIENTS] % probe.every
        stop = min(span.stop, start + size * max(1, ahead))
        part = Span(span.order, span.schedule, start, stop, span.before, span.private, span.worker, span.workers, loss)
        if ahead == 0:
            loss = look(probe, task, mode, samples, weights, scratch, part)
        else:
            loss = go_through(Passing(probe.made_at), task, mode, samples, weights, scratch, part)
            probe.counts[GRADIENTS] += max(0, (stop - start - first_offset(mode) + size - 1) // size)
        start = stop
    return loss


@choice
def look(probe: Any, task: Any, mode: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    """As `go_through`, where each visit is looked at."""


look.otherwise(_go_through)


run_span = kernel(_run_span)
run_fresh_span = fresh(_run_span)


def runner(task: Any, samples: Any, weights: Any) -> Any:
    """The compiled loop for these types; code for types from outside the package is not cached on disk."""
    return run_span if in_package(task, samples, weights) else run_fresh_span


@choice
def take(
    mode: Any, probe: Any, position: int, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any
) -> Any:
    """One visit under a mode."""


@fresh
def take_turns(
    mode: Any, probe: Any, position: int, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any
) -> Any:
    if not enter(mode, position):
        return 0.0
    opened = open_visit(probe, task, samples, visit, weights, scratch)
    loss = gradient(task, samples, visit, weights, scratch)
    read = end_reading(probe, opened)
    guard(task, visit, scratch)
    if not await_turn(mode, position):
        return 0.0
    found = begin_writing(probe, opened, read, scratch)
    deliver(mode, position, task, weights, scratch, step)
    end_writing(probe, opened, scratch)
    count_update(probe, updates(mode, position))
    leave(mode, position)
    settle(probe, opened, found, sums_up(mode), visit, (task, samples, scratch, step))
    return np.float64(loss)


def _take_turns(
    mode: Any, probe: Any, position: int, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any
) -> Any:
    return take_turns(mode, probe, position, task, samples, visit, weights, scratch, step)


take.otherwise(_take_turns)


@take.of(FreeMode)
def _take_free(
    mode: Any, probe: Any, position: int, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any
) -> Any:
    return free_visit(probe, task, samples, visit, weights, scratch, step)


@choice
def free_visit(probe: Any, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    """One visit without waiting."""


@free_visit.of(Untraced, Passing)
def _untraced_visit(probe: Any, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    loss = np.float64(fused(task, samples, visit, weights, scratch, step))
    count_update(probe, 1)
    return loss


def _traced_visit(probe: Any, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    return take_turns(FreeMode(), probe, 0, task, samples, visit, weights, scratch, step)


free_visit.otherwise(_traced_visit)


@choice
def idle(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    """A turn without a visit, at the end of an epoch."""


def _idle(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    if enter(mode, position) and await_turn(mode, position):
        deliver_rest(mode, position, task, weights, scratch, step)
        leave(mode, position)


idle.otherwise(_idle)


@idle.of(FreeMode, Locked)
def _never_idle(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    return  # their rounds have one visit
