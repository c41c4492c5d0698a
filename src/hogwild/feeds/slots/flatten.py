"""Samples of slots as plain rows, for models that know features only."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np

from hogwild.arrays import BinaryRows, Ids, Rows, SlotRows, ValuedSlotRows
from hogwild.feeds.sparse.feed import Feed


def flattened(feed: Feed, keep_slots: bool = False) -> Feed:
    """The same samples, where each dense column is a feature too (numbered after the others) and slots are gone.

    keep_slots: slots stay, and each dense column is one more of them. Feeds without slots come back as they are.

    Examples
    --------
    >>> samples = SlotRows(np.array([0, 1]), np.array([0], np.int32), np.array([0], np.uint16),
    ...                    np.array([[0.5]], np.float32), np.ones(1, np.float32), np.ones(1, np.float32))
    >>> flat = flattened(Feed(samples, 1, schema={"slots": ["ad"], "dense": ["price"]}))
    >>> flat.samples.ids.tolist(), flat.samples.values.tolist(), flat.features
    ([0, 1], [1.0, 0.5], 2)
    """
    samples = feed.samples
    if not isinstance(samples, SlotRows | ValuedSlotRows):
        return feed
    rows, columns = samples.dense.shape
    if columns == 0:
        return feed if keep_slots else _without_slots(feed, samples)
    lengths = np.diff(samples.offsets)
    offsets = samples.offsets + np.arange(rows + 1) * columns
    # Where the entries of each row go: as many places further as dense cells stand before them.
    places = np.arange(len(samples.ids)) + np.repeat(np.arange(rows) * columns, lengths)
    cells = (offsets[1:] - columns)[:, None] + np.arange(columns)
    ids = np.empty(int(offsets[-1]), np.int32)
    ids[places], ids[cells] = samples.ids, feed.features + np.arange(columns, dtype=np.int32)
    values = np.ones(len(ids), np.float32)
    if isinstance(samples, ValuedSlotRows):
        values[places] = samples.values
    values[cells] = samples.dense
    schema = {name: value for name, value in feed.schema.items() if name not in ("slots", "dense")}
    plain = Rows(offsets, ids, values, samples.targets, samples.importance)
    features = feed.features + columns
    whole = replace(feed, samples=plain, features=features, original=_grown(feed, columns), schema=schema)
    if not keep_slots:
        return whole
    slots = np.empty(len(ids), np.uint16)
    slots[places], slots[cells] = samples.slots, len(feed.slots) + np.arange(columns, dtype=np.uint16)
    no_dense = np.zeros((rows, 0), np.float32)
    slotted = ValuedSlotRows(offsets, ids, slots, no_dense, samples.targets, samples.importance, values)
    return replace(whole, samples=slotted, schema={**schema, "slots": [*feed.slots, *feed.dense], "dense": []})


class Flattener:
    """`flattened` of the feeds that were asked for last: training and validation take turns."""

    def __init__(self, keep_slots: bool = False) -> None:
        self._keep_slots = keep_slots
        self._kept: list[tuple[weakref.ref[Feed], Feed]] = []

    def of(self, feed: Feed) -> Feed:
        """The feed as plain rows."""
        for known, flat in self._kept:
            if known() is feed:
                return flat
        flat = flattened(feed, self._keep_slots)
        if flat is not feed:
            self._kept = [(weakref.ref(feed), flat), *self._kept[:1]]
        return flat


def _without_slots(feed: Feed, samples: SlotRows | ValuedSlotRows) -> Feed:
    """The same arrays, where there are no dense columns."""
    ends = (samples.targets, samples.importance)
    plain: Rows | BinaryRows = BinaryRows(samples.offsets, samples.ids, *ends)
    if isinstance(samples, ValuedSlotRows):
        plain = Rows(samples.offsets, samples.ids, samples.values, *ends)
    schema = {name: value for name, value in feed.schema.items() if name not in ("slots", "dense")}
    return replace(feed, samples=plain, schema=schema)


def _grown(feed: Feed, columns: int) -> Ids | None:
    if feed.original is None:
        return None
    return np.append(feed.original, feed.features + np.arange(columns, dtype=np.int32))
