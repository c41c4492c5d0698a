"""What one `hogwild train` command differs in from the next: its program, its files, what it says at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

from hogwild.config import SaveConfig, ShowConfig, TrainConfig, WatchConfig

if TYPE_CHECKING:  # the flags of all commands are read with this module: it is light
    from pathlib import Path

    from hogwild.executor.events import Finished
    from hogwild.executor.readers.checkpoint import Output


class RunOptions(Protocol):
    """The flags that all training commands have."""

    @property
    def files(self) -> tuple[str, ...]:
        """Training files."""

    @property
    def valid(self) -> tuple[str, ...]:
        """Validation files."""

    @property
    def save(self) -> SaveConfig:
        """What is written."""

    @property
    def watch(self) -> WatchConfig:
        """What is looked at."""

    @property
    def show(self) -> ShowConfig:
        """What is printed."""


class Job(ABC):
    """One kind of training. `run.py` calls the methods in the order in which they stand here."""

    train: TrainConfig
    """How it runs, all defaults filled in."""

    def inputs(self) -> list[str]:
        """Files that are read besides those to train on and to validate with."""
        return []

    def models(self) -> list[str]:
        """Models that are read."""
        return []

    @abstractmethod
    def make_program(self) -> Any:
        """The program without weights; raises for what is wrong without the data."""

    @abstractmethod
    def open(self, files: tuple[str, ...]) -> Any:
        """The training data."""

    @abstractmethod
    def open_valid(self, files: tuple[str, ...], feed: Any) -> Any:
        """The validation data, in the ids of the training data."""

    def identity(self, program: Any, feed: Any, valid: Any) -> dict[str, Any]:
        """What must be the same when a run goes on from a checkpoint."""
        from hogwild.executor.readers.checkpoint import identity_of

        return identity_of(program, self.train, feed, valid)

    @abstractmethod
    def output(self, path: Path, feed: Any, keep_best: bool) -> Output:
        """What is saved beside the weights."""

    def started_notes(self, program: Any, feed: Any) -> list[str]:
        """What to say once the program has seen the data."""
        return []

    def counts(self, program: Any, feed: Any) -> dict[str, Any]:
        """Sizes for the JSON object."""
        return {}

    def training_metrics(self, program: Any, feed: Any, finished: Finished, threads: int) -> dict[str, float]:
        """How good the model is, where there is no validation data and the run was not interrupted."""
        found: dict[str, float] = program.evaluate(feed, threads)
        return found
