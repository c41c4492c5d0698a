"""`hogwild neighbors`: the words that are nearest to a word."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.flags import Page
from hogwild.config import ShowConfig
from hogwild.config.options import Shown, require

if TYPE_CHECKING:
    from hogwild.programs.words.vectors import Similar, Vectors

PAGE = Page(
    "hogwild neighbors",
    """Show the words that are nearest to a word, for each of several words. With --minus, those nearest to the sum of
all words minus these: king - man + woman.

Examples:
  hogwild neighbors model paris
  hogwild neighbors model monday seven green --topn 5
  hogwild neighbors vectors.vec king woman --minus man --json""",
)


@dataclass(frozen=True)
class SearchConfig:
    """What is looked for."""

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
    """Words as they stand in the vocabulary."""
    search: SearchConfig = field(default_factory=SearchConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Search and print."""
    from hogwild.cli.summary import print_json
    from hogwild.programs.words.vectors import Vectors

    began = time.perf_counter()
    vectors = Vectors.load(options.model)
    loaded = time.perf_counter()
    found = _search(vectors, options)
    seconds = {"load": loaded - began, "search": time.perf_counter() - loaded}
    if options.show.json:
        queries = [
            {
                "words": list(words),
                "minus": list(options.search.minus),
                "neighbors": [{"word": word, "similarity": value} for word, value in similar],
            }
            for words, similar in found
        ]
        shape: dict[str, Any] = {"words": len(vectors), "dim": vectors.dim}
        print_json({"model": options.model, **shape, "queries": queries, "seconds": seconds})
    else:
        _print(found, options.search.minus)
    return 0


def _search(vectors: Vectors, options: Options) -> list[tuple[tuple[str, ...], Similar]]:
    """The words of each query, and what is nearest to them."""
    search = options.search
    if search.minus:
        similar = vectors.most_similar(options.words, search.minus, search.topn, search.restrict_vocab)
        return [(options.words, similar)]
    each = vectors.neighbors(options.words, search.topn, search.restrict_vocab)
    return [((word,), similar) for word, similar in zip(options.words, each, strict=True)]


def _print(found: list[tuple[tuple[str, ...], Similar]], minus: tuple[str, ...]) -> None:
    from hogwild.cli.wordtables import add_row, make_table, print_tables

    tables = []
    for words, similar in found:
        title = " + ".join(words) + "".join(f" - {word}" for word in minus)
        table = make_table([title, "similarity"])
        for word, value in similar:
            add_row(table, word, [f"{value:.4f}"])
        tables.append(table)
    print_tables(tables)
