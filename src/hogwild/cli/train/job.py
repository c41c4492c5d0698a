"""What one `hogwild train` command differs in from the next: its program, its files, what it says at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hogwild.config import ClusterConfig, SaveConfig, ShowConfig, TrainConfig, WatchConfig
from hogwild.errors import ConfigError

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
        self.old: Any = None  # the program to go on from

    def go_on_from(self, start: str, part: str) -> dict[str, Any]:
        """The model that --start names, whose options stand for those that were not given; part: where those of the
        model are. Returns the arguments of a program that goes on from it."""
        from hogwild.programs.continuing import fitting_options, model_of

        self.old = model_of(start)
        own, kind = getattr(self.options, part), self.old.config
        names = (*self.options.given, *(("wide", "field_aware") if "model" in self.options.given else ()))
        if not isinstance(own, type(kind)) and ("model" in self.options.given or part == "model"):
            raise ConfigError(f"{start}: is a model of another kind ({self.old.name}); train a new one.")
        given = {name: getattr(own, name) for name in names if hasattr(own, name) and hasattr(kind, name)}
        arguments = fitting_options(self.old, given)
        settled = {name: tuple(value) if isinstance(value, list) else value for name, value in arguments.items()}
        config = replace(kind, **{name: value for name, value in settled.items() if hasattr(kind, name)})
        self.options = replace(self.options, **{part: config})
        return arguments

    def join(self, program: Any, files: tuple[str, ...], feed: Any) -> Any:
        """The training data with all that the model to start from knows besides."""
        from hogwild.programs.continuing import join

        if "-" in files:
            raise ConfigError("--start reads the data twice, and standard input comes once; give a file.")
        return join(program, self.old, feed, lambda like: self.open_valid(files, like))

    def inputs(self) -> list[str]:
        """Files that are read besides those to train on and to validate with."""
        return []

    def models(self) -> list[str]:
        """Models that are read."""
        return [getattr(self.options, "start", "")]

    @abstractmethod
    def make_program(self) -> Any:
        """The program without weights; raises for what is wrong without the data."""

    @abstractmethod
    def open(self, files: tuple[str, ...]) -> Any:
        """The training data."""

    def open_on(self, executor: Any, files: tuple[str, ...]) -> Any:
        """The training data of a run on several nodes: read here and sent to them, unless they read it themselves."""
        return self.open(files)

    @abstractmethod
    def open_valid(self, files: tuple[str, ...], feed: Any) -> Any:
        """The validation data, in the ids of the training data."""

    def hold_out(self, feed: Any, valid: Any) -> Any:
        """The data with what --valid-share or --valid-last hold out of it, and a sentence on that."""
        from hogwild.feeds.held_out import hold_out

        return hold_out(self.train, feed, valid)

    def identity(self, program: Any, feed: Any, valid: Any) -> dict[str, Any]:
        """What must be the same when a run goes on from a checkpoint."""
        from hogwild.executor.readers.checkpoint import digest_of, identity_of

        same = identity_of(program, self.train, feed, valid)
        return same if self.old is None else {**same, "start data": digest_of(self.old.arrays())}

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
