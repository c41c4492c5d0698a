"""One trial of a search: a run with one thread, judged on held-out data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hogwild.config import TrainConfig
from hogwild.errors import HogwildError
from hogwild.executor.events import EpochEnded, Started
from hogwild.executor.run import AsyncExecutor
from hogwild.programs.program import FALLING, Metrics, Program


@dataclass(frozen=True)
class Trial:
    """What was tried, and what came of it.

    status: `done`, `early` (its patience ended), `short` (a run of fewer epochs, not good enough for a whole one),
    `stopped` (the search ended), or `failed`, with `why`.
    score: by which it is judged, the lower the better; infinite where there is none. judged: the metric that it is of.
    """

    number: int
    options: dict[str, Any]
    status: str = "done"
    score: float = math.inf
    judged: str = "loss"
    metrics: Metrics = field(default_factory=dict)
    epoch: int = 0
    epochs: int = 0
    lr: float = math.nan
    seconds: float = 0.0
    why: str = ""
    program: Any = field(default=None, repr=False, compare=False)

    @property
    def usable(self) -> bool:
        """Whether there is a model."""
        return self.program is not None and math.isfinite(self.score)

    @property
    def shown(self) -> str:
        """The metric that it is judged by, for people."""
        value = self.score if self.judged in FALLING else -self.score
        return f"{self.judged} {value:.4f}" if math.isfinite(value) else "–"

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        shown = {name: list(value) if isinstance(value, tuple) else value for name, value in self.options.items()}
        return {
            "trial": self.number, "status": self.status, "options": shown,
            "score": self.score if math.isfinite(self.score) else None, "judged_by": self.judged,
            "metrics": self.metrics,
            "best_epoch": self.epoch, "epochs": self.epochs, "lr": self.lr, "seconds": self.seconds, "why": self.why,
        }  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """What options are searched for: a program without weights, its data, and how it is trained otherwise."""

    program: Program
    feed: Any
    valid: Any
    config: TrainConfig

    def make(self, options: dict[str, Any]) -> Program:
        """The program with these options."""
        own = {name: value for name, value in options.items() if name not in vars(self.config)}
        config = getattr(self.program, "config", None)
        made = type(self.program)(**{**self.program.options(), **(vars(config) if config is not None else {}), **own})
        for name in ("top", "schema", "feed_config", "means"):  # what is no option
            if hasattr(self.program, name):
                setattr(made, name, getattr(self.program, name))
        return made

    def training(self, options: dict[str, Any]) -> TrainConfig:
        """How it is trained: by one thread, so that it can be repeated and others run beside it."""
        given = {name: value for name, value in options.items() if name in vars(self.config)}
        return replace(self.config, **{**given, "threads": 1, "mode": "serial", "sharing": "all"})


def subject_of(program: Program, feed: Any, valid: Any, train: TrainConfig) -> Subject:
    """With as many epochs as the data asks for, where the user leaves that to it; valid: what is held out of it."""
    config = program.adapted(train, feed)
    return Subject(program, feed, valid, replace(config, valid_share=0.0, valid_last=0.0))


def run_trial(subject: Subject, trial: Trial, short: bool, halted: Callable[[], bool]) -> Trial:
    """Make the run of a trial; what is wrong with it is its result. short: a third of its epochs."""
    began = time.perf_counter()
    try:
        found = _run(subject, trial, short, halted)
    except HogwildError as error:
        found = replace(trial, status="failed", why=str(error))
    if not math.isfinite(found.score) and found.status not in ("failed", "stopped"):
        found = replace(found, status="failed", why="the score on the held-out data is no number.", program=None)
    return replace(found, seconds=trial.seconds + time.perf_counter() - began)


def _run(subject: Subject, trial: Trial, short: bool, halted: Callable[[], bool]) -> Trial:
    program, config = subject.make(trial.options), subject.training(trial.options)
    epochs = -(-config.epochs // 3) if short else config.epochs
    executor = AsyncExecutor(**vars(replace(config, epochs=epochs)))
    kept: Any = None
    found = replace(trial, epochs=epochs, program=None, score=math.inf, metrics={})
    reason = "done"
    for event in executor.run(program, subject.feed, valid=subject.valid):
        if isinstance(event, Started):
            found = replace(found, lr=event.lr)
        if halted():
            executor.stop()
        if isinstance(event, EpochEnded) and event.best:
            score = executor.state().best_loss
            judged = program.best_by if config.best_by == "auto" else config.best_by
            kept = program.kept()
            found = replace(found, score=score, judged=judged, metrics=event.metrics, epoch=event.epoch)
        if event.kind == "finished":
            reason = event.reason  # type: ignore[attr-defined]
            if kept is not None:
                program.take_back(kept)
    whole = epochs == config.epochs
    status = reason if reason == "stopped" else ("early" if reason == "early" else "done") if whole else "short"
    return replace(found, status=status, program=program if kept is not None else None)
