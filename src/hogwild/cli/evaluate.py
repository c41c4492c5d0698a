"""`hogwild evaluate`: how good a trained model is on labelled files."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Annotated, Any

from hogwild.cli.flags import Page
from hogwild.cli.reading import ReadConfig
from hogwild.config import ShowConfig
from hogwild.machine import cores
from hogwild.options import Shown

PAGE = Page(
    "hogwild evaluate",
    """Measure a trained model on labelled files.

Examples:
  hogwild evaluate model test.svm
  hogwild evaluate model test-*.csv --json""",
)


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: Annotated[str, Shown("MODEL", positional=True)] = ""
    """Directory of a trained model."""
    files: Annotated[tuple[str, ...], Shown("FILE...", positional=True)] = ()
    """Labelled files; globs are expanded, - is standard input."""
    read: ReadConfig = field(default_factory=ReadConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Print the metrics."""
    from hogwild.cli.reading import open_for, unknown_note
    from hogwild.cli.summary import metrics_text, print_json
    from hogwild.programs.store import load_model

    began = time.perf_counter()
    model = load_model(options.model)
    feed = open_for(model, options.files, options.read)
    loaded = time.perf_counter()
    program: Any = model.program
    metrics = program.evaluate(feed, cores())
    notes = [*feed.notes, *unknown_note(program.ignored)]
    if not options.show.quiet:
        for note in notes:
            print(f"note: {note}", file=sys.stderr)
    if options.show.json:
        print_json(
            {
                "program": program.name,
                "model": options.model,
                "samples": len(feed),
                "metrics": metrics,
                "seconds": {"load": loaded - began, "evaluate": time.perf_counter() - loaded},
                "notes": notes,
            }
        )
    else:
        print(metrics_text(metrics))
    return 0
