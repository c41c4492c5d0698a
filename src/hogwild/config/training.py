"""How training runs, what it writes, what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from hogwild.config.kinds import BestBy, Device, Directory, File, Mode, ScheduleName, Sharing
from hogwild.config.options import Config, Shown, require, require_not_negative

MODES_ON_DEVICES = ("hogwild", "serial")


@dataclass(frozen=True)
class TrainConfig(Config):
    """How training runs."""

    epochs: int = 5
    """Times that every sample is visited."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: calibrated on a sample of the data."""
    threads: int | None = None
    """Workers. Default: one a core."""
    mode: Mode = "hogwild"
    """How the workers take turns: no locks; one worker, repeatable; one at a time; in fixed order; summed gradients."""
    sharing: Sharing = "auto"
    """Which weights the workers hold in common: all, all but the hot ones, or none between merges; `auto` tries."""
    seed: int = 1
    """Makes all random streams."""
    patience: int = 0
    """Stop when the best epoch on the validation data (see best_by) was this many epochs ago; 0: never."""
    best_by: BestBy = "auto"
    """By which the best epoch is told on the validation data, whose model is kept. `auto`: accuracy of classes, and the
    loss where they are weighed; RMSE of quantities and ratings; NDCG of rankings; F of chunks; else the loss."""
    valid_share: Annotated[float, Shown("SHARE")] = 0.0
    """Hold out a random share of the training data, by the seed, to validate on, where there is no second file."""
    valid_last: Annotated[float, Shown("SHARE")] = 0.0
    """The same with the last share of the training data in its order, as for data in the order of time."""
    schedule: ScheduleName = "linear"
    """How the learning rate falls."""
    lr_end: float = 0.0
    """With `linear`: share of the first learning rate that is left at the end."""
    decay: float = 0.0
    """With `inverse`: rate / (1 + decay * epochs so far); 0 stands for 1."""
    shuffle: bool = True
    """Visit the samples in a new order each epoch."""
    batch: int = 0
    """With mode `minibatch`: visits summed into one update; 0: one a worker."""
    trace: bool = False
    """Count and size gradient errors on some of the visits (another form of the compiled code)."""
    merge_every: int = 0
    """With private copies: visits of a worker between two merges of the same row; 0: chosen."""
    hot_rows: int = 0
    """With sharing `hot`: private leading rows; 0: chosen."""
    device: Annotated[str, Shown(hidden=True)] = ""
    """Where it is trained by PyTorch; for programs that have a form for it."""

    _rates: ClassVar[str] = "Try 0.1 with adagrad, 0.01 with sgd"
    _fewest: ClassVar[int] = 1  # epochs

    def check(self) -> None:
        require(self, "epochs", self.epochs >= self._fewest, f"it must be at least {self._fewest}. Try 5.")
        require(self, "epochs", self.epochs < 2**30, "it must be at most 1073741823. Try 5.")
        if self.threads is not None:
            require(self, "threads", self.threads >= 1, "it must be at least 1; leave it out for one a core.")
            require(self, "threads", self.threads <= 4096, "it must be at most 4096; leave it out for one a core.")
        if self.lr is not None:
            require(self, "lr", self.lr > 0, f"it must be positive and finite. {self._rates}, or leave it out.")
        require_not_negative(self, "decay")
        require(self, "lr_end", 0 <= self.lr_end <= 1, "it is a share between 0 and 1.")
        require(self, "batch", self.batch >= 0, "it must not be negative; 0 means one visit a worker.")
        require(self, "seed", 0 <= self.seed < 2**63, "it must not be negative and fit 63 bits. Try 1.")
        require(self, "patience", self.patience >= 0, "it must not be negative; 0 means never.")
        for name in ("valid_share", "valid_last"):
            share = getattr(self, name)
            require(self, name, 0 <= share < 1, "it is a share of the training data, from 0 to below 1. Try 0.1.")
        one = not (self.valid_share and self.valid_last)
        require(self, "valid_last", one, "it cannot be joined with valid_share; choose one of the two.")
        require(self, "merge_every", self.merge_every >= 0, "it must not be negative; 0 means chosen.")
        require(self, "hot_rows", self.hot_rows >= 0, "it must not be negative; 0 means chosen.")
        if self.device:
            self._check_on_device()

    def _check_on_device(self) -> None:
        modes = ", ".join(MODES_ON_DEVICES)
        require(self, "mode", self.mode in MODES_ON_DEVICES, f"on a device the modes are {modes}.")
        one = self.sharing in ("auto", "all") and not self.merge_every and not self.hot_rows
        require(self, "sharing", one, "a device has one copy of the weights. Leave it, merge_every and hot_rows out.")
        require(self, "trace", not self.trace, "gradient errors are counted on the processor. Leave device out.")


@dataclass(frozen=True)
class ClassifierTrainConfig(TrainConfig):
    """How training runs: of classifiers, as all training and on devices."""

    epochs: Annotated[int, Shown(least=1)] = 0
    """Times that every sample is visited. Default: of mlp and wide-deep from 5 to 100, the more, the fewer rows there
    are, of the others 5."""
    device: Device = ""
    """Train by PyTorch on this device (models mlp, wide-deep and text), in whose memory weights and samples are. The
    model is the same, and serves anywhere. Default: compiled code on the processor."""
    batch: int = 0
    """With mode `minibatch`, and of texts on a device: visits summed into one update; 0: one a worker, on a
    device up to 16, in mode `serial` one."""

    _fewest: ClassVar[int] = 0


