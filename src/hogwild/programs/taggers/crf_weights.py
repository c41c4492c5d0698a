"""The weights of a CRF as plain arrays: taken out of the tables that workers share, put back, averaged, checked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Ids, Offsets
from hogwild.config.options import nearest
from hogwild.errors import ConfigError, ModelError, brief
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.kernels.crf.task import ChainWeights
from hogwild.kernels.simd.rows8 import LANES
from hogwild.machine import check_memory
from hogwild.programs.saving.cells import lightest
from hogwild.programs.saving.tensors import Arrays, no_others, required

# -- Which pairs of neighbouring tags the rich edges of a CRF weigh ---------------------------------------------------


_LISTED = 40  # templates in a message


@dataclass(frozen=True)
class RichPairs:
    """The pairs former * tags + tag that features weigh; those of feature f are pairs[starts[f]:starts[f + 1]].

    Compiled code has them in chunks of 8, the last of a feature filled up; `slots` is the place of each pair there.
    """

    starts: Offsets
    pairs: Ids
    tags: int

    @property
    def features(self) -> int:
        """Features with rich edges."""
        return len(self.starts) - 1

    @property
    def chunk_starts(self) -> Offsets:
        """First chunk of each feature, and the number of all."""
        chunks = -(-np.diff(self.starts) // LANES)
        return np.concatenate([[0], np.cumsum(chunks)]).astype(np.int64)

    @property
    def slots(self) -> npt.NDArray[np.int64]:
        """Place of each pair among the chunks."""
        owner = np.repeat(np.arange(self.features), np.diff(self.starts))
        return np.arange(len(self.pairs)) - self.starts[owner] + LANES * self.chunk_starts[owner]

    def cells(self, width: int) -> Ids:
        """The pairs in chunks, as cells of a matrix with rows that wide; fillings are the cell after its last row."""
        rows = -(-self.tags // 4) * 4  # see kernels/crf/task.py
        found = np.full(LANES * int(self.chunk_starts[-1]), rows * width, np.int32)
        found[self.slots] = self.pairs // self.tags * width + self.pairs % self.tags
        return found

    def joined(
        self, others: RichPairs, names: Sequence[str], tags: Sequence[str], feed: TaggingFeed
    ) -> RichPairs:
        """With the pairs of other features and tags too, which all are among those of a feed."""
        place = {name: k for k, name in enumerate(feed.names)}
        tag_of = np.array([feed.tags.index(tag) for tag in tags], np.int64)
        owners = np.repeat(np.arange(others.features), np.diff(others.starts))
        theirs = np.array([place[names[k]] for k in owners.tolist()], np.int64)
        pairs = others.pairs.astype(np.int64)
        cells = tag_of[pairs // len(tags)] * self.tags + tag_of[pairs % len(tags)]
        own = np.repeat(np.arange(self.features), np.diff(self.starts)) * self.tags**2 + self.pairs
        keys = np.unique(np.concatenate([own, theirs * self.tags**2 + cells]))
        rich = int(keys.max(initial=-1)) // self.tags**2 + 1
        starts = np.searchsorted(keys, np.arange(rich + 1, dtype=np.int64) * self.tags**2)
        return RichPairs(starts.astype(np.int64), (keys % self.tags**2).astype(np.int32), self.tags)

    def check(self, features: int) -> RichPairs:
        """Raise ModelError unless compiled code may trust it; returns itself."""
        sound = len(self.starts) >= 1 and self.starts[0] == 0 and self.starts[-1] == len(self.pairs)
        sound = sound and bool((np.diff(self.starts) >= 0).all()) and self.features <= features
        if len(self.pairs):
            sound = sound and int(self.pairs.min()) >= 0 and int(self.pairs.max()) < self.tags**2
        if not sound:
            raise ModelError("the pairs of its rich edges do not fit its features and tags.")
        return self


def no_pairs(tags: int) -> RichPairs:
    """No feature has rich edges."""
    return RichPairs(np.zeros(1, np.int64), np.zeros(0, np.int32), tags)


def find_pairs(feed: TaggingFeed, min_count: int, seen_only: bool, templates: Collection[str] = ()) -> RichPairs:
    """The pairs for features that occur at least `min_count` times: those seen with each, or all.

    templates: only features of these have any; of all by default.
    """
    tags = len(feed.tags)
    frequent = feed.counts >= min_count
    if templates:
        frequent &= _made_by(feed, templates)
    rich = int(np.flatnonzero(frequent).max(initial=-1)) + 1  # counts fall, but for a text in the ids of a model
    if not seen_only:
        starts = np.concatenate([[0], np.cumsum(frequent[:rich] * tags**2)]).astype(np.int64)
        return RichPairs(starts, np.tile(np.arange(tags**2, dtype=np.int32), int(frequent.sum())), tags)
    samples = feed.samples
    inside = np.ones(feed.tokens, bool)
    inside[samples.offsets[:-1]] = False  # the first token of a sentence has no neighbour before it
    pairs = np.zeros(feed.tokens, np.int64)
    pairs[1:] = samples.tags[:-1].astype(np.int64) * tags + samples.tags[1:]
    token = np.repeat(np.arange(feed.tokens), np.diff(samples.starts))
    chosen = frequent[samples.ids] & inside[token]
    keys = np.unique(samples.ids[chosen].astype(np.int64) * tags**2 + pairs[token[chosen]])
    starts = np.searchsorted(keys, np.arange(rich + 1, dtype=np.int64) * tags**2)
    return RichPairs(starts.astype(np.int64), (keys % tags**2).astype(np.int32), tags)


def _made_by(feed: TaggingFeed, templates: Collection[str]) -> npt.NDArray[np.bool_]:
    """Which features are of these templates: their names begin with them, up to `=`."""
    owners = [name.partition("=")[0] for name in feed.names]
    known = set(owners)
    for template in templates:
        if template not in known:
            there = ", ".join(sorted(known)[:_LISTED]) + (" …" if len(known) > _LISTED else "")
            raise ConfigError(
                f"no feature is of the template {brief(template)} of rich_edge_templates{nearest(template, known)}; "
                f"there are: {there}."
            )
    return np.fromiter((owner in templates for owner in owners), np.bool_, len(owners))


Shapes = tuple[tuple[int, int], ...]
_TABLES = ("nodes_table", "edges_table", "rich_table")
_MEANS = ("nodes_mean", "edges_mean", "rich_mean")


class Plain(NamedTuple):
    """nodes: (features, tags); edges: (tags, tags); rich: (pairs,)."""

    nodes: Floats
    edges: Floats
    rich: Floats


@dataclass(frozen=True)
class Mean:
    """A mean of weights at the ends of epochs, of which the k-th counts k times."""

    weights: Plain
    epochs: int


def take_in(mean: Mean | None, now: Plain) -> Mean:
    """The mean with one more epoch in it: (k - 1) / (k + 1) of the old one and 2 / (k + 1) of the new weights."""
    if mean is None:
        return Mean(now, 1)
    epochs = mean.epochs + 1
    share = np.float32(2 / (epochs + 1))
    return Mean(Plain(*(old + share * (new - old) for old, new in zip(mean.weights, now, strict=True))), epochs)


def plain(weights: ChainWeights, shapes: Shapes, tags: int, pairs: RichPairs, factor: np.float32) -> Plain:
    """Weights without what update rules remember and what fills rows up, times a factor."""
    nodes, edges, rich = (table.reshape(shape) for table, shape in zip(weights, shapes, strict=True))
    return Plain(nodes[:, :tags] * factor, edges[:, :tags] * factor, rich[:, :LANES].reshape(-1)[pairs.slots] * factor)


def put(found: Plain, weights: ChainWeights, shapes: Shapes, pairs: RichPairs) -> None:
    """The inverse of `plain`."""
    nodes, edges, rich = (table.reshape(shape) for table, shape in zip(weights, shapes, strict=True))
    tags = found.edges.shape[0]
    nodes[:, :tags], edges[:, :tags] = found.nodes, found.edges
    slots = pairs.slots
    rich[slots // LANES, slots % LANES] = found.rich


def pack(found: Plain, pairs: RichPairs) -> dict[str, npt.NDArray[Any]]:
    """Arrays to save."""
    return {**found._asdict(), "rich_starts": pairs.starts, "rich_pairs": pairs.pairs}


_SPARSE = ("nodes_counts", "nodes_tags", "nodes_values")


def pruned(arrays: Arrays, tags: int) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
    """The features that weigh something, at least one, and arrays of `pack` for these alone."""
    starts, weighs = arrays["rich_starts"], arrays["rich"] != 0
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[weighs]
    useful = np.count_nonzero(arrays["nodes"], axis=1) > 0
    useful[owner] = True
    useful[:1] |= not useful.any()
    kept = np.flatnonzero(useful)
    rich = kept[kept < len(starts) - 1]
    counts = np.bincount(owner, minlength=len(starts) - 1)[rich]
    pairs = RichPairs(np.append(0, np.cumsum(counts)).astype(np.int64), arrays["rich_pairs"][weighs], tags)
    return kept, pack(Plain(arrays["nodes"][kept], arrays["edges"], arrays["rich"][weighs]), pairs)


def lightened(arrays: Arrays, share: float) -> dict[str, npt.NDArray[Any]]:
    """Arrays of `pack` with zeros for the features that weigh least: this share of them, or so many."""
    nodes, rich, starts = np.array(arrays["nodes"]), np.array(arrays["rich"]), arrays["rich_starts"]
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    squares = (nodes.astype(np.float64) ** 2).sum(axis=1)
    gone = lightest(squares + np.bincount(owner, rich.astype(np.float64) ** 2, len(nodes)), share, "features")
    nodes[gone] = 0
    rich[np.isin(owner, gone)] = 0
    return {**arrays, "nodes": nodes, "rich": rich}


def without_zeros(arrays: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Arrays of `pack`, with the nodes as so many tags and values a row, if that is smaller."""
    nodes = arrays["nodes"]
    narrow = np.min_scalar_type(nodes.shape[1])  # holds a tag, and how many a row has
    rows, columns = np.nonzero(nodes)
    counts = np.bincount(rows, minlength=len(nodes)).astype(narrow)
    found = (counts, columns.astype(narrow), nodes[rows, columns])
    if sum(array.nbytes for array in found) >= nodes.nbytes:
        return arrays
    others = {name: array for name, array in arrays.items() if name != "nodes"}
    return {**others, **dict(zip(_SPARSE, found, strict=True))}


