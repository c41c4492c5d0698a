"""Linear-chain CRFs: taggers whose features weigh single tags and, with rich edges, pairs of neighbouring tags."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Room, Table, ValuedChains, aligned_floats
from hogwild.config import CRFConfig
from hogwild.config.arguments import config_of, taking
from hogwild.config.kinds import BestBy
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.kernels.crf.task import ChainTask, ChainWeights, PlainEdges, Quick, RichEdges, Slow, Tagged, floats_for
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import Ftrl, Sgd, row_cells, row_table
from hogwild.kernels.simd.rows8 import LANES, layout
from hogwild.machine import check_memory
from hogwild.programs.program import RowIds, plain_constants
from hogwild.programs.row_ids import hash_names, hash_pairs
from hogwild.programs.rows import RowProgram
from hogwild.programs.sparse.supervised import make_rule
from hogwild.programs.taggers import crf_weights
from hogwild.programs.taggers.crf_weights import RichPairs, find_pairs, no_pairs
from hogwild.programs.taggers.decoding import CRFDecoder, Resting
from hogwild.programs.taggers.pieces import count_pieces, cut_pieces
from hogwild.programs.taggers.single import Excerpts
from hogwild.programs.taggers.tagger import Tagger

# Of the paper on AsynGrad; for pos 0.02 there, which is too slow for smaller texts than its own (docs/performance.md).
_RATES = {"pos": 0.1, "chunking": 0.05, "chunking-more": 0.1, "segmentation": 0.1}
_PENALTIES = {"pos": 1.0, "chunking": 0.5, "chunking-more": 1.0, "segmentation": 1.0}


@taking(CRFConfig)
class CRF(RowProgram, Tagger):
    """A linear-chain conditional random field.

    Parameters
    ----------
    tags, names : tags and features that it is to have; those of the first feed by default.
    constants : constants of the update rule by name.
    pruned : features of a saved model that were left out because they weigh nothing.
    best_by : by what the best epoch is told where the run does not say it: f1 (auto), accuracy or loss.

    Examples
    --------
    >>> feed = hogwild.open_tagging("train.txt")                                    # doctest: +SKIP
    >>> program = hogwild.train(hogwild.CRF(), feed, epochs=10)                     # doctest: +SKIP
    >>> test = program.open("test.txt")                                             # doctest: +SKIP
    >>> program.evaluate(test)["f1"]                                                # doctest: +SKIP
    """

    name = "crf"
    config: CRFConfig
    hot_rows, merge_every = 4096, 200  # measured: docs/performance.md

    def __init__(
        self, *values: Any, tags: Sequence[str] = (), names: Sequence[str] = (), preset: str = "",
        constants: Mapping[str, float] | None = None, pruned: int = 0, best_by: BestBy = "auto", **options: Any,
    ) -> None:  # fmt: skip
        self.config = config_of(self, CRFConfig, values, options)
        self.tags, self.names = tuple(tags), tuple(names)
        self.preset, self.pruned = str(preset), int(pruned)
        self.take_best_by(best_by)
        self.constants = plain_constants(constants)
        self.pairs: RichPairs = no_pairs(len(self.tags))
        self.mean: crf_weights.Mean | None = None
        self._sentences = 1  # or mini-samples: visits of an epoch
        self._seed = 0
        self._valued = False  # whether features have values
        self._elapsed = 0.0  # the clock of L2 where the weights stand
        self._rule = self._make_rule()
        self._before: tuple[RichPairs, Sequence[str], Sequence[str]] | None = None  # pairs to have too: see `expect`
        self._one: Excerpts | None = None  # by weights that have not changed since

    def _make_rule(self) -> Any:
        return make_rule(self.config.optimizer, self.constants, self.config.l1, self.l2)

    @property
    def l2(self) -> float:
        """The L2 penalty."""
        return _PENALTIES.get(self.preset, 1.0) if self.config.l2 is None else self.config.l2

    @property
    def rate(self) -> float | None:
        """Learning rate where the user gives none: that of the paper for the features of its tasks, with sgd."""
        return _RATES.get(self.preset) if self.config.optimizer == "sgd" else None

    # -- for the executor -------------------------------------------------------------------------------------------

    @property
    def _decays(self) -> bool:
        """Whether all weights pay L2 by one common factor."""
        return isinstance(self._rule, Sgd) and not self.config.l1

    @property
    def _penalty(self) -> Free | Penalty:
        config = self.config
        if self._decays or isinstance(self._rule, Ftrl) or not (self.l2 or config.l1):
            return Free()
        return Penalty(np.float32(config.l1 / self._sentences), np.float32(self.l2 / self._sentences))

    @property
    def width(self) -> int:
        """Cells of a row of weights without what the update rule remembers: a number a tag, and fillings."""
        lanes, blocks = layout(len(self.tags))
        return LANES * len(lanes) * len(blocks)

    @property
    def task(self) -> ChainTask:
        """Selects the compiled code."""
        lanes, blocks = layout(len(self.tags))
        edges = RichEdges() if self.pairs.features else PlainEdges()
        decay = np.float32(self.l2 / self._sentences if self._decays else 0.0)
        rows = Slow() if self._valued or row_cells(self._rule, self._penalty, 1) > 1 else Quick()
        pieces = 0 if self._mini_samples else self.config.structure_regularization
        return ChainTask(lanes, blocks, len(self.tags), edges, rows, self._rule, self._penalty, decay, pieces)

    @property
    def _mini_samples(self) -> bool:
        """Whether pieces of sentences are samples of their own."""
        return self.config.structure_regularization > 0 and self.config.structure_regularization_form == "samples"

    def visits(self, feed: TaggingFeed) -> int:
        """Sentences, or the pieces that are samples of their own."""
        if not self._mini_samples:
            return len(feed)
        return count_pieces(feed.samples.offsets, self.config.structure_regularization)

    def started_notes(self) -> list[str]:
        """How many samples the sentences are, where that is another number."""
        if not self._mini_samples:
            return super().started_notes()
        note = f"structure regularization: {self._sentences:,} mini-samples, each a visit, of which losses are means."
        return [*super().started_notes(), note]

    def startup(self, feed: TaggingFeed, seed: int) -> None:
        """Weights of zero for the features, tags and pairs of the feed, or the ones there are."""
        self.check_trainable(feed)
        self.take_schema(feed)
        self._one = None
        preset, sentences = str(feed.schema.get("preset", self.preset)), max(1, self.visits(feed))
        self._seed = seed
        if self.weights is not None and (preset, sentences) != (self.preset, self._sentences):
            self._pay()  # what a stopped run still owes, at the penalties of its own text
        self.preset, self._sentences = preset, sentences
        self._rule = self._make_rule()  # ftrl holds the penalty, which depends on the features
        self._valued = isinstance(feed.samples, ValuedChains)
        if self.weights is not None:
            return
        config, pairs = self.config, no_pairs(len(feed.tags))
        if config.rich_edges and len(feed.tags) > 1:
            seen_only, templates = config.rich_edge_pairs == "seen", config.rich_edge_templates
            pairs = find_pairs(feed, config.rich_edge_min_count, seen_only, templates)
        if self._before is not None:
            pairs = pairs.joined(*self._before, feed)
        self.tags, self.names, self.pairs = feed.tags, feed.names, pairs
        self._allocate()

    def _shapes(self) -> tuple[tuple[int, int], ...]:
        """Rows and cells a row of each array of weights."""
        wide = row_cells(self._rule, self._penalty, self.width)
        chunks = int(self.pairs.chunk_starts[-1])
        narrow = row_cells(self._rule, self._penalty, LANES)
        return (len(self.names), wide), (len(self.tags), wide), (chunks, narrow)

    def _allocate(self) -> None:
        needed = CELL * sum(rows * cells for rows, cells in self._shapes())
        what = f"{len(self.names):,} features of {len(self.tags)} tags need"
        check_memory(needed, what, "raise --min-count, or leave the rich edges out.")
        self.weights = ChainWeights(*(aligned_floats(rows * cells) for rows, cells in self._shapes()))

    def samples(self, feed: TaggingFeed) -> Tagged:
        """The chains, with the pairs of rich edges; cut, where pieces are samples: by the seed of the run alone."""
        chains = feed.samples
        if self._mini_samples:
            offsets = cut_pieces(chains.offsets, self.config.structure_regularization, self._seed)
            chains = chains._replace(offsets=offsets)
        return Tagged(chains, self.pairs.chunk_starts, self.pairs.cells(self.width))

    def room(self, feed: TaggingFeed) -> Room:
        """For the rows of the sentence that has most, and the numbers of the longest one."""
        chunks = np.diff(self.pairs.chunk_starts)
        each = np.append(chunks, 0)[np.minimum(feed.samples.ids, len(chunks))]
        ends = np.concatenate([[0], np.cumsum(each)])[feed.samples.starts[feed.samples.offsets]]
        rows = feed.most_features + int(np.diff(ends).max(initial=0)) + len(self.tags)
        return Room(rows, self.width, floats=floats_for(self.task, feed.longest), ints=feed.longest)

    def tables(self) -> Mapping[str, Table]:
        """Features and their pairs by rank; the pairs that all have in common are written by every visit."""
        rows = (rows for rows, _ in self._shapes())
        widths, kinds = (self.width, self.width, LANES), ("ranked", "dense", "ranked")
        tables = [row_table(self._rule, self._penalty, *each) for each in zip(rows, widths, kinds, strict=True)]
        return dict(zip(ChainWeights._fields, tables, strict=True))

    def row_ids(self, table: str) -> RowIds | None:
        """Hashes of the features' names; of rows of rich edges, hashes of these and of the pairs that a row weighs."""
        if table == "edges":
            return None
        features = hash_names(self.names, "features")
        if table == "nodes":
            return features
        owners = np.repeat(np.arange(self.pairs.features), np.diff(self.pairs.chunk_starts))
        cells = self.pairs.cells(self.width).reshape(-1, LANES)
        return hash_pairs(features[owners], cells, lambda row: self.names[owners[row]], "rich edges of the features")

    def stand_at(self, elapsed: float) -> None:
        """The weights stand at this time of the epoch."""
        self._elapsed = elapsed

    def settle(self, elapsed: float) -> bool:
        """Pay lazy penalties; at the end of an epoch the mean of weights takes them in."""
        self._elapsed, self._one = elapsed, None
        changed = self._pay()
        if self.config.average:
            self.mean = crf_weights.take_in(self.mean, self._plain(self.weights))
        return changed

    def _pay(self) -> bool:
        elapsed, self._elapsed = self._elapsed, 0.0
        if self._decays:
            factor = self._factor(elapsed)
            for table in self.weights:
                table *= factor
            return bool(factor != 1)
        return self.pay(self.weights, elapsed)

    def kept(self) -> Any:
        """A copy of the weights and of their mean."""
        return super().kept(), self.mean

    def take_back(self, kept: Any) -> None:
        """Come back to weights and their mean."""
        weights, self.mean = kept
        self._one = None
        super().take_back(weights)

    def finish(self, feed: TaggingFeed) -> None:
        """The weights have changed."""
        self._one = None

    def move_clock(self, before: float, now: float) -> None:
        """The common factor of all weights is that of the clock: they are brought to the new one."""
        if self._decays:
            for table in self.weights:
                table *= self._factor(before) / self._factor(now)
        super().move_clock(before, now)
        self._elapsed = now

    def renew(self) -> None:
        """Before a run that does not go on from the middle of another: pay what a stopped run still owes."""
        self._pay()
        self.mean = None

    def _factor(self, elapsed: float) -> np.float32:
        return np.float32(math.exp(-min(self.l2 / self._sentences * elapsed, 60.0)))

    def penalized(self, weights: ChainWeights) -> list[tuple[Floats, int]]:
        """Features, pairs of tags, and the pairs of frequent features."""
        return [(weights.nodes, self.width), (weights.edges, self.width), (weights.rich, LANES)]

    def watchable(self) -> Mapping[str, Any]:
        """nodes: (features, tags), edges: (tags, tags), rich: a weight for each pair of each frequent feature."""
        return {
            name: lambda name=name: getattr(self._plain(self.weights), name) for name in ("nodes", "edges", "rich")
        }

    # -- predicting -------------------------------------------------------------------------------------------------

    def decoder(self, feed: TaggingFeed) -> CRFDecoder:
        """The weights as they stand, or their mean, over a feed."""
        self.check_same(feed)
        return CRFDecoder(self._resting(), feed)

    def _resting(self) -> Resting:
        return Resting(self.mean.weights if self.mean is not None else self._plain(self.trained()), self.pairs)

    def excerpts(self) -> Excerpts:
        """What tags a few sentences quickly, by the weights as they stood when it was first asked for."""
        if self._one is None:
            self._one = Excerpts(self._resting(), self.names, self.tags, self.marked(self.schema or {}))
        return self._one

    def tag(self, sentence: Any, constrain: bool = False) -> list[str]:
        """The best tags of one sentence; the first call takes the weights as they stand after training.

        Parameters
        ----------
        sentence : a list of tokens, or of rows of columns (see `feed_of`), or a line of tokens.
        constrain : only such as the scheme of the tags (IOB2, IOBES, BMES) allows.

        Examples
        --------
        >>> program.tag([("to", "TO"), ("be", "VB")])                                           # doctest: +SKIP
        ['B-VP', 'I-VP']
        """
        self.known_schema()
        return self.excerpts().tag(sentence, constrain)

    def _plain(self, weights: ChainWeights) -> crf_weights.Plain:
        """Weights alone, penalties paid."""
        if isinstance(self._penalty, Penalty):
            weights = ChainWeights(*(table.copy() for table in weights))
            self.pay(weights, self._elapsed)
        factor = self._factor(self._elapsed) if self._decays else np.float32(1)
        return crf_weights.plain(weights, self._shapes(), len(self.tags), self.pairs, factor)

    # -- going on, saving -------------------------------------------------------------------------------------------

    counted: ClassVar[Mapping[str, str]] = {"nodes": "features"}

    def expect(self, old: CRF, feed: TaggingFeed) -> None:
        """The pairs of rich edges that an old model weighs, and at first its penalties and rate."""
        self._before = old.pairs, old.names, old.tags

    def axes(self) -> dict[str, Sequence[Any]]:
        """Features, tags, and features with pairs of tags."""
        names, tags, count = self.names, self.tags, len(self.tags)
        owners = np.repeat(np.arange(self.pairs.features), np.diff(self.pairs.starts)).tolist()
        rich = [
            (names[owner], tags[pair // count], tags[pair % count])
            for owner, pair in zip(owners, self.pairs.pairs.tolist(), strict=True)
        ]
        return {"nodes": (names, tags), "edges": (tags, tags), "rich": (rich,)}

    def options(self) -> dict[str, Any]:
        """The arguments of an equal program, as JSON values."""
        more = {"preset": self.preset, "constants": self.constants, "pruned": self.pruned}
        return {**vars(self.config), **super().options(), **more}

    def saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Zeros are not stored, and with l1 neither are features that weigh nothing."""
        if self.config.l1:
            return self._without(self.arrays())
        return self.options(), crf_weights.without_zeros(self.arrays())

    def compact(self, pruned: float) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Without the features that weigh least, by the length of their weights, those of rich edges too."""
        return self._without(crf_weights.lightened(self.arrays(), pruned)) if pruned else self.saved()

    def _without(self, arrays: dict[str, npt.NDArray[Any]]) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Options and arrays without the features that weigh nothing."""
        kept, arrays = crf_weights.pruned(arrays, len(self.tags))
        left_out = self.pruned + len(self.names) - len(kept)
        more = {"names": [self.names[k] for k in kept.tolist()], "pruned": left_out}
        return {**self.options(), **more}, crf_weights.without_zeros(arrays)

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """nodes (features, tags); edges (tags, tags); rich, with rich_pairs (former * tags + tag) and rich_starts.

        With `state` also the tables as they are, with what the update rule remembers, the clock, and the mean.
        """
        trained = self.trained()
        use = self.mean.weights if self.mean is not None and not state else self._plain(trained)
        found = crf_weights.pack(use, self.pairs)
        if not state:
            return found
        clock = np.array([self._elapsed, self._sentences], np.float64)
        return {**found, **crf_weights.pack_state(trained, clock, self.mean)}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `arrays` made, with or without state."""
        self.check_names()
        self._one = None
        plain, self.pairs = crf_weights.unpack(arrays, len(self.names), len(self.tags))
        tables = crf_weights.tables_of(arrays, self._shapes())
        if tables is not None:
            clock = crf_weights.clock_of(arrays)
            self._elapsed, self._sentences = float(clock[0]), max(1, int(clock[1]))
            self.weights, self.mean = tables, crf_weights.mean_of(arrays, plain)
            return
        self._allocate()
        crf_weights.put(plain, self.weights, self._shapes(), self.pairs)
