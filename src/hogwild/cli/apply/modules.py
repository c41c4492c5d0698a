"""Modules in use: `hogwild evaluate` and `hogwild predict` for a user's PyTorch module."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from hogwild.cli.apply.options import EvaluateOptions, PredictOptions, ReadConfig
from hogwild.cli.apply.rows import open_for
from hogwild.cli.summary import metrics_text, print_evaluation, print_prediction, say_notes
from hogwild.errors import ConfigError
from hogwild.feeds.io.outfile import write_file
from hogwild.programs.store import Model


def _opened(model: Model, files: tuple[str, ...], reading: ReadConfig, unlabelled: bool) -> Any:
    program: Any = model.program
    if program.read is not None:
        return program.feed_from(program.read(files))
    return open_for(model, files, reading, unlabelled)


def evaluate_module(options: EvaluateOptions, model: Model, began: float) -> int:
    """Print how good a module is; returns the exit code. began: when the command did."""
    program: Any = model.program
    feed = _opened(model, options.files, options.read, unlabelled=False)
    loaded = time.perf_counter()
    metrics = program.evaluate(feed)
    notes = [*feed.notes, *program.remarks(feed)]
    say_notes(notes, options.show.quiet)
    if options.show.json:
        print_evaluation(options, program.name, program.epoch_samples(feed), metrics, (began, loaded), notes=notes)
    else:
        print(metrics_text(metrics))
    return 0


def predict_module(options: PredictOptions, model: Model, began: float) -> int:
    """Write what the module gives for each sample, with tabs between; returns the exit code."""
    program: Any = model.program
    if options.write.proba:
        raise ConfigError("--proba is for classifiers, and a module gives what it gives; leave it out.")
    feed = _opened(model, options.files, options.read, unlabelled=True)
    found = program.predict(feed)
    with write_file(options.write.output) as stream:
        stream.write("".join(_lines(found)).encode())
    notes = [*feed.notes, *program.remarks(feed)]
    say_notes(notes, options.show.quiet)
    print_prediction(options, program.name, len(found), began, notes=notes)
    return 0


def _lines(outputs: Any) -> Iterator[str]:
    for row in outputs.reshape(len(outputs), -1).tolist():
        yield "\t".join(f"{value:.6g}" for value in row) + "\n"
