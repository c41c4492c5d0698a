"""Models of rows in use: files read as their training files were, `hogwild evaluate` and `hogwild predict` for them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hogwild.arrays import DenseRows
from hogwild.cli.apply.lines import arriving_feeds
from hogwild.cli.apply.options import EvaluateOptions, PredictOptions, ReadConfig, WriteConfig
from hogwild.cli.summary import metrics_text, print_evaluation, print_prediction, say_notes
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError
from hogwild.feeds.io.outfile import write_file
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.feed import Feed
from hogwild.machine import cores
from hogwild.programs.sparse.metrics import Bin, calibration_table
from hogwild.programs.sparse.supervised import number_targets
from hogwild.programs.store import Model

_AT_ONCE = 1 << 17  # rows that are predicted together
_NOTES = 20  # that are told of lines which came one by one


def open_for(model: Model, files: tuple[str, ...], reading: ReadConfig, unlabelled: bool = False) -> Feed:
    """The files as samples with the ids of the model; with `unlabelled` they need no labels."""
    feed = open_feed(files, config_for(model, reading, unlabelled), schema=model.schema)
    if not model.schema and feed.schema.get("format") == "table":
        raise ConfigError(
            "the model does not say which columns its features were, so none can be found here; save it again with "
            "save_model(path, program, feed_schema=feed.schema)."
        )
    return feed


def config_for(model: Model, reading: ReadConfig, unlabelled: bool) -> FeedConfig:
    """How files are read for a model: as those of training, unless the user says otherwise."""
    changed = {name: value for name, value in vars(reading).items() if value not in ("same", "") or name == "pipe"}
    return replace(model.feed_config or FeedConfig(), **changed, unlabelled=unlabelled)


def pieces(feed: Feed) -> Iterator[Feed]:
    """The feed in runs of rows, so that what is made of them fits into memory."""
    samples = feed.samples
    for start in range(0, len(feed), _AT_ONCE):
        rows = slice(start, min(start + _AT_ONCE, len(feed)))
        parts = {"targets": samples.targets[rows], "importance": samples.importance[rows]}
        if isinstance(samples, DenseRows):
            parts["matrix"] = samples.matrix[rows]
        else:
            offsets = samples.offsets[rows.start : rows.stop + 1]
            entries = slice(int(offsets[0]), int(offsets[-1]))
            parts["offsets"] = offsets - offsets[0]
            whole = {"ids": entries, "values": entries, "slots": entries, "dense": rows}
            parts |= {name: getattr(samples, name)[part] for name, part in whole.items() if name in samples._fields}
        yield replace(feed, samples=samples._replace(**parts))  # type: ignore[arg-type]


def unknown_note(ignored: int) -> list[str]:
    """What to say about features that the model has not seen."""
    return [f"{ignored:,} entries have features that the model does not know; they count as 0."] if ignored else []


# -- evaluate ---------------------------------------------------------------------------------------------------------


def evaluate_rows(options: EvaluateOptions, model: Model, began: float) -> int:
    """Print how good a model of rows is; returns the exit code. began: when the command did."""
    feed = open_for(model, options.files, options.read)
    loaded = time.perf_counter()
    program: Any = model.program
    metrics = program.evaluate(feed, cores(), **_choice(options.recommended))
    table = calibration_of(program, feed)
    notes = [*feed.notes, *unknown_note(program.ignored)]
    say_notes(notes, options.show.quiet)
    if options.show.json:
        bins = [each._asdict() for each in table]
        times = (began, loaded)
        print_evaluation(options, program.name, len(feed), metrics, times, calibration=bins, notes=notes)
    else:
        print(metrics_text(metrics))
        if table and not options.show.quiet:
            print_table(table)
    return 0


def _choice(given: Any) -> dict[str, Any]:
    """Which labels are meant, where the user says it."""
    chosen = {"top": given.top} if given.top else {}
    return chosen if given.threshold is None else {**chosen, "threshold": given.threshold}


def calibration_of(program: Any, feed: Feed) -> list[Bin]:
    """Predictions in bins, against what came; none for models that give no probability of one of two classes."""
    classes = getattr(program, "classes", None) or ()
    if len(classes) != 2 or getattr(program, "several", False) or getattr(program, "loss", "") != "logistic":
        return []
    importance = feed.samples.importance
    weight = None if bool((importance == 1).all()) else importance
    chances = program.predict_proba(feed, cores())[:, 1]
    return calibration_table(chances, number_targets(feed, program.classes) == 1, weight)


def print_table(table: Sequence[Bin]) -> None:
    """A line for each bin."""
    print(f"{'predicted':>17} {'samples':>12} {'mean':>8} {'real':>8}")
    for each in table:
        span = f"{each.low:.4f} - {each.high:.4f}"
        print(f"{span:>17} {each.rows:>12,} {each.predicted:>8.4f} {each.positive:>8.4f}")


# -- predict ----------------------------------------------------------------------------------------------------------


def predict_rows(options: PredictOptions, model: Model, began: float) -> int:
    """Write a label, a value or the chances of each row; returns the exit code. began: when the command did."""
    program: Any = model.program
    if options.files == ("-",) and model.schema and not options.read.pipe:
        feeds = arriving_feeds(config_for(model, options.read, unlabelled=True), model.schema)
    else:
        feeds = iter([open_for(model, options.files, options.read, unlabelled=True)])
    told: dict[str, None] = {}
    rows = ignored = 0
    with write_file(options.write.output) as stream:
        for feed in feeds:
            for piece in pieces(feed):
                stream.write("".join(_lines(program, piece, options.write)).encode())
                ignored += program.ignored
            stream.flush()
            rows += len(feed)
            if len(told) < _NOTES:
                told |= dict.fromkeys(feed.notes)
    notes = list(told)
    if options.write.proba and not _choice(options.write):
        notes.append(f"columns: {' '.join(str(name) for name in program.classes or ())}")
    notes += unknown_note(ignored)
    say_notes(notes, options.show.quiet)
    classes = list(program.classes or ())
    print_prediction(options, program.name, rows, began, classes=classes, notes=notes)
    return 0


def _lines(program: Any, feed: Feed, write: WriteConfig) -> Iterator[str]:
    threads, chosen = cores(), _choice(write)
    if chosen or (getattr(program, "several", False) and not write.proba):
        for found in program.predict_labels(feed, **chosen, threads=threads):
            parts = (f"{_in_line(label)}\t{chance:.6g}" if write.proba else _in_line(label) for label, chance in found)
            yield "\t".join(parts) + "\n"
    elif write.proba:
        for row in program.predict_proba(feed, threads).tolist():
            yield "\t".join(f"{value:.6g}" for value in row) + "\n"
    elif program.classes:
        names = {name: f"{_in_line(name)}\n" for name in program.classes}
        for label in program.predict(feed, threads).tolist():
            yield names[label]
    else:
        for value in program.predict(feed, threads).tolist():
            yield f"{value:.6g}\n"


def _in_line(label: Any) -> str:
    """One line a row, whatever a label holds."""
    return str(label).replace("\n", "\\n")
