"""Options of programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from hogwild.config.kinds import Optimizer
from hogwild.config.options import Shown, check_values, require


@dataclass(frozen=True)
class LinearConfig:
    """Options of linear models."""

    loss: Literal["auto", "logistic", "hinge", "squared"] = "auto"
    """What is minimised; `auto`: logistic for classes."""
    optimizer: Optimizer = "adagrad"
    """Update rule."""
    l1: float = 0.0
    """L1 penalty a visit; drives weights to zero."""
    l2: float = 0.0
    """L2 penalty a visit; keeps weights small."""
    bias: bool = True
    """Learn an intercept."""
    class_weight: Annotated[dict[str, float], Shown("NAME=WEIGHT")] = field(default_factory=dict)
    """Weight of the samples of a class; classes not named have 1."""
    balanced: bool = False
    """Weigh classes inversely to their frequency."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "l1", 0 <= self.l1 < float("inf"), "it must not be negative. Try 0 or 1e-6.")
        require(self, "l2", 0 <= self.l2 < float("inf"), "it must not be negative. Try 0 or 1e-6.")
        for weight in self.class_weight.values():
            require(self, "class_weight", 0 < weight < float("inf"), "weights must be positive numbers.")
        both = bool(self.class_weight) and self.balanced
        require(self, "balanced", not both, "it cannot be joined with class_weight; choose one of the two.")


@dataclass(frozen=True)
class TextConfig:
    """Options of text classifiers."""

    dim: int = 16
    """Numbers in the row of a word or n-gram."""
    optimizer: Optimizer = "sgd"
    """Update rule."""
    row_decay: float = 0.002
    """Penalty on the rows that a text has, at each visit."""
    l2: float = 0.0
    """L2 penalty on all rows; keeps weights small."""
    counts: bool = False
    """N-grams count as often as they occur in a text. Default: once."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 16.")
        require(self, "row_decay", 0 <= self.row_decay < float("inf"), "it must not be negative. Try 0.002.")
        require(self, "l2", 0 <= self.l2 < float("inf"), "it must not be negative. Try 0 or 1e-6.")


@dataclass(frozen=True)
class Word2VecConfig:
    """Options of word vectors."""

    dim: int = 100
    """Numbers in a vector."""
    window: int = 5
    """Words to either side that count as near, at the most; each word draws its own number from 1 to this."""
    negatives: int = 5
    """Random words set against each pair of neighbours."""
    sample: float = 1e-4
    """Words more frequent than this share of the text are left out now and then; 0: never."""
    cbow: bool = False
    """Predict a word from the mean of its neighbours (CBOW). Default: predict the neighbours from it (skip-gram)."""
    pair_negatives: bool = False
    """Draw new negatives for each pair. Default: draw them once for a run of words, which is faster."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 100.")
        require(self, "window", 1 <= self.window <= 100, "it must lie between 1 and 100. Try 5.")
        require(self, "negatives", 1 <= self.negatives <= 100, "it must lie between 1 and 100. Try 5.")
        require(self, "sample", 0 <= self.sample <= 1, "it is a share between 0 (keep all words) and 1. Try 1e-4.")
