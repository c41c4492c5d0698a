"""What all taggers have in common: tags, names of features, and what is made of the answers of a decoder."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from hogwild.arrays import Floats, Ids
from hogwild.config import BiLSTMConfig, CRFConfig, TaggerTrainConfig
from hogwild.errors import ConfigError, InputError, ModelError, brief
from hogwild.feeds.tagged.features import encode
from hogwild.feeds.tagged.feed import TaggingFeed, check_known
from hogwild.feeds.tagged.lists import MADE, tagging_of
from hogwild.feeds.tagged.open import open_tagging, templates_of
from hogwild.feeds.tagged.schemes import allowed, scheme_of
from hogwild.feeds.tagged.sentences import text_of
from hogwild.kernels.crf.viterbi import FORBIDDEN, Rules
from hogwild.messages import shown
from hogwild.programs.program import CompiledProgram, Metrics
from hogwild.programs.taggers.scores import TagScores, score_feed

REMEDY = "are these tokens in the language, and columns in the order, of the training text?"


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
    schema : how text becomes these features, as the first feed says; None where that is not known.
    pruned : features that were left out when it was saved, because they weigh nothing.
    """

    unit = "tokens"
    training = TaggerTrainConfig
    tells_units = True
    config: CRFConfig | BiLSTMConfig
    tags: tuple[str, ...]
    names: tuple[str, ...]
    pruned: int = 0

    @abstractmethod
    def decoder(self, feed: TaggingFeed) -> Decoder:
        """What reads tags off the weights as they stand, for a feed in the features and tags of this model."""

    def units(self, feed: TaggingFeed) -> int:
        """Tokens."""
        return feed.tokens

    own_best_by = "f1"
    """By which the best epoch is told where the run does not say it."""

    def take_best_by(self, name: str) -> None:
        """What the user gave with the program; the run has an option of this name that goes before it."""
        if name not in ("auto", *self.judged_by):
            raise ConfigError(f"best_by is {brief(name)}; of a tagger it is one of {', '.join(self.judged_by)}.")
        self.own_best_by = "f1" if name == "auto" else name

    @property
    def best_by(self) -> str:
        """F, which is what taggers are compared by."""
        return self.own_best_by

    @property
    def judged_by(self) -> tuple[str, ...]:
        """The same for all taggers."""
        return ("loss", "accuracy", "f1")

    def judge_by(self, name: str, metrics: Metrics, loss: float) -> float:
        """Of plain tags there is no F, but the share of right ones."""
        if "accuracy" not in metrics:
            return super().judge_by("loss", metrics, loss)
        return super().judge_by("accuracy" if name == "f1" and name not in metrics else name, metrics, loss)

    # -- feeds ------------------------------------------------------------------------------------------------------

    def open(self, paths: Any, *, with_tags: bool = True, schema: Mapping[str, Any] | None = None) -> TaggingFeed:
        """Files in the ids of this model; `schema`: that of the feed it was trained on, where it does not know it."""
        known = schema or self.known_schema()
        return open_tagging(paths, schema=known, names=self.names, tags=self.tags, with_tags=with_tags)

    def known_schema(self) -> dict[str, Any]:
        """How text becomes features; ConfigError where nothing says so."""
        if not self.schema:
            raise ConfigError(
                "this model does not say how text becomes its features; open the text with open_tagging(path, "
                "schema=...) of the training feed, and save with save_model(path, program, feed_schema=feed.schema)."
            )
        return self.marked(self.schema)

    def marked(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A schema that says so where features that weigh nothing were left out: many of a text are then not known."""
        return {**schema, "pruned": True} if self.pruned else dict(schema)

    def take_schema(self, feed: TaggingFeed) -> None:
        """Remember how the text of the first feed became features."""
        self.schema = self.schema or feed.schema

    def feed_of(self, data: Any, with_tags: bool = False) -> TaggingFeed:
        """What a user has, in the ids of this model: a feed, a path, or sentences in memory, of which none is empty.

        Sentences are lists of tokens, or of rows of columns (tuples, or dicts by name), as the training text had them;
        for a model of features that Python made, lists of such features, as `tagging_of` takes them.
        """
        if isinstance(data, TaggingFeed):
            return data
        if isinstance(data, (str, os.PathLike)):
            return self.open(data, with_tags=with_tags)
        _check_iterable(data)
        schema = self.known_schema()
        if schema.get("features") == MADE:
            return tagging_of(data, names=self.names, tags=self.tags)
        feed = encode(text_of(data, schema), templates_of(schema), names=self.names, tags=self.tags)
        return check_known(feed, REMEDY, pruned=bool(schema.get("pruned")))

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
        theirs, own = feed.schema.get("templates"), (self.schema or {}).get("templates")
        if theirs and own and theirs != own:
            raise ConfigError(
                "this text has features of other templates than the model's; open it with schema=program.schema, or by "
                "program.open(path)."
            )

    def joined(self, feed: Any, old: Any, reopen: Any = None) -> Any:
        """With the features and tags of an old model, of which rare ones are found by reading once more."""
        theirs, own = feed.schema.get("templates"), (old.schema or {}).get("templates")
        if theirs != own:
            raise ConfigError(
                f"{feed.source}: has features of other templates than the model to start from; leave --features out."
            )
        known = set(feed.names)
        hidden = any(name not in known for name in old.names)
        both = replace(feed.with_names(old.names), tags=tuple(dict.fromkeys((*feed.tags, *old.tags))))
        return reopen(both) if reopen is not None and hidden and feed.schema.get("min_count", 1) > 1 else both

    # -- predicting -------------------------------------------------------------------------------------------------

    def predict(self, data: Any, threads: int = 1, constrain: bool = False) -> list[list[str]]:
        """The best tags of each sentence.

        Parameters
        ----------
        data : a feed, the path of a file, or sentences: lists of tokens, or of rows of columns (see `feed_of`).
        constrain : only such as the scheme of the tags (IOB2, IOBES, BMES) allows.

        Examples
        --------
        >>> program.predict([[("to", "TO"), ("be", "VB")], [("or", "CC")]])                    # doctest: +SKIP
        [['B-VP', 'I-VP'], ['O']]
        """
        if isinstance(data, (TaggingFeed, str, os.PathLike)):
            return self._predict(self.feed_of(data), threads, constrain)
        sentences = self._listed(data)
        full = [sentence for sentence in sentences if not _is_empty(sentence)]
        found = iter(self._predict(self.feed_of(full), threads, constrain) if full else [])
        return [[] if _is_empty(sentence) else next(found) for sentence in sentences]

    def _predict(self, feed: TaggingFeed, threads: int, constrain: bool) -> list[list[str]]:
        codes = self.predict_codes(feed, threads, constrain)
        named = np.array([*self.tags, ""], object)[codes].tolist()
        offsets = feed.samples.offsets.tolist()
        return [named[a:b] for a, b in pairwise(offsets)]

    def _listed(self, data: Any) -> list[Any]:
        """Sentences in memory; words where sentences should be are one sentence by mistake."""
        _check_iterable(data)
        sentences = [each.strip() if isinstance(each, str) else each for each in data]
        words = [each for each in sentences if isinstance(each, str)]
        lines = self.known_schema().get("format") == "segmented" or any(" " in each for each in words)
        if len(words) > 1 and not lines:
            raise InputError(
                f"sentence 0 is the word `{shown(words[0])}`; give a list of sentences, or one sentence to tag()."
            )
        return sentences

    def tag(self, sentence: Any, constrain: bool = False) -> list[str]:
        """The best tags of one sentence: a list of tokens, or of rows of columns (see `feed_of`), or a line of tokens.

        Examples
        --------
        >>> program.tag([("to", "TO"), ("be", "VB")])                                           # doctest: +SKIP
        ['B-VP', 'I-VP']
        """
        return self.predict([sentence], 1, constrain)[0]

    def predict_one(self, sentence: Any) -> list[str]:
        """As `tag`: what every program calls its answer to one sample."""
        return self.tag(sentence)

    def predict_codes(self, data: Any, threads: int = 1, constrain: bool = False) -> Ids:
        """Numbers of the best tags of all tokens."""
        return self.decoder(self.feed_of(data)).best(rules_of(self.tags, constrain), threads)

    def nbest(self, data: Any, count: int, constrain: bool = False) -> list[list[tuple[float, list[str]]]]:
        """For each sentence up to `count` best paths with their probabilities, the best first."""
        found = self.decoder(self.feed_of(data)).several(count, rules_of(self.tags, constrain))
        return [[(chance, [self.tags[k] for k in path]) for chance, path in paths] for paths in found]

    def marginals(self, data: Any, threads: int = 1) -> Floats:
        """(tokens, tags): the probability of each tag at each token."""
        return self.decoder(self.feed_of(data)).marginals(threads)

    def evaluate(self, data: Any, threads: int = 1) -> Metrics:
        """loss (mean of -log p over the sentences whose tags are all known) and the scores of tags and chunks; data: a
        feed, or the path of a file."""
        loss, scores = self.compare(data, threads)
        return {"loss": loss, **scores.metrics()}

    def compare(self, data: Any, threads: int = 1, constrain: bool = False) -> tuple[float, TagScores]:
        """The loss, and how the best tags compare with those of a feed, or of a file."""
        feed = self.feed_of(data, with_tags=True)
        decoder = self.decoder(feed)
        guess = decoder.best(rules_of(self.tags, constrain), threads)
        return decoder.loss(threads), score_feed(feed, guess)

    # -- saving -----------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """Its tags and features, and by what the best epoch is told if that is not F."""
        judged = {} if self.own_best_by == "f1" else {"best_by": self.own_best_by}
        return {"tags": list(self.tags), "names": list(self.names), **judged}

    def check_names(self) -> None:
        """Raise ModelError unless there are tags, and tags and features are texts, each once."""
        words = all(isinstance(word, str) for word in (*self.tags, *self.names))
        once = words and len(set(self.tags)) == len(self.tags) and len(set(self.names)) == len(self.names)
        if not self.tags or not once:
            raise ModelError("the options of the model do not say its tags and features, each once.")


def _check_iterable(data: Any) -> None:
    if isinstance(data, (bytes, Mapping)) or not isinstance(data, Iterable):
        kind = type(data).__name__
        raise InputError(f"data is of type {kind}; give a list of sentences, a path, or a feed of open_tagging.")


def _is_empty(sentence: Any) -> bool:
    return isinstance(sentence, Sized) and not len(sentence)


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
