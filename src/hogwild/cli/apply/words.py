"""How good word vectors are on tests of similarity and analogies: `hogwild evaluate` for models of words."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from hogwild.cli.apply.evaluate import Options
from hogwild.cli.apply.rows import ReadConfig
from hogwild.cli.summary import print_json
from hogwild.cli.wordtables import add_row, make_table, points, print_tables
from hogwild.errors import ConfigError
from hogwild.messages import say, shown
from hogwild.programs.words.evaluation import SectionScore, WordScore, evaluate_test, notes_of, read_tests, total_of
from hogwild.programs.words.vectors import Vectors

_HONOURED = ("bad_lines", "pipe")  # of the options of reading


def evaluate_words(options: Options) -> int:
    """Evaluate a model of words, or a file of vectors, and print the scores; returns the exit code."""
    _check(options.read)
    began = time.perf_counter()
    tests = read_tests(options.files, options.read.bad_lines, options.read.pipe)
    vectors = Vectors.load(options.model)
    loaded = time.perf_counter()
    scores = [evaluate_test(vectors, test, options.words.restrict_vocab) for test in tests]
    notes = [note for test in tests for note in test.notes] + [note for s in scores for note in notes_of(vectors, s)]
    if not options.show.quiet:
        for note in notes:
            say(f"note: {note}")
    if options.show.json:
        total = _total(scores)
        print_json(
            {
                "program": "word2vec" if Path(options.model).is_dir() else None,
                "model": options.model,
                "words": len(vectors),
                "dim": vectors.dim,
                "restrict_vocab": options.words.restrict_vocab,
                "spearman": _mean(scores),
                "analogy": total.accuracy if total else None,
                "files": [_details(score) for score in scores],
                "seconds": {"load": loaded - began, "evaluate": time.perf_counter() - loaded},
                "notes": notes,
            }
        )
    else:
        _print(scores)
    return 0


def _check(read: ReadConfig) -> None:
    given = [item.name for item in fields(read) if getattr(read, item.name) != item.default]
    for name in given:
        if name not in _HONOURED:
            raise ConfigError(f"--{name.replace('_', '-')} is not for models of words; leave it out.")


def _mean(scores: list[WordScore]) -> float | None:
    """Mean of the rank correlations that there are; None where there is no test of similarity."""
    found = [score.pairs.spearman for score in scores if score.pairs is not None]
    measured = [value for value in found if not math.isnan(value)]
    return sum(measured) / len(measured) if measured else None


def _total(scores: list[WordScore]) -> SectionScore | None:
    totals = [score.total for score in scores if score.total is not None]
    return total_of(totals) if totals else None


def _details(score: WordScore) -> dict[str, Any]:
    if score.pairs is not None:
        return {"file": score.file, "kind": "similarity", **asdict(score.pairs)}
    assert score.total is not None
    return {
        "file": score.file,
        "kind": "analogy",
        **_section(score.total),
        "sections": [{"section": section.section, **_section(section)} for section in score.sections],
    }


def _section(score: SectionScore) -> dict[str, Any]:
    counts = {name: value for name, value in asdict(score).items() if name != "section"}
    return {**counts, "accuracy": score.accuracy, "oov": score.oov}


def _print(scores: list[WordScore]) -> None:
    tables: list[RenderableType] = []
    similarity = make_table(["similarity", "Spearman", "Pearson", "pairs", "unknown"])
    for score in scores:
        if score.pairs is not None:
            numbers = (points(score.pairs.spearman), points(score.pairs.pearson))
            add_row(similarity, score.file, [*numbers, f"{score.pairs.pairs:,}", f"{points(score.pairs.oov)} %"])
    if similarity.row_count > 1:
        mean = _mean(scores)
        add_row(similarity, "mean", [points(math.nan if mean is None else mean), "", "", ""], bold=True)
    if similarity.row_count:
        tables.append(similarity)
    several = sum(score.total is not None for score in scores) > 1
    for score in scores:
        if score.total is None:
            continue
        table = make_table(["analogies", "accuracy", "right", "unknown"])
        for section in (*score.sections, score.total):
            right = f"{section.correct:,} of {section.known:,}"
            about = [points(section.accuracy), right, f"{points(section.oov)} %"]
            add_row(table, section.section, about, bold=section is score.total)
        tables += [Text(f" {shown(score.file)}"), table] if several else [table]
    print_tables(tables)
