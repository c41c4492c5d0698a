"""All nodes with a parameter actor, or several with a part of the rows each."""

from __future__ import annotations

from typing import Any

from hogwild.cluster.strategies.strategy import Together
from hogwild.cluster.wire.packing import Rows
from hogwild.cluster.wire.rounds import Round


class ParameterActor(Together):
    """All meet at the parameter actor at every exchange."""

    @property
    def owners(self) -> int:
        """Shards."""
        return self.me.config.shards

    def send(self, owner: int, here: Round, changes: list[Rows], leading: int | None) -> Any:
        """To the actor that has these rows."""
        return self.me.link.push(owner, here, self.me.pack(changes, here), leading)

    def collect(self, awaited: Any) -> list[Rows]:
        """From it."""
        return self.me.unpack(awaited.packet())


class Asynchronous(ParameterActor):
    """Nobody waits for other nodes: the actor answers at once with what it has from them."""

    in_step = False

    def level(self, here: Round) -> None:
        """What others brought after this node."""
        for pending in [self.me.link.pull(shard, here) for shard in range(self.owners)]:
            self._ledger.settle(self.me.unpack(pending.packet()))
