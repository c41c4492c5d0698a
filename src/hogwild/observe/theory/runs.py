"""Runs of the executor for the theorem: its own algorithm, measured update by update; and `hogwild.Linear` as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.arrays import PAD, DenseRows, Room
from hogwild.errors import ConfigError
from hogwild.executor.run import AsyncExecutor
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.optim.losses import Logistic, Squared
from hogwild.kernels.sparse import asyngrad
from hogwild.kernels.sparse.asyngrad import AsynGradTask, AsynGradWeights, Meter
from hogwild.observe.theory.objective import Objective, Vector
from hogwild.observe.theory.windows import Window
from hogwild.programs.custom import CustomProgram
from hogwild.programs.sparse.linear import Linear

_LOSSES = {"logistic": Logistic(), "squared": Squared()}
_EPOCH = 20_000  # visits in an epoch of `Trained`, about


@dataclass(frozen=True)
class Measured:
    """Algorithm 1 of AsynGrad in the executor, every update of it measured.

    A visit draws a sample at random, and its step is that of plain gradient descent with the penalty. All weights are
    in one copy. Measuring exchanges each weight in one step of the processor and then computes what the proof needs:
    visits take several times as long, and the moment in which a write can be lost is longer than without.

    Parameters
    ----------
    objective : see `objective_of`.
    threads : workers.
    mode : `hogwild`; or `serial`, `locked` and `round-robin`, to compare.
    """

    objective: Objective
    threads: int = 2
    mode: str = "hogwild"

    def __post_init__(self) -> None:
        if self.mode == "minibatch":
            raise ConfigError("a batch is one update of many samples, which the theorem does not speak of.")

    @property
    def label(self) -> str:
        """How it is called in pictures."""
        return f"{self.threads} workers" if self.mode == "hogwild" else f"{self.threads} workers, {self.mode}"

    def run(self, first: Vector, gamma: float, updates: int, windows: int, seed: int) -> list[Window]:
        """At least so many updates from weights `first`, in so many windows; each window is an epoch."""
        objective, width = self.objective, self.objective.features
        sums = np.zeros((self.threads, 2 * PAD))
        task = AsynGradTask(
            _LOSSES[objective.loss], np.float32(objective.l2), Meter(np.ascontiguousarray(objective.optimum), sums)
        )
        program = CustomProgram(
            task, lambda: AsynGradWeights(first.astype(np.float32)[None]), visits=-(-max(1, updates) // windows),
            room=Room(rows=1, width=width, floats=asyngrad.PARTS * width + 2),
        )  # fmt: skip
        found = []
        executor = AsyncExecutor(self.threads, self.mode, sharing="all", seed=seed, epochs=windows)
        for event in _epochs(executor, program, objective.rows, gamma):
            found.append(_window(objective, event.samples, program.weights.weight[0], sums))
            sums[:] = 0
        return found


@dataclass(frozen=True)
class Trained:
    """`hogwild.Linear` in the executor with the update rule `sgd`, not measured.

    It differs from Algorithm 1 in two ways: an epoch visits every sample equally often, in a shuffled order, and the
    penalty is paid by position: by whoever is ahead, and at the end of an epoch. Few samples are repeated, so that an
    epoch is long against the beginning and the end of one.

    Parameters
    ----------
    objective, threads : as for `Measured`.
    sharing : `hot` (private copies, merged by adding differences: no update is lost), `replica`, or `all`. With `all`
        and dense features many updates are lost while the penalty is paid in full: see docs/theory.md.
    """

    objective: Objective
    threads: int = 2
    sharing: str = "hot"

    @property
    def label(self) -> str:
        """How it is called in pictures."""
        return f"hogwild.Linear, {self.threads} workers, sharing {self.sharing}"

    def run(self, first: Vector, gamma: float, updates: int, windows: int, seed: int) -> list[Window]:
        """Whole epochs, with at least so many updates, in about so many windows."""
        objective = self.objective
        rows, samples = objective.rows, len(objective.rows.targets)
        times = max(1, min(_EPOCH, updates // windows) // samples)
        feed = Feed(DenseRows(*(np.concatenate([array] * times) for array in rows)), objective.features)
        classes = () if objective.loss == "squared" else (-1, 1)
        program = Linear(objective.loss, "sgd", l2=objective.l2, bias=False, classes=classes)
        program.startup(feed, seed)
        program.restore({"weight": first.astype(np.float32), "bias": np.zeros(1, np.float32)})
        epochs = -(-max(1, updates) // len(feed))
        each = max(1, epochs // windows)
        executor = AsyncExecutor(self.threads, sharing=self.sharing, seed=seed, epochs=epochs)
        return [
            _window(objective, event.samples, program.arrays()["weight"])
            for event in _epochs(executor, program, feed, gamma)
            if event.epoch % each == 0 or event.epoch == epochs
        ]


def _epochs(executor: AsyncExecutor, program: Any, feed: Any, gamma: float) -> Iterator[Any]:
    events = executor.run(program, feed, lr=gamma, schedule="constant")
    return (event for event in events if event.kind == "epoch")


def _window(objective: Objective, end: int, weight: Any, sums: Any = None) -> Window:
    distance, gap = objective.distance(weight), objective.gap(weight)
    if sums is None:
        return Window(end, distance, gap)
    total, largest = sums.sum(axis=0), sums.max(axis=0)
    counted = int(total[asyngrad.UPDATES])
    names = ("ERROR", "ERROR_SQUARE", "STEP_SQUARE", "MOVED", "STALE", "LOST")
    values = {name.lower(): float(total[getattr(asyngrad, name)]) / counted for name in names}
    values |= {
        name.lower(): float(largest[getattr(asyngrad, name)]) for name in ("LARGEST_STEP", "LARGEST_TERM", "FARTHEST")
    }
    return Window(end, distance, gap, counted, **values)
