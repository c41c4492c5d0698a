"""What all commands of `hogwild experiment` do: show how far it is, save after each run, end in a table."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from statistics import median
from typing import TYPE_CHECKING, Any

from hogwild.cli.interrupt import Interrupts
from hogwild.cli.summary import print_json, print_tables
from hogwild.config import ShowConfig
from hogwild.errors import SaveError
from hogwild.messages import say, show

if TYPE_CHECKING:
    from rich.table import Table

    from hogwild.executor.readers.display import Display
    from hogwild.observe.experiments.frame import Experiment, Run

_SHORT = 1.0  # seconds of a run before which there is no bar
_READY = "getting ready (the first time: compiling)"
_INTERRUPTED = 130


class Face(ABC):
    """What a command knows of its experiment."""

    output: str
    """File of the results; "": none."""
    show: ShowConfig
    epochs: int

    @abstractmethod
    def open(self, display: Display) -> Experiment[Any]:
        """The experiment, with its data."""

    @abstractmethod
    def outcome(self, run: Run, iterations: list[dict[str, Any]], experiment: Experiment[Any]) -> str:
        """What came of a run, in a few words."""

    @abstractmethod
    def table(self, found: dict[str, Any]) -> Table:
        """What all comes to."""


def run_experiment(face: Face) -> int:
    """Make all runs; returns the exit code."""
    from hogwild.executor.readers.display import show_progress

    with Interrupts() as interrupts:
        with show_progress(quiet=face.show.quiet, epochs=face.epochs) as display:
            experiment = face.open(display)
            for note in experiment.record()["notes"]:
                display.say(f"note: {note}")
            _save(face, experiment)  # before the work: there may be no place to write to
            problem: SaveError | None = None
            try:
                _make_runs(experiment, face, display, interrupts)
            finally:
                try:
                    _save(face, experiment)
                except SaveError as error:
                    problem = error
        found = experiment.record()
        if face.show.json:
            print_json(found)
        elif not face.show.quiet:
            print_tables([face.table(found)])
            if problem is None:
                show(f"saved to {face.output}" if face.output else "nothing was saved without --output")
    if problem is not None:
        raise problem
    if experiment.complete:
        return 0
    kept = f"what there is stands in {face.output}" if face.output else "nothing was saved"
    made = sum(record["complete"] for record in experiment.records)
    say(f"hogwild: interrupted after {made} of {len(experiment.plan)} runs; {kept}.")
    return _INTERRUPTED


def _make_runs(experiment: Experiment[Any], face: Face, display: Display, interrupts: Interrupts) -> None:
    from hogwild.executor.events import Finished, Progress, Started

    display.phase(_READY)
    for run, event in experiment.run():
        interrupts.arm()
        if interrupts.asked:
            experiment.stop()
        if isinstance(event, Started):
            display.phase("")
        elif isinstance(event, Progress) and event.seconds > _SHORT:
            display(event)
        elif isinstance(event, Finished):
            iterations = experiment.records[-1]["iterations"]
            came = face.outcome(run, iterations, experiment) if iterations else "stopped"
            display.say(f"{len(experiment.records)}/{len(experiment.plan)}  {run}: {came}")
            try:
                _save(face, experiment)
            except SaveError as error:
                display.say(f"note: {error} The results are written again after the next run.")
            display.phase(_READY)
    display.phase("")


def _save(face: Face, experiment: Experiment[Any]) -> None:
    from hogwild.feeds.io.outfile import write_file

    if face.output:
        with write_file(face.output) as stream:
            text = json.dumps(experiment.record(), ensure_ascii=False, allow_nan=False, indent=1)
            stream.write(text.encode("utf-8", "backslashreplace") + b"\n")  # names of files may not be UTF-8


# -- what several tables have -----------------------------------------------------------------------------------------


PACE = ("s/iteration", "speed-up", "errors")


def pace(run: Run, iterations: list[dict[str, Any]]) -> str:
    """How fast a run was, or how many of its gradients were wrong."""
    if not run.traced:
        return f"{median(found['seconds'] for found in iterations):.3g} s an iteration"
    looked_at = sum(found["errors"]["looked_at"] for found in iterations)
    errors = sum(found["errors"]["errors"] for found in iterations)
    return f"gradient errors {errors / max(looked_at, 1):.2%}"


def pace_cells(entry: dict[str, Any]) -> tuple[str, str, str]:
    """The same of a method, for the columns `PACE`."""
    seconds, errors, speed_up = entry["seconds"], entry["errors"], entry["speed_up"]
    return (
        f"{seconds['median']:.3g}" if seconds else "", f"{speed_up:.2f}x" if speed_up else "",
        f"{errors['error_rate']:.2%}" if errors else "",
    )  # fmt: skip


def points(score: dict[str, Any] | None) -> str:
    """A share in points of 100, with its deviation where there is one."""
    if not score:
        return ""
    deviation = f" ± {100 * score['deviation']:.2f}" if score["deviation"] is not None else ""
    return f"{100 * score['mean']:.2f}{deviation}"
