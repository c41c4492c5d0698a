"""The same updates with errors that are planted: a simulation in NumPy that repeats bit for bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.errors import ConfigError
from hogwild.observe.theory.objective import Objective, Vector
from hogwild.observe.theory.windows import Window


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
        self._error = self._error_square = self._step_square = self._moved = 0.0
        self._largest_step = self._largest_term = self._farthest = 0.0

    def add(self, away: Vector, steps: Vector, true: Vector, terms: Vector, gamma: float) -> None:
        """One update of each copy."""
        errors = np.einsum("ij,ij->i", true - steps, away)
        squares = np.einsum("ij,ij->i", steps, steps)
        self.counted += len(away)
        self._error += float(errors.sum())
        self._error_square += float(errors @ errors)
        self._step_square += float(squares.sum())
        self._moved += float(gamma**2 * squares.sum() - 2 * gamma * np.einsum("ij,ij->", steps, away))
        self._largest_step = max(self._largest_step, float(squares.max()) ** 0.5)
        self._largest_term = max(self._largest_term, float(np.einsum("ij,ij->i", terms, terms).max()) ** 0.5)
        self._farthest = max(self._farthest, float(np.einsum("ij,ij->i", away, away).max()))

    def window(self, objective: Objective, end: int, weights: Vector) -> Window:
        """Means over updates and copies."""
        return Window(
            end, float(np.mean([objective.distance(w) for w in weights])),
            float(np.mean([objective.gap(w) for w in weights])), self.counted,
            error=self._error / self.counted, error_square=self._error_square / self.counted,
            step_square=self._step_square / self.counted, moved=self._moved / self.counted,
            largest_step=self._largest_step, largest_term=self._largest_term, farthest=self._farthest,
            stale=self.stale / self.counted, lost=self.lost / self.counted,
        )  # fmt: skip
