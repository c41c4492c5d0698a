"""Scores of taggers: tags that the model does not know, and tags that do not fit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hogwild.arrays import Chains
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.schemes import coded
from hogwild.feeds.tagged.text import TaggedText, TextColumn
from hogwild.programs.taggers.scores import UNSEEN, Lexicon, score_codes, score_feed, score_tags, vocabulary_of
from problems.tagged import flat


def feed_of_tags(sentences, tags, text=True, schema=None):
    """A feed as a model with these tags reads it; a token is its tag in lower case."""
    names = tuple(dict.fromkeys(flat(sentences)))
    offsets, column = coded(sentences, {name: k for k, name in enumerate(names)})
    final = np.array([tags.index(name) if name in tags else -1 for name in names], np.int32)[column]
    strange = dict(Counter(tag for tag in flat(sentences) if tag not in tags))
    words = TextColumn("word", column, tuple(name.lower() for name in names))
    return TaggingFeed(
        samples=Chains(offsets, np.zeros(len(column) + 1, np.int64), np.zeros(0, np.int32), final),
        names=(),
        counts=np.zeros(0, np.int64),
        tags=tuple(tags),
        strange=strange,
        schema=schema or {},
        text=TaggedText((words,), TextColumn("tag", column, names), offsets) if text else None,
        source="test.txt",
    )


def test_unseen_tags_are_chunks_that_are_not_found():
    gold = [["B-NP", "I-NP", "B-LST", "I-LST", "O"], ["B-UCP"]]
    guess = [["B-NP", "I-NP", "O", "O", "O"], ["B-NP"]]
    model = ["O", "B-NP", "I-NP"]
    codes = np.array([model.index(tag) for tag in flat(guess)], np.int32)
    scores = score_feed(feed_of_tags(gold, model), codes)
    assert scores.unseen == {"B-LST": 1, "I-LST": 1, "B-UCP": 1}
    assert (scores.total.support, scores.total.found, scores.total.right) == (3, 2, 1)
    assert (scores.right, scores.tokens) == (3, 6)
    assert scores == replace(score_tags(gold, guess), unseen=scores.unseen)
    assert scores.to_json()["unseen"] == scores.unseen


def test_unseen_tags_without_names_are_wrong_one_by_one():
    gold = [["B-NP", "B-LST", "I-LST"]]
    model = ["O", "B-NP"]
    feed = feed_of_tags(gold, model, text=False)
    scores = score_feed(feed, np.array([1, 0, 0]))
    assert scores.unseen == {"B-LST": 1, "I-LST": 1}
    assert [(score.name, score.support, score.found) for score in scores.types] == [(UNSEEN, 2, 0), ("NP", 1, 1)]
    plain = score_codes(feed.samples.offsets, feed.samples.tags, np.array([1, 0, 0]), ["NOUN", "VERB"])
    assert [(score.name, score.support, score.right) for score in plain.types] == [
        (UNSEEN, 2, 0),
        ("VERB", 1, 1),
        ("NOUN", 0, 0),
    ]


def test_what_is_looked_for_goes_by_the_model():
    """A test set with many strange tags does not turn chunks into plain tags."""
    gold = [["B-NP", "NN", "VB", "JJ", "RB"]]
    assert score_feed(feed_of_tags(gold, ["O", "B-NP"]), np.array([1, 0, 0, 0, 0])).kind == "chunks"
    assert score_tags(gold, gold).kind == "tags"
    segmented = feed_of_tags([["S", "S"]], ["S"], schema={"format": "segmented"})
    assert score_feed(segmented, np.array([0, 0])).kind == "words"
    assert score_feed(feed_of_tags([["S", "S"]], ["S"]), np.array([0, 0])).kind == "tags"


def test_vocabularies_of_feeds():
    words = feed_of_tags([["B", "M", "E", "S"], ["S", "B", "E"]], ["B", "M", "E", "S"])
    assert vocabulary_of(words) == {"bme", "s", "be"}
    assert score_feed(words, np.array([0, 1, 2, 3, 3, 3, 3]), {"s"}).metrics()["oov_recall"] == 0.5
    assert vocabulary_of(feed_of_tags([["NOUN", "VERB"], ["NOUN"]], ["NOUN", "VERB"])) == {"noun", "verb"}
    with pytest.raises(InputError, match=r"test\.txt: holds no words, only features"):
        vocabulary_of(feed_of_tags([["NOUN"]], ["NOUN"], text=False))


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "guess", "message"),
    [
        ([["O"]], [], "there are 1 sentences but predictions for 0"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "sentence 2 has 2 tags, but 1 predicted"),
        ([["O", "O"], ["O"]], [["O"], ["O", "O"]], "sentence 1 has 2 tags, but 1 predicted"),
        (["O"], ["O"], "give a list of tags a sentence"),
    ],
)
def test_sentences_that_do_not_fit(gold, guess, message):
    with pytest.raises(InputError, match=message):
        score_tags(gold, guess)


@pytest.mark.parametrize(
    ("offsets", "gold", "guess", "tags", "message"),
    [
        ([0, 2], [0, 0], [0], ["O"], "2 tags, but 1 predicted"),
        ([0, 1], [0, 0], [0, 0], ["O"], "offsets of sentences"),
        ([1, 2], [0, 0], [0, 0], ["O"], "offsets of sentences"),
        ([0, 2, 1, 2], [0, 0], [0, 0], ["O"], "offsets of sentences"),
        ([0, 2], [0, 0], [0, -1], ["O"], "a predicted tag has a number outside 0 … 0"),
        ([0, 2], [0, 1], [0, 0], ["O"], "a true tag has a number outside -1 … 0"),
        ([0, 2], [0, -2], [0, 0], ["O"], "a true tag has a number outside -1 … 0"),
        ([0, 2], [0, 1], [0, 0], ["O", "O"], "a tag stands twice"),
    ],
)
def test_codes_that_do_not_fit(offsets, gold, guess, tags, message):
    with pytest.raises(InputError, match=message):
        score_codes(np.array(offsets), np.array(gold), np.array(guess), tags)


def test_other_things_that_do_not_fit():
    with pytest.raises(ConfigError, match="kind is `pos`; it must be one of auto, chunks, words, tags"):
        score_tags([["O"]], [["O"]], kind="pos")
    with pytest.raises(InputError, match="the lexicon has 2 tokens, the text 1"):
        score_tags([["O"]], [["O"]], lexicon=Lexicon(["a", "b"], []))
    feed = feed_of_tags([["O"]], ["O"])
    untagged = TaggedText(feed.text.columns, None, feed.text.offsets)
    blind = TaggingFeed(feed.samples, feed.names, feed.counts, feed.tags, text=untagged, source="test.txt")
    with pytest.raises(InputError, match=r"test\.txt: has no tags to compare with"):
        score_feed(blind, np.array([0]))
