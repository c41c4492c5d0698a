"""How training runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from hogwild.config.kinds import Mode, ScheduleName, Sharing
from hogwild.config.options import Shown, check_values, require


@dataclass(frozen=True)
class TrainConfig:
    """How training runs; shared by all programs."""

    epochs: int = 5
    """Times that every sample is visited."""
    threads: int | None = None
    """Workers. Default: one a core."""
    mode: Mode = "hogwild"
    """How the workers take turns: no locks; one worker, repeatable; one at a time; in fixed order; summed gradients."""
    sharing: Sharing = "auto"
    """Which weights the workers hold in common: all, all but the hot ones, or none between merges; `auto` tries."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: calibrated on a sample of the data."""
    schedule: ScheduleName = "linear"
    """How the learning rate falls."""
    decay: float = 0.0
    """With `inverse`: rate / (1 + decay * epochs so far); 0 stands for 1."""
    lr_end: float = 0.0
    """With `linear`: share of the first learning rate that is left at the end."""
    batch: int = 0
    """With mode `minibatch`: visits summed into one update; 0: one a worker."""
    seed: int = 1
    """Makes all random streams."""
    shuffle: bool = True
    """Visit the samples in a new order each epoch."""
    patience: int = 0
    """Stop when the validation loss has not improved for this many epochs; 0: never."""
    trace: bool = False
    """Count and size gradient errors (a second, slower form of the compiled code)."""
    merge_every: int = 0
    """With private copies: visits of a worker between two merges of the same row; 0: chosen."""
    hot_rows: int = 0
    """With sharing `hot`: private leading rows; 0: chosen."""

    _rates: ClassVar[str] = "Try 0.1 with adagrad, 0.01 with sgd"

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_values(self)
        require(self, "epochs", self.epochs >= 1, "it must be at least 1. Try 5.")
        require(self, "epochs", self.epochs < 2**30, "it must be at most 1073741823. Try 5.")
        if self.threads is not None:
            require(self, "threads", self.threads >= 1, "it must be at least 1; leave it out for one a core.")
            require(self, "threads", self.threads <= 4096, "it must be at most 4096; leave it out for one a core.")
        if self.lr is not None:
            fits = 0 < self.lr < float("inf")
            require(self, "lr", fits, f"it must be positive and finite. {self._rates}, or leave it out.")
        require(self, "decay", 0 <= self.decay < float("inf"), "it must not be negative.")
        require(self, "lr_end", 0 <= self.lr_end <= 1, "it is a share between 0 and 1.")
        require(self, "batch", self.batch >= 0, "it must not be negative; 0 means one visit a worker.")
        require(self, "seed", 0 <= self.seed < 2**63, "it must not be negative and fit 63 bits. Try 1.")
        require(self, "patience", self.patience >= 0, "it must not be negative; 0 means never.")
        require(self, "merge_every", self.merge_every >= 0, "it must not be negative; 0 means chosen.")
        require(self, "hot_rows", self.hot_rows >= 0, "it must not be negative; 0 means chosen.")


@dataclass(frozen=True)
class WordTrainConfig(TrainConfig):
    """How training of word vectors runs: as all training, with other defaults."""

    sharing: Sharing = "all"
    """Which weights the workers hold in common: all, all but the hot ones, or none between merges; `auto` tries."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: 0.025 for skip-gram, 0.15 with --cbow."""
    lr_end: float = 0.17
    """With `linear`: share of the first learning rate that is left at the end."""
    shuffle: bool = False
    """Visit the text in a new order each epoch. Default: from its beginning to its end, as memory likes it."""

    _rates: ClassVar[str] = "Try 0.025, with cbow 0.15"
