"""The frame of experiments: runs that are listed, made one after the other and kept, as one JSON object.

An experiment says which runs there are, what trains one of them, and what of an iteration is kept. Everything else is
here: records, the end before the end, going on after it, the time that is left.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, ClassVar, Generic, TypeVar

from hogwild import __version__
from hogwild.errors import ConfigError, InputError, shorten
from hogwild.executor.events import EpochEnded, Event, Finished, Started
from hogwild.executor.trace import add_up
from hogwild.machine import cores, describe
from hogwild.messages import counted
from hogwild.observe.logs import plain
from hogwild.observe.report.runs import flat, number

_TOLD = 4  # differences that are named
_SECONDS = ("compile_seconds", "wall_seconds")
_SAME = ("cores", "processor")  # of the machine, or its seconds are no others' seconds

AnyRun = TypeVar("AnyRun", bound="Run")


@dataclass(frozen=True)
class Run:
    """One training of an experiment."""

    method: str
    threads: int
    seed: int
    traced: bool = False

    def __str__(self) -> str:
        threads = counted(self.threads, "thread")
        return f"{self.method}, {threads}, seed {self.seed}{', traced' if self.traced else ''}"


class Training:
    """What makes one run: an executor, and what it runs."""

    def __init__(self, executor: Any, program: Any, feed: Any, valid: Any = None) -> None:
        self.executor, self.program, self.feed, self.valid = executor, program, feed, valid

    def events(self) -> Iterator[Event]:
        """Those of the run."""
        yield from self.executor.run(self.program, self.feed, valid=self.valid)


class Experiment(ABC, Generic[AnyRun]):
    """All runs, and what came of them so far."""

    schema: ClassVar[str]
    version: ClassVar[int] = 1
    score: str
    """The metric that is the score of an iteration."""

    def __init__(self, plan: Sequence[AnyRun]) -> None:
        self.plan = list(plan)
        self.records: list[dict[str, Any]] = []
        self._machine = describe()  # with the load of others, before we begin
        self._sessions = [{"runs": 0, "load_before": self._machine["load_before"]}]
        self._stopped = False
        self._executor: Any = None

    # -- what an experiment says of itself --------------------------------------------------------------------------

    @abstractmethod
    def facts(self, run: AnyRun) -> dict[str, Any]:
        """What tells this run from the others, as it stands in its record."""

    @abstractmethod
    def training(self, run: AnyRun) -> Training:
        """What makes the run."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What is trained, in a word or two: model, task."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """All options of the runs, also those that were chosen."""

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """What it is trained on."""

    @abstractmethod
    def compared(self) -> list[dict[str, Any]]:
        """What the runs come to, for each method."""

    def notes(self) -> list[str]:
        """What was chosen, left out or is to be kept in mind."""
        return []

    def iteration(self, event: EpochEnded, run: AnyRun) -> dict[str, Any]:
        """What is kept of an iteration."""
        found: dict[str, Any] = {
            "iteration": event.epoch, "traced_seconds" if run.traced else "seconds": event.epoch_seconds,
            "loss": event.loss, "test_loss": event.metrics["loss"], "score": event.metrics[self.score],
        }  # fmt: skip
        if run.traced:
            found["errors"] = add_up(event.trace)
            found["workers"] = [_without_counts(worker) for worker in event.trace]
        return found

    def take(self, event: Event, record: dict[str, Any]) -> None:
        """Keep something else of an event in the record of its run."""

    # -- the runs ---------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the run that goes on at the next span of its workers, and begin no other."""
        self._stopped = True
        if self._executor is not None:
            self._executor.stop()

    def run(self) -> Iterator[tuple[AnyRun, Event]]:
        """Make all runs; gives their events."""
        for run in self.plan[len(self.records) :]:
            if self._stopped:
                return
            for event in self._events(run):
                yield run, event

    def _events(self, run: AnyRun) -> Iterator[Event]:
        began = time.perf_counter()
        training = self.training(run)
        self._executor = training.executor
        record: dict[str, Any] = {
            **self.facts(run), "complete": False, "compile_seconds": None, "wall_seconds": None, "iterations": [],
        }  # fmt: skip
        self.records.append(record)
        for event in training.events():
            if isinstance(event, Started):
                record["compile_seconds"] = event.compile_seconds
            elif isinstance(event, EpochEnded):
                record["iterations"].append(self.iteration(event, run))
            elif isinstance(event, Finished):
                record["complete"] = event.reason == "done"
                record["wall_seconds"] = time.perf_counter() - began
                self._sessions[-1]["runs"] += 1
            self.take(event, record)
            yield event
        self._executor = None

    @property
    def seconds_left(self) -> float | None:
        """How long the runs that are left will take, by those of their kind, else by all, without compiling;
        None before the first."""
        known: dict[tuple[str, int, bool], list[float]] = {}
        for run, record in zip(self.plan, self.records, strict=False):
            if (seconds := number(record["wall_seconds"])) is not None:
                seconds -= number(record["compile_seconds"]) or 0.0
                known.setdefault((run.method, run.threads, run.traced), []).append(max(seconds, 0.0))
        if not known:
            return None
        usual = mean(seconds for each in known.values() for seconds in each)
        left = self.plan[len(self.records) :]
        return sum(mean(known.get((run.method, run.threads, run.traced), [usual])) for run in left)

    # -- going on ---------------------------------------------------------------------------------------------------

    def _identity(self, found: Mapping[str, Any]) -> dict[str, str]:
        """What two experiments have in common whose runs may stand side by side; files may have other names."""
        names = ("schema", "version", "hogwild", *self.about(), "options", "data")
        told = {name: found.get(name) for name in names}
        machine = found.get("machine")
        told["machine"] = {name: machine.get(name) for name in _SAME} if isinstance(machine, dict) else None
        return {name: value for name, value in flat(told).items() if not name.endswith(".source")}

    def take_over(self, found: Mapping[str, Any], source: str) -> int:
        """Keep the finished runs of an experiment that was stopped, which is what its file holds; returns how many.

        Raises
        ------
        ConfigError
            If it is another experiment: other options, other data, another machine.
        InputError
            If it is damaged.
        """
        before, now = self._identity(found), self._identity(self.record())
        differing = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if differing:
            what = "; ".join(
                f"{shorten(name, 80)} was {shorten(before.get(name, 'not there'), 80)}, is "
                f"{shorten(now.get(name, 'not there'), 80)}"
                for name in differing[:_TOLD]
            )
            raise ConfigError(
                f"{source} is of another experiment: {what}. Give the same data and options, or leave --resume out."
            )
        try:
            kept = self._finished(found["runs"])
            sessions = [
                {"runs": int(each["runs"]), "load_before": number(each["load_before"])} for each in found["sessions"]
            ]
            self.records = kept
            plain(self.compared())
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{source}: damaged, it lacks what an experiment has ({error}).") from error
        self._sessions = [*sessions, *self._sessions]
        return len(kept)

    def _finished(self, runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The records of the first runs of the plan, up to the first that was not finished."""
        kept: list[dict[str, Any]] = []
        for run, record in zip(self.plan, runs, strict=False):
            facts = plain(self.facts(run))
            if record["complete"] is not True or {name: record.get(name) for name in facts} != facts:
                break
            kept.append({**record, "iterations": [*record["iterations"]], **{name: record[name] for name in _SECONDS}})
        return kept

    @property
    def complete(self) -> bool:
        """Whether all runs were made to their end."""
        return len(self.records) == len(self.plan) and all(record["complete"] for record in self.records)

    def record(self) -> dict[str, Any]:
        """All that is known so far, as JSON values; docs/experiments.md says what each is."""
        whole: dict[str, Any] = plain({
            "schema": self.schema, "version": self.version, "complete": self.complete, "hogwild": __version__,
            **self.about(), "score": self.score, "seconds_from": "runs without a trace", "errors_from": "traced runs",
            "options": self.options(), "data": self.data(), "machine": self._machine,
            "sessions": self._sessions, "methods": self.compared(), "runs": self.records, "notes": self.notes(),
        })  # fmt: skip
        return whole


def crowding(most: int) -> list[str]:
    """A note where more threads than cores are to run."""
    there = cores()
    if most <= there:
        return []
    return [f"{most} threads share {counted(there, 'core')}: no speed-up above {there} can be expected."]


def _without_counts(worker: dict[str, Any]) -> dict[str, Any]:
    """The trace of a worker without the histogram of its delays, which `errors` has for all together."""
    delay = {name: value for name, value in worker["delay"].items() if name != "counts"}
    return {**worker, "delay": delay}
