"""Each node with one random other at a time: no exchange needs all of them, and a dead one is passed over.

Of every pair both keep what they last agreed on. What each has changed since then, its own and what it heard from
others, is combined; the direction that both have in common, often because both heard it, counts once.
"""

from __future__ import annotations

import threading

import numpy as np

from hogwild.cluster.strategies.strategy import Member, Strategy
from hogwild.cluster.wire.combining import combine
from hogwild.cluster.wire.link import Pending
from hogwild.cluster.wire.packing import Packet, Rows
from hogwild.cluster.wire.rounds import Round
from hogwild.errors import ClusterError


class Gossip(Strategy):
    """Pairs of nodes."""

    in_step = False
    levels = False

    def __init__(self, me: Member) -> None:
        super().__init__(me)
        self._ledgers = [me.open_ledger() for _ in range(me.nodes)]  # of each pair: all begin with the same weights
        self._lock = threading.Lock()
        self._random = np.random.default_rng((me.rank, 104729))
        self._flight: tuple[int, list[Rows], Pending] | None = None

    def exchange(self, here: Round, leading: int | None) -> None:
        """With a random other; what comes back is taken over at the next exchange."""
        self._receive()
        if self.me.nodes == 1 or here.whole:
            return
        peer = int(self._random.integers(self.me.nodes - 1))
        peer += peer >= self.me.rank
        with self._lock:
            (taken,) = self._ledgers[peer].take(self.me.form(here), leading=leading)
            mine = [rows.kept() for rows in taken]
        self._flight = peer, mine, self.me.link.exchange(peer, here, self.me.pack(mine, here), leading)
        if not self.me.config.max_delay:
            self._receive()

    def _receive(self) -> None:
        if self._flight is None:
            return
        (peer, mine, pending), self._flight = self._flight, None
        try:
            agreed = self.me.unpack(pending.packet())
        except ClusterError:  # it is dead, or does not answer: what it does not know it hears from others
            return
        with self._lock:
            self._ledgers[peer].settle(agreed, mine)

    def answer(self, rank: int, here: Round, packet: Packet, leading: int | None) -> Packet:
        """Another node calls, while workers here go on."""
        theirs = self.me.unpack(packet)
        with self._lock:
            (mine,) = self._ledgers[rank].take(self.me.form(here), leading=leading)
            pair = [mine, theirs] if self.me.rank < rank else [theirs, mine]
            agreed = combine(pair, self.me.tables, self.me.config.combine, self.me.form(here))
            self._ledgers[rank].settle(agreed, mine)
        return self.me.pack(agreed, here)
