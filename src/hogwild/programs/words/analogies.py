"""Analogy tests: a is to b as c is to which word? The nearest to b - a + c (3CosAdd), a, b and c apart, must be d.

Words are compared without regard to case; of several forms of a word the first in the vocabulary, the most frequent,
stands for all. Questions with unknown words are left out and counted.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.blas import one_blas_thread
from hogwild.machine import cores
from hogwild.programs.words.vectors import Vectors
from hogwild.programs.words.wordpairs import folded_rows

RESTRICT_VOCABULARY = 30_000
"""Words that questions and answers are taken from: the most frequent ones."""
_SCORES = 1 << 22  # of one group of questions: 16 MB a core

Question = tuple[str, str, str, str]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SectionScore:
    """How vectors do on a section of an analogy test; accuracy and share of left-out questions in points of 100."""

    section: str
    questions: int
    known: int
    correct: int

    @property
    def accuracy(self) -> float:
        """Right answers among the known questions; NaN where there is none."""
        return 100 * self.correct / self.known if self.known else math.nan

    @property
    def oov(self) -> float:
        """Share of questions with a word that is not in the vocabulary."""
        return 100 * (self.questions - self.known) / max(self.questions, 1)


def evaluate_analogies(
    vectors: Vectors, sections: dict[str, list[Question]], restrict_vocab: int = RESTRICT_VOCABULARY
) -> list[SectionScore]:
    """How many questions of each section are answered right. 0 stands for all words."""
    rows = folded_rows(vectors, restrict_vocab)
    limit = min(restrict_vocab or len(vectors), len(vectors))
    forms = np.array([rows[word.upper()] for word in vectors.words[:limit]], np.int64)
    lengths = np.where(vectors.norms[:limit] > 0, vectors.norms[:limit], np.float32(np.inf)).astype(np.float32)
    unit: Floats = vectors.matrix[:limit] / lengths[:, None]
    scores = []
    for name, questions in sections.items():
        upper = [tuple(word.upper() for word in question) for question in questions]
        known = [[rows[word] for word in question] for question in upper if all(word in rows for word in question)]
        correct = _count_right(unit, forms, np.array(known, np.int64).reshape(-1, 4))
        scores.append(SectionScore(name, len(questions), len(known), correct))
    return scores


def total_of(scores: list[SectionScore], name: str = "total") -> SectionScore:
    """All sections as one."""
    return SectionScore(
        name, sum(s.questions for s in scores), sum(s.known for s in scores), sum(s.correct for s in scores)
    )


def _count_right(unit: Floats, forms: Rows, questions: Rows) -> int:
    """Questions whose nearest word is the fourth. forms: for each row the one that stands for all its forms."""
    step = max(1, _SCORES // len(unit))
    groups = [questions[start : start + step] for start in range(0, len(questions), step)]
    with one_blas_thread(), ThreadPoolExecutor(cores(), "analogies") as pool:
        return sum(pool.map(lambda group: _right(unit, forms, group), groups))


def _right(unit: Floats, forms: Rows, questions: Rows) -> int:
    a, b, c, wanted = questions.T
    scores = (unit[b] + unit[c] - unit[a]) @ unit.T
    for given in (a, b, c):
        scores[np.arange(len(questions)), given] = -np.inf
    nearest = scores.argmax(axis=1)
    # A second form of a, b or c is no answer either; seldom, so one question at a time.
    again = (forms[nearest][:, None] == questions[:, :3]).any(axis=1)
    for k in np.flatnonzero(again):
        others = np.isin(forms, questions[k, :3], invert=True)
        nearest[k] = np.argmax(np.where(others, scores[k], -np.inf))
    return int(np.count_nonzero(forms[nearest] == wanted))
