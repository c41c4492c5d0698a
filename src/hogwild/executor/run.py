"""The executor: k workers over one program and one feed, as a generator of events."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from hogwild.config import Mode, Sharing, TrainConfig
from hogwild.config.arguments import offering
from hogwild.config.options import check_names
from hogwild.config.typed import RunOptions, TrainOptions
from hogwild.errors import ConfigError
from hogwild.executor.delta import Delta
from hogwild.executor.events import Event, Exchange, Parked, Started, Watched
from hogwild.executor.modes import lockstep_of
from hogwild.executor.plan import Plan, check_best, make_plan
from hogwild.executor.sharing import WeightStore
from hogwild.executor.spanlog import log_of
from hogwild.executor.state import Course, RunState
from hogwild.executor.tuning import calibrate, choose_sharing, prepare_probes
from hogwild.executor.workers import build_crew
from hogwild.feeds.held_out import hold_out
from hogwild.kernels.compiler.jit import NumbaError, explain
from hogwild.kernels.loop.schedule import Schedule, elapsed_at, make_schedule, rate_after
from hogwild.machine import one_blas_thread
from hogwild.timeline import timed

_TICK = 0.1  # seconds between two progress events


class AsyncExecutor:
    """Runs one program in many workers without locks.

    Parameters
    ----------
    threads : workers; None for one a core.
    mode : `hogwild`, `serial`, `locked`, `round-robin` or `minibatch`.
    sharing : `auto`, `all`, `hot` or `replica`: which weights the workers hold in common (mode `hogwild` only).
    options : any field of `TrainConfig`, which gives their meaning. What is left out, or None, is as the program has it
        (`Program.training`), as on the command line.

    A copy, or what comes back from pickle, has the configuration of the executor and no run, whether one was running or
    not. A run stays in the process that began it: after a fork the child gets ConfigError from it, and makes an
    executor of its own.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> feed = hogwild.feed_of(np.array([[0.0], [1.0]]), [0, 1])
    >>> executor = hogwild.AsyncExecutor(threads=1, mode="serial")
    >>> events = list(executor.run(hogwild.Linear(), feed, epochs=2, lr=0.5))
    >>> events[-1].reason, events[-1].samples
    ('done', 4)
    """

    @offering(TrainConfig)
    def __init__(
        self, threads: int | None = None, mode: Mode = "hogwild", sharing: Sharing | None = None,
        **options: Unpack[RunOptions],
    ) -> None:  # fmt: skip
        check_names(TrainConfig, options)
        self._begin({"threads": threads, "mode": mode, "sharing": sharing, **options})

    def __repr__(self) -> str:
        usual = TrainConfig()
        given = [f"{name}={value!r}" for name, value in vars(self.config).items() if value != getattr(usual, name)]
        where = f", in epoch {self._course.epoch + 1} of a run" if self._course is not None else ""
        return f"<AsyncExecutor({', '.join(given)}){where}>"

    def _begin(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self.config = made_config(TrainConfig, given)  # with the usual defaults; those of a program are in `config_for`
        self._running = threading.Lock()
        self._process = os.getpid()  # of the run
        self._wishes: set[str] = set()  # stop, park, pause: what closes the gates of a run
        self._course: Course | None = None
        self._last: RunState | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"given": self._given}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin(state["given"])

    def config_for(self, program: Any, **options: Any) -> TrainConfig:
        """How a run of the program goes: by these options, else by those of the executor, else by its own defaults."""
        check_names(TrainConfig, options)
        return made_config(program.training, {**self._given, **options})

    # -- from any thread ----------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop at the next span of every worker; the run ends with `Finished(reason="stopped")`."""
        self._wishes.add("stop")

    def park(self) -> None:
        """Let the workers stand still at their next span and the generator yield `Parked`, for a checkpoint."""
        self._wishes.add("park")

    def pause(self) -> None:
        """Let the workers stand still at their next span, until `resume`."""
        self._wishes.add("pause")

    def resume(self) -> None:
        """Go on after `pause`."""
        course = self._course
        self._wishes.discard("pause")
        if course is not None:
            course.crew.claims.open_gate("pause")

    def open_delta(self) -> Delta:
        """What the workers of this run change from now on, row by row, for other processes; and a way in for theirs."""
        if self.plan.config.device:
            raise ConfigError("the weights are on a device, where no other process reads them; leave device out.")
        return self.store.open_delta(self.plan.program.row_ids)

    @property
    def store(self) -> WeightStore:
        """The weights that the workers of this run share."""
        course = self._open_course()
        self._check_process()
        return course.crew.store

    @property
    def plan(self) -> Plan:
        """What the run is about."""
        return self._open_course().plan

    def _open_course(self) -> Course:
        if self._course is None:
            raise ConfigError("there is no run; iterate over `run` first.")
        return self._course

    def take_over(self, weights: Any) -> None:
        """These are the weights of the run from now on; the workers stand still (at `Started`, or where they park)."""
        course = self._open_course()
        for array, new in zip(course.crew.store.weights, weights, strict=True):
            array[...] = new
        course.crew.refresh()

    def state(self) -> RunState:
        """Where the run stands; exact while the workers are parked (at `Parked`, `EpochEnded` and `Finished`)."""
        course, last = self._course, self._last
        if course is not None:
            self._check_process()
            return course.state()
        if last is None:
            raise ConfigError("there is no run yet; iterate over `run` first.")
        return last

    # -- the run ------------------------------------------------------------------------------------------------

    def run(
        self, program: Any, feed: Any, *, valid: Any = None, watch: Any = None, start: RunState | None = None,
        shard: tuple[int, int] = (0, 1), exchange_every: int = 0, **options: Unpack[TrainOptions],
    ) -> Iterator[Event]:  # fmt: skip
        """Train, yielding events (`hogwild.executor.events`); nothing happens before the first is asked for.

        Parameters
        ----------
        valid : a feed to evaluate after each epoch; `patience` epochs without a better one (`best_by`) end the run
            early. `valid_share` or `valid_last` hold out a part of `feed` for it.
        watch : a `Watch`: variables to show while it runs.
        start : go on from the state of an earlier run, whose weights the program holds.
        shard : (part, parts): make only this part of the visits of each epoch. Runs of all parts with the same seed,
            wherever they are, make each visit once, and go through the data at the same pace.
        exchange_every : visits of this run after which all workers stand still and the generator yields `Exchange`,
            for whoever brings together what several runs have learnt (`open_delta`).
        options : fields of `TrainConfig` that override those of the executor (epochs, lr, schedule, seed …).
        """
        config = self.config_for(program, **options)
        feed, valid, held = hold_out(config, feed, valid)
        check_best(config, program, valid)
        _check_parts(config, shard, exchange_every)
        if not self._running.acquire(blocking=False):
            self._check_process()
            raise ConfigError("this executor is in the middle of a run; close that first, or make another executor.")
        self._process = os.getpid()
        try:
            with one_blas_thread():
                with timed("startup"):
                    config = program.adapted(config, feed)
                    plan = self._planned(make_plan(config, program, feed, shard, exchange_every))
                    if valid is not None:
                        program.check_fit(valid)  # now, not after an epoch
                        check_best(config, program, valid)
                for event in self._run(plan, feed, start, valid, watch):
                    yield event.noting(held) if held and isinstance(event, Started) else event
        finally:
            self._wishes.clear()
            self._running.release()

    def _planned(self, plan: Plan) -> Plan:
        """The plan of a run, for who changes something of it."""
        return plan

    def _run(self, plan: Plan, feed: Any, start: RunState | None, valid: Any, watch: Any) -> Iterator[Event]:
        program = plan.program
        if start is None:
            program.renew()
        try:
            with timed("prepare"):
                self._course, started = _prepare(plan, feed, start)
            yield started
            yield from self._train(self._course, valid, watch)
        except NumbaError as error:
            why = explain(plan.task, error)
            raise ConfigError(f"{why} gradient and apply may use numbers, arrays and NumPy.") from error
        finally:
            if self._course is not None:
                if self._ours:
                    self._course.crew.backend.close()
                self._course.bring_home()
                if self._ours:
                    self._last = self._course.state()
                self._course = None  # private copies go with it
            program.finish(feed)

    def _train(self, course: Course, valid: Any, watch: Any) -> Iterator[Event]:
        course.crew.claims.gates = self._wishes
        if watch is not None:
            watch.begin(course.samples, course.seconds)
            course.watch_every = watch.every.samples
        try:
            self._check_process()
            course.crew.start()
            reason = "done"
            while course.epoch < course.plan.config.epochs:
                self._check_process()
                if course.without_hope:
                    reason = "early"
                    break
                course.open_epoch()
                yield from self._until_epoch_ends(course, watch)
                if not course.epoch_complete:
                    reason = "stopped"
                    break
                yield course.end_epoch(valid)
                if "stop" in self._wishes and course.epoch < course.plan.config.epochs:
                    reason = "stopped"
                    break
            course.halt()
            yield course.finished(reason)
        finally:
            if self._ours:
                course.crew.end()
                course.halt()

    @property
    def _ours(self) -> bool:
        """Whether the run began in this process: after a fork its workers are in the other one only."""
        return self._process == os.getpid()

    def _check_process(self) -> None:
        if not self._ours:
            raise ConfigError(
                f"this run belongs to process {self._process}, from which this one was forked; make another executor "
                "and begin a run of your own."
            )

    def _until_epoch_ends(self, course: Course, watch: Any) -> Iterator[Event]:
        """Events of an epoch until all its samples are visited, or the run is stopped."""
        claims, told = course.crew.claims, time.perf_counter()
        while True:
            self._check_process()
            news = claims.wait(_TICK)
            if news == "failed":
                assert claims.error is not None
                raise claims.error
            exact = watch is not None and watch.every.samples
            if watch is not None and (news == "epoch" or not exact) and watch.due(course.samples, course.seconds):
                if exact:
                    course.halt()
                course.crew.backend.fetch()
                yield Watched(**course.when(), values=watch.read(course.plan.program))
            if news == "epoch":
                if course.exchange_due:
                    course.halt()
                    yield Exchange(**course.when())
                if course.epoch_complete or "stop" in self._wishes:
                    return
                course.go_on()
                if time.perf_counter() < told + _TICK:
                    continue
            if news in ("running", "epoch"):
                told = time.perf_counter()
                yield course.progress()
                continue
            course.halt()
            if "stop" in self._wishes:
                return
            if "park" in self._wishes:
                yield Parked(**course.when())
                claims.open_gate("park")
            else:
                claims.wait_at_gates(_TICK)
                yield course.progress()
            if not self._wishes:  # else they stand, and the clock with them
                course.go()
                claims.release()


