"""`hogwild inspect`: what a model has learnt, by its strongest weights; what makes up one of its predictions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.apply.options import ReadConfig, refuse
from hogwild.cli.flags import Page
from hogwild.cli.summary import add_row, make_table, print_json, print_tables
from hogwild.config import ShowConfig
from hogwild.config.options import Shown, require
from hogwild.errors import ConfigError

if TYPE_CHECKING:
    from hogwild.programs.inspecting.contributions import Explanation
    from hogwild.programs.inspecting.strongest import Found, Listing, Strongest

PAGE = Page(
    "hogwild inspect",
    """Show what a model has learnt: its strongest weights, by the names of features. Of a tagger: features that speak
for a tag or against it, pairs of neighbouring tags (transitions), and features that weigh such pairs (rich edges). Of a
classifier: words, categories and columns; of a factorization machine also pairs of them; of dense layers what each
category and number does alone; of a recommender biases and sizes; of words how frequent they are.

With --row: what makes up the prediction for one line of a file.

Examples:
  hogwild inspect tagger --top 20
  hogwild inspect tagger --tag B-NP --feature 'suffix('
  hogwild inspect model --json
  hogwild inspect model --row new.csv:17""",
)


@dataclass(frozen=True)
class SearchConfig:
    """What is looked for."""

    top: int = 20
    """Weights of each kind and sign to show; with --row, terms of the score."""
    tag: Annotated[str, Shown("TAG")] = ""
    """Only weights of this tag, or class. With --row: the class whose score is explained; of a tagger, the tag that the
    best one is held against."""
    feature: Annotated[str, Shown("TEXT")] = ""
    """Only features that have this text in their names."""
    row: Annotated[str, Shown("FILE:LINE")] = ""
    """Show what makes up the prediction for this line of a file, counted from 1."""

    def __post_init__(self) -> None:
        require(self, "top", self.top >= 1, "it must be at least 1. Try 20.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained model."""
    search: SearchConfig = field(default_factory=SearchConfig)
    read: ReadConfig = field(default_factory=ReadConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Search and print."""
    from hogwild.programs.inspecting.model import inspect
    from hogwild.programs.inspecting.strongest import Asked, of_arrays
    from hogwild.programs.store import PROGRAMS, arrays_in, load_model, program_in
    from hogwild.programs.taggers.tagger import Tagger

    search = options.search
    if search.row and search.feature:
        raise ConfigError("--feature is for weights, and --row shows a prediction; leave one of them out.")
    if not search.row:
        refuse(options.read, "--row", "it is not given")
    began = time.perf_counter()
    asked = (search.top, search.tag, search.feature)
    name = program_in(options.model)
    classes: Sequence[Any] = ()
    if name not in PROGRAMS:
        if search.row:
            raise ConfigError(f"--row is for programs of this package, and {options.model} is of another ({name}).")
        arrays = arrays_in(options.model)
        loaded = time.perf_counter()
        found = of_arrays(arrays, Asked(*asked))
    else:
        model = load_model(options.model)
        program: Any = model.program
        loaded = time.perf_counter()
        if search.row:
            return _explain(options, model, (began, loaded))
        found = inspect(program, *asked)
        classes = program.tags if isinstance(program, Tagger) else getattr(program, "classes", None) or ()
    seconds = {"load": loaded - began, "search": time.perf_counter() - loaded}
    if options.show.json:
        kinds = {strongest.kind.replace(" ", "_"): strongest.to_json() for strongest in found}
        print_json({"program": name, "model": options.model, "classes": list(classes), **kinds, "seconds": seconds})
    else:
        _print(found)
    return 0


def _print(found: Found) -> None:
    from hogwild.programs.inspecting.strongest import Listing

    shown: list[Any] = []
    for each in found:
        shown += _listing(each) if isinstance(each, Listing) else _strongest(each)
    print_tables(shown)


def _strongest(found: Strongest) -> list[Any]:
    from rich.text import Text

    from hogwild.messages import counted, for_output

    share = found.zeros / max(1, found.weights)
    zeros = f", {share:.1%} of them 0" if found.weights else ""
    note = f"; {for_output(found.note)}" if found.note else ""
    title = Text(f"{found.kind}: {counted(found.weights, 'weight')}{zeros}{note}", "bold")
    if not found.positive and not found.negative:
        return [title, Text()]
    table = make_table([*found.heads, "weight"], words=len(found.heads))
    for listed in (found.positive, found.negative):
        for names, weight in listed:
            add_row(table, *names, f"{weight:+.4f}")
        table.add_section()
    return [title, table]


def _listing(found: Listing) -> list[Any]:
    from rich.text import Text

    table = make_table(found.heads, words=found.words)
    for row in found.rows:
        add_row(table, *(f"{cell:,}" if isinstance(cell, int) else f"{cell:.4f}" if isinstance(cell, float) else cell
                         for cell in row))  # fmt: skip
    return [Text(f"{found.kind}: {len(found.rows):,} of {found.of:,}", "bold"), table]


# -- one prediction ---------------------------------------------------------------------------------------------------


def _explain(options: Options, model: Any, times: tuple[float, float]) -> int:
    from hogwild.cli.apply.single import Place, explain_place

    search = options.search
    found = explain_place(model, Place.of(search.row), options.read, search.tag)
    began, loaded = times
    if options.show.json:
        seconds = {"load": loaded - began, "explain": time.perf_counter() - loaded}
        rows = [each.to_json(search.top) for each in found]
        print_json({"program": model.program.name, "model": options.model, "rows": rows, "seconds": seconds})
        return 0
    print_tables([part for each in found for part in _explained(each, search.top)])
    return 0


def _explained(found: Explanation, top: int) -> list[Any]:
    from rich.text import Text

    from hogwild.messages import counted, for_output

    told = for_output(f"{found.where}: {found.predicted}; the score of {found.of} is {found.score:+.4f}")
    valued = any(term.value is not None for term in found.terms)
    table = make_table(["feature", *["value"] * valued, "contribution"])
    for term in found.terms[:top]:
        value = "" if term.value is None else f"{term.value:.6g}"
        add_row(table, term.name, *[value] * valued, f"{term.amount:+.4f}")
    table.add_section()
    others = found.terms[top:]
    ends = [("base", found.base)] if found.base or not found.terms else []
    if others:
        ends.append((f"{counted(len(others), 'other term')}", sum(term.amount for term in others)))
    if found.rest:
        ends.append(("rest", found.rest))
    for name, amount in [*ends, ("score", found.score)]:
        add_row(table, name, *[""] * valued, f"{amount:+.4f}")
    return [Text(told, "bold"), table, Text(for_output(found.how.capitalize() + ".")), Text()]
