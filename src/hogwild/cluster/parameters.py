"""The parameter actor: where nodes meet, or bring changes and take those of others without waiting for anybody."""

from __future__ import annotations

import os
import threading
from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hogwild.arrays import Floats, Table
from hogwild.cluster.wire.combining import combine
from hogwild.cluster.wire.ledger import Ledger
from hogwild.cluster.wire.packing import Packet, pack, unpack
from hogwild.cluster.wire.rounds import Round, Rounds
from hogwild.config.cluster import ClusterConfig


class Parameters:
    """One shard: rows r with r % shards == shard, of every table.

    Where nodes meet in rounds it combines. Where they do not, it holds the weights, and for every node what that node
    knows of them: what came from others since is what differs.
    """

    def __init__(self, shard: int, config: ClusterConfig) -> None:
        self._shard, self._config = shard, config

    def load(
        self, tables: Mapping[str, Table], count: int, attempt: int, weights: Sequence[Floats] | None = None
    ) -> None:
        """Begin anew, for so many nodes, with these weights where it is to hold them."""
        config, self._attempt = self._config, attempt
        self._tables = dict(tables)
        self._lock = threading.Lock()
        self._rounds = Rounds(count, tables, config.combine, config.deltas)
        self._answers: dict[int, tuple[Round, Packet]] = {}  # the last of each node: what is brought twice counts once
        self._ledgers: list[Ledger] = []  # what each node knows
        if weights is None:
            return
        own: dict[str, Floats] = {}
        rows: dict[str, Table] = {}
        for (name, table), array in zip(tables.items(), weights, strict=True):
            own[name] = np.array(array.reshape(table.rows, table.cells)[self._shard :: config.shards])
            rows[name] = replace(table, rows=len(own[name]))
        held = namedtuple("Held", list(own))(**own)
        naming = self._shard, config.shards
        self._ledgers = [Ledger(held, rows, naming=naming) for _ in range(count)]

    def push(self, rank: int, here: Round, packet: Packet, leading: int | None) -> Packet:
        """Changes of a node; answers with what all, or it and those before it, have changed."""
        here.check(self._attempt)
        changes = unpack(packet, self._tables)
        if not self._ledgers:
            return self._rounds.meet(here, rank, changes).packet
        with self._lock:
            before = self._answers.get(rank)
            if before is not None and before[0] == here:
                return before[1]
            mine, form = self._ledgers[rank], "float32" if here.exact else self._config.deltas
            own = None if leading is None else -(-max(0, leading - self._shard) // self._config.shards)
            (others,) = mine.take("float32", leading=own)
            whole = combine([others, changes], self._tables, self._config.combine, form)
            mine.settle(whole, others)
            reply = pack(whole, self._tables, form)
            self._answers[rank] = here, reply
            return reply

    def pull(self, rank: int, here: Round) -> Packet:
        """All that others changed and a node does not know yet; after all have pushed."""
        here.check(self._attempt)
        with self._lock:
            (others,) = self._ledgers[rank].take("float32")
            return pack(others, self._tables, "float32")

    def echo(self, packet: Packet) -> Packet:
        """As it came: a node measures its link."""
        return packet

    def abort(self, why: str) -> None:
        """Nobody waits any more."""
        self._rounds.abort(why)

    def pid(self) -> int:
        """Of its process."""
        return os.getpid()
