"""The end of a command: one JSON object, or a few lines and tables for people.

Nothing heavy is imported before it is needed: the help of every command passes here.
"""

from __future__ import annotations

import codecs
import json
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hogwild.messages import for_output, printable_json, say

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from hogwild.cli.apply.options import EvaluateOptions, PredictOptions
    from hogwild.executor.events import EpochEnded, Finished, Started

_UNLIMITED = 1000  # columns of a file or a pipe: nothing is folded there


def print_json(values: Mapping[str, Any]) -> None:
    """One object on standard output; NaN becomes null. Signs that cannot be shown or written are escaped."""
    from hogwild.observe.logs import plain

    utf8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    print(printable_json(json.dumps(plain(dict(values)), ensure_ascii=not utf8, allow_nan=False)))


def say_notes(notes: Iterable[str], quiet: bool) -> None:
    """What the user should know, a line each on standard error."""
    if not quiet:
        for note in notes:
            say(f"note: {note}")


def metrics_text(metrics: Mapping[str, float]) -> str:
    """Metrics in one line."""
    return "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())


# -- models in use ----------------------------------------------------------------------------------------------------


def print_evaluation(
    options: EvaluateOptions, program: str | None, samples: int, metrics: Mapping[str, float],
    times: tuple[float, float], **more: Any,
) -> None:  # fmt: skip
    """The JSON object of `hogwild evaluate`, of one shape for all models: `metrics` by name, shares from 0 to 1.

    times: when the command began, and when all was read. more: what this kind of model has besides.
    """
    began, loaded = times
    seconds = {"load": loaded - began, "evaluate": time.perf_counter() - loaded}
    about = {"program": program, "model": options.model, "samples": samples, "metrics": metrics}
    print_json({**about, **more, "seconds": seconds})


def print_prediction(options: PredictOptions, program: str, samples: int, began: float, **more: Any) -> None:
    """The JSON object of `hogwild predict`, if it is asked for. began: when the command did."""
    if options.show.json:
        about = {"program": program, "model": options.model, "samples": samples, "output": options.write.output}
        print_json({**about, **more, "seconds": time.perf_counter() - began})


# -- runs -------------------------------------------------------------------------------------------------------------


def trace_of(epochs: Sequence[EpochEnded]) -> dict[str, Any] | None:
    """Gradient errors of each epoch and worker, and of all together; None when they were not counted."""
    from hogwild.executor.trace import add_up

    traced = [event for event in epochs if event.trace]
    if not traced:
        return None
    return {
        "epochs": [{"epoch": event.epoch, "workers": list(event.trace)} for event in traced],
        **add_up(tuple(entry for event in traced for entry in event.trace)),
    }


def run_summary(program: Any, started: Started, finished: Finished, epochs: Sequence[EpochEnded]) -> dict[str, Any]:
    """What a run was and did, without its metrics and the seconds around it."""
    throughput = {
        "samples_per_second": finished.samples_per_second, "unit": program.unit,
        "units_per_second": finished.units_per_second,
    }  # fmt: skip
    device = {"device": started.device} if started.device else {}
    return {
        "program": program.name, **device, "mode": started.mode, "threads": started.threads, "sharing": started.sharing,
        "lr": started.lr, "epochs": finished.epoch, "samples": finished.samples, "reason": finished.reason,
        "loss": finished.loss, "throughput": throughput, "trace": trace_of(epochs),
    }  # fmt: skip


# -- tables -----------------------------------------------------------------------------------------------------------


def make_table(columns: Sequence[str], words: int = 1) -> Table:
    """An empty table; the first column, or more of them, is of words, the others are of numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns[:words]:
        table.add_column(Text(for_output(name)), overflow="fold")
    for name in columns[words:]:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def add_row(table: Table, *cells: str, bold: bool = False) -> None:
    """A row; words are no markup, whatever signs they hold."""
    from rich.text import Text

    table.add_row(*(Text(for_output(cell), "bold" if bold else "") for cell in cells))


def points(value: float) -> str:
    """A share, or a correlation, in points of 100; a dash where there is none."""
    return "–" if math.isnan(value) else f"{100 * value:.1f}"


def print_tables(tables: Iterable[RenderableType]) -> None:
    """Print to standard output."""
    from rich.console import Console

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _UNLIMITED)
    for table in tables:
        console.print(table)
