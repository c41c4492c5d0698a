"""Options, defined once: one dataclass field = one flag = one TOML key = one line of help."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from hogwild.options import Shown, check_choices, require

Mode = Literal["hogwild", "serial", "locked", "round-robin", "minibatch"]
Sharing = Literal["auto", "all", "hot", "replica"]
Optimizer = Literal["sgd", "momentum", "adagrad", "adam", "ftrl"]
ScheduleName = Literal["constant", "linear", "inverse"]
Format = Literal["auto", "svmlight", "csv", "tsv", "parquet", "arrow", "text"]

Column = Annotated[str, Shown("COLUMN")]
Columns = Annotated[tuple[str, ...], Shown("COLUMN")]
File = Annotated[str, Shown("FILE")]
Files = Annotated[tuple[str, ...], Shown("FILE")]
Directory = Annotated[str, Shown("DIR")]


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
    label: Column = ""
    """Label column of a table, by name or number (0 is the first, -1 the last). Default: `label`, else the first."""
    text: Column = ""
    """Text column of a table or of `label<TAB>text` lines, by name or number."""
    numeric: Columns = ()
    """Columns to read as numbers. Default: those whose first rows all are."""
    categorical: Columns = ()
    """Columns to read as categories. Default: those that are not numbers."""
    ignore: Columns = ()
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
    scale: bool = True
    """Divide every column of numbers by the root mean square of its values other than 0."""
    unlabelled: Annotated[bool, Shown(hidden=True)] = False
    """For prediction: files without a label column, and rows without a known label, are read with target 0."""
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
    pipe: Annotated[str, Shown("COMMAND")] = ""
    """Shell command that each file is sent through before it is read."""
    cache: bool = True
    """Keep the encoded data on disk and use it again."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_choices(self)
        require(self, "hash_bits", 1 <= self.hash_bits <= 30, "it must lie between 1 and 30. Try 20.")
        require(self, "ngrams", 1 <= self.ngrams <= 16, "it must lie between 1 and 16. Try 2.")
        require(self, "features", 0 <= self.features < 2**31, "it must lie between 0 (count them) and 2147483647.")
        require(self, "bad_share", 0 <= self.bad_share <= 1, "it is a share between 0 and 1. Try 0.01.")
        require(self, "max_line", self.max_line >= 1, "it must be at least 1 byte. Try 67108864.")


@dataclass(frozen=True)
class CorpusConfig:
    """How running text is read."""

    min_count: int = 5
    """Words that occur less often are left out."""
    max_vocab: int = 0
    """Keep at most this many words, the most frequent ones; 0: no limit."""
    lowercase: bool = False
    """Lower-case the text."""
    phrases: int = 0
    """Passes that join pairs of words which occur together more often than by chance (`new_york`); 0: none."""
    phrase_threshold: float = 10.0
    """Pairs with a higher score become phrases."""
    phrase_min_count: int = 5
    """Occurrences that a pair does not get counted for its score; those that have no more are no phrases."""
    max_token: int = 1000
    """Longest word in bytes; a longer one is left out and counted."""
    invalid_utf8: Literal["stop", "replace"] = "stop"
    """What invalid UTF-8 does; `replace` counts it."""
    pipe: Annotated[str, Shown("COMMAND")] = ""
    """Shell command that each file is sent through before it is read."""
    cache: bool = True
    """Keep the encoded text on disk and use it again."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ConfigError where a value cannot work."""
        check_choices(self)
        require(self, "min_count", self.min_count >= 1, "it must be at least 1, which keeps every word. Try 5.")
        require(self, "max_vocab", 0 <= self.max_vocab < 2**31, "it must lie between 0 (no limit) and 2147483647.")
        require(self, "phrases", 0 <= self.phrases <= 10, "it must lie between 0 (none) and 10. Try 1.")
        fits = 0 <= self.phrase_threshold < float("inf")
        require(self, "phrase_threshold", fits, "it must not be negative. Try 10; higher gives fewer phrases.")
        require(self, "phrase_min_count", self.phrase_min_count >= 0, "it must not be negative. Try 5.")
        require(self, "max_token", 1 <= self.max_token <= 1 << 20, "it must lie between 1 and 1048576. Try 1000.")


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
        check_choices(self)
        require(self, "epochs", self.epochs >= 1, "it must be at least 1. Try 5.")
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
        check_choices(self)
        require(self, "l1", 0 <= self.l1 < float("inf"), "it must not be negative. Try 0 or 1e-6.")
        require(self, "l2", 0 <= self.l2 < float("inf"), "it must not be negative. Try 0 or 1e-6.")
        for weight in self.class_weight.values():
            require(self, "class_weight", 0 < weight < float("inf"), "weights must be positive numbers.")
        both = bool(self.class_weight) and self.balanced
        require(self, "balanced", not both, "it cannot be joined with class_weight; choose one of the two.")


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
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 100.")
        require(self, "window", 1 <= self.window <= 100, "it must lie between 1 and 100. Try 5.")
        require(self, "negatives", 1 <= self.negatives <= 100, "it must lie between 1 and 100. Try 5.")
        require(self, "sample", 0 <= self.sample <= 1, "it is a share between 0 (keep all words) and 1. Try 1e-4.")


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


@dataclass(frozen=True)
class SaveConfig:
    """What is written, and when."""

    output: Directory = ""
    """Directory of the trained model; made, or replaced when it holds a model. Default: nothing is saved."""
    checkpoint_every: Annotated[str, Shown("10m|500s|1epoch")] = ""
    """Write a checkpoint this often, beside the output directory (OUTPUT.checkpoint)."""
    resume: bool = False
    """Go on where the last checkpoint beside the output directory stands; start if there is none."""

    def __post_init__(self) -> None:
        asked = bool(self.checkpoint_every or self.resume)
        name = "checkpoint_every" if self.checkpoint_every else "resume"
        require(self, name, bool(self.output) or not asked, "checkpoints live beside the output directory. Add output.")


@dataclass(frozen=True)
class WatchConfig:
    """Looking at a run while it goes on."""

    watch: Annotated[tuple[str, ...], Shown("NAME")] = ()
    """Show a weight array, a slice or a number of it: weights, weights[3,:5], norm(weights), max(weights)."""
    every: Annotated[str, Shown("N|Ns")] = "2s"
    """Show watched variables every N samples, or every N seconds (5s)."""
    log_dir: Directory = ""
    """Write events.jsonl there, and TensorBoard files if tensorboard is installed."""


@dataclass(frozen=True)
class ShowConfig:
    """What the command prints."""

    json: bool = False
    """Standard output is exactly one JSON object; everything else goes to standard error."""
    quiet: bool = False
    """No progress bar and no notes; errors only."""
    debug: bool = False
    """Show the traceback of an error."""
    config: File = ""
    """TOML file of options: keys are flag names; flags on the command line win."""


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
