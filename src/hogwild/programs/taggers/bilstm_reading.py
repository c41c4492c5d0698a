"""Text as a Bi-LSTM reads it: a row of a table for what a template gives at a token, letters, sentences by length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hogwild.arrays import Ids, Offsets
from hogwild.errors import InputError, ModelError
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.feeds.tagged.templates import parse_templates
from hogwild.feeds.tagged.text import TextColumn
from hogwild.kernels.nn.letters import KNOWN, LONGEST, STRANGE
from hogwild.kernels.nn.lstm_batch import Sentences

_BLOCK = 8  # batches of similar length, among whose sentences those of a visit are drawn
_TOKENS = 1 << 13  # of a visit to several sentences, at the most
_WORDS = "w"


class Visits(NamedTuple):
    """Sentences by length, and for each visit its first place among them, how many it has, and the first place and size
    of the block that its sentences are drawn from: see `Sentences`."""

    order: Ids
    first: Offsets
    count: Offsets  # type: ignore[assignment]  # not the method of tuples
    block: Offsets
    block_size: Offsets

    def largest(self, offsets: Offsets) -> tuple[int, int, int]:
        """Tokens, sentences and tokens of the longest sentence that a visit has at the most, however it is drawn."""
        lengths = np.diff(offsets)
        top = lengths[self.order[self.block + self.block_size - 1]]  # of each block, which is sorted by length
        return int((top * self.count).max(initial=1)), int(self.count.max(initial=1)), int(top.max(initial=1))


def visits_of(offsets: Offsets, batch: int) -> Visits:
    """Visits to so many sentences each, fewer where they are very long."""
    lengths = np.diff(offsets)
    if batch == 1:
        each = np.arange(len(lengths))
        return Visits(each.astype(np.int32), each, np.ones_like(each), each, np.ones_like(each))
    order = np.argsort(lengths, kind="stable").astype(np.int32)
    visits = []
    for place in range(0, len(order), _BLOCK * batch):
        block = min(len(order) - place, _BLOCK * batch)
        longest = int(lengths[order[place + block - 1]])
        size = max(1, min(batch, _TOKENS // longest))
        visits += [(place + k, min(size, block - k), place, block) for k in range(0, block, size)]
    return Visits(order, *np.array(visits, np.int64).reshape(-1, 4).T.copy())


def grouped(largest: tuple[int, int, int], together: int) -> tuple[int, int, int]:
    """What `largest` is of so many visits at once, fewer where sentences are very long."""
    tokens, sentences, times = largest
    return max(tokens, min(together * tokens, _TOKENS)), together * sentences, times


class Reader:
    """Turns features, of which each template has one a token at the most, into rows of two tables.

    The first table has the words: what the first template gives; the second all else. Each begins with a row for what
    is not known of each of its templates. Rows are numbered over both.

    slots: the templates, that of the words first; alphabet: letters that are known, None where nobody looks into words.
    """

    def __init__(self, names: Sequence[str], slots: Sequence[str], alphabet: str | None) -> None:
        self.names, self.slots, self.alphabet = names, slots, alphabet

    @cached_property
    def slot_of(self) -> Ids:
        """The slot of each feature."""
        places = {slot: place for place, slot in enumerate(self.slots)}
        found = [places.get(name.partition("=")[0], -1) for name in self.names]
        if -1 in found:
            raise ModelError(f"the feature {self.names[found.index(-1)]!r} is of none of the model's templates.")
        return np.array(found, np.int32).reshape(-1)

    @property
    def words(self) -> int:
        """Rows of the first table."""
        return int((self.slot_of == 0).sum()) + 1

    @property
    def features(self) -> int:
        """Rows of the second table."""
        return len(self.names) + len(self.slots) - self.words

    @cached_property
    def row_of(self) -> Ids:
        """The row of each feature."""
        words, rows = self.slot_of == 0, np.empty(len(self.names), np.int32)
        rows[words] = 1 + np.arange(self.words - 1)
        rows[~words] = self.words + len(self.slots) - 1 + np.arange(self.features - len(self.slots) + 1)
        return rows

    @cached_property
    def unknown(self) -> Ids:
        """The row for what is not known, of each slot."""
        return np.append(0, self.words + np.arange(len(self.slots) - 1)).astype(np.int32)

    def word_names(self) -> list[str]:
        """The words of the first table, from its second row on."""
        return [self.names[k].partition("=")[2] for k in np.flatnonzero(self.slot_of == 0).tolist()]

    def rows(self, ids: Ids, starts: Offsets) -> Ids:
        """The rows of tokens, (tokens, slots); token t has the features ids[starts[t]:starts[t + 1]]."""
        tokens = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        found = np.tile(self.unknown, (len(starts) - 1, 1))
        found[tokens, self.slot_of[ids]] = self.row_of[ids]
        return found

    def sentences(self, feed: TaggingFeed, batch: int) -> Sentences:
        """A feed as compiled code reads it."""
        chains = feed.samples
        rare = np.zeros(self.words + self.features, np.uint8)
        rare[self.row_of[feed.counts == 1]] = 1
        numbers = np.arange(feed.longest + 1)
        column = self.word_column(feed) if self.alphabet is not None else TextColumn("", np.zeros(0, np.int32), ())
        return Sentences(
            np.asarray(chains.offsets), np.asarray(chains.tags), self.rows(chains.ids, chains.starts).reshape(-1),
            *visits_of(chains.offsets, batch), rare, self.unknown, np.asarray(column.codes),
            *self.spelled(column.values), numbers, numbers.astype(np.int32),
        )  # fmt: skip

    def one(self, ids: Ids, starts: Offsets, words: Sequence[str]) -> Sentences:
        """One sentence; words: its tokens, where letters are looked at."""
        tokens = len(starts) - 1
        zero, one, numbers = np.zeros(1, np.int64), np.ones(1, np.int64), np.arange(tokens + 1)
        places = numbers.astype(np.int32)
        return Sentences(
            np.array([0, tokens]), np.full(tokens, -1, np.int32), self.rows(ids, starts).reshape(-1), places[:1], zero,
            one, zero, one, np.zeros(self.words + self.features, np.uint8), self.unknown, places[:tokens],
            *self.spelled(words), numbers, places,
        )  # fmt: skip

    def spelled(self, words: Sequence[str]) -> tuple[Offsets, Ids]:
        """The letters of words as numbers: where those of each begin, and all of them; of a long one its ends."""
        if self.alphabet is None:
            return np.zeros(1, np.int64), np.zeros(0, np.int32)
        numbers = {letter: place for place, letter in enumerate(self.alphabet, KNOWN)}
        half = LONGEST // 2
        short = [word if len(word) <= LONGEST else word[:half] + word[-half:] for word in words]
        starts = np.cumsum([0, *(max(1, len(word)) for word in short)], dtype=np.int64)
        letters = [numbers.get(letter, STRANGE) for word in short for letter in word or "\0"]
        return starts, np.array(letters, np.int32).reshape(-1)

    @property
    def word_column_name(self) -> str:
        """The column that the words are in."""
        return column_of(self.slots[0])

    def word_column(self, feed: TaggingFeed) -> TextColumn:
        """The words of a feed."""
        for column in feed.text.columns if feed.text else ():
            if column.name == self.word_column_name:
                return column
        raise InputError(f"{feed.source}: the letters of its words are not known; open it with open_tagging.")


def alphabet_of(words: Sequence[str]) -> str:
    """All letters of words, each once."""
    return "".join(sorted({letter for word in words for letter in word}))


def column_of(template: str) -> str:
    """The column that a template looks at.

    >>> column_of("lower(w)[0]")
    'w'
    """
    atoms = parse_templates([template], "templates").items[0].atoms
    return atoms[0].column if atoms else ""


def slots_of(feed: TaggingFeed) -> tuple[str, ...]:
    """The templates of a feed, the first that looks at the word itself before all others."""
    lines = feed.schema.get("templates")
    if not lines:
        raise InputError(f"{feed.source}: a Bi-LSTM needs text with templates; open it with open_tagging.")
    words = [line for line in lines if line.endswith("[0]") and "|" not in line and column_of(line) == _WORDS]
    first = words[0] if words else lines[0]
    return (first, *(line for line in lines if line != first))


def with_words(feed: TaggingFeed, words: Iterable[str]) -> TaggingFeed:
    """The feed for a model that knows these words too, whether they are in the text or not."""
    slot = slots_of(feed)[0]
    return feed.with_names([f"{slot}={word}" for word in words])
