"""`hogwild experiment hogwild`: rows or ratings, read or made. observe/experiments/sparse.py makes the runs."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hogwild.cli.experiment.run import PACE, Face, KeepConfig, TrainTestConfig, pace, pace_cells, points, run_experiment
from hogwild.cli.flags import Page
from hogwild.cli.summary import add_row, make_table
from hogwild.config import FeedConfig, MadeRatingsConfig, RatingConfig, ShowConfig, SparseConfig
from hogwild.config.experiments import ExperimentRuns, HogwildLinearConfig, HogwildOptions

if TYPE_CHECKING:
    from rich.table import Table

    from hogwild.executor.readers.display import Display
    from hogwild.observe.experiments.frame import Experiment, Run

PAGE = Page(
    "hogwild experiment hogwild",
    """Repeat the comparison of Hogwild on your data: a sparse problem learnt by threads that overwrite each other
(hogwild), that lock the rows they touch (locked), that write in turn (round-robin), and by one thread (serial).

The JSON object has, for each mode and number of threads, seconds, speed-up, loss and score on the test file, and how
many gradients were wrong. docs/experiments.md describes it.

Without --train the data is made; with --small it takes less than a minute once all is compiled.

Examples:
  hogwild experiment hogwild --small
  hogwild experiment hogwild --train train.svm --test test.svm --loss hinge --threads 1 2 4 --output svm.json
  hogwild experiment hogwild --problem factorization --train ratings.csv --test test.csv --output ratings.json
  hogwild experiment hogwild --train train.svm --test test.svm --output svm.json --resume --report svm.html""",
)

_ROWS, _FEW_ROWS = 200_000, 5_000  # to train on, a fifth as many to test with
_FEATURES, _FEW_FEATURES = 1_000_000, 20_000


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    problem: Literal["linear", "factorization"] = "linear"
    """What is learnt: a linear model of rows (svmlight, CSV, Parquet …), or a factorization of ratings."""
    text: TrainTestConfig = field(default_factory=TrainTestConfig)
    keep: KeepConfig = field(default_factory=KeepConfig)
    runs: HogwildOptions = field(default_factory=HogwildLinearConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


class Command(Face):
    """The experiment of Hogwild, on files or on made data."""

    def __init__(self, options: Options) -> None:
        self.options, self.show, self.keep = options, options.show, options.keep
        self.config: ExperimentRuns = options.runs
        self.epochs = self.config.iterations

    def open(self, display: Display) -> Experiment[Any]:
        """With its data."""
        from hogwild.observe.experiments.sparse import Experiment

        text, opened = self.options.text, _open_rows if self.options.problem == "linear" else _open_ratings
        if text.train:
            display.phase(f"reading {text.train} and {text.test}")
            return Experiment(self.options.runs, *opened(text.train, text.test))
        display.phase("making data")
        making = _make_rows if self.options.problem == "linear" else _make_ratings
        with tempfile.TemporaryDirectory(prefix="hogwild-experiment-") as place:
            paths = Path(place) / "train", Path(place) / "test"
            for part, path in enumerate(paths):
                making(path, self.config, part)
            feeds = opened(str(paths[0]), str(paths[1]), cache=False)
        note = f"made data: {len(feeds[0]):,} rows to train on, {len(feeds[1]):,} to test with."
        return Experiment(self.options.runs, *(
            replace(feed, source="made data", notes=notes) for feed, notes in zip(feeds, ((note,), ()), strict=True)
        ))  # fmt: skip

    def outcome(self, run: Run, iterations: list[dict[str, Any]], experiment: Experiment[Any]) -> str:
        """Its score and loss, and its seconds or errors."""
        last = iterations[-1]
        return f"{experiment.score} {last['score']:.4f}, loss {last['loss']:.4f}, {pace(run, iterations)}"

    def tables(self, found: dict[str, Any]) -> list[Table]:
        """A row for each mode and number of threads."""
        table = make_table(["mode", "threads", f"test {found['score']}", "train loss", *PACE])
        for entry in found["methods"]:
            score, loss = entry["final_score"], entry["final_loss"]
            shown = points(score) if found["score"] == "accuracy" else f"{score['mean']:.4f}" if score else ""
            told = f"{loss['mean']:.4f}" if loss else ""
            add_row(table, entry["method"], str(entry["threads"]), shown, told, *pace_cells(entry))
        return [table]


def run(options: Options) -> int:
    """Make all runs; returns the exit code."""
    return run_experiment(Command(options), (options.text.train, options.text.test, options.show.config))


def _open_rows(train: str, test: str, cache: bool = True) -> tuple[Any, Any]:
    from hogwild.feeds.open import open_feed

    config = FeedConfig() if cache else FeedConfig(cache=False, format="svmlight")
    feed = open_feed(train, config)
    return feed, open_feed(test, config, schema=feed.schema)


def _open_ratings(train: str, test: str, cache: bool = True) -> tuple[Any, Any]:
    from hogwild.feeds.ratings.open import open_ratings

    config = RatingConfig() if cache else RatingConfig(cache=False, format="ratings")
    feed = open_ratings(train, config)
    return feed, open_ratings(test, config, users=feed.users, items=feed.items)


def _make_rows(path: Path, config: ExperimentRuns, part: int) -> None:
    from hogwild.feeds.synthetic.files import write_sparse
    from hogwild.feeds.synthetic.truth import Truth

    features = _FEW_FEATURES if config.small else _FEATURES
    made = SparseConfig(rows=_rows(config, part), features=features, seed=config.seed, part=part)
    with path.open("wb") as stream:
        write_sparse(stream, "svmlight", made, Truth())


def _make_ratings(path: Path, config: ExperimentRuns, part: int) -> None:
    from hogwild.feeds.synthetic.ratings import RatingTruth, csv_lines, make_ratings

    made = MadeRatingsConfig(rows=_rows(config, part), seed=config.seed, part=part)
    with path.open("w", encoding="utf-8") as stream:
        stream.write("user,item,rating\n")
        for rows in make_ratings(made, RatingTruth()):
            stream.write(csv_lines(*rows))


def _rows(config: ExperimentRuns, part: int) -> int:
    rows = _FEW_ROWS if config.small else _ROWS
    return rows // 5 if part else rows
