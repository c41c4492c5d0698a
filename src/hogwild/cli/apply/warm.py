"""`hogwild warm`: compile ahead what a model, or what common commands need, so that no later process has to."""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from hogwild.cli.flags import Page
from hogwild.cli.summary import print_json, say_notes
from hogwild.config import ShowConfig
from hogwild.config.options import Shown
from hogwild.errors import ConfigError, HogwildError, shorten

PAGE = Page(
    "hogwild warm",
    """Compile ahead, for the image of a container or a new machine: what a model needs to predict from files and row by
row; without one, what training and prediction need at their usual options (a minute or two). The code goes to
the cache (see hogwild cache); later processes of the same user, processor and version find it there.

Examples:
  hogwild warm model
  hogwild warm model --rows rows.csv
  hogwild warm""",
)
_ALL = "all"
_ROWS = 40  # of made data: as many as make a label a class
_SENTENCE = "the cat sat on the mat and looked at the dog"


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = _ALL
    """Directory of a trained model. Default: all, which is no model, but common commands."""
    rows: Annotated[str, Shown("FILE")] = ""
    """Data as it will come, to be predicted. Default: a row that is made by what the model knows of its data."""
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Compile."""
    from hogwild.config import cache_home
    from hogwild.kernels.compiler.codecache import code_cache, kept
    from hogwild.kernels.compiler.jit import compiling_ahead

    if code_cache() is None:
        raise ConfigError(f"compiled code is not kept: {cache_home()} cannot be used; set HOGWILD_CACHE.")
    if options.model == _ALL and options.rows:
        raise ConfigError("--rows is for a model; name it, or leave --rows out.")
    began, before = time.perf_counter(), sum(state.bytes for state in kept())
    with compiling_ahead(), tempfile.TemporaryDirectory() as made:
        jobs = list(_for_all(Path(made)) if options.model == _ALL else _for_model(options, Path(made)))
        notes = [note for job in jobs for note in _try(job)]
    seconds, added = time.perf_counter() - began, sum(state.bytes for state in kept()) - before
    say_notes(notes, options.show.quiet)
    if options.show.json:
        print_json({"model": options.model, "bytes": added, "notes": notes, "seconds": seconds})
    elif not options.show.quiet:
        print(f"compiled in {seconds:.1f} s: {added / 1e6:.1f} MB more in {cache_home()}.")
    return 0


def _try(job: Sequence[str]) -> Iterator[str]:
    """Run a command for what it compiles; a note if it fails."""
    from hogwild.cli.main import main

    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        code = main(list(job))
    if code:
        yield f"hogwild {' '.join(job[:2])} was not compiled in full: {shorten(said.getvalue().strip())}"


def _for_model(options: Options, made: Path) -> Iterator[list[str]]:
    """Prediction from files, and of one row."""
    from hogwild.programs.store import load_model
    from hogwild.programs.words.mapped import holds_words

    if holds_words(Path(options.model)):
        if options.rows:
            raise ConfigError(f"{options.model}: word vectors predict nothing; leave --rows out.")
        yield ["neighbors", options.model, _first_word(options.model), "--quiet"]
        return
    model = load_model(options.model)
    program: Any = model.program
    files = [options.rows] if options.rows else list(_made_files(program, model.schema, made))
    _predict_one(program, model.schema)
    for file in files:
        yield ["predict", options.model, file, "--output", str(made / "out"), "--quiet"]


def _first_word(path: str) -> str:
    from hogwild.programs.words.vectors import Vectors

    return str(Vectors.load(path).words[0])


def _predict_one(program: Any, schema: Mapping[str, Any]) -> None:
    """One row at a time, as a service asks for it; what has no such form is left out."""
    row: Any = None
    if schema.get("format") == "table":
        row = _row_of(schema)
    elif program.name == "matrix-factorization":
        row = (program.users[0], program.items[0])
    elif "templates" in schema or hasattr(program, "tag"):
        with contextlib.suppress(HogwildError):
            program.tag([[word] * max(1, len(schema.get("columns", ["w"]))) for word in _SENTENCE.split()])
        return
    elif not schema.get("slots"):
        row = {0: 1.0}
    if row is not None and hasattr(program, "predict_one"):
        program.predict_one(row)


def _row_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table: numbers, known categories, words."""
    known = dict(entry.split("=", 1) for entry in reversed(schema["vocabulary"]) if "\\" not in entry)
    row: dict[str, Any] = dict.fromkeys(schema["numeric"], 1.5)
    row |= {name: known.get(name) or "a" for name in schema["categorical"]}
    return row | ({schema["text"]: _SENTENCE} if schema["text"] else {})


