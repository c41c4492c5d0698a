"""Ratings for a recommender that is trained already: `hogwild predict` and `hogwild evaluate` for recommenders."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hogwild.cli.apply.rows import ReadConfig
from hogwild.errors import ConfigError
from hogwild.messages import say

if TYPE_CHECKING:
    from hogwild.cli.apply.evaluate import Options as EvaluateOptions
    from hogwild.cli.apply.predict import Options as PredictOptions
    from hogwild.feeds.ratings.feed import RatingFeed
    from hogwild.programs.store import Model

RECOMMENDERS = ("matrix-factorization",)
"""Names of the programs that recommend."""

_AT_ONCE = 1 << 17  # pairs that are predicted together


def open_pairs(model: Model, files: tuple[str, ...], read: ReadConfig, with_ratings: bool) -> RatingFeed:
    """The files in the users and items of the model."""
    from hogwild.config import RatingConfig

    if read.label:
        raise ConfigError("--label is not for recommenders; name the columns user, item and rating in the header.")
    program: Any = model.program
    config = RatingConfig(
        format="auto" if read.format == "same" else read.format,  # type: ignore[arg-type]  # it checks
        bad_lines=read.bad_lines,
        bad_share=read.bad_share,
        invalid_utf8="replace" if read.invalid_utf8 == "replace" else "stop",
        pipe=read.pipe,
        cache=read.cache,
    )
    feed: RatingFeed = program.open(files, config, with_ratings=with_ratings)
    return feed


def predict_pairs(options: PredictOptions, model: Model, began: float) -> int:
    """Write a rating, chance or score for each user and item of the files; returns the exit code."""
    from dataclasses import replace

    from hogwild.arrays import Ratings
    from hogwild.cli.summary import print_json
    from hogwild.feeds.io.outfile import write_file

    if options.write.proba:
        raise ConfigError("--proba is for classifiers and taggers, and this model is none; leave it out.")
    program: Any = model.program
    feed = open_pairs(model, options.files, options.read, with_ratings=False)
    with write_file(options.write.output) as stream:
        for start in range(0, len(feed), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            users, items, ratings = feed.samples
            part = replace(feed, samples=Ratings(users[rows], items[rows], ratings[rows]))
            values = program.predict(part).tolist()
            stream.write("".join(f"{value:.6g}\n" for value in values).encode())
    if not options.show.quiet:
        for note in feed.notes:
            say(f"note: {note}")
    if options.show.json:
        print_json(
            {
                "program": program.name,
                "model": options.model,
                "samples": len(feed),
                "output": options.write.output,
                "seconds": time.perf_counter() - began,
                "notes": feed.notes,
            }
        )
    return 0


def evaluate_pairs(options: EvaluateOptions, model: Model, began: float) -> int:
    """Print how good a recommender is; returns the exit code. began: when the command did."""
    from hogwild.cli.summary import metrics_text, print_json

    program: Any = model.program
    feed = open_pairs(model, options.files, options.read, with_ratings=program.loss == "squared")
    loaded = time.perf_counter()
    metrics = program.evaluate(feed, top=options.recommended.top)
    notes = [*feed.notes, *program.evaluation_notes()]
    if not options.show.quiet:
        for note in notes:
            say(f"note: {note}")
    if options.show.json:
        print_json(
            {
                "program": program.name,
                "model": options.model,
                "samples": len(feed),
                "metrics": metrics,
                "unknown": {"users": program.unknown[0], "items": program.unknown[1]},
                "seconds": {"load": loaded - began, "evaluate": time.perf_counter() - loaded},
                "notes": notes,
            }
        )
    else:
        print(metrics_text(metrics))
    return 0
