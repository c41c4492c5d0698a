"""Words made of parts: the n-grams of letters that a word has, and vectors as means of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats, Offsets
from hogwild.feeds.io.parallel import in_parts
from hogwild.kernels.word2vec.subwords import hash_grams, mean_rows

END_OF_LINE = "</s>"
"""A word that fastText has for ends of lines: it has no parts."""
_MANY = 1 << 12  # words that a thread takes at a time


class Spelling(NamedTuple):
    """Which n-grams of letters words have: letters of the shortest and longest one, and buckets of their hashes."""

    shortest: int
    longest: int
    buckets: int


class Grams(NamedTuple):
    """Word k has the n-grams ids[starts[k]:starts[k + 1]], as numbers of buckets."""

    starts: Offsets
    ids: Offsets


def grams_of(words: Sequence[str], spelling: Spelling) -> Grams:
    """The n-grams of words, as fastText has them.

    >>> grams_of(["tea"], Spelling(3, 6, 1000)).ids.tolist()  # <te <tea <tea> tea tea> ea>
    [8, 59, 191, 337, 757, 895]
    """
    starts = np.zeros(len(words) + 1, np.int64)
    if not spelling.longest:
        return Grams(starts, np.zeros(0, np.int64))
    spelt = [b"" if word == END_OF_LINE else b"<%b>" % word.encode("utf-8", "surrogatepass") for word in words]
    edges = np.concatenate([[0], np.cumsum([len(word) for word in spelt], dtype=np.int64)]).astype(np.int64)
    text = np.frombuffer(b"".join(spelt) or b"\0", np.uint8)
    with np.errstate(over="ignore"):  # hashes wrap around; only the interpreter would say so
        hash_grams(text, edges, *spelling, starts, np.zeros(0, np.int64))
        ids = np.zeros(int(starts[-1]), np.int64)
        if len(ids):
            hash_grams(text, edges, *spelling, starts, ids)
    return Grams(starts, ids)


def mean_vectors(grams: Grams, table: Floats, own: Floats | None = None, threads: int = 1) -> Floats:
    """The vectors of words: means of the rows of their n-grams, and of their own where they have one."""
    words = len(grams.starts) - 1
    made = np.zeros((words, table.shape[1]), np.float32)
    none = np.zeros((0, table.shape[1]), np.float32)

    def fill(first: int, last: int) -> None:
        for start in range(first * _MANY, min(last * _MANY, words), _MANY):
            stop = min(start + _MANY, words)
            mine = none if own is None else np.ascontiguousarray(own[start:stop], np.float32)
            mean_rows(mine, table, grams.starts[start : stop + 1], grams.ids, made[start:stop])

    in_parts(-(-words // _MANY), threads, fill)
    return made


@dataclass(frozen=True)
class Parts:
    """What vectors of words with subwords are made of.

    inputs: rows of the words; grams: rows of n-grams, a bucket each; outputs: rows as words are seen from their
    neighbours, or of forks, if they are known; training: options that it was trained with, as far as they are known.
    """

    spelling: Spelling
    inputs: Floats
    grams: Floats
    outputs: Floats | None = None
    training: Mapping[str, Any] = field(default_factory=dict)

    def vectors_of(self, words: Sequence[str]) -> tuple[Floats, list[bool]]:
        """Vectors of words that are not in the vocabulary, by their n-grams; and whether each has any."""
        grams = grams_of(words, self.spelling)
        return mean_vectors(grams, self.grams), (np.diff(grams.starts) > 0).tolist()
