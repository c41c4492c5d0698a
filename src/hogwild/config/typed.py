"""The options of training for who checks types: names and types of `TrainConfig`, whose fields say what they mean."""

from __future__ import annotations

from typing import TypedDict

from hogwild.config.kinds import BestBy, Mode, ScheduleName, Sharing


class RunOptions(TypedDict, total=False):
    """What may be given by name to `AsyncExecutor`, beside its own arguments."""

    epochs: int
    lr: float | None
    seed: int
    patience: int
    best_by: BestBy
    valid_share: float
    valid_last: float
    schedule: ScheduleName
    lr_end: float
    decay: float
    shuffle: bool
    batch: int
    trace: bool
    merge_every: int
    hot_rows: int
    device: str


class TrainOptions(RunOptions, total=False):
    """What may be given by name to `hogwild.train`."""

    threads: int | None
    mode: Mode
    sharing: Sharing
