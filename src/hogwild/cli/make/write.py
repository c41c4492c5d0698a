"""Writing a problem that is made, and saying how well its truth does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from hogwild.cli.outputs import check_outputs
from hogwild.cli.summary import print_json, say_notes
from hogwild.config import ShowConfig
from hogwild.errors import ConfigError
from hogwild.feeds.io.outfile import write_file
from hogwild.feeds.open import description_path
from hogwild.feeds.synthetic.truth import Truth
from hogwild.messages import say


class Making(NamedTuple):
    """A problem to be written: `write` puts it into a stream and counts it; `slots` describes its slots, if the format
    needs that."""

    output: str
    format: str
    truth: Truth
    write: Callable[[BinaryIO], None]
    slots: str
    notes: tuple[str, ...] = ()


class _Counted:
    """A stream that knows how much was written to it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.size, self.closed = stream, 0, False

    def write(self, data: Any) -> int:
        """Pass on."""
        self.stream.write(data)
        self.size += memoryview(data).nbytes
        return memoryview(data).nbytes

    def flush(self) -> None:
        """The stream is flushed by its owner."""

    def close(self) -> None:
        """The stream is closed by its owner."""


def write_counted(output: str, show: ShowConfig, write: Callable[[BinaryIO], None], beside: str = "") -> int:
    """Let `write` fill the output; returns its bytes. beside: a file that will be written too."""
    if show.json and output == "-":
        raise ConfigError("--json and the data cannot both go to standard output; add --output FILE.")
    check_outputs([output, beside], [show.config])
    with write_file(output) as stream:
        counted = _Counted(stream)
        write(counted)  # type: ignore[arg-type]
    return counted.size


def make(making: Making, show: ShowConfig, facts: dict[str, Any]) -> int:
    """Write it, then say what is in it; returns the exit code. facts: for the JSON object."""
    began = time.perf_counter()
    truth, notes = making.truth, list(making.notes)
    to_stdout = making.output == "-"
    described = str(description_path(making.output)) if making.slots and not to_stdout else ""
    size = write_counted(making.output, show, making.write, described)
    description = _describe(making, to_stdout, notes)
    say_notes(notes, show.quiet)
    two = len(truth.counts) == 2
    if show.json:
        shares = {"positive": truth.positive / truth.rows} if two else {"shares": (truth.counts / truth.rows).tolist()}
        print_json({
            "output": making.output, "format": making.format, "description": description, "rows": truth.rows, **facts,
            "nonzeros": truth.nonzeros, "bytes": size, **shares, "bayes": truth.bayes(),
            "truth": truth.reached(), "notes": notes, "seconds": time.perf_counter() - began,
        })  # fmt: skip
    elif not show.quiet:
        name = "data" if to_stdout else making.output
        kinds = f"{truth.positive / truth.rows:.1%} positive" if two else f"{len(truth.counts)} classes"
        say(f"{name}: {truth.rows:,} rows, {truth.nonzeros:,} nonzeros, {size / 1e6:.1f} MB, {kinds}")
        say(f"best possible on these rows, expected under the true chances: {_figures(truth.bayes())}")
        say(f"the true chances reach on the labels drawn: {_figures(truth.reached())}")
    return 0


def _describe(making: Making, to_stdout: bool, notes: list[str]) -> str | None:
    """Write the description of slots beside; returns its name."""
    if not making.slots:
        return None
    if to_stdout:
        notes.append("no description of the slots is written beside standard output; add --output FILE to get one.")
        return None
    path: Path = description_path(making.output)
    with write_file(str(path)) as stream:
        stream.write(making.slots.encode())
    notes.append(f"{path} describes the slots; keep it beside the data.")
    return str(path)


def _figures(found: dict[str, float]) -> str:
    names = {"auc": "AUC", "logloss": "log loss", "accuracy": "accuracy"}
    return ", ".join(f"{names[key]} {found[key]:.4f}" for key in names if key in found)
