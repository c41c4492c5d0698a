"""The smallest tagger: how often each tag occurs, whatever the features say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Room
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.programs.taggers.tagger import Tagger


class Shares(NamedTuple):
    share: Any


class MajorityDecoder:
    def __init__(self, shares: Any, feed: TaggingFeed) -> None:
        self.shares, self.feed = shares, feed

    def best(self, rules: Any, threads: int = 1) -> Any:
        return np.full(self.feed.tokens, np.argmax(self.shares + rules.first), np.int32)

    def several(self, count: int, rules: Any) -> Any:
        order = np.argsort(-(self.shares + rules.first), kind="stable")[:count].tolist()
        sizes = np.diff(self.feed.samples.offsets).tolist()
        return [[(float(self.shares[tag]) ** size, [tag] * size) for tag in order] for size in sizes]

    def marginals(self, threads: int = 1) -> Any:
        return np.tile(self.shares, (self.feed.tokens, 1)).astype(np.float32)

    def loss(self, threads: int = 1) -> float:
        return -float(np.log(self.shares[self.feed.samples.tags]).sum()) / len(self.feed)


class Majority(Tagger):
    name = "majority"

    def __init__(self, tags: Sequence[str] = (), names: Sequence[str] = ()) -> None:
        self.tags, self.names = tuple(tags), tuple(names)

    @property
    def task(self) -> Any:
        raise NotImplementedError

    def startup(self, feed: TaggingFeed, seed: int) -> None:
        self.check_trainable(feed)
        self.tags, self.names = feed.tags, feed.names
        counts = np.bincount(feed.samples.tags, minlength=len(feed.tags))
        self.weights = Shares((counts / counts.sum()).astype(np.float32))

    def samples(self, feed: TaggingFeed) -> Any:
        raise NotImplementedError

    def room(self, feed: TaggingFeed) -> Room:
        raise NotImplementedError

    def decoder(self, feed: TaggingFeed) -> MajorityDecoder:
        self.check_same(feed)
        return MajorityDecoder(self.weights.share, feed)

    def arrays(self, state: bool = False) -> dict[str, Any]:
        return {"share": self.weights.share}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        self.check_names()
        self.weights = Shares(np.array(arrays["share"]))