def _with_zeros(arrays: Arrays, features: int, tags: int) -> Arrays:
    """The inverse of `without_zeros`; nothing is allocated before all is checked."""
    if not set(_SPARSE) & set(arrays):
        return arrays
    counts, columns, values = (arrays.get(name, np.zeros(0, np.int8)) for name in _SPARSE)
    narrow = np.min_scalar_type(tags)
    sound = counts.dtype == columns.dtype == narrow and counts.shape == (features,) and "nodes" not in arrays
    sound = sound and columns.shape == values.shape == (int(counts.sum(dtype=np.int64)),)
    if not sound or (len(columns) and int(columns.max()) >= tags):
        raise ModelError("its weights without zeros do not fit its features and tags.")
    values = required(arrays, "nodes_values", values.shape)
    check_memory(CELL * features * tags, f"{features:,} features of {tags} tags need", "it takes a larger machine.")
    nodes = np.zeros((features, tags), np.float32)
    nodes[np.repeat(np.arange(features), counts), columns] = values
    return {**{name: array for name, array in arrays.items() if name not in _SPARSE}, "nodes": nodes}


def unpack(arrays: Arrays, features: int, tags: int) -> tuple[Plain, RichPairs]:
    """The inverse of `pack`, and of what leaves zeros out; checks names, kinds and shapes."""
    arrays = _with_zeros(arrays, features, tags)
    known = {*Plain._fields, "rich_starts", "rich_pairs", *_TABLES, *_MEANS, "clock", "mean_epochs"}
    if missing := {*Plain._fields, "rich_starts", "rich_pairs"} - set(arrays):
        raise ModelError(f"a CRF has the array {min(missing)!r}, which is not there.")
    no_others(arrays, known, "a CRF")
    starts, numbers = arrays["rich_starts"], arrays["rich_pairs"]
    if starts.dtype != np.int64 or starts.ndim != 1 or numbers.dtype != np.int32 or numbers.ndim != 1:
        raise ModelError("rich_starts and rich_pairs must be lists of int64 and int32.")
    pairs = RichPairs(np.array(starts), np.array(numbers), tags).check(features)
    found = Plain(*(required(arrays, name, shape) for name, shape in zip(
        Plain._fields, ((features, tags), (tags, tags), (len(numbers),)), strict=True
    )))  # fmt: skip
    return found, pairs


