"""`hogwild train regressor`: the models of `hogwild train classifier`, for quantities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from hogwild.cli.commands import training
from hogwild.cli.flags import Page
from hogwild.cli.train.classifier import ClassifierJob
from hogwild.cli.train.job import RunOptions
from hogwild.config import ClusterConfig, FeedConfig, Files, SaveConfig, ShowConfig, WatchConfig
from hogwild.config.classifying import LinearRegressorConfig, Regressor, RegressorOptions
from hogwild.config.options import Shown
from hogwild.config.training import ClassifierTrainConfig

PAGE = Page(
    "hogwild train regressor",
    """Train a model of a quantity: linear, a factorization machine (--model fm), or embeddings with dense layers
(--model mlp). Its loss says what is predicted: the mean (squared; huber, where outliers count less), a quantile, or the
mean of counts (poisson).

Files may be svmlight, CSV, TSV, Parquet or Arrow, compressed or not.

Examples:
  hogwild train regressor homes.csv --label price --valid later.csv --output model
  hogwild train regressor homes.csv --label price --loss quantile --quantile 0.9 --output upper
  hogwild train regressor trips.parquet --label minutes --loss huber --huber-delta 5 --model mlp --output model
  hogwild train regressor visits.csv --label visits --loss poisson --weight days --output model""",
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
    model: Regressor = "linear"
    """Kind of model: linear, fm (factorization machine), or mlp (embeddings of features, then dense layers)."""
    own: RegressorOptions = field(default_factory=LinearRegressorConfig)
    train: ClassifierTrainConfig = field(default_factory=ClassifierTrainConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    feed: FeedConfig = field(default_factory=FeedConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


class RegressorJob(ClassifierJob):
    """A regression: there are no classes to weigh."""

    def more(self) -> dict[str, Any]:
        """Nothing."""
        return {}


run = training(RegressorJob)
