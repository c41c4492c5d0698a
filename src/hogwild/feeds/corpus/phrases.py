"""Pairs of words that occur together more often than by chance become one word, as `new_york`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Ids, Offsets
from hogwild.config import CorpusConfig
from hogwild.feeds.corpus.encode import Stretch
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.workspace import writing
from hogwild.feeds.storage.arrayfiles import map_file, write_whole
from hogwild.feeds.storage.words import Words
from hogwild.kernels.ids.pairs import PairTable, best_pairs, count_pairs, join_pairs, make_pairs, move_pairs, next_break
from hogwild.kernels.ids.words import count_words
from hogwild.messages import counted

PAIRS_A_WORD = 4        # different pairs that are held, for each word that may be held
JOINT = b"_"
_FIRST = 1 << 12
_PART = 1 << 19         # words that are joined at a time


Keys = npt.NDArray[np.uint64]


class Joined(NamedTuple):
    """Text with phrases. joins: at how many places words were joined; notes: what was found."""

    stretches: list[Stretch]
    joins: int
    notes: tuple[str, ...]


class Wanted(NamedTuple):
    """Words whose pairs are joined whatever their score; only: no other pairs are."""

    words: Words
    only: bool


def join_phrases(
    ids: Iterable[Ids], words: Words, config: CorpusConfig, directory: Path, threads: int, wanted: Wanted | None = None
) -> Joined:
    """Join phrases in `config.phrases` passes; the words of `words` get new counts, and phrases are added to them."""
    text = PhraseText(ids, directory)
    joins, notes, most = 0, [], most_pairs(config)
    for turn in range(1, config.phrases + 1):
        pairs, lost = text.pairs(threads, most)
        keys = chosen_pairs(pairs, words, config, wanted)
        places = text.join(keys, words.encode_strings(phrases_of(keys, words)))
        joins += places
        text.recount(words)
        notes += notes_of_pass(turn, len(keys), places, lost, most)
        if not places:
            break
    return Joined(text.stretches(), joins, tuple(notes))


class PhraseText:
    """A text on disk in the ids of a table of words, whose pairs are counted and joined."""

    def __init__(self, ids: Iterable[Ids], directory: Path) -> None:
        self._directory, self._turn = directory, 0
        self._size = _write_all(self._path, ids)

    @property
    def _path(self) -> Path:
        return self._directory / f"phrases-{self._turn}"

    def pairs(self, threads: int, most: int) -> tuple[PairTable, int]:
        """All pairs of neighbours; see `count_all`."""
        return count_all(_mapped(self._path, self._size), threads, most)

    def join(self, keys: Keys, ids: Ids) -> int:
        """Join these pairs to phrases with these ids; returns at how many places."""
        before, text, size = self._path, _mapped(self._path, self._size), self._size
        self._turn += 1
        self._size = _write_all(self._path, _join(text, _numbered(keys, ids)))
        del text
        before.unlink()
        return size - self._size

    def recount(self, words: Words) -> None:
        """How often it has each word."""
        words.counts[:] = 0
        count_words(_mapped(self._path, self._size), words.counts)

    def stretches(self) -> list[Stretch]:
        """Where its ids are."""
        parts = range(0, self._size, _PART)
        return [Stretch(self._path, 0, start, min(_PART, self._size - start)) for start in parts]


def most_pairs(config: CorpusConfig) -> int:
    """Different pairs that are held."""
    return PAIRS_A_WORD << (config.max_vocabulary.bit_length() - 1)


def chosen_pairs(pairs: PairTable, words: Words, config: CorpusConfig, wanted: Wanted | None) -> Keys:
    """The pairs that are joined."""
    keys = _scored(pairs, words, config) if wanted is None or not wanted.only else np.empty(0, np.uint64)
    if wanted is not None and len(wanted.words):
        keys = np.union1d(keys, _given(pairs, words, wanted.words))
    return keys


def notes_of_pass(turn: int, phrases: int, places: int, lost: int, most: int) -> list[str]:
    """What to tell of a pass."""
    notes = [f"Pass {turn}: {counted(phrases, 'phrase')} joined at {counted(places, 'place')}."]
    if lost:
        notes.append(f"Pass {turn}: more than {most:,} different pairs, so that rare ones were dropped while they"
                     f" were counted: counts of pairs may be low by {lost:,}, which gives fewer phrases.")
    return notes


class PartPairs(NamedTuple):
    """The pairs of a part of a text with their counts, and how much a count can be too low."""

    keys: Keys
    numbers: Offsets
    lost: int


def pairs_of(parts: Sequence[PartPairs]) -> tuple[PairTable, int]:
    """Those of all parts."""
    keys, places = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
    numbers = np.zeros(len(keys), np.int64)
    np.add.at(numbers, places, np.concatenate([part.numbers for part in parts]))
    return PairTable(keys, numbers, np.array([len(keys)])), sum(part.lost for part in parts)


def count_all(text: Ids, threads: int, most: int) -> tuple[PairTable, int]:
    """All pairs of neighbours with their counts, and how much a count can be too low; of more than `most` the rarest
    are dropped."""
    whole, lost = _count(text, threads, 1 << (max(2, most // threads).bit_length() - 1))
    # One table in the order of the text: what it drops does not depend on the number of threads.
    return _count(text, 1, most) if lost and threads > 1 else (whole, lost)


def _count(text: Ids, threads: int, most: int) -> tuple[PairTable, int]:
    edges = np.linspace(0, len(text), threads + 1).astype(np.int64).tolist()

    def work(k: int) -> tuple[PairTable, int]:
        table, at, lost = make_pairs(min(_FIRST, most)), edges[k], 0
        while at < edges[k + 1]:
            at = count_pairs(text, at, edges[k + 1], table)
            if at < edges[k + 1]:
                table, dropped = _more_room(table, most)
                lost += dropped
        return table, lost

    with ThreadPoolExecutor(threads) as pool:
        (whole, lost), *others = pool.map(work, range(threads))
    for table, dropped in others:
        lost += dropped
        at = 0
        while (at := move_pairs(table, at, 0, whole)) < len(table.keys):
            whole, _ = _more_room(whole, len(table.keys) * threads)
    return whole, lost


def _more_room(table: PairTable, most: int) -> tuple[PairTable, int]:
    """A larger table, or one of the same size without the rarer half; and the largest count that was dropped."""
    room, rarest = len(table.keys) // 2, 0
    if room < most:
        room *= 2
    else:
        numbers = table.numbers[table.keys != 0]
        rarest = int(np.partition(numbers, len(numbers) // 2)[len(numbers) // 2])
    larger = make_pairs(room)
    move_pairs(table, 0, rarest + 1, larger)
    return larger, rarest


def _scored(pairs: PairTable, words: Words, config: CorpusConfig) -> Keys:
    """The pairs with a score above the threshold."""
    # N of the score: different words and pairs together, which makes it larger for larger texts.
    size = int(np.count_nonzero(words.counts)) + int(pairs.state[0])
    rule = np.array([config.phrase_min_count, size, config.phrase_threshold], np.float64)
    found = np.empty(int(pairs.state[0]), np.int64)
    return np.asarray(pairs.keys[found[: best_pairs(pairs, words.counts, rule, found)]])


def _given(pairs: PairTable, words: Words, given: Words) -> Keys:
    """The pairs that are a word of `given`."""
    keys = pairs.keys[pairs.keys != 0]
    return np.asarray(keys[given.closed().encode_strings(phrases_of(keys, words)) >= 0])


def phrases_of(keys: Keys, words: Words) -> Iterator[bytes]:
    """The words that pairs become."""
    first, second = (keys >> np.uint64(32)).astype(np.int64) - 1, (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        yield words.word(a) + JOINT + words.word(b)


def _numbered(keys: Keys, ids: Ids) -> PairTable:
    listed = PairTable(keys, ids.astype(np.int64), np.zeros(1, np.int64))
    table = make_pairs(1 << max(4, len(keys).bit_length()))
    move_pairs(listed, 0, 0, table)
    return table


def _join(text: Ids, phrases: PairTable) -> Iterator[Ids]:
    """The text with phrases, in parts that no phrase spans."""
    edges = [int(next_break(text, start, phrases)) for start in range(0, len(text), _PART)] + [len(text)]

    def work(k: int) -> Ids:
        joined = np.empty(max(0, edges[k + 1] - edges[k]), np.int32)
        return joined[: join_pairs(text, edges[k], edges[k + 1], phrases, joined)]

    for _, joined in in_order(work, range(len(edges) - 1)):
        yield joined


def _write_all(path: Path, parts: Iterable[Ids]) -> int:
    size = 0
    with writing(path), open(path, "wb", buffering=0) as file:
        for part in parts:
            write_whole(file, part)
            size += len(part)
    return size


def _mapped(path: Path, size: int) -> Ids:
    return map_file(path, "int32", size)
