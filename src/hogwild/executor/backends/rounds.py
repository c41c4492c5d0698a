"""The modes in which workers wait for one another, for workers that are not compiled code.

Each worker has a thread of this process, which waits here: no lock is held by a process that may die with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol


class Divided(Protocol):
    """A worker whose visits are made in two parts."""

    def gradient(self, position: int) -> float:
        """Compute the gradient of a visit, and keep it; its loss."""

    def apply(self, position: int) -> None:
        """Write the gradient that was kept."""

    def take(self) -> Any:
        """The gradient that was kept."""

    def add(self, total: Any, gradient: Any) -> Any:
        """The sum of gradients; None is the first total."""

    def apply_sum(self, position: int, total: Any) -> None:
        """Write a sum of gradients."""


class Rounds:
    """Who may read, and who may write, in `round-robin` and `minibatch`, by positions of an epoch.

    step: visits whose gradients are computed before any of them is written: workers, or a batch.
    """

    def __init__(self, step: int, summed: bool, visits: int) -> None:
        self._step, self._summed, self._visits = step, summed, visits
        self._turn = threading.Condition()
        self._ready = self._applied = 0
        self._stopped = False
        self._total: Any = None

    def begin(self, position: int) -> None:
        """An epoch begins, or goes on, here."""
        with self._turn:
            self._ready = self._applied = position

    def stop(self) -> None:
        """Nobody waits any more."""
        with self._turn:
            self._stopped = True
            self._turn.notify_all()

    def visit(self, worker: Divided, position: int) -> float | None:
        """Make a visit when its turn comes; its loss, or None where a worker has failed."""
        first = position - position % self._step
        if not self._wait(lambda: self._applied >= first):
            return None
        loss = worker.gradient(position)
        return loss if (self._sum_up if self._summed else self._write)(worker, position) else None

    def _write(self, worker: Divided, position: int) -> bool:
        last = min(position - position % self._step + self._step, self._visits)
        with self._turn:
            self._ready += 1
            self._turn.notify_all()
        if not self._wait(lambda: self._ready >= last and self._applied == position):
            return False
        worker.apply(position)
        with self._turn:
            self._applied += 1
            self._turn.notify_all()
        return True

    def _sum_up(self, worker: Divided, position: int) -> bool:
        mine = worker.take()
        if not self._wait(lambda: self._ready == position):
            return False
        self._total = worker.add(self._total, mine)  # whose turn it is, is alone here
        whole = (position + 1) % self._step == 0 or position + 1 == self._visits
        if whole:
            worker.apply_sum(position, self._total)
            self._total = None
        with self._turn:
            self._ready += 1
            self._applied = self._ready if whole else self._applied
            self._turn.notify_all()
        return True

    def _wait(self, ready: Callable[[], bool]) -> bool:
        with self._turn:
            self._turn.wait_for(lambda: self._stopped or ready())
            return not self._stopped
