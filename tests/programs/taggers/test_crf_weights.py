"""Which pairs of tags features weigh, and where compiled code finds them: against sets made token by token."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hogwild.errors import ConfigError, ModelError
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.programs.taggers.crf_weights import RichPairs, find_pairs, no_pairs
from problems.crf import make_feed

STARTS = np.array([0, 3, 3, 12], np.int64)
PAIRS = np.array([8, 0, 4, *range(9)], np.int32)


def seen_with(feed: TaggingFeed, feature: int) -> list[int]:
    """Pairs of tags of which the second is that of a token with the feature."""
    samples, found = feed.samples, set()
    for first, last in zip(samples.offsets[:-1], samples.offsets[1:], strict=True):
        for t in range(first + 1, last):
            if feature in samples.ids[samples.starts[t] : samples.starts[t + 1]]:
                found.add(int(samples.tags[t - 1]) * len(feed.tags) + int(samples.tags[t]))
    return sorted(found)


@pytest.mark.parametrize("least", [1, 3, 5, 1000])
@pytest.mark.parametrize("tags", [2, 3, 9])
def test_pairs_seen_with_frequent_features(least: int, tags: int) -> None:
    feed = make_feed(tags, tags, features=20)
    frequent = [k for k in range(20) if feed.counts[k] >= least]
    found = find_pairs(feed, least, seen_only=True)
    assert found.features == len(frequent)
    assert [found.pairs[a:b].tolist() for a, b in zip(found.starts[:-1], found.starts[1:], strict=True)] == [
        seen_with(feed, feature) for feature in frequent
    ]
    assert found.starts.dtype == np.int64
    assert found.pairs.dtype == np.int32
    found.check(20)


@pytest.mark.parametrize("least", [1, 4, 1000])
def test_all_pairs_of_frequent_features(least: int) -> None:
    feed = make_feed(1, 3, features=20)
    frequent = int((feed.counts >= least).sum())
    found = find_pairs(feed, least, seen_only=False)
    assert found.features == frequent
    assert found.pairs.tolist() == list(range(9)) * frequent
    found.check(20)


def test_pairs_of_some_templates() -> None:
    feed = make_feed(1, 3, features=6)
    named = replace(feed, names=("w[0]=a", "pos[0]=b", "w[0]=c=d", "w[-1]=e", "w[0]", "bias"))
    found = find_pairs(named, 1, seen_only=True, templates=("w[0]",))
    lists = [found.pairs[a:b].tolist() for a, b in zip(found.starts[:-1], found.starts[1:], strict=True)]
    assert lists == [seen_with(feed, 0), [], seen_with(feed, 2), [], seen_with(feed, 4)]
    whole = find_pairs(named, 1, seen_only=False, templates=("pos[0]", "bias"))
    assert np.diff(whole.starts).tolist() == [0, 9, 0, 0, 0, 9]
    with pytest.raises(ConfigError, match=r"no feature is of the template 'w\[1\]'.*did you mean"):
        find_pairs(named, 1, seen_only=True, templates=("w[1]",))


def test_rich_features_are_the_first_ids_whatever_the_order_of_counts() -> None:
    """Text in the ids of a model has counts in another order; compiled code looks at a beginning of the ids."""
    feed = make_feed(2, 3, features=6)
    turned = replace(feed, counts=np.array([9, 2, 12, 4, 9, 1]))
    found = find_pairs(turned, 5, seen_only=True)
    assert found.features == 5  # up to the last that is frequent enough
    lists = [found.pairs[a:b].tolist() for a, b in zip(found.starts[:-1], found.starts[1:], strict=True)]
    assert lists == [seen_with(feed, 0), [], seen_with(feed, 2), [], seen_with(feed, 4)]
    whole = find_pairs(turned, 5, seen_only=False)
    assert np.diff(whole.starts).tolist() == [9, 0, 9, 0, 9]


def test_places_of_pairs() -> None:
    pairs = RichPairs(STARTS, PAIRS, 3)
    assert pairs.features == 3
    assert pairs.chunk_starts.tolist() == [0, 1, 1, 3]
    assert pairs.slots.tolist() == [0, 1, 2, *range(8, 17)]
    cells = pairs.cells(8)
    assert len(cells) == 24
    for slot, pair in zip(pairs.slots, PAIRS, strict=True):
        assert cells[slot] == pair // 3 * 8 + pair % 3
    spare = 4 * 8  # three tags fill up to four rows of eight cells
    assert (np.delete(cells, pairs.slots) == spare).all()
    assert pairs.check(3) is pairs


def test_no_pairs() -> None:
    nothing = no_pairs(4)
    assert nothing.features == 0
    assert nothing.chunk_starts.tolist() == [0]
    assert len(nothing.slots) == len(nothing.cells(8)) == 0
    nothing.check(0)


@pytest.mark.parametrize(
    ("starts", "pairs", "features"),
    [
        ([], [], 5),
        ([1, 3], [0, 1, 2], 5),
        ([0, 2], [0, 1, 2], 5),
        ([0, 4], [0, 1, 2], 5),
        ([0, 5, 3], [0, 1, 2], 5),
        ([0, -1, 3], [0, 1, 2], 5),
        ([0, 3], [0, 1, 9], 5),
        ([0, 3], [0, -1, 2], 5),
        ([0, 1, 3], [0, 1, 2], 1),
    ],
)
def test_pairs_that_compiled_code_must_not_see(starts: list[int], pairs: list[int], features: int) -> None:
    with pytest.raises(ModelError, match="pairs of its rich edges do not fit"):
        RichPairs(np.array(starts, np.int64), np.array(pairs, np.int32), 3).check(features)
