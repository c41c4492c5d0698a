"""`hogwild inspect`: what a model has learnt, by its strongest weights."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.flags import Page
from hogwild.cli.summary import add_row, make_table, print_json, print_tables
from hogwild.config import ShowConfig
from hogwild.config.options import Shown, require
from hogwild.errors import ConfigError

if TYPE_CHECKING:
    from hogwild.programs.inspect import Strongest

PAGE = Page(
    "hogwild inspect",
    """Show the strongest weights of a model. Of a tagger: features that speak for a tag or against it, pairs of
neighbouring tags (transitions), and features that weigh such pairs (rich edges). Of a linear model: its features, by
the names or numbers that the model knows.

Examples:
  hogwild inspect tagger --top 20
  hogwild inspect tagger --tag B-NP --feature 'suffix('
  hogwild inspect model --json""",
)


@dataclass(frozen=True)
class SearchConfig:
    """What is looked for."""

    top: int = 20
    """Weights of each kind and sign to show."""
    tag: Annotated[str, Shown("TAG")] = ""
    """Only weights of this tag, or class."""
    feature: Annotated[str, Shown("TEXT")] = ""
    """Only features that have this text in their names."""

    def __post_init__(self) -> None:
        require(self, "top", self.top >= 1, "it must be at least 1. Try 20.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained model."""
    search: SearchConfig = field(default_factory=SearchConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Search and print."""
    from hogwild.programs.inspect import Asked, strongest_of
    from hogwild.programs.store import load_model
    from hogwild.programs.taggers.tagger import Tagger
    from hogwild.programs.words.mapped import holds_words

    if holds_words(Path(options.model)):
        raise ConfigError(f"{options.model}: word vectors have no weights by name; see hogwild neighbors.")
    began = time.perf_counter()
    model = load_model(options.model)
    loaded = time.perf_counter()
    program: Any = model.program
    found = strongest_of(program, model.schema, Asked(**vars(options.search)))
    seconds = {"load": loaded - began, "search": time.perf_counter() - loaded}
    if options.show.json:
        classes = program.tags if isinstance(program, Tagger) else program.classes or ()
        kinds = {strongest.kind.replace(" ", "_"): strongest.to_json() for strongest in found}
        print_json(
            {"program": program.name, "model": options.model, "classes": list(classes), **kinds, "seconds": seconds}
        )
    else:
        _print(found)
    return 0


def _print(found: list[Strongest]) -> None:
    from rich.text import Text

    from hogwild.messages import counted

    shown: list[Any] = []
    for strongest in found:
        share = strongest.zeros / max(1, strongest.weights)
        zeros = f", {share:.1%} of them 0" if strongest.weights else ""
        shown.append(Text(f"{strongest.kind}: {counted(strongest.weights, 'weight')}{zeros}", "bold"))
        if not strongest.positive and not strongest.negative:
            shown.append(Text())
            continue
        table = make_table([*strongest.heads, "weight"], words=len(strongest.heads))
        for listed in (strongest.positive, strongest.negative):
            for names, weight in listed:
                add_row(table, *names, f"{weight:+.4f}")
            table.add_section()
        shown.append(table)
    print_tables(shown)
