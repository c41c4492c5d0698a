"""A few samples more, in this thread: what a run of one worker makes of them, without all that a run prepares.

A run chooses, calibrates, starts threads and tells events: tens of milliseconds, which is nothing beside an epoch and
everything beside one row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hogwild.arrays import Step, limited_scratch
from hogwild.errors import DivergedError
from hogwild.executor.plan import arrays_in
from hogwild.kernels.compiler.jit import entry, renewed
from hogwild.kernels.compiler.rng import seeds
from hogwild.kernels.loop.modes import FreeMode
from hogwild.kernels.loop.order import Order, file_order, shuffled
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.loop.span import Span, runner
from hogwild.kernels.loop.task import paced
from hogwild.kernels.loop.trace import Untraced
from hogwild.programs.program import CompiledProgram

SMALL = 256
"""Samples up to which it is worth it."""


class Stepper:
    """Makes one epoch on few samples for a program that is trained, serially; it keeps what is alike in all of them.

    The weights are those of a run of one worker, bit for bit. Feeds must not be ranked: features have their own order.

    Examples
    --------
    >>> import hogwild
    >>> feed = hogwild.feed_of([[0.0], [1.0]], ["no", "yes"])
    >>> program = hogwild.train(hogwild.Linear(), feed, epochs=1, lr=0.5, mode="serial", quiet=True)
    >>> loss = Stepper(program)(feed, 0.5, seed=1)
    """

    def __init__(self, program: CompiledProgram) -> None:
        self.program = program
        self._entries: dict[Any, Any] = {}
        self._scratch: tuple[Any, Any] | None = None

    def __call__(self, feed: Any, lr: float, seed: int) -> float:
        """One epoch at a constant rate on a feed whose features the program has; returns the mean loss."""
        program = self.program
        part = program.divide(1)
        program.gather(1)
        program.startup(feed, seed)
        program.renew()
        task, samples, weights = renewed(paced(program.task, "serial")), program.samples(feed), program.weights
        visits = program.visits(feed)
        order = _order(visits, seed)
        span = Span(order, Schedule(float(lr) * part, 0.0, 0.0), 0, visits, 0, 0, 0, 1, 0.0)
        arguments = (task, FreeMode(), Untraced(), samples, weights, self._room(feed, seed), span)
        key = (type(task), type(samples), *((a.dtype, a.ndim, a.flags.num) for a in arrays_in(samples)))
        if key not in self._entries:
            self._entries[key] = entry(runner(task, samples, weights), *arguments)
        loss = float(self._entries[key](*arguments))
        if not math.isfinite(loss):
            raise DivergedError(f"the loss became {loss} at the learning rate {lr:.4g}; use a smaller lr.")
        elapsed = float(lr) * part * visits
        program.settle_copy(weights, Step(np.float32(0), np.float32(elapsed), 0, 0, 1))
        program.settle(elapsed)
        return loss / visits * program.loss_scale

    def _room(self, feed: Any, seed: int) -> Any:
        """Scratch for these samples: that of the last ones, if it is as large."""
        room = self.program.room(feed)
        if self._scratch is None or self._scratch[0] != room:
            self._scratch = room, limited_scratch(room, self.program.tables(), np.uint64(0))
        scratch = self._scratch[1]
        scratch.random[0] = seeds(seed, 1)[0]
        return scratch


def _order(visits: int, seed: int) -> Order:
    """That of the first epoch of a run."""
    if visits > 1:
        return shuffled(visits, seed, 0)
    return file_order(1)._replace(shift=0)
