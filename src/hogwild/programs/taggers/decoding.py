"""Reading tags off a CRF: best paths, several of them, probabilities, the loss; in as many threads as one likes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Chains, Floats, Ids, Offsets, Room, ValuedChains, aligned_floats, make_scratch
from hogwild.errors import ConfigError
from hogwild.feeds.io.parallel import in_parts
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.crf.gradient import fill_losses, fill_marginals
from hogwild.kernels.crf.task import ChainTask, ChainWeights, PlainEdges, Quick, RichEdges, Slow, Tagged, floats_for
from hogwild.kernels.crf.viterbi import Rules, Trellis, find_paths
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import Sgd
from hogwild.kernels.simd.rows8 import LANES, layout
from hogwild.machine import check_memory
from hogwild.programs.taggers import crf_weights
from hogwild.programs.taggers.crf_weights import RichPairs


class Resting:
    """The weights of a CRF at rest, as compiled code reads them: laid out once for all that is decoded with them."""

    def __init__(self, weights: crf_weights.Plain, pairs: RichPairs) -> None:
        features, self.tags = len(weights.nodes), pairs.tags
        self.lanes, self.blocks = layout(self.tags)
        width = LANES * len(self.lanes) * len(self.blocks)
        self.edges = RichEdges() if pairs.features else PlainEdges()
        self.pair_starts, self.cells = pairs.chunk_starts, pairs.cells(width)
        shapes = ((features, width), (self.tags, width), (int(self.pair_starts[-1]), LANES))
        self.weights = ChainWeights(*(aligned_floats(count * cells) for count, cells in shapes))
        crf_weights.put(weights, self.weights, shapes, pairs)

    def task(self, chains: Any) -> ChainTask:
        """Selects the compiled code."""
        rows = Slow() if isinstance(chains, ValuedChains) else Quick()
        return ChainTask(self.lanes, self.blocks, self.tags, self.edges, rows, Sgd(), Free(), np.float32(0), 0)

    def samples(self, chains: Any) -> Tagged:
        """What compiled code reads of sentences."""
        return Tagged(chains, self.pair_starts, self.cells)


class CRFDecoder:
    """A CRF at rest, over one feed."""

    def __init__(self, resting: Resting, feed: TaggingFeed) -> None:
        self.feed, self.tags, self.weights = feed, resting.tags, resting.weights
        self.task, self.samples = resting.task(feed.samples), resting.samples(feed.samples)

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
        return scratch_for(self.task, self.feed.longest)

    def _trellis(self, paths: int) -> Trellis:
        return _trellis_for(self.tags, self.feed.longest, paths)


def scratch_for(task: ChainTask, tokens: int) -> Any:
    """What one thread needs for sentences of so many tokens."""
    return make_scratch(Room(0, floats=floats_for(task, tokens), ints=tokens), np.uint64(0))


def _trellis_for(tags: int, tokens: int, paths: int) -> Trellis:
    return Trellis(np.zeros((2, tags, paths)), np.zeros((tokens, tags, paths), np.int32))


_TOKENS, _FEATURES = 64, 4096  # of one sentence, for which there is room at first


class OneChain:
    """Decodes one sentence at a time, with memory and machine code that stay. Threads take turns."""

    def __init__(self, resting: Resting) -> None:
        self._resting, self._lock = resting, threading.Lock()
        self._found, self._span = np.zeros(1), (0, 1)
        self._make_room(_TOKENS, _FEATURES)
        free = Rules(np.zeros(resting.tags), np.zeros((resting.tags, resting.tags)), np.zeros(resting.tags))
        self._call = entry(find_paths, *self._arguments(free))

    def _make_room(self, tokens: int, features: int) -> None:
        self._starts, self._ids = np.zeros(tokens + 1, np.int64), np.zeros(features, np.int32)
        self._tags, self._out = np.full(tokens, -1, np.int32), np.zeros((1, tokens), np.int32)
        self._offsets = np.zeros(2, np.int64)
        chains = Chains(self._offsets, self._starts, self._ids, self._tags)
        self._task, self._samples = self._resting.task(chains), self._resting.samples(chains)
        self._scratch, self._trellis = (
            scratch_for(self._task, tokens), _trellis_for(self._resting.tags, tokens, 1),
        )  # fmt: skip

    def _arguments(self, rules: Rules) -> tuple[Any, ...]:
        return (
            self._task, self._samples, self._resting.weights, self._scratch, rules, self._trellis, self._span,
            self._out, self._found,
        )  # fmt: skip

    def best(self, ids: Sequence[int] | Ids, ends: Sequence[int] | Offsets, rules: Rules) -> list[int]:
        """The best tags of a sentence. ids: the features of all tokens, in order; ends: where those of each end."""
        tokens, count = len(ends), len(ids)
        with self._lock:
            if tokens > len(self._tags) or count > len(self._ids):
                self._make_room(2 * max(tokens, len(self._tags)), 2 * max(count, len(self._ids)))
            self._offsets[1] = tokens
            self._starts[1 : tokens + 1], self._ids[:count] = ends, ids
            self._call(*self._arguments(rules))
            found: list[int] = self._out[0, :tokens].tolist()
        return found
