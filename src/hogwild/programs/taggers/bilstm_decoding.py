"""Reading tags off a Bi-LSTM: scores of all tokens by its layers, then the chain of a CRF with one feature a token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, chain
from typing import Any

import numpy as np

from hogwild.arrays import Chains, Floats, Ids, Room, make_scratch
from hogwild.feeds.io.parallel import in_parts
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.open import templates_of
from hogwild.feeds.tagged.sentences import SentenceFeatures
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.crf.viterbi import Rules
from hogwild.kernels.loop.task import OneByOne
from hogwild.kernels.nn.lstm_batch import Sentences, TaggerTask, TaggerWeights, room_for
from hogwild.kernels.nn.lstm_tagger import score_sentences
from hogwild.kernels.simd.pairs import Float32
from hogwild.machine import one_blas_thread
from hogwild.programs.taggers.bilstm_reading import Reader, Visits
from hogwild.programs.taggers.crf_weights import Plain, no_pairs
from hogwild.programs.taggers.decoding import CRFDecoder, Resting
from hogwild.programs.taggers.single import check_excerpt
from hogwild.programs.taggers.tagger import REMEDY

_TOGETHER = 16  # sentences that are scored at once


class RestingNet:
    """The layers of a Bi-LSTM at rest. weights: have paid their penalties; pairs: scores of pairs of tags."""

    def __init__(self, task: TaggerTask, weights: TaggerWeights, reader: Reader, pairs: Floats) -> None:
        none = np.float32(0)
        self.task = task._replace(
            dropout=none, word_dropout=none, unknown_share=none, places=1, pace=OneByOne(), products=Float32()
        )
        self.weights, self.reader, self.pairs = weights, reader, pairs

    def scores(self, feed: TaggingFeed, threads: int) -> Floats:
        """(tokens, tags): what the layers make of each token; the same whatever the number of threads."""
        samples = self.reader.sentences(feed, _TOGETHER)
        room = self._room(samples)
        found = np.zeros((feed.tokens, self.task.tags), np.float32)

        def score(first: int, last: int) -> None:
            score_sentences(self.task, samples, self.weights, make_scratch(room, np.uint64(0)), (first, last), found)

        with one_blas_thread():
            in_parts(len(samples.first), threads, score)
        return found

    def _room(self, samples: Sentences) -> Room:
        visits = Visits(samples.order, samples.first, samples.count, samples.block, samples.block_size)
        floats, ints = room_for(self.task, *visits.largest(samples.offsets))
        return Room(1, floats=floats, ints=ints)

    def chain(self, feed: TaggingFeed, scores: Floats) -> CRFDecoder:
        """What reads tags off the scores of a feed's tokens."""
        tokens = np.arange(len(scores) + 1)
        chains = Chains(feed.samples.offsets, tokens, tokens[:-1].astype(np.int32), feed.samples.tags)
        plain = Plain(scores, self.pairs, np.zeros(0, np.float32))
        return CRFDecoder(Resting(plain, no_pairs(len(self.pairs))), replace(feed, samples=chains))


class BiLSTMDecoder:
    """A Bi-LSTM at rest, over one feed; the layers are run once, in as many threads as the first question names."""

    def __init__(self, net: RestingNet, feed: TaggingFeed) -> None:
        self._net, self._feed = net, feed
        self._chain: CRFDecoder | None = None

    def _asked(self, threads: int) -> CRFDecoder:
        if self._chain is None:
            self._chain = self._net.chain(self._feed, self._net.scores(self._feed, threads))
        return self._chain

    def best(self, rules: Rules, threads: int = 1) -> Ids:
        """The best tag of each token."""
        return self._asked(threads).best(rules, threads)

    def several(self, count: int, rules: Rules) -> list[list[tuple[float, list[int]]]]:
        """For each sentence its best paths, with their probabilities."""
        return self._asked(1).several(count, rules)

    def marginals(self, threads: int = 1) -> Floats:
        """(tokens, tags): the probability of each tag."""
        return self._asked(threads).marginals(threads)

    def loss(self, threads: int = 1) -> float:
        """The mean loss of the sentences whose tags are all known; NaN if there are none."""
        return self._asked(threads).loss(threads)


class OneSentence:
    """Tags one sentence at a time, by weights at rest."""

    def __init__(self, net: RestingNet, tags: tuple[str, ...], schema: Mapping[str, Any]) -> None:
        self._net, self._tags, names = net, tags, net.reader.names
        self._features = SentenceFeatures(schema, templates_of(schema), {name: k for k, name in enumerate(names)})
        self._looks = net.reader.alphabet is not None
        self._scratch: Any = None
        self._tokens = 0
        self._call: Any = None

    def tag(self, sentence: Any, rules: Rules, free: bool) -> list[str]:
        """Its best tags; free: rules allow everything."""
        rows, unknown = self._features.rows(sentence)
        ids = list(chain.from_iterable(rows))
        check_excerpt(len(ids), unknown, REMEDY)
        if not rows:
            return []
        net, starts = self._net, np.array([0, *accumulate(map(len, rows))])
        words = self._features.words(sentence, net.reader.word_column_name) if self._looks else ()
        samples = net.reader.one(np.array(ids, np.int32), starts, words)
        scores = np.empty((len(rows), net.task.tags), np.float32)
        self._score(samples, scores)
        if free and not net.pairs.any():
            codes = scores.argmax(axis=1).tolist()
        else:
            chains = Chains(samples.offsets, starts, np.array(ids, np.int32), samples.tags)
            codes = net.chain(TaggingFeed(chains, (), starts[:0], self._tags), scores).best(rules).tolist()
        return [self._tags[code] for code in codes]

    def _score(self, samples: Sentences, scores: Floats) -> None:
        net = self._net
        if len(scores) > self._tokens:
            self._tokens = 2 * len(scores)
            floats, ints = room_for(net.task, self._tokens, 1, self._tokens)
            self._scratch = make_scratch(Room(1, floats=floats, ints=ints), np.uint64(0))
        arguments = (net.task, samples, net.weights, self._scratch, (0, 1), scores)
        if self._call is None:
            self._call = entry(score_sentences, *arguments)
        self._call(*arguments)  # products so small are made in one thread
