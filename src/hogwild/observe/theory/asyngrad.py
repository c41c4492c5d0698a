"""The experiment of AsynGrad: the same tagger trained by one thread, by threads that wait for each other, and by
threads that overwrite each other; a CRF also with structure regularization.

A traced run is several times slower than one without a trace. So each kind of run is made both ways: seconds come from
runs without, gradient errors from runs with a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import Any

from hogwild import __version__
from hogwild.config import Mode
from hogwild.config.experiments import AsynGradBiLSTMConfig, AsynGradConfig
from hogwild.executor.events import EpochEnded, Event, Finished, Started
from hogwild.executor.run import AsyncExecutor
from hogwild.executor.trace import KINDS, add_up
from hogwild.feeds.tagged.feed import TaggingFeed
from hogwild.machine import cores, describe
from hogwild.observe.logs import plain
from hogwild.programs.taggers.bilstm import BiLSTM
from hogwild.programs.taggers.crf import CRF
from hogwild.programs.taggers.tagger import Tagger

# -- What the runs of an experiment come to: scores, speed-ups and error rates of each method and number of threads ---


SGD, SYNCHRONOUS, ASYNGRAD, REGULARIZED = "sgd", "synchronous", "asyngrad", "asyngrad+sr"
METHODS = (SGD, SYNCHRONOUS, ASYNGRAD, REGULARIZED)

Record = Mapping[str, Any]
AnyConfig = AsynGradConfig | AsynGradBiLSTMConfig


def compare(runs: Sequence[Record]) -> list[dict[str, Any]]:
    """One entry for each method and number of threads, from the records of runs.

    Seconds, scores and losses come from runs without a trace: scores and losses at their ends, seconds from all of
    their iterations. Gradient errors come from traced runs.
    """
    keys = sorted({(METHODS.index(run["method"]), run["threads"]) for run in runs})
    found = [_entry(METHODS[place], threads, runs) for place, threads in keys]
    by_key = {(entry["method"], entry["threads"]): entry for entry in found}
    first = by_key.get((SGD, 1))
    for entry in found:
        own = by_key.get((entry["method"], 1))
        entry["speed_up"] = _ratio(first, entry, "median")
        entry["speed_up_best"] = _ratio(first, entry, "best")
        entry["speed_up_own"] = _ratio(own, entry, "median")
        mine, theirs = entry["final_score"], first["final_score"] if first else None
        entry["score_difference"] = mine["mean"] - theirs["mean"] if mine and theirs else None
    return found


def _entry(method: str, threads: int, runs: Iterable[Record]) -> dict[str, Any]:
    mine = [run for run in runs if (run["method"], run["threads"]) == (method, threads)]
    plain = [run for run in mine if not run["traced"]]
    done = [run["iterations"][-1] for run in plain if run["complete"]]
    seconds = [iteration["seconds"] for run in plain for iteration in run["iterations"]]
    traced = [iteration for run in mine if run["traced"] for iteration in run["iterations"]]
    return {
        "method": method, "threads": threads, "runs": len(done),
        "final_score": _spread([last["score"] for last in done]),
        "final_loss": _spread([last["loss"] for last in done]),
        "seconds": {"median": median(seconds), "best": min(seconds)} if seconds else None,
        "errors": _errors(traced),
    }  # fmt: skip


def _spread(values: Sequence[float]) -> dict[str, Any] | None:
    """deviation: that of a sample (n - 1); None where there is but one value."""
    if not values:
        return None
    deviation = stdev(values) if len(values) > 1 else None
    return {"mean": mean(values), "deviation": deviation, "least": min(values), "most": max(values)}


def _errors(traced: Sequence[Record]) -> dict[str, Any] | None:
    """Shares of the gradients that were looked at in all traced iterations; by_worker: errors of each worker."""
    if not traced:
        return None
    workers = [worker for iteration in traced for worker in iteration["workers"]]
    keys = ("error_rate", "read_overwrite_rate", "write_overwrite_rate", "delayed_rate")
    numbers = sorted({worker["worker"] for worker in workers})
    return {
        **{key: _share(workers, name) for key, name in zip(keys, KINDS, strict=True)},
        "by_worker": [_share([w for w in workers if w["worker"] == number], "errors") for number in numbers],
        "mean_delay": _weighed([(i["errors"]["delay"]["mean"], i["errors"]["looked_at"]) for i in traced]),
        "mean_wrong": _weighed([(i["errors"]["wrong"]["mean"], i["errors"]["wrong"]["samples"]) for i in traced]),
    }


def _share(workers: Sequence[Record], name: str) -> float:
    looked_at = sum(worker["looked_at"] for worker in workers)
    return sum(worker[name] for worker in workers) / looked_at if looked_at else 0.0


def _weighed(pairs: Sequence[tuple[float, int]]) -> float:
    whole = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / whole if whole else 0.0


def _ratio(first: Record | None, entry: Record, which: str) -> float | None:
    if first is None or not first["seconds"] or not entry["seconds"]:
        return None
    return float(first["seconds"][which] / max(entry["seconds"][which], 1e-9))


# -- The runs ---------------------------------------------------------------------------------------------------------


SCHEMA, VERSION = "hogwild.asyngrad", 1
_MODES: dict[str, Mode] = {SGD: "serial", SYNCHRONOUS: "round-robin", ASYNGRAD: "hogwild", REGULARIZED: "hogwild"}
RATES = {"pos": 0.02, "chunking": 0.05, "segmentation": 0.1}  # first learning rates of the paper


@dataclass(frozen=True)
class Run:
    """One training of the experiment."""

    method: str
    threads: int
    seed: int
    traced: bool = False

    @property
    def mode(self) -> Mode:
        """How its workers take turns."""
        return _MODES[self.method]

    def __str__(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.method}, {threads}, seed {self.seed}{', traced' if self.traced else ''}"


def plan_runs(config: AnyConfig) -> list[Run]:
    """All runs in their order; without structure regularization where the model has none.

    What is to be compared is near in time; what one seed can tell is known before the next one begins.
    """
    most = max(config.counts)
    found: list[Run] = []
    for seed in range(config.seed, config.seed + config.repeats):
        found.append(Run(SGD, 1, seed))
        found += [Run(method, count, seed) for count in config.counts for method in (SYNCHRONOUS, ASYNGRAD)]
        found += [Run(REGULARIZED, most, seed)] * bool(config.pieces)
        if seed == config.seed:
            found += [Run(ASYNGRAD, count, seed, traced=True) for count in config.counts]
            found += [Run(REGULARIZED, most, seed, traced=True)] * bool(config.pieces)
    return found


class Experiment:
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

    def __init__(self, config: AnyConfig, train: TaggingFeed, test: TaggingFeed) -> None:
        self.config, self.train, self.test = config, train, test
        if isinstance(config, AsynGradBiLSTMConfig):
            self.lr, self.l2 = config.lr or BiLSTM(**config.program()).rate, config.l2
        else:
            self.lr, self.l2 = config.lr or RATES[config.task], CRF(preset=config.task, l2=config.l2).l2
        self.plan = plan_runs(config)
        self.score = "accuracy" if config.task == "pos" else "f1"
        self.records: list[dict[str, Any]] = []
        self._machine = describe()  # with the load of others, before we begin
        self._stopped = False
        self._executor: AsyncExecutor | None = None

    def stop(self) -> None:
        """End the run that goes on at the next span of its workers, and begin no other."""
        self._stopped = True
        if self._executor is not None:
            self._executor.stop()

    def run(self) -> Iterator[tuple[Run, Event]]:
        """Make all runs; gives their events."""
        for run in self.plan:
            if self._stopped:
                return
            for event in self._events(run):
                yield run, event

    def _model(self) -> dict[str, Any]:
        """The options of the model."""
        config = self.config
        if isinstance(config, AsynGradBiLSTMConfig):
            return config.program()
        return {
            "l2": self.l2, "rich_edges": config.rich_edges, "rich_edge_min_count": config.rich_edge_min_count,
            "structure_regularization": config.structure_regularization,
        }  # fmt: skip

    def _program(self, pieces: int) -> Tagger:
        if isinstance(self.config, AsynGradBiLSTMConfig):
            return BiLSTM(**self._model())
        return CRF(**{**self._model(), "structure_regularization": pieces})

    def _events(self, run: Run) -> Iterator[Event]:
        config = self.config
        pieces = config.pieces if run.method == REGULARIZED else 0
        program = self._program(pieces)
        self._executor = AsyncExecutor(
            run.threads, run.mode, "all", epochs=config.iterations, lr=self.lr, seed=run.seed, trace=run.traced
        )
        record: dict[str, Any] = {
            "method": run.method, "mode": run.mode, "threads": run.threads, "seed": run.seed, "traced": run.traced,
            "structure_regularization": pieces, "complete": False, "compile_seconds": None, "iterations": [],
        }  # fmt: skip
        self.records.append(record)
        for event in self._executor.run(program, self.train, valid=self.test):
            if isinstance(event, Started):
                record["compile_seconds"] = event.compile_seconds
            elif isinstance(event, EpochEnded):
                record["iterations"].append(self._iteration(event, run.traced))
            elif isinstance(event, Finished):
                record["complete"] = event.reason == "done"
            yield event
        self._executor = None

    def _iteration(self, event: EpochEnded, traced: bool) -> dict[str, Any]:
        if self.score not in event.metrics:
            self.score = "accuracy"  # tags that are neither chunks nor words
        found: dict[str, Any] = {
            "iteration": event.epoch, "traced_seconds" if traced else "seconds": event.epoch_seconds,
            "loss": event.loss, "test_loss": event.metrics["loss"], "score": event.metrics[self.score],
        }  # fmt: skip
        if traced:
            found["errors"] = add_up(event.trace)
            found["workers"] = [_without_counts(worker) for worker in event.trace]
        return found

    @property
    def complete(self) -> bool:
        """Whether all runs were made to their end."""
        return len(self.records) == len(self.plan) and all(record["complete"] for record in self.records)

    def record(self) -> dict[str, Any]:
        """All that is known so far, as JSON values; docs/experiments.md says what each is."""
        config = self.config
        whole: dict[str, Any] = plain({
            "schema": SCHEMA, "version": VERSION, "complete": self.complete, "hogwild": __version__,
            "model": config.model, "task": config.task, "score": self.score, "seconds_from": "runs without a trace",
            "errors_from": "traced runs",
            "options": {
                "threads": list(config.counts), "iterations": config.iterations, "lr": self.lr, "l2": self.l2,
                "seeds": [config.seed + place for place in range(config.repeats)], "sharing": "all", **self._model(),
            },
            "data": {
                "train": _facts(self.train), "test": _facts(self.test), "features": len(self.train.names),
                "tags": list(self.train.tags), "templates": list(self.train.schema.get("templates", ())),
            },
            "machine": self._machine,
            "methods": compare(self.records), "runs": self.records, "notes": self._notes(),
        })  # fmt: skip
        return whole

    def _notes(self) -> list[str]:
        found = [*self.train.notes, *(f"test: {note}" for note in self.test.notes)]
        if self.score == "accuracy" and self.config.task != "pos":
            found.append(f"the tags are not those of {self.config.task}: the score is the accuracy.")
        most, there = max(self.config.counts), cores()
        if most > there:
            found.append(f"{most} threads share {there} cores: no speed-up above {there} can be expected.")
        return found


def _facts(feed: TaggingFeed) -> dict[str, Any]:
    return {"source": feed.source, "sentences": len(feed), "tokens": feed.tokens}


def _without_counts(worker: dict[str, Any]) -> dict[str, Any]:
    """The trace of a worker without the histogram of its delays, which `errors` has for all together."""
    delay = {name: value for name, value in worker["delay"].items() if name != "counts"}
    return {**worker, "delay": delay}
