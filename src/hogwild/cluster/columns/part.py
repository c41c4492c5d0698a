"""Some columns of all rows of word vectors: their scores for a block of visits, and what they learn from the sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats, aligned_floats, make_scratch
from hogwild.errors import ConfigError
from hogwild.feeds.corpus.feed import Corpus
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.word2vec.columns import Block, key_of, learn_block, most_scores, score_block
from hogwild.kernels.word2vec.windows import Embeddings
from hogwild.programs.words.word2vec import Word2Vec

_TIMES = 2  # that what own scores change by counts for all: of four nodes four times made vectors run away, twice not


def columns_of(dim: int, nodes: int) -> list[tuple[int, int]]:
    """The columns of each node, first and last + 1.

    >>> columns_of(5, 2)
    [(0, 2), (2, 5)]
    """
    if nodes > dim:
        raise ConfigError(f"{nodes} nodes for vectors of {dim} numbers: some would have none; use fewer nodes.")
    return [(dim * rank // nodes, dim * (rank + 1) // nodes) for rank in range(nodes)]


class Scored(NamedTuple):
    """The scores of a block, and for each worker its visits and where their scores begin."""

    scores: Floats
    shares: list[tuple[Block, int]]

    @property
    def stop(self) -> int:
        """The visit after the block."""
        return self.shares[-1][0].stop


class Part:
    """The columns of one node of several. program: one with these columns, without weights; weights: of both tables.

    Workers divide the visits of a block among themselves, and learn from them without locks.
    """

    def __init__(
        self, program: Word2Vec, feed: Corpus, weights: Sequence[Floats], seed: int, workers: int, parts: int
    ) -> None:
        self._task, self._text, self._dim = program.task, program.samples(feed), program.config.dim
        self._times = np.float32(min(parts, _TIMES))
        self._seed, self.visits = seed, program.visits(feed)
        self._scratch = [make_scratch(program.room(feed), np.uint64(0)) for _ in range(workers)]
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None
        self._room: list[Floats] = [np.empty(0, np.float32)] * workers
        self._weights = Embeddings(*(self._widened(array, program.cells) for array in weights))

    def _widened(self, array: Floats, cells: int) -> Floats:
        made = aligned_floats(len(array) * cells).reshape(len(array), cells)
        made[:, : self._dim] = array
        return made

    @property
    def most(self) -> int:
        """Scores of a visit, at the most."""
        return most_scores(self._task)

    def block(self, epoch: int, first: int, stop: int) -> Block:
        """Some visits of an epoch."""
        return Block(key_of(self._seed, epoch), first, stop, epoch * self.visits)

    def score(self, block: Block) -> Scored:
        """Its scores by these columns."""
        size = self.most * -(-(block.stop - block.first) // len(self._scratch))
        if len(self._room[0]) < size:
            self._room = [np.empty(size, np.float32) for _ in self._scratch]

        def score(worker: int) -> Floats:
            share, room = shares[worker], self._room[worker]
            ends = np.zeros(max(1, share.stop - share.first), np.int64)
            score_block(self._task, self._text, self._weights, self._scratch[worker], share, room, ends)
            return room[: ends[-1]]

        shares = self._shares(block)
        found = self._all(score)
        begins = np.cumsum([0, *map(len, found)]).tolist()
        return Scored(np.concatenate(found), list(zip(shares, begins, strict=False)))

    def learn(self, scored: Scored, sums: Floats, schedule: Schedule) -> float:
        """Learn from scores of all columns; returns the sum of the losses of visits."""
        others = sums - self._times * scored.scores

        def learn(worker: int) -> float:
            share, begin = scored.shares[worker]
            given = self._task, self._text, self._weights, self._scratch[worker], share
            return learn_block(*given, others[begin:], self._times, schedule)

        return float(sum(self._all(learn)))

    def _shares(self, block: Block) -> list[Block]:
        """Of each worker."""
        size, workers = block.stop - block.first, len(self._scratch)
        edges = [block.first + size * k // workers for k in range(workers + 1)]
        return [block._replace(first=a, stop=b) for a, b in pairwise(edges)]

    def _all(self, work: Callable[[int], Any]) -> list[Any]:
        workers = range(len(self._scratch))
        return list(map(work, workers) if self._pool is None else self._pool.map(work, workers))

    def arrays(self) -> list[Floats]:
        """The columns of both tables."""
        return [np.ascontiguousarray(array[:, : self._dim]) for array in self._weights]

    def close(self) -> None:
        """Its workers end."""
        if self._pool is not None:
            self._pool.shutdown()
