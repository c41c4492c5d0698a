"""What is kept of a training command: the log of `--log-dir`, and the page of `--report`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from hogwild import __version__
from hogwild.cli.calling import command
from hogwild.cli.train.job import RunOptions
from hogwild.executor.events import Event
from hogwild.machine import describe
from hogwild.observe.logs import Logs, log_summary
from hogwild.observe.report.page import check_report_path, write_report
from hogwild.observe.report.runs import Recorder, run_of


class Records:
    """A reader of events. A report is written at the end of a run, a log all the time."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._recorder = Recorder()
        self._logs: Logs
        self._program: Any = None
        self._machine = describe()  # before this run makes a load of its own
        if options.watch.report:
            check_report_path(options.watch.report)

    @contextmanager
    def open(self, program: Any) -> Iterator[Records]:
        """While the run goes on; first what it is."""
        with Logs(self._options.watch.log_dir) as logs:
            self._logs, self._program = logs, program
            about = self._about(program)
            logs.add(about)
            self._recorder.add(about)
            yield self

    @property
    def notes(self) -> list[str]:
        """What the user should know about the logs."""
        return self._logs.notes

    def __call__(self, event: Event) -> None:
        """Keep an event."""
        self._logs(event)
        if self._options.watch.report:
            self._recorder(event)

    def end(self, summary: dict[str, Any]) -> str:
        """The run is over, and this came of it; why the log could not take it, if so."""
        asked = self._options.train.best_by
        judged = self._program.best_by if asked == "auto" else asked
        kept = {name: value for name, value in summary.items() if name != "trace"}
        told = {"event": "summary", "judged_by": judged, **kept}
        problem = log_summary(self._options.watch.log_dir, told)
        if path := self._options.watch.report:
            self._recorder.add(told)
            output = self._options.save.output.rstrip("/")
            write_report([run_of(self._recorder.records, Path(output).name or Path(path).stem)], path)
        return problem

    def _about(self, program: Any) -> dict[str, Any]:
        asked = {
            name: asdict(part) if is_dataclass(part) and not isinstance(part, type) else part
            for name, part in vars(self._options).items() if name != "show"
        }  # fmt: skip
        return {
            "event": "run", "program": program.name, "version": __version__, "command": command(),
            "seed": self._options.train.seed, "machine": self._machine, "options": asked,
        }  # fmt: skip
