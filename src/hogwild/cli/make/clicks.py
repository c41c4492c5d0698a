"""`hogwild make-dataset clicks`: clicks whose best possible AUC is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hogwild.cli.flags import Page
from hogwild.cli.outputs import OutputConfig
from hogwild.config import ClicksConfig, ShowConfig

PAGE = Page(
    "hogwild make-dataset clicks",
    """Make clicks: slots of categories, numbers beside them, and a label drawn from its true chance.

Part of the score comes from pairs of categories: factorization machines and deeper models beat a linear one.

At the end you see the best AUC and log loss that a model can hope for.

Examples:
  hogwild make-dataset clicks --rows 100000 --output train.txt
  hogwild make-dataset clicks --rows 20000 --part 1 --output test.txt
  hogwild make-dataset clicks --dense-size 20000 --slots 8 --numbers 4 --format csv --output train.csv
  hogwild make-dataset clicks --nonzeros 0:5 --clicks 0.03 --auc 0.75 --format tfrecord --output train.tfrecord""",
)


@dataclass(frozen=True)
class WriteConfig(OutputConfig):
    """Where the data goes."""

    format: Literal["multislot", "tfrecord", "parquet", "csv", "libffm", "criteo"] = "multislot"
    """Kind of file; beside multislot and tfrecord goes a description of the slots, OUTPUT.slots.toml."""


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    problem: ClicksConfig = field(default_factory=ClicksConfig)
    file: WriteConfig = field(default_factory=WriteConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Write the file, then say what is in it."""
    from hogwild.cli.make.write import Making, make
    from hogwild.feeds.synthetic.files import check_clicks, clicks_slots, write_clicks
    from hogwild.feeds.synthetic.truth import Truth

    problem, file = options.problem, options.file
    check_clicks(file.format, problem)
    truth = Truth()
    notes: tuple[str, ...] = ()
    if problem.distribution == "uniform" and problem.rows * problem.slots < 10 * problem.features:
        notes = (
            "with fewer than ten occurrences a category no model gets near the true chances; "
            "raise --rows, lower --dense-size, or use zipf.",
        )
    making = Making(
        file.output, file.format, truth, lambda stream: write_clicks(stream, file.format, problem, truth),
        clicks_slots(problem) if file.format in ("multislot", "tfrecord") else "", notes,
    )  # fmt: skip
    facts = {"features": problem.features, "slots": problem.slots, "numbers": problem.numbers}
    return make(making, options.show, facts)
