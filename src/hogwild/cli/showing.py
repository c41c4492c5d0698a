"""The demonstration: the same problem, learned by one worker, by many, and by many under trace; then words."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from hogwild import messages
from hogwild.cli.demo import Options
from hogwild.cli.summary import print_json, trace_of
from hogwild.cli.wordshow import print_words, show_words
from hogwild.config import FeedConfig, SparseConfig
from hogwild.executor.events import EpochEnded, Finished, Started
from hogwild.executor.readers.display import count, show_progress
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.open import open_feed
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.synthetic.lines import svmlight
from hogwild.feeds.synthetic.sparse import make_rows
from hogwild.feeds.synthetic.truth import Truth
from hogwild.programs.sparse.linear import Linear


@dataclass(frozen=True)
class Outcome:
    """What one training came to."""

    mode: str
    threads: int
    sharing: str
    seconds: float
    compile_seconds: float
    samples_per_second: float
    accuracy: float
    trace: dict[str, Any] | None


def run_demo(options: Options) -> int:
    """Make, train, compare; returns the exit code."""
    demo = options.demo
    say = _Speaker(quiet=options.show.quiet)
    with tempfile.TemporaryDirectory(prefix="hogwild-demo-") as place:
        train = SparseConfig(rows=demo.rows, seed=demo.seed)
        test = SparseConfig(rows=max(demo.rows // 5, 1000), seed=demo.seed, part=1)
        say(f"1. making {train.rows:,} samples, {train.nonzeros} of {train.features:,} features each, and a test set")
        feed, _ = _make(Path(place) / "train.svm", train)
        test_feed, truth = _make(Path(place) / "test.svm", test)
    lr = 0.2  # given, so that both modes do the same work
    say("2. one worker, mode serial")
    serial = _train(options, feed, test_feed, mode="serial", lr=lr)
    say(f"3. {demo.threads} workers without locks, mode hogwild")
    hogwild = _train(options, feed, test_feed, mode="hogwild", lr=lr)
    say("4. the same under trace, one epoch: how many gradients were overwritten by another worker?")
    traced = _train(options, feed, test_feed, mode="hogwild", lr=lr, trace=True, epochs=1)
    speed_up = hogwild.samples_per_second / serial.samples_per_second
    error_rate = traced.trace["error_rate"] if traced.trace else 0.0
    best = truth.right / truth.rows
    if not options.show.json:
        _print_table((serial, hogwild), (0.0, error_rate))
        print(f"{hogwild.threads} workers without locks were {speed_up:.2f}x as fast as one.")
        print(f"The true weights that the data was made with reach accuracy {best:.4f}.", flush=True)
    words = show_words(options, say) if demo.words else None
    if options.show.json:
        print_json(
            {
                "modes": [vars(serial), vars(hogwild)],
                "speed_up": speed_up,
                "error_rate": error_rate,
                "trace": traced.trace,
                "truth": best,
                "words": words,
            }
        )
    elif words is not None:
        print_words(words)
    return 0


class _Speaker:
    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet

    def __call__(self, line: str) -> None:
        if not self.quiet:
            messages.say(line)


def _make(path: Path, config: SparseConfig) -> tuple[Feed, Truth]:
    """Write a problem to a file and read it, as a user would."""
    truth = Truth()
    with path.open("wb") as stream:
        for rows in make_rows(config, truth):
            stream.write(svmlight(rows))
    return open_feed(str(path), FeedConfig(cache=False, zero_based="no", features=config.features)), truth


def _train(options: Options, feed: Feed, test: Feed, **chosen: Any) -> Outcome:
    demo = options.demo
    settings = {"epochs": demo.epochs, "seed": demo.seed, **chosen}
    threads = None if settings["mode"] == "serial" else demo.threads
    program = Linear()
    epochs: list[EpochEnded] = []
    with show_progress(quiet=options.show.quiet, epochs=settings["epochs"]) as show:
        for event in AsyncExecutor(threads=threads, **settings).run(program, feed):
            show(event)
            if isinstance(event, Started):
                started = event
            elif isinstance(event, EpochEnded):
                epochs.append(event)
            elif isinstance(event, Finished):
                finished = event
    return Outcome(
        mode=started.mode,
        threads=started.threads,
        sharing=started.sharing,
        seconds=finished.train_seconds,
        compile_seconds=started.compile_seconds,
        # Of the epoch in the middle: other programs on the machine disturb some of them.
        samples_per_second=len(feed) / max(median(event.epoch_seconds for event in epochs), 1e-9),
        accuracy=program.evaluate(test, demo.threads)["accuracy"],
        trace=trace_of(epochs),
    )


def _print_table(outcomes: tuple[Outcome, ...], error_rates: tuple[float, ...]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("mode")
    for title in ("workers", "samples/s", "speed-up", "test accuracy", "gradient errors"):
        table.add_column(title, justify="right")
    for outcome, rate in zip(outcomes, error_rates, strict=True):
        table.add_row(
            outcome.mode,
            str(outcome.threads),
            count(outcome.samples_per_second),
            f"{outcome.samples_per_second / outcomes[0].samples_per_second:.2f}x",
            f"{outcome.accuracy:.4f}",
            f"{rate:.2%}",
        )
    Console(highlight=False).print(table)
