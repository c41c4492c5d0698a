"""Runs of the executor for the theorem: its own algorithm, measured update by update; and `hogwild.Linear` as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.arrays import PAD, DenseRows, Room
from hogwild.config import Mode, Sharing
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
    mode: Mode = "hogwild"

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
    sharing: Sharing = "hot"

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
    most = ("LARGEST_STEP", "LARGEST_TERM", "FARTHEST")
    values |= {name.lower(): float(largest[getattr(asyngrad, name)]) for name in most}
    return Window(end, distance, gap, counted, **values)


# -- The same updates with errors that are planted: a simulation in NumPy that repeats bit for bit --------------------


@dataclass(frozen=True)
class Simulated:
    """Algorithm 1 of AsynGrad with gradient errors of a known kind, in several copies at once.

    A weight is read as it was `delay` updates ago with the probability `stale`, else as it is. An update is written to
    a weight as it was `delay` updates ago with the probability `lost`, which undoes the updates in between, else to
    the weight as it is. Samples are drawn at random. Numbers are float64: nothing is rounded.

    Parameters
    ----------
    objective : see `objective_of`.
    delay : in updates; 0: there are no errors.
    stale, lost : probabilities, of each weight and update.
    copies : runs with random numbers of their own, over which everything is the mean.
    """

    objective: Objective
    delay: int = 1
    stale: float = 0.0
    lost: float = 0.0
    copies: int = 32

    def __post_init__(self) -> None:
        if self.delay < 0 or self.copies < 1:
            raise ConfigError(f"delay is {self.delay}, copies {self.copies}; use at least 0 and 1.")
        for name in ("stale", "lost"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it is a probability between 0 and 1.")

    @property
    def label(self) -> str:
        """How it is called in pictures."""
        return f"simulated: delay {self.delay}, stale {self.stale:g}, lost {self.lost:g}"

    def run(self, first: Vector, gamma: float, updates: int, windows: int, seed: int) -> list[Window]:
        """At least so many updates from weights `first`, in so many windows."""
        random = np.random.default_rng(seed)
        past = np.tile(np.asarray(first, np.float64), (self.delay + 1, self.copies, 1))
        each = -(-max(1, updates) // windows)
        found = []
        for window in range(windows):
            sums = _Sums()
            for update in range(window * each, (window + 1) * each):
                now, then = past[update % len(past)], past[(update + 1) % len(past)]
                past[(update + 1) % len(past)] = self._update(now, then, gamma, random, sums)
            found.append(sums.window(self.objective, (window + 1) * each, past[(window + 1) * each % len(past)]))
        return found

    def _update(self, now: Vector, then: Vector, gamma: float, random: np.random.Generator, sums: _Sums) -> Vector:
        samples = random.integers(len(self.objective.rows.targets), size=len(now))
        late = random.random(now.shape) < self.stale
        over = random.random(now.shape) < self.lost
        terms = self.objective.sample_gradients(samples, np.where(late, then, now))
        stored = np.asarray(np.where(over, then, now) - gamma * terms)
        true = self.objective.sample_gradients(samples, now)
        differs = now != then
        sums.add(now - self.objective.optimum, (now - stored) / gamma, true, terms, gamma)
        sums.stale += int((late & differs).any(axis=1).sum())
        sums.lost += int((over & differs).any(axis=1).sum())
        return stored


class _Sums:
    """What the meter of the executor's runs adds up, for all copies."""

    def __init__(self) -> None:
        self.counted = self.stale = self.lost = 0
        self._sums = dict.fromkeys(("error", "error_square", "step_square", "moved"), 0.0)
        self._most = dict.fromkeys(("largest_step", "largest_term", "farthest"), 0.0)

    def add(self, away: Vector, steps: Vector, true: Vector, terms: Vector, gamma: float) -> None:
        """One update of each copy."""
        errors = np.einsum("ij,ij->i", true - steps, away)
        squares = np.einsum("ij,ij->i", steps, steps)
        self.counted += len(away)
        moved = gamma**2 * squares.sum() - 2 * gamma * np.einsum("ij,ij->", steps, away)
        for name, value in zip(self._sums, (errors.sum(), errors @ errors, squares.sum(), moved), strict=True):
            self._sums[name] += float(value)
        term, distance = (float(np.einsum("ij,ij->i", rows, rows).max()) for rows in (terms, away))
        for name, value in zip(self._most, (float(squares.max()) ** 0.5, term**0.5, distance), strict=True):
            self._most[name] = max(self._most[name], value)

    def window(self, objective: Objective, end: int, weights: Vector) -> Window:
        """Means over updates and copies."""
        distance, gap = (float(np.mean([of(w) for w in weights])) for of in (objective.distance, objective.gap))
        sums = {**self._sums, "stale": self.stale, "lost": self.lost}
        means = {name: value / self.counted for name, value in sums.items()}
        return Window(end, distance, gap, self.counted, **means, **self._most)
