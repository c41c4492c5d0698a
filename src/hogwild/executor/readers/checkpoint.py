"""A reader of events that keeps the checkpoint and the model of a run up to date."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol, get_args, get_type_hints

import numpy as np

from hogwild.config import FeedConfig, TrainConfig
from hogwild.config.kinds import Sharing
from hogwild.errors import ConfigError, ModelError, RescuedError, SaveError, brief, shorten
from hogwild.executor.events import EpochEnded, Event, Finished, Parked, Progress
from hogwild.executor.modes import workers_of
from hogwild.executor.state import Position, RunState
from hogwild.programs.program import Metrics, Program
from hogwild.programs.saving.sealed import Sealed, check_sealed_output, plain, read_sealed, write_sealed
from hogwild.programs.saving.tensors import Arrays
from hogwild.programs.store import (
    STRAY,
    WEIGHTS,
    arrays_of,
    check_model_output,
    remove_model,
    restore,
    save_model,
    saved_parts,
)

# -- Checkpoints: all that a run needs to go on after its process has ended, however it ended -------------------------
# The checkpoint of the output `model` is the directory `model.checkpoint` beside it, sealed and replaced in one step
# like a model: the old one goes only when the new one is complete. It stands beside and not inside, because a model
# directory is replaced as a whole, and whoever reads or copies it gets a model and nothing else. Numbers are stored
# as their bits in safetensors, never as decimal text, so that `serial` goes on bit for bit.


KIND = "checkpoint"
STATE = "state.safetensors"
_MISSING = "nothing"
_MOST = 1 << 62  # epochs, and visits of one


def checkpoint_path(output: str | PathLike[str]) -> Path:
    """Where the checkpoint of an output directory stands.

    >>> checkpoint_path("models/spam").as_posix()
    'models/spam.checkpoint'
    """
    path = Path(output)
    return path.with_name(path.name + ".checkpoint")


def check_checkpoint_output(output: str | PathLike[str]) -> None:
    """Raise SaveError before a long training for what would keep `save_checkpoint` from saving."""
    check_sealed_output(checkpoint_path(output), KIND)


def save_checkpoint(
    output: str | PathLike[str], program: Program, state: RunState, identity: Mapping[str, Any]
) -> None:
    """Save the checkpoint of `output`. The workers must be parked.

    identity: what must be the same when the run goes on (options, data), by the name that the user knows it by; JSON
    values only.
    """
    options, arrays = saved_parts(program, state=True)
    words, numbers = _pack(state)
    config = {"program": program.name, "options": options, "identity": dict(identity), "state": words}
    write_sealed(checkpoint_path(output), KIND, config, {WEIGHTS: arrays, STATE: numbers})


def load_checkpoint(
    output: str | PathLike[str], program: Program, identity: Mapping[str, Any]
) -> tuple[Program, RunState] | None:
    """The program of the checkpoint of `output`, with its weights, and where the run stood; None without a checkpoint.

    It is `program` itself, or another of its class where training has settled options (classes, number of features).
    Raises ConfigError where the checkpoint is of another run: it names what differs.
    """
    path = checkpoint_path(output)
    try:
        sealed = read_sealed(path, KIND)
        _check_same(sealed, program, identity, path)
        state = _unpack(sealed, identity, path)
        program = _equal_program(program, sealed, path)
        restore(program, arrays_of(sealed, WEIGHTS, path), f"{path / WEIGHTS}")
    except FileNotFoundError:
        return None
    except ModelError as error:
        raise ModelError(f"{error} To start anew, leave --resume out.") from error
    return program, state


def _check_same(sealed: Sealed, program: Program, identity: Mapping[str, Any], path: Path) -> None:
    saved = sealed.config.get("identity")
    if not isinstance(saved, dict):
        raise ModelError(f"{path / 'config.json'}: does not tell which run it belongs to.")
    before = {**saved, "program": sealed.config.get("program")}
    now = _as_json({**identity, "program": program.name})
    before = {**_earlier(program, now), **before}
    differing = [key for key in {**before, **now} if before.get(key, _MISSING) != now.get(key, _MISSING)]
    if "epochs" in differing and _is_more(now.get("epochs"), before.get("epochs")):
        differing.remove("epochs")
    if differing:
        what = "; ".join(
            f"the {key} is not the same" if key.endswith(" data") else
            f"{shorten(key, 80)} was {_told(before, key)}, is {_told(now, key)}"
            for key in differing[:4]
        )  # fmt: skip
        raise ConfigError(
            f"{path} is the checkpoint of another run: {what}. Give the same data and options, or leave --resume out."
        )


def _is_more(epochs: Any, before: Any) -> bool:
    """Whether a run goes on to more epochs than it was to have."""
    return type(epochs) is int and type(before) is int and epochs > before


def _earlier(program: Program, now: Mapping[str, Any]) -> dict[str, Any]:
    """What a run was that knew nothing of options which are new since: the best of classes was told by the loss."""
    by = "loss" if program.best_by in ("accuracy", "f1") else "auto"
    then = {"valid_share": 0.0, "valid_last": 0.0, "best_by": by}
    return {name: value for name, value in then.items() if name in now}


def _equal_program(program: Program, sealed: Sealed, path: Path) -> Program:
    options = sealed.config.get("options")
    program.recall(options if isinstance(options, dict) else {})
    if options == _as_json(program.options()):
        return program
    try:
        return type(program)(**program.earlier(options))  # type: ignore[arg-type]
    except STRAY as error:
        where = path / "config.json"
        raise ModelError(f"{where}: these options make no {program.name!r} program: {shorten(error)}.") from error


def _as_json(values: dict[str, Any]) -> Any:
    return json.loads(json.dumps(values, default=plain))


# -- RunState as JSON values and arrays -------------------------------------------------------------------------


def _pack(state: RunState) -> tuple[dict[str, Any], Arrays]:
    """Whole numbers and words as JSON; floats and arrays as arrays."""
    arrays = {name: np.asarray(value) for name, value in vars(state).items() if isinstance(value, float | np.ndarray)}
    return {name: value for name, value in vars(state).items() if name not in arrays}, arrays


def _unpack(sealed: Sealed, identity: Mapping[str, Any], path: Path) -> RunState:
    words, arrays = sealed.config.get("state"), arrays_of(sealed, STATE, path)
    try:
        if not isinstance(words, dict):
            raise TypeError("state is no object")
        words = {"epochs": 0, **words}  # which checkpoints did not tell once
        hints = get_type_hints(RunState)
        state = RunState(**{item.name: _value(item.name, hints[item.name], words, arrays) for item in fields(RunState)})
        _check_state(state, identity)
        return state
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        where = path / "config.json"
        why = shorten(error)
        raise ModelError(f"{where}: does not tell where the run stood ({why}); hogwild of another version?") from None


def _check_state(state: RunState, identity: Mapping[str, Any]) -> None:
    """Raise ValueError for a state that this run does not leave behind. The executor checks it against the feed."""
    epoch, visits = state.position
    threads = identity.get("threads", state.random.size)
    sound = {
        "position": epoch <= (identity.get("epochs") or _MOST) and visits <= _MOST,
        "epoch_visits": 0 <= state.epoch_visits <= _MOST,
        "epochs": 0 <= state.epochs <= identity.get("epochs", _MOST),
        # Where copies are private there are no more workers than cores, however many threads take turns as them.
        "random": state.random.dtype == np.uint64 and state.random.ndim == 1 and 1 <= state.random.size <= threads,
        "seed": 0 <= state.seed < 2**63,
        "sharing": state.sharing in get_args(Sharing) and state.sharing != "auto",
        "lr": 0 < state.lr < math.inf,
        "best_epoch": -1 <= state.best_epoch <= epoch,
        "train_seconds": 0 <= state.train_seconds < math.inf,
        "loss_sum": math.isfinite(state.loss_sum),
    }
    for name, fits in sound.items():
        if not fits:
            raise ValueError(f"{name} is {brief(getattr(state, name))}")


def _told(values: Mapping[str, Any], key: str) -> str:
    return shorten(values[key], 80) if key in values else _MISSING


def _value(name: str, hint: Any, words: dict[str, Any], arrays: Arrays) -> Any:
    if hint is float:
        if arrays[name].dtype != np.float64 or arrays[name].shape != ():
            raise TypeError(f"{name} is {arrays[name].dtype} {arrays[name].shape}")
        return arrays[name].item()
    if hint is Position:
        epoch, visits = words[name]
        if type(epoch) is not int or type(visits) is not int or min(epoch, visits) < 0:
            raise ValueError(f"{name} is {brief(epoch)}, {brief(visits)}")
        return Position(epoch, visits)
    if hint in (int, str):
        if type(words[name]) is not hint:
            raise TypeError(f"{name} is {brief(words[name])}")
        return words[name]
    return arrays[name].copy()


# -- Where a model goes that cannot be written to its place: what was trained is not lost -----------------------------


class Rescue:
    """A second place for a model, for this user only: beside the first, or else in the temporary place.

    place: the directory where the model stands, None as long as there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.abspath(path))
        self._made: Path | None = None
        self.place: Path | None = None

    def save(self, save: Callable[[Path], None]) -> bool:
        """Save with this function, which is given a directory; whether that worked."""
        with suppress(SaveError):
            if self.place is not None:
                save(self.place)
                return True
        for made, place in self._places():
            try:
                save(place)
            except SaveError:
                with suppress(OSError):
                    made.rmdir()
                continue
            self.remove()
            self._made, self.place = made, place
            return True
        return False

    def remove(self) -> None:
        """The model stands in its own place now."""
        if self.place is not None and self._made is not None:
            with suppress(SaveError, OSError):
                remove_model(self.place)
                if self._made != self.place:
                    self._made.rmdir()
        self._made = self.place = None

    def _places(self) -> Iterator[tuple[Path, Path]]:
        """Directories that were made, and where in them the model goes."""
        with suppress(OSError):
            beside = self._path.with_name(f"{self._path.name}.rescued-{secrets.token_hex(4)}")
            beside.mkdir(0o700)
            yield beside, beside
        with suppress(OSError):
            private = Path(tempfile.mkdtemp(prefix="hogwild-rescued-"))
            yield private, private / self._path.name


# -- When to save -----------------------------------------------------------------------------------------------------


_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|epochs?)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_FREE = ("trace", "patience", "device")  # options that may change when a run goes on
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
    if valid is None:
        del options["best_by"]  # nothing is told by it
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


def digest_of(arrays: Mapping[str, Any]) -> str:
    """Tells the weights that a run started from from others."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
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
