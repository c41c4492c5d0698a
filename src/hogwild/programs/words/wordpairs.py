"""Word-similarity tests: do vectors rank pairs of words as people do?

Words are compared without regard to case; of several forms of a word the first in the vocabulary, the most frequent,
stands for all. Pairs with unknown words are left out and counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.programs.words.similarity import units
from hogwild.programs.words.vectors import Vectors

Doubles = npt.NDArray[np.float64]

PAIRS_VOCABULARY = 300_000
"""Words that are looked at: as many as gensim does."""


class Pair(NamedTuple):
    """Two words and how similar people find them."""

    a: str
    b: str
    score: float


@dataclass(frozen=True)
class PairScores:
    """How vectors do on a similarity test; correlations and shares in points of 100.

    spearman, pearson: correlation with the judgements of people over the `known` pairs; NaN where there is none.
    oov: share of pairs with a word that is not in the vocabulary.
    """

    pairs: int
    known: int
    spearman: float
    pearson: float
    oov: float


def evaluate_pairs(vectors: Vectors, pairs: list[Pair], restrict_vocab: int = PAIRS_VOCABULARY) -> PairScores:
    """Correlation between the judged similarities and those of the vectors."""
    rows = folded_rows(vectors, restrict_vocab)
    known = [pair for pair in pairs if pair.a.upper() in rows and pair.b.upper() in rows]
    first = units(vectors.matrix[[rows[pair.a.upper()] for pair in known]]) if known else np.zeros((0, 1), np.float32)
    second = units(vectors.matrix[[rows[pair.b.upper()] for pair in known]]) if known else first
    found = np.einsum("ij,ij->i", first, second, dtype=np.float64)
    judged = np.array([pair.score for pair in known], np.float64)
    return PairScores(
        pairs=len(pairs),
        known=len(known),
        spearman=100 * correlation(ranks(judged), ranks(found)),
        pearson=100 * correlation(judged, found),
        oov=100 * (len(pairs) - len(known)) / max(len(pairs), 1),
    )


def folded_rows(vectors: Vectors, restrict_vocab: int) -> dict[str, int]:
    """Rows by word in upper case, among the first words; of several forms the first one's."""
    words = vectors.words[: restrict_vocab or len(vectors)]
    return {words[row].upper(): row for row in range(len(words) - 1, -1, -1)}


def ranks(values: Doubles) -> Doubles:
    """Places from 1 on in rising order; equal values share the mean of theirs.

    >>> ranks(np.array([0.5, 0.1, 0.5])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place], np.float64)


def correlation(a: Doubles, b: Doubles) -> float:
    """Pearson's correlation; NaN for fewer than two values, or where all are equal."""
    if len(a) < 2:
        return math.nan
    first, second = a - a.mean(), b - b.mean()
    size = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / size if size > 0 else math.nan
