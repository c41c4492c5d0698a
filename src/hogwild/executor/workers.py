"""Workers: threads that claim spans, have a backend run them without the GIL, and publish what was done."""

from __future__ import annotations

import math
import queue
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import PAD
from hogwild.errors import DivergedError, HogwildError, WorkerError
from hogwild.executor.backends.backend import Backend
from hogwild.executor.backends.compiled import CompiledThreads
from hogwild.executor.modes import lockstep_of
from hogwild.executor.plan import Plan
from hogwild.executor.sharing import WeightStore, make_store
from hogwild.executor.spanlog import SpanLog
from hogwild.executor.spans import Claim, Claims
from hogwild.kernels.loop.order import Order, file_order
from hogwild.kernels.loop.schedule import Schedule, rate_after
from hogwild.kernels.loop.span import Span


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
    """The workers of a run: threads that claim spans and have them run by a backend.

    Each worker has weights, scratch and counters of its own. Where there are more threads (size) than workers, a thread
    is now this worker, now that one: it takes one that is idle, with the time since when, and after a span gives way.
    """

    backend: Backend
    store: WeightStore
    schedule: Schedule
    claims: Claims
    counters: Counters
    order: Order
    size: int
    before: int = 0
    threads: list[threading.Thread] = field(default_factory=list)
    idle: queue.SimpleQueue[tuple[int, float]] = field(default_factory=queue.SimpleQueue)
    log: SpanLog | None = None
    each: float = 1.0
    """Samples of a visit: more than one where it is a batch."""

    def prepare(self) -> float:
        """Compile, or start, whatever the workers need; returns seconds."""
        seconds = self.backend.prepare()
        began = time.perf_counter()
        self.store.copies[0].merge_all()  # compiles the merging too
        return seconds + time.perf_counter() - began

    def collect(self) -> None:
        """With the workers parked: everything that anyone has changed is in the common weights."""
        self.backend.fetch()
        self.store.collect()

    def refresh(self) -> None:
        """With the workers parked: the common weights have been changed, and all go on from there."""
        self.store.refresh()
        self.backend.send()

    def open_epoch(self, epoch: int, order: Order, start: int = 0, stop: int | None = None) -> None:
        """Let the workers loose on an epoch, from a position to another; all of them are idle."""
        self.order = order
        self.before = epoch * order.samples
        self.backend.begin(start)
        self.claims.open_epoch(epoch, order.samples if stop is None else stop, start)

    def run_until(self, order: Order, stop: int) -> None:
        """Visit the positions of one epoch that are not yet visited, up to `stop`, and wait for it."""
        self.order = order
        self.claims.open_epoch(0, stop, self.claims.position)
        while self.claims.wait(1.0) == "running":
            pass

    def start(self) -> None:
        """Start the threads; they wait for the first epoch."""
        for worker in range(self.claims.workers):
            self.idle.put((worker, time.perf_counter()))
        for number in range(self.size):
            thread = threading.Thread(target=self._work, name=f"hogwild-{number}", daemon=True)
            thread.start()
            self.threads.append(thread)

    def end(self) -> None:
        """No more spans; wait until every worker has finished the one it has."""
        self.claims.finish()
        for thread in self.threads:
            thread.join()
        self.backend.close()

    def run_span(self, worker: int, claim: Claim) -> float:
        """Run one claim; returns the worker's new sum of losses."""
        span = Span(
            self.order, self.schedule, claim.start, claim.stop, self.before, self.store.copies[worker].private, worker,
            self.claims.workers, self.counters.loss_of(worker),
        )  # fmt: skip
        return self.backend.run(worker, span)

    def _work(self) -> None:
        worker, free = self.idle.get()
        while self._work_as(worker, free):
            free = time.perf_counter()
            if self.size > self.claims.workers:
                self.idle.put((worker, free))
                worker, free = self.idle.get()
        self.idle.put((worker, free))

    def _work_as(self, worker: int, free: float) -> bool:
        """Make the next span of a worker, who has been free since then, and merge; False when the run ends."""
        claims, copies, pace = self.claims, self.store.copies[worker], self.store.pace
        step = claims.workers if claims.lockstep else 1
        offset = worker if claims.lockstep else 0
        claim = claims.claim(worker, copies.stretch - copies.ahead)
        if claim is None:
            return False
        try:
            visits = len(range(claim.start + offset, claim.stop, step))
            copies.catch_up()
            began = time.perf_counter()
            loss = self.run_span(worker, claim)
            trained = time.perf_counter()
            self._check_finite(loss, claim, copies.weights)
            self.counters.add(worker, visits, loss, trained - began)
            copies.merge_some(visits, 0 if pace.timed else copies.stretch)
            copies.stretch = copies.most(pace, self.before + claim.stop)
            if self.log is not None:
                times = (free, began, trained, time.perf_counter())
                self.log.add(worker, claim.epoch, visits, times, self.backend.phases(worker))
        except BaseException as error:
            self.backend.stop()
            claims.fail(self._located(error, worker, claim))
            return False
        claims.done(claim.stop - claim.start, trained - began)
        return True

    def _check_finite(self, loss: float, claim: Claim, weights: Any) -> None:
        if math.isfinite(loss):
            return
        rate = rate_after(self.schedule, self.before + claim.start)
        largest = max(float(np.abs(array).max(initial=0.0)) for array in weights)
        raise DivergedError(
            f"the loss became {loss} in {self._samples_of(claim)} of epoch {claim.epoch + 1} "
            f"(learning rate {rate:.4g}, largest weight {largest:.4g}). "
            f"Use a smaller --lr (try {rate / 10:.2g}), or check the data for extreme values."
        )

    def _located(self, error: BaseException, worker: int, claim: Claim) -> WorkerError:
        """The error with its place; our own errors keep their text, which says what to do."""
        where = f"worker {worker}, epoch {claim.epoch + 1}, {self._samples_of(claim)}"
        text = str(error) if isinstance(error, HogwildError) else f"{where}: {type(error).__name__}: {error}"
        located = WorkerError(text, worker, claim.epoch, (claim.start, claim.stop))
        located.__cause__ = error
        return located

    def _samples_of(self, claim: Claim) -> str:
        return f"samples {round(claim.start * self.each)}-{round(claim.stop * self.each)}"


def build_crew(plan: Plan, weights: Any, schedule: Schedule, sharing: str) -> Crew:
    """Workers on the given weights, which may be a copy of the program's."""
    store = make_store(plan, weights, sharing)
    backend = backend_of(plan)
    backend.open(store)
    seconds = backend.span_seconds or store.span_seconds
    claims = Claims(store.workers, lockstep_of(plan.config), seconds, backend.group)
    return Crew(backend, store, schedule, claims, Counters(store.workers), file_order(plan.visits), plan.workers)


def backend_of(plan: Plan) -> Backend:
    """What makes the visits of a run: the program's own backend, or compiled code."""
    own = plan.backend or plan.program.backend(plan.config)
    backend: Backend = CompiledThreads(plan) if own is None else own(plan)
    return backend
