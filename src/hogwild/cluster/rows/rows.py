"""Rows on a cluster: every node's fetcher encodes a part of the files, and the ids of all are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from os import PathLike, fspath
from typing import Any

import numpy as np
import ray

from hogwild import arrays
from hogwild.arrays import AnyRows, Floats, Offsets
from hogwild.cluster.fleet import Fleet
from hogwild.cluster.parted import Files, Parted, same_everywhere
from hogwild.cluster.rows.fetcher import PartCount, RowFetcher, RowSource
from hogwild.config import FeedConfig
from hogwild.errors import ClusterError, ConfigError, InputError
from hogwild.feeds.io.parts import TextPart
from hogwild.feeds.parted import Learned, Outline, Sets
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.storage.ranking import Frequencies


@dataclass(frozen=True)
class Rows(Files):
    """Files of rows for `hogwild.cluster.train`, to be read by the nodes themselves; as for `hogwild.open_feed`."""

    paths: str | PathLike[str] | Sequence[str | PathLike[str]]
    config: FeedConfig = field(default_factory=FeedConfig)

    def __post_init__(self) -> None:
        given = [self.paths] if isinstance(self.paths, str | PathLike) else self.paths
        object.__setattr__(self, "paths", tuple(map(fspath, given)))

    def read(self, fleet: Fleet, threads: int) -> tuple[PartedRows, list[RowSource]]:
        """One fetcher goes through all files, for what is known only at their end; then each encodes its part."""
        if fleet.words_only:
            raise ConfigError(f"strategy {fleet.words_only} is for word vectors on text; try average.")
        fleet.start_fetchers(RowFetcher)
        ranks = range(fleet.count)
        fleet.ask_fetchers("check", [0], lambda rank: (self.paths, self.config, fleet.count))
        looks = fleet.ask_fetchers("look", ranks, lambda rank: (self.paths, self.config))
        if not same_everywhere(looks):
            raise InputError(f"{looks[0][0].name} is not the same file on all nodes; put it where all see it.")
        (cut,) = fleet.ask_fetchers("cut", [0], lambda rank: (self.paths, fleet.count, self.config))
        (learned,) = fleet.ask_fetchers("learn", [0], lambda rank: (self.paths, self.config, threads))
        parts = fleet.ask_fetchers("encode", ranks, lambda rank: (cut.parts[rank], learned, threads))
        seen = Frequencies()
        for part in parts:
            seen.add_counts(np.array(part.counts))
        whole = Whole(cut.parts, learned, seen.counts, tuple(part.digest for part in parts))
        sources, outlines = _ranked(fleet, ranks, whole.counts)
        return PartedRows.of(whole, outlines, cut.title, (*learned.notes, *cut.notes)), sources


@dataclass(frozen=True)
class Whole:
    """What the parts have in common. counts: how often all have each id; digests: of what each part was read as."""

    parts: tuple[tuple[TextPart, ...], ...]
    learned: Learned
    counts: Offsets
    digests: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class PartedRows(Feed, Parted):
    """Rows that are with the nodes: here are their labels, weights and numbers of features, and no features.

    bounds: the first row of each part, and the end.
    """

    whole: Whole | None = None
    bounds: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, whole: Whole, outlines: Sequence[Outline], title: str, notes: tuple[str, ...]) -> PartedRows:
        """The outlines of all parts as one."""
        learned = whole.learned
        sets, targets = _one_numbering(outlines)
        digest = hashlib.sha256(repr((learned.config, learned.schema, whole.digests)).encode())
        digest.update(targets.data)
        bounds = (0, *accumulate(len(part.targets) for part in outlines))
        return cls(
            _outlined(outlines, targets, learned), learned.features, outlines[0].original, learned.labels,
            learned.schema, notes, title, digest.hexdigest(), sets=sets, whole=whole, bounds=bounds,
        )  # fmt: skip

    @property
    def away(self) -> bool:
        """They are."""
        return True

    def visits_of(self, program: Any, sources: Sequence[RowSource]) -> list[int]:
        """By the rows of each part."""
        return [program.visits(self.part(np.arange(first, end), "")) for first, end in pairwise(self.bounds)]

    def read_again(self, fleet: Fleet, ranks: Sequence[int], threads: int) -> list[RowSource]:
        """New fetchers in place of dead ones read their parts, which must be what they were."""
        assert self.whole is not None
        whole = self.whole
        parts: list[PartCount] = fleet.ask_fetchers(
            "encode", ranks, lambda rank: (whole.parts[rank], whole.learned, threads)
        )
        if any(part.digest != whole.digests[rank] for rank, part in zip(ranks, parts, strict=True)):
            raise ClusterError(f"{self.source}: a part was not what it had been when it was read again.")
        return _ranked(fleet, ranks, whole.counts)[0]

    def is_as(self, other: Any) -> bool:
        """It has the same ids."""
        assert self.whole is not None
        return self.schema == other.schema and np.array_equal(self.whole.counts, other.whole.counts)


def _one_numbering(outlines: Sequence[Outline]) -> tuple[Sets, Floats]:
    """The sets of labels of all parts, if rows have several, and the target of each row."""
    if not any(part.sets for part in outlines):
        return (), np.concatenate([part.targets for part in outlines])
    known: dict[tuple[int, ...], int] = {}
    targets = []
    for part in outlines:
        numbers = [known.setdefault(each, len(known)) for each in part.sets]
        targets.append(np.array(numbers, np.float32)[part.targets.astype(np.int64)])
    return tuple(known), np.concatenate(targets)


def _outlined(outlines: Sequence[Outline], targets: Floats, learned: Learned) -> AnyRows:
    """All rows without their features: arrays of the right size that take no memory."""
    importance = np.concatenate([part.importance for part in outlines])
    offsets = np.concatenate([[0], *(part.lengths for part in outlines)]).cumsum(dtype=np.int64)
    entries = int(offsets[-1])
    ids = np.broadcast_to(np.int32(0), entries)
    values = (np.broadcast_to(np.float32(1), entries),) if any(part.valued for part in outlines) else ()
    if "slots" in learned.schema:
        slots = np.broadcast_to(np.uint16(0), entries)
        dense = np.broadcast_to(np.float32(0), (len(targets), len(learned.schema.get("dense", ()))))
        kind = arrays.ValuedSlotRows if values else arrays.SlotRows
        return kind(offsets, ids, slots, dense, targets, importance, *values)
    if values:
        return arrays.Rows(offsets, ids, *values, targets, importance)
    return arrays.BinaryRows(offsets, ids, targets, importance)


def _ranked(fleet: Fleet, ranks: Sequence[int], counts: Offsets) -> tuple[list[RowSource], list[Outline]]:
    shared = ray.put(counts)
    found = fleet.ask_fetchers("order", ranks, lambda rank: (shared, rank == 0))
    return [source for source, _ in found], [outline for _, outline in found]
