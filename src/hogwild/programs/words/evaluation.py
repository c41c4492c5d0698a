"""Files of word tests: pairs of words with a score, or analogies in sections; and what vectors make of them.

    tiger<TAB>cat<TAB>7.35          a similarity test; commas or blanks will do too

    : capital-common-countries      an analogy test
    Athens Greece Baghdad Iraq
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.source import Paths, Source, open_sources
from hogwild.feeds.sparse.labels import counted, fits_float32, number_of, shown
from hogwild.programs.words.analogies import RESTRICT_VOCABULARY, Question, SectionScore, evaluate_analogies, total_of
from hogwild.programs.words.vectors import Vectors
from hogwild.programs.words.wordpairs import PAIRS_VOCABULARY, Pair, PairScores, evaluate_pairs


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


def read_tests(paths: Paths, bad_lines: Literal["stop", "skip"] = "stop", pipe: str = "") -> list[WordTest]:
    """The tests in files, compressed or not; globs are expanded, and `pipe` is a command that each is sent through.

    Raises InputError at the first malformed line, unless `bad_lines` is `skip`: then the notes of a test count them.
    """
    config = FeedConfig(bad_lines=bad_lines, bad_share=1.0, pipe=pipe)
    return [_read(source, config) for source in open_sources(paths, config)]


def evaluate_test(vectors: Vectors, test: WordTest, restrict_vocab: int = RESTRICT_VOCABULARY) -> WordScore:
    """Scores as gensim's `evaluate_word_pairs` and `evaluate_word_analogies` give them, in points of 100.

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
        raise InputError(f"{source.name}: holds no word test; a line is `word word score`, or `a b c d` in sections.")
    bad = BadLines(config)
    if lines[0][1].startswith(":"):
        test = WordTest(source.name, sections=_read_sections(source, lines, bad))
    else:
        pairs, notes = _read_pairs(source, lines, bad)
        test = WordTest(source.name, pairs, notes=notes)
    bad.seen(len(lines))
    return replace(test, notes=(*test.notes, *bad.notes()))


def _read_sections(source: Source, lines: list[tuple[int, str]], bad: BadLines) -> dict[str, list[Question]]:
    sections: dict[str, list[Question]] = {}
    questions: list[Question] = []
    for number, line in lines:
        if line.startswith(":"):
            questions = sections.setdefault(line.lstrip(":").strip(), [])
            continue
        words = line.split()
        if len(words) == 4:
            questions.append((words[0], words[1], words[2], words[3]))
        else:
            bad.report(f"{source.place(number)}: {counted(len(words), 'word')} where a question has 4")
    if not any(sections.values()):
        raise InputError(f"{source.name}: has sections, but no question in them.")
    return sections


def _read_pairs(source: Source, lines: list[tuple[int, str]], bad: BadLines) -> tuple[list[Pair], tuple[str, ...]]:
    pairs: list[Pair] = []
    notes: list[str] = []
    separator = _separator(lines)
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
            bad.report(f"{source.place(number)}: {_explain(fields, separator)}")
    if wide:
        notes.append(f"{source.name}: columns past the third are not read.")
    if not pairs:
        raise InputError(f"{source.name}: holds no pair of words with a score; a line is `word word score`.")
    return pairs, tuple(notes)


def _separator(lines: list[tuple[int, str]]) -> str | None:
    """What stands between fields: a tab, a comma, or blanks; as in the second line, since the first may have names."""
    line = lines[min(1, len(lines) - 1)][1]
    return next((sign for sign in "\t,;" if line.count(sign) >= 2), None)


def _explain(fields: list[str], separator: str | None) -> str:
    if len(fields) == 4 and separator is None:
        return "four words, but no `: section` line above; a test of analogies begins with one"
    if len(fields) < 3:
        return f"{counted(len(fields), 'field')} where a pair has 3: word, word, score"
    if not fields[0] or not fields[1]:
        return "a word is missing"
    return f"the score `{shown(fields[2])}` is not a finite number"
