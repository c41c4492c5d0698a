"""Every node with all others, without a parameter actor: row r belongs to node r % n, which combines its changes.

As many bytes as a ring of n nodes would carry, in two steps instead of 2 (n - 1): and the common direction of changes,
by which they are combined, needs all changes of a row in one place.
"""

from __future__ import annotations

from typing import Any

from hogwild.cluster.strategies.strategy import Changes, Together
from hogwild.cluster.wire.combining import join, split
from hogwild.cluster.wire.packing import Packet
from hogwild.cluster.wire.rounds import Round


class Average(Together):
    """All-reduce by owners of rows."""

    def send(self, here: Round, mine: Changes, leading: int | None) -> Any:
        """To each owner its rows."""
        me = self.me
        packets = [me.pack(part, here) for part in split(mine, me.nodes)]
        awaited = [
            me.link.exchange(peer, here, packets[peer]) if peer != me.rank else here for peer in range(me.nodes)
        ]
        me.rounds.bring(here, me.rank, me.unpack(packets[me.rank]))  # rounded, as those of others
        return awaited

    def collect(self, awaited: Any) -> Changes:
        """From each owner its rows."""
        me = self.me
        packets = []
        for pending in awaited:
            if isinstance(pending, Round):
                with me.link.traffic.waiting():
                    packets.append(me.rounds.result(pending, me.rank))
            else:
                packets.append(pending.packet())
        return join([me.unpack(packet) for packet in packets])

    def answer(self, rank: int, here: Round, packet: Packet, leading: int | None) -> Packet:
        """Another node brings changes of rows that belong to this one."""
        return self.me.rounds.meet(here, rank, self.me.unpack(packet))
