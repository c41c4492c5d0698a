"""Where a run stands, and all that it needs to go on from there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Position(NamedTuple):
    """Epochs finished, and visits made in the epoch that has begun since."""

    epoch: int = 0
    visits: int = 0


@dataclass(frozen=True)
class RunState:
    """What a parked or ended run needs, besides the program's arrays, to go on as if it had never stopped.

    Numbers here are exact: a checkpoint stores floats as their 64 bits, so `serial` goes on bit for bit.
    """

    position: Position
    random: npt.NDArray[np.uint64]
    """The random state of each worker."""
    seed: int
    sharing: str
    """As chosen: never `auto`."""
    lr: float
    """First learning rate, as given or calibrated."""
    epoch_visits: int = 0
    """Visits of an epoch."""
    loss_sum: float = 0.0
    """Of the visits of this epoch so far."""
    last_loss: float = math.nan
    """Mean loss of the last whole epoch."""
    best_loss: float = math.inf
    best_epoch: int = -1
    train_seconds: float = 0.0
    private: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """Arrays of single workers that are not in the program's weights, by name."""
