"""What the executor asks of whatever makes the visits of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hogwild.executor.sharing import WeightStore
from hogwild.executor.trace import Trace
from hogwild.kernels.loop.span import Span


class Backend(Protocol):
    """Makes visits for the workers of a run; each worker is a thread of the executor that calls `run` for its spans.

    A program whose visits are not compiled code has its own (`Program.backend`), made with the `Plan` of the run. The
    executor calls `probe`, if at all, before anything is opened; then `open` and `prepare` once; then, for each epoch,
    `begin` and many `run`; `close` at the end.
    """

    trace: Trace | None
    """Gradient errors, where they are counted; known after `open`."""

    notes: Sequence[str]
    """What the user should know of where visits are made; known after `open`."""
    group: int
    """Visits that a worker makes at once."""
    span_seconds: float
    """Aim of a span, after which a worker comes back to the executor; 0: milliseconds, as sharing has it."""

    def open(self, store: WeightStore) -> None:
        """Make ready for workers on these weights."""

    def prepare(self) -> float:
        """Compile, or start processes; returns seconds."""

    def begin(self, position: int) -> None:
        """An epoch begins, or goes on, at a position; no worker is running."""

    def run(self, worker: int, span: Span) -> float:
        """Make the visits of a span; returns the worker's new sum of losses. Others run meanwhile: no GIL is held."""

    def probe(self, weights: Any, spans: Sequence[Span], most: float = math.inf) -> float:
        """Make the visits of some spans on the given weights, serially; the sum of losses of the last span, infinite
        if the mean loss of one before it is above `most`."""

    def fetch(self) -> None:
        """Bring what the workers have changed into the weights, if it is kept elsewhere; they may be running."""

    def send(self) -> None:
        """The weights have been changed while the workers are parked: bring them to where visits are made."""

    def stop(self) -> None:
        """A worker has failed: no other may wait for it."""

    def phases(self, worker: int) -> Sequence[int]:
        """Ticks of the phases of a worker's visits so far, where they are timed."""

    @property
    def random(self) -> npt.NDArray[np.uint64]:
        """The random state of each worker."""

    @random.setter
    def random(self, states: npt.NDArray[np.uint64]) -> None: ...

    def close(self) -> None:
        """No more visits. Called once or more often, whatever happened before."""


class Stateless:
    """What backends have in common whose random numbers depend on the seed and on the position of a visit alone, and
    whose visits are not timed by phases."""

    _plan: Any
    _count: int

    def phases(self, worker: int) -> Sequence[int]:
        """Not timed."""
        return ()

    @property
    def random(self) -> npt.NDArray[np.uint64]:
        """The seed, for each worker."""
        return np.full(self._count, self._plan.config.seed, np.uint64)

    @random.setter
    def random(self, states: npt.NDArray[np.uint64]) -> None: ...
