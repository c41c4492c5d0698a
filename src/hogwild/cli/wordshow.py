"""The part of the demonstration about words: vectors from the documentation inside the Python installation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from hogwild.cli.demo import Options
from hogwild.cli.wordtables import make_table, print_tables
from hogwild.config import CorpusConfig
from hogwild.errors import InputError
from hogwild.executor.events import Finished, Started
from hogwild.executor.readers.display import count, show_progress
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.corpus.open import corpus_of
from hogwild.feeds.synthetic.docstrings import documentation
from hogwild.messages import for_output
from hogwild.programs.words.word2vec import Word2Vec

ASKED = ("file", "list", "thread", "integer", "mean", "minimum", "socket", "error")
_NEAR = 5  # neighbours shown
_EPOCHS = 20
_RARE = 20  # occurrences that a word needs: names that one module made up are of no interest


def show_words(options: Options, say: Callable[[str], None]) -> dict[str, Any] | None:
    """Gather text, train, look for neighbours; None where there is not enough text."""
    demo = options.demo
    say("5. gathering text: docstrings of the Python installation")
    began = time.perf_counter()
    try:
        corpus = corpus_of(documentation(demo.words), CorpusConfig(min_count=_RARE)).check_trainable()
    except InputError:
        say("   there is none: this Python came without its sources")
        return None
    gathered = time.perf_counter() - began
    say(f"6. word vectors of {len(corpus.words):,} words from {corpus.total:,} words of text, {demo.threads} workers")
    program = Word2Vec(dim=demo.dim, sample=1e-3)
    settings: dict[str, Any] = {"epochs": _EPOCHS, "lr": 0.03, "lr_end": 0.1, "shuffle": False, "seed": demo.seed}
    with show_progress(quiet=options.show.quiet, epochs=_EPOCHS) as show:
        for event in AsyncExecutor(threads=demo.threads, **settings).run(program, corpus):
            show(event)
            if isinstance(event, Started):
                started = event
            elif isinstance(event, Finished):
                finished = event
    vectors = program.vectors
    asked = [word for word in ASKED if word in vectors]
    return {
        "words": corpus.total,
        "vocabulary": len(corpus.words),
        "dim": demo.dim,
        "threads": started.threads,
        "seconds": {"gather": gathered, "compile": started.compile_seconds, "train": finished.train_seconds},
        "words_per_second": finished.units_per_second,
        "neighbors": {
            word: [near for near, _ in similar]
            for word, similar in zip(asked, vectors.neighbors(asked, topn=_NEAR), strict=True)
        },
    }


def print_words(found: dict[str, Any]) -> None:
    """The neighbours as a table."""
    from rich.text import Text

    table = make_table(["word"])
    table.add_column("nearest in use")
    for word, near in found["neighbors"].items():
        table.add_row(Text(word), Text(for_output(", ".join(near))))
    print_tables([table])
    print(f"Learnt from {found['words']:,} words of documentation at {count(found['words_per_second'])} words/s.")