def pack_state(weights: ChainWeights, clock: npt.NDArray[np.float64], mean: Mean | None) -> dict[str, npt.NDArray[Any]]:
    """What a run needs to go on."""
    found: dict[str, npt.NDArray[Any]] = {"clock": clock, **dict(zip(_TABLES, weights, strict=True))}
    if mean is not None:
        found.update(zip(_MEANS, mean.weights, strict=True))
        found["mean_epochs"] = np.array([mean.epochs], np.int64)
    return found


def tables_of(arrays: Arrays, shapes: Shapes) -> ChainWeights | None:
    """The tables of a run that goes on; None for a plain model."""
    if not set(_TABLES) & set(arrays):
        return None
    sizes = ((rows * cells,) for rows, cells in shapes)
    return ChainWeights(*(np.array(required(arrays, name, size)) for name, size in zip(_TABLES, sizes, strict=True)))


def clock_of(arrays: Arrays) -> npt.NDArray[np.float64]:
    """Time of the epoch, and sentences of the text."""
    clock = arrays.get("clock")
    sound = clock is not None and clock.shape == (2,) and clock.dtype == np.float64 and bool(np.isfinite(clock).all())
    if clock is None or not sound or clock[0] < 0 or clock[1] < 1 or clock[1] % 1:
        raise ModelError("the array clock must be two float64: a time from 0 on, and a number of sentences.")
    return clock


def mean_of(arrays: Arrays, like: Plain) -> Mean | None:
    """The mean of a run that goes on."""
    if not {*_MEANS, "mean_epochs"} & set(arrays):
        return None
    epochs = arrays.get("mean_epochs")
    if epochs is None or epochs.shape != (1,) or epochs.dtype != np.int64 or not epochs[0] >= 1:
        raise ModelError("the array mean_epochs must be one int64 of at least 1.")
    parts = (np.array(required(arrays, name, old.shape)) for name, old in zip(_MEANS, like, strict=True))
    return Mean(Plain(*parts), int(epochs[0]))
