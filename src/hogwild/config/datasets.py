"""Data sets that are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from hogwild.options import Shown, check_choices, require


@dataclass(frozen=True)
class SparseConfig:
    """A sparse problem with two classes."""

    rows: int = 100_000
    """Samples."""
    features: int = 1_000_000
    """Number of features; ids go from 1 to this."""
    nonzeros: Annotated[str, Shown("N|LO:HI")] = "50"
    """Features of a row: a number, or a range from which each row draws its own."""
    distribution: Literal["zipf", "uniform"] = "zipf"
    """How often features occur: like words of a text, or all alike."""
    binary: bool = False
    """All values are 1. Default: values between 0 and 1."""
    noise: float = 0.1
    """Share of the labels that even the true weights get wrong; from 0 to below 0.5."""
    seed: int = 1
    """Draws the true weights and the rows."""
    part: int = 0
    """Another number gives other rows of the same problem: train on part 0, test on part 1."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_choices(self)
        require(self, "rows", self.rows >= 1, "it must be at least 1. Try 100000.")
        require(self, "features", 1 <= self.features < 2**31, "it must lie between 1 and 2147483647.")
        low, high = self.lengths
        fits = 1 <= low <= high
        require(self, "nonzeros", fits, "write a number above 0 (50) or a range (10:100), low before high.")
        require(self, "nonzeros", high <= self.features, f"a row cannot have more than all {self.features} features.")
        require(self, "noise", 0 <= self.noise < 0.5, "it is a share from 0 to below 0.5. Try 0.1.")
        require(self, "seed", 0 <= self.seed < 2**63, "it must not be negative and fit 63 bits. Try 1.")
        require(self, "part", 0 <= self.part < 2**31, "it must not be negative.")

    @property
    def lengths(self) -> tuple[int, int]:
        """Least and most features of a row; (0, 0) if `nonzeros` cannot be read."""
        low, colon, high = self.nonzeros.partition(":")
        try:
            return int(low), int(high if colon else low)
        except ValueError:
            return 0, 0
