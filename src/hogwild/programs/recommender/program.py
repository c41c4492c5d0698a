"""Recommenders: a vector for every user and every item, learnt from ratings or from what users have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Interactions, Ratings, Room, Table
from hogwild.config import RatingConfig, RecommenderConfig, RecommenderTrainConfig
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
from hogwild.programs.recommender.ranking import Factors, Seen
from hogwild.programs.row_ids import hash_names
from hogwild.programs.rows import RowProgram
from hogwild.programs.saving.tensors import Arrays, no_others, required
from hogwild.programs.sparse.supervised import rule_and_penalty
from hogwild.programs.sparse.tables import put_together, take_apart

# -- The weights of a factorization as named arrays: taken apart for saving and predicting, checked and put together --


_LARGE = float(np.finfo(np.float32).max)
_SIDES = ("user", "item")
_PLAIN = ("user_vectors", "user_biases", "item_vectors", "item_biases", "seen", "seen_offsets", "range")


def pack_state(weights: FactorWeights, rule: Any, penalty: Any, width: int) -> dict[str, npt.NDArray[Any]]:
    """What the update rule and the penalty remember of users and of items, by name."""
    found = {}
    for side, table in zip(_SIDES, weights, strict=True):
        parts = take_apart(table, rule, penalty, width)
        found.update({f"{side}s_{name}": part for name, part in parts.items() if name})
    return found


def range_of(arrays: Arrays) -> tuple[float, float, float]:
    """Mean, lowest and highest rating of training."""
    mean, lowest, highest = (float(value) for value in required(arrays, "range", (3,), np.float64))
    if lowest > highest or max(abs(mean), abs(lowest), abs(highest)) > _LARGE:
        raise ModelError("array range is no mean, lowest and highest rating; copy the model again.")
    return mean, lowest, highest


def seen_of(arrays: Arrays, users: int, items: int) -> Seen:
    """The items of each user; compiled code will trust them."""
    offsets = required(arrays, "seen_offsets", (users + 1,), np.int64)
    seen = required(arrays, "seen", (int(offsets[-1]),), np.int32)
    sound = offsets[0] == 0 and bool((np.diff(offsets) >= 0).all())
    if len(seen) and sound:
        rises = np.diff(seen.astype(np.int64)) > 0
        rises[offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < len(seen))] - 1] = True
        sound = int(seen.min()) >= 0 and int(seen.max()) < items and bool(rises.all())
    if not sound:
        raise ModelError("the items that users have seen do not fit together; copy the model again.")
    return Seen(np.array(offsets), np.array(seen))


def unpack(arrays: Arrays, sizes: tuple[int, int], rule: Any, penalty: Any, shape: tuple[int, bool]) -> FactorWeights:
    """Weights for so many users and items of `shape` (dim, and whether there are biases)."""
    dim, bias = shape
    tables, used = [], set(_PLAIN)
    for side, rows in zip(_SIDES, sizes, strict=True):
        vectors = required(arrays, f"{side}_vectors", (rows, dim))
        biases = required(arrays, f"{side}_biases", (rows,))
        whole = np.concatenate([vectors, biases[:, None]], axis=1) if bias else np.asarray(vectors)
        names = {name[len(side) + 2 :]: name for name in arrays if name.startswith(f"{side}s_")}
        used.update(names.values())
        width = dim + bias
        parts = {"": whole if width > 1 else whole[:, 0], **{part: arrays[name] for part, name in names.items()}}
        tables.append(put_together(parts, rule, penalty, width, rows))
    no_others(arrays, used, "a recommender")
    return FactorWeights(*tables)


_KINDS = {"squared": Rated(Squared()), "logistic": Sampled(), "bpr": Pairwise()}
_NEGATIVES = {"squared": 0, "logistic": 4, "bpr": 1}
_PENALTIES = {"squared": 0.02, "logistic": 0.01, "bpr": 0.02}  # of a visit; measured: docs/guide-recommender.md
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
    training = RecommenderTrainConfig

    def __init__(
        self, *values: Any, users: Sequence[str] = (), items: Sequence[str] = (),
        constants: Mapping[str, float] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.config = config = config_of(self, RecommenderConfig, values, options)
        self.loss: str = config.loss
        self.users, self.items = tuple(users), tuple(items)
        _check_names((*self.users, *self.items))
        self.constants = plain_constants(constants)
        self.mean, self.lowest, self.highest = 0.0, 0.0, 0.0
        self.seen = Seen(np.zeros(len(self.users) + 1, np.int64), np.zeros(0, np.int32))
        self.unknown, self.repeated, self.top = (0, 0), 0, 20
        self._numbers: dict[str, int] = {}  # of the users
        self._one: tuple[Any, Factors, dict[str, int], dict[str, int]] | None = None
        self._rule, self._penalty = rule_and_penalty(config.optimizer, self.constants, 0.0, config.shrink)

    # -- for the executor -------------------------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Learning rate where the user gives none."""
        return _RATES.get(self.config.optimizer, 0.01)

    @property
    def width(self) -> int:
        """Numbers of a row: the vector, and the bias."""
        return self.config.dim + self.config.bias

    @property
    def negatives(self) -> int:
        """Items drawn for a visit."""
        return self.config.negatives or _NEGATIVES[self.loss]

    @property
    def l2(self) -> float:
        """L2 penalty of a visit."""
        return _PENALTIES[self.loss] if self.config.l2 is None else self.config.l2

    @property
    def task(self) -> FactorTask:
        """Selects the compiled code."""
        shape = Shape(
            self.config.dim, self.width, len(self.users), len(self.items), self.negatives, np.float32(self.mean),
            np.float32(self.l2),
        )  # fmt: skip
        return FactorTask(_KINDS[self.loss], self._rule, self._penalty, shape)

    def startup(self, feed: RatingFeed, seed: int) -> None:
        """Random vectors for the users and items of the feed, or the ones there are."""
        if not isinstance(feed, RatingFeed):
            raise ConfigError(f"{type(feed).__name__} holds no ratings; use hogwild.open_ratings or ratings_of.")
        feed.check()
        self._one = None
        self._settle_loss(feed)
        self._check_same(feed)
        strange = len(feed) - int(np.count_nonzero(feed.known))
        if strange:
            raise InputError(
                f"{feed.source}: {counted(strange, 'rating')} of users or items that the model has no vectors for; "
                "train a new model."
            )
        if self.weights is None:
            self.users, self.items = feed.users, feed.items
            if self.loss == "squared":
                values = feed.samples.values
                self.mean = float(values.mean(dtype=np.float64))
                self.lowest, self.highest = float(values.min()), float(values.max())
            self._allocate(seed)
        before = self.seen if len(self.seen.offsets) == len(self.users) + 1 else None
        self.seen = recommending.seen_in(feed.samples, len(self.users), len(self.items), before)

    def _settle_loss(self, feed: RatingFeed) -> None:
        if not len(feed):
            raise InputError(f"{feed.source}: no ratings; is the file empty?")
        if self.loss == "auto":
            self.loss = "bpr" if feed.implicit else "squared"
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
        check_memory(needed, what, "lower --dim, or use --optimizer sgd.")
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

    def samples(self, feed: RatingFeed) -> Ratings | Interactions:
        """The ratings, or what users have with the items of each."""
        users, items, _ = feed.samples
        return feed.samples if self.loss == "squared" else Interactions(users, items, *self.seen)

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

    def judge(self, metrics: Metrics, loss: float) -> float:
        """What early stopping and the choice of the best epoch go by: the loss of ratings; of rankings, NDCG."""
        ranked = [value for name, value in metrics.items() if name.startswith("ndcg@")]
        return -ranked[0] if ranked else super().judge(metrics, loss)

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
        """Vectors and biases; zeros where no biases are learnt."""
        parts: list[Floats] = []
        for table in weights:
            rows = table.reshape(-1, self._cells)
            parts.append(np.ascontiguousarray(rows[:, : self.config.dim]))
            parts.append(rows[:, self.config.dim].copy() if self.config.bias else np.zeros(len(rows), np.float32))
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
        """Ratings, not beyond the lowest and the highest of training; with logistic chances, with bpr scores.

        data, factors: as for `scores`.
        """
        return self._told(self.scores(data, threads, factors))

    def _told(self, scores: Floats) -> Floats:
        if self.loss == "squared":
            return np.clip(scores, self.lowest, self.highest)
        return scores if self.loss == "bpr" else np.exp(-np.logaddexp(0, -scores))

    def predict_one(self, user: Any, item: Any = None) -> float:
        """What `predict` says of one pair, given as two names or as one pair: some microseconds."""
        if item is None:
            if isinstance(user, str) or not hasattr(user, "__len__") or len(user) != 2:
                raise InputError(f"a user and an item are asked for, not {brief(user)}.")
            user, item = user
        trained = self.trained()
        if self._one is None or self._one[0] is not trained:
            names = ({name: k for k, name in enumerate(side)} for side in (self.users, self.items))
            self._one = (trained, self.factors(), *names)
        _, factors, users, items = self._one
        score = factors.mean
        k, j = users.get(str(user)), items.get(str(item))
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
        if len(self._numbers) != len(self.users):
            self._numbers = {name: number for number, name in enumerate(self.users)}
        rows = np.array([self._numbers.get(user, -1) for user in users], np.int32)
        self.unknown = int(np.count_nonzero(rows < 0)), 0
        found: list[tuple[list[str], list[float]]] = []
        for block in recommending.best_items(factors, rows, None if seen else self.seen, count):
            for items, scores in zip(block.items.tolist(), block.scores.tolist(), strict=True):
                kept = [k for k, item in enumerate(items) if item >= 0]
                found.append(([self.items[items[k]] for k in kept], [scores[k] for k in kept]))
        return found

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
        pairwise = self.loss == "bpr"
        loss = recommending.sampled_loss(factors, feed.samples, self.seen, self.negatives, pairwise, threads)
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

    # -- saving -----------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """The arguments of an equal program, as JSON values."""
        return {
            **vars(self.config), "loss": self.loss, "users": list(self.users), "items": list(self.items),
            "constants": self.constants,
        }  # fmt: skip

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """user_vectors, item_vectors, user_biases, item_biases; seen with seen_offsets; range: mean, lowest, highest.

        With `state` also what the update rule remembers, such as users_squares and items_squares (adagrad).
        """
        factors = self._factors_of(self.trained()) if state else self.factors()
        found: dict[str, npt.NDArray[Any]] = dict(zip(_PLAIN[:4], factors[:4], strict=True))
        found |= {"seen": self.seen.items, "seen_offsets": self.seen.offsets}
        found["range"] = np.array([self.mean, self.lowest, self.highest], np.float64)
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
        sizes, shape = (len(self.users), len(self.items)), (self.config.dim, self.config.bias)
        self.mean, self.lowest, self.highest = range_of(arrays)
        self.seen = seen_of(arrays, *sizes)
        self.weights = unpack(arrays, sizes, self._rule, self._penalty, shape)


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
