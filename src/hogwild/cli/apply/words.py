"""Vectors of words and documents in use: `hogwild neighbors` (the nearest to a word or a document), `hogwild evaluate`
on tests of words or on documents, and `hogwild predict` for documents (vectors of new ones)."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from hogwild.cli.apply.options import EvaluateOptions, PredictOptions, ReadConfig, WordConfig, given, refuse
from hogwild.cli.flags import Page
from hogwild.cli.summary import (
    add_row,
    make_table,
    metrics_text,
    points,
    print_evaluation,
    print_json,
    print_prediction,
    print_tables,
    say_notes,
)
from hogwild.config import ShowConfig
from hogwild.config.options import Shown, require
from hogwild.errors import ConfigError, InputError
from hogwild.messages import say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hogwild.feeds.corpus.documents import Documents
    from hogwild.programs.words.evaluation import SectionScore, WordScore
    from hogwild.programs.words.vectors import Similar, Vectors

PAGE = Page(
    "hogwild neighbors",
    """Show the words that are nearest to a word, for each of several words; unknown ones are named at the end
(with subwords, as in fastText's models, hardly any is). With
--minus, those nearest to the sum of all words minus these: king - man + woman. With --documents, of a model of
documents the same for its documents, by their tags, which are the numbers of lines, from 0, where they have no others.

Examples:
  hogwild neighbors model paris
  hogwild neighbors documents 17 42 --documents
  hogwild neighbors model monday seven green --topn 5
  hogwild neighbors vectors.vec king woman --minus man --json""",
)


@dataclass(frozen=True)
class SearchConfig:
    """What is looked for."""

    documents: bool = False
    """Of a model of documents: look for documents, by their tags, not for words."""
    minus: Annotated[tuple[str, ...], Shown("WORD")] = ()
    """Word to subtract: the others are added up, and there is one table."""
    topn: int = 10
    """Neighbours to show."""
    restrict_vocab: int = 0
    """Search among so many words only, the most frequent; 0: all."""

    def __post_init__(self) -> None:
        require(self, "topn", self.topn >= 1, "it must be at least 1. Try 10.")
        require(self, "restrict_vocab", self.restrict_vocab >= 0, "it must be at least 1, or 0 for all words.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained model, or a file of word vectors (.vec, .txt, .bin; .gz and others too)."""
    words: Annotated[tuple[str, ...], Shown("WORD...", positional=True)] = ()
    """Words as they stand in the vocabulary, or tags of documents."""
    search: SearchConfig = field(default_factory=SearchConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Search and print."""
    from hogwild.programs.words.vectors import Vectors

    began = time.perf_counter()
    vectors = Vectors.load(options.model, kind="documents" if options.search.documents else "words")
    loaded = time.perf_counter()
    found, unknown = _search(vectors, options)
    seconds = {"load": loaded - began, "search": time.perf_counter() - loaded}
    if options.show.json:
        minus = list(options.search.minus)
        queries = [
            {"words": list(words), "minus": minus, "neighbors": [{"word": w, "similarity": s} for w, s in similar]}
            for words, similar in found
        ]
        kind = "documents" if options.search.documents else "words"
        shape: dict[str, Any] = {kind: len(vectors), "dim": vectors.dim}
        print_json({"model": options.model, **shape, "queries": queries, "unknown": unknown, "seconds": seconds})
    else:
        _print_neighbors(found, options.search.minus)
    if unknown:
        vectors[unknown]  # raises what names them
    return 0


def _search(vectors: Vectors, options: Options) -> tuple[list[tuple[tuple[str, ...], Similar]], list[str]]:
    """The words of each query with what is nearest to them; and the words that are not in the vocabulary.

    A sum needs all its words, and of several queries at least one must be there: UnknownWordError.
    """
    search = options.search
    if search.minus:
        similar = vectors.most_similar(options.words, search.minus, search.topn, search.restrict_vocab)
        return [(options.words, similar)], []
    known = [word for word in options.words if word in vectors] or options.words
    each = vectors.neighbors(known, search.topn, search.restrict_vocab)
    unknown = [word for word in options.words if word not in vectors]
    return [((word,), similar) for word, similar in zip(known, each, strict=True)], unknown


def _print_neighbors(found: list[tuple[tuple[str, ...], Similar]], minus: tuple[str, ...]) -> None:
    tables = []
    for words, similar in found:
        title = " + ".join(words) + "".join(f" - {word}" for word in minus)
        table = make_table([title, "similarity"])
        for word, value in similar:
            add_row(table, word, f"{value:.4f}")
        tables.append(table)
    print_tables(tables)


# -- evaluate ---------------------------------------------------------------------------------------------------------


_HONOURED = ("--bad-lines", "--pipe")  # of the options of reading


def evaluate_words(options: EvaluateOptions) -> int:
    """Evaluate a model of words, or a file of vectors, and print the scores; returns the exit code."""
    from hogwild.programs.words.evaluation import evaluate_test, notes_of, try_tests
    from hogwild.programs.words.vectors import Vectors

    for flag in given(options.read):
        if flag not in _HONOURED:
            raise ConfigError(f"{flag} is not for models of words; leave it out.")
    began = time.perf_counter()
    tests, wrong = try_tests(options.files, options.read.bad_lines, options.read.pipe)
    if not tests:
        _fail(wrong)
    vectors = Vectors.load(options.model)
    loaded = time.perf_counter()
    scores = [evaluate_test(vectors, test, options.words.restrict_vocab) for test in tests]
    notes = [note for test in tests for note in test.notes] + [note for s in scores for note in notes_of(vectors, s)]
    say_notes(notes, options.show.quiet)
    if options.show.json:
        metrics = _metrics(scores)
        print_evaluation(
            options, "word2vec" if Path(options.model).is_dir() else None, sum(score.lines for score in scores),
            metrics, (began, loaded), words=len(vectors), dim=vectors.dim, restrict_vocab=options.words.restrict_vocab,
            spearman=metrics.get("spearman"), analogy=metrics.get("analogy"),
            files=[_details(score) for score in scores], wrong=list(map(str, wrong)), notes=notes,
        )  # fmt: skip
    else:
        _print_scores(scores)
    if wrong:
        _fail(wrong)
    return 0


def measure_words(path: str, files: tuple[str, ...]) -> dict[str, float]:
    """The means over tests of words; and `known`, the share of their lines whose words all have vectors: the others
    count for nothing, so that fewer words look better than they are."""
    from hogwild.programs.words.evaluation import evaluate_test, read_tests
    from hogwild.programs.words.vectors import Vectors

    tests, vectors = read_tests(files), Vectors.load(path)
    scores = [evaluate_test(vectors, test, WordConfig.restrict_vocab) for test in tests]
    known = sum(each.known for score in scores for each in (score.pairs, score.total) if each is not None)
    return {**_metrics(scores), "known": known / max(1, sum(score.lines for score in scores))}


def _fail(wrong: list[InputError]) -> NoReturn:
    """Say of each wrong file why it is, whatever came of the others."""
    for error in wrong[:-1]:
        say(f"hogwild: error: {error}")
    raise wrong[-1]


def _metrics(scores: list[WordScore]) -> dict[str, float]:
    """The mean of the rank correlations that there are, the accuracy over all analogies; NaN where none is known."""
    from hogwild.programs.words.evaluation import total_of

    found: dict[str, float] = {}
    pairs = [score.pairs.spearman for score in scores if score.pairs is not None]
    if pairs:
        measured = [value for value in pairs if not math.isnan(value)]
        found["spearman"] = sum(measured) / len(measured) if measured else math.nan
    totals = [score.total for score in scores if score.total is not None]
    if totals:
        found["analogy"] = total_of(totals).accuracy
    return found


def _details(score: WordScore) -> dict[str, Any]:
    if score.pairs is not None:
        return {"file": score.file, "kind": "similarity", **asdict(score.pairs)}
    assert score.total is not None
    sections = [{"section": section.section, **_section(section)} for section in score.sections]
    return {"file": score.file, "kind": "analogy", **_section(score.total), "sections": sections}


def _section(score: SectionScore) -> dict[str, Any]:
    counts = {name: value for name, value in asdict(score).items() if name != "section"}
    return {**counts, "accuracy": score.accuracy, "oov": score.oov}


def _print_scores(scores: list[WordScore]) -> None:
    from rich.text import Text

    from hogwild.messages import shown

    tables: list[RenderableType] = []
    similarity = make_table(["similarity", "Spearman", "Pearson", "pairs", "unknown"])
    for score in scores:
        if score.pairs is not None:
            numbers = (points(score.pairs.spearman), points(score.pairs.pearson))
            add_row(similarity, score.file, *numbers, f"{score.pairs.pairs:,}", f"{points(score.pairs.oov)} %")
    if similarity.row_count > 1:
        add_row(similarity, "mean", points(_metrics(scores)["spearman"]), "", "", "", bold=True)
    if similarity.row_count:
        tables.append(similarity)
    several = sum(score.total is not None for score in scores) > 1
    for score in scores:
        if score.total is None:
            continue
        table = make_table(["analogies", "accuracy", "right", "unknown"])
        for section in (*score.sections, score.total):
            numbers = (points(section.accuracy), f"{section.correct:,} of {section.known:,}")
            add_row(table, section.section, *numbers, f"{points(section.oov)} %", bold=section is score.total)
        tables += [Text(f" {shown(score.file)}"), table] if several else [table]
    print_tables(tables)


# -- documents --------------------------------------------------------------------------------------------------------


_OF_DOCUMENTS = ("--format", "--invalid-utf8", "--pipe", "--cache")  # of the options of reading
_FORMS = ("csv", "tsv", "parquet", "arrow", "jsonl")


def open_documents_for(model: Any, files: tuple[str, ...], read: ReadConfig) -> Documents:
    """The documents of the files in the words of the model, with columns as in training."""
    from hogwild.config import DocumentConfig
    from hogwild.feeds.corpus.documents import open_documents

    schema = model.schema
    for flag in given(read):
        if flag not in _OF_DOCUMENTS:
            raise ConfigError(f"{flag} is not for models of documents; leave it out.")
    form: Any = {"same": "auto", "auto": "auto", "text": "lines"}.get(read.format, read.format)
    if form not in ("auto", "lines", *_FORMS):
        raise ConfigError(f"--format {read.format} is not for documents; they are text or one of {', '.join(_FORMS)}.")
    config = DocumentConfig(
        min_count=1, lowercase=bool(schema.get("lowercase")), max_token=int(schema.get("max_token", 1000)), format=form,
        invalid_utf8="replace" if read.invalid_utf8 == "replace" else "stop", pipe=read.pipe, cache=read.cache,
    )  # fmt: skip
    return open_documents(files, config, model.program.vocabulary, schema)


def predict_documents(options: PredictOptions, model: Any, began: float) -> int:
    """Write the vectors of documents, in the text or binary format of word2vec; returns the exit code."""
    from hogwild.messages import counted, listed
    from hogwild.programs.words.files import format_of_name
    from hogwild.programs.words.vectors import Vectors

    for flag in given(options.write):
        if flag != "--output":
            raise ConfigError(f"{flag} is not for models of documents; leave it out.")
    feed, output = open_documents_for(model, options.files, options.read), options.write.output
    vectors, known = model.program.infer_all(feed, options.inferred.epochs, options.inferred.seed)
    tags = feed.names()
    form = format_of_name(output) or "text"
    Vectors(tags, vectors, kind="documents").save(output, form)
    notes = [note for note in feed.notes if "no word of the vocabulary" not in note]
    if not known.all():
        without = [tags[row] for row in (~known).nonzero()[0].tolist()]
        notes.append(f"{counted(len(without), 'document')} without a word that the model knows, whose vectors are all"
                     f" zeros: {listed(without)}.")  # fmt: skip
    say_notes(notes, options.show.quiet)
    print_prediction(
        options, model.program.name, len(tags), began, dim=vectors.shape[1], format=form,
        unknown=int((~known).sum()), notes=notes,
    )  # fmt: skip
    return 0


def evaluate_documents(options: EvaluateOptions, model: Any, began: float) -> int:
    """Print the loss of the second halves of documents by vectors of the first ones; returns the exit code."""
    from hogwild.machine import cores

    refuse(options.recommended, "recommenders and classifiers", "this model is none")
    feed = open_documents_for(model, options.files, options.read)
    loaded = time.perf_counter()
    say_notes(list(feed.notes), options.show.quiet)
    metrics = model.program.evaluate(feed, cores())
    if options.show.json:
        print_evaluation(options, model.program.name, feed.parts, metrics, (began, loaded), notes=list(feed.notes))
    else:
        print(f"{feed.parts:,} documents: {metrics_text(metrics)}")
    return 0
