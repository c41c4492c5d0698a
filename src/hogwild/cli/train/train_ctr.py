"""`hogwild train ctr`: the flags; ctr.py and training.py do the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from hogwild.cli.flags import Page
from hogwild.config import CtrConfig, FeedConfig, Files, SaveConfig, ShowConfig, TrainConfig, WatchConfig
from hogwild.config.options import Shown

PAGE = Page(
    "hogwild train ctr",
    """Train a model of clicks (label 0 or 1) on logs with categories in slots and numbers beside them: embeddings with
dense layers, wide and deep, factorization machines, or linear.

Files may be MultiSlot text (--slots describes them), TFRecord, Criteo's TSV, CSV, TSV, Parquet, libffm or svmlight,
compressed or not.

Examples:
  hogwild train ctr 'part-*.txt' --slots slots.toml --valid test.txt --output model
  hogwild train ctr clicks.csv --label click --ignore id --model wide-deep --output model
  hogwild train ctr day_0.gz --format criteo --categories hash --hash-bits 24 --dim 16 --hidden 400,400,400
  hogwild train ctr train.ffm --model ffm --dim 4 --valid test.ffm --json""",
)


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    files: Annotated[tuple[str, ...], Shown("TRAIN...", positional=True)] = ()
    """Training files; globs are expanded, - is standard input."""
    valid: Files = ()
    """Validation file, evaluated after each epoch; the model of the best epoch is kept."""
    train: TrainConfig = field(default_factory=TrainConfig)
    model: CtrConfig = field(default_factory=CtrConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    feed: FeedConfig = field(default_factory=FeedConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Train; returns the exit code."""
    from hogwild.cli.train.ctr import CtrJob  # here: they need everything there is
    from hogwild.cli.train.run import run_training

    return run_training(options, CtrJob(options))
