"""A trained CRF over a few sentences in memory, or one: quickly, however many features the model has."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np

from hogwild.arrays import Chains
from hogwild.errors import HogwildWarning, InputError
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.lists import MADE, STRANGE, chains_of
from hogwild.feeds.tagged.open import templates_of
from hogwild.feeds.tagged.sentences import SentenceFeatures
from hogwild.kernels.crf.viterbi import Rules
from hogwild.messages import counted
from hogwild.programs.taggers.decoding import CRFDecoder, OneChain, Resting
from hogwild.programs.taggers.tagger import REMEDY, rules_of


class Excerpts:
    """Tags sentences by weights at rest. Looking up a feature takes the same time in models of any size.

    schema: how text becomes the features `names`; only `tag` needs it.
    """

    def __init__(self, resting: Resting, names: Sequence[str], tags: Sequence[str], schema: Mapping[str, Any]) -> None:
        self.resting, self.names, self.tags, self.schema = resting, tuple(names), tuple(tags), schema
        self._places = {name: place for place, name in enumerate(names)}
        self._rules: dict[bool, Rules] = {}
        self._features: SentenceFeatures | None = None

    def tag(self, sentence: Any, constrain: bool) -> list[str]:
        """The best tags of one sentence, of columns or of features as the schema says."""
        if self.schema.get("features") == MADE:
            if not len(sentence):
                return []
            return self._best(self._feed([sentence], strict=True), 1, constrain)
        if self._features is None:
            self._features = SentenceFeatures(self.schema, templates_of(self.schema), self._places)
        rows, unknown = self._features.rows(sentence)
        ids, ends = list(chain.from_iterable(rows)), list(accumulate(map(len, rows)))
        check_excerpt(len(ids), unknown, REMEDY, pruned=bool(self.schema.get("pruned")))
        return self._named(self._chain.best(ids, ends, self._rules_for(constrain))) if rows else []

    def best(self, sentences: Sequence[Any], threads: int, constrain: bool) -> list[list[str]]:
        """The best tags of sentences of features, in the shapes that `tagging_of` takes; none may be empty.

        As CRFsuite does, it answers for sentences of which nothing is known; a warning says so.
        """
        feed = self._feed(sentences)
        return _by_sentence(feed, self._best(feed, threads, constrain))

    def marginals(self, sentences: Sequence[Any], threads: int) -> list[list[dict[str, float]]]:
        """The probability of each tag at each token of such sentences."""
        feed = self._feed(sentences)
        chances = CRFDecoder(self.resting, feed).marginals(threads).tolist()
        return _by_sentence(feed, [dict(zip(self.tags, row, strict=True)) for row in chances])

    def _best(self, feed: TaggingFeed, threads: int, constrain: bool) -> list[str]:
        """The best tags of all tokens."""
        samples, rules = feed.samples, self._rules_for(constrain)
        if len(feed) == 1 and isinstance(samples, Chains):
            return self._named(self._chain.best(samples.ids, samples.starts[1:], rules))
        return self._named(CRFDecoder(self.resting, feed).best(rules, threads).tolist())

    def _feed(self, sentences: Sequence[Any], strict: bool = False) -> TaggingFeed:
        samples, unknown = chains_of(sentences, self._places)
        remedy, pruned = STRANGE if strict else "name features as in training.", bool(self.schema.get("pruned"))
        check_excerpt(len(samples.ids), unknown, remedy, strict, pruned)
        counts = np.zeros(0, np.int64)  # nobody asks
        return TaggingFeed(samples, self.names, counts, self.tags, unknown=unknown)

    @cached_property
    def _chain(self) -> OneChain:
        return OneChain(self.resting)  # compiles

    def _rules_for(self, constrain: bool) -> Rules:
        if constrain not in self._rules:
            self._rules[constrain] = rules_of(self.tags, constrain)
        return self._rules[constrain]

    def _named(self, codes: list[int]) -> list[str]:
        return [self.tags[code] for code in codes]


def check_excerpt(known: int, unknown: int, remedy: str, strict: bool = True, pruned: bool = False) -> None:
    """As `check_known`, for a few sentences: the warning is always the same one, so that it is shown once."""
    if unknown and not known and strict:
        what = f"none of the {counted(unknown, 'feature')} of the sentence is known to the model"
        raise InputError(f"{what}, which could only guess the tags; {remedy}")
    if unknown > known and not pruned:
        what = "more than half of the features of what is to be tagged are not known to the model"
        warnings.warn(f"{what}; {remedy}", HogwildWarning, stacklevel=5)


def _by_sentence(feed: TaggingFeed, tokens: list[Any]) -> list[list[Any]]:
    offsets = feed.samples.offsets.tolist()
    return [tokens[first:last] for first, last in pairwise(offsets)]
