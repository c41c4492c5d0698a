"""The backend of virtual workers: to the executor it is one worker, whose spans are made by many."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.executor.backends.compiled import CompiledThreads
from hogwild.executor.plan import Plan
from hogwild.executor.sharing import WeightStore
from hogwild.executor.trace import TraceCells, summary_of
from hogwild.executor.virtual.machine import Machine, make_virtual
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.loop.span import Span
from hogwild.kernels.loop.trace import GRADIENTS
from hogwild.kernels.loop.virtual import BUSY, LOST, NOW, VISITS, Virtual, virtual_runner


class VirtualTrace:
    """What virtual workers have found when they looked, as a trace of real ones has it."""

    def __init__(self, virtual: Virtual) -> None:
        self._virtual = virtual

    def take(self) -> tuple[dict[str, Any], ...]:
        """Summarise what was counted since the last call, one entry a worker; start again from zero."""
        virtual = self._virtual
        found = tuple(
            summary_of(TraceCells(worker, virtual.counts[worker], virtual.delays[worker], virtual.sizes[worker]))
            for worker in range(virtual.rules.workers)
        )
        virtual.counts[:] = 0
        virtual.delays[:] = 0
        return found


class VirtualWorkers(CompiledThreads):
    """Makes spans by virtual workers. What has begun ends where the workers stand still: at an exchange and at
    the end of an epoch all of them come home."""

    def __init__(self, plan: Plan, machine: Machine) -> None:
        super().__init__(plan)
        self.machine = machine
        self._loop_of_all = virtual_runner(plan.task, plan.samples, plan.weights)

    def open(self, store: WeightStore) -> None:
        """The state of the virtual workers, on the weights of the one real one."""
        super().open(store)
        self._virtual = make_virtual(self._plan, self.machine)
        if self.machine.every:
            self.trace = VirtualTrace(self._virtual)  # type: ignore[assignment]

    def run(self, worker: int, span: Span) -> float:
        """Make the visits of a span; returns the new sum of losses."""
        plan = self._plan
        if self.machine.is_serial:
            self._count(span.stop - span.start)
            return super().run(worker, span)
        every = plan.exchange_every
        drain = span.stop == plan.visits or (every > 0 and (span.before + span.stop) % every == 0)
        arguments = plan.task, plan.samples, self._copies[worker].weights, self._virtual, span, drain
        if worker not in self._entries:
            self._entries[worker] = entry(self._loop_of_all, *arguments)
        loss = float(self._entries[worker](*arguments))
        for each in range(self.workers):
            self._check(span, self._one(each))
        return loss

    def _count(self, visits: int) -> None:
        """Visits with nothing between reading and writing are the serial run: its own code makes them, bit for bit."""
        virtual, pace = self._virtual, self.machine.pace
        state = virtual.state
        state[VISITS] += visits
        state[BUSY] += visits * pace.visit
        state[NOW] = state[BUSY] / min(virtual.rules.workers, self.machine.used)
        virtual.counts[0, GRADIENTS] += visits

    def _one(self, worker: int) -> Any:
        scratches: Any = self._virtual.scratches
        mine = type(scratches)(*(array[worker] for array in scratches))
        return mine._replace(dense=mine.dense[: self._virtual.dense])

    @property
    def workers(self) -> int:
        """Virtual workers."""
        return self._virtual.rules.workers

    @property
    def seconds(self) -> float:
        """Virtual seconds so far. Workers that run at once slow each other down, all alike: it changes no order."""
        slower = 1 + self.machine.pace.contention * (min(self.workers, self.machine.used) - 1)
        return float(self._virtual.state[NOW]) * slower

    @property
    def busy(self) -> float:
        """Virtual seconds of work of all workers together: what one of them would have needed."""
        return float(self._virtual.state[BUSY])

    @property
    def visits(self) -> int:
        """Visits made so far."""
        return int(self._virtual.state[VISITS])

    @property
    def lost(self) -> int:
        """Rows whose update was lost so far."""
        return int(self._virtual.state[LOST])

    @property
    def random(self) -> npt.NDArray[np.uint64]:
        """The random state of each worker."""
        return self._virtual.scratches.random[:, 0].copy()

    @random.setter
    def random(self, states: npt.NDArray[np.uint64]) -> None:
        if len(states) == self.workers:
            self._virtual.scratches.random[:, 0] = states
