"""`hogwild train classifier`: a model on labelled files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import hogwild
from hogwild.cli.commands import training
from hogwild.cli.flags import Page
from hogwild.cli.train.job import Job, RunOptions
from hogwild.config import ClusterConfig, FeedConfig, Files, SaveConfig, ShowConfig, WatchConfig
from hogwild.config.classifying import ClassConfig, Classifier, ClassifierOptions
from hogwild.config.models import FMConfig, LinearConfig, SparseMLPConfig, TextConfig
from hogwild.config.options import Shown
from hogwild.config.training import ClassifierTrainConfig
from hogwild.errors import ConfigError
from hogwild.messages import listed

if TYPE_CHECKING:
    from pathlib import Path

    from hogwild.executor.events import Finished
    from hogwild.executor.readers.checkpoint import Output
    from hogwild.feeds.sparse.feed import Feed

PAGE = Page(
    "hogwild train classifier",
    """Train a classifier (two classes or many): linear, a factorization machine (--model fm, two classes),
embeddings with dense layers (--model mlp), or of texts by averaged embeddings of words and n-grams (--model text).
For quantities there is hogwild train regressor.

Files may be svmlight, CSV, TSV, Parquet, Arrow or 'label<TAB>text' lines, compressed or not.

Examples:
  hogwild train classifier train.svm --valid test.svm --output model
  hogwild train classifier reviews.tsv.gz --ngrams 2 --epochs 3 --output sentiment
  hogwild train classifier reviews.tsv.gz --model text --valid test.tsv.gz --output sentiment
  hogwild train classifier clicks.csv --label clicked --model fm --dim 16 --l2-factors 1e-5 --output clicks
  hogwild train classifier clicks-*.csv --label clicked --ignore id --balanced --json
  hogwild train classifier train.svm --mode serial --trace --watch 'norm(weights)' --log-dir logs""",
)


@dataclass(frozen=True)
class Options(RunOptions):
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("TRAIN...", positional=True)] = ()
    """Training files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation file, evaluated after each epoch; the model of the best epoch is kept."""
    start: Annotated[str, Shown("MODEL")] = ""
    """A trained model to go on from, with more data: what it knows by name keeps its weights, what is new begins fresh.
    Options of the model and of reading are as there unless given."""
    given: Annotated[tuple[str, ...], Shown(hidden=True)] = ()
    """Options that were given; with --start the others are as in the model."""
    model: Classifier = "linear"
    """Kind of model: linear, fm (factorization machine), mlp (embeddings of features, then dense layers), or text
    (averaged embeddings of words and n-grams, then a linear layer)."""
    own: ClassifierOptions = field(default_factory=LinearConfig)
    train: ClassifierTrainConfig = field(default_factory=ClassifierTrainConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    feed: FeedConfig = field(default_factory=FeedConfig)
    classes: ClassConfig = field(default_factory=ClassConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


PROGRAMS = {
    LinearConfig: "Linear", FMConfig: "FactorizationMachine", SparseMLPConfig: "SparseMLP",
    TextConfig: "TextClassifier",
}  # fmt: skip


class ClassifierJob(Job):
    """A classifier or regression. Models that tell slots apart read columns as slots and dense numbers."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._arguments: dict[str, Any] = {}
        if options.start:
            self._arguments = self.go_on_from(options.start, "own")
            known = {name: value for name, value in vars(self.old.feed_config or options.feed).items()
                     if name not in (*options.given, "pipe", "cache", "layout")}  # fmt: skip
            options = self.options = replace(self.options, feed=replace(options.feed, **known))
        if options.feed.interactions and not isinstance(options.own, LinearConfig):
            raise ConfigError("--interactions is for linear models, and --model says another; leave one of them out.")
        slots = isinstance(options.own, SparseMLPConfig) or getattr(options.own, "field_aware", False)
        self.feed = replace(options.feed, layout="slots" if slots else options.feed.layout)

    def inputs(self) -> list[str]:
        """Descriptions of slots, given or found beside the files."""
        from hogwild.feeds.open import description_path

        return [self.feed.slots, *(str(description_path(file)) for file in (*self.options.files, *self.options.valid))]

    def make_program(self) -> Any:
        """The model that the flags ask for."""
        own = self.options.own
        if self.old is not None:
            given = {name: value for name, value in self.more().items() if value}
            return type(self.old)(**{**self._arguments, **given})
        program = getattr(hogwild, next(name for config, name in PROGRAMS.items() if isinstance(own, config)))
        return program(**vars(own), **self.more())

    def more(self) -> dict[str, Any]:
        """Arguments of the program beside those of its model."""
        return {"class_weight": self.options.classes.weights()}

    def open(self, files: tuple[str, ...]) -> Feed:
        """The labelled files."""
        from hogwild.feeds.open import open_feed

        config = self.feed
        if self.old is not None:
            from hogwild.programs.continuing import first_reading

            config = first_reading(config, self.old.schema)
        return self._checked(open_feed(files, config))

    def open_on(self, executor: Any, files: tuple[str, ...]) -> Feed:
        """Read by the nodes, each its part, where files can be cut at the ends of lines and nothing is held out."""
        from hogwild.cluster import Rows
        from hogwild.feeds.parted import WholeError

        if self.old is not None or self.train.valid_share or self.train.valid_last:
            return self.open(files)
        try:
            return self._checked(executor.open(Rows(files, self.feed)))
        except WholeError as error:
            feed = self.open(files)
            return replace(feed, notes=(*feed.notes, f"The data is read here, and sent to the nodes: {error}"))

    def training_metrics(self, program: Any, feed: Feed, finished: Finished, threads: int) -> dict[str, float]:
        """Of rows that are with the nodes the loss of the last epoch."""
        return {"loss": finished.loss} if feed.away else super().training_metrics(program, feed, finished, threads)

    def _checked(self, feed: Feed) -> Feed:
        schema = feed.schema
        if isinstance(self.options.own, TextConfig) and schema.get("format") == "table" and not schema["text"]:
            names = listed([name for name in schema["columns"] if name != schema["label"]])
            raise ConfigError(f"{feed.source}: which column is the text? Say it with --text; there are {names}.")
        return feed

    def open_valid(self, files: tuple[str, ...], feed: Feed) -> Feed:
        """Labelled files, in the features of the training data."""
        from hogwild.feeds.open import open_feed

        return open_feed(files, self.feed, schema=feed.schema)

    def output(self, path: Path, feed: Feed, keep_best: bool) -> Output:
        """With the model go its labels, and how files become features."""
        from hogwild.executor.readers.checkpoint import Output

        return Output(path, feed.schema, self.feed, feed.labels, keep_best)


run = training(ClassifierJob)
