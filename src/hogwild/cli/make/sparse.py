"""`hogwild make-dataset sparse`: a problem whose best possible score is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hogwild.cli.flags import Page
from hogwild.cli.outputs import OutputConfig
from hogwild.config import ShowConfig, SparseConfig

PAGE = Page(
    "hogwild make-dataset sparse",
    """Make a sparse problem with two classes, or more, that a linear model can learn.

The true weights are drawn from the seed; labels follow them up to the chosen noise.

At the end you see the best AUC, log loss and accuracy that a model can hope for.

Examples:
  hogwild make-dataset sparse --rows 100000 --output train.svm
  hogwild make-dataset sparse --rows 20000 --part 1 --output test.svm
  hogwild make-dataset sparse --dense-size 1000000 --nonzeros 10:99 --classes 10 --format tfrecord --output a.tfrecord
  hogwild make-dataset sparse --binary --nonzeros 10:40 --features 2000000 --output clicks.svm.gz""",
)


@dataclass(frozen=True)
class WriteConfig(OutputConfig):
    """Where the data goes."""

    format: Literal["svmlight", "tfrecord", "multislot", "parquet"] = "svmlight"
    """Kind of file; beside multislot goes a description of its slots, OUTPUT.slots.toml."""


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    problem: SparseConfig = field(default_factory=SparseConfig)
    file: WriteConfig = field(default_factory=WriteConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Write the file, then say what is in it."""
    from hogwild.cli.make.write import Making, make
    from hogwild.feeds.synthetic.files import sparse_slots, write_sparse
    from hogwild.feeds.synthetic.truth import Truth

    problem, file = options.problem, options.file
    truth = Truth(problem.classes)
    notes: tuple[str, ...] = ()
    if problem.distribution == "uniform" and problem.rows < 10 * problem.features:
        notes = (
            "with fewer than ten rows a feature no model gets near the true weights; "
            "raise --rows, lower --features, or use zipf.",
        )
    making = Making(
        file.output, file.format, truth, lambda stream: write_sparse(stream, file.format, problem, truth),
        sparse_slots(problem) if file.format == "multislot" else "", notes,
    )  # fmt: skip
    return make(making, options.show, {"features": problem.features, "classes": problem.classes})
