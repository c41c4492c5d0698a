"""What one `hogwild train` command differs in from the next: its program, its files, what it says at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from hogwild.config import ClusterConfig, SaveConfig, ShowConfig, TrainConfig, WatchConfig

if TYPE_CHECKING:  # the flags of all commands are read with this module: it is light
    from pathlib import Path

    from hogwild.executor.events import Finished
    from hogwild.executor.readers.checkpoint import Output


class RunOptions:
    """The flags that all training commands have; the dataclass of each says what they do and their defaults."""

    files: tuple[str, ...]
    valid: tuple[str, ...]
    train: TrainConfig
    save: SaveConfig
    watch: WatchConfig
    cluster: ClusterConfig
    show: ShowConfig


class Job(ABC):
    """One kind of training. `run.py` calls the methods in the order in which they stand here."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.train: TrainConfig = options.train

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

    def open_on(self, executor: Any, files: tuple[str, ...]) -> Any:
        """The training data of a run on several nodes: read here, and sent to them."""
        return self.open(files)

    @abstractmethod
    def open_valid(self, files: tuple[str, ...], feed: Any) -> Any:
        """The validation data, in the ids of the training data."""

    def identity(self, program: Any, feed: Any, valid: Any) -> dict[str, Any]:
        """What must be the same when a run goes on from a checkpoint."""
        from hogwild.executor.readers.checkpoint import identity_of

        return identity_of(program, self.train, feed, valid)

    def output(self, path: Path, feed: Any, keep_best: bool) -> Output:
        """What is saved beside the weights: how files become ids."""
        from hogwild.executor.readers.checkpoint import Output

        return Output(path, feed.schema, keep_best=keep_best)

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
