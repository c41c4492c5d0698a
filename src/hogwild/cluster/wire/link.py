"""The wire: calls of other nodes and of parameter actors, counted, with a time limit, and with plain errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

from hogwild.cluster.paging.blocks import Block
from hogwild.cluster.wire.packing import Packet
from hogwild.cluster.wire.rounds import LONGEST, Round
from hogwild.cluster.wire.traffic import Traffic
from hogwild.errors import ClusterError, HogwildError, shorten

_PROBE = 2_000_000  # bytes
_SLACK = 10.0  # seconds by which a caller waits longer than who is called, whose words say more


def fetched(reference: Any, what: str, longest: float = LONGEST + _SLACK) -> Any:
    """The value of a reference; ClusterError, or the error of ours that a process raised, where there is none."""
    try:
        return ray.get(reference, timeout=longest)
    except GetTimeoutError:
        raise ClusterError(f"{what} did not answer within {longest:.0f} s.") from None
    except RayActorError as error:
        raise ClusterError(f"{what} died: {shorten(str(error).splitlines()[0], 160)}") from error
    except RayTaskError as error:
        cause = error.cause
        if isinstance(cause, HogwildError):
            raise cause from None
        raise ClusterError(f"{what} failed: {type(cause).__name__}: {shorten(cause)}") from error
    except RayError as error:
        raise ClusterError(f"{what} was lost: {shorten(error)}") from error


class Pending:
    """A packet that is under way."""

    def __init__(self, reference: Any, what: str, traffic: Traffic) -> None:
        self._reference, self._what, self._traffic = reference, what, traffic

    def packet(self) -> Packet:
        """The packet, once it is there."""
        packet: Packet = self.answer()
        self._traffic.receive("changes", packet.nbytes)
        return packet

    def rows(self) -> tuple[Packet, Round]:
        """Rows that were borrowed, and the last round of this node's that they have in them."""
        packet, known = self.answer()
        self._traffic.receive("rows", packet.nbytes)
        return packet, known

    def answer(self) -> Any:
        """Whatever the answer is, once it is there."""
        with self._traffic.waiting():
            return fetched(self._reference, self._what)


class Link:
    """What a node can say to others: push to a parameter actor, pull from it, exchange with a peer.

    peers: the other nodes by rank (and itself, which is never called); servers: parameter actors by shard.
    """

    def __init__(self, rank: int, peers: Sequence[Any], servers: Sequence[Any], traffic: Traffic) -> None:
        self.rank, self.peers, self.servers, self.traffic = rank, peers, servers, traffic

    def push(self, shard: int, here: Round, packet: Packet, leading: int | None) -> Pending:
        """Changes to a parameter actor, which answers with what comes of them."""
        what = f"parameter actor {shard} at {here}"
        return self._send(self.servers[shard].push.remote, (self.rank, here, packet, leading), packet, what)

    def pull(self, shard: int, here: Round) -> Pending:
        """All that others changed at a parameter actor and this node does not know."""
        what = f"parameter actor {shard} after {here}"
        return self._send(self.servers[shard].pull.remote, (self.rank, here), None, what)

    def bring(self, shard: int, here: Round, block: Block, packet: Packet) -> Pending:
        """Changes of a block to the parameter actor that holds its rows."""
        what = f"parameter actor {shard} at {here}"
        return self._send(self.servers[shard].push.remote, (self.rank, here, block, packet), packet, what)

    def borrow(self, shard: int, block: Block, after: Round | None, need: tuple[Any, Any]) -> Pending:
        """The rows that a block needs, of the parameter actor that holds them. need: references, which travel to it
        from whoever announces the rows."""
        reference = self.servers[shard].lend.remote(self.rank, block, after, *need)
        what = f"parameter actor {shard} for rows{f' after {after}' if after else ''}"
        return Pending(reference, what, self.traffic)

    def exchange(self, peer: int, here: Round, packet: Packet, leading: int | None = None) -> Pending:
        """Changes to another node, which answers with what comes of them."""
        what = f"node {peer} at {here}"
        return self._send(self.peers[peer].meet.remote, (self.rank, here, packet, leading), packet, what)

    def rate(self) -> float:
        """Bytes a second that the way to another process carries: there and back, the better of two times."""
        other = self.servers[0] if self.servers else self.peers[(self.rank + 1) % len(self.peers)]
        data, seconds = np.zeros(_PROBE, np.uint8), []
        for _ in range(2):
            began = time.perf_counter()
            self.traffic.send("probe", _PROBE)
            fetched(other.echo.remote(data), "the other end of a link")
            self.traffic.receive("probe", _PROBE)
            seconds.append(time.perf_counter() - began)
        return 2 * _PROBE / min(seconds)

    def _send(self, call: Callable[..., Any], given: tuple[Any, ...], packet: Packet | None, what: str) -> Pending:
        self.traffic.send("changes", 0 if packet is None else packet.nbytes)
        return Pending(call(*given), what, self.traffic)
