"""A run whose nodes have some columns of all rows each: all make the same visits, which count once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import ray

from hogwild.arrays import Floats
from hogwild.cluster.columns.part import columns_of
from hogwild.cluster.course import Course
from hogwild.cluster.site import Site
from hogwild.config import TrainConfig
from hogwild.errors import ConfigError
from hogwild.executor.state import Position, RunState
from hogwild.programs.words.word2vec import Word2Vec

_MOST_AHEAD = 80.0  # gradients of the words under way to one row times the rate; eight times as many did no harm


class ColumnsCourse(Course):
    """Word vectors, divided by columns."""

    def __init__(self, site: Site, program: Any, feed: Any, config: TrainConfig, start: RunState | None) -> None:
        if not isinstance(program, Word2Vec):
            raise ConfigError(f"strategy columns is for word vectors, not for {program.name}; try average.")
        if config.mode != "hogwild" or config.shuffle:
            what = "shuffle" if config.shuffle else f"mode {config.mode}"
            raise ConfigError(f"{what} has no effect with strategy columns; leave it out.")
        super().__init__(site, program, feed, config, start)
        self._columns = columns_of(program.config.dim, self.count)
        self._tuned = True  # fewer exchanges would carry as many scores

    def _open_feed(self) -> None:
        """Every node has all of it. What is sent of the program is without the vectors, which are sent divided."""
        super()._open_feed()
        self.visits = [self.program.visits(self.feed)] * self.count
        self._shipped = ray.put(ray.cloudpickle.dumps(self.program.narrowed(self.program.config.dim)))

    def _part(self, rank: int) -> tuple[tuple[int, int], int]:
        return (rank, self.count), self.config.seed

    def _interval(self) -> int:
        """Visits of a block: the scores of all words under way are of the same weights, more or less."""
        if self.cluster.sync_every:
            return self.cluster.sync_every
        words = _MOST_AHEAD / (self.lr * float(self.program.hits(self.feed).max()))
        each = len(self.feed) / max(1, self.visits[0])
        return max(1, int(words / each / (1 + self.cluster.max_delay)))

    def _divided(self, weights: Sequence[Floats]) -> list[Sequence[Floats]]:
        return [[np.ascontiguousarray(array[:, a:b]) for array in weights] for a, b in self._columns]

    def _take(self, weights: Sequence[Sequence[Floats]]) -> None:
        for (a, b), own in zip(self._columns, weights, strict=True):
            for array, new in zip(self.program.weights, own, strict=True):
                array[:, a:b] = new

    def state(self) -> RunState:
        """Of all nodes, which stand at the same place."""
        state = next(state for state in self.snapshot.states if state is not None)
        return replace(
            super().state(), position=Position(self.epoch, state.position.visits), random=state.random,
            loss_sum=state.loss_sum,
        )  # fmt: skip

    def _states_of(self, start: RunState, every: int) -> Iterator[RunState]:
        epoch, visits = start.position
        if visits % every or visits > self.visits[0]:
            raise ConfigError(
                f"the run stood at visit {visits:,} of an epoch, which is not after a block of {every:,}; go on with "
                "the data and the strategy that it had."
            )
        for whole in self.visits:
            yield replace(start, position=Position(epoch, visits), epoch_visits=whole)
