"""The five modes: how many workers there are, and the tags that make compiled code take turns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hogwild.arrays import CELL, Offsets, Room, make_scratch
from hogwild.config import TrainConfig
from hogwild.errors import ConfigError
from hogwild.kernels.loop.modes import DONE, READY, TURN, FreeMode, Locked, Minibatch, RoundRobin, make_turns
from hogwild.machine import cores, memory

IN_ROUNDS = ("round-robin", "minibatch")
STREAMS = 2  # of a device: one computes while the other is told what to do
_ROW = 20  # bytes that a touched row of a batch takes besides its gradient


def workers_of(config: TrainConfig) -> int:
    """Workers of a run: one in `serial`, else as many as asked for, else one a core, on a device `STREAMS`."""
    if config.mode == "serial":
        return 1
    return config.threads or (STREAMS if config.device else cores())


def batch_of(config: TrainConfig) -> int:
    """Visits in one update of mode `minibatch`."""
    return config.batch or workers_of(config)


def lockstep_of(config: TrainConfig) -> int:
    """Spans must be multiples of this many visits; 0 where workers go their own ways."""
    if config.mode == "round-robin":
        return workers_of(config)
    if config.mode == "minibatch":
        return math.lcm(workers_of(config), batch_of(config))
    return 0


class Turns:
    """What workers wait on in one run, and each one's tag."""

    def __init__(self, config: TrainConfig, room: Room, visits: int) -> None:
        self.stop: Offsets = np.zeros(16, np.int64)
        self._turns = make_turns()
        self._mode = config.mode
        workers = workers_of(config)
        self.tags: list[Any]
        if config.mode == "locked":
            self.tags = [Locked(self._turns, self.stop)] * workers
        elif config.mode == "round-robin":
            self.tags = [RoundRobin(self._turns, self.stop, w, workers) for w in range(workers)]
        elif config.mode == "minibatch":
            self.tags = self._minibatch(config, room, visits)
        else:
            self.tags = [FreeMode()] * workers

    def _minibatch(self, config: TrainConfig, room: Room, visits: int) -> list[Any]:
        workers, batch = workers_of(config), batch_of(config)
        needed = batch * room.rows * (CELL * room.width + _ROW) + CELL * room.dense
        if needed > memory():
            raise ConfigError(
                f"batch is {batch}: its gradients need {needed / 1e9:.1f} GB, more than this machine has; use less."
            )
        whole = -(-visits // workers) * workers
        total = make_scratch(room._replace(rows=room.rows * batch), np.uint64(0))
        slots = np.zeros(1 << (2 * len(total.rows)).bit_length(), np.int32)
        return [
            Minibatch(self._turns, self.stop, w, workers, batch, whole, total, slots)
            for w in range(workers)
        ]  # fmt: skip

    def begin(self, position: int) -> None:
        """An epoch begins, or goes on, at a position; nobody is running."""
        if self._mode in IN_ROUNDS:
            self._turns[[TURN, READY, DONE]] = position
