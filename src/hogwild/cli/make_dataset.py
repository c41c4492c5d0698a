"""`hogwild make-dataset sparse`: a problem whose best possible score is known."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from typing import Literal

from hogwild.cli.flags import Page
from hogwild.config import File, ShowConfig, SparseConfig
from hogwild.errors import ConfigError
from hogwild.programs.outfile import write_file

PAGE = Page(
    "hogwild make-dataset sparse",
    """Make a sparse problem with two classes that a linear model can learn.

The true weights are drawn from the seed; labels follow them up to the chosen noise.

At the end you see how well the true weights do: the best that a model can hope for.

Examples:
  hogwild make-dataset sparse --rows 100000 --output train.svm
  hogwild make-dataset sparse --rows 20000 --part 1 --output test.svm
  hogwild make-dataset sparse --binary --nonzeros 10:40 --features 2000000 --output clicks.svm.gz""",
)


@dataclass(frozen=True)
class WriteConfig:
    """Where the data goes."""

    output: File = "-"
    """File to write; - is standard output, and names that end in .gz, .xz or .zst are compressed."""
    format: Literal["svmlight"] = "svmlight"
    """Kind of file."""


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    problem: SparseConfig = field(default_factory=SparseConfig)
    file: WriteConfig = field(default_factory=WriteConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Write the file, then say what is in it."""
    from hogwild.feeds.synthetic import Truth, make_rows, svmlight

    began = time.perf_counter()
    truth = Truth()
    size = 0
    to_stdout = options.file.output in ("", "-")
    if options.show.json and to_stdout:
        raise ConfigError("--json and the data cannot both go to standard output; add --output FILE.")
    with write_file(options.file.output) as stream:
        for rows in make_rows(options.problem, truth):
            size += stream.write(svmlight(rows))
    summary = {
        "output": options.file.output,
        "rows": truth.rows,
        "features": options.problem.features,
        "nonzeros": truth.nonzeros,
        "positive": truth.positive / truth.rows,
        "bytes": size,
        "truth": {"accuracy": truth.right / truth.rows, "logloss": truth.log_loss / truth.rows},
        "seconds": time.perf_counter() - began,
    }
    few = options.problem.distribution == "uniform" and options.problem.rows < 10 * options.problem.features
    if few and not options.show.quiet:
        print(
            "note: with fewer than ten rows a feature no model gets near the true weights; "
            "raise --rows, lower --features, or use zipf.",
            file=sys.stderr,
        )
    if options.show.json:
        print(json.dumps(summary))
    elif not options.show.quiet:
        print(
            f"{'data' if to_stdout else options.file.output}: {truth.rows:,} rows, {truth.nonzeros:,} nonzeros, "
            f"{size / 1e6:.1f} MB, {truth.positive / truth.rows:.1%} positive\n"
            f"the true weights reach accuracy {truth.right / truth.rows:.4f} and log loss "
            f"{truth.log_loss / truth.rows:.4f} on these rows",
            file=sys.stderr,
        )
    return 0
