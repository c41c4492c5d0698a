"""The job of `hogwild train recommender`: a matrix factorization on ratings or interactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hogwild.cli.train.job import Job
from hogwild.cli.train.train_recommender import Options
from hogwild.executor.events import Finished
from hogwild.executor.readers.checkpoint import Output
from hogwild.feeds.ratings.feed import RatingFeed
from hogwild.feeds.ratings.open import open_ratings
from hogwild.messages import counted
from hogwild.programs.recommender.program import MatrixFactorization


class RecommenderJob(Job):
    """A matrix factorization."""

    def __init__(self, options: Options) -> None:
        self.options, self.train = options, options.train

    def make_program(self) -> MatrixFactorization:
        """The model that the flags ask for."""
        program = MatrixFactorization(**vars(self.options.model))
        program.top = self.options.ranking.top
        return program

    def open(self, files: tuple[str, ...]) -> RatingFeed:
        """The ratings."""
        return open_ratings(files, self.options.ratings)

    def open_valid(self, files: tuple[str, ...], feed: RatingFeed) -> RatingFeed:
        """Ratings in the users and items of training."""
        return open_ratings(files, self.options.ratings, users=feed.users, items=feed.items)

    def output(self, path: Path, feed: RatingFeed, keep_best: bool) -> Output:
        """With the model go the names of users and items, which are its own."""
        return Output(path, feed.schema, keep_best=keep_best)

    def started_notes(self, program: MatrixFactorization, feed: RatingFeed) -> list[str]:
        """How much there is to learn, and what is learnt."""
        what = "interaction" if feed.implicit or program.loss != "squared" else "rating"
        sizes = counted(len(feed), what), counted(len(feed.users), "user"), counted(len(feed.items), "item")
        notes = [f"{', '.join(sizes)}; loss {program.loss}, l2 {program.l2:g}."]
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
            "users": len(program.users),
            "items": len(program.items),
            "objective": program.loss,
            "l2": program.l2,
            "negatives": program.negatives,
        }

    def training_metrics(
        self, program: MatrixFactorization, feed: RatingFeed, finished: Finished, threads: int
    ) -> dict[str, float]:
        """Metrics on the training data."""
        return program.evaluate(feed, threads)
