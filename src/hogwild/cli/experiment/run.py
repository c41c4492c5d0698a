"""What all commands of `hogwild experiment` do: show how far it is, save after each run, go on, end in a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.interrupt import Interrupts
from hogwild.cli.outputs import check_outputs
from hogwild.cli.summary import print_json, print_tables
from hogwild.config import File, ShowConfig
from hogwild.config.options import Config, Shown, require
from hogwild.errors import ConfigError, InputError, SaveError
from hogwild.messages import counted, say, show

if TYPE_CHECKING:
    from rich.table import Table

    from hogwild.executor.readers.display import Display
    from hogwild.observe.experiments.frame import Experiment, Run

_SHORT = 1.0  # seconds of a run before which there is no bar
_READY = "getting ready (the first time: compiling)"
_INTERRUPTED = 130


@dataclass(frozen=True)
class TrainTestConfig:
    """The data."""

    train: File = ""
    """File to train on. Default: made up."""
    test: File = ""
    """File to measure the score on, after each iteration."""

    def __post_init__(self) -> None:
        if bool(self.train) != bool(self.test):
            given, missing = ("train", "test") if self.train else ("test", "train")
            raise ConfigError(f"--{given} is there without --{missing}; give both, or neither for made-up data.")


@dataclass(frozen=True)
class KeepConfig(Config):
    """Where the results go."""

    output: Annotated[str, Shown("FILE.json")] = ""
    """File of the results, written anew after each run. Default: only a table is shown."""
    resume: bool = False
    """Go on with the experiment in the file of --output: its finished runs are kept. Start if there is none."""
    report: File = ""
    """Write one HTML page about the experiment at its end: curves, gradient errors, speed, options."""

    def check(self) -> None:
        plain = self.output and self.output != "-" and not self.output.endswith((".gz", ".xz", ".zst"))
        require(self, "resume", bool(plain) or not self.resume, "the results are read from a plain file. Add output.")


class Face(ABC):
    """What a command knows of its experiment."""

    keep: KeepConfig
    show: ShowConfig
    epochs: int

    @abstractmethod
    def open(self, display: Display) -> Experiment[Any]:
        """The experiment, with its data."""

    @abstractmethod
    def outcome(self, run: Run, iterations: list[dict[str, Any]], experiment: Experiment[Any]) -> str:
        """What came of a run, in a few words."""

    @abstractmethod
    def tables(self, found: dict[str, Any]) -> list[Table]:
        """What all comes to."""


def run_experiment(face: Face, inputs: Iterable[str], models: Iterable[str] = ()) -> int:
    """Make all runs; returns the exit code. inputs, models: what is read, and must not be written to."""
    from hogwild.executor.readers.display import show_progress
    from hogwild.observe.report.page import check_report_path

    keep = face.keep
    check_outputs([keep.output, keep.report], inputs, models)
    if keep.report:
        check_report_path(keep.report)
    before = _read_before(keep)
    with Interrupts() as interrupts:
        with show_progress(quiet=face.show.quiet, epochs=face.epochs) as display:
            experiment = face.open(display)
            if before is not None:
                _take_over(experiment, before, keep, display)
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
        _report(face, found)
        if face.show.json:
            print_json(found)
        elif not face.show.quiet:
            print_tables(face.tables(found))
            if problem is None:
                show(f"saved to {keep.output}" if keep.output else "nothing was saved without --output")
    if problem is not None:
        raise problem
    if experiment.complete:
        return 0
    kept = f"what there is stands in {keep.output}: --resume goes on" if keep.output else "nothing was saved"
    made = sum(record["complete"] for record in experiment.records)
    say(f"hogwild: interrupted after {made} of {len(experiment.plan)} runs; {kept}.")
    return _INTERRUPTED


def _read_before(keep: KeepConfig) -> dict[str, Any] | None:
    """What the file of --output holds, to go on with. What is no experiment, or was stopped, is not to be replaced."""
    from hogwild.observe.experiments.files import read_object

    file = Path(keep.output)
    if not keep.output or not file.is_file() or file.suffix in (".gz", ".xz", ".zst") or not file.stat().st_size:
        return None
    try:
        found = read_object(file)
    except InputError as error:
        if keep.resume:
            raise
        told = f"{keep.output} is there and no file of `hogwild experiment`, so it is not replaced; give another name."
        raise ConfigError(told) from error
    if keep.resume:
        return found
    runs = found.get("runs")
    done = sum(isinstance(run, dict) and run.get("complete") is True for run in runs) if isinstance(runs, list) else 0
    if done and found.get("complete") is not True:
        raise ConfigError(
            f"{keep.output} holds {counted(done, 'finished run')} of an experiment that was stopped; add "
            "--resume to go on with it, or give another name."
        )
    return None


def _take_over(experiment: Experiment[Any], before: dict[str, Any], keep: KeepConfig, display: Display) -> None:
    kept, whole = experiment.take_over(before, keep.output), len(experiment.plan)
    left = experiment.seconds_left
    rest = f"{whole - kept} are left, about {_duration(left)}" if kept < whole and left is not None else "none is left"
    display.say(f"note: {kept} of {whole} runs are kept from {keep.output}; {rest if kept else 'all are made'}.")


def _report(face: Face, found: dict[str, Any]) -> None:
    from hogwild.observe.report.experiments import runs_of
    from hogwild.observe.report.page import write_report

    if face.keep.report and found["runs"]:
        write_report(runs_of(found, Path(face.keep.output or face.keep.report).stem), face.keep.report)


def _duration(seconds: float) -> str:
    from hogwild.executor.readers.display import duration

    return duration(seconds)


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
            done, whole, left = len(experiment.records), len(experiment.plan), experiment.seconds_left
            rest = f", {_duration(left)} left" if done < whole and left is not None else ""
            display.say(f"{done}/{whole}  {run}: {came}{rest}")
            try:
                _save(face, experiment)
            except SaveError as error:
                display.say(f"note: {error} The results are written again after the next run.")
            display.phase(_READY)
    display.phase("")


def _save(face: Face, experiment: Experiment[Any]) -> None:
    from hogwild.observe.experiments.files import write_object

    if face.keep.output:
        write_object(face.keep.output, experiment.record())


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
