"""Visits as compiled code, in threads of this process that hold no lock of Python's meanwhile."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import PHASE_TICKS, Scratch, limited_scratch
from hogwild.executor.modes import Turns
from hogwild.executor.plan import Plan
from hogwild.executor.sharing import WeightStore
from hogwild.executor.trace import Trace
from hogwild.kernels.compiler.atomics import exchange_flag
from hogwild.kernels.compiler.clock import PHASES
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.compiler.rng import seeds
from hogwild.kernels.loop.modes import FreeMode
from hogwild.kernels.loop.order import file_order
from hogwild.kernels.loop.rehearsal import check_visits
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.loop.span import Span, runner
from hogwild.kernels.loop.task import group_size
from hogwild.kernels.loop.trace import Untraced


class CompiledThreads:
    """The one compiled loop, for the task, mode and trace of a run."""

    notes: Sequence[str] = ()
    span_seconds = 0.0

    def __init__(self, plan: Plan) -> None:
        self.trace: Trace | None = None
        self.group = group_size(plan.task)
        self._plan = plan
        self._loop = runner(plan.task, plan.samples, plan.weights)
        self._act = plan.act
        self._entries: dict[int, Any] = {}  # machine code by worker: from span to span only numbers change, not types

    def open(self, store: WeightStore) -> None:
        """Scratch, turns and probes of every worker."""
        plan, config = self._plan, self._plan.config
        self._copies = store.copies
        self._turns = Turns(config, plan.room, plan.visits)
        part = plan.shard[0]  # runs of other parts of the data have random numbers of their own
        mine = seeds(config.seed, (part + 1) * store.workers)[part * store.workers :]
        self._scratches = [self._scratch(seed) for seed in mine]
        self._probes: list[Any] = [Untraced()] * store.workers
        if config.trace:
            self.trace = Trace(plan.tables, plan.room, store.workers)
            self._probes = [self.trace.add_worker(copies.weights) for copies in store.copies]

    def prepare(self) -> float:
        """Compile the loop for these types by running it on nothing; returns seconds."""
        began = time.perf_counter()
        self.run(0, _nothing(self._plan))
        return time.perf_counter() - began

    def begin(self, position: int) -> None:
        """Turns of the modes that work in rounds begin at this position."""
        self._turns.begin(position)

    def run(self, worker: int, span: Span) -> float:
        """Make the visits of a span; returns the worker's new sum of losses."""
        plan = self._plan
        arguments = (
            plan.task, self._turns.tags[worker], self._probes[worker], plan.samples, self._copies[worker].weights,
            self._scratches[worker], span,
        )  # fmt: skip
        if worker not in self._entries:
            self._entries[worker] = entry(self._loop, *arguments)
        loss = float(self._entries[worker](*arguments))
        self._check(span, self._scratches[worker])
        return loss

    def _scratch(self, seed: np.uint64) -> Scratch:
        return limited_scratch(self._plan.room, self._plan.tables, seed)

    def _check(self, span: Span, scratch: Scratch) -> None:
        if self._act is not None:
            check_visits(self._act, span.order, range(span.start, span.stop), scratch)

    def probe(self, weights: Any, spans: Sequence[Span], most: float = math.inf) -> float:
        """Make the visits of some spans here; the sum of losses of the last, infinite if any is not finite, or above
        `most` on average in one before it."""
        plan = self._plan
        scratch = self._scratch(np.uint64(plan.config.seed))
        total = math.inf
        for span in spans or [_nothing(plan)]:
            total = self._loop(plan.task, FreeMode(), Untraced(), plan.samples, weights, scratch, span)
            self._check(span, scratch)
            blown = total > most * (span.stop - span.start) and span is not spans[-1]
            if blown or not math.isfinite(total):
                return math.inf
        return float(total)

    def fetch(self) -> None:
        """Workers write the weights themselves."""

    def send(self) -> None:
        """They read them."""

    def stop(self) -> None:
        """Nobody waits for a turn any more."""
        exchange_flag(self._turns.stop)

    def phases(self, worker: int) -> Sequence[int]:
        """Ticks of lookup, dense layers and update."""
        cells: Sequence[int] = self._scratches[worker].count[PHASE_TICKS : PHASE_TICKS + len(PHASES)].tolist()
        return cells

    @property
    def random(self) -> npt.NDArray[np.uint64]:
        """The random state of each worker."""
        return np.array([scratch.random[0] for scratch in self._scratches], np.uint64)

    @random.setter
    def random(self, states: npt.NDArray[np.uint64]) -> None:
        if len(states) == len(self._scratches):
            for scratch, state in zip(self._scratches, states, strict=True):
                scratch.random[0] = state

    def close(self) -> None:
        """Nothing is held that the process would not give back by itself."""


def _nothing(plan: Plan) -> Span:
    """A span of no visits."""
    return Span(file_order(plan.visits), Schedule(0.0, 0.0, 0.0), 0, 0, 0, 0, 0, plan.workers)