def made_config(config: type[TrainConfig], given: Mapping[str, Any]) -> TrainConfig:
    """The options that were given, with the defaults of this dataclass."""
    if given.get("epochs") == 0:  # which in a dataclass stands for none given
        raise ConfigError("epochs is 0; it must be at least 1. Leave it out for the number that is usual.")
    return config(**{name: value for name, value in given.items() if value is not None})


def _prepare(plan: Plan, feed: Any, start: RunState | None) -> tuple[Course, Started]:
    """Learning rate, sharing and crew of a run, compiled; with notes on what was chosen."""
    config, notes = plan.config, []
    if plan.visits == 0:
        raise ConfigError("there is nothing to train on: the feed has no samples.")
    if start is not None and start.position.visits % (lockstep_of(config) or 1):
        raise ConfigError(
            f"the run stood at sample {start.position.visits} of an epoch, inside a round of mode {config.mode} with "
            f"{plan.workers} workers; go on with the mode, threads and batch that it had."
        )
    if start is not None and start.position.visits > plan.visits:
        raise ConfigError(
            f"the run stood at visit {start.position.visits} of an epoch, which has {plan.visits}; go on with the "
            "data, batch size, mode and threads that it had."
        )
    if start is not None and start.position.visits and start.epoch_visits != plan.visits:
        raise ConfigError(
            f"the run stood in an epoch of {start.epoch_visits} visits, and now there would be {plan.visits}; go on "
            "with the data, batch size, mode and threads that it had."
        )
    if plan.workers > plan.visits:
        what = "samples" if plan.program.epoch_samples(feed) == plan.whole else "batches"
        notes.append(f"{plan.workers} workers for {plan.visits} {what}: some have nothing to do.")
    notes += plan.program.started_notes()
    began = time.perf_counter()
    with timed("compile"):
        compiling = plan.rehearse()
    lr = config.lr or (start.lr if start else plan.program.rate)
    if lr is None:
        with timed("compile"):
            compiling += prepare_probes(plan)
        with timed("calibrate"):
            lr, loss, tries = calibrate(plan, config.seed)
        notes.append(f"learning rate {lr:.3g}: the best of {tries} tried on a sample (held-out loss {loss:.4g}).")
    schedule = make_schedule(config.schedule, lr * plan.part, plan.visits, config.epochs, config.decay, config.lr_end)
    with timed("try sharing"):
        sharing, why = (start.sharing, "") if start else choose_sharing(plan, schedule)
    if why:
        notes.append(why)
    if start is not None:
        notes += _go_further(plan, start, schedule)
    crew = build_crew(plan, plan.weights, schedule, sharing)
    notes += crew.backend.notes
    if crew.store.workers < plan.workers:
        workers = "1 worker" if crew.store.workers == 1 else f"{crew.store.workers} workers"
        notes.append(f"{plan.workers} threads take turns as {workers}, one a core: see --sharing.")
    crew.log = log_of(plan.task, crew.store.workers)
    plan.program.weights = crew.store.weights
    try:
        with timed("compile"):
            compiling += crew.prepare()
    except BaseException:
        crew.backend.close()
        raise
    program, part = plan.program, plan.visits / max(1, plan.whole)
    sizes = round(program.epoch_samples(feed) * part), round(program.units(feed) * part)
    course = Course(plan, crew, sizes, start)
    return course, course.started(compiling, time.perf_counter() - began - compiling, notes)


