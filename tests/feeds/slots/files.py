"""Feeds of slots as plain Python values: the keys of categories again, from the features and the schema."""

from __future__ import annotations

from itertools import accumulate, pairwise

from hogwild.arrays import SlotRows, ValuedSlotRows
from hogwild.feeds.sparse.feed import Feed
from reference.slots import Row

RARE = -1


def rows_of(feed: Feed) -> list[Row]:
    """Target, entries (slot, key, value) and dense numbers of each row; the key of the rare feature is RARE."""
    samples, original = feed.samples, feed.original
    assert isinstance(samples, SlotRows | ValuedSlotRows)
    assert original is not None
    values = samples.values.tolist() if isinstance(samples, ValuedSlotRows) else [1.0] * len(samples.ids)
    features = original[samples.ids].tolist()
    names = [feed.slots[slot] for slot in samples.slots.tolist()]
    whole = list(zip(names, keys_of(feed, features, samples.slots.tolist()), values, strict=True))
    bounds = pairwise(samples.offsets.tolist())
    targets, dense = samples.targets.tolist(), samples.dense.tolist()
    return [(targets[row], whole[a:b], dense[row]) for row, (a, b) in enumerate(bounds)]


def keys_of(feed: Feed, features: list[int], slots: list[int]) -> list[int]:
    """The key of each feature; checks that it belongs to its slot."""
    if "keys" not in feed.schema:
        return features
    keys = [int(key) for text in feed.schema["keys"] for key in text.split()]
    groups = [0] * len(slots) if feed.schema["shared_ids"] else slots
    starts = [0, *accumulate(feed.schema["sizes"])]
    for feature, group in zip(features, groups, strict=True):
        rare = len(keys) + group
        assert starts[group] <= feature < starts[group + 1] or (feature == rare and feed.schema["min_count"] > 1)
    return [keys[feature] if feature < len(keys) else RARE for feature in features]
