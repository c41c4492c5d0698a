"""Where a run stands, and the events that tell of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Step
from hogwild.executor.events import EpochEnded, Finished, Progress, Started
from hogwild.executor.modes import lockstep_of, workers_of
from hogwild.executor.plan import Plan, judged
from hogwild.executor.workers import Crew
from hogwild.kernels.loop.schedule import elapsed_at, rate_after
from hogwild.machine import cores
from hogwild.timeline import timed

# -- Where a run stands, and all that it needs to go on from there ----------------------------------------------------


class Position(NamedTuple):
    """Epochs finished, and visits made in the epoch that has begun since."""

    epoch: int = 0
    visits: int = 0


@dataclass(frozen=True)
class RunState:
    """What a parked or ended run needs, besides the program's arrays, to go on as if it had never stopped.

    Numbers here are exact: a checkpoint stores floats as their 64 bits, so `serial` goes on bit for bit.
    """

    position: Position
    random: npt.NDArray[np.uint64]
    """The random state of each worker."""
    seed: int
    sharing: str
    """As chosen: never `auto`."""
    lr: float
    """First learning rate, as given or calibrated."""
    epoch_visits: int = 0
    """Visits of an epoch."""
    epochs: int = 0
    """Epochs that were planned, to which the learning rate was to fall; 0: not known."""
    loss_sum: float = 0.0
    """Of the visits of this epoch so far."""
    last_loss: float = math.nan
    """Mean loss of the last whole epoch."""
    best_loss: float = math.inf
    best_epoch: int = -1
    train_seconds: float = 0.0


class Course:
    """The progress of one run: epochs, visits, losses, clocks, the best so far. sizes: samples and units an epoch."""

    def __init__(self, plan: Plan, crew: Crew, sizes: tuple[int, int], start: RunState | None) -> None:
        self.plan, self.crew, self.trace = plan, crew, crew.backend.trace
        self.epoch, self.offset = start.position if start else (0, 0)
        self.best_loss = start.best_loss if start else math.inf
        self.best_epoch = start.best_epoch if start else -1
        self.metrics: dict[str, float] = {}
        self.watch_every = 0
        """Samples after which the workers stand still to be looked at; 0: never."""
        self._epoch_samples, self._units = sizes
        crew.each = self._epoch_samples / plan.visits
        self._loss = start.last_loss if start else math.nan
        self._loss_sum = start.loss_sum if start else 0.0
        self._seconds_before = start.train_seconds if start else 0.0
        self._visits_before = self.epoch * plan.visits + self.offset
        self._seconds = 0.0
        self._evaluate_seconds = 0.0
        self._since: float | None = None
        self._epoch_began = 0.0
        if start is not None:
            crew.backend.random = start.random

    # -- clocks and counts --------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Seconds of training so far, in this run and those that it goes on from; none while the workers are parked."""
        running = time.perf_counter() - self._since if self._since is not None else 0.0
        return self._seconds_before + self._seconds + running

    @property
    def _done(self) -> int:
        """Visits made in this epoch."""
        return int(self.crew.counters.visits.sum())

    @property
    def visits(self) -> int:
        """Visits made in all."""
        return self.epoch * self.plan.visits + self._done

    @property
    def samples(self) -> int:
        """Samples of the visits made in all; of batches of unequal size, as if they were equal."""
        return self.epoch * self._epoch_samples + self._done * self._epoch_samples // self.plan.visits

    @property
    def total(self) -> int:
        """Samples of all visits planned."""
        return self._epoch_samples * self.plan.config.epochs

    @property
    def epoch_complete(self) -> bool:
        """Whether all samples of this epoch have been visited."""
        return self._done >= self.plan.visits

    @property
    def without_hope(self) -> bool:
        """Whether the validation loss has not improved for as many epochs as the user has patience for."""
        patience = self.plan.config.patience
        return 0 < patience <= self.epoch - max(0, self.best_epoch)

    def when(self) -> dict[str, Any]:
        """What every event carries."""
        return {"seconds": self.seconds, "epoch": self.epoch, "samples": self.samples}

    def go(self) -> None:
        """Workers run: the clock runs."""
        self._since = time.perf_counter()
        if self.crew.log is not None:
            self.crew.log.open()

    def halt(self) -> None:
        """Workers are parked, with all that they changed in the common weights: the clock stands."""
        if self.crew.log is not None and self._since is not None:
            self.crew.log.close(self.epoch)
        with timed("merge"):
            self.crew.collect()
        if self._since is not None:
            self._seconds += time.perf_counter() - self._since
            self._since = None
            self.plan.program.stand_at(self._elapsed(self._done))

    def bring_home(self) -> None:
        """The run is over: the weights are in the program's own arrays again, no longer in memory that workers map."""
        own = self.plan.weights
        for array, common in zip(own, self.crew.store.weights, strict=True):
            if array is not common:
                array[...] = common
        self.plan.program.weights = own

    # -- an epoch -----------------------------------------------------------------------------------------------

    def open_epoch(self) -> None:
        """Start the clock and let the workers loose, up to where they stand still next."""
        counters = self.crew.counters
        counters.reset(self.offset, self._loss_sum)
        self._epoch_began = self.seconds
        order = self.plan.order(self.epoch)
        self.go()
        self.crew.open_epoch(self.epoch, order, self.offset, self._stretch(self.offset))
        self.offset, self._loss_sum = 0, 0.0

    def go_on(self) -> None:
        """After they have stood still: let the workers loose up to the next time."""
        done = self._done
        self.go()
        self.crew.open_epoch(self.epoch, self.crew.order, done, self._stretch(done))

    def _stretch(self, done: int) -> int:
        """The position of this epoch at which the workers stand still next, when so many of its visits are made."""
        every, visits = self.plan.exchange_every, self.plan.visits
        stop = visits
        if every:
            before = self.epoch * visits
            stop = min(stop, ((before + done) // every + 1) * every - before)
        if self.watch_every:
            before = self.epoch * self._epoch_samples
            seen = before + done * self._epoch_samples // visits
            ahead = (seen // self.watch_every + 1) * self.watch_every - before
            step = lockstep_of(self.plan.config) or 1  # rounds are whole
            stop = min(stop, -(-ahead * visits // (self._epoch_samples * step)) * step)
        return stop

    @property
    def exchange_due(self) -> bool:
        """Whether the visits made so far are a whole number of stretches between exchanges."""
        every = self.plan.exchange_every
        return bool(every) and self.visits % every == 0

    def _elapsed(self, visits: int) -> float:
        """The sum of learning rates of so many visits since the epoch began."""
        began = self.epoch * self.plan.visits
        schedule = self.crew.schedule
        return float(elapsed_at(schedule, float(began + visits)) - elapsed_at(schedule, float(began)))

    def end_epoch(self, valid: Any) -> EpochEnded:
        """All samples are visited: settle penalties, evaluate, compare with the best."""
        plan, crew = self.plan, self.crew
        visits = plan.visits
        elapsed = self._elapsed(visits)
        for worker, copies in enumerate(crew.store.copies):
            step = Step(np.float32(0), np.float32(elapsed), copies.private, worker, crew.store.workers)
            plan.program.settle_copy(copies.weights, step)
        self.halt()
        if plan.program.settle(elapsed):
            crew.refresh()
        self._loss = crew.counters.loss / visits * plan.program.loss_scale
        self.epoch += 1
        crew.counters.reset()
        if valid is not None:
            self.evaluate(valid)
        watched = judged(plan.config, plan.program, self.metrics, self._loss) if valid is not None else self._loss
        best = watched < self.best_loss if valid is not None else True
        if best:
            self.best_loss, self.best_epoch = watched, self.epoch
        return EpochEnded(
            **self.when(), loss=self._loss, lr=self.rate, epoch_seconds=self.seconds - self._epoch_began,
            metrics=dict(self.metrics), trace=self.trace.take() if self.trace else (), best=best,
        )  # fmt: skip

    def evaluate(self, valid: Any) -> None:
        """Metrics on the validation feed, on the cores of the workers, who stand still."""
        began = time.perf_counter()
        with timed("evaluate"):
            self.metrics = self.plan.program.evaluate(valid, min(self.plan.workers, cores()))
        self._evaluate_seconds += time.perf_counter() - began

    # -- events -------------------------------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """The learning rate now."""
        most = self.plan.visits * self.plan.config.epochs
        return rate_after(self.crew.schedule, min(self.visits, most)) / self.plan.part

    @property
    def _first_rate(self) -> float:
        return float(self.crew.schedule.first) / self.plan.part

    def started(self, compile_seconds: float, prepare_seconds: float, notes: list[str]) -> Started:
        """The first event."""
        config, program = self.plan.config, self.plan.program
        each = self._units / self._epoch_samples
        told: dict[str, Any] = {"unit": program.unit, "each": each} if program.tells_units else {}
        return Started(
            **self.when(), total=self.total, threads=workers_of(config), mode=config.mode,
            sharing=self.crew.store.name, lr=self._first_rate, compile_seconds=compile_seconds,
            prepare_seconds=prepare_seconds, notes=tuple(notes), device=config.device, epochs=config.epochs,
            predicted=self.plan.backend is not None,
            **told,
        )  # fmt: skip

    def progress(self) -> Progress:
        """How far the workers are."""
        visits = self.crew.counters.visits
        done, samples = int(visits.sum()), self.samples
        speed = self.speed()
        each = self._units / self._epoch_samples
        loss = self.crew.counters.loss / done * self.plan.program.loss_scale if done else math.nan
        return Progress(
            **self.when(), total=self.total, loss=loss, lr=self.rate,
            samples_per_second=speed, units_per_second=speed * each,
            seconds_left=(self.total - samples) / speed if speed else math.nan,
            balance=tuple(float(v) for v in visits / max(1, done)),
        )  # fmt: skip

    def speed(self) -> float:
        """Samples a second since this run went on; if there was nothing left to do, from its beginning."""
        visits, seconds = self.visits - self._visits_before, self.seconds - self._seconds_before
        if not visits:
            visits, seconds = self.visits, self.seconds
        return visits * self._epoch_samples / self.plan.visits / seconds if seconds > 0 else 0.0

    def finished(self, reason: str) -> Finished:
        """The last event."""
        speed, each = self.speed(), self._units / self._epoch_samples
        return Finished(
            **self.when(), reason=reason, loss=self._loss, units=round(self.samples * each),
            train_seconds=self.seconds, evaluate_seconds=self._evaluate_seconds, samples_per_second=speed,
            units_per_second=speed * each, metrics=dict(self.metrics),
        )  # fmt: skip

    def state(self) -> RunState:
        """All that is needed to go on from here; the workers are parked."""
        crew = self.crew
        return RunState(
            position=Position(self.epoch, self._done),
            lr=self._first_rate, sharing=crew.store.name, seed=self.plan.config.seed,
            epoch_visits=self.plan.visits, epochs=self.plan.config.epochs,
            loss_sum=crew.counters.loss, last_loss=self._loss,
            train_seconds=self.seconds, best_loss=self.best_loss, best_epoch=self.best_epoch,
            random=crew.backend.random,
        )  # fmt: skip
