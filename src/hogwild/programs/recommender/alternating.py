"""What makes the visits of alternating least squares: a visit solves for one user or one item, an epoch for all.

Users come first. Whoever comes to the items waits until the last user is solved, so that each row is solved with the
other side as it is at that moment: the result is the same, bit for bit, whatever the number of workers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.config import TrainConfig
from hogwild.errors import ConfigError
from hogwild.kernels.sparse.alternating import Side, System, solve_rows
from hogwild.programs.recommender.ranking import Seen, turned

STEPS = 3  # of conjugate gradients from where a row stands; more of them are worth less than another epoch
_USELESS = ("lr", "sharing", "schedule", "lr_end", "decay", "shuffle", "batch", "trace", "merge_every", "hot_rows")


def check_options(config: TrainConfig) -> None:
    """ConfigError for an option of training that has no effect where rows are solved for."""
    usual = type(config)()
    for name in _USELESS:
        if getattr(config, name) != getattr(usual, name):
            flag = name.replace("_", "-")
            raise ConfigError(f"--{flag} has no effect on least squares (als), which take no steps; leave it out.")


class Alternating:
    """The backend of a run (see `executor/backends`): positions of an epoch are the users, then the items."""

    trace = None
    notes: Sequence[str] = ()
    group = 1
    span_seconds = 0.0

    def __init__(self, plan: Any) -> None:
        if plan.shard != (0, 1) or plan.exchange_every:
            raise ConfigError("least squares (als) are solved on one machine; leave --cluster out, or use --loss bpr.")
        self._seed, self._program = plan.config.seed, plan.program
        self._users = len(plan.program.users)
        self._turn = threading.Condition()
        self._solved, self._stopped = 0, False
        self._systems: dict[int, System] = {}

    def open(self, store: Any) -> None:
        """Who has what, from both sides; room for each worker."""
        program, dim = self._program, self._program.config.dim
        mine: Seen = program.seen
        theirs = turned(mine, len(program.items))
        users, items = (table.reshape(-1, dim) for table in store.weights)
        self._sides = (
            Side(users, items, mine.offsets, mine.items),
            Side(items, users, theirs.offsets, theirs.items),
        )  # fmt: skip
        self._rooms = [np.zeros((4, dim), np.float32) for _ in range(store.workers)]

    def prepare(self) -> float:
        """Compile; returns seconds."""
        began = time.perf_counter()
        solve_rows(self._sides[0], self._system(0), 0, 0, self._rooms[0])
        self._systems.clear()
        return time.perf_counter() - began

    def begin(self, position: int) -> None:
        """So many rows are solved."""
        self._solved = min(position, self._users)
        self._systems.clear()

    def run(self, worker: int, span: Any) -> float:
        """Solve for the rows of a span; returns the worker's new sum of losses."""
        users, loss, room = self._users, span.loss, self._rooms[worker]
        if span.start < users:
            start, stop = span.start, min(span.stop, users)
            loss += solve_rows(self._sides[0], self._system(0), start, stop, room)
            with self._turn:
                self._solved += stop - start
                self._turn.notify_all()
        if span.stop > users:
            with self._turn:
                self._turn.wait_for(lambda: self._stopped or self._solved >= users)
            if not self._stopped:
                start = max(span.start, users) - users
                loss += solve_rows(self._sides[1], self._system(1), start, span.stop - users, room)
        return float(loss)

    def _system(self, side: int) -> System:
        """What the rows of a side have in common: made by who first needs it, since the other side stands still."""
        with self._turn:
            if side not in self._systems:
                program, across = self._program, self._sides[side].across
                weight = np.float32(1 / program.alpha)
                gram: Floats = np.ascontiguousarray(weight * (across.T @ across))
                self._systems[side] = System(gram, weight, np.float32(program.l2), STEPS)
            return self._systems[side]

    def probe(self, weights: Any, spans: Sequence[Any]) -> float:
        """There is no learning rate to be found."""
        return 0.0

    def fetch(self) -> None:
        """Workers write the weights themselves."""

    def send(self) -> None:
        """The weights have been changed by others."""
        self._systems.clear()

    def stop(self) -> None:
        """Nobody waits for the last user any more."""
        with self._turn:
            self._stopped = True
            self._turn.notify_all()

    def phases(self, worker: int) -> Sequence[int]:
        """Not timed."""
        return ()

    @property
    def random(self) -> npt.NDArray[np.uint64]:
        """Nothing is random but the beginning."""
        return np.full(len(self._rooms), self._seed, np.uint64)

    @random.setter
    def random(self, states: npt.NDArray[np.uint64]) -> None: ...

    def close(self) -> None:
        """Nothing is held."""
