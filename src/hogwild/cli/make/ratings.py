"""`hogwild make-dataset ratings`: ratings, or lists of items, whose true model is known."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

from hogwild.cli.flags import Page
from hogwild.cli.outputs import OutputConfig
from hogwild.cli.summary import print_json
from hogwild.config import MadeRatingsConfig, ShowConfig
from hogwild.messages import say

PAGE = Page(
    "hogwild make-dataset ratings",
    """Make ratings of users and items, or lists of the items that users have, that a recommender can learn.

The true vectors are drawn from the seed; ratings follow them up to the chosen noise.

At the end you see how well the true model does: the best that a model can hope for.

Examples:
  hogwild make-dataset ratings --rows 100000 --output train.csv
  hogwild make-dataset ratings --rows 20000 --part 1 --output test.csv
  hogwild make-dataset ratings --format lists --users 5000 --items 2000 --output train.txt.gz""",
)


@dataclass(frozen=True)
class WriteConfig(OutputConfig):
    """Where the data goes."""

    format: Literal["csv", "lists"] = "csv"
    """Kind of file: `user,item,rating` with a header, or a user and all items a line."""


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    problem: MadeRatingsConfig = field(default_factory=MadeRatingsConfig)
    file: WriteConfig = field(default_factory=WriteConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


def run(options: Options) -> int:
    """Write the file, then say what is in it."""
    from hogwild.cli.make.write import write_counted
    from hogwild.feeds.synthetic.ratings import RatingTruth, csv_lines, make_lists, make_ratings

    began = time.perf_counter()
    truth = RatingTruth()

    def write(stream: BinaryIO) -> None:
        if options.file.format == "csv":
            stream.write(b"user,item,rating\n")
            for rows in make_ratings(options.problem, truth):
                stream.write(csv_lines(*rows).encode())
        else:
            for user, items in make_lists(options.problem, truth):
                stream.write(f"{user} {' '.join(map(str, items.tolist()))}\n".encode())

    size = write_counted(options.file.output, options.show, write)
    best = {"rmse": truth.rmse}
    if options.file.format == "lists":
        best = {"recall@20": truth.recall / truth.users, "ndcg@20": truth.ndcg / truth.users}
    if options.show.json:
        print_json({
            "output": options.file.output, "rows": truth.rows, "users": options.problem.users,
            "items": options.problem.items, "bytes": size, "truth": best, "seconds": time.perf_counter() - began,
        })  # fmt: skip
    elif not options.show.quiet:
        name = "data" if options.file.output == "-" else options.file.output
        scores = " and ".join(f"{metric} {value:.4f}" for metric, value in best.items())
        say(f"{name}: {truth.rows:,} rows, {size / 1e6:.1f} MB")
        say(f"the true model reaches {scores} on these rows")
    return 0
