"""The experiment of AsynGrad: the same tagger trained by one thread, by threads that wait for each other, and by
threads that overwrite each other; a CRF also with structure regularization.

A traced run is several times slower than one without a trace. So each kind of run is made both ways: seconds come from
runs without, gradient errors from runs with a trace.
"""

from __future__ import annotations

from typing import Any

from hogwild.config import Mode
from hogwild.config.experiments import AsynGradBiLSTMConfig, AsynGradConfig
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.observe.experiments import frame, published
from hogwild.observe.experiments.comparing import compare
from hogwild.observe.experiments.files import data_digest
from hogwild.observe.experiments.frame import Run, Training
from hogwild.programs.taggers.bilstm import BiLSTM
from hogwild.programs.taggers.crf import CRF
from hogwild.programs.taggers.scores import kind_of_feed
from hogwild.programs.taggers.tagger import Tagger

SGD, SYNCHRONOUS, ASYNGRAD, REGULARIZED = "sgd", "synchronous", "asyngrad", "asyngrad+sr"
METHODS = (SGD, SYNCHRONOUS, ASYNGRAD, REGULARIZED)
MODES: dict[str, Mode] = {SGD: "serial", SYNCHRONOUS: "round-robin", ASYNGRAD: "hogwild", REGULARIZED: "hogwild"}
RATES = {"pos": 0.02, "chunking": 0.05, "segmentation": 0.1}  # first learning rates of the paper

AnyConfig = AsynGradConfig | AsynGradBiLSTMConfig


def plan_runs(config: AnyConfig) -> list[Run]:
    """All runs in their order; without structure regularization where the model has none.

    What is to be compared is near in time; what one seed can tell is known before the next one begins.
    """
    most = max(config.counts)
    found: list[Run] = []
    for seed in config.seed_list:
        found.append(Run(SGD, 1, seed))
        found += [Run(method, count, seed) for count in config.counts for method in (SYNCHRONOUS, ASYNGRAD)]
        found += [Run(REGULARIZED, most, seed)] * bool(config.pieces)
        if seed == config.seed:
            found += [Run(ASYNGRAD, count, seed, traced=True) for count in config.counts]
            found += [Run(REGULARIZED, most, seed, traced=True)] * bool(config.pieces)
    return found


class Experiment(frame.Experiment[Run]):
    """All runs, and what came of them so far.

    Examples
    --------
    >>> feed = hogwild.tagging_of([[["w=a"], ["w=b"]], [["w=b"]]], [["A", "B"], ["B"]])         # doctest: +SKIP
    >>> experiment = Experiment(AsynGradConfig(small=True), feed, feed)                         # doctest: +SKIP
    >>> for run, event in experiment.run():                                                     # doctest: +SKIP
    ...     if event.kind == "finished":
    ...         print(run, event.train_seconds)
    >>> experiment.record()["methods"][0]["speed_up"]                                           # doctest: +SKIP
    1.0
    """

    schema = "hogwild.asyngrad"

    def __init__(self, config: AnyConfig, train: TaggingFeed, test: TaggingFeed) -> None:
        super().__init__(plan_runs(config))
        self.config, self.train, self.test = config, train, test
        self._counts = config.counts
        if isinstance(config, AsynGradBiLSTMConfig):
            self.lr, self.l2 = config.lr or BiLSTM(**config.program()).rate, config.l2
        else:
            self.lr, self.l2 = config.lr or RATES[config.templates], CRF(preset=config.templates, l2=config.l2).l2
        self._data = {"train": _facts(train), "test": _facts(test)}
        plain = config.task == "pos" or kind_of_feed(train) == "tags"
        self.score = "accuracy" if plain else "f1"

    def facts(self, run: Run) -> dict[str, Any]:
        """What tells this run from the others."""
        return {
            "method": run.method, "mode": MODES[run.method], "threads": run.threads, "seed": run.seed,
            "traced": run.traced, "structure_regularization": self._pieces(run),
        }  # fmt: skip

    def training(self, run: Run) -> Training:
        """An executor with one copy of the weights, and a tagger."""
        executor = AsyncExecutor(
            run.threads, MODES[run.method], "all", epochs=self.config.iterations, lr=self.lr, seed=run.seed,
            trace=run.traced,
        )  # fmt: skip
        return Training(executor, self._program(self._pieces(run)), self.train, self.test)

    def _pieces(self, run: Run) -> int:
        return self.config.pieces if run.method == REGULARIZED else 0

    def _model(self) -> dict[str, Any]:
        """The options of the model."""
        config = self.config
        if isinstance(config, AsynGradBiLSTMConfig):
            return config.program()
        return {
            "l2": self.l2, "rich_edges": config.rich_edges, "rich_edge_min_count": config.rich_edge_min_count,
            "structure_regularization": config.structure_regularization,
            "structure_regularization_form": config.structure_regularization_form,
        }  # fmt: skip

    def _program(self, pieces: int) -> Tagger:
        if isinstance(self.config, AsynGradBiLSTMConfig):
            return BiLSTM(**self._model())
        whole = {} if pieces else {"structure_regularization": 0, "structure_regularization_form": "sum"}
        return CRF(**{**self._model(), **whole})

    def about(self) -> dict[str, Any]:
        """The model and the task."""
        return {"model": self.config.model, "task": self.config.task}

    def options(self) -> dict[str, Any]:
        """Those of the runs and of the model."""
        config = self.config
        return {
            "threads": list(config.counts), "iterations": config.iterations, "lr": self.lr, "l2": self.l2,
            "seeds": config.seed_list, "sharing": "all", **self._model(),
        }  # fmt: skip

    def data(self) -> dict[str, Any]:
        """Sentences, features and tags."""
        return {
            **self._data, "features": len(self.train.names),
            "tags": list(self.train.tags), "templates": list(self.train.schema.get("templates", ())),
        }  # fmt: skip

    def compared(self) -> list[dict[str, Any]]:
        """Each method and number of threads, against SGD, beside what the paper has."""
        found = compare(self.records, METHODS)
        most = max(self.config.counts)
        for entry in found:
            entry["published"] = self._published(entry, most)
        return found

    def _published(self, entry: dict[str, Any], most: int) -> dict[str, Any] | None:
        """The numbers of the paper stand beside its number of threads, or the most that there are."""
        paper = published.of(self.config.model, self.config.task, entry["method"])
        beside = paper is not None and entry["threads"] == (paper.threads if paper.threads in self._counts else most)
        if paper is None or not (beside or entry["method"] == SGD):
            return None
        here = published.Here(
            self.train.source, len(self.train), len(self.test), entry["threads"], self._machine["cores"],
            getattr(self.config, "recurrence", ""),
        )  # fmt: skip
        return paper.beside(here)

    def notes(self) -> list[str]:
        """Of the text, of the score, of threads without a core."""
        found = [*self.train.notes, *(f"test: {note}" for note in self.test.notes)]
        if self.score == "accuracy" and self.config.task != "pos":
            found.append(f"the tags are not those of {self.config.task}: the score is the accuracy.")
        return [*found, *frame.crowding(max(self.config.counts))]


def _facts(feed: TaggingFeed) -> dict[str, Any]:
    digest = data_digest(feed.samples, feed.names, feed.tags)
    return {"source": feed.source, "sentences": len(feed), "tokens": feed.tokens, "digest": digest}
