"""Data sets that are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from hogwild.config.options import Config, Shown, require, require_not_negative

Distribution = Literal["zipf", "uniform"]
Lengths = Annotated[str, Shown("N|LO:HI")]
Size = Annotated[int, Shown(also="dense_size")]


@dataclass(frozen=True)
class SparseConfig(Config):
    """A sparse problem with two classes, or more."""

    rows: int = 100_000
    """Samples."""
    features: Size = 1_000_000
    """Number of features, the size of a row were it dense (--dense-size is the same); ids go from 1 to this."""
    nonzeros: Lengths = "50"
    """Features of a row: a number, or a range from which each row draws its own."""
    distribution: Distribution = "zipf"
    """How often features occur: like words of a text, or all alike."""
    binary: bool = False
    """All values are 1. Default: values between 0 and 1."""
    classes: int = 2
    """Classes; with more than two, each has true weights of its own."""
    noise: float = 0.1
    """Share of the labels that even the true weights get wrong; from 0 to below 0.5 (with N classes: 1 - 1/N)."""
    seed: int = 1
    """Draws the true weights and the rows."""
    part: int = 0
    """Another number gives other rows of the same problem: train on part 0, test on part 1."""

    def check(self) -> None:
        _check_made(self)
        require(self, "features", 1 <= self.features < 2**31, "it must lie between 1 and 2147483647.")
        low, high = self.lengths
        fits = 1 <= low <= high
        require(self, "nonzeros", fits, "write a number above 0 (50) or a range (10:100), low before high.")
        require(self, "nonzeros", high <= self.features, f"a row cannot have more than all {self.features} features.")
        require(self, "classes", 2 <= self.classes <= 256, "it must lie between 2 and 256. Try 10.")
        most = 1 - 1 / self.classes
        require(self, "noise", 0 <= self.noise < most, f"it is a share from 0 to below {most:.4g}. Try 0.1.")

    @property
    def lengths(self) -> tuple[int, int]:
        """Least and most features of a row; (0, 0) if `nonzeros` cannot be read."""
        return _range_of(self.nonzeros) or (0, 0)


@dataclass(frozen=True)
class ClicksConfig(Config):
    """Clicks: categories in slots, numbers beside them, and whether there was a click."""

    rows: int = 100_000
    """Samples."""
    slots: int = 26
    """Slots of categories."""
    numbers: int = 13
    """Columns of numbers."""
    features: Size = 1_000_000
    """Categories of all slots together (--dense-size is the same); slots have from few to most of them."""
    nonzeros: Lengths = "1"
    """Categories of a slot in a row: a number, or a range from which each slot of each row draws its own; 0: empty."""
    distribution: Distribution = "zipf"
    """How often the categories of a slot occur: like words of a text, or all alike."""
    pairs: float = 0.3
    """Share of the score that comes from pairs of categories, which no linear model learns; from 0 to 1."""
    clicks: float = 0.2
    """Share of the rows that have a click."""
    auc: float = 0.8
    """AUC of the true chances: the best that a model can hope for."""
    seed: int = 1
    """Draws the true chances and the rows."""
    part: int = 0
    """Another number gives other rows of the same problem: train on part 0, test on part 1."""

    def check(self) -> None:
        _check_made(self)
        require(self, "slots", 1 <= self.slots <= 10_000, "it must lie between 1 and 10000. Try 26.")
        require(self, "numbers", 0 <= self.numbers <= 10_000, "it must lie between 0 and 10000. Try 13.")
        enough = 2 * self.slots <= self.features < 2**31
        require(self, "features", enough, f"it must lie between {2 * self.slots}, two a slot, and 2147483647.")
        low, high = self.lengths
        require(self, "nonzeros", 0 <= low <= high, "write a number (1) or a range (0:5), low before high.")
        least = min(10, self.features // self.slots)
        require(self, "nonzeros", high <= least, f"the smallest slot has {least} categories; raise --dense-size.")
        require(self, "nonzeros", high > 0 or self.numbers > 0, "there would be nothing in a row.")
        require(self, "pairs", 0 <= self.pairs <= 1, "it is a share between 0 and 1. Try 0.3.")
        two = self.slots > 1 or self.pairs == 0
        require(self, "pairs", two, "one slot makes no pairs; add --slots, or set it to 0.")
        require(self, "clicks", 0.0001 <= self.clicks <= 0.9999, "it is a share between 0.0001 and 0.9999. Try 0.2.")
        require(self, "auc", 0.5 <= self.auc <= 0.999, "it must lie between 0.5 (pure chance) and 0.999. Try 0.8.")

    @property
    def lengths(self) -> tuple[int, int]:
        """Least and most categories of a slot in a row; (-1, -1) if `nonzeros` cannot be read."""
        return _range_of(self.nonzeros) or (-1, -1)


@dataclass(frozen=True)
class MadeRatingsConfig(Config):
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

    def check(self) -> None:
        _check_made(self)
        require(self, "users", 1 <= self.users < 2**31, "it must lie between 1 and 2147483647.")
        require(self, "items", 2 <= self.items < 2**31, "it must lie between 2 and 2147483647.")
        require(self, "rank", 1 <= self.rank <= 1024, "it must lie between 1 and 1024. Try 4.")
        require_not_negative(self, "noise", remedy="Try 0.5.")


def _check_made(config: Any) -> None:
    """What holds for all problems that are made."""
    require(config, "rows", config.rows >= 1, "it must be at least 1. Try 100000.")
    require(config, "seed", 0 <= config.seed < 2**63, "it must not be negative and fit 63 bits. Try 1.")
    require(config, "part", 0 <= config.part < 2**31, "it must not be negative.")


def _range_of(text: str) -> tuple[int, int] | None:
    low, colon, high = text.partition(":")
    try:
        return int(low), int(high if colon else low)
    except ValueError:
        return None
