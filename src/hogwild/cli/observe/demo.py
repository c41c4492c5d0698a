"""`hogwild demo`: make data, train in two modes under the progress bar, compare; then word vectors of text at hand."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from hogwild.cli.flags import Page
from hogwild.cli.summary import add_row, make_table, print_json, print_tables, trace_of
from hogwild.config import CorpusConfig, FeedConfig, ShowConfig, SparseConfig
from hogwild.config.options import require
from hogwild.errors import InputError
from hogwild.machine import cores
from hogwild.messages import say

if TYPE_CHECKING:
    from hogwild.executor.events import EpochEnded, Finished, Started
    from hogwild.feeds.sparse.feed import Feed
    from hogwild.feeds.synthetic.truth import Truth

PAGE = Page(
    "hogwild demo",
    """See it work: make a sparse problem, train on it with one worker and with many, and compare; then train word
vectors on the documentation inside the Python installation, and show which words are used alike.

Nothing is kept. Takes about a minute, most of it for making data and compiling.

Examples:
  hogwild demo
  hogwild demo --threads 8 --rows 1000000""",
)

ASKED = ("file", "list", "thread", "integer", "mean", "minimum", "socket", "error")
"""Words whose neighbours are shown."""
_NEAR = 5  # neighbours shown
_EPOCHS = 20  # over the text
_RARE = 20  # occurrences that a word needs: names that one module made up are of no interest


@dataclass(frozen=True)
class DemoConfig:
    """Size of the demonstration."""

    rows: int = 200_000
    """Training samples, with 50 features each of a million."""
    epochs: int = 10
    """Times that every sample is visited."""
    threads: int = max(2, cores())
    """Workers of the mode without locks."""
    words: int = 1_000_000
    """Words of text to learn word vectors from, at the most; 0: leave that part out."""
    dim: int = 100
    """Numbers in a word vector."""
    seed: int = 1
    """Makes data and order."""

    def __post_init__(self) -> None:
        require(self, "rows", 1000 <= self.rows <= 100_000_000, "it must lie between 1000 and 100000000.")
        require(self, "epochs", 1 <= self.epochs < 2**30, "it must lie between 1 and 1073741823.")
        require(self, "threads", 2 <= self.threads <= 4096, "it must be at least 2: one worker races with nobody.")
        fits = 0 <= self.words < 2**31
        require(self, "words", fits, "it must lie between 0, which leaves the word vectors out, and 2147483647.")
        require(self, "dim", 1 <= self.dim <= 4096, "it must lie between 1 and 4096. Try 100.")
        require(self, "seed", 0 <= self.seed < 2**62, "it must not be negative and fit 62 bits.")


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    demo: DemoConfig = field(default_factory=DemoConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


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


def run(options: Options) -> int:
    """The same problem, learned by one worker, by many, and by many under trace; then words."""
    demo = options.demo
    tell: Callable[[str], None] = (lambda line: None) if options.show.quiet else say
    with tempfile.TemporaryDirectory(prefix="hogwild-demo-") as place:
        train = SparseConfig(rows=demo.rows, seed=demo.seed)
        test = SparseConfig(rows=max(demo.rows // 5, 1000), seed=demo.seed, part=1)
        tell(f"1. making {train.rows:,} samples, {train.nonzeros} of {train.features:,} features each, and a test set")
        feed, _ = _make(Path(place) / "train.svm", train)
        test_feed, truth = _make(Path(place) / "test.svm", test)
    tell("2. one worker, mode serial")
    serial = _train(options, feed, test_feed, mode="serial")
    tell(f"3. {demo.threads} workers without locks, mode hogwild")
    hogwild = _train(options, feed, test_feed, mode="hogwild")
    tell("4. the same under trace, one epoch: how many gradients were overwritten by another worker?")
    traced = _train(options, feed, test_feed, mode="hogwild", trace=True, epochs=1)
    speed_up = hogwild.samples_per_second / serial.samples_per_second
    error_rate = traced.trace["error_rate"] if traced.trace else 0.0
    best = truth.right / truth.rows
    if not options.show.json:
        _print_table((serial, hogwild), (0.0, error_rate))
        print(f"{hogwild.threads} workers without locks were {speed_up:.2f}x as fast as one.")
        print(f"The true weights that the data was made with reach accuracy {best:.4f}.", flush=True)
    words = show_words(options, tell) if demo.words else None
    if options.show.json:
        print_json({
            "modes": [vars(serial), vars(hogwild)], "speed_up": speed_up, "error_rate": error_rate,
            "trace": traced.trace, "truth": best, "words": words,
        })  # fmt: skip
    elif words is not None:
        _print_words(words)
    return 0


def _run(options: Options, program: Any, data: Any, **settings: Any) -> tuple[Started, Finished, list[EpochEnded]]:
    """Train under the progress bar."""
    from hogwild.executor.readers.display import show_progress
    from hogwild.executor.run import AsyncExecutor

    with show_progress(quiet=options.show.quiet, epochs=settings["epochs"]) as show:
        kept: dict[str, list[Any]] = {"started": [], "finished": [], "epoch": []}
        for event in AsyncExecutor(seed=options.demo.seed, **settings).run(program, data):
            show(event)
            kept.get(event.kind, []).append(event)
    return kept["started"][0], kept["finished"][0], kept["epoch"]


# -- rows -------------------------------------------------------------------------------------------------------------


def _make(path: Path, config: SparseConfig) -> tuple[Feed, Truth]:
    """Write a problem to a file and read it, as a user would."""
    from hogwild.feeds.open import open_feed
    from hogwild.feeds.synthetic.lines import svmlight
    from hogwild.feeds.synthetic.sparse import make_rows
    from hogwild.feeds.synthetic.truth import Truth

    truth = Truth()
    with path.open("wb") as stream:
        for rows in make_rows(config, truth):
            stream.write(svmlight(rows))
    return open_feed(str(path), FeedConfig(cache=False, zero_based="no", features=config.features)), truth


def _train(options: Options, feed: Feed, test: Feed, **chosen: Any) -> Outcome:
    from hogwild.programs.sparse.linear import Linear

    threads = None if chosen["mode"] == "serial" else options.demo.threads
    program = Linear()
    # The rate is given, so that both modes do the same work.
    settings = {"epochs": options.demo.epochs, "threads": threads, "lr": 0.2, **chosen}
    started, finished, epochs = _run(options, program, feed, **settings)
    # Of the epoch in the middle: other programs on the machine disturb some of them.
    speed = len(feed) / max(median(event.epoch_seconds for event in epochs), 1e-9)
    accuracy = program.evaluate(test, options.demo.threads)["accuracy"]
    how = started.mode, started.threads, started.sharing
    return Outcome(*how, finished.train_seconds, started.compile_seconds, speed, accuracy, trace_of(epochs))


def _print_table(outcomes: tuple[Outcome, ...], error_rates: tuple[float, ...]) -> None:
    from hogwild.executor.readers.display import count

    table = make_table(["mode", "workers", "samples/s", "speed-up", "test accuracy", "gradient errors"])
    for outcome, rate in zip(outcomes, error_rates, strict=True):
        speed, first = outcome.samples_per_second, outcomes[0].samples_per_second
        numbers = (count(speed), f"{speed / first:.2f}x", f"{outcome.accuracy:.4f}", f"{rate:.2%}")
        add_row(table, outcome.mode, str(outcome.threads), *numbers)
    print_tables([table])


# -- words ------------------------------------------------------------------------------------------------------------


def show_words(options: Options, tell: Callable[[str], None]) -> dict[str, Any] | None:
    """Gather text, train, look for neighbours; None where there is not enough text."""
    from hogwild.feeds.corpus.open import corpus_of
    from hogwild.feeds.synthetic.docstrings import documentation
    from hogwild.programs.words.word2vec import Word2Vec

    demo = options.demo
    tell("5. gathering text: docstrings of the Python installation")
    began = time.perf_counter()
    try:
        corpus = corpus_of(documentation(demo.words), CorpusConfig(min_count=_RARE)).check_trainable()
    except InputError:
        tell("   there is none: this Python came without its sources")
        return None
    gathered = time.perf_counter() - began
    tell(f"6. word vectors of {len(corpus.words):,} words from {corpus.total:,} words of text, {demo.threads} workers")
    program = Word2Vec(dim=demo.dim, sample=1e-3)
    settings: dict[str, Any] = {"epochs": _EPOCHS, "lr": 0.03, "lr_end": 0.1, "shuffle": False}
    started, finished, _ = _run(options, program, corpus, threads=demo.threads, **settings)
    vectors = program.vectors
    asked = [word for word in ASKED if word in vectors]
    found = zip(asked, vectors.neighbors(asked, topn=_NEAR), strict=True)
    return {
        "words": corpus.total, "vocabulary": len(corpus.words), "dim": demo.dim, "threads": started.threads,
        "seconds": {"gather": gathered, "compile": started.compile_seconds, "train": finished.train_seconds},
        "words_per_second": finished.units_per_second,
        "neighbors": {word: [near for near, _ in similar] for word, similar in found},
    }  # fmt: skip


def _print_words(found: dict[str, Any]) -> None:
    from hogwild.executor.readers.display import count

    table = make_table(["word", "nearest in use"], words=2)
    for word, near in found["neighbors"].items():
        add_row(table, word, ", ".join(near))
    print_tables([table])
    print(f"Learnt from {found['words']:,} words of documentation at {count(found['words_per_second'])} words/s.")
