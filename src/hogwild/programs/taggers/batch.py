"""The objective of a CRF over all sentences at once, as a function of those weights that may differ from zero."""

from __future__ import annotations

import numpy as np

from hogwild.arrays import CELL, Floats, Offsets, Step, aligned_floats
from hogwild.feeds.io.parallel import in_parts
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.kernels.crf.gradient import sum_gradients
from hogwild.kernels.crf.task import ChainWeights
from hogwild.machine import check_memory
from hogwild.programs.taggers.crf_weights import Plain, RichPairs
from hogwild.programs.taggers.decoding import Resting, scratch_for


class Objective:
    """The sum of -log p(tags | sentence) + l2 |x|^2 / 2, and its gradient, at weights x.

    x: the weights of single tags, of pairs, of rich edges, one after the other. every_state, every_pair: whether all
    features and tags, and all pairs of tags, have a weight, not only those that the text has.
    loss: the sum alone, where it was asked for last.
    """

    def __init__(
        self, feed: TaggingFeed, pairs: RichPairs, l2: float, *, every_state: bool, every_pair: bool, threads: int = 1
    ) -> None:
        features, tags = len(feed.names), len(feed.tags)
        nothing = Plain(*(np.zeros(shape, np.float32) for shape in ((features, tags), (tags, tags), len(pairs.pairs))))
        self._resting, self._feed, self._l2, self._threads = Resting(nothing, pairs), feed, np.float32(l2), threads
        self._task, self._samples = self._resting.task(feed.samples), self._resting.samples(feed.samples)
        self._features, self._tags = features, tags
        width = len(self._resting.weights.edges) // tags
        self._cells = (
            _cells(_all(features, tags) if every_state else _seen(feed), tags, width),
            _cells(_all(tags, tags) if every_pair else _followed(feed), tags, width),
            pairs.slots,
        )
        needed = CELL * threads * sum(map(len, self._resting.weights))
        check_memory(needed, f"gradients of {features:,} features and {tags} tags need", "use fewer threads.")
        self._sums: dict[int, ChainWeights] = {}
        self.loss = 0.0

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """Value and gradient."""
        losses: dict[int, float] = {}
        step = Step(np.float32(-1), np.float32(0), 0, 0, 1)
        self._put(x)

        def work(first: int, last: int) -> None:
            if first not in self._sums:
                self._sums[first] = ChainWeights(*(aligned_floats(len(table)) for table in self._resting.weights))
            sums = self._sums[first]
            for table in sums:
                table[:] = 0
            scratch = scratch_for(self._task, self._feed.longest)
            losses[first] = sum_gradients(
                self._task, self._samples, self._resting.weights, scratch, (first, last), step, sums
            )

        in_parts(len(self._feed), self._threads, work)
        parts = [self._sums[first] for first in sorted(losses)]  # in the same order each time
        tables = (np.sum([part[k][cells] for part in parts], axis=0) for k, cells in enumerate(self._cells))
        gradient = np.concatenate(list(tables)).astype(np.float32) + self._l2 * x
        self.loss = sum(losses[first] for first in sorted(losses))
        return self.loss + 0.5 * float(self._l2) * float(np.square(x, dtype=np.float64).sum()), gradient

    def _put(self, x: Floats) -> None:
        at = 0
        for table, cells in zip(self._resting.weights, self._cells, strict=True):
            table[cells] = x[at : at + len(cells)]
            at += len(cells)

    def take(self, weights: Plain) -> Floats:
        """The numbers of x among these weights."""
        width = len(self._resting.weights.edges) // self._tags
        nodes, edges = (
            table[cells // width, cells % width] for table, cells in zip(weights[:2], self._cells[:2], strict=True)
        )
        return np.concatenate([nodes, edges, weights.rich]).astype(np.float32)

    def plain(self, x: Floats) -> Plain:
        """The weights that x stands for."""
        self._put(x)
        nodes, edges, rich = self._resting.weights
        states, pairs = nodes.reshape(self._features, -1), edges.reshape(self._tags, -1)
        return Plain(states[:, : self._tags].copy(), pairs[:, : self._tags].copy(), rich[self._cells[2]])


def _all(rows: int, tags: int) -> Offsets:
    return np.arange(rows * tags, dtype=np.int64)


def _seen(feed: TaggingFeed) -> Offsets:
    """feature * tags + tag of all that occur together."""
    samples = feed.samples
    owner = np.repeat(np.arange(feed.tokens), np.diff(samples.starts))
    return np.unique(samples.ids.astype(np.int64) * len(feed.tags) + samples.tags[owner])


def _followed(feed: TaggingFeed) -> Offsets:
    """former * tags + tag of all neighbours."""
    tags = feed.samples.tags.astype(np.int64)
    inside = np.ones(feed.tokens, np.bool_)
    inside[feed.samples.offsets[:-1]] = False
    return np.unique((tags[:-1] * len(feed.tags) + tags[1:])[inside[1:]])


def _cells(pairs: Offsets, tags: int, width: int) -> Offsets:
    """Places of (row, tag) in rows that are filled up."""
    return pairs // tags * width + pairs % tags
