"""`hogwild report`: runs, side by side, as one page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from hogwild.cli.flags import Page
from hogwild.cli.outputs import check_outputs
from hogwild.cli.summary import print_json
from hogwild.config import File, ShowConfig
from hogwild.config.options import Shown, require
from hogwild.messages import counted, show

PAGE = Page(
    "hogwild report",
    """Make one HTML page of runs: how good, how fast, curves, gradient errors, where the time went, all options.

A run is a directory of `--log-dir` (with all runs in its log), or a file of `hogwild experiment`. Several stand side by
side. The page needs nothing else: no network, no server. `hogwild train … --report FILE` makes it at the end of a run.

Examples:
  hogwild report logs
  hogwild report logs/one logs/two --output compared.html
  hogwild report chunking.json --output chunking.html""",
)


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    runs: Annotated[tuple[str, ...], Shown("RUN", positional=True)] = ()
    """Directories of --log-dir, or files of `hogwild experiment`."""
    output: File = "report.html"
    """File to write; one that is there is replaced if it is a report."""
    show: ShowConfig = field(default_factory=ShowConfig)

    def __post_init__(self) -> None:
        require(self, "output", bool(self.output), "it is the name of a file. Try report.html.")


def run(options: Options) -> int:
    """Read, and write the page."""
    from hogwild.observe.report.page import check_report_path, read_runs, write_report

    check_outputs([options.output], options.runs)
    check_report_path(options.output)
    runs = read_runs(options.runs)
    write_report(runs, options.output)
    if options.show.json:
        names = [{"name": each.name, "about": each.about, "verdict": each.verdict} for each in runs]
        print_json({"output": options.output, "runs": names})
    elif not options.show.quiet and options.output != "-":
        show(f"{counted(len(runs), 'run')} in {options.output}")
    return 0