def _made_files(program: Any, schema: Mapping[str, Any], made: Path) -> Iterator[str]:
    """A small file as the model reads it."""
    if schema.get("format") == "table":
        row = dict.fromkeys(schema["columns"], "0") | {name: str(v) for name, v in _row_of(schema).items()}
        with open(made / "rows.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            if schema["header"]:
                table.writerow(schema["columns"])
            table.writerow([row[name] for name in schema["columns"]])
        yield str(made / "rows.csv")
    elif schema.get("format") == "svmlight":
        (made / "rows.svm").write_text("0 1:1 2:0.5\n0 1:1\n")
        yield str(made / "rows.svm")
    elif program.name == "matrix-factorization":
        (made / "pairs.tsv").write_text(f"{program.users[0]}\t{program.items[0]}\n", encoding="utf-8")
        yield str(made / "pairs.tsv")
    elif "columns" in schema and hasattr(program, "tag"):
        tag = program.tags[0]
        fields = max(1, len(schema["columns"]) - 1)
        lines = ["\t".join([*[word] * fields, tag]) + "\n" for word in _SENTENCE.split()]
        (made / "text.conll").write_text("".join(lines) + "\n", encoding="utf-8")
        yield str(made / "text.conll")


def _for_all(made: Path) -> Iterator[list[str]]:
    """Training on little data of each kind, evaluation and prediction."""
    table, text, tags, words = (str(made / name) for name in ("rows.csv", "texts.tsv", "text.conll", "text.txt"))
    rows = [(k * 0.5, "red" if k % 3 else "blue", "yes" if k % 2 else "no") for k in range(_ROWS)]
    Path(table).write_text("a,b,label\n" + "".join(f"{a},{b},{label}\n" for a, b, label in rows))
    Path(text).write_text("".join(f"{label}\t{_SENTENCE} {b}\n" for _, b, label in rows))
    Path(tags).write_text(("".join(f"{word} N\n" for word in _SENTENCE.split()) + "\n") * _ROWS)
    Path(words).write_text(f"{_SENTENCE}\n" * _ROWS)
    svm, rated = str(made / "rows.svm"), str(made / "ratings.tsv")
    yield ["make-dataset", "sparse", "--rows", "100", "--features", "50", "--nonzeros", "5", "--output", svm, "--quiet"]
    yield ["make-dataset", "ratings", "--ratings", "500", "--output", rated, "--quiet"]
    for kind, file, *more in (
        ("classifier", table), ("classifier", svm), ("classifier", text, "--model", "text"),
        ("classifier", table, "--model", "fm"), ("ctr", table, "--label", "label"), ("tagger", tags),
        ("recommender", rated),
    ):  # fmt: skip
        model = str(made / f"{kind}-{Path(file).stem}-{'-'.join(more)}")
        yield ["train", kind, file, *more, "--epochs", "1", "--output", model, "--quiet"]
        yield ["evaluate", model, file, "--quiet"]
        yield ["predict", model, file, "--output", str(made / "out"), "--quiet"]
    yield ["train", "word2vec", words, "--min-count", "1", "--epochs", "1", "--output", str(made / "words"), "--quiet"]
    yield ["neighbors", str(made / "words"), "cat", "--quiet"]
