"""`hogwild train recommender`: the flags; recommender.py and training.py do the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from hogwild.cli.flags import Page
from hogwild.config import (
    Files,
    RatingConfig,
    RecommenderConfig,
    RecommenderTrainConfig,
    SaveConfig,
    ShowConfig,
    WatchConfig,
)
from hogwild.config.options import Shown, require

PAGE = Page(
    "hogwild train recommender",
    """Train a recommender by matrix factorization: from ratings, or from what users have (implicit feedback).

Files hold a user, an item and perhaps a rating a line, with tabs, commas, '::' or blanks between them; or a user and
all items a line; or they are Parquet or Arrow; compressed or not.

Examples:
  hogwild train recommender ratings.csv --valid test.csv --output movies
  hogwild train recommender ratings.dat --dim 100 --l2 0.05 --epochs 30 --output movies
  hogwild train recommender check-ins.txt.xz --loss bpr --valid held-out.txt --top 20 --output places
  hogwild train recommender ratings.csv --min-rating 4 --loss logistic --negatives 8 --output likes""",
)


@dataclass(frozen=True)
class Ranking:
    """How rankings are measured."""

    top: int = 20
    """Measure the so many best items of each user, with --valid."""

    def __post_init__(self) -> None:
        require(self, "top", 1 <= self.top <= 10_000, "it must lie between 1 and 10000. Try 20.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("TRAIN...", positional=True)] = ()
    """Training files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation file, evaluated after each epoch; the model of the best epoch (RMSE or NDCG) is kept."""
    ratings: RatingConfig = field(default_factory=RatingConfig)
    train: RecommenderTrainConfig = field(default_factory=RecommenderTrainConfig)
    model: RecommenderConfig = field(default_factory=RecommenderConfig)
    ranking: Ranking = field(default_factory=Ranking)
    save: SaveConfig = field(default_factory=SaveConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Train; returns the exit code."""
    from hogwild.cli.train.recommender import RecommenderJob  # here: they need everything there is
    from hogwild.cli.train.run import run_training

    return run_training(options, RecommenderJob(options))
