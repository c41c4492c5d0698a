"""The one training loop: a worker's span of visits, for every task, mode and trace."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import NEXT, ORDER_KEY, ORDER_SHIFT, Step
from hogwild.kernels.compiler.jit import choice, fresh, in_package, inner, loop
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
from hogwild.kernels.loop.task import OneByOne, Together, fused, fused_group, gradient, visit_size
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
def _pass_through(probe: Any, task: Any, mode: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    return walk(mode, probe, task, samples, weights, scratch, span)


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


@choice
def walk(mode: Any, probe: Any, task: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    """`go_through` under a mode."""


@walk.of(FreeMode)
def _walk_free(mode: Any, probe: Any, task: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    return walk_free(task, probe, samples, weights, scratch, span)


def _walk(mode: Any, probe: Any, task: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    return one_by_one(probe, task, mode, samples, weights, scratch, span)


walk.otherwise(_walk)


@choice
def walk_free(task: Any, probe: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    """`go_through` where nobody waits. A task that can make visits together registers `walk_paced`."""


def _walk_alone(task: Any, probe: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    return one_by_one(probe, task, FreeMode(), samples, weights, scratch, span)


walk_free.otherwise(_walk_alone)


def walk_paced(task: Any, probe: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    """By the pace of the task."""
    return walk_at(task.pace, probe, task, samples, weights, scratch, span)


@choice
def walk_at(pace: Any, probe: Any, task: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    """The visits of a span at a pace."""


@walk_at.of(OneByOne)
def _walk_slowly(pace: Any, probe: Any, task: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    return one_by_one(probe, task, FreeMode(), samples, weights, scratch, span)


@walk_at.of(Together)
def _walk_together(pace: Any, probe: Any, task: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    loss, position = span.loss, span.start
    epoch_began = elapsed_at(span.schedule, float(span.before))
    end = len(scratch.ints) - pace.visits  # the last are those at hand
    while position < span.stop:
        found = min(pace.window, span.stop - position)
        visits = scratch.ints[end - found : end]
        for k in range(found):
            visits[k] = locate(span.order, position + k)
        sort_by_size(task, samples, visits)
        made = 0
        while made < found:
            count, size = 0, 0
            while count < pace.visits and made + count < found:
                size += visit_size(task, samples, visits[made + count])
                if count > 0 and size > pace.most:
                    break
                count += 1
            progress = float(span.before + position + made)
            elapsed = np.float32(elapsed_at(span.schedule, progress) - epoch_began)
            step = Step(rate_at(span.schedule, progress), elapsed, span.private, span.worker, span.workers)
            scratch.clock[0] = elapsed
            loss += fused_group(task, samples, visits[made : made + count], weights, scratch, step)
            count_update(probe, count)
            made += count
        position += found
    return loss


@inner
def sort_by_size(task: Any, samples: Any, visits: Any) -> None:
    """The smallest first; those of equal size as they stood."""
    for k in range(1, len(visits)):
        visit, at = visits[k], k
        size = visit_size(task, samples, visit)
        while at > 0 and size < visit_size(task, samples, visits[at - 1]):
            visits[at] = visits[at - 1]
            at -= 1
        visits[at] = visit


@go_through.of(Traced)
def _look_now_and_then(probe: Any, task: Any, mode: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    """Every so often one visit is looked at, in a loop of its own: those between are made as if there were no trace."""
    size, start, loss = round_size(mode), span.start, span.loss
    while start < span.stop:
        ahead = -probe.counts[GRADIENTS] % probe.every
        stop = min(span.stop, start + size * max(1, ahead))
        part = Span(span.order, span.schedule, start, stop, span.before, span.private, span.worker, span.workers, loss)
        if ahead == 0:
            loss = one_by_one(probe, task, mode, samples, weights, scratch, part)
        else:
            loss = go_through(Passing(probe.made_at), task, mode, samples, weights, scratch, part)
            probe.counts[GRADIENTS] += max(0, (stop - start - first_offset(mode) + size - 1) // size)
        start = stop
    return loss


@choice
def one_by_one(probe: Any, task: Any, mode: Any, samples: Any, weights: Any, scratch: Any, span: Any) -> Any:
    """One visit after the other, each looked at if the probe does."""


one_by_one.otherwise(_go_through)


run_span = loop(_run_span)
run_fresh_span = fresh(_run_span)


def runner(task: Any, samples: Any, weights: Any) -> Any:
    """The compiled loop for these types; code for types from outside the package is not cached on disk."""
    return run_span if in_package(task, samples, weights) else run_fresh_span


@choice
def take(
    mode: Any, probe: Any, position: int, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any
) -> Any:
    """One visit under a mode."""


@choice
def take_turns(
    mode: Any, probe: Any, position: int, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any
) -> Any:
    """One visit between whose reading and writing others may be."""


def _take_turns(
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


take_turns.otherwise(_take_turns)
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
