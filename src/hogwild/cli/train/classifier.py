"""The job of `hogwild train classifier`: a model on labelled files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hogwild.cli.train.job import Job
from hogwild.cli.train.models import make_model, needs_slots
from hogwild.cli.train.train_classifier import Options
from hogwild.executor.events import Finished
from hogwild.executor.readers.checkpoint import Output
from hogwild.feeds.open import description_path, open_feed
from hogwild.feeds.sparse.feed import Feed


class ClassifierJob(Job):
    """A classifier or regression."""

    def __init__(self, options: Options) -> None:
        self.options, self.train = options, options.train
        layout: Any = "slots" if needs_slots(options.model) else options.feed.layout
        self.feed = replace(options.feed, layout=layout)

    def inputs(self) -> list[str]:
        """Descriptions of slots, given or found beside the files."""
        return [self.feed.slots, *(str(description_path(file)) for file in (*self.options.files, *self.options.valid))]

    def make_program(self) -> Any:
        """The model that the flags ask for."""
        return make_model(self.options.model)

    def open(self, files: tuple[str, ...]) -> Feed:
        """The labelled files."""
        return open_feed(files, self.feed)

    def open_valid(self, files: tuple[str, ...], feed: Feed) -> Feed:
        """Labelled files, in the features of the training data."""
        return open_feed(files, self.feed, schema=feed.schema)

    def output(self, path: Path, feed: Feed, keep_best: bool) -> Output:
        """With the model go its labels, and how files become features."""
        return Output(path, feed.schema, self.feed, feed.labels, keep_best)

    def started_notes(self, program: Any, feed: Feed) -> list[str]:
        """What to say when the labels decided what is trained."""
        if self.options.model.loss != "auto" or program.classes:
            return []
        return ["The labels are quantities, not classes: this is a regression (--loss squared)."]

    def training_metrics(self, program: Any, feed: Feed, finished: Finished, threads: int) -> dict[str, float]:
        """Metrics on the training data."""
        found: dict[str, float] = program.evaluate(feed, threads)
        return found
