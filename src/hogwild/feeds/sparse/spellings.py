"""Names of hashed features, kept while data is read: those that are met most often in a part of it.

A hash does not tell what was hashed; a model that is to be looked into has to keep names. Of text n-grams and of
categories the most frequent ones are kept, as met in the first half megabyte, and of each further block in as much
divided by its number: data in any order is looked at from end to end, and the time goes with the logarithm of its
length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Offsets
from hogwild.feeds.io.source import Bytes
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.ids.spelling import (
    ENTRIES,
    LETTERS,
    Spelt,
    hash_grams,
    hash_parts,
    make_spelt,
    move_entries,
    spell_texts,
)
from hogwild.kernels.ids.tokens import Recipe

_SAMPLED, _ROWS = 1 << 19, 1 << 14  # bytes of text, and rows of categories, all of which are looked at
MOST = 100_000  # names that a model keeps
LONGEST = 100  # bytes of a name
_PLACES = 1 << 20  # of the table of n-grams
_FEW = 1 << 12  # the same for a few texts
_CATEGORIES = 1 << 19  # different categories that are counted


class Spellings:
    """Counts what is hashed, block by block in the order of the files.

    Examples
    --------
    >>> from hogwild.feeds.sparse.hashing import Hashing
    >>> spellings, text = Spellings(), b"not good, not bad"
    >>> recipe = Hashing(bits=18, seed=0, ngrams=2, lowercase=True, normalize=False).recipe()
    >>> spellings.add_texts(recipe, np.frombuffer(text, np.uint8), np.array([[0, len(text)]]))
    >>> spellings.add_categories({"town=Rome": 3})
    >>> spellings.names()[:3], len(spellings.names())
    (['town=Rome', 'not', 'not good'], 7)
    """

    def __init__(self) -> None:
        self._blocks = self._bytes = self._rows = 0  # that were looked at
        self._grams: Spelt | None = None
        self._categories: dict[str, int] = {}

    def next_block(self, rows: int) -> int:
        """What is added from now on is of another block; of so many rows, how many to look at: the first ones."""
        self._blocks += 1
        share = min(rows, max(_ROWS - self._rows, -(-rows // self._blocks)))
        self._rows += share
        return share

    def add_texts(self, recipe: Recipe, data: Bytes, bounds: Offsets) -> None:
        """Count the n-grams of texts data[bounds[k, 0]:bounds[k, 1]]."""
        ends = np.cumsum(bounds[:, 1] - bounds[:, 0])
        room = max(_SAMPLED - self._bytes, _SAMPLED // max(1, self._blocks))
        chosen = bounds[: int(np.searchsorted(ends, room, "right")) + 1]
        if not len(chosen):
            return
        size = int(ends[len(chosen) - 1])
        self._bytes += size
        self._make_room(2 * size + len(chosen), recipe)
        last_words = np.zeros((recipe.ngrams, 2), np.uint64)
        with np.errstate(over="ignore"):  # hashes wrap around; only the interpreter, with the compiler off, says so
            ready(spell_texts, size * recipe.ngrams)(data, chosen, recipe, self._grams, last_words)

    def _make_room(self, letters: int, recipe: Recipe) -> None:
        """For so many letters more, and in the table; what was met once gives way first."""
        places = _PLACES if letters * recipe.ngrams > _FEW else 2 * _FEW
        grams = self._grams or make_spelt(places, letters)
        taken = int(grams.used[LETTERS])
        if taken + letters > len(grams.letters):
            more = np.zeros(2 * (taken + letters), np.uint8)
            more[:taken] = grams.letters[:taken]
            grams = grams._replace(letters=more)
        full = 2 * int(grams.used[ENTRIES]) > len(grams.hashes)
        if full or len(grams.hashes) < places:
            order = _most_frequent(grams.counts, places // 4 if full else places)
            kept = make_spelt(places, 0)._replace(letters=grams.letters)
            kept.used[LETTERS] = taken
            ready(move_entries, len(order))(grams, order, kept)
            grams = kept
        self._grams = grams

    def add_categories(self, counts: Mapping[str, int]) -> None:
        """Count entries `column=value`, as a vocabulary has them."""
        known = self._categories
        for entry, count in counts.items():
            if entry in known or len(known) < _CATEGORIES:
                known[entry] = known.get(entry, 0) + count

    def names(self, most: int = MOST) -> list[str]:
        """The most frequent, the most frequent first; of equal ones categories by name, then n-grams as they came."""
        found = [(name, count) for name, count in sorted(self._categories.items()) if len(name.encode()) <= LONGEST]
        if self._grams is not None:
            grams, letters = self._grams, self._grams.letters[: self._grams.used[LETTERS]].tobytes()
            short = grams.spans[:, 1] - grams.spans[:, 0] <= LONGEST
            places = _most_frequent(np.where(short, grams.counts, 0), most, grams.spans[:, 0])
            spans = zip(grams.spans[places, 0].tolist(), grams.spans[places, 1].tolist(), strict=True)
            spelt = [letters[first:last].decode("utf-8", "replace") for first, last in spans]
            found += zip(spelt, grams.counts[places].tolist(), strict=True)
        return [name for name, _ in sorted(found, key=lambda each: -each[1])[:most]]

    def schema(self) -> dict[str, Any]:
        """What a schema says of them; nothing where nothing is hashed."""
        names = self.names()
        return {"names": names} if names else {}


def _most_frequent(counts: Offsets, most: int, order: Offsets | None = None) -> npt.NDArray[np.int64]:
    """Places of the largest counts, the largest first; of equal ones those that are less in `order`, if any."""
    there = np.flatnonzero(counts)
    if len(there) > most:
        least = np.partition(counts[there], len(there) - most)[len(there) - most]
        there = there[counts[there] >= least]
    keys = (there if order is None else order[there], -counts[there])
    return there[np.lexsort(keys)][:most]


def hashes_of(names: Sequence[str], seed: int) -> npt.NDArray[np.uint64]:
    """The hash of each n-gram, by which a text that holds it has a feature."""
    return _hashed(hash_grams, names, seed)


def hashes_of_parts(names: Sequence[str], seed: int) -> npt.NDArray[np.uint64]:
    """The same of parts of words."""
    return _hashed(hash_parts, names, seed)


def _hashed(kernel: Any, names: Sequence[str], seed: int) -> npt.NDArray[np.uint64]:
    strings = [name.encode() for name in names]
    offsets = np.cumsum([0, *map(len, strings)], dtype=np.int64)
    found = np.empty(len(strings), np.uint64)
    data = np.frombuffer(b"".join(strings) or b" ", np.uint8)
    with np.errstate(over="ignore"):
        ready(kernel, len(data))(data, offsets, np.uint64(seed), found)
    return found