@dataclass(frozen=True)
class ClickTrainConfig(ClassifierTrainConfig):
    """How training of models of clicks runs: as of classifiers, with another default."""

    best_by: BestBy = "loss"
    """By which the best epoch is told on the validation data, whose model is kept: the log loss, because few clicks
    leave the accuracy where it is, and AUC does not see whether the chances are right."""


@dataclass(frozen=True)
class WordTrainConfig(TrainConfig):
    """How training of word vectors runs: as all training, with other defaults."""

    sharing: Sharing = "all"
    """Which weights the workers hold in common: all, all but the hot ones, or none between merges; `auto` tries."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: 0.025 for skip-gram and sums, with --subwords 0.05; 0.15 with --cbow."""
    lr_end: float = 0.17
    """With `linear`: share of the first learning rate that is left at the end."""
    shuffle: bool = False
    """Visit the text in a new order each epoch. Default: from its beginning to its end, as memory likes it."""

    _rates: ClassVar[str] = "Try 0.025, with cbow 0.15"


@dataclass(frozen=True)
class DocumentTrainConfig(WordTrainConfig):
    """How training of paragraph vectors runs: as of word vectors, with other defaults."""

    epochs: int = 10
    """Times that every word is visited."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: 0.15; 0.025 with --dbow and for sums."""

    _rates: ClassVar[str] = "Try 0.15, with dbow 0.025"


@dataclass(frozen=True)
class TaggerTrainConfig(TrainConfig):
    """How training of taggers runs: as all training, with other defaults."""

    epochs: int = 10
    """Times that every sentence is visited."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: of a CRF 0.05 for the features chunking, 0.1 for chunking-more, pos and
    segmentation, else calibrated; of a Bi-LSTM 0.002 with adam."""

    _rates: ClassVar[str] = "Try 0.05 with sgd, 0.002 with adam"


@dataclass(frozen=True)
class RecommenderTrainConfig(TrainConfig):
    """How training of recommenders runs: as all training, with other defaults."""

    epochs: int = 20
    """Times that every rating is visited."""
    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: 0.1 with adagrad, 0.05 with sgd, 0.01 with the others."""

    _rates: ClassVar[str] = "Try 0.1 with adagrad, 0.05 with sgd"


@dataclass(frozen=True)
class ModuleTrainConfig(TrainConfig):
    """How training of PyTorch modules runs: as all training, with other defaults."""

    lr: Annotated[float | None, Shown("RATE")] = None
    """First learning rate. Default: that of the program, else 0.001 with adam and adamw, 0.01 with the others."""
    sharing: Sharing = "all"
    """Which weights the workers hold in common: all of them."""
    schedule: ScheduleName = "constant"
    """How the learning rate falls."""

    device: Device = ""
    """Train on this device, in one process with a stream for each of --threads. Default, and cpu: worker processes."""

    _rates: ClassVar[str] = "Try 0.001 with adam, 0.01 with adagrad"

    def check(self) -> None:
        if self.device == "cpu":
            object.__setattr__(self, "device", "")
        super().check()
        one = self.sharing == "all" and not self.merge_every and not self.hot_rows
        require(self, "sharing", one, "the workers of a module have one copy of its weights. Leave it out.")


@dataclass(frozen=True)
class SaveConfig(Config):
    """What is written, and when."""

    output: Directory = ""
    """Directory of the trained model; made, or replaced when it holds a model. Default: nothing is saved."""
    checkpoint_every: Annotated[str, Shown("10m|500s|1epoch")] = ""
    """Write a checkpoint this often, beside the output directory (OUTPUT.checkpoint)."""
    resume: bool = False
    """Go on where the last checkpoint beside the output directory stands; start if there is none."""

    def check(self) -> None:
        asked = bool(self.checkpoint_every or self.resume)
        name = "checkpoint_every" if self.checkpoint_every else "resume"
        require(self, name, bool(self.output) or not asked, "checkpoints live beside the output directory. Add output.")


@dataclass(frozen=True)
class WatchConfig(Config):
    """Looking at a run while it goes on."""

    watch: Annotated[tuple[str, ...], Shown("NAME")] = ()
    """Show a weight array, a slice or a number of it: weights, weights[3,:5], norm(weights), max(weights)."""
    every: Annotated[str, Shown("N|Ns")] = "2s"
    """Show watched variables every N samples, or every N seconds (5s)."""
    log_dir: Directory = ""
    """Write events.jsonl there, and TensorBoard files if tensorboard is installed."""
    report: File = ""
    """Write one HTML page about the run at its end: curves, gradient errors, speed, options."""
    profile: Annotated[str, Shown("FILE.json", bare="auto")] = ""
    """Show where the time went, and write a trace for Chrome's trace viewer or Perfetto. Default name of the file:
    OUTPUT.profile.json, without output hogwild.profile.json."""


@dataclass(frozen=True)
class ShowConfig(Config):
    """What the command prints."""

    json: bool = False
    """Standard output is exactly one JSON object; everything else goes to standard error."""
    quiet: bool = False
    """No progress bar and no notes; errors only."""
    debug: bool = False
    """Show the traceback of an error."""
    config: File = ""
    """TOML file of options: keys are flag names; flags on the command line win."""
