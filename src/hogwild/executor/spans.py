"""Handing out spans: who works on what, and where everybody stands still.

Workers claim under a lock in Python, which is right on free-threaded Python too. Between spans a worker sees a
pause, a stop or another worker's error. Every position of an epoch is claimed exactly once in the free modes; in
the modes that work in rounds all workers go through the same spans, each taking its own visits of a round.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from hogwild.errors import WorkerError

SPAN_SECONDS = 0.005  # long against the 20 microseconds of a claim, short against a person's patience
_LEAST_SECONDS = 0.0003  # that a span lasts near the end of an epoch, where spans become shorter
_MOST = 1 << 40
_SPANS_LEFT = 3  # a worker leaves at least this many spans for each worker, so that all end at about the same time


@dataclass
class Claim:
    """Positions start to stop of an epoch, for one worker."""

    epoch: int
    start: int
    stop: int


class Claims:
    """The state of one run that workers and the main thread share, behind one lock."""

    def __init__(self, workers: int, lockstep: int = 0, seconds: float = SPAN_SECONDS, group: int = 1) -> None:
        self.workers = workers
        self.lockstep = lockstep  # visits in a round in the modes that work in rounds, else 0
        self.seconds = seconds  # that a span should last
        self.group = group  # visits that a worker makes at once: spans are of whole groups, so that one worker repeats
        self.error: WorkerError | None = None
        # Reasons to stand still. Closing a gate takes no lock: it may happen in a signal handler of the main thread.
        self.gates: set[str] = set()
        self._lock = threading.RLock()
        self._wake_workers = threading.Condition(self._lock)
        self._wake_main = threading.Condition(self._lock)
        self._epoch = -1
        self._visits = 0
        self._cursor = 0
        self._rounds: list[tuple[int, int]] = []  # spans of this epoch in lockstep, agreed by the first who comes
        self._next_round = [0] * workers
        self._busy = 0
        self._held = False  # the main thread is at work where all stand still: no gate that opens lets anyone go
        self._over = False
        self._visits_per_second = 0.0

    # -- for workers ------------------------------------------------------------------------------------------------

    def claim(self, worker: int, most: int = _MOST) -> Claim | None:
        """The next span of a worker, of so many visits at the most. Waits while the run is parked; None when it ends.

        Where workers go in rounds nothing is private, and all have the same spans: there is no such limit.
        """
        with self._lock:
            while self.error is None:
                span = self._next(worker, most)
                if span is not None:
                    self._busy += 1
                    return Claim(self._epoch, *span)
                if self._over:
                    break
                self._wake_workers.wait()
            return None

    def done(self, visits: int, seconds: float) -> None:
        """A worker has finished its span."""
        with self._lock:
            self._busy -= 1
            if seconds > 0 and visits > 0:
                now = visits / seconds
                self._visits_per_second = now if not self._visits_per_second else 0.5 * (self._visits_per_second + now)
            if self._busy == 0:
                self._wake_main.notify_all()

    def fail(self, error: WorkerError) -> None:
        """A worker has failed: the first error ends the run for all."""
        with self._lock:
            self.error = self.error or error
            self._busy -= 1
            self._wake_workers.notify_all()
            self._wake_main.notify_all()

    def _next(self, worker: int, most: int) -> tuple[int, int] | None:
        if self.lockstep:
            return self._next_in_step(worker)
        if self._closed or self._cursor >= self._visits:
            return None
        start = self._cursor
        size = min(-(-self._size(most) // self.group) * self.group, max(most, 1))
        self._cursor = min(start + size, self._visits)
        return start, self._cursor

    def _next_in_step(self, worker: int) -> tuple[int, int] | None:
        number = self._next_round[worker]
        if number == len(self._rounds):
            # A closed gate stops new spans only: those who are behind catch up, or the others wait for ever.
            if self._closed or self._cursor >= self._visits:
                return None
            start = self._cursor
            self._cursor = min(start + -(-self._size(_MOST) // self.lockstep) * self.lockstep, self._visits)
            self._rounds.append((start, self._cursor))
            self._wake_workers.notify_all()
        self._next_round[worker] += 1
        return self._rounds[number]

    @property
    def _closed(self) -> bool:
        return bool(self.gates) or self._held or self._over

    def _size(self, most: int) -> int:
        pace = self._visits_per_second  # 0 before the first span, which has one visit: it may take long
        wanted = int(pace * self.seconds)
        left = self._visits - self._cursor
        least = int(pace * _LEAST_SECONDS)
        fair = max(left // (_SPANS_LEFT * self.workers), least)
        return max(1, min(wanted, most, fair, max(-(-left // self.workers), least)))

    # -- for the main thread ----------------------------------------------------------------------------------------

    def open_epoch(self, epoch: int, visits: int, start: int = 0) -> None:
        """Let workers claim the positions of an epoch from `start` on. All workers are idle."""
        with self._lock:
            self._epoch, self._visits, self._cursor = epoch, visits, start
            self._rounds.clear()
            self._next_round = [0] * self.workers
            self._wake_workers.notify_all()

    @property
    def position(self) -> int:
        """Positions of this epoch handed out; all of them are finished when nobody is busy."""
        with self._lock:
            return self._cursor

    def wait(self, seconds: float) -> str:
        """Wait for news: `epoch` (all visited), `parked` (gate closed and nobody busy), `failed`, or `running`.

        After `parked` nobody goes on before `release`, even if the gate is opened meanwhile.
        """
        with self._lock:
            state = self._state()
            if state == "running":
                self._wake_main.wait(seconds)
                state = self._state()
            self._held = state == "parked"
            return state

    def _state(self) -> str:
        if self.error is not None:
            return "failed"
        if self._busy == 0 and all(n == len(self._rounds) for n in self._next_round if self.lockstep):
            if self._cursor >= self._visits:
                return "epoch"
            if self.gates or self._held:
                return "parked"
        return "running"

    def wait_at_gates(self, seconds: float) -> None:
        """Wait until the last gate opens, for so long at the most."""
        with self._lock:
            if self.gates:
                self._wake_main.wait(seconds)

    def release(self) -> None:
        """After `parked`: workers may go on, unless a gate is closed."""
        with self._lock:
            self._held = False
            self._wake_workers.notify_all()

    def open_gate(self, reason: str) -> None:
        """This reason to stand still is gone."""
        with self._lock:
            self.gates.discard(reason)
            self._wake_workers.notify_all()
            self._wake_main.notify_all()

    def finish(self) -> None:
        """The run is over: no more spans. In lockstep those who are behind still catch up."""
        with self._lock:
            self._over = True
            self._wake_workers.notify_all()
