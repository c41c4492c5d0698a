"""The end of a command: one JSON object, or a few lines for people."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from hogwild.executor.events import EpochEnded, Finished, Started
from hogwild.messages import printable_json
from hogwild.observe.logs import plain


def print_json(values: Mapping[str, Any]) -> None:
    """One object on standard output; NaN becomes null. Signs that cannot be shown or written are escaped."""
    utf8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    print(printable_json(json.dumps(plain(dict(values)), ensure_ascii=not utf8, allow_nan=False)))


def metrics_text(metrics: Mapping[str, float]) -> str:
    """Metrics in one line."""
    return "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())


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
    return {
        "program": program.name,
        "mode": started.mode,
        "threads": started.threads,
        "sharing": started.sharing,
        "lr": started.lr,
        "epochs": finished.epoch,
        "samples": finished.samples,
        "reason": finished.reason,
        "loss": finished.loss,
        "throughput": {
            "samples_per_second": finished.samples_per_second,
            "unit": program.unit,
            "units_per_second": finished.units_per_second,
        },
        "trace": trace_of(epochs),
    }
