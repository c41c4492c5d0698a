"""Options of factorization machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hogwild.config.kinds import Optimizer
from hogwild.config.options import check_values, require

_MOST = 256  # factors: compiled code is made for each number of them


@dataclass(frozen=True)
class FMConfig:
    """Options of factorization machines."""

    dim: int = 8
    """Factors of a feature; field-aware: for each field."""
    loss: Literal["auto", "logistic", "squared"] = "auto"
    """What is minimised; `auto`: logistic for classes."""
    optimizer: Optimizer = "adagrad"
    """Update rule."""
    l2: float = 0.0
    """L2 penalty on weights."""
    l2_factors: float = 0.0
    """L2 penalty on factors."""
    field_aware: bool = False
    """Features have factors of their own for each field."""
    init_scale: float = 0.01
    """Standard deviation of the first factors."""
    bias: bool = True
    """Learn an intercept."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "dim", 0 <= self.dim <= _MOST, f"it must lie between 0 (a linear model) and {_MOST}. Try 8.")
        for name in ("l2", "l2_factors"):
            require(self, name, 0 <= getattr(self, name) < float("inf"), "it must not be negative. Try 0 or 1e-6.")
        fits = 0 < self.init_scale < float("inf")
        require(self, "init_scale", fits, "it must be positive: factors of zero would never move. Try 0.01.")
