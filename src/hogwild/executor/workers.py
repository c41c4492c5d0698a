"""Workers: threads that claim spans, run compiled code on them without the GIL, and publish what they did."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import PAD, Scratch
from hogwild.errors import DivergedError, HogwildError, WorkerError
from hogwild.executor.modes import Turns
from hogwild.executor.sharing import WeightStore
from hogwild.executor.spanlog import SpanLog
from hogwild.executor.spans import Claim, Claims
from hogwild.kernels.compiler.atomics import exchange_flag
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.loop.order import Order
from hogwild.kernels.loop.schedule import Schedule, rate_after
from hogwild.kernels.loop.span import Span, runner


class Counters:
    """What each worker has done, on cache lines of its own: visits and spans; loss and busy seconds."""

    def __init__(self, workers: int) -> None:
        self._whole = np.zeros((workers, PAD), np.int64)
        self._real = np.zeros((workers, PAD), np.float64)

    def add(self, worker: int, visits: int, loss: float, seconds: float) -> None:
        """Publish one span; `loss` is the worker's new sum of the epoch."""
        self._whole[worker, 0] += visits
        self._whole[worker, 1] += 1
        self._real[worker, 0] = loss
        self._real[worker, 1] += seconds

    def loss_of(self, worker: int) -> float:
        """A worker's sum of losses of this epoch."""
        return float(self._real[worker, 0])

    def reset(self, visits: int = 0, loss: float = 0.0) -> None:
        """Begin an epoch, or go on with one that had come so far."""
        self._whole[:] = 0
        self._real[:] = 0
        self._whole[0, 0], self._real[0, 0] = visits, loss

    @property
    def visits(self) -> npt.NDArray[np.int64]:
        """Visits of each worker in this epoch."""
        return self._whole[:, 0].copy()

    @property
    def loss(self) -> float:
        """Sum of the losses of this epoch."""
        return float(self._real[:, 0].sum())


@dataclass
class Crew:
    """All that the workers of a run have: what is common, and what is one worker's own."""

    task: Any
    samples: Any
    schedule: Schedule
    sharing: WeightStore
    claims: Claims
    counters: Counters
    turns: Turns
    probes: list[Any]
    scratches: list[Scratch]
    order: Order
    before: int = 0
    threads: list[threading.Thread] = field(default_factory=list)
    log: SpanLog | None = None

    def __post_init__(self) -> None:
        self._loop = runner(self.task, self.samples, self.sharing.copies[0].weights)
        self._entries: dict[int, Any] = {}  # machine code by worker: from span to span only numbers change, not types

    def compile(self) -> float:
        """Compile the loop and the merging for these types by running them on nothing; returns seconds."""
        began = time.perf_counter()
        self.run_span(0, Claim(0, 0, 0))
        self.sharing.copies[0].merge_all()
        return time.perf_counter() - began

    def open_epoch(self, epoch: int, order: Order, start: int = 0) -> None:
        """Let the workers loose on an epoch, from a position on; all of them are idle."""
        self.order = order
        self.before = epoch * order.samples
        self.turns.begin(start)
        self.claims.open_epoch(epoch, order.samples, start)

    def run_until(self, order: Order, stop: int) -> None:
        """Visit the positions of one epoch that are not yet visited, up to `stop`, and wait for it."""
        self.order = order
        self.claims.open_epoch(0, stop, self.claims.position)
        while self.claims.wait(1.0) == "running":
            pass

    def start(self) -> None:
        """Start one thread a worker; they wait for the first epoch."""
        for worker in range(len(self.scratches)):
            thread = threading.Thread(target=self._work, args=(worker,), name=f"hogwild-{worker}", daemon=True)
            thread.start()
            self.threads.append(thread)

    def end(self) -> None:
        """No more spans; wait until every worker has finished the one it has."""
        self.claims.finish()
        for thread in self.threads:
            thread.join()

    def run_span(self, worker: int, claim: Claim) -> float:
        """Run one claim in compiled code; returns the worker's new sum of losses."""
        copies = self.sharing.copies[worker]
        span = Span(
            self.order, self.schedule, claim.start, claim.stop, self.before, copies.private, worker,
            len(self.scratches), self.counters.loss_of(worker),
        )  # fmt: skip
        arguments = (
            self.task, self.turns.tags[worker], self.probes[worker], self.samples, copies.weights,
            self.scratches[worker], span,
        )  # fmt: skip
        if worker not in self._entries:
            self._entries[worker] = entry(self._loop, *arguments)
        return float(self._entries[worker](*arguments))

    def _work(self, worker: int) -> None:
        claims, copies, pace = self.claims, self.sharing.copies[worker], self.sharing.pace
        step = len(self.scratches) if claims.lockstep else 1
        offset = worker if claims.lockstep else 0
        free = time.perf_counter()
        most = pace.visits(self.before)
        while (claim := claims.claim(worker, most - copies.ahead)) is not None:
            try:
                visits = len(range(claim.start + offset, claim.stop, step))
                began = time.perf_counter()
                loss = self.run_span(worker, claim)
                trained = time.perf_counter()
                self._check_finite(loss, claim, copies.weights)
                self.counters.add(worker, visits, loss, trained - began)
                copies.merge_some(visits, 0 if pace.timed else most)
                most = min(pace.visits(self.before + claim.stop), copies.brake.most)
                if self.log is not None:
                    times = (free, began, trained, time.perf_counter())
                    self.log.add(worker, claim.epoch, visits, times, self.scratches[worker])
            except BaseException as error:
                exchange_flag(self.turns.stop)
                claims.fail(_located(error, worker, claim))
                return
            claims.done(claim.stop - claim.start, trained - began)
            free = time.perf_counter()

    def _check_finite(self, loss: float, claim: Claim, weights: Any) -> None:
        if math.isfinite(loss):
            return
        rate = rate_after(self.schedule, self.before + claim.start)
        largest = max(float(np.abs(array).max(initial=0.0)) for array in weights)
        raise DivergedError(
            f"the loss became {loss} in samples {claim.start}-{claim.stop} of epoch {claim.epoch + 1} "
            f"(learning rate {rate:.4g}, largest weight {largest:.4g}). "
            f"Use a smaller --lr (try {rate / 10:.2g}), or check the data for extreme values."
        )


def _located(error: BaseException, worker: int, claim: Claim) -> WorkerError:
    """The error with its place; our own errors keep their text, which says what to do."""
    where = f"worker {worker}, epoch {claim.epoch + 1}, samples {claim.start}-{claim.stop}"
    text = str(error) if isinstance(error, HogwildError) else f"{where}: {type(error).__name__}: {error}"
    located = WorkerError(text, worker, claim.epoch, (claim.start, claim.stop))
    located.__cause__ = error
    return located
