"""Options, defined once: one dataclass field = one flag = one TOML key = one line of help."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Mode = Literal["hogwild", "serial", "locked", "round-robin", "minibatch"]
Sharing = Literal["auto", "all", "hot", "replica"]
Optimizer = Literal["sgd", "momentum", "adagrad", "adam", "ftrl"]
ScheduleName = Literal["constant", "linear", "inverse"]
Format = Literal["auto", "svmlight", "csv", "tsv", "parquet", "arrow", "text"]


def cache_home() -> Path:
    """Where this package keeps what it can make again: HOGWILD_CACHE, else the user's cache directory."""
    chosen = os.environ.get("HOGWILD_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hogwild"


@dataclass(frozen=True)
class FeedConfig:
    """How files are read."""

    format: Format = "auto"
    """Kind of file; `auto` goes by name and content."""
    label: str = ""
    """Label column of a table, by name or number (0 is the first, -1 the last). Default: `label`, else the first."""
    text: str = ""
    """Text column of a table or of `label<TAB>text` lines, by name or number."""
    numeric: tuple[str, ...] = ()
    """Columns to read as numbers. Default: those whose first rows all are."""
    categorical: tuple[str, ...] = ()
    """Columns to read as categories. Default: those that are not numbers."""
    ignore: tuple[str, ...] = ()
    """Columns to leave out."""
    header: Literal["auto", "yes", "no"] = "auto"
    """Whether the first line of a table names the columns."""
    hash_bits: int = 20
    """Hashed features (text, hashed categories) go to 2^N ids."""
    categories: Literal["enumerate", "hash"] = "enumerate"
    """Give every category an id of its own, or hash it."""
    ngrams: int = 2
    """Words and word n-grams up to this length become features of text."""
    lowercase: bool = True
    """Lower-case text before it is hashed."""
    normalize: bool = True
    """Scale every text row to length one."""
    features: int = 0
    """Number of features of svmlight files; 0: one more than the largest id."""
    zero_based: Literal["auto", "yes", "no"] = "auto"
    """Whether svmlight ids start at 0."""
    bad_lines: Literal["stop", "skip"] = "stop"
    """What a malformed line does; `skip` counts and reports them."""
    bad_share: float = 0.01
    """With `skip`: give up when more than this share of the lines is malformed."""
    invalid_utf8: Literal["stop", "replace"] = "stop"
    """What invalid UTF-8 does; `replace` counts it."""
    max_line: int = 64 << 20
    """Longest line in bytes; a longer one means that this is not the format it seems to be."""
    pipe: str = ""
    """Shell command that each file is sent through before it is read."""
    cache: bool = True
    """Keep the encoded data on disk and use it again."""


@dataclass(frozen=True)
class TrainConfig:
    """How training runs; shared by all programs."""

    threads: int = 0
    """Workers; 0: one a core."""
    mode: Mode = "hogwild"
    """How the workers take turns."""
    sharing: Sharing = "auto"
    """Which weights the workers hold in common."""
    epochs: int = 5
    """Times that every sample is visited."""
    lr: float | None = None
    """First learning rate; calibrated on a sample of the data when not given."""
    schedule: ScheduleName = "linear"
    """How the learning rate falls."""
    decay: float = 0.0
    """With `inverse`: rate / (1 + decay * epochs so far); 0 stands for 1."""
    batch: int = 0
    """With mode `minibatch`: visits summed into one update; 0: one a worker."""
    seed: int = 1
    """Makes all random streams."""
    shuffle: bool = True
    """Visit the samples in a new order each epoch."""
    patience: int = 0
    """Stop when the validation loss has not improved for this many epochs; 0: never."""
    trace: bool = False
    """Count and size gradient errors."""
    merge_every: int = 0
    """With private copies: visits of a worker between two merges of the same row; 0: chosen."""
    hot_rows: int = 0
    """With sharing `hot`: private leading rows; 0: chosen."""


@dataclass(frozen=True)
class LinearConfig:
    """Options of linear models."""

    loss: Literal["auto", "logistic", "hinge", "squared"] = "auto"
    """`auto`: logistic for classes."""
    optimizer: Optimizer = "adagrad"
    """Update rule."""
    l1: float = 0.0
    """L1 penalty."""
    l2: float = 0.0
    """L2 penalty."""
    bias: bool = True
    """Learn an intercept."""
    class_weight: dict[str, float] = field(default_factory=dict)
    """Weight of the samples of each class; classes not named have 1."""
    balanced: bool = False
    """Weigh classes inversely to their frequency."""
