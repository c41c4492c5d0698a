"""What all taggers have in common: tags, names of features, and what is made of the answers of a decoder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from hogwild.arrays import Floats, Ids
from hogwild.config import TaggerTrainConfig
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.kernels.crf.viterbi import FORBIDDEN, Rules
from hogwild.programs.program import CompiledProgram, Metrics
from hogwild.programs.taggers.schemes import allowed, scheme_of
from hogwild.programs.taggers.scores import TagScores, score_feed


class Decoder(Protocol):
    """A tagger at rest, over one feed. Answers are the same whatever the number of threads."""

    def best(self, rules: Rules, threads: int = 1) -> Ids:
        """The best tag of each token."""

    def several(self, count: int, rules: Rules) -> list[list[tuple[float, list[int]]]]:
        """For each sentence its best paths, with their probabilities."""

    def marginals(self, threads: int = 1) -> Floats:
        """(tokens, tags): the probability of each tag."""

    def loss(self, threads: int = 1) -> float:
        """The mean loss of the sentences whose tags are all known; NaN if there are none."""


class Tagger(CompiledProgram):
    """A program over a TaggingFeed.

    Attributes
    ----------
    tags, names : its tags and features; those of the first feed unless they were given.
    """

    unit = "tokens"
    training = TaggerTrainConfig
    tells_units = True
    tags: tuple[str, ...]
    names: tuple[str, ...]

    @abstractmethod
    def decoder(self, feed: TaggingFeed) -> Decoder:
        """What reads tags off the weights as they stand, for a feed in the features and tags of this model."""

    def units(self, feed: TaggingFeed) -> int:
        """Tokens."""
        return feed.tokens

    # -- feeds ------------------------------------------------------------------------------------------------------

    def open(self, paths: Any, *, with_tags: bool = True, schema: Mapping[str, Any] | None = None) -> TaggingFeed:
        """Files in the ids of this model; `schema`: that of the feed it was trained on, for other than chunking."""
        from hogwild.feeds.tagged.open import open_tagging

        return open_tagging(paths, schema=schema, names=self.names, tags=self.tags, with_tags=with_tags)

    def check_trainable(self, feed: TaggingFeed) -> None:
        """Raise for what this model cannot be trained on."""
        if not isinstance(feed, TaggingFeed):
            raise ConfigError(f"{type(feed).__name__} is no tagged text; use hogwild.open_tagging or tagging_of.")
        feed.check()
        self.check_same(feed)
        if feed.tokens and int(feed.samples.tags.min()) < 0:
            strange = ", ".join(list(feed.strange)[:3])
            why = f"its tags {strange} are not among those of the model; train a new one."
            none = "it has tokens without tags; training needs one for every token."
            raise InputError(f"{feed.source}: {why if strange else none}")

    def check_same(self, feed: TaggingFeed) -> None:
        """Raise for other features or tags; before there are weights, what is not given may be any."""
        trained = self.weights is not None
        names, tags = self.names or trained, self.tags or trained
        if (names and feed.names != self.names) or (tags and feed.tags != self.tags):
            raise ConfigError(
                "this text is in other feature ids than the model's; open it with names=program.names and "
                "tags=program.tags, or by program.open(path)."
            )

    # -- predicting -------------------------------------------------------------------------------------------------

    def predict(self, feed: TaggingFeed, threads: int = 1, constrain: bool = False) -> list[list[str]]:
        """The best tags of each sentence. constrain: only such as the scheme of the tags (IOB2, IOBES, BMES) allows."""
        codes = self.predict_codes(feed, threads, constrain)
        named = np.array([*self.tags, ""], object)[codes].tolist()
        offsets = feed.samples.offsets.tolist()
        return [named[a:b] for a, b in pairwise(offsets)]

    def predict_codes(self, feed: TaggingFeed, threads: int = 1, constrain: bool = False) -> Ids:
        """Numbers of the best tags of all tokens."""
        return self.decoder(feed).best(rules_of(self.tags, constrain), threads)

    def nbest(
        self, feed: TaggingFeed, count: int, constrain: bool = False
    ) -> list[list[tuple[float, list[str]]]]:
        """For each sentence up to `count` best paths with their probabilities, the best first."""
        found = self.decoder(feed).several(count, rules_of(self.tags, constrain))
        return [[(chance, [self.tags[k] for k in path]) for chance, path in paths] for paths in found]

    def marginals(self, feed: TaggingFeed, threads: int = 1) -> Floats:
        """(tokens, tags): the probability of each tag at each token."""
        return self.decoder(feed).marginals(threads)

    def evaluate(self, feed: TaggingFeed, threads: int = 1) -> Metrics:
        """loss (mean of -log p over the sentences whose tags are all known) and the scores of tags and chunks."""
        loss, scores = self.compare(feed, threads)
        return {"loss": loss, **scores.metrics()}

    def compare(self, feed: TaggingFeed, threads: int = 1, constrain: bool = False) -> tuple[float, TagScores]:
        """The loss, and how the best tags compare with those of the feed."""
        decoder = self.decoder(feed)
        guess = decoder.best(rules_of(self.tags, constrain), threads)
        return decoder.loss(threads), score_feed(feed, guess)

    # -- saving -----------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """Its tags and features."""
        return {"tags": list(self.tags), "names": list(self.names)}

    def check_names(self) -> None:
        """Raise ModelError unless there are tags, and tags and features are texts, each once."""
        words = all(isinstance(word, str) for word in (*self.tags, *self.names))
        once = words and len(set(self.tags)) == len(self.tags) and len(set(self.names)) == len(self.names)
        if not self.tags or not once:
            raise ModelError("the options of the model do not say its tags and features, each once.")


def rules_of(tags: Sequence[str], constrain: bool) -> Rules:
    """What may follow what: all, or what the scheme of the tags allows."""
    count = len(tags)
    if not constrain:
        return Rules(np.zeros(count), np.zeros((count, count)), np.zeros(count))
    scheme = scheme_of(tags)
    if not scheme:
        raise ConfigError(f"tags such as {', '.join(tags[:4])} follow no scheme (IOB, IOBES, BMES); do not constrain.")
    can = allowed(tags, scheme)
    return Rules(*(np.where(part, 0.0, FORBIDDEN) for part in (can.first, can.pairs, can.last)))
