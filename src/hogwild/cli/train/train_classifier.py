"""`hogwild train classifier`: the flags; classifier.py and training.py do the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from hogwild.cli.flags import Page
from hogwild.config import ClassifierConfig, FeedConfig, Files, SaveConfig, ShowConfig, TrainConfig, WatchConfig
from hogwild.config.options import Shown

PAGE = Page(
    "hogwild train classifier",
    """Train a classifier (two classes or many): linear, a factorization machine (--model fm, two classes),
embeddings with dense layers (--model mlp), or of texts by averaged embeddings of words and n-grams (--model text).
With --loss squared, a regression.

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
class Options:
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("TRAIN...", positional=True)] = ()
    """Training files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation file, evaluated after each epoch; the model of the best epoch is kept."""
    train: TrainConfig = field(default_factory=TrainConfig)
    model: ClassifierConfig = field(default_factory=ClassifierConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    feed: FeedConfig = field(default_factory=FeedConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Train; returns the exit code."""
    from hogwild.cli.train.classifier import ClassifierJob  # here: they need everything there is
    from hogwild.cli.train.run import run_training

    return run_training(options, ClassifierJob(options))
