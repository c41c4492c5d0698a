"""Where the changes of several nodes meet: a round is complete when all its members have brought theirs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hogwild.arrays import Table
from hogwild.cluster.wire.combining import combine
from hogwild.cluster.wire.packing import Packet, Rows, pack
from hogwild.config.cluster import Combine, Deltas
from hogwild.errors import ClusterError

LONGEST = 120.0  # seconds that anybody waits for another process, before it says for what and gives up
_REMEMBERED = 64  # rounds whose members are still known after all have left: a late repetition is then no new round


class Round(NamedTuple):
    """Which exchange: an epoch, a number in it. whole: of all rows, and nobody goes on before; exact: not rounded.

    attempt: how often the nodes have begun, again after each fault.
    """

    epoch: int
    number: int
    whole: bool = False
    exact: bool = False
    attempt: int = 0

    def check(self, attempt: int) -> None:
        """ClusterError for what was sent before a fault and comes after all have begun anew: it must not count."""
        if self.attempt != attempt:
            raise ClusterError(f"{self} is of attempt {self.attempt + 1}; this is attempt {attempt + 1}.")

    def __str__(self) -> str:
        return f"exchange {self.number} of epoch {self.epoch + 1}"


NEVER = Round(-1, 0)  # before all others


class Result(NamedTuple):
    """What came of a round: for who is here, and for the others."""

    changes: list[Rows]
    packet: Packet


@dataclass
class _Meeting:
    brought: dict[int, Sequence[Rows]] = field(default_factory=dict)
    result: Result | None = None
    left: set[int] = field(default_factory=set)


class Rounds:
    """Rounds of one owner of rows. Whoever brings the last changes combines them, for all the same bytes."""

    def __init__(self, members: int, tables: Mapping[str, Table], how: Combine, form: Deltas) -> None:
        self._members, self._tables, self._how, self._form = range(members), tables, how, form
        self._lock = threading.Condition()
        self._meetings: dict[Round, _Meeting] = {}
        self._over: list[Round] = []
        self._aborted = ""

    def meet(self, here: Round, rank: int, changes: Sequence[Rows], longest: float = LONGEST) -> Result:
        """Bring the changes of a member and wait for what comes of all; brought twice they count once."""
        self.bring(here, rank, changes)
        return self.result(here, rank, longest)

    def bring(self, here: Round, rank: int, changes: Sequence[Rows]) -> None:
        """The changes of a member."""
        with self._lock:
            if here in self._over:
                raise ClusterError(f"node {rank} comes to {here}, which is over.")
            meeting = self._meetings.setdefault(here, _Meeting())
            meeting.brought.setdefault(rank, changes)
            if meeting.result is None and all(member in meeting.brought for member in self._members):
                many = [meeting.brought[member] for member in self._members]
                form = "float32" if here.exact else self._form
                whole = combine(many, self._tables, self._how, form)
                meeting.result = Result(whole, pack(whole, self._tables, form))
                self._lock.notify_all()

    def result(self, here: Round, rank: int, longest: float = LONGEST) -> Result:
        """What came of a round; waits for it."""
        until = time.monotonic() + longest
        with self._lock:
            meeting = self._meetings[here]
            while meeting.result is None:
                if self._aborted:
                    raise ClusterError(self._aborted)
                if not self._lock.wait(max(0.0, until - time.monotonic())) and time.monotonic() >= until:
                    missing = ", ".join(str(member) for member in self._members if member not in meeting.brought)
                    raise ClusterError(f"node {rank} waited {longest:.0f} s for node {missing} at {here}.")
            meeting.left.add(rank)
            if meeting.left >= set(self._members):
                del self._meetings[here]
                self._over = [*self._over[-_REMEMBERED:], here]
            return meeting.result

    def abort(self, why: str) -> None:
        """Nobody waits any more."""
        with self._lock:
            self._aborted = why
            self._lock.notify_all()
