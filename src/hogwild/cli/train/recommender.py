"""`hogwild train recommender`: a matrix factorization on ratings or interactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.commands import training
from hogwild.cli.flags import Page
from hogwild.cli.train.job import Job, RunOptions
from hogwild.config import (
    ClusterConfig,
    Files,
    RatingConfig,
    RecommenderConfig,
    SaveConfig,
    ShowConfig,
    WatchConfig,
)
from hogwild.config.options import Config, Shown, require
from hogwild.config.training import RecommenderTrainConfig
from hogwild.messages import counted

if TYPE_CHECKING:
    from hogwild.feeds.ratings.feed import RatingFeed
    from hogwild.programs.recommender.program import MatrixFactorization

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
class Ranking(Config):
    """How rankings are measured."""

    top: int = 20
    """Measure the so many best items of each user, with --valid."""

    def check(self) -> None:
        require(self, "top", 1 <= self.top <= 10_000, "it must lie between 1 and 10000. Try 20.")


@dataclass(frozen=True)
class Options(RunOptions):
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("TRAIN...", positional=True)] = ()
    """Training files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation file, evaluated after each epoch; the model of the best epoch (RMSE or NDCG) is kept."""
    start: Annotated[str, Shown("MODEL")] = ""
    """A trained model to go on from, with more data: what it knows by name keeps its weights, what is new begins fresh.
    Options of the model and of reading are as there unless given."""
    given: Annotated[tuple[str, ...], Shown(hidden=True)] = ()
    """Options that were given; with --start the others are as in the model."""
    model: RecommenderConfig = field(default_factory=RecommenderConfig)
    train: RecommenderTrainConfig = field(default_factory=RecommenderTrainConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    ratings: RatingConfig = field(default_factory=RatingConfig)
    ranking: Ranking = field(default_factory=Ranking)
    watch: WatchConfig = field(default_factory=WatchConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


class RecommenderJob(Job):
    """A matrix factorization."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._arguments = self.go_on_from(options.start, "model") if options.start else None

    def make_program(self) -> MatrixFactorization:
        """The model that the flags ask for."""
        from hogwild.programs.recommender.program import MatrixFactorization

        program = MatrixFactorization(**(self._arguments or vars(self.options.model)))
        program.top = self.options.ranking.top
        return program

    def open(self, files: tuple[str, ...]) -> RatingFeed:
        """The ratings."""
        from hogwild.feeds.ratings.open import open_ratings

        return open_ratings(files, self.options.ratings)

    def open_valid(self, files: tuple[str, ...], feed: RatingFeed) -> RatingFeed:
        """Ratings in the users and items of training."""
        from hogwild.feeds.ratings.open import open_ratings

        return open_ratings(files, self.options.ratings, users=feed.users, items=feed.items)

    def started_notes(self, program: MatrixFactorization, feed: RatingFeed) -> list[str]:
        """How much there is to learn, and what is learnt."""
        import numpy as np

        what = "interaction" if feed.implicit or program.loss != "squared" else "rating"
        sizes = counted(len(feed), what), counted(len(feed.users), "user"), counted(len(feed.items), "item")
        users, items = program.penalties
        l2 = f"l2 {users:g}" if users == items else f"l2 {users:.3g} of users and {items:.3g} of items"
        notes = [f"{', '.join(sizes)}; loss {program.loss}, {l2}."]
        if program.loss != "squared":
            if not feed.implicit:
                notes.append("Ratings are not looked at: every pair of user and item counts alike (see --min-rating).")
            full = int(np.count_nonzero(np.diff(program.seen.offsets) >= len(program.items)))
            if full:
                notes.append(f"{counted(full, 'user')} with every item: nothing is learnt from them.")
        return notes

    def counts(self, program: MatrixFactorization, feed: RatingFeed) -> dict[str, Any]:
        """Sizes of the data and of the model."""
        return {
            "users": len(program.users), "items": len(program.items), "objective": program.loss, "l2": program.l2,
            "negatives": program.negatives,
        }  # fmt: skip


run = training(RecommenderJob)
