"""Files of word tests: pairs of words with a score, or analogies; and what vectors make of them.

tiger<TAB>cat<TAB>7.35          a similarity test; commas or blanks will do too

: capital-common-countries      an analogy test; it does without sections too
Athens Greece Baghdad Iraq
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, fits_float32, number_of
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.source import Paths, Source, open_sources
from hogwild.machine import cores, one_blas_thread
from hogwild.messages import counted, shown
from hogwild.programs.words.similarity import units
from hogwild.programs.words.vectors import Vectors

# -- Word-similarity tests: do vectors rank pairs of words as people do? ----------------------------------------------
# Words are compared without regard to case; of several forms of a word the first in the vocabulary, the most frequent,
# stands for all. Pairs with unknown words are left out and counted.


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
    """How vectors do on a similarity test.

    spearman, pearson: correlation with the judgements of people over the `known` pairs; NaN where there is none.
    oov: share, from 0 to 1, of pairs with a word that is not in the vocabulary.
    """

    pairs: int
    known: int
    spearman: float
    pearson: float
    oov: float


def evaluate_pairs(vectors: Vectors, pairs: list[Pair], restrict_vocab: int = PAIRS_VOCABULARY) -> PairScores:
    """Correlation between the judged similarities and those of the vectors."""
    rows = folded_rows(vectors, restrict_vocab)

    def known_as(word: str) -> str | None:
        """The form of a word that the vocabulary has; or the word itself, if it has a vector by its subwords."""
        row = rows.get(word.upper())
        made = vectors.parts is not None and word in vectors
        return vectors.words[row] if row is not None else word if made else None

    forms = {word: known_as(word) for pair in pairs for word in (pair.a, pair.b)}
    known = [pair for pair in pairs if forms[pair.a] is not None and forms[pair.b] is not None]
    none = np.zeros((0, 1), np.float32)
    first = units(vectors[[str(forms[pair.a]) for pair in known]]) if known else none
    second = units(vectors[[str(forms[pair.b]) for pair in known]]) if known else none
    found = np.einsum("ij,ij->i", first, second, dtype=np.float64)
    judged = np.array([pair.score for pair in known], np.float64)
    spearman, pearson = correlation(ranks(judged), ranks(found)), correlation(judged, found)
    return PairScores(len(pairs), len(known), spearman, pearson, (len(pairs) - len(known)) / max(len(pairs), 1))


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


# -- Analogy tests: a is to b as c is to which word? The nearest to b - a + c (3CosAdd), a, b and c apart, must be d --
# Words are compared without regard to case; of several forms of a word the first in the vocabulary, the most frequent,
# stands for all. Questions with unknown words are left out and counted.


UNNAMED = "unnamed"  # the section of questions above which no `: section` stands

RESTRICT_VOCABULARY = 30_000
"""Words that questions and answers are taken from: the most frequent ones."""
_SCORES = 1 << 22  # of one group of questions: 16 MB a core

Question = tuple[str, str, str, str]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SectionScore:
    """How vectors do on a section of an analogy test; shares from 0 to 1."""

    section: str
    questions: int
    known: int
    correct: int

    @property
    def accuracy(self) -> float:
        """Share of right answers among the known questions; NaN where there is none."""
        return self.correct / self.known if self.known else math.nan

    @property
    def oov(self) -> float:
        """Share of questions with a word that is not in the vocabulary."""
        return (self.questions - self.known) / max(self.questions, 1)


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
    sums = [sum(getattr(score, count) for score in scores) for count in ("questions", "known", "correct")]
    return SectionScore(name, *sums)


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


# -- Files of either kind ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordTest:
    """What a file holds: pairs, or questions by section. notes: what the reader should know."""

    name: str
    pairs: list[Pair] = field(default_factory=list)
    sections: dict[str, list[Question]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WordScore:
    """What vectors make of a test: of pairs, or of the sections of an analogy test and all of them together."""

    file: str
    pairs: PairScores | None = None
    sections: tuple[SectionScore, ...] = ()
    total: SectionScore | None = None

    @property
    def lines(self) -> int:
        """Pairs or questions of the test, unknown words or not."""
        return self.pairs.pairs if self.pairs is not None else self.total.questions if self.total is not None else 0


def read_tests(paths: Paths, bad_lines: Literal["stop", "skip"] = "stop", pipe: str = "") -> list[WordTest]:
    """The tests in files, compressed or not; globs are expanded, and `pipe` is a command that each is sent through.

    Raises InputError at the first malformed line, unless `bad_lines` is `skip`: then the notes of a test count them.
    """
    tests, wrong = try_tests(paths, bad_lines, pipe)
    if wrong:
        raise wrong[0]
    return tests


def try_tests(
    paths: Paths, bad_lines: Literal["stop", "skip"] = "stop", pipe: str = ""
) -> tuple[list[WordTest], list[InputError]]:
    """As `read_tests`, but goes on with the next file where one is wrong; returns what is wrong with each besides."""
    config = FeedConfig(bad_lines=bad_lines, bad_share=1.0, pipe=pipe)
    tests: list[WordTest] = []
    wrong: list[InputError] = []
    names: list[Paths] = [paths] if isinstance(paths, str | PathLike) else [*paths] or [()]
    for name in names:
        try:
            sources = open_sources(name, config)
        except InputError as error:
            wrong.append(error)
            continue
        for source in sources:
            try:
                tests.append(_read(source, config))
            except InputError as error:
                wrong.append(error)
    return tests, wrong


def evaluate_test(vectors: Vectors, test: WordTest, restrict_vocab: int = RESTRICT_VOCABULARY) -> WordScore:
    """Scores as gensim's `evaluate_word_pairs` and `evaluate_word_analogies` give them; all shares from 0 to 1.

    restrict_vocab: analogies are asked of and answered with so many words only, the most frequent; 0 stands for all.
    """
    if test.pairs:
        return WordScore(test.name, evaluate_pairs(vectors, test.pairs))
    sections = evaluate_analogies(vectors, test.sections, restrict_vocab)
    return WordScore(test.name, None, tuple(sections), total_of(sections))


def notes_of(vectors: Vectors, score: WordScore) -> list[str]:
    """What to say about words that were left out."""
    notes = []
    if score.pairs is not None:
        if not score.pairs.known:
            notes.append(f"{score.file}: no pair has both words in the vocabulary, so there is nothing to compare.")
        if len(vectors) > PAIRS_VOCABULARY:
            notes.append(f"{score.file}: only the first {PAIRS_VOCABULARY:,} of {len(vectors):,} words are looked at.")
    if score.total is not None and not score.total.known:
        notes.append(f"{score.file}: no question has all four words in the vocabulary, so none is answered.")
    return notes


# -- reading --


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    """Numbered lines that are neither empty nor comments."""
    for first, text in source.blocks():
        for number, line in enumerate(text.tobytes().split(b"\n"), first):
            try:
                bare = line.decode("utf-8").strip()
            except UnicodeDecodeError:
                raise InputError(
                    f"{source.place(number)}: is not UTF-8; convert the file (`iconv -f latin1 -t utf-8`)."
                ) from None
            if bare and not bare.startswith("#"):
                yield number, bare


def _read(source: Source, config: FeedConfig) -> WordTest:
    lines = list(_lines(source))
    if not lines:
        raise InputError(f"{source.name}: holds no word test; a line is `word word score`, or a question `a b c d`.")
    bad = BadLines(config)
    separator = _separator(lines)
    if _are_questions(lines, separator):
        sections = _read_sections(source, lines, bad, separator)
        size = counted(sum(map(len, sections.values())), "question")
        named = f" in {counted(len(sections), 'section')}" if set(sections) != {UNNAMED} else ""
        test = WordTest(source.name, sections=sections, notes=(f"{source.name}: read as analogies, {size}{named}.",))
    else:
        pairs, notes = _read_pairs(source, lines, bad, separator)
        size = f"{source.name}: read as similarities, {counted(len(pairs), 'pair')}."
        test = WordTest(source.name, pairs, notes=(size, *notes))
    bad.seen(len(lines))
    return replace(test, notes=(*test.notes, *bad.notes()))


def _are_questions(lines: list[tuple[int, str]], separator: str | None) -> bool:
    """Whether the lines are analogies: they begin with a section, or most have four words with no score among them."""
    if lines[0][1].startswith(":"):
        return True
    rows = [line.split(separator) for _, line in lines if not line.startswith(":")]
    questions = sum(len(row) == 4 and number_of(row[2]) is None and number_of(row[3]) is None for row in rows)
    return questions > len(rows) / 2


def _read_sections(
    source: Source, lines: list[tuple[int, str]], bad: BadLines, separator: str | None
) -> dict[str, list[Question]]:
    sections: dict[str, list[Question]] = {}
    name = UNNAMED
    for number, line in lines:
        if line.startswith(":"):
            name = line.lstrip(":").strip()
            sections.setdefault(name, [])
            continue
        words = [word for field in line.split(separator) if (word := field.strip())]
        if len(words) == 4:
            sections.setdefault(name, []).append((words[0], words[1], words[2], words[3]))
        else:
            what = f"{counted(len(words), 'word')} where a question has 4"
            bad.report(f"{source.place(number)}: {what} (the file is read as analogies, `a b c d`)")
    if not any(sections.values()):
        raise InputError(f"{source.name}: has sections, but no question in them.")
    return sections


def _read_pairs(
    source: Source, lines: list[tuple[int, str]], bad: BadLines, separator: str | None
) -> tuple[list[Pair], tuple[str, ...]]:
    pairs: list[Pair] = []
    notes: list[str] = []
    wide = 0
    for number, line in lines:
        fields = [field.strip() for field in line.split(separator)]
        score = number_of(fields[2]) if len(fields) > 2 else None
        if score is not None and fits_float32(score) and fields[0] and fields[1]:
            pairs.append(Pair(fields[0], fields[1], score))
            wide += len(fields) > 3
        elif number == lines[0][0] and len(lines) > 1:  # names of columns
            notes.append(f"{source.place(number)}: taken for a line of names: `{shown(line)}`.")
        else:
            what = f"{_explain(fields)} (the file is read as similarities, `word word score`)"
            bad.report(f"{source.place(number)}: {what}")
    if wide:
        notes.append(f"{source.name}: columns past the third are not read.")
    if not pairs:
        raise InputError(
            f"{source.name}: holds no pair of words with a score (a line is `word word score`), and no analogies "
            "either (`a b c d`, four words)."
        )
    return pairs, tuple(notes)


def _separator(lines: list[tuple[int, str]]) -> str | None:
    """What stands between fields: a tab, a comma, or blanks; as in the second line, since the first may have names."""
    line = lines[min(1, len(lines) - 1)][1]
    return next((sign for sign in "\t,;" if line.count(sign) >= 2), None)


def _explain(fields: list[str]) -> str:
    if len(fields) < 3:
        return f"{counted(len(fields), 'field')} where a pair has 3"
    if not fields[0] or not fields[1]:
        return "a word is missing"
    return f"the score `{shown(fields[2])}` is not a finite number"
