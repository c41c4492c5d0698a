"""What all strategies have in common: taking what changed here, and taking over what came of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from hogwild.arrays import Table
from hogwild.cluster.wire.ledger import Ledger
from hogwild.cluster.wire.link import Link
from hogwild.cluster.wire.packing import Form, Packet, Rows, pack, unpack
from hogwild.cluster.wire.rounds import Round, Rounds
from hogwild.config.cluster import ClusterConfig


class Member(NamedTuple):
    """A node among others. open_ledger: what its workers change from then on."""

    rank: int
    nodes: int
    tables: Mapping[str, Table]
    config: ClusterConfig
    link: Link
    rounds: Rounds
    open_ledger: Callable[[], Ledger]
    pages: Any = None
    """What a node trains on in blocks, where parameter actors hold the tables."""

    def form(self, here: Round) -> Form:
        """How cells are sent."""
        return "float32" if here.exact else self.config.deltas

    def pack(self, changes: list[Rows], here: Round) -> Packet:
        """For the wire."""
        return pack(changes, self.tables, self.form(here))

    def unpack(self, packet: Packet) -> list[Rows]:
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

    def begin(self, here: Round) -> None:
        """Visits after this exchange begin; the workers stand still, and so did all nodes."""

    @abstractmethod
    def exchange(self, here: Round, leading: int | None) -> None:
        """Bring together what changed in leading rows of ranked tables, or in all; where `here` is whole, at once."""

    def level(self, here: Round) -> None:
        """All nodes have exchanged everything and stand still: take over what others brought after this one."""

    def answer(self, rank: int, here: Round, packet: Packet, leading: int | None) -> Packet:
        """Another node calls."""
        raise NotImplementedError(f"nodes do not call each other with strategy {self.me.config.strategy}")


class Together(Strategy):
    """Changes go out, what came of those of all comes back, by one interval or more later while workers go on."""

    def __init__(self, me: Member) -> None:
        super().__init__(me)
        self._ledger = me.open_ledger()
        self._flight: deque[list[tuple[list[Rows], Any]]] = deque()  # for each owner what was sent, what is awaited

    @property
    @abstractmethod
    def owners(self) -> int:
        """Where changes go: row r to r % owners."""

    @abstractmethod
    def send(self, owner: int, here: Round, changes: list[Rows], leading: int | None) -> Any:
        """Let changes go; returns what `collect` needs."""

    @abstractmethod
    def collect(self, awaited: Any) -> list[Rows]:
        """What came of the changes of all; waits for it."""

    def exchange(self, here: Round, leading: int | None) -> None:
        if self.me.nodes == 1:
            return
        config = self.me.config
        late = 0 if here.whole else config.max_delay
        while len(self._flight) >= max(1, late):
            self._receive()
        keeps = config.error_feedback and not here.exact
        taken = self._ledger.take(self.me.form(here), self.owners, leading, every=not config.touched, keeps=keeps)
        mine = [[rows.kept() for rows in part] for part in taken]
        awaited = [self.send(owner, here, part, leading) for owner, part in enumerate(mine)]
        self._flight.append(list(zip(mine, awaited, strict=True)))
        while len(self._flight) > late:
            self._receive()

    def _receive(self) -> None:
        for mine, awaited in self._flight.popleft():
            self._ledger.settle(self.collect(awaited), mine)
