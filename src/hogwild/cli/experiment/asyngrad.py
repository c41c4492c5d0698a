"""`hogwild experiment asyngrad`: the text, read or made up. observe/experiments/asyngrad.py makes the runs."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hogwild.cli.experiment.run import PACE, Face, KeepConfig, TrainTestConfig, pace, pace_cells, points, run_experiment
from hogwild.cli.flags import Page
from hogwild.cli.summary import add_row, make_table
from hogwild.config import AsynGradConfig, ShowConfig, TaggerModel, TaggingConfig
from hogwild.config.experiments import AsynGradOptions, AsynGradRuns
from hogwild.config.options import Shown

if TYPE_CHECKING:
    from rich.table import Table

    from hogwild.executor.readers.display import Display
    from hogwild.feeds.tagged.feed import TaggingFeed
    from hogwild.observe.experiments.frame import Experiment, Run

PAGE = Page(
    "hogwild experiment asyngrad",
    """Repeat the experiment of AsynGrad on your data: train a tagger with one thread (SGD), with threads that wait for
each other (round-robin), and with threads that overwrite each other (AsynGrad); a CRF so with structure regularization
too. With --model bilstm it is a bidirectional LSTM, of which every thread writes every weight at each step.

The JSON object has, for each iteration and thread, how many gradients were wrong and by how much, the score on the
test file, the seconds, and the speed-up for each number of threads. docs/experiments.md describes it.

Without --train the text is made up, and the experiment takes half a minute once all is compiled.

Examples:
  hogwild experiment asyngrad
  hogwild experiment asyngrad --task chunking --train train.txt --test test.txt --output chunking.json
  hogwild experiment asyngrad --task pos --train en.conllu --test en-test.conllu --threads 1 2 4 --output pos.json
  hogwild experiment asyngrad --model bilstm --task chunking --train train.txt --test test.txt --output lstm.json
  hogwild experiment asyngrad --task segmentation --train words.txt --test test.txt --seeds 1 --json
  hogwild experiment asyngrad --train train.txt --test test.txt --output chunking.json --resume --report page.html""",
)

_MADE_UP = (500, 200)  # sentences to train on and to test with


@dataclass(frozen=True)
class ReadConfig(TaggingConfig):
    """How tagged text is read."""

    features: Annotated[str, Shown("PRESET|FILE")] = ""
    """Feature templates: a preset, or a file of templates. Default: those of the task; of a Bi-LSTM words-shapes for
    pos, words-pos for chunking, characters for segmentation."""


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    model: TaggerModel = "crf"
    """Kind of model: crf (linear-chain conditional random field), or bilstm (embeddings, then a bidirectional LSTM)."""
    text: TrainTestConfig = field(default_factory=TrainTestConfig)
    keep: KeepConfig = field(default_factory=KeepConfig)
    runs: AsynGradOptions = field(default_factory=AsynGradConfig)
    read: ReadConfig = field(default_factory=ReadConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


class Command(Face):
    """The experiment of AsynGrad, on files or on made-up text."""

    def __init__(self, options: Options) -> None:
        self.options, self.show, self.keep = options, options.show, options.keep
        self.config: AsynGradRuns = options.runs if options.text.train else replace(options.runs, small=True)
        self.epochs = self.config.iterations

    def open(self, display: Display) -> Experiment[Any]:
        """With its text."""
        from hogwild.observe.experiments.asyngrad import Experiment

        return Experiment(self.config, *_open(self.options, self.config, display))  # type: ignore[arg-type]

    def outcome(self, run: Run, iterations: list[dict[str, Any]], experiment: Experiment[Any]) -> str:
        """Its score, and its seconds or errors."""
        score = f"{experiment.score} {100 * iterations[-1]['score']:.2f}"
        return f"{score}, {pace(run, iterations)}"

    def tables(self, found: dict[str, Any]) -> list[Table]:
        """A row for each method and number of threads; and what the paper has, beside it."""
        score = {"f1": "test F", "accuracy": "test accuracy"}[found["score"]]
        table = make_table(["method", "threads", score, *PACE])
        for entry in found["methods"]:
            add_row(table, entry["method"], str(entry["threads"]), points(entry["final_score"]), *pace_cells(entry))
        beside = make_table(["", "what differs", score, "paper", "s/iteration", "paper", "speed-up", "paper"], words=2)
        for entry in found["methods"]:
            if paper := entry["published"]:
                seconds, speed_up, _ = pace_cells(entry)
                add_row(
                    beside, f"{entry['method']}, {entry['threads']}", paper["differs"], points(entry["final_score"]),
                    f"{100 * paper['score']:.2f}", seconds, f"{paper['seconds']:.3g}", speed_up,
                    f"{paper['speed_up']:.2f}x",
                )  # fmt: skip
        return [table, beside]


def run(options: Options) -> int:
    """Make all runs; returns the exit code."""
    from hogwild.feeds.tagged.templates import PRESETS

    text, features = options.text, options.read.features
    vectors = getattr(options.runs, "start_vectors", "")
    inputs = (text.train, text.test, options.show.config, "" if features in PRESETS else features, vectors)
    return run_experiment(Command(options), inputs, [vectors])


def _open(options: Options, config: AsynGradRuns, display: Display) -> tuple[TaggingFeed, TaggingFeed]:
    from hogwild.feeds.synthetic.sentences import make_sentences, write_lines

    text, read = options.text, options.read.with_features(config.templates)
    if config.task == "noun-phrases" and not read.chunks:
        read = replace(read, chunks=("NP",))
    if text.train:
        display.phase(f"reading {text.train} and {text.test}")
        return _open_both(read, text.train, text.test)
    display.phase("making up text")
    with tempfile.TemporaryDirectory(prefix="hogwild-experiment-") as place:
        paths = [Path(place) / name for name in ("train.txt", "test.txt")]
        for part, (path, count) in enumerate(zip(paths, _MADE_UP, strict=True)):
            task = "chunking" if config.task == "noun-phrases" else config.task
            lines = write_lines(task, make_sentences(count, config.seed, part), config.seed)
            path.write_text(lines, encoding="utf-8")
        read = replace(read, format="segmented" if config.task == "segmentation" else "conll", cache=False)
        train, test = _open_both(read, str(paths[0]), str(paths[1]))
        note = f"made-up text: {len(train):,} sentences to train on, {len(test):,} to test with."
        return replace(train, source="made-up text", notes=(note,)), replace(test, source="made-up text", notes=())


def _open_both(read: ReadConfig, train: str, test: str) -> tuple[TaggingFeed, TaggingFeed]:
    from hogwild.feeds.tagged.open import open_tagging

    feed = open_tagging(train, read)
    return feed, open_tagging(test, read, schema=feed.schema, names=feed.names, tags=feed.tags)
