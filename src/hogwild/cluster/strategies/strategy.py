"""What all strategies have in common: taking what changed here, and taking over what came of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hogwild.arrays import Table
from hogwild.cluster.wire.combining import add, join, split, subtract
from hogwild.cluster.wire.link import Link
from hogwild.cluster.wire.packing import Packet, pack, unpack
from hogwild.cluster.wire.rounds import Round, Rounds
from hogwild.config.cluster import ClusterConfig
from hogwild.executor.delta import Delta, RowDelta

EVERYTHING = 1 << 62  # rows
Changes = list[RowDelta]


class Member(NamedTuple):
    """A node among others. open_delta: what its workers change from then on."""

    rank: int
    nodes: int
    tables: Mapping[str, Table]
    config: ClusterConfig
    link: Link
    rounds: Rounds
    open_delta: Callable[[], Delta]

    def pack(self, changes: Changes, here: Round) -> Packet:
        """For the wire."""
        return pack(changes, self.tables, "float32" if here.exact else self.config.deltas)

    def unpack(self, packet: Packet) -> Changes:
        """From the wire."""
        return unpack(packet, self.tables)


class Strategy(ABC):
    """Called by a node, whose workers stand still, at each exchange."""

    in_step: ClassVar[bool] = True
    """Whether every exchange needs all nodes."""
    levels: ClassVar[bool] = True
    """Whether all nodes have the same weights after an exchange of everything."""

    def __init__(self, me: Member) -> None:
        self.me = me

    @abstractmethod
    def exchange(self, here: Round, leading: int | None) -> None:
        """Bring together what changed in leading rows of ranked tables, or in all; where `here` is whole, at once."""

    def level(self, here: Round) -> None:
        """All nodes have exchanged everything and stand still: take over what others brought after this one."""

    def answer(self, rank: int, here: Round, packet: Packet, leading: int | None) -> Packet:
        """Another node calls."""
        raise NotImplementedError


class Together(Strategy):
    """Changes go out, what came of those of all comes back, by one interval or more later while workers go on."""

    def __init__(self, me: Member) -> None:
        super().__init__(me)
        self._delta = me.open_delta()
        self._flight: deque[list[tuple[Changes, Any]]] = deque()  # for each owner what was sent, and what is awaited
        self._residue: Changes = []  # that rounding left out
        self._delta.settle([], [])  # compiled, or found compiled, before the clock runs

    @property
    @abstractmethod
    def owners(self) -> int:
        """Where changes go: row r to r % owners."""

    @abstractmethod
    def send(self, owner: int, here: Round, packet: Packet, leading: int | None) -> Any:
        """Let changes go; returns what `collect` needs."""

    @abstractmethod
    def collect(self, awaited: Any) -> Packet:
        """What came of the changes of all; waits for it."""

    def exchange(self, here: Round, leading: int | None) -> None:
        if self.me.nodes == 1:
            return
        late = 0 if here.whole else self.me.config.max_delay
        while len(self._flight) >= max(1, late):
            self._receive()
        mine = self._delta.take(EVERYTHING, leading)
        if not self.me.config.touched:
            mine = whole_tables(mine, self.me.tables, leading)
        if self._residue:
            mine, self._residue = add(mine, self._residue, self.me.tables), []
        parts = split(mine, self.owners)
        packets = [self.me.pack(part, here) for part in parts]
        if self.me.config.error_feedback and not here.exact:
            parts = [self.me.unpack(packet) for packet in packets]
            self._residue = subtract(mine, join(parts), self.me.tables)
        awaited = [self.send(owner, here, packet, leading) for owner, packet in enumerate(packets)]
        self._flight.append(list(zip(parts, awaited, strict=True)))
        while len(self._flight) > late:
            self._receive()

    def _receive(self) -> None:
        for mine, awaited in self._flight.popleft():
            self._delta.settle(self.me.unpack(self.collect(awaited)), mine)


def whole_tables(changes: Changes, tables: Mapping[str, Table], leading: int | None) -> Changes:
    """The changes with all other rows, which did not change, among them."""
    found = {change.table: change for change in changes}
    whole = []
    for name, table in tables.items():
        rows = table.rows if leading is None or table.kind != "ranked" else min(leading, table.rows)
        cells = np.zeros((rows, table.cells), np.float32)
        if name in found:
            cells[found[name].ids] = found[name].cells
        whole.append(RowDelta(name, np.arange(rows), cells))
    return whole
