"""`hogwild train ctr`: a classifier of two classes on logs with slots."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.commands import training
from hogwild.cli.flags import Page
from hogwild.cli.train.classifier import ClassifierJob
from hogwild.cli.train.job import RunOptions
from hogwild.config import (
    ClusterConfig,
    FeedConfig,
    Files,
    SaveConfig,
    ShowConfig,
    SparseMLPConfig,
    WatchConfig,
)
from hogwild.config.classifying import ClassConfig, Ctr, CtrOptions
from hogwild.config.options import Shown
from hogwild.config.training import ClickTrainConfig
from hogwild.errors import InputError

if TYPE_CHECKING:
    from hogwild.feeds.sparse.feed import Feed

PAGE = Page(
    "hogwild train ctr",
    """Train a model of clicks (label 0 or 1) on logs with categories in slots and numbers beside them: embeddings with
dense layers, wide and deep, factorization machines, or linear.

Files may be MultiSlot text (--slots describes them), TFRecord, Criteo's TSV, CSV, TSV, Parquet, libffm or svmlight,
compressed or not.

Examples:
  hogwild train ctr 'part-*.txt' --slots slots.toml --valid test.txt --output model
  hogwild train ctr clicks.csv --label click --ignore id --model wide-deep --output model
  hogwild train ctr day_0.gz --format criteo --categories hash --hash-bits 24 --dim 16 --hidden 400,400,400
  hogwild train ctr train.ffm --model ffm --dim 4 --valid test.ffm --json""",
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
    model: Ctr = "mlp"
    """Kind of model: mlp (embeddings, then dense layers), wide-deep (the same plus a linear model), fm (factorization
    machine), ffm (field-aware), or linear."""
    own: CtrOptions = field(default_factory=SparseMLPConfig)
    train: ClickTrainConfig = field(default_factory=ClickTrainConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    feed: FeedConfig = field(default_factory=FeedConfig)
    classes: ClassConfig = field(default_factory=ClassConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


_PAIRS = ({0.0, 1.0}, {-1.0, 1.0})


class CtrJob(ClassifierJob):
    """A model of clicks."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.feed = replace(self.feed, layout="flat" if self.feed.interactions else "slots")

    def open(self, files: tuple[str, ...]) -> Feed:
        """Logs whose labels are clicks."""
        return _with_clicks(super().open(files))

    def open_on(self, executor: Any, files: tuple[str, ...]) -> Feed:
        """The same, read by the nodes where they can."""
        return _with_clicks(super().open_on(executor, files))

    def started_notes(self, program: Any, feed: Feed) -> list[str]:
        """The share of clicks, which loss and calibration are to be judged by."""
        return [f"{len(feed):,} samples, {100 * float((feed.samples.targets > 0).mean()):.2f} % of them clicks."]


def _with_clicks(feed: Feed) -> Feed:
    feed.one_label("a model of clicks")
    if feed.labels:
        if len(feed.labels) != 2:
            raise InputError(f"{feed.source}: there are {len(feed.labels)} labels; clicks have two, 0 and 1.")
        return feed
    import numpy as np

    targets = feed.samples.targets
    distinct = np.unique(targets)
    if not any(set(distinct.tolist()) <= pair for pair in _PAIRS):
        row = int(np.flatnonzero((targets != 0) & (targets != 1))[0])
        raise InputError(
            f"{feed.place(row)}: the label is {targets[row]:g}; clicks are 0 or 1. Is it the right column (--label)?"
        )
    return feed


run = training(CtrJob)
