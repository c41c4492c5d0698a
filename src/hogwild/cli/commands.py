"""The commands there are: one module each, imported when used, so that help is quick.

A module of a command has `PAGE` (the head of its help), `Options` (a frozen dataclass: its flags) and
`run(options) -> int` (the exit code). Heavy imports belong into `run`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from hogwild.cli.train.job import Job


class Entry(NamedTuple):
    """A command: the words that call it, the module that holds it, and what it does in a line."""

    words: tuple[str, ...]
    module: str
    summary: str

    @property
    def name(self) -> str:
        """The words, joined."""
        return " ".join(self.words)

    def load(self) -> Any:
        """The module."""
        return importlib.import_module(f"hogwild.cli.{self.module}")


def training(job: type[Job]) -> Callable[[Any], int]:
    """The `run` of a command that does this job."""

    def run(options: Any) -> int:
        """Train; returns the exit code."""
        from hogwild.cli.train.run import run_training  # here: it needs everything there is

        return run_training(options, job(options))

    return run


def tuning(job: type[Job]) -> Callable[[Any], int]:
    """The `run` of a command that searches for the options of this job."""

    def run(options: Any) -> int:
        """Search; returns the exit code."""
        from hogwild.cli.tune.run import run_tuning  # here: it needs everything there is

        return run_tuning(options, job(options))

    return run


def simulating(job: type[Job]) -> Callable[[Any], int]:
    """The `run` of a command that simulates the training of this job."""

    def run(options: Any) -> int:
        """Simulate; returns the exit code."""
        from hogwild.cli.simulate.run import run_simulation  # here: it needs everything there is

        return run_simulation(options, job(options))

    return run


COMMANDS = (
    Entry(("train", "classifier"), "train.classifier", "Train a classifier on svmlight, CSV, Parquet or text files"),
    Entry(("train", "ctr"), "train.ctr", "Train a model of clicks on logs: MultiSlot, TFRecord, Criteo, CSV"),
    Entry(("train", "doc2vec"), "train.doc2vec", "Train vectors of documents, by DM or DBOW"),
    Entry(("train", "module"), "train.module", "Train a PyTorch module of your own, without locks"),
    Entry(("train", "recommender"), "train.recommender", "Train a recommender on ratings or on what users have"),
    Entry(("train", "regressor"), "train.regressor", "Train a regression on svmlight, CSV or Parquet files"),
    Entry(("train", "tagger"), "train.tagger", "Train a tagger: chunks, parts of speech, words of unspaced text"),
    Entry(("train", "word2vec"), "train.word2vec", "Train word vectors on running text"),
    Entry(("tune", "classifier"), "tune.classifier", "Search for the options of a classifier on held-out data"),
    Entry(("tune", "ctr"), "tune.ctr", "Search for the options of a model of clicks on held-out data"),
    Entry(("tune", "recommender"), "tune.recommender", "Search for the options of a recommender on held-out data"),
    Entry(("tune", "regressor"), "tune.regressor", "Search for the options of a regression on held-out data"),
    Entry(("tune", "tagger"), "tune.tagger", "Search for the options of a tagger on held-out data"),
    Entry(("tune", "word2vec"), "tune.word2vec", "Search for the rate and epochs of word vectors on held-out text"),
    Entry(("simulate", "classifier"), "simulate.classifier", "Predict the training of a classifier on more cores"),
    Entry(("simulate", "ctr"), "simulate.ctr", "Predict the training of a model of clicks on more cores"),
    Entry(("simulate", "recommender"), "simulate.recommender", "Predict the training of a recommender on more cores"),
    Entry(("simulate", "regressor"), "simulate.regressor", "Predict the training of a regression on more cores"),
    Entry(("simulate", "tagger"), "simulate.tagger", "Predict the training of a tagger on more cores"),
    Entry(("simulate", "word2vec"), "simulate.word2vec", "Predict the training of word vectors on more cores"),
    Entry(("evaluate",), "apply.evaluate", "Measure a trained model on labelled files, or word vectors on tests"),
    Entry(("predict",), "apply.predict", "Write the predictions of a trained model, one a line"),
    Entry(("recommend",), "apply.recommenders", "Write the best items for users"),
    Entry(("similar",), "apply.similar", "Write the items, or users, most like others"),
    Entry(("inspect",), "apply.inspect", "Show the strongest weights of a tagger or a linear model"),
    Entry(("neighbors",), "apply.words", "Show the words nearest to a word, or documents to a document"),
    Entry(("export",), "apply.export", "Write word vectors as a file that other tools open"),
    Entry(("make-dataset", "sparse"), "make.sparse", "Make a sparse problem that can be learned"),
    Entry(("make-dataset", "clicks"), "make.clicks", "Make clicks that can be learned, with slots and numbers"),
    Entry(("make-dataset", "ratings"), "make.ratings", "Make ratings that can be learned"),
    Entry(("experiment", "asyngrad"), "experiment.asyngrad", "Compare serial, synchronous and lock-free training"),
    Entry(("experiment", "hogwild"), "experiment.hogwild", "Compare sparse training with and without locks"),
    Entry(("experiment", "embeddings"), "experiment.embeddings", "Compare ways to learn word vectors on several nodes"),
    Entry(("warm",), "apply.warm", "Compile ahead what a model or common commands need"),
    Entry(("report",), "observe.report", "Make one HTML page of runs: curves, gradient errors, speed, options"),
    Entry(("cache",), "cache", "List or clear what has been encoded before"),
    Entry(("doctor",), "observe.doctor", "Look at this machine: cores, memory, libraries, and what speed to expect"),
    Entry(("demo",), "observe.demo", "See it work: train in two modes and compare; find words that are alike"),
    Entry(("completion",), "completion", "Print a completion script for bash, zsh or fish"),
)
