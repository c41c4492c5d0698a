"""Who holds the weights of a run on a cluster: how nodes get them, and how the driver gets them back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import ray

from hogwild.arrays import CELL, Floats, bytes_of
from hogwild.cluster.fleet import STARTING, Fleet
from hogwild.cluster.wire.link import fetched
from hogwild.config.cluster import ClusterConfig
from hogwild.feeds.io.workspace import mapped_floats

Weights = Sequence[Floats]
_PIECE = 1 << 24  # bytes of a table that travel at a time


class Holding(ABC):
    """The weights of a run, where it begins and where its nodes stand still."""

    def __init__(self, fleet: Fleet, program: Any, config: ClusterConfig) -> None:
        self.fleet, self.program, self.config = fleet, program, config

    def shipped(self) -> Any:
        """The program that nodes get."""
        return self.program

    def allot(self) -> None:
        """Before the program makes its weights: choose where they lie in this process."""

    @property
    def stored(self) -> int:
        """Bytes that an object store must have room for at a time."""
        return 2 * bytes_of(self.program.weights)

    def first(self) -> list[Weights]:
        """What a fault falls back to, before anything was trained."""
        return [tuple(array.copy() for array in self.program.weights)]

    def references(self, weights: Sequence[Weights], count: int) -> list[Any]:
        """What each node is told of weights."""
        held = [ray.put(each) for each in weights]
        return [held[rank % len(held)] for rank in range(count)]

    def connected(self, weights: Sequence[Weights]) -> None:
        """Nodes and parameter actors are ready, and know each other."""

    @abstractmethod
    def collect(self, ranks: Sequence[int]) -> list[Weights]:
        """The weights, where all stand still."""


class Copies(Holding):
    """Each node has all of them."""

    def collect(self, ranks: Sequence[int]) -> list[Weights]:
        """Of these nodes."""
        nodes = self.fleet.nodes
        taken = [(rank, nodes[rank].weights.remote()) for rank in ranks]
        return [[np.array(array) for array in fetched(reference, f"node {rank}")] for rank, reference in taken]


class Shards(Holding):
    """Each parameter actor has a part of the rows. Here they lie in files, of which memory holds what is in use: two of
    each table, so that one is always whole. All of them travel in pieces."""

    _spare: list[Floats] | None = None

    def shipped(self) -> Any:
        """It has no rows: they are borrowed."""
        return type(self.program)(**vars(self.program.config))

    def allot(self) -> None:
        """In files."""
        self.program.floats_from = mapped_floats

    @property
    def stored(self) -> int:
        """Some pieces."""
        return 4 * _PIECE

    def first(self) -> list[Weights]:
        """The tables themselves: they are written next time to the others."""
        return [self.program.weights]

    def references(self, weights: Sequence[Weights], count: int) -> list[Any]:
        """Nothing."""
        return [()] * count

    def connected(self, weights: Sequence[Weights]) -> None:
        """Parameter actors get their rows."""
        for shard, server in enumerate(self.fleet.servers):
            for name, array in zip(self.program.weights._fields, weights[0], strict=True):
                own = array[shard :: self.config.shards]
                for first, last in _pieces(own):
                    piece = np.ascontiguousarray(own[first:last])
                    fetched(server.put.remote(name, first, piece), _name(shard), STARTING)

    def collect(self, ranks: Sequence[int]) -> list[Weights]:
        """From the parameter actors; the program has them, too."""
        old = self.program.weights
        into = self._spare or [mapped_floats(array.size).reshape(array.shape) for array in old]
        for shard, server in enumerate(self.fleet.servers):
            for name, array in zip(old._fields, into, strict=True):
                own = array[shard :: self.config.shards]
                for first, last in _pieces(own):
                    own[first:last] = fetched(server.get.remote(name, first, last), _name(shard), STARTING)
        self._spare, self.program.weights = list(old), type(old)(*into)
        return [self.program.weights]


def _name(shard: int) -> str:
    return f"parameter actor {shard}"


def _pieces(rows: Floats) -> Iterator[tuple[int, int]]:
    step = max(1, _PIECE // max(1, CELL * rows.shape[1]))
    for first in range(0, len(rows), step):
        yield first, min(first + step, len(rows))
