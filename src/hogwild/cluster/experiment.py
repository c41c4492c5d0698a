"""The experiment on word vectors: one text, learnt by one machine and by several nodes, by each strategy.

Duration, quality, bytes and messages between nodes, and what each node took of its machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hogwild.cluster.driver import ClusterExecutor
from hogwild.cluster.text.texts import Texts
from hogwild.config import CorpusConfig
from hogwild.config.cluster import ClusterConfig
from hogwild.config.experiments import ALONE, EmbeddingsConfig
from hogwild.errors import InputError
from hogwild.executor.events import EpochEnded, Event, Nodes
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.corpus.feed import Corpus
from hogwild.messages import counted
from hogwild.observe.experiments import frame
from hogwild.observe.experiments.comparing import compare, spread
from hogwild.observe.experiments.files import data_digest
from hogwild.observe.experiments.frame import Run, Training
from hogwild.programs.words.evaluation import WordTest, evaluate_test
from hogwild.programs.words.vectors import Vectors
from hogwild.programs.words.word2vec import Word2Vec

_SUMMED = ("sent", "received", "messages_sent", "messages_received")
_TAKEN = ("cores", "memory", "seconds_waited", "seconds_exchanging", "exchanges")


@dataclass(frozen=True)
class NodeRun(Run):
    """One training; `threads` is its number of nodes, or of workers of one machine."""

    def __str__(self) -> str:
        what = counted(self.threads, "worker" if self.method == ALONE else "node")
        return f"{self.method}, {what}, seed {self.seed}"


def plan_runs(config: EmbeddingsConfig) -> list[NodeRun]:
    """All runs in their order: one machine with one worker, then for each number of nodes as many workers, and all
    strategies."""
    found: list[NodeRun] = []
    for seed in config.seed_list:
        for count in dict.fromkeys((1, *config.node_counts)):
            found.append(NodeRun(ALONE, count * config.workers_per_node if count > 1 else 1, seed))
            found += [NodeRun(name, count, seed) for name in config.methods if count in config.node_counts]
    return found


class _OnNodes(Training):
    """A run on a cluster of its own, which ends with it."""

    def events(self) -> Iterator[Event]:
        with self.executor:
            yield from super().events()


class Experiment(frame.Experiment[NodeRun]):
    """All runs, and what came of them so far.

    Parameters
    ----------
    text : the file, which nodes read themselves. corpus: the same, open.
    tests : word similarity and analogies, measured at the end of each run.
    """

    schema = "hogwild.embeddings"

    def __init__(
        self, config: EmbeddingsConfig, text: str, corpus: Corpus, reading: CorpusConfig, tests: Sequence[WordTest] = ()
    ) -> None:
        super().__init__(plan_runs(config))
        self.config, self.text, self.corpus, self.reading, self.tests = config, text, corpus, reading, tuple(tests)
        self.score = "similarity" if tests else "loss"
        digest = data_digest(corpus.samples, corpus.words)
        self._data = {"source": corpus.source, "words": corpus.total, "vocabulary": len(corpus.words), "digest": digest}
        self._program: Word2Vec

    def facts(self, run: NodeRun) -> dict[str, Any]:
        """What tells this run from the others."""
        return {
            "method": run.method, "mode": run.method, "threads": run.threads, "seed": run.seed, "traced": False,
        }  # fmt: skip

    def training(self, run: NodeRun) -> Training:
        """An executor of this machine, or nodes of a Ray of its own."""
        config = self.config
        self._program = Word2Vec(dim=config.dim)
        given: dict[str, Any] = {"epochs": config.iterations, "seed": run.seed}
        given |= {"lr": config.lr} if config.lr else {}
        if run.method == ALONE:
            return Training(AsyncExecutor(run.threads, **given), self._program, self.corpus)
        strategy, _, how = run.method.partition(", ")
        where = ClusterConfig(
            "local", nodes=run.threads, workers_per_node=config.workers_per_node, strategy=strategy,  # type: ignore[arg-type]
            asynchronous=bool(how),
        )  # fmt: skip
        return _OnNodes(ClusterExecutor(where, **given), self._program, Texts((self.text,), self.reading))

    def iteration(self, event: EpochEnded, run: NodeRun) -> dict[str, Any]:
        """The loss of training; the tests after the last."""
        found: dict[str, Any] = {
            "iteration": event.epoch, "seconds": event.epoch_seconds, "loss": event.loss, "test_loss": None,
            "score": event.loss,
        }  # fmt: skip
        if self.tests:
            found["score"] = None
            if event.epoch == self.config.iterations:
                found["tests"] = {test.name: _value(self._program.vectors, test) for test in self.tests}
                found["score"] = sum(found["tests"].values()) / len(self.tests)
        return found

    def take(self, event: Event, record: dict[str, Any]) -> None:
        """What nodes sent and took, in all so far."""
        if isinstance(event, Nodes):
            record["nodes"] = {
                **{name: sum(node[name] for node in event.nodes) for name in _SUMMED},
                **{name: [node.get(name) for node in event.nodes] for name in _TAKEN},
            }

    def about(self) -> dict[str, Any]:
        """The model and the task."""
        return {"model": "word2vec", "task": "embeddings"}

    def options(self) -> dict[str, Any]:
        """Those of the runs and of the model."""
        config = self.config
        return {
            "nodes": list(config.node_counts), "workers_per_node": config.workers_per_node,
            "strategies": list(config.methods), "iterations": config.iterations, "lr": config.lr,
            "seeds": config.seed_list, "dim": config.dim, "min_count": self.reading.min_count,
            "tests": [test.name for test in self.tests],
        }  # fmt: skip

    def data(self) -> dict[str, Any]:
        """The text."""
        return self._data

    def compared(self) -> list[dict[str, Any]]:
        """Each strategy and number of nodes, against one worker of one machine; with what went over the wire."""
        found = compare(self.records, (ALONE, *self.config.methods))
        for entry in found:
            mine = [
                run for run in self.records
                if (run["method"], run["threads"]) == (entry["method"], entry["threads"]) and run["complete"]
            ]
            entry["duration"] = spread([run["wall_seconds"] for run in mine])
            entry["traffic"] = self._traffic([run["nodes"] for run in mine if "nodes" in run])
        return found

    def _traffic(self, told: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Means over runs; of cores and memory over nodes too."""
        if not told:
            return None
        words = self.corpus.total * self.config.iterations
        sent, messages = (sum(each[name] for each in told) / len(told) for name in ("sent", "messages_sent"))
        cores, memory = (
            [value for each in told for value in each[name] if value is not None] for name in ("cores", "memory")
        )
        return {
            "bytes": sent, "bytes_a_word": sent / words, "messages": messages,
            "cores_a_node": sum(cores) / len(cores) if cores else None, "memory_a_node": max(memory, default=None),
        }  # fmt: skip

    def notes(self) -> list[str]:
        """Of the text, and of nodes without a core."""
        config = self.config
        return [*self.corpus.notes, *frame.crowding(max(config.node_counts) * config.workers_per_node)]


def _value(vectors: Vectors, test: WordTest) -> float:
    """Spearman's correlation of pairs, or the share of analogies that are right."""
    score = evaluate_test(vectors, test)
    value = score.pairs.spearman if score.pairs is not None else math.nan
    value = score.total.accuracy if score.total is not None else value
    if math.isnan(value):
        raise InputError(f"{test.name}: too few of its words are in the vocabulary of the text; leave the test out.")
    return value
