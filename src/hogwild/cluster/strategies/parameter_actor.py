"""All nodes with a parameter actor, or several with a part of the rows each."""

from __future__ import annotations

from typing import Any

from hogwild.cluster.strategies.strategy import Changes, Together
from hogwild.cluster.wire.combining import join, split
from hogwild.cluster.wire.rounds import Round


class ParameterActor(Together):
    """All meet at the parameter actor at every exchange."""

    def send(self, here: Round, mine: Changes, leading: int | None) -> Any:
        """To each shard its rows."""
        me = self.me
        parts = split(mine, me.config.shards)
        return [me.link.push(shard, here, me.pack(part, here), leading) for shard, part in enumerate(parts)]

    def collect(self, awaited: Any) -> Changes:
        """From each shard its rows."""
        return join([self.me.unpack(pending.packet()) for pending in awaited])


class Asynchronous(ParameterActor):
    """Nobody waits for other nodes: the actor answers at once with what it has from them."""

    in_step = False

    def level(self, here: Round) -> None:
        """What others brought after this node."""
        pulled = [self.me.link.pull(shard, here) for shard in range(self.me.config.shards)]
        for change in self.collect(pulled):
            self._delta.add(change)
