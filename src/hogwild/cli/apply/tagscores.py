"""How good a tagger is on tagged text: `hogwild evaluate` for taggers."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

from hogwild.cli.apply.evaluate import Options
from hogwild.cli.apply.taggedfiles import READING, TAGGING, open_tagged
from hogwild.cli.summary import print_json
from hogwild.executor.readers.display import show_progress
from hogwild.machine import cores
from hogwild.messages import for_output
from hogwild.programs.store import Model


def evaluate_tags(options: Options, model: Model, loading: float) -> int:
    """Evaluate a tagger and print its scores; returns the exit code. loading: seconds that the model took."""
    began = time.perf_counter()
    program: Any = model.program
    with show_progress(quiet=options.show.quiet) as display:
        display.phase(READING)
        feed = open_tagged(model, options.files, options.read, options.tagged)
        for note in feed.notes:
            display.say(f"note: {note}")
        loaded = time.perf_counter()
        display.phase(TAGGING)
        loss, scores = program.compare(feed, cores(), options.tagged.constrain)
    if options.show.json:
        found = scores.to_json()
        print_json(
            {
                "program": program.name,
                "model": options.model,
                "samples": len(feed),
                "constrain": options.tagged.constrain,
                "kind": found["kind"],
                "metrics": {"loss": loss, **found["metrics"]},
                "counts": found["counts"],
                "per_type": found["types"],
                "unseen": found["unseen"],
                "seconds": {"load": loading + loaded - began, "evaluate": time.perf_counter() - loaded},
                "notes": feed.notes,
            }
        )
    else:
        types = tuple(score._replace(name=for_output(score.name)) for score in scores.types)
        print(replace(scores, types=types).text())
        if not math.isnan(loss):
            print(f"\nloss {loss:.4f}: the mean over sentences of -log of the probability of the true tags")
    return 0
