"""Options of embeddings with dense layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from hogwild.config.kinds import Optimizer
from hogwild.config.options import Shown, check_values, require

Activation = Literal["none", "relu", "tanh"]


@dataclass(frozen=True)
class SparseMLPConfig:
    """Options of embeddings with dense layers."""

    dim: int = 16
    """Numbers in the embedding of a feature."""
    hidden: Annotated[tuple[int, ...], Shown("N")] = (128, 64)
    """Outputs of each dense layer before the last."""
    activation: Literal["relu", "tanh"] = "relu"
    """What dense layers but the last do to their sums."""
    lookup_activation: Activation = "none"
    """What is done to looked-up embeddings before the first dense layer."""
    combiner: Literal["sum", "mean", "sqrtn"] = "sum"
    """How the embeddings of one slot are put together; mean divides by the sum of the values, sqrtn by the root of the
    sum of their squares."""
    wide: bool = False
    """Add a linear model of the same features to the output (wide and deep)."""
    loss: Literal["auto", "logistic", "squared"] = "auto"
    """What is minimised; `auto`: logistic (sigmoid or softmax) for classes."""
    optimizer: Optimizer = "adam"
    """Update rule."""
    l1: float = 0.0
    """L1 penalty on embeddings, a visit."""
    l2: float = 0.0
    """L2 penalty on embeddings and dense weights, a visit."""
    batch_size: int = 256
    """Samples of a step. With sgd, workers that do not wait for each other share a batch: each computes and steps for a
    part of it, of at least 64 samples."""
    init: float = 0.0
    """Embeddings begin as random numbers between -X and X; 0: the root of 1 / DIM, divided by 4."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "dim", 1 <= self.dim <= 65536, "it must lie between 1 and 65536. Try 16.")
        for size in self.hidden:
            require(self, "hidden", 1 <= size <= 1 << 20, "layers have between 1 and 1048576 outputs. Try 128 64.")
        require(self, "l1", 0 <= self.l1 < float("inf"), "it must not be negative. Try 0 or 1e-6.")
        require(self, "l2", 0 <= self.l2 < float("inf"), "it must not be negative. Try 0 or 1e-6.")
        require(self, "batch_size", 1 <= self.batch_size <= 65536, "it must lie between 1 and 65536. Try 256.")
        require(self, "init", 0 <= self.init < float("inf"), "it must not be negative. Try 0.01.")
