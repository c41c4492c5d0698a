"""`hogwild experiment asyngrad`: the flags; experimenting.py and observe/theory/asyngrad.py do the work."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from hogwild.cli.flags import Page
from hogwild.config import AsynGradConfig, File, ShowConfig, TaggingConfig
from hogwild.config.options import Shown
from hogwild.errors import ConfigError

PAGE = Page(
    "hogwild experiment asyngrad",
    """Repeat the experiment of AsynGrad on your data: train a CRF with one thread (SGD), with threads that wait for
each other (round-robin), with threads that overwrite each other (AsynGrad), and so with structure regularization.

The JSON object has, for each iteration and thread, how many gradients were wrong and by how much, the score on the
test file, the seconds, and the speed-up for each number of threads. docs/experiments.md describes it.

Without --train the text is made up, and the experiment takes half a minute once all is compiled.

Examples:
  hogwild experiment asyngrad
  hogwild experiment asyngrad --task chunking --train train.txt --test test.txt --output chunking.json
  hogwild experiment asyngrad --task pos --train en.conllu --test en-test.conllu --threads 1 2 4 --output pos.json
  hogwild experiment asyngrad --task segmentation --train words.txt --test test.txt --seeds 1 --json""",
)


@dataclass(frozen=True)
class ReadConfig(TaggingConfig):
    """How tagged text is read."""

    features: Annotated[str, Shown("chunking|pos|segmentation|FILE")] = ""
    """Feature templates: a preset, or a file of templates. Default: those of the task."""

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        if self.features:
            super().check()
        else:
            replace(self, features="chunking")  # all else is checked


@dataclass(frozen=True)
class TextConfig:
    """The text, and where the results go."""

    train: File = ""
    """Tagged text to train on. Default: made up."""
    test: File = ""
    """Tagged text to measure the score on, after each iteration."""
    output: Annotated[str, Shown("FILE.json")] = ""
    """File of the results, written anew after each run. Default: only a table is shown."""

    def __post_init__(self) -> None:
        if bool(self.train) != bool(self.test):
            given, missing = ("train", "test") if self.train else ("test", "train")
            raise ConfigError(f"--{given} is there without --{missing}; give both, or neither for made-up text.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    text: TextConfig = field(default_factory=TextConfig)
    runs: AsynGradConfig = field(default_factory=AsynGradConfig)
    read: ReadConfig = field(default_factory=ReadConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Make all runs; returns the exit code."""
    from hogwild.cli.experimenting import run_experiment  # here: it needs everything there is

    return run_experiment(options)
