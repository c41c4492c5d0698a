"""The experiment of Hogwild: a sparse problem learnt without locks, with locks, in turns, and by one thread.

As in Niu, Recht, Ré and Wright (2011): a linear model, or a factorization of ratings, with one copy of the weights.
`locked` takes the locks of the rows that a visit touches (their AIG), `round-robin` lets threads write in turn (their
RR). Gradient errors come from runs with a trace, everything else from runs without.
"""

from __future__ import annotations

from typing import Any

from hogwild.config import Mode
from hogwild.config.experiments import HogwildFactorsConfig, HogwildLinearConfig
from hogwild.errors import ConfigError, InputError
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.ratings.feed import RatingFeed
from hogwild.feeds.sparse.feed import Feed
from hogwild.observe.experiments import frame
from hogwild.observe.experiments.comparing import compare
from hogwild.observe.experiments.files import data_digest
from hogwild.observe.experiments.frame import Run, Training
from hogwild.programs.recommender.program import MatrixFactorization
from hogwild.programs.sparse.linear import Linear

METHODS: tuple[Mode, ...] = ("serial", "hogwild", "locked", "round-robin")

AnyConfig = HogwildLinearConfig | HogwildFactorsConfig
AnyFeed = Feed | RatingFeed


def plan_runs(config: AnyConfig) -> list[Run]:
    """All runs in their order: what is compared is near in time."""
    found: list[Run] = []
    for seed in config.seed_list:
        found.append(Run(METHODS[0], 1, seed))
        found += [Run(mode, count, seed) for count in config.counts for mode in METHODS[1:]]
        if seed == config.seed:
            found += [Run("hogwild", count, seed, traced=True) for count in config.counts]
    return found


class Experiment(frame.Experiment[Run]):
    """All runs, and what came of them so far.

    Examples
    --------
    >>> train, test = hogwild.open_feed("train.svm"), hogwild.open_feed("test.svm")             # doctest: +SKIP
    >>> experiment = Experiment(HogwildLinearConfig(small=True), train, test)                   # doctest: +SKIP
    >>> for run, event in experiment.run():                                                     # doctest: +SKIP
    ...     pass
    >>> experiment.record()["methods"][-1]["speed_up"]                                          # doctest: +SKIP
    1.4
    """

    schema = "hogwild.hogwild"

    def __init__(self, config: AnyConfig, train: AnyFeed, test: AnyFeed) -> None:
        super().__init__(plan_runs(config))
        self.config, self.train, self.test = config, train, test
        if isinstance(train, RatingFeed):
            self.score = "rmse"
            if train.implicit or (isinstance(test, RatingFeed) and test.implicit):
                raise InputError(f"{train.source}: there are no ratings; a factorization of ratings needs them.")
        else:
            self.score = "accuracy"
            if train.sets:
                raise InputError(f"{train.source}: rows have several labels; this experiment is for one each.")
        if isinstance(train, RatingFeed) != isinstance(config, HogwildFactorsConfig):
            raise ConfigError("the data is not of this problem; give rows for linear, ratings for factorization.")
        self._data = {"train": _facts(train), "test": _facts(test)}

    def facts(self, run: Run) -> dict[str, Any]:
        """What tells this run from the others."""
        return {
            "method": run.method, "mode": run.method, "threads": run.threads, "seed": run.seed, "traced": run.traced,
        }  # fmt: skip

    def training(self, run: Run) -> Training:
        """An executor with one copy of the weights, and a model."""
        mode: Mode = next(mode for mode in METHODS if mode == run.method)
        executor = AsyncExecutor(
            run.threads, mode, "all", epochs=self.config.iterations, lr=self.config.rate, seed=run.seed,
            trace=run.traced,
        )  # fmt: skip
        return Training(executor, self._program(), self.train, self.test)

    def _program(self) -> Linear | MatrixFactorization:
        return MatrixFactorization(**self._model()) if self.score == "rmse" else Linear(**self._model())

    def _model(self) -> dict[str, Any]:
        config = self.config
        if isinstance(config, HogwildFactorsConfig):
            return {"dim": config.dim, "loss": "squared", "optimizer": config.optimizer, "l2": config.l2}
        return {"loss": config.loss, "optimizer": config.optimizer, "l2": config.l2}

    def about(self) -> dict[str, Any]:
        """The model and the problem."""
        return {"model": self._program().name, "task": self.config.problem}

    def options(self) -> dict[str, Any]:
        """Those of the runs and of the model."""
        config = self.config
        return {
            "threads": list(config.counts), "iterations": config.iterations, "lr": config.rate,
            "seeds": config.seed_list, "sharing": "all", **self._model(),
        }  # fmt: skip

    def data(self) -> dict[str, Any]:
        """Rows and features, or ratings, users and items."""
        return self._data

    def compared(self) -> list[dict[str, Any]]:
        """Each mode and number of threads, against one thread."""
        return compare(self.records, METHODS)

    def notes(self) -> list[str]:
        """Of the data, and of threads without a core."""
        found = [*self.train.notes, *(f"test: {note}" for note in self.test.notes)]
        return [*found, *frame.crowding(max(self.config.counts))]


def _facts(feed: AnyFeed) -> dict[str, Any]:
    if isinstance(feed, RatingFeed):
        sizes = {"users": len(feed.users), "items": len(feed.items)}
        digest = data_digest(feed.samples, feed.users, feed.items)
    else:
        sizes = {"features": feed.features, "nonzeros": feed.nonzeros}
        digest = data_digest(feed.samples, feed.labels)
    return {"source": feed.source, "rows": len(feed), **sizes, "digest": digest}
