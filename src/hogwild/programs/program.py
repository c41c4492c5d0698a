"""What the executor asks of a program: of any, and of one that is compiled code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Room, Step, Table
from hogwild.config import FeedConfig, TrainConfig
from hogwild.errors import ConfigError, brief

Metrics = dict[str, float]
RowIds = npt.NDArray[np.int64]
_LARGE = 1e30
FALLING = ("loss", "rmse")  # what is the better the lower
_COUNTED = ("accuracy", "f1")  # shares of few rows, of which two epochs may well have the same
_TIE = 1e-9  # less than one row of any validation data


def plain_constants(constants: Mapping[str, float] | None) -> dict[str, float]:
    """Constants of an update rule by name, as JSON values; ConfigError for what is no number of float32."""
    found = {str(name): float(value) for name, value in (constants or {}).items()}
    for name, value in found.items():
        if not abs(value) <= _LARGE:
            raise ConfigError(f"the constant {brief(name)} is {value}; numbers go from -1e30 to 1e30 here.")
    return found


class Pair(NamedTuple):
    """An axis of an array with one place for two classes: the score of the second. Times -half and half it is one for
    each of them."""

    names: Sequence[Any]
    half: float = 0.5


class Program(ABC):
    """A model: its startup, its weights, and how it predicts, evaluates and is saved; not what makes a visit.

    The executor calls, in this order: `startup(feed, seed)` once a run; then workers visit samples and change
    `weights`; `settle` where they are parked at the end of an epoch; `finish(feed)` at the end of the run.
    """

    name: ClassVar[str] = "program"
    unit: ClassVar[str] = "samples"
    tells_units: ClassVar[bool] = False
    """Whether progress is told in units, not in samples: where a visit is nothing that the user knows."""

    training: ClassVar[type[TrainConfig]] = TrainConfig
    """How it is trained where the user says nothing: the options of a run, with its own defaults."""

    weights: Any = None
    """A NamedTuple of float32 arrays, C-contiguous, that all workers share; None before startup."""

    schema: dict[str, Any] | None = None
    """What turns further data into the features of this model: that of its first feed; None: not known."""
    feed_config: FeedConfig | None = None
    """How the files of a saved model were read; None: not known."""
    small: str = ""
    """How the model that it was loaded from was made smaller, such as `int8`; "" for one that has all its bits."""
    means: Sequence[float] = ()
    """Of the columns of an array without names: they stand for numbers that are missing."""

    @property
    def rate(self) -> float | None:
        """Learning rate where the user gives none; None: it is calibrated."""
        return None

    @property
    def loss_scale(self) -> float:
        """What the loss of a visit is multiplied by where it is told: to be in the user's unit."""
        return 1.0

    sharing: str = "hot"
    """What `auto` takes where a trial of each sharing is not worth its time."""
    hot_rows: ClassVar[int] = 0
    """Private leading rows under `hot` where the user gives no number; 0: as many as half of a usual cache holds."""
    merge_every: ClassVar[int] = 0
    """Visits between two merges of private rows where the user gives no number, at the most; 0: a millisecond's."""

    @property
    def whole_tries(self) -> int:
        """Where calibration tries whole runs, with all epochs: on so many samples at the most, because what is best for
        one pass is too much for several. 0: one pass says enough."""
        return 0

    def rate_of_run(self, rate: float, share: float) -> float:
        """The learning rate of a run by the best one of tries on this share of its samples."""
        return rate

    visit_seconds: float = 2e-5
    """About how long a visit takes, by which calibration knows how many visits it can try."""

    epochs: ClassVar[int] = 5
    """Times that every sample is visited where neither the user nor the number of rows says it."""

    def adapted(self, config: TrainConfig, feed: Any) -> TrainConfig:
        """Before anything else of a run: how it goes on this feed, where the user leaves that to the data."""
        return config if config.epochs else replace(config, epochs=self.epochs)

    def gather(self, workers: int) -> None:
        """Before startup: so many workers will visit, for a program that has something for each of them."""

    def check_mode(self, mode: str) -> None:
        """ConfigError if an option that the user gave has no effect in a mode."""

    def check_device(self, config: TrainConfig) -> None:
        """ConfigError unless it can be trained on the device that the user names; asked before data is read."""
        if config.device:
            raise ConfigError(
                f"device is {brief(config.device)}, and a {type(self).__name__} is trained by compiled code on the "
                "processor. SparseMLP (mlp, wide-deep), TextClassifier (text) and modules have a form for devices."
            )

    def backend(self, config: TrainConfig) -> Any:
        """What makes the visits of a run: a class (see `executor/backends`) that is made with the plan of the run, or
        None for compiled code."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copies: all but what answers single rows, which is made anew where it is asked for."""
        return {name: None if name in ("_one", "_row") else value for name, value in vars(self).items()}

    def divide(self, workers: int) -> float:
        """Before startup: so many workers will visit at once, none waiting for another.

        Where a visit is a batch, each worker may take a part of it, so that no more samples than those of one batch are
        under way at once. Returns that part: what a visit then is of a whole step.
        """
        return 1.0

    @abstractmethod
    def startup(self, feed: Any, seed: int) -> None:
        """Allocate and initialise `weights` if there are none, and bring them into the feed's order of ids."""

    def feed_from(self, data: Any, like: Any = None) -> Any:
        """What `hogwild.train` is given to train on, as a feed; like: one whose features it must have."""
        return data

    def __repr__(self) -> str:
        """The options that are not the usual ones, and how large the model is."""
        config = getattr(self, "config", None)
        given = []
        if config is not None:
            usual = {item.name: item.default for item in fields(config)}
            given = [f"{name}={value!r}" for name, value in vars(config).items() if value != usual.get(name)]
        return f"<{type(self).__name__}({', '.join(given)}): {self.described()}>"

    def described(self) -> str:
        """What there is of the model, in a few words."""
        if self.weights is None:
            return "not trained"
        return f"{sum(array.size for array in self.weights):,} numbers"

    def check_fit(self, feed: Any) -> None:
        """Raise InputError unless a feed has the features of this model, which has been started up."""

    def visits(self, feed: Any) -> int:
        """Visits in one epoch."""
        return len(feed)

    def epoch_samples(self, feed: Any) -> int:
        """Samples in one epoch: of a program whose visits are batches, not its visits."""
        return self.visits(feed)

    def units(self, feed: Any) -> int:
        """Units of work in one epoch (what throughput counts besides samples)."""
        return self.visits(feed)

    def started_notes(self) -> list[str]:
        """What the user should know once the program has seen the data, a sentence each."""
        if not self.small:
            return []
        return [f"the model to go on from is small ({self.small}): training begins at its rounded weights."]

    def tables(self) -> Mapping[str, Table]:
        """How each weight array is shared; by default one dense row for each entry of its first axis."""
        return {
            name: Table(rows=len(array), cells=int(np.prod(array.shape[1:])), kind="dense")
            for name, array in zip(self.weights._fields, self.weights, strict=True)
        }

    def row_ids(self, table: str) -> RowIds | None:
        """A name for each row of a table that all processes share, in whatever order this one has ranked its ids.

        None for a table that is the same everywhere. A process that has other rows exchanges by these names.
        """
        found = self.tables()[table]
        return np.arange(found.rows) if found.kind == "ranked" else None

    def stand_at(self, elapsed: float) -> None:
        """The workers are parked at this time of lazy regularization."""

    def settle_copy(self, weights: Any, step: Step) -> None:
        """Pay lazy regularization up to `step.elapsed` on the private rows that a worker pays for, before merging."""

    def settle(self, elapsed: float) -> bool:
        """Pay lazy regularization up to `elapsed`; the workers are parked. True if weights have changed."""
        return False

    def move_clock(self, before: float, now: float) -> None:
        """The time of lazy regularization, which was `before`, is `now`: what is owed stays what it is."""

    def renew(self) -> None:
        """Before a run that does not go on from the state of another: set the clocks of lazy regularization to zero."""

    def kept(self) -> Any:
        """A copy of what predicts; the workers are parked at the end of an epoch."""
        return type(self.weights)(*(array.copy() for array in self.weights))

    def take_back(self, kept: Any) -> None:
        """Predict again with what `kept` gave; the workers are parked."""
        for array, old in zip(self.weights, kept, strict=True):
            array[...] = old

    def for_part(self, feed: Any) -> Program:
        """After startup on a feed: the program as processes get it that have a part of its rows each, and start it up
        on that. What depends on all rows is settled."""
        raise ConfigError(f"a {type(self).__name__} needs all its data in one place; give a feed, not files in parts.")

    def finish(self, feed: Any) -> None:
        """Bring the weights back from the feed's order of ids."""

    def evaluate(self, feed: Any, threads: int = 1) -> Metrics:
        """Metrics on a feed, by lower-case name; `loss` among them. May be called where workers are parked.

        They are the same, bit for bit, whatever the number of threads.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it is evaluated")

    @property
    def best_by(self) -> str:
        """By which the best epoch is told where the user does not say it: a name of `TrainConfig.best_by`."""
        return "loss"

    @property
    def judged_by(self) -> tuple[str, ...]:
        """All that the best epoch may be told by, as far as is known; () where that is what `evaluate` gives."""
        return ()

    def judge(self, metrics: Metrics, loss: float) -> float:
        """By which an epoch is the best, the lower the better, where the user does not say it."""
        return self.judge_by(self.best_by, metrics, loss)

    def judge_by(self, name: str, metrics: Metrics, loss: float) -> float:
        """The same by one of the metrics; loss: that of training, where the validation data give none.

        Of epochs with the same accuracy or F the one with the lower loss is the better.
        """
        if name == "loss":
            return metrics.get("loss", loss)
        values = [value for key, value in metrics.items() if key.split("@")[0] == name]
        if not values:
            known = ", ".join(sorted({key.split("@")[0] for key in metrics})) or "none"
            raise ConfigError(
                f"best_by is {name}, which the validation data do not give (metrics are {known}); choose one that "
                "they give, or leave it out."
            )
        if name in FALLING:
            return values[0]
        found = max(0.0, metrics.get("loss", 0.0))
        return -values[0] + (_TIE * found / (1.0 + found) if name in _COUNTED else 0.0)

    def watchable(self) -> Mapping[str, Any]:
        """What can be watched by name: arrays, or functions of nothing that return one; workers may run."""
        return dict(zip(self.weights._fields, self.weights, strict=True))

    # -- going on from another: see programs/continuing.py --

    counted: ClassVar[Mapping[str, str]] = {}
    """Arrays whose first axis the user is told of, and what its names are."""

    def axes(self) -> Mapping[str, Sequence[Any]]:
        """What the rows, columns … of each array of `arrays()` are called, by which another program knows them too;
        None for an axis that is the same in all programs of these options."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its rows are called")

    def joined(self, feed: Any, old: Any, reopen: Any = None) -> Any:
        """A feed with all that an old program knows besides; reopen: reads it once more, like the feed it is given."""
        return feed

    def expect(self, old: Any, feed: Any) -> None:
        """Before startup: what an old program knows is to have a place here."""

    def take_rest(self, old: Any) -> None:
        """Take over from an old program what is not in rows."""

    # -- saving: see executor/readers/checkpoint.py --

    def options(self) -> dict[str, Any]:
        """What is needed to make an equal program with no weights; JSON values only."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it is saved")

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """Named arrays to save, in the features' own order; with `state` the update rule's memory too."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it is saved")

    def saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Options and arrays of a model on disk; those of a program that predicts the same, if that is smaller."""
        return self.options(), self.arrays()

    def compact(self, pruned: float) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Options and arrays of a small model, for use only, without what weighs least: a share of its rows, or so many
        of them; 0 for none. ConfigError where the rows of a program cannot be left out."""
        if pruned:
            raise ConfigError(
                f"pruned is {pruned:g}, and a {type(self).__name__} needs all its rows; use half or int8 alone."
            )
        return self.saved()

    @classmethod
    def earlier(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Saved options with what those that are newer than a model meant before there was a choice."""
        return dict(options)

    def recall(self, options: Mapping[str, Any]) -> None:
        """These are the options that were saved of a program like this one, before `restore`: of what training has
        settled, a program that the user gave may need to know."""

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over arrays made by `arrays`; checks names and shapes."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it is restored")


class CompiledProgram(Program):
    """A program whose visits are compiled code, chosen by the type of `task`, over `samples(feed)` and `weights`."""

    @property
    @abstractmethod
    def task(self) -> Any:
        """The NamedTuple whose type selects the compiled `gradient` and `apply`."""

    @abstractmethod
    def samples(self, feed: Any) -> Any:
        """The NamedTuple of arrays that compiled code reads."""

    @abstractmethod
    def room(self, feed: Any) -> Room:
        """How much scratch a visit needs at the most."""
