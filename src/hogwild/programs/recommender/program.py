"""Recommenders: a vector for every user and every item, learnt from ratings or from what users have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Interactions, Ratings, Room, Table
from hogwild.config import RatingConfig, RecommenderConfig, RecommenderTrainConfig, TrainConfig
from hogwild.config.arguments import config_of, taking
from hogwild.errors import ConfigError, InputError, ModelError, brief, shorten
from hogwild.feeds.ratings.feed import RatingFeed
from hogwild.feeds.ratings.open import open_ratings, ratings_of
from hogwild.feeds.ratings.read import choose_columns
from hogwild.kernels.optim.losses import Squared
from hogwild.kernels.optim.rules import row_cells, row_table
from hogwild.kernels.parse.ratings import NONE
from hogwild.kernels.sparse.factorization import FactorTask, FactorWeights, Pairwise, Rated, Sampled, Shape
from hogwild.machine import check_memory
from hogwild.messages import counted
from hogwild.programs.program import Metrics, RowIds, plain_constants
from hogwild.programs.recommender import ranking as recommending
from hogwild.programs.recommender.alternating import Alternating, check_options
from hogwild.programs.recommender.neighbors import Alike, alike, rows_of
from hogwild.programs.recommender.ranking import Factors, Seen
from hogwild.programs.recommender.weights import PLAIN, choose_unit, pack_state, range_of, seen_of, unit_of, unpack
from hogwild.programs.row_ids import hash_names
from hogwild.programs.rows import RowProgram
from hogwild.programs.sparse.supervised import rule_and_penalty

_KINDS = {"squared": Rated(Squared()), "logistic": Sampled(), "bpr": Pairwise(), "weighted": Pairwise()}
_NEGATIVES = {"squared": 0, "logistic": 4, "bpr": 1, "weighted": 1}
_PENALTIES = {"logistic": 0.01, "bpr": 0.04}  # of a visit; measured: docs/guide-recommender.md
_ALPHA = 40.0
_WORTH, _LEAST, _MOST = 5.0, 0.04, 1.0  # penalty of ratings: of an average row in all; of a visit at least, at most
_SOLVED = 4.0  # so much for an average row by least squares
_RATES = {"adagrad": 0.1, "sgd": 0.05}
_PIECE = 1 << 14  # rows that are drawn at a time: no second table in memory


@taking(RecommenderConfig)
class MatrixFactorization(RowProgram):
    """A recommender: the score of a user and an item is a mean, their biases and the product of their vectors.

    Parameters
    ----------
    users, items : names that it is to have; those of the first feed by default.
    constants : constants of the update rule by name.

    Attributes
    ----------
    unknown : ratings of the last scored feed whose user, and whose item, the model does not know.
    repeated : pairs of the last evaluated feed that were in training, and so cannot be recommended.
    top : items of a list that `evaluate` measures.

    Examples
    --------
    >>> feed = hogwild.open_ratings("ratings.csv")                                      # doctest: +SKIP
    >>> program = hogwild.train(hogwild.MatrixFactorization(dim=32), feed, epochs=20)   # doctest: +SKIP
    >>> program.recommend("ann", 1)                                                     # doctest: +SKIP
    [('tea', 4.8)]
    """

    name = "matrix-factorization"
    unit = "ratings"
    sharing = "all"  # rows are many and wide: merging private ones costs more than it saves
    training = RecommenderTrainConfig

    def __init__(
        self, *values: Any, users: Sequence[str] = (), items: Sequence[str] = (),
        constants: Mapping[str, float] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.config = config = config_of(self, RecommenderConfig, values, options)
        self.loss: str = "weighted" if config.solver == "als" else config.loss
        self.users, self.items = tuple(users), tuple(items)
        _check_names((*self.users, *self.items))
        self.constants = plain_constants(constants)
        self.mean, self.lowest, self.highest = 0.0, 0.0, 0.0
        self.scale = 1.0  # ratings are learnt in this unit, so that rates and penalties fit stars and percents alike
        self._ratings = 0  # of the last training
        self.seen = Seen(np.zeros(len(self.users) + 1, np.int64), np.zeros(0, np.int32))
        self.unknown, self.repeated, self.top = (0, 0), 0, 20
        self._known: dict[str, dict[str, int]] = {}
        self._one: tuple[Any, Factors] | None = None
        self._choose_rule()

    def _choose_rule(self) -> None:
        """Rows that are solved for are vectors and nothing else."""
        name = "sgd" if self.solves else self.config.optimizer
        self._rule, self._penalty = rule_and_penalty(name, self.constants, 0.0, self.config.shrink)

    # -- for the executor -------------------------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Learning rate where the user gives none."""
        return _RATES.get(self.config.optimizer, 0.01)

    @property
    def width(self) -> int:
        """Numbers of a row: the vector, and the bias."""
        return self.config.dim + self.biased

    @property
    def solves(self) -> bool:
        """Whether it is trained by alternating least squares."""
        return self.loss == "weighted"

    @property
    def biased(self) -> bool:
        """Whether biases are learnt."""
        return self.config.bias and not self.solves

    @property
    def alpha(self) -> float:
        """By least squares: how much a pair that is there counts against one that is not."""
        return _ALPHA if self.config.alpha is None else self.config.alpha

    @property
    def negatives(self) -> int:
        """Items drawn for a visit."""
        return self.config.negatives or _NEGATIVES[self.loss]

    @property
    def penalties(self) -> tuple[float, float]:
        """L2 penalties of a visit: of the rows of users, and of those of items.

        Of ratings and by least squares, an average row pays the same in all whether rows have many or few. (Of the two
        penalties of vectors only the product matters, since vectors of users may grow as those of items shrink; biases
        need each at its own size.)
        """
        if self.config.l2 is not None:
            return self.config.l2, self.config.l2
        if self.solves:
            pairs, sizes = len(self.seen.items), (len(self.users), len(self.items))
            weighed = [pairs / sizes[k] + sizes[1 - k] / self.alpha for k in (0, 1)]  # pairs of an average row
            return (_SOLVED / math.sqrt(weighed[0] * weighed[1]),) * 2
        if self.loss != "squared":
            return _PENALTIES[self.loss], _PENALTIES[self.loss]
        users, items = (_WORTH * len(side) / max(1, self._ratings) for side in (self.users, self.items))
        more = max(1.0, _LEAST / max(math.sqrt(users * items), 1e-9))
        return min(_MOST, more * users), min(_MOST, more * items)

    @property
    def l2(self) -> float:
        """L2 penalty of a visit, the geometric mean of those of users and items."""
        users, items = self.penalties
        return users if users == items else math.sqrt(users * items)

    @property
    def task(self) -> FactorTask:
        """Selects the compiled code."""
        shape = Shape(
            self.config.dim, self.width, len(self.users), len(self.items), self.negatives,
            np.float32(self.mean / self.scale), *map(np.float32, self.penalties),
        )  # fmt: skip
        return FactorTask(_KINDS[self.loss], self._rule, self._penalty, shape)

    def startup(self, feed: RatingFeed, seed: int) -> None:
        """Random vectors for the users and items of the feed, or the ones there are."""
        if not isinstance(feed, RatingFeed):
            raise ConfigError(f"{type(feed).__name__} holds no ratings; use hogwild.open_ratings or ratings_of.")
        feed.check()
        self._one, self._known = None, {}
        self._settle_loss(feed)
        self._check_same(feed)
        strange = len(feed) - int(np.count_nonzero(feed.known))
        if strange:
            raise InputError(
                f"{feed.source}: {counted(strange, 'rating')} of users or items that the model has no vectors for; "
                "train a new model."
            )
        self._ratings = len(feed)
        if self.weights is None:
            self.users, self.items = feed.users, feed.items
            self._choose_rule()
            if self.loss == "squared":
                values = feed.samples.values
                self.mean = float(values.mean(dtype=np.float64))
                self.lowest, self.highest = float(values.min()), float(values.max())
                self.scale = choose_unit(values)
            self._allocate(seed)
        before = self.seen if len(self.seen.offsets) == len(self.users) + 1 else None
        self.seen = recommending.seen_in(feed.samples, len(self.users), len(self.items), before)

    def _settle_loss(self, feed: RatingFeed) -> None:
        if not len(feed):
            raise InputError(f"{feed.source}: no ratings; is the file empty?")
        if self.loss == "auto":
            self.loss = "bpr" if feed.implicit else "squared"
            if self.config.alpha is not None:
                raise ConfigError("alpha is for least squares; add --solver als, or leave it out.")
        if self.loss == "squared" and feed.implicit:
            raise ConfigError("there are no ratings to predict, only what users have; use the loss bpr or logistic.")
        if self.loss != "squared" and len(feed.items) < 2:
            raise InputError(f"{feed.source}: there is one item only; nothing can be ranked.")

    def _check_same(self, feed: RatingFeed) -> None:
        """Before there are weights, what is not given may be any."""
        trained = self.weights is not None
        users, items = self.users or trained, self.items or trained
        if (users and feed.users != self.users) or (items and feed.items != self.items):
            raise ConfigError(
                "this feed has other users or items than the model; open it with users=program.users and "
                "items=program.items, or by program.open(path)."
            )

    def _allocate(self, seed: int) -> None:
        dim, cells = self.config.dim, self._cells
        needed = CELL * (len(self.users) + len(self.items)) * cells
        what = f"{len(self.users):,} users and {len(self.items):,} items of {dim} numbers need"
        check_memory(needed, what, "lower --dim." if self.solves else "lower --dim, or use --optimizer sgd.")
        random = np.random.default_rng(np.random.SeedSequence((seed, 15485863)))
        tables = []
        for rows in (len(self.users), len(self.items)):
            table = np.zeros((rows, cells), np.float32)
            for start in range(0, rows, _PIECE):
                part = table[start : start + _PIECE, :dim]
                part[:] = self.config.init * random.standard_normal(part.shape, np.float32)
            tables.append(table.reshape(-1))
        self.weights = FactorWeights(*tables)

    @property
    def _cells(self) -> int:
        return row_cells(self._rule, self._penalty, self.width)

    def check_mode(self, mode: str) -> None:
        """Least squares have no gradients."""
        if self.solves and mode not in ("hogwild", "serial"):
            raise ConfigError(f"mode is {mode}; least squares (als) take no turns at gradients; leave it out.")

    def backend(self, config: TrainConfig) -> Any:
        """Least squares are solved row by row; all else is compiled visits."""
        if not self.solves:
            return None
        check_options(config)
        return Alternating

    def visits(self, feed: RatingFeed) -> int:
        """Ratings; where rows are solved for, users and items."""
        return len(self.users) + len(self.items) if self.solves else len(feed)

    def epoch_samples(self, feed: RatingFeed) -> int:
        """Ratings."""
        return len(feed)

    def units(self, feed: RatingFeed) -> int:
        """Ratings."""
        return len(feed)

    @property
    def loss_scale(self) -> float:
        """Ratings are told in the user's unit. By least squares an epoch sums the loss twice, by users and by items; it
        is told for a pair that is there."""
        if not self.solves:
            return self.scale**2
        return (len(self.users) + len(self.items)) / (2 * max(1, len(self.seen.items)))

    def samples(self, feed: RatingFeed) -> Ratings | Interactions:
        """The ratings, or what users have with the items of each."""
        users, items, values = feed.samples
        if self.loss != "squared":
            return Interactions(users, items, *self.seen)
        return feed.samples if self.scale == 1 else Ratings(users, items, values / np.float32(self.scale))

    def room(self, feed: RatingFeed) -> Room:
        """A user, an item and the items drawn; their numbers, and the derivative in the score of each."""
        rows = 2 + self.negatives
        return Room(rows=rows, width=self.width, floats=rows * (self.width + 1))

    def tables(self) -> dict[str, Table]:
        """Both tables are ranked: the rows of those who occur most come first."""
        sizes = {"users": len(self.users), "items": len(self.items)}
        return {name: row_table(self._rule, self._penalty, rows, self.width) for name, rows in sizes.items()}

    def row_ids(self, table: str) -> RowIds:
        """Hashes of the names."""
        return hash_names({"users": self.users, "items": self.items}[table], table)

    def penalized(self, weights: FactorWeights) -> list[tuple[Floats, int]]:
        """Users and items."""
        return [(table, self.width) for table in weights]

    def settle(self, elapsed: float) -> bool:
        """Pay lazy penalties; the weights have changed."""
        self._one = None
        return super().settle(elapsed)

    def take_back(self, kept: Any) -> None:
        """Come back to weights."""
        self._one = None
        super().take_back(kept)

    def finish(self, feed: RatingFeed) -> None:
        """The weights have changed."""
        self._one = None

    @property
    def best_by(self) -> str:
        """RMSE of ratings, NDCG of rankings."""
        return "rmse" if self.loss == "squared" else "ndcg"

    @property
    def judged_by(self) -> tuple[str, ...]:
        """Known with the loss."""
        return {"auto": ("loss", "rmse", "ndcg"), "squared": ("loss", "rmse")}.get(self.loss, ("loss", "ndcg"))

    def judge(self, metrics: Metrics, loss: float) -> float:
        """What early stopping and the choice of the best epoch go by: RMSE of ratings; of rankings NDCG, if users of
        the validation data are known."""
        ranked = any(name.startswith(("ndcg@", "rmse")) for name in metrics)
        return super().judge(metrics, loss) if ranked else self.judge_by("loss", metrics, loss)

    def watchable(self) -> Mapping[str, Any]:
        """user_vectors, item_vectors: (rows, dim); user_biases, item_biases: (rows,); the most frequent first."""
        return {name: lambda name=name: getattr(self.factors(), name) for name in Factors._fields[:4]}

    def described(self) -> str:
        """Users, items, and what is learnt."""
        if self.weights is None:
            return super().described()
        return f"{len(self.users):,} users, {len(self.items):,} items, {self.loss} loss"

    def feed_from(self, data: Any, like: Any = None) -> Any:
        """A feed, of the path of a file, pairs or a frame too; like: one whose users and items it must have."""
        if isinstance(data, RatingFeed):
            return data
        names = None if like is None else (like.users, like.items)
        if isinstance(data, str | PathLike):
            users, items = names or (None, None)
            return open_ratings(data, users=users, items=items)
        return ratings_of(*pairs_of(data), names=names)

    # -- predicting -------------------------------------------------------------------------------------------------

    def factors(self) -> Factors:
        """Vectors and biases as they stand, penalties paid."""
        return self._factors_of(self.paid_weights())

    def _factors_of(self, weights: FactorWeights) -> Factors:
        """Vectors and biases in the user's unit; zeros where no biases are learnt."""
        parts: list[Floats] = []
        unit = np.float32(self.scale)
        for table in weights:
            rows = table.reshape(-1, self._cells)
            vectors = np.ascontiguousarray(rows[:, : self.config.dim])
            parts.append(vectors if unit == 1 else vectors * np.sqrt(unit))
            parts.append(unit * rows[:, self.config.dim] if self.biased else np.zeros(len(rows), np.float32))
        return Factors(parts[0], parts[1], parts[2], parts[3], self.mean)

    def open(self, paths: Any, config: RatingConfig | None = None, *, with_ratings: bool = True) -> RatingFeed:
        """Files in the ids of this model."""
        return open_ratings(paths, config, users=self.users, items=self.items, with_ratings=with_ratings)

    def read(self, data: Any, with_ratings: bool = False) -> RatingFeed:
        """Data in the ids of this model: a feed; the path of a file, or several; pairs of user and item (and rating); a
        frame with columns of users and items."""
        if isinstance(data, RatingFeed):
            self._check_same(data)
            return data
        if isinstance(data, str | PathLike):
            return self.open(data, with_ratings=with_ratings)
        columns = pairs_of(data)
        if with_ratings and len(columns) < 3:
            raise InputError("there are no ratings to compare with; give (user, item, rating) of each pair.")
        return ratings_of(*columns[: 3 if with_ratings else 2], names=(self.users, self.items))

    def scores(self, data: Any, threads: int = 1, factors: Factors | None = None) -> Floats:
        """The score of each pair; a user or item that the model does not know adds nothing, and is counted.

        data: a feed, or what `read` makes one of: a path, pairs of user and item, a frame.
        factors: those of `factors()`, for a caller with many small feeds.
        """
        factors = factors or self.factors()
        users, items, _ = self.read(data).samples
        self.unknown = int(np.count_nonzero(users < 0)), int(np.count_nonzero(items < 0))
        return recommending.pair_scores(factors, users, items, threads)

    def predict(self, data: Any, threads: int = 1, factors: Factors | None = None) -> Floats:
        """Ratings, not beyond the lowest and the highest of training; with logistic chances, else scores.

        data, factors: as for `scores`.
        """
        return self._told(self.scores(data, threads, factors))

    def _told(self, scores: Floats) -> Floats:
        if self.loss == "squared":
            return np.clip(scores, self.lowest, self.highest)
        return scores if self.loss in ("bpr", "weighted") else np.exp(-np.logaddexp(0, -scores))

    def predict_one(self, user: Any, item: Any = None) -> float:
        """What `predict` says of one pair, given as two names or as one pair: some microseconds."""
        if item is None:
            if isinstance(user, str) or not hasattr(user, "__len__") or len(user) != 2:
                raise InputError(f"a user and an item are asked for, not {brief(user)}.")
            user, item = user
        trained = self.trained()
        if self._one is None or self._one[0] is not trained:
            self._one = (trained, self.factors())
        factors = self._one[1]
        score = factors.mean
        k, j = self._numbers("users").get(str(user)), self._numbers("items").get(str(item))
        if k is not None:
            score += float(factors.user_biases[k])
        if j is not None:
            score += float(factors.item_biases[j])
        if k is not None and j is not None:
            score += float(factors.user_vectors[k] @ factors.item_vectors[j])
        return float(self._told(np.array(score, np.float32)))

    def recommend(self, user: str, count: int = 10, seen: bool = False) -> list[tuple[str, float]]:
        """The best items for a user, with their scores, the best first; without what the user has, unless `seen`.

        For a user that the model does not know: by the biases of items and, where there are none, by how many have it.
        """
        ((items, scores),) = self.recommend_all([user], count, seen)
        return list(zip(items, scores, strict=True))

    def recommend_all(
        self, users: Sequence[str], count: int = 10, seen: bool = False
    ) -> list[tuple[list[str], list[float]]]:
        """The best items and their scores for each of many users."""
        if count < 1:
            raise ConfigError(f"{count} items cannot be recommended; ask for 1 or more.")
        factors = self.factors()
        known = self._numbers("users")
        rows = np.array([known.get(user, -1) for user in users], np.int32)
        self.unknown = int(np.count_nonzero(rows < 0)), 0
        found: list[tuple[list[str], list[float]]] = []
        for block in recommending.best_items(factors, rows, None if seen else self.seen, count):
            for items, scores in zip(block.items.tolist(), block.scores.tolist(), strict=True):
                kept = [k for k, item in enumerate(items) if item >= 0]
                found.append(([self.items[items[k]] for k in kept], [scores[k] for k in kept]))
        return found

    def similar_items(self, item: str, count: int = 10) -> Alike:
        """The items most like one, with the cosine of their vectors and its own, the nearest first."""
        return self.similar_all([item], count)[0]

    def similar_users(self, user: str, count: int = 10) -> Alike:
        """The users most like one, with the cosine of their vectors and theirs, the nearest first."""
        return self.similar_all([user], count, users=True)[0]

    def similar_all(self, names: Sequence[str], count: int = 10, users: bool = False) -> list[Alike]:
        """The items most like each of many items, or the `users` most like each of many users.

        Raises UnknownNameError, a KeyError, that names all that are not there.
        """
        if count < 1:
            raise ConfigError(f"{count} similar ones cannot be found; ask for 1 or more.")
        kind, other = ("users", "items") if users else ("items", "users")
        rows = rows_of(names, self._numbers(kind), kind[:-1], self._numbers(other))
        factors = self.factors()
        vectors = factors.user_vectors if users else factors.item_vectors
        return alike(vectors, self.users if users else self.items, rows, count)

    def _numbers(self, side: str) -> dict[str, int]:
        """Rows by name of the `users` or of the `items`."""
        names: tuple[str, ...] = getattr(self, side)
        if len(self._known.get(side, ())) != len(names):
            self._known[side] = {name: row for row, name in enumerate(names)}
        return self._known[side]

    def evaluate(self, data: Any, threads: int = 1, top: int = 0) -> Metrics:
        """loss, rmse and mae of ratings; of rankings the loss and precision, recall, NDCG and hit rate of the top.

        Rankings are of all items that the user has not in training, and are measured on the held-out items of the
        users that the model knows. On the training data itself, nothing would be left: there, only the loss is told.
        data: as for `scores`, with ratings where these are learnt. top: items of each list; 0 stands for `self.top`.
        """
        self.repeated = 0
        feed = self.read(data, with_ratings=self.loss == "squared")
        if self.loss == "squared":
            if feed.implicit:
                raise InputError(f"{feed.source}: there are no ratings to compare with.")
            scores = self.scores(feed, threads)
            predicted = np.clip(scores, self.lowest, self.highest)
            return recommending.rating_metrics(predicted, scores, feed.samples.values)
        users, items, _ = feed.samples
        self.unknown = int(np.count_nonzero(users < 0)), int(np.count_nonzero(items < 0))
        factors = self.factors()
        loss = recommending.sampled_loss(factors, feed.samples, self.seen, self.negatives, self.loss, threads)
        relevant, self.repeated = recommending.relevant_in(feed.samples, self.seen, len(self.items))
        if not len(relevant.users):
            return {"loss": loss}
        return {"loss": loss, **recommending.ranking_metrics(factors, self.seen, relevant, top or self.top, threads)}

    def evaluation_notes(self) -> list[str]:
        """What the last evaluation could not measure as it should."""
        notes = []
        users, items = self.unknown
        if self.loss != "squared":
            if users:
                notes.append(f"{counted(users, 'pair')} of unknown users left out.")
            if items:
                notes.append(f"{counted(items, 'pair')} with unknown items count as not found.")
            if self.repeated:
                notes.append(f"{counted(self.repeated, 'pair')} that training had already left out.")
        elif users or items:
            notes.append("For unknown users and items the mean and the bias of the other were taken.")
        return notes

    # -- going on, saving -------------------------------------------------------------------------------------------

    counted: ClassVar[Mapping[str, str]] = {"user_biases": "users", "item_biases": "items"}

    def joined(self, feed: Any, old: Any, reopen: Any = None) -> Any:
        """With the users and items of an old model."""
        names = [tuple(dict.fromkeys((*mine, *theirs))) for mine, theirs in
                 ((feed.users, old.users), (feed.items, old.items))]  # fmt: skip
        return replace(feed, users=names[0], items=names[1])

    def axes(self) -> dict[str, Sequence[Any]]:
        """Users and items."""
        return {
            "user_vectors": (self.users, None), "user_biases": (self.users,), "item_vectors": (self.items, None),
            "item_biases": (self.items,),
        }  # fmt: skip

    def take_rest(self, old: Any) -> None:
        """The mean that biases begin at, all ratings that there were, and what users have."""
        if self.loss == "squared":
            self.lowest, self.highest = min(self.lowest, old.lowest), max(self.highest, old.highest)
            self.mean = old.mean
        numbers = [{name: k for k, name in enumerate(names)} for names in (self.users, self.items)]
        places = [np.array([number[name] for name in theirs], np.int32)
                  for number, theirs in zip(numbers, (old.users, old.items), strict=True)]  # fmt: skip
        users = places[0][np.repeat(np.arange(len(old.users)), np.diff(old.seen.offsets))]
        had = Ratings(users, places[1][old.seen.items], np.ones(len(users), np.float32))
        self.seen = recommending.seen_in(had, len(self.users), len(self.items), self.seen)

    def options(self) -> dict[str, Any]:
        """The arguments of an equal program, as JSON values."""
        return {
            **vars(self.config), "loss": self.loss, "users": list(self.users), "items": list(self.items),
            "constants": self.constants,
        }  # fmt: skip

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """user_vectors, item_vectors, user_biases, item_biases; seen with seen_offsets; range: mean, lowest, highest.

        unit, where it is not 1: ratings were learnt in it. With `state` also what the update rule remembers, such as
        users_squares and items_squares (adagrad).
        """
        factors = self._factors_of(self.trained()) if state else self.factors()
        found: dict[str, npt.NDArray[Any]] = dict(zip(PLAIN[:4], factors[:4], strict=True))
        found |= {"seen": self.seen.items, "seen_offsets": self.seen.offsets}
        found["range"] = np.array([self.mean, self.lowest, self.highest], np.float64)
        if self.scale != 1:
            found["unit"] = np.array([self.scale])
        if state:
            found.update(pack_state(self.trained(), self._rule, self._penalty, self.width))
        return found

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `arrays` made, with or without state."""
        for names in (self.users, self.items):
            if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
                raise ModelError("the options of the model do not say its users and items, each once.")
        if self.loss == "auto":
            raise ModelError("the options of the model do not say its loss; it cannot be used.")
        sizes, shape = (len(self.users), len(self.items)), (self.config.dim, self.biased)
        self.mean, self.lowest, self.highest = range_of(arrays)
        self.seen, self.scale = seen_of(arrays, *sizes), unit_of(arrays)
        self.weights = unpack(arrays, sizes, self._rule, self._penalty, (*shape, self.scale))


def pairs_of(data: Any) -> list[list[Any]]:
    """Users, items and perhaps ratings, of pairs or of a frame, whose columns are found as those of files."""
    if hasattr(data, "columns"):
        places = choose_columns([str(name) for name in data.columns], [], RatingConfig(), "the frame")
        return [list(data[data.columns[place]]) for place in places if place != NONE]
    try:
        rows = [tuple(row) for row in data]
    except TypeError:
        rows = []
    if not rows or len({len(row) for row in rows}) != 1 or len(rows[0]) not in (2, 3) or isinstance(data, Mapping):
        raise InputError("pairs are asked for: [(user, item), …], or (user, item, rating) of each, a frame or a path.")
    return [list(column) for column in zip(*rows, strict=True)]


def _check_names(names: Sequence[str]) -> None:
    """Raise ConfigError for a name that no file can hold: half of a surrogate pair, or no text at all."""
    try:
        "".join(names).encode()
    except (TypeError, UnicodeEncodeError) as error:
        raise ConfigError(f"a name of a user or an item is no text: {shorten(error)}.") from None
