"""N-grams of texts by name: which there are, how often, and how each is written; and the hash of a written one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Offsets
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.ids.hashing import FNV, fold, hash_bytes, push_fnv
from hogwild.kernels.ids.tokens import APOSTROPHE, SPACE, odd_letter

ENTRIES, LETTERS = 0, 1  # places in `used`


class Spelt(NamedTuple):
    """A table of n-grams, open addressing: of each its hash, how often it was met (0: the place is free), and where
    its letters begin and end. letters: the words of all texts as they are hashed, with a blank after each. used: places
    that are taken, and letters."""

    hashes: npt.NDArray[np.uint64]
    counts: Offsets
    spans: Offsets
    letters: npt.NDArray[np.uint8]
    used: Offsets


def make_spelt(places: int, letters: int) -> Spelt:
    """An empty table; places: a power of 2."""
    return Spelt(np.zeros(places, np.uint64), np.zeros(places, np.int64), np.zeros((places, 2), np.int64),
                 np.zeros(letters, np.uint8), np.zeros(2, np.int64))  # fmt: skip


@kernel
def spell_texts(data: Any, texts: Any, recipe: Any, spelt: Any, last_words: Any) -> None:
    """Count the n-grams of the texts data[texts[k, 0]:texts[k, 1]]. There must be room for the letters of all, and a
    blank after each word; a table that is three quarters full takes in no more, but goes on counting what it has.

    last_words: (ngrams, 2), for the hash of the n-gram that ends at the last word, and where it begins."""
    letters, used = spelt.letters, spelt.used
    place = used[LETTERS]
    for k in range(len(texts)):
        i, last = texts[k, 0], texts[k, 1]
        words, size = 0, 0
        while True:
            letter, step = np.uint8(0), 1
            if i < last:
                letter = recipe.letters[data[i]]
                if data[i] >= 0x80 or data[i] == APOSTROPHE:
                    letter, step = odd_letter(data, i, last, size, recipe)
            if letter != 0:
                letters[place] = letter
                place += 1
                size += 1
            elif size > 0:
                state = hash_bytes(letters, place - size, place, recipe.seed)
                words += 1
                for n in range(min(words, recipe.ngrams) - 1, 0, -1):
                    last_words[n, 0] = fold(last_words[n - 1, 0], state)
                    last_words[n, 1] = last_words[n - 1, 1]
                last_words[0, 0] = state
                last_words[0, 1] = np.uint64(place - size)
                for n in range(min(words, recipe.ngrams)):
                    _count(spelt, last_words[n, 0], int(last_words[n, 1]), place, 1)
                letters[place] = np.uint8(SPACE)
                place += 1
                size = 0
            if i >= last:
                break
            i += step
    used[LETTERS] = place


@kernel
def _count(spelt: Any, name: Any, first: int, last: int, times: int) -> None:
    mask = np.uint64(len(spelt.hashes) - 1)
    place = np.int64(name & mask)
    while spelt.counts[place] != 0:
        if spelt.hashes[place] == name:
            spelt.counts[place] += times
            return
        place = np.int64((np.uint64(place) + np.uint64(1)) & mask)
    if 4 * spelt.used[ENTRIES] >= 3 * len(spelt.hashes):
        return
    spelt.used[ENTRIES] += 1
    spelt.hashes[place] = name
    spelt.counts[place] = times
    spelt.spans[place, 0] = first
    spelt.spans[place, 1] = last


@kernel
def move_entries(old: Any, chosen: Any, spelt: Any) -> None:
    """Put some entries of a table, by their places, into another with the same letters."""
    for k in range(len(chosen)):
        at = chosen[k]
        _count(spelt, old.hashes[at], old.spans[at, 0], old.spans[at, 1], old.counts[at])


@kernel
def hash_grams(data: Any, offsets: Any, seed: Any, hashes: Any) -> None:
    """The hash of each n-gram data[offsets[k]:offsets[k + 1]], whose words have a blank between them."""
    for k in range(len(hashes)):
        first, count, state = offsets[k], 0, np.uint64(0)
        for i in range(offsets[k], offsets[k + 1] + 1):
            if i == offsets[k + 1] or data[i] == SPACE:
                word = hash_bytes(data, first, i, seed)
                state = word if count == 0 else fold(state, word)
                count += 1
                first = i + 1
        hashes[k] = state


@kernel
def hash_parts(data: Any, offsets: Any, seed: Any, hashes: Any) -> None:
    """The hash of each part of a word data[offsets[k]:offsets[k + 1]]."""
    for k in range(len(hashes)):
        value = FNV
        for i in range(offsets[k], offsets[k + 1]):
            value = push_fnv(value, data[i])
        hashes[k] = fold(seed, np.uint64(value))