def _go_further(plan: Plan, start: RunState, schedule: Schedule) -> list[str]:
    """A run goes on to other epochs than were planned: its clock of penalties is that of the new rates; with a note.

    The rate stays a function of the position alone: from here on it is what a run of so many epochs has here.
    """
    config, (epoch, visits) = plan.config, start.position
    if start.epochs in (0, config.epochs) or epoch >= config.epochs:
        return []
    before = make_schedule(
        config.schedule, schedule.first, plan.visits, start.epochs, config.decay, config.lr_end
    )
    began = float(epoch * plan.visits)
    clocks = [float(elapsed_at(each, began + visits) - elapsed_at(each, began)) for each in (before, schedule)]
    if clocks[0] != clocks[1]:
        plan.program.move_clock(*clocks)
    rate = rate_after(schedule, epoch * plan.visits + visits) / plan.part
    return [
        f"{config.epochs} epochs instead of {start.epochs}: the learning rate goes on as that of a run of "
        f"{config.epochs} epochs, from {rate:.3g} here."
    ]


def _check_parts(config: TrainConfig, shard: tuple[int, int], exchange_every: int) -> None:
    part, parts = shard
    if config.device and (parts > 1 or exchange_every):
        raise ConfigError(f"device is {config.device}; a run that exchanges with others is made on the processor.")
    if not 0 <= part < parts:
        raise ConfigError(f"shard is {shard}; it is a part, counted from 0, and the number of parts.")
    step = lockstep_of(config) or 1
    if exchange_every < 0 or exchange_every % step:
        raise ConfigError(
            f"exchange_every is {exchange_every}; in mode {config.mode} it must be a multiple of {step} visits."
        )
