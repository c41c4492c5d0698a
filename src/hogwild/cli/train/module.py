"""`hogwild train module`: a PyTorch module of the user's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.commands import training
from hogwild.cli.flags import Page
from hogwild.cli.train.job import Job, RunOptions
from hogwild.config import ClusterConfig, FeedConfig, Files, SaveConfig, ShowConfig, WatchConfig
from hogwild.config.options import Shown
from hogwild.config.training import ModuleTrainConfig
from hogwild.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from hogwild.executor.readers.checkpoint import Output

PAGE = Page(
    "hogwild train module",
    """Train a PyTorch module with workers that are processes over one set of weights, without locks.

PROGRAM names a function without parameters that returns a hogwild.pytorch.TorchProgram: the module, its loss and its
optimizer. Files are read as for other models, unless the program reads them itself.

Examples:
  hogwild train module clicks:make_program 'part-*.txt' --slots slots.toml --valid test.txt --output model
  hogwild train module sentiment:make_program reviews.tsv.gz --threads 2 --epochs 3 --output sentiment
  hogwild train module package.module:make_program data.csv --label y --watch 'norm(output.weight)' --json""",
)


@dataclass(frozen=True)
class Options(RunOptions):
    """All flags of the command."""

    program: Annotated[str, Shown("PROGRAM", positional=True)] = ""
    """Function that makes the program: package.module:function."""
    files: Annotated[tuple[str, ...], Shown("DATA...", positional=True)] = ()
    """Training files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation file, evaluated after each epoch; the model of the best epoch is kept."""
    train: ModuleTrainConfig = field(default_factory=ModuleTrainConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    feed: FeedConfig = field(default_factory=FeedConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    show: ShowConfig = field(default_factory=ShowConfig)

    cluster = ClusterConfig()  # no flags: workers share the memory of one machine


class ModuleJob(Job):
    """A module."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.feed: FeedConfig = options.feed
        self.program: Any = None

    def inputs(self) -> list[str]:
        """Descriptions of slots, given or found beside the files."""
        from hogwild.feeds.open import description_path

        return [self.feed.slots, *(str(description_path(file)) for file in (*self.options.files, *self.options.valid))]

    def make_program(self) -> Any:
        """What the user's function returns."""
        from hogwild.cli.own import program_from
        from hogwild.pytorch import require_torch

        require_torch()
        self.program = program_from(self.options.program)
        if self.program.name != "module":
            name = type(self.program).__name__
            raise ConfigError(f"{self.options.program}() returned a {name}; here it is a hogwild.pytorch.TorchProgram.")
        self.feed = replace(self.feed, layout="slots" if self.program.slots else self.feed.layout)
        return self.program

    def open(self, files: tuple[str, ...]) -> Any:
        """A feed, or what the program makes of the files."""
        return self._opened(files, None)

    def open_valid(self, files: tuple[str, ...], feed: Any) -> Any:
        """The same in the features of the training data."""
        return self._opened(files, feed.schema or None)

    def _opened(self, files: tuple[str, ...], schema: Any) -> Any:
        from hogwild.feeds.open import open_feed

        if self.program.read is not None:
            return self.program.feed_from(self.program.read(files))
        return open_feed(files, self.feed, schema=schema)

    def output(self, path: Path, feed: Any, keep_best: bool) -> Output:
        """With the weights go the labels, and how files become features."""
        from hogwild.executor.readers.checkpoint import Output

        return Output(path, feed.schema, None if self.program.read else self.feed, feed.labels, keep_best)

    def counts(self, program: Any, feed: Any) -> dict[str, Any]:
        """What was trained, and how large it is."""
        options = program.options()
        return {"made_by": options["made_by"], "numbers": program.numbers, "optimizer": options["optimizer"]}


run = training(ModuleJob)
