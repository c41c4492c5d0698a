"""One call: what a program would do on machines with more cores, beside what it does on this one."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hogwild.config import TrainConfig
from hogwild.config.options import check_names
from hogwild.errors import ConfigError, brief
from hogwild.executor.events import EpochEnded, Event, Finished, Started
from hogwild.executor.run import AsyncExecutor
from hogwild.executor.trace import add_up
from hogwild.executor.virtual.machine import MOST_WORKERS, Machine, Pace
from hogwild.executor.virtual.measure import load_of, measure
from hogwild.executor.virtual.run import VirtualExecutor, check_virtual
from hogwild.feeds.held_out import hold_out
from hogwild.machine import cores
from hogwild.programs.program import Metrics, Program

Tell = Callable[[Event, "Outcome | None"], None]


@dataclass(frozen=True)
class Outcome:
    """What a run came to, simulated or real.

    error_rate, delayed, delay, wrong: of the gradients that were looked at, as `docs/tracing.md` has them. lost: rows
    whose update another one overwrote, for each visit; only simulations know. seconds: of training; virtual ones of
    simulations. speed_up: against one worker. taken: seconds that it took here, with evaluation; busy: cores that it
    had meanwhile; load: other threads that wanted one. nodes: each with so many workers; every: visits of one between
    exchanges; sent: bytes of the node that sends most, for each of its visits.
    """

    workers: int
    cores: int
    simulated: bool
    losses: tuple[float, ...]
    metrics: Metrics
    error_rate: float
    delayed: float
    delay: float
    delay_p99: float
    wrong: float
    gradients: int
    looked_at: int
    seconds: float
    speed_up: float = 1.0
    lost: float = 0.0
    load: float = 0.0
    busy: float = 0.0
    taken: float = 0.0
    nodes: int = 1
    every: int = 0
    sent: float = 0.0

    @property
    def loss(self) -> float:
        """Of the last epoch: held out where there is other data, else in training."""
        return self.metrics.get("loss", self.losses[-1])

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "losses": list(self.losses), "loss": self.loss}


@dataclass(frozen=True)
class Comparison:
    """A real run beside its prediction, for the cores of this machine and what else they did."""

    real: Outcome
    predicted: Outcome

    @property
    def errors(self) -> dict[str, float | None]:
        """How far predictions are off, relative to what came; None where nothing came."""
        names = ("error_rate", "delay", "loss", "speed_up")
        pairs = {name: (getattr(self.predicted, name), getattr(self.real, name)) for name in names}
        return {name: made / came - 1 if came else None for name, (made, came) in pairs.items()}

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        return {"real": self.real.record(), "predicted": self.predicted.record(), "errors": self.errors}


@dataclass(frozen=True)
class Simulation:
    """Predictions for machines, what they rest on, and real runs beside them.

    serial: the run of one real worker, by which all is calibrated; pace: what its visits cost.
    """

    program: str
    lr: float
    epochs: int
    serial: Outcome
    pace: Pace
    predictions: tuple[Outcome, ...]
    compared: tuple[Comparison, ...] = ()

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "simulation": self.program, "lr": self.lr, "epochs": self.epochs, "cores": cores(),
            "pace": {**asdict(self.pace), "visit": self.pace.visit}, "serial": self.serial.record(),
            "predictions": [each.record() for each in self.predictions],
            "compared": [each.record() for each in self.compared],
        }  # fmt: skip


@dataclass(frozen=True)
class Lab:
    """A program, its data and how it is trained, to be run again and again."""

    program: Program
    feed: Any
    valid: Any
    config: TrainConfig
    tell: Tell

    def options(self, **more: Any) -> dict[str, Any]:
        """Of a run."""
        fixed = {"valid_share": 0.0, "valid_last": 0.0, "patience": 0, **more}
        return {**{name: value for name, value in vars(self.config).items() if name != "epochs" or value}, **fixed}

    def real(self, threads: int, lr: float | None = None) -> tuple[Outcome, float, Pace | None]:
        """A real run with a trace; its learning rate; of one thread what its visits cost."""
        options = self.options(threads=threads, trace=True, sharing="all", **({"lr": lr} if lr else {}))
        executor, pace = AsyncExecutor(**options), None
        watch = Watch(threads, cores(), False)
        program = copy.deepcopy(self.program)
        for event in executor.run(program, self.feed, valid=self.valid):
            watch(event)
            self.tell(event, watch.outcome)
            if isinstance(event, Finished) and threads == 1:
                pace = measure(executor.plan, executor.store.weights, watch.lr)
        assert watch.outcome is not None
        return watch.outcome, watch.lr, pace

    def simulated(self, machine: Machine, lr: float) -> Outcome:
        """A run of virtual workers."""
        executor = VirtualExecutor(machine, **self.options(lr=lr, threads=None, sharing="all", trace=False))
        watch = Watch(machine.workers, machine.used, True)
        program = copy.deepcopy(self.program)
        found: Outcome | None = None
        before = 0.0
        for event in executor.run(program, self.feed, valid=self.valid):
            watch(event)
            backend = executor.backend
            seconds = backend.seconds
            if isinstance(event, EpochEnded):  # by the clock of the machine that is simulated
                event, before = replace(event, seconds=seconds, epoch_seconds=seconds - before), seconds
            if isinstance(event, Finished):
                pace = {"samples_per_second": event.samples / seconds, "units_per_second": event.units / seconds}
                event = replace(event, seconds=seconds, train_seconds=seconds, **pace)  # type: ignore[arg-type]
                assert watch.outcome is not None
                found = replace(
                    watch.outcome, seconds=seconds, lost=backend.lost / max(1, backend.visits),
                    speed_up=backend.busy / seconds, load=machine.load,
                )  # fmt: skip
            self.tell(event, found)
        assert found is not None
        return found


class Watch:
    """Reads events, and makes an outcome of them."""

    def __init__(self, workers: int, cores: int, simulated: bool) -> None:
        self.outcome: Outcome | None = None
        self.lr = 0.0
        self._made = {"workers": workers, "cores": cores, "simulated": simulated}
        self._epochs: list[EpochEnded] = []
        self._began = self._busy = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self.lr, self._began, self._busy = event.lr, time.perf_counter(), time.process_time()
        if isinstance(event, EpochEnded):
            self._epochs.append(event)
        if isinstance(event, Finished):
            self.outcome = self._outcome(event)

    def _outcome(self, event: Finished) -> Outcome:
        trace = add_up(tuple(worker for epoch in self._epochs for worker in epoch.trace))
        looked = max(1, trace["looked_at"])
        taken, busy = time.perf_counter() - self._began, time.process_time() - self._busy
        simulated, threads = self._made["simulated"], int(self._made["workers"])
        busy /= max(taken, 1e-9)
        return Outcome(
            **self._made, losses=tuple(epoch.loss for epoch in self._epochs), metrics=self._epochs[-1].metrics,  # type: ignore[arg-type]
            error_rate=trace["error_rate"], delayed=trace["delayed"] / looked, delay=trace["delay"]["mean"],
            delay_p99=float(trace["delay"]["p99"]), wrong=trace["wrong"]["mean"], gradients=trace["gradients"],
            looked_at=trace["looked_at"], seconds=event.train_seconds, busy=busy, taken=taken,
            load=0.0 if simulated else load_of(threads, busy),
        )  # fmt: skip


def simulate(
    program: Program, feed: Any, *, workers: Sequence[int] = (1, 2, 4, 16, 64, 256), valid: Any = None,
    compare: Sequence[int] = (), cores: int = 0, delay: float | None = None, lost: float | None = None,
    torn: bool = True, tell: Tell | None = None, **options: Any,
) -> Simulation:  # fmt: skip
    """Predict loss, gradient errors and speed-up of a program for machines that one does not have.

    A real run of one worker comes first: by it the costs of visits are measured. Then virtual workers make the same run
    as so many real ones would, one after the other, the same again for the same costs and seed.

    Parameters
    ----------
    program : without weights; it stays so.
    feed, valid : as for `hogwild.train`.
    workers : of the machines that are simulated, 1 to 256 each.
    compare : threads of real runs on this machine, each beside the prediction for its cores and its load.
    cores, delay, lost, torn : see `Machine`.
    tell : called with each event of each run, and with the outcome of a run at its end.
    options : fields of `TrainConfig`: epochs, lr, seed … Mode is `hogwild`, all workers share one copy of the weights.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> found = hogwild.simulate(hogwild.Linear(), (X, X[:, 0] > 0), workers=[1, 8], epochs=2, lr=0.1)
    >>> [each.workers for each in found.predictions], found.predictions[1].error_rate > 0
    ([1, 8], True)
    """
    check_counts("workers", workers)
    check_counts("compare", compare)
    machine = Machine(1, cores, 0.0, delay, lost, torn)
    check_names(program.training, options)
    check_virtual(options)
    feed = program.feed_from(feed)
    valid = None if valid is None else program.feed_from(valid, feed)
    config = AsyncExecutor(**options).config_for(program)
    feed, valid, _ = hold_out(config, feed, valid)
    return run_lab(Lab(program, feed, valid, config, tell or silent), machine, workers, compare)


def silent(event: Event, outcome: Outcome | None) -> None:
    return


def check_counts(name: str, counts: Sequence[int]) -> None:
    """ConfigError for numbers of workers that cannot be simulated."""
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_WORKERS:
            raise ConfigError(f"{name} has {brief(count)}; each is a whole number from 1 to {MOST_WORKERS}.")
    if len(set(counts)) < len(counts):
        raise ConfigError(f"{name} has a number twice; give each once.")
    if name == "workers" and not counts:
        raise ConfigError("workers is empty; give numbers of workers, such as 1, 4 and 64.")


def run_lab(lab: Lab, machine: Machine, workers: Sequence[int], compare: Sequence[int]) -> Simulation:
    """The real runs and the simulations; machine: with all but the workers."""
    serial, lr, pace = lab.real(1)
    assert pace is not None
    machine = replace(machine, pace=pace)
    predictions = tuple(lab.simulated(replace(machine, workers=count), lr) for count in workers)
    compared = []
    for threads in compare:
        real = serial if threads == 1 else lab.real(threads, lr)[0]
        real = replace(real, speed_up=serial.seconds / real.seconds)
        here = replace(machine, workers=threads, cores=cores(), load=real.load)
        compared.append(Comparison(real, lab.simulated(here, lr)))
    return Simulation(lab.program.name, lr, len(serial.losses), serial, pace, predictions, tuple(compared))
