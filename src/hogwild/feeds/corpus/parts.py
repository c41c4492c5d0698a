"""A text that several nodes read, each a part of it: cut, counted apart, and encoded with one vocabulary.

A part ends where a word does, and with a sentence where that can be had: then the ids of all parts one after another
are those that `open_corpus` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Offsets
from hogwild.config import CorpusConfig
from hogwild.errors import InputError
from hogwild.feeds.corpus.encode import Odd, Stretch, TextPass, read_texts, settled
from hogwild.feeds.corpus.open import (
    checked,
    count_texts,
    known,
    merge,
    most_words,
    pass_notes,
    places_in,
    rank,
    schema_of,
    through,
    usual_threads,
)
from hogwild.feeds.corpus.phrases import (
    PartPairs,
    PhraseText,
    Wanted,
    chosen_pairs,
    most_pairs,
    notes_of_pass,
    pairs_of,
    phrases_of,
)
from hogwild.feeds.io.parts import Cut, TextPart, check_rereadable, cut_files, source_of
from hogwild.feeds.io.source import Bytes, Paths, open_sources
from hogwild.feeds.storage.arrayfiles import title_of
from hogwild.feeds.storage.words import Words


def cut_texts(paths: Paths, parts: int, config: CorpusConfig | None = None) -> Cut:
    """Divide texts into parts of nearly equal size, each word in one of them.

    Parameters
    ----------
    paths
        As for `open_corpus`, but for streams. Plain files are cut; compressed ones, and what goes through a command,
        are read by one node each.
    parts
        How many; none is empty.
    config
        How the text is read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     Path(file.name).write_text("to be\\nor not to be\\n" * 10)
    ...     cut = cut_texts(file.name, 2)
    190
    >>> [(part.first, part.last) for (part,) in cut.parts]
    [(0, 95), (95, 190)]
    """
    config = config or CorpusConfig()
    check_rereadable(paths)
    sources = open_sources(paths, config)
    return cut_files(sources, title_of([source.name for source in sources], "the text"), parts)


# -- counting, and the vocabulary of all ------------------------------------------------------------------------------

class PartCounts(NamedTuple):
    """The different words of a part, for the way over the network: their bytes one after another, and the length and
    the count of each. total: words of the part; odd: what is told of it."""

    letters: Bytes
    lengths: Ids
    counts: Offsets
    total: int
    odd: Odd


class JoinedWords(NamedTuple):
    """Words one after another, and the length of each."""

    letters: Bytes
    lengths: Ids

    @classmethod
    def of(cls, words: Words, first: int = 0) -> JoinedWords:
        """All of a table, from one on."""
        letters, lengths = words.joined(np.arange(first, len(words)))
        return cls(letters, lengths.astype(np.int32))


class ChosenPairs(NamedTuple):
    """Pairs that are joined, and the words that they become; those that are new have the next ids, in this order."""

    keys: npt.NDArray[np.uint64]
    phrases: JoinedWords


class SettledPart:
    """The final ids of a part, which are read from disk again each time that they are iterated over, in blocks.

    counts: how often the part has each word of the vocabulary.
    """

    def __init__(self, stretches: Sequence[Stretch], maps: Sequence[Ids], threads: int, counts: Offsets) -> None:
        self._stretches, self._maps, self._threads, self.counts = stretches, maps, threads, counts

    def __iter__(self) -> Iterator[Ids]:
        return settled(self._stretches, self._maps, self._threads)

    @cached_property
    def size(self) -> int:
        """Ids of all blocks, from a pass over them: how many sentences have a word that stays cannot be known else."""
        return sum(map(len, self))


class CountedPart:
    """A part whose words are counted, and which lies on disk in ids of its own.

    counts: what the common vocabulary is made of.
    """

    def __init__(self, found: TextPass, config: CorpusConfig, threads: int) -> None:
        self._words, self._maps = merge(found.tables, config.lowercase)
        self._stretches, self._threads = found.in_order(), threads
        kept = np.flatnonzero(self._words.counts)
        letters, lengths = self._words.joined(kept)
        self.counts = PartCounts(letters, lengths.astype(np.int32), self._words.counts[kept], found.seen, found.odd)

    # -- with phrases: all parts take over the words of all, and then join the same pairs ----------------------------

    def share_words(self, shared: JoinedWords, directory: Path) -> None:
        """From now on the part is in the ids of these words."""
        whole = Words()
        whole.encode_joined(shared.letters.tobytes(), np.array(shared.lengths))
        final = places_in(whole, self._words)
        ids = settled(self._stretches, [through(each, final) for each in self._maps], self._threads)
        self._text, self._words = PhraseText(ids, directory), whole

    def count_pairs(self, config: CorpusConfig) -> PartPairs:
        """All pairs of neighbours."""
        found, lost = self._text.pairs(self._threads, most_pairs(config))
        there = found.keys != 0
        return PartPairs(found.keys[there], found.numbers[there], lost)

    def join_pairs(self, chosen: ChosenPairs) -> tuple[Offsets, int]:
        """Join pairs; returns how often there is each word then, and at how many places words were joined."""
        ids = self._words.encode_joined(chosen.phrases.letters.tobytes(), np.array(chosen.phrases.lengths))
        joins = self._text.join(np.array(chosen.keys), ids)
        self._text.recount(self._words)
        self._stretches, self._maps = self._text.stretches(), [np.arange(len(self._words), dtype=np.int32)]
        self.counts = self.counts._replace(total=self.counts.total - joins)
        return self._words.counts.copy(), joins

    def settle(self, words: Sequence[str]) -> SettledPart:
        """The part in the ids of a vocabulary; other words are left out."""
        final = places_in(known(words), self._words)
        counts, known_here = np.zeros(len(words), np.int64), final >= 0
        np.add.at(counts, final[known_here], self._words.counts[known_here])
        return SettledPart(self._stretches, [through(ids, final) for ids in self._maps], self._threads, counts)


def count_part(parts: Sequence[TextPart], config: CorpusConfig, directory: Path, threads: int = 0) -> CountedPart:
    """Read a part, once. What `settle` needs of it goes into the directory, which must stay until that is done.

    Parameters
    ----------
    parts
        One of the parts that `cut_texts` gives.
    config
        How the text is read.
    directory
        An empty one, which the caller removes.
    threads
        As for `open_corpus`; no result depends on it.
    """
    sources = [source_of(part, config) for part in parts]
    threads = threads or usual_threads()

    def read(tables: list[Words], scratch: Path) -> TextPass:
        return read_texts(sources, config, tables, scratch)

    found = count_texts(read, config, threads, directory)
    for source in sources:
        source.check_unchanged()
    if found.lost:
        most = most_words(config)
        raise InputError(f"{parts[0].name}: the text of one node has more than {most:,} different words, which is all"
                         f" that are held; raise --max-vocabulary to {2 * most} or more, or use more nodes.")
    return CountedPart(found, config, threads)


class WholeText(NamedTuple):
    """What is known of all parts together; each field as that of a Corpus."""

    words: tuple[str, ...]
    counts: Offsets
    total: int
    schema: dict[str, Any]
    notes: tuple[str, ...]


def merged_words(counts: Sequence[PartCounts], title: str) -> Words:
    """The words of all parts in one table."""
    whole = Words()
    for part in counts:
        # Copies: arrays from the network are read-only, for which code would be compiled once more.
        whole.take_joined(part.letters, np.array(part.lengths, np.int32), np.array(part.counts, np.int64))
    if not sum(part.total for part in counts):
        raise InputError(f"{title}: no words; is the file empty?")
    return whole


def ranked_text(
    whole: Words, counts: Sequence[PartCounts], config: CorpusConfig, title: str, keep: Sequence[str] = (),
    phrasing: Phrasing | None = None,
) -> WholeText:  # fmt: skip
    """The vocabulary of all parts, ranked and cut as that of a text that was read as a whole.

    Parameters
    ----------
    whole
        The words and phrases of all parts.
    counts
        Those of all parts, in any order.
    config
        How the text was read.
    title
        What messages call the text.
    keep
        As for `open_corpus`.

    Examples
    --------
    >>> def part(words, counts):
    ...     lengths = np.array([len(word) for word in words], np.int32)
    ...     letters = np.frombuffer("".join(words).encode(), np.uint8)
    ...     return PartCounts(letters, lengths, np.array(counts), sum(counts), Odd())
    >>> counts = [part(["to", "be"], [1, 3]), part(["or", "to"], [1, 2])]
    >>> text = ranked_text(merged_words(counts, "it"), counts, CorpusConfig(min_count=2), "it")
    >>> text.words, text.counts.tolist(), text.total
    (('be', 'to'), [3, 3], 7)
    """
    chosen = rank(whole, config, title, (checked(keep) or []) if len(keep) else [])
    odd = Odd(*(sum(numbers) for numbers in zip(*(part.odd for part in counts), strict=True)))
    joins, told = (phrasing.joins, phrasing.notes) if phrasing else (0, [])
    total = sum(part.total for part in counts) - joins
    notes = (*pass_notes(odd, config), *told, *chosen.notes)
    return WholeText(chosen.words, chosen.counts, total, schema_of(config), notes)


class Phrasing:
    """Phrases of a text in parts, chosen by the counts of all. words: those of all parts, to which they are added."""

    def __init__(self, words: Words, config: CorpusConfig, keep: Sequence[str]) -> None:
        self.words, self._config = words, config
        self._wanted = Wanted(known((checked(keep) or []) if len(keep) else []), only=False)
        self.shared = JoinedWords.of(words)
        self.passes: list[ChosenPairs] = []
        self.joins, self.notes = 0, list[str]()

    def choose(self, found: Sequence[PartPairs]) -> ChosenPairs:
        """The pairs of the next pass."""
        pairs, self._lost = pairs_of(found)
        keys = chosen_pairs(pairs, self.words, self._config, self._wanted)
        phrases = [*phrases_of(keys, self.words)]
        self.words.encode_strings(phrases)
        lengths = np.fromiter(map(len, phrases), np.int32, len(phrases))
        self.passes.append(ChosenPairs(keys, JoinedWords(np.frombuffer(b"".join(phrases), np.uint8), lengths)))
        return self.passes[-1]

    def joined(self, found: Sequence[tuple[Offsets, int]]) -> bool:
        """What became of it, in each part; whether there is another pass."""
        self.words.counts[:] = sum(counts for counts, _ in found)
        places = sum(joins for _, joins in found)
        self.joins += places
        turn, most = len(self.passes), most_pairs(self._config)
        self.notes += notes_of_pass(turn, len(self.passes[-1].keys), places, self._lost, most)
        return bool(places) and turn < self._config.phrases
