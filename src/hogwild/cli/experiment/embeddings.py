"""`hogwild experiment embeddings`: a text, read or taken from docstrings. cluster/experiment.py makes the runs."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hogwild.cli.experiment.run import Face, KeepConfig, pace, pace_cells, points, run_experiment
from hogwild.cli.flags import Page
from hogwild.cli.summary import add_row, make_table
from hogwild.config import CorpusConfig, File, Files, ShowConfig
from hogwild.config.experiments import EmbeddingsConfig

if TYPE_CHECKING:
    from rich.table import Table

    from hogwild.executor.readers.display import Display
    from hogwild.observe.experiments.frame import Experiment, Run

PAGE = Page(
    "hogwild experiment embeddings",
    """Compare ways to learn word vectors on several nodes: one machine, and each strategy of a cluster of local nodes
(parameter actor, synchronous and not; average; gossip; columns; merge). Needs the extra `ray`.

The JSON object has, for each strategy and number of nodes, duration, seconds of an epoch, loss, similarity, bytes and
messages between nodes, cores and memory of a node. docs/experiments.md describes it.

Without --train the text is that of docstrings, some hundred thousand words.

Examples:
  hogwild experiment embeddings --small
  hogwild experiment embeddings --train wiki.txt --tests wordsim353.tsv --tests questions-words.txt --output nodes.json
  hogwild experiment embeddings --train wiki.txt --nodes 1 2 --strategies average merge --output nodes.json --resume""",
)

_WORDS, _FEW_WORDS = 1_000_000, 200_000  # of docstrings


@dataclass(frozen=True)
class CorpusFile:
    """The text, and what vectors are measured by."""

    train: File = ""
    """Text to train on. Default: that of docstrings."""
    tests: Files = ()
    """Word similarity (word, word, score a line) or analogies, measured at the end of each run. Default: the loss."""
    min_count: int = 5
    """Words that occur less often are left out."""


@dataclass(frozen=True)
class Options:
    """All flags of the command."""

    text: CorpusFile = field(default_factory=CorpusFile)
    keep: KeepConfig = field(default_factory=KeepConfig)
    runs: EmbeddingsConfig = field(default_factory=EmbeddingsConfig)
    show: ShowConfig = field(default_factory=ShowConfig)


class Command(Face):
    """The experiment on word vectors."""

    def __init__(self, options: Options) -> None:
        from hogwild.cluster import require_ray

        require_ray()
        self.options, self.show, self.keep = options, options.show, options.keep
        self.reading = CorpusConfig(min_count=options.text.min_count)
        self.epochs = options.runs.iterations
        self._place = tempfile.TemporaryDirectory(prefix="hogwild-experiment-")  # nodes read a file there

    def open(self, display: Display) -> Experiment[Any]:
        """With its text and tests."""
        from hogwild.cluster.experiment import Experiment
        from hogwild.feeds.corpus.open import open_corpus
        from hogwild.programs.words.evaluation import read_tests

        text, runs = self.options.text, self.options.runs
        tests = read_tests(text.tests) if text.tests else []
        display.phase(f"reading {text.train or 'docstrings'}")
        if text.train:
            corpus = open_corpus(text.train, self.reading).check_trainable()
            return Experiment(runs, text.train, corpus, self.reading, tests)
        path = self._write(_FEW_WORDS if runs.small else _WORDS)
        reading = replace(self.reading, cache=False)
        corpus = replace(open_corpus(path, reading).check_trainable(), source="docstrings")
        return Experiment(runs, path, corpus, reading, tests)

    def _write(self, words: int) -> str:
        from hogwild.feeds.synthetic.docstrings import documentation

        path = Path(self._place.name) / "text.txt"
        path.write_text("".join(" ".join(sentence) + "\n" for sentence in documentation(words)), encoding="utf-8")
        return str(path)

    def outcome(self, run: Run, iterations: list[dict[str, Any]], experiment: Experiment[Any]) -> str:
        """Its score and loss, and its seconds."""
        last, tested = iterations[-1], experiment.score != "loss"
        score = f"{experiment.score} {100 * last['score']:.2f}, " if tested and last["score"] is not None else ""
        return f"{score}loss {last['loss']:.4f}, {pace(run, iterations)}"

    def tables(self, found: dict[str, Any]) -> list[Table]:
        """A row for each strategy and number of nodes."""
        tested = found["score"] != "loss"
        columns = ["similarity"] * tested + ["loss", "s/epoch", "speed-up", "duration", "bytes/word", "messages"]
        table = make_table(["strategy", "nodes", *columns, "cores/node", "memory/node"])
        for entry in found["methods"]:
            loss, traffic, duration = entry["final_loss"], entry["traffic"] or {}, entry["duration"]
            seconds, speed_up, _ = pace_cells(entry)
            cells = [points(entry["final_score"])] * tested
            cells += [f"{loss['mean']:.4f}" if loss else "", seconds, speed_up]
            cells += [f"{duration['mean']:.3g} s" if duration else "", _told(traffic, "bytes_a_word", "{:.3g}")]
            cells += [_told(traffic, "messages", "{:.0f}"), _told(traffic, "cores_a_node", "{:.2f}")]
            cells += [_told({k: v / 1e6 for k, v in traffic.items() if v is not None}, "memory_a_node", "{:.0f} MB")]
            add_row(table, entry["method"], str(entry["threads"]), *cells)
        return [table]

    def close(self) -> None:
        """Remove the text that was made."""
        self._place.cleanup()


def run(options: Options) -> int:
    """Make all runs; returns the exit code."""
    text = options.text
    command = Command(options)
    try:
        return run_experiment(command, (text.train, *text.tests, options.show.config))
    finally:
        command.close()


def _told(traffic: dict[str, Any], name: str, form: str) -> str:
    value = traffic.get(name)
    return "" if value is None else form.format(value)
