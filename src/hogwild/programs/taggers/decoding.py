"""Reading tags off a CRF: best paths, several of them, probabilities, the loss; in as many threads as one likes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Room, ValuedChains, aligned_floats, make_scratch
from hogwild.errors import ConfigError
from hogwild.feeds.io.parallel import in_parts
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.kernels.crf.gradient import fill_losses, fill_marginals
from hogwild.kernels.crf.task import ChainTask, ChainWeights, PlainEdges, Quick, RichEdges, Slow, Tagged, floats_for
from hogwild.kernels.crf.viterbi import Rules, Trellis, find_paths
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import Sgd
from hogwild.kernels.simd.rows8 import LANES, layout
from hogwild.machine import check_memory
from hogwild.programs.taggers import crf_weights
from hogwild.programs.taggers.crf_weights import RichPairs


class CRFDecoder:
    """A CRF at rest, over one feed."""

    def __init__(self, weights: crf_weights.Plain, pairs: RichPairs, tags: int, feed: TaggingFeed) -> None:
        lanes, blocks = layout(tags)
        edges = RichEdges() if pairs.features else PlainEdges()
        rows = Slow() if isinstance(feed.samples, ValuedChains) else Quick()
        self.task = ChainTask(lanes, blocks, tags, edges, rows, Sgd(), Free(), np.float32(0), 0)
        self.feed, self.tags = feed, tags
        width = LANES * len(lanes) * len(blocks)
        self.samples = Tagged(feed.samples, pairs.chunk_starts, pairs.cells(width))
        shapes = ((len(feed.names), width), (tags, width), (int(pairs.chunk_starts[-1]), LANES))
        self.weights = ChainWeights(*(aligned_floats(count * cells) for count, cells in shapes))
        crf_weights.put(weights, self.weights, shapes, pairs)

    def best(self, rules: Rules, threads: int = 1) -> npt.NDArray[np.int32]:
        """The best tag of each token."""
        found = np.zeros(self.feed.tokens, np.int32)
        offsets = self.feed.samples.offsets

        def decode(first: int, last: int) -> None:
            out = found[offsets[first] : offsets[last]].reshape(1, -1)
            scratch, trellis = self._scratch(), self._trellis(1)
            find_paths(
                self.task, self.samples, self.weights, scratch, rules, trellis, (first, last), out, np.zeros(1)
            )

        in_parts(len(self.feed), threads, decode)
        return found

    def several(self, count: int, rules: Rules) -> list[list[tuple[float, list[int]]]]:
        """For each sentence its best paths, with their probabilities."""
        if not 1 <= count <= 1000:
            raise ConfigError(f"{count} best paths cannot be given; ask for 1 to 1000.")
        needed = CELL * count * self.feed.longest * (self.tags + 1)
        what = f"the {count} best paths of a sentence of {self.feed.longest:,} tokens need"
        check_memory(needed, what, "ask for fewer, or divide the sentence.")
        scratch, trellis = self._scratch(), self._trellis(count)
        paths, chances = np.zeros((count, self.feed.longest), np.int32), np.zeros(count)
        offsets = self.feed.samples.offsets
        found = []
        for visit in range(len(self.feed)):
            tokens = int(offsets[visit + 1] - offsets[visit])
            kept = find_paths(
                self.task, self.samples, self.weights, scratch, rules, trellis, (visit, visit + 1), paths, chances
            )
            likely = np.exp(np.minimum(chances[:kept], 0.0)).tolist()  # rounded, a logarithm may be just above 0
            found.append(list(zip(likely, paths[:kept, :tokens].tolist(), strict=True)))
        return found

    def marginals(self, threads: int = 1) -> Floats:
        """(tokens, tags): the probability of each tag."""
        found = np.zeros((self.feed.tokens, self.tags), np.float32)
        offsets = self.feed.samples.offsets

        def fill(first: int, last: int) -> None:
            out = found[offsets[first] : offsets[last]]
            fill_marginals(self.task, self.samples, self.weights, self._scratch(), (first, last), out)

        in_parts(len(self.feed), threads, fill)
        return found

    def loss(self, threads: int = 1) -> float:
        """The mean loss of the sentences whose tags are all known; NaN if there are none."""
        losses, known = np.zeros(len(self.feed)), []

        def fill(first: int, last: int) -> None:
            part = losses[first:last]
            known.append(fill_losses(self.task, self.samples, self.weights, self._scratch(), first, part))

        in_parts(len(self.feed), threads, fill)
        # One by one: the sum of a part would depend on where it is cut.
        return float(losses.cumsum()[-1]) / sum(known) if sum(known) else float("nan")

    def _scratch(self) -> Any:
        longest = self.feed.longest
        return make_scratch(Room(0, floats=floats_for(self.task, longest), ints=longest), np.uint64(0))

    def _trellis(self, paths: int) -> Trellis:
        return Trellis(np.zeros((2, self.tags, paths)), np.zeros((self.feed.longest, self.tags, paths), np.int32))
