"""When to save: a reader of events that keeps the checkpoint and the model of a run up to date."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from hogwild.config import FeedConfig, TrainConfig
from hogwild.errors import ConfigError, RescuedError, SaveError, brief
from hogwild.executor.events import EpochEnded, Event, Finished, Parked, Progress
from hogwild.executor.modes import workers_of
from hogwild.executor.position import Position, RunState
from hogwild.executor.readers.checkpoint_ import check_checkpoint_output, save_checkpoint
from hogwild.executor.readers.rescue import Rescue
from hogwild.programs.program import Metrics, Program
from hogwild.programs.store import check_model_output, save_model

_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|epochs?)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_FREE = ("trace", "patience")  # options that may change when a run goes on
_PIECE = 1 << 24  # bytes of each array in memory that tell one data set from another


class Interval(NamedTuple):
    """How often a checkpoint is written: every so many seconds, or every so many epochs; the other is 0."""

    seconds: float = 0.0
    epochs: int = 0


def parse_interval(text: str) -> Interval:
    """The interval that a text such as 10m, 500s, 2h, 1epoch or 3epochs stands for.

    >>> parse_interval("10m")
    Interval(seconds=600.0, epochs=0)
    """
    match = _INTERVAL.fullmatch(text.strip().lower())
    amount = float(match[1]) if match else 0.0
    whole = match is not None and (match[2] in _SECONDS or amount.is_integer())
    if match is None or not whole or not 0 < amount < 1e9:
        raise ConfigError(f"checkpoint_every is {brief(text)}; write for example 10m, 500s, 2h or 1epoch.")
    return Interval(seconds=amount * _SECONDS[match[2]]) if match[2] in _SECONDS else Interval(epochs=int(amount))


def identity_of(program: Program, config: TrainConfig, feed: Any, valid: Any = None) -> dict[str, Any]:
    """What must be the same for a run to go on from a checkpoint, by the names that the user knows.

    program: as the user asked for it, before training settles any of its options.
    """
    options = {name: value for name, value in asdict(config).items() if name not in _FREE}
    return {
        **program.options(),
        **options,
        "threads": workers_of(config),
        "training data": _fingerprint(feed),
        "validation data": _fingerprint(valid) if valid is not None else "none",
    }


def _fingerprint(feed: Any) -> str:
    known = getattr(feed, "fingerprint", "")
    if known:
        return str(known)
    digest = hashlib.sha256()
    for array in getattr(feed, "samples", feed):
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data[:_PIECE])
    return digest.hexdigest()


@dataclass(frozen=True)
class Output:
    """Where the trained model goes, and what is saved with it.

    keep_best: the model is that of the epoch with the lowest validation loss; set it when there is a validation feed.
    """

    path: Path
    feed_schema: Mapping[str, Any] = field(default_factory=dict)
    feed_config: FeedConfig | None = None
    labels: tuple[str, ...] = ()
    keep_best: bool = False

    def save(self, program: Program, metrics: Metrics) -> None:
        """Save the model."""
        save_model(
            self.path, program, feed_schema=self.feed_schema, feed_config=self.feed_config, labels=self.labels,
            metrics=metrics,
        )  # fmt: skip


class Parkable(Protocol):
    """What is asked of an executor."""

    def park(self) -> None:
        """Yield `Parked` as soon as all workers stand still."""

    def state(self) -> RunState:
        """Where the run stands."""


class Checkpointer:
    """Reads the events of a run, saves checkpoints at the interval and the model at the end.

    The model in the output directory is the best so far where there is a validation feed (saved whenever an epoch is
    the best), and the last otherwise (saved when the run has finished or was stopped). A run that was stopped leaves a
    checkpoint whether or not an interval was given, so that `--resume` goes on from it. The last checkpoint stays when
    the run is done: the same command with `--resume` then finds that there is nothing left to do.

    What cannot be written does not end the run. A model goes to another place (`Rescue`) until its own can be written
    to; if at the end it still is there, the event `Finished` raises RescuedError, which says where. A checkpoint is
    tried again at the next interval.

    notes: sentences for the user about what could not be written.
    resumes: the output that has the last checkpoint, None if it could not be written.

    Parameters
    ----------
    executor : where the run stands, and whom to ask for a pause when a time has passed.
    output : where the model goes; the checkpoint goes beside it.
    interval : None for no checkpoints before the end.
    identity : see `identity_of`.
    start : the state that this run goes on from.

    Examples
    --------
    >>> checkpointer = Checkpointer(executor, program, output, parse_interval("10m"))   # doctest: +SKIP
    >>> for event in executor.run(program, feed):                                       # doctest: +SKIP
    ...     checkpointer(event)
    """

    def __init__(
        self,
        executor: Parkable,
        program: Program,
        output: Output,
        interval: Interval | None = None,
        identity: Mapping[str, Any] | None = None,
        start: RunState | None = None,
    ) -> None:
        self.executor, self.program, self.output = executor, program, output
        self.interval, self.identity = interval, identity or {}
        self._saved: Position | None = start.position if start else None
        self._began = start.position if start else None
        self._seconds = start.train_seconds if start else 0.0
        self._epoch = start.position.epoch if start else 0
        self._asked = False
        self._rescue = Rescue(output.path)
        self._problem = ""  # why the model is not in its place
        self._best_lost = False
        self.notes: list[str] = []
        self.resumes: Path | None = output.path
        check_model_output(output.path)
        if interval:
            check_checkpoint_output(output.path)

    def __call__(self, event: Event) -> None:
        """Take notice of an event."""
        if isinstance(event, Progress):
            if self._due(event) and not self._asked:
                self._asked = True
                self.executor.park()
        elif isinstance(event, Parked):
            self._checkpoint(event)
        elif isinstance(event, EpochEnded):
            # Before the checkpoint: one that knows of a best epoch must find its model saved.
            if self.output.keep_best and event.is_best:
                self._save_best(event)
            if self._due(event):
                self._checkpoint(event)
        elif isinstance(event, Finished):
            self._finish(event)

    def _due(self, event: Event) -> bool:
        if self.interval is None:
            return False
        if self.interval.epochs:
            return event.epoch - self._epoch >= self.interval.epochs
        return event.seconds - self._seconds >= self.interval.seconds

    def _save(self, metrics: Metrics) -> None:
        """Save the model to its place, or else to another; raises SaveError where none can be written to."""
        try:
            self.output.save(self.program, metrics)
        except SaveError as error:
            if not self._rescue.save(lambda path: replace(self.output, path=path).save(self.program, metrics)):
                raise
            self._problem = f"{error} The model was saved to {self._rescue.place} instead."
        else:
            self._problem = ""
            self._rescue.remove()

    def _save_best(self, event: EpochEnded) -> None:
        before, self._best_lost = self._rescue.place, False
        try:
            self._save(event.metrics)
        except SaveError as error:
            self._best_lost = True
            self.notes.append(f"{error} Training goes on without the model of epoch {event.epoch}.")
        if self._rescue.place not in (None, before):
            self.notes.append(self._problem)
        elif before is not None and self._rescue.place is None:
            self.notes.append(f"The model is in {self.output.path} now; {before} is gone.")

    def _checkpoint(self, event: Event) -> None:
        state = self.executor.state()
        if self.output.keep_best and (self._best_lost or self._rescue.place):
            # Whoever goes on does not find the best model in its place: the next one is better than none.
            state = replace(state, best_loss=math.inf, best_epoch=state.position.epoch)
        self._seconds, self._epoch, self._asked = event.seconds, event.epoch, False
        before = self.resumes
        for place in (self.output.path, self._rescue.place if isinstance(event, Finished) else None):
            try:
                if place is not None:
                    save_checkpoint(place, self.program, state, self.identity)
                    self._saved, self.resumes = state.position, place
                    return
            except SaveError as error:
                problem, self.resumes = str(error), None
        if before is not None:
            self.notes.append(f"{problem} Training goes on without this checkpoint.")

    def _finish(self, event: Finished) -> None:
        state = self.executor.state()
        has_best = self.output.keep_best and state.best_loss < math.inf and not self._best_lost
        nothing_new = state.position == self._began
        stands = self.output.path.exists() or self._rescue.place
        lost: SaveError | None = None
        if not (stands and (has_best or nothing_new)):
            try:
                self._save(event.metrics)
            except SaveError as error:
                lost = error  # the checkpoint of a run that was stopped is tried all the same
        wanted = self.interval is not None or self._began is not None or event.reason == "stopped"
        # Not for a run that is done but whose model is not in its place: going on from there would find nothing to do.
        if (event.reason == "stopped" or not (lost or self._rescue.place)) and wanted and state.position != self._saved:
            self._checkpoint(event)
        if lost:
            raise lost
        if self._rescue.place:
            raise RescuedError(self._problem, str(self._rescue.place))
