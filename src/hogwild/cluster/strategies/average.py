"""Every node with all others, without a parameter actor: row r belongs to node r % n, which combines its changes.

As many bytes as a ring of n nodes would carry, in two steps instead of 2 (n - 1): and the common direction of changes,
by which they are combined, needs all changes of a row in one place.
"""

from __future__ import annotations

from typing import Any

from hogwild.cluster.strategies.strategy import Together
from hogwild.cluster.wire.packing import Packet, Rows
from hogwild.cluster.wire.rounds import Round


class Average(Together):
    """All-reduce by owners of rows."""

    @property
    def owners(self) -> int:
        """All nodes."""
        return self.me.nodes

    def send(self, owner: int, here: Round, changes: list[Rows], leading: int | None) -> Any:
        """To another node, or to where they meet here."""
        if owner != self.me.rank:
            return self.me.link.exchange(owner, here, self.me.pack(changes, here))
        self.me.rounds.bring(here, owner, changes)
        return here

    def collect(self, awaited: Any) -> list[Rows]:
        """From another node, or from here."""
        if not isinstance(awaited, Round):
            return self.me.unpack(awaited.packet())
        with self.me.link.traffic.waiting():
            return self.me.rounds.result(awaited, self.me.rank).changes

    def answer(self, rank: int, here: Round, packet: Packet, leading: int | None) -> Packet:
        """Another node brings changes of rows that belong to this one."""
        return self.me.rounds.meet(here, rank, self.me.unpack(packet)).packet
