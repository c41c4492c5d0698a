"""Options of recommenders: how ratings are read, what the model is, how it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from hogwild.config.kinds import Column, Optimizer
from hogwild.config.options import Shown, check_values, require
from hogwild.config.training import TrainConfig

RatingFormat = Literal["auto", "ratings", "lists", "parquet", "arrow"]
Separator = Literal["auto", "tab", "comma", "semicolon", "space", "colons"]
_HALF = 2**31


@dataclass(frozen=True)
class RatingConfig:
    """How ratings are read."""

    format: RatingFormat = "auto"
    """Kind of file: `ratings`: user, item and perhaps rating a line; `lists`: a user and all items; `auto` looks."""
    separator: Separator = "auto"
    """What stands between columns of text; `colons` is `::`."""
    header: Literal["auto", "yes", "no"] = "auto"
    """Whether the first line names the columns."""
    user: Column = ""
    """Column of the user, by name or number (0 is the first). Default: `user`, `userId` or such, else the first."""
    item: Column = ""
    """Column of the item. Default: `item`, `itemId`, `movieId` or such, else the second."""
    rating: Column = ""
    """Column of the rating; `none`: there is none. Default: `rating` or `score`, else the third, if there is one."""
    min_rating: Annotated[float | None, Shown("RATING")] = None
    """Leave out what is rated lower: for training on what users like. Default: everything counts."""
    bad_lines: Literal["stop", "skip"] = "stop"
    """What a malformed line does; `skip` counts and reports them."""
    bad_share: float = 0.01
    """With `skip`: give up when more than this share of the lines is malformed."""
    invalid_utf8: Literal["stop", "replace"] = "stop"
    """What invalid UTF-8 does; `replace` counts it."""
    max_line: int = 64 << 20
    """Longest line in bytes; a longer one means that this is not the format it seems to be."""
    pipe: Annotated[str, Shown("COMMAND")] = ""
    """Shell command that each file is sent through before it is read."""
    cache: bool = True
    """Keep the encoded data on disk and use it again."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "bad_share", 0 <= self.bad_share <= 1, "it is a share between 0 and 1. Try 0.01.")
        require(self, "max_line", self.max_line >= 1, "it must be at least 1 byte. Try 67108864.")
        if self.min_rating is not None:
            finite = abs(self.min_rating) < float("inf")
            require(self, "min_rating", finite, "it must be a finite number. Try 4 of 5 stars.")


@dataclass(frozen=True)
class RecommenderConfig:
    """Options of recommenders."""

    dim: int = 64
    """Numbers in the vector of a user and of an item."""
    loss: Literal["auto", "squared", "logistic", "bpr"] = "auto"
    """`squared`: predict ratings; `logistic`, `bpr`: rank items, against others drawn; `auto`: squared for ratings."""
    optimizer: Optimizer = "adagrad"
    """Update rule."""
    negatives: int = 0
    """Items drawn for each item that a user has; 0: 1 with bpr, 4 with logistic."""
    bias: bool = True
    """Learn a bias for every user and item."""
    l2: float | None = None
    """L2 penalty of the rows that a visit reads, as usual for factorizations. Default: chosen by loss."""
    shrink: float = 0.0
    """L2 penalty of all rows alike, whether a visit reads them or not, paid lazily."""
    init: float = 0.1
    """Standard deviation of the random numbers that vectors begin with."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 64.")
        require(self, "negatives", 0 <= self.negatives <= 1000, "it must lie between 1 and 1000, or be 0: chosen.")
        needless = self.loss == "squared" and self.negatives > 0
        require(self, "negatives", not needless, "ratings (loss squared) need none; leave it out.")
        if self.l2 is not None:
            require(self, "l2", 0 <= self.l2 < float("inf"), "it must not be negative. Try 0.02.")
        require(self, "shrink", 0 <= self.shrink < float("inf"), "it must not be negative. Try 0 or 1e-6.")
        require(self, "init", 0 < self.init < float("inf"), "it must be positive; equal vectors never part. Try 0.1.")


@dataclass(frozen=True)
class RecommenderTrainConfig(TrainConfig):
    """How training of recommenders runs: as all training, with other defaults."""

    epochs: int = 20
    """Times that every rating is visited."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: 0.1 with adagrad, 0.05 with sgd, 0.01 with the others."""

    _rates: ClassVar[str] = "Try 0.1 with adagrad, 0.05 with sgd"


@dataclass(frozen=True)
class MadeRatingsConfig:
    """Ratings that a model of low rank can learn."""

    rows: int = 100_000
    """Ratings, or interactions."""
    users: int = 2_000
    """Number of users; some may have no rating."""
    items: int = 1_000
    """Number of items."""
    rank: int = 4
    """Numbers in the true vectors."""
    noise: float = 0.5
    """Standard deviation of what is added to a true rating, in stars; ratings are then rounded to halves."""
    seed: int = 1
    """Draws the true vectors and the ratings."""
    part: int = 0
    """Another number gives other ratings by the same users: train on part 0, test on part 1."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "rows", self.rows >= 1, "it must be at least 1. Try 100000.")
        require(self, "users", 1 <= self.users < _HALF, "it must lie between 1 and 2147483647.")
        require(self, "items", 2 <= self.items < _HALF, "it must lie between 2 and 2147483647.")
        require(self, "rank", 1 <= self.rank <= 1024, "it must lie between 1 and 1024. Try 4.")
        require(self, "noise", 0 <= self.noise < float("inf"), "it must not be negative. Try 0.5.")
        require(self, "seed", 0 <= self.seed < 2**63, "it must not be negative and fit 63 bits. Try 1.")
        require(self, "part", 0 <= self.part < _HALF, "it must not be negative.")
