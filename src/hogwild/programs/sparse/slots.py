"""Rows of any kind as rows of slots, in the order of rows that a table has."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from hogwild.arrays import AnyRows, BinaryRows, DenseRows, Ids, SlotRows, ValuedSlotRows
from hogwild.feeds.sparse.feed import Feed


def slotted(samples: AnyRows) -> SlotRows | ValuedSlotRows:
    """Rows without slots as rows of one slot, whose array of slots is empty; dense rows as dense columns alone."""
    if isinstance(samples, SlotRows | ValuedSlotRows):
        return samples
    rows = len(samples.targets)
    no_slots = np.zeros(0, np.uint16)
    if isinstance(samples, DenseRows):
        no_ids = np.zeros(rows + 1, np.int64), np.zeros(0, np.int32)
        return SlotRows(*no_ids, no_slots, samples.matrix, samples.targets, samples.importance)
    dense = np.zeros((rows, 0), np.float32)
    if isinstance(samples, BinaryRows):
        return SlotRows(samples.offsets, samples.ids, no_slots, dense, samples.targets, samples.importance)
    return ValuedSlotRows(
        samples.offsets, samples.ids, no_slots, dense, samples.targets, samples.importance, samples.values
    )


class Aligner:
    """Ids of a feed as rows of a model's table. The last feed is kept, as it is mostly asked for again."""

    def __init__(self) -> None:
        self._feed: Any = lambda: None
        self._order: Any = lambda: None
        self._found: AnyRows | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copies: with no feed at hand."""
        return Aligner, ()

    def align(self, feed: Feed, order: Ids | None, features: int) -> AnyRows:
        """The samples of a feed with ids that are rows of a table in this order of features; unknown ones left out."""
        same = order is feed.original
        if isinstance(feed.samples, DenseRows) or (same and feed.features <= features):
            return feed.samples
        if self._found is None or self._feed() is not feed or self._order() is not order:
            self._found = _aligned(feed, order, features)
            self._feed = weakref.ref(feed)
            self._order = (lambda: None) if order is None else weakref.ref(order)
        return self._found


def _aligned(feed: Feed, order: Ids | None, features: int) -> AnyRows:
    samples = feed.samples
    assert not isinstance(samples, DenseRows)
    place = np.full(max(feed.features, features), -1, np.int32)
    if order is None:
        place[:features] = np.arange(features, dtype=np.int32)
    else:
        place[order[:features]] = np.arange(features, dtype=np.int32)
    of_id = place[: feed.features] if feed.original is None else place[feed.original]
    ids = of_id[samples.ids]
    if not len(ids) or int(ids.min()) >= 0:
        return samples._replace(ids=ids)
    keep = ids >= 0
    offsets = np.concatenate([[0], np.cumsum(keep)])[samples.offsets]
    kept = {name: getattr(samples, name)[keep] for name in ("values", "slots") if name in samples._fields}
    return samples._replace(ids=ids[keep], offsets=offsets, **kept)
