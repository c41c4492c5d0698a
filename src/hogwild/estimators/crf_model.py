"""A trained CRF over a few sentences: with the weights of their features alone, however many the model has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hogwild.arrays import Floats
from hogwild.errors import InputError
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.lists import tagging_of
from hogwild.programs.taggers.crf import CRF
from hogwild.programs.taggers.crf_weights import Plain, RichPairs, no_pairs
from hogwild.programs.taggers.decoding import CRFDecoder
from hogwild.programs.taggers.tagger import rules_of


class Excerpts:
    """Tags sentences. Looking up a feature takes the same time in models of any size."""

    def __init__(self, program: CRF) -> None:
        arrays = program.arrays()
        self.tags = program.tags
        self.nodes, self.edges, self.rich = arrays["nodes"], arrays["edges"], arrays["rich"]
        self._starts, self._pairs = arrays["rich_starts"], arrays["rich_pairs"]
        self._places = {name: place for place, name in enumerate(program.names)}

    def best(self, sentences: Sequence[Any], threads: int, constrain: bool) -> list[list[str]]:
        """The best tags of each sentence; none of them may be empty."""
        decoder = self._decoder(sentences)
        codes = decoder.best(rules_of(self.tags, constrain), threads)
        return _by_sentence(decoder.feed, np.array(self.tags, object)[codes].tolist())

    def marginals(self, sentences: Sequence[Any], threads: int) -> list[list[dict[str, float]]]:
        """The probability of each tag at each token of each sentence; none of them may be empty."""
        decoder = self._decoder(sentences)
        found = [dict(zip(self.tags, row, strict=True)) for row in decoder.marginals(threads).tolist()]
        return _by_sentence(decoder.feed, found)

    def _decoder(self, sentences: Sequence[Any]) -> CRFDecoder:
        try:
            feed = tagging_of(sentences, tags=self.tags)
        except InputError:  # no token has a feature; any other mistake is told now
            feed = tagging_of(sentences, names=(), tags=self.tags)
        ids = np.fromiter((self._places.get(name, -1) for name in feed.names), np.int64, len(feed.names))
        nodes = np.where((ids >= 0)[:, None], self.nodes[ids], np.float32(0)) if len(self.nodes) else self.nodes
        rich, pairs = self._rich_of(ids)
        return CRFDecoder(Plain(nodes.astype(np.float32, copy=False), self.edges, rich), pairs, len(self.tags), feed)

    def _rich_of(self, ids: Any) -> tuple[Floats, RichPairs]:
        """Weights and pairs of the rich edges of these features, of which some are not in the model (-1)."""
        features = len(self._starts) - 1
        if not features:
            return self.rich, no_pairs(len(self.tags))
        known = (ids >= 0) & (ids < features)
        first = np.where(known, self._starts[np.where(known, ids, 0)], 0)
        counts = np.where(known, np.diff(self._starts)[np.where(known, ids, 0)], 0)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        places = np.arange(starts[-1]) + np.repeat(first - starts[:-1], counts)
        return self.rich[places], RichPairs(starts, self._pairs[places], len(self.tags))


def _by_sentence(feed: TaggingFeed, tokens: list[Any]) -> list[list[Any]]:
    offsets = feed.samples.offsets.tolist()
    return [tokens[first:last] for first, last in pairwise(offsets)]


# -- The weights of a CRF by attribute and label, without a Python object for each ------------------------------------


Key = tuple[str, str]


class StateWeights(Mapping[Key, float]):
    """{(attribute, label): weight}, as a dict to read; weights of 0 are left out.

    A model of 300,000 attributes and 22 labels has millions of weights, more than a dict of them is good for.
    """

    def __init__(self, program: CRF) -> None:
        self._weights = program.arrays()["nodes"]
        self._names, self._labels = program.names, program.tags
        self._rows = {name: row for row, name in enumerate(self._names)}
        self._columns = {label: column for column, label in enumerate(self._labels)}

    def __getitem__(self, key: Key) -> float:
        try:
            weight = float(self._weights[self._rows[key[0]], self._columns[key[1]]])
        except (KeyError, IndexError, TypeError):
            raise KeyError(key) from None
        if not weight:
            raise KeyError(key)
        return weight

    def __iter__(self) -> Iterator[Key]:
        for name, row in zip(self._names, self._weights, strict=True):
            for column in np.flatnonzero(row).tolist():
                yield name, self._labels[column]

    def __len__(self) -> int:
        return int(np.count_nonzero(self._weights))

    def __repr__(self) -> str:
        return f"<{len(self):,} weights of {len(self._names):,} attributes and {len(self._labels)} labels>"
