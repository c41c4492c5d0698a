"""What was measured in one window of updates, and the same window of several runs put together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hogwild.observe.theory.objective import Objective, Vector


@dataclass(frozen=True)
class Window:
    """A run of updates. Here w are the weights that an update replaced and s is the step that it really made.

    A run that is not measured has `counted` 0, and no more than `end`, `distance` and `gap`.
    """

    end: int
    """Updates made since the run began."""
    distance: float
    """|w - w*|^2 at the end; of several runs, the mean."""
    gap: float
    """f(w) - f(w*) at the end; of several runs, the mean."""
    counted: int = 0
    """Updates that were measured."""
    error: float = 0.0
    """Mean of (gradient of the sample at w - s) (w - w*): what tau bounds."""
    error_square: float = 0.0
    """Mean of its square."""
    step_square: float = 0.0
    """Mean of |s|^2: what the proof needs kappa^2 for."""
    moved: float = 0.0
    """Mean change of |w - w*|^2 by an update; over all updates of a run these add up to last minus first."""
    largest_step: float = 0.0
    """Largest |s|, with updates of others that were undone."""
    largest_term: float = 0.0
    """Largest norm of an update term as its worker computed it."""
    farthest: float = 0.0
    """Largest |w - w*|^2."""
    stale: float = 0.0
    """Share of updates of which a weight was overwritten between its reading and its replacing."""
    lost: float = 0.0
    """Share of updates that wrote over another one in some weight."""

    @property
    def uncertainty(self) -> float:
        """Standard error of `error`, as if updates were independent."""
        variance = max(0.0, self.error_square - self.error**2)
        return math.sqrt(variance / self.counted) if self.counted else 0.0


_MEANS = ("error", "error_square", "step_square", "moved", "stale", "lost")


class Engine(Protocol):
    """What makes updates: k workers, or a simulation of them."""

    @property
    def objective(self) -> Objective:
        """What is minimised."""

    @property
    def label(self) -> str:
        """How it is called in pictures."""

    def run(self, first: Vector, gamma: float, updates: int, windows: int, seed: int) -> list[Window]:
        """At least so many updates from weights `first` at the rate gamma, in about so many windows."""


def pool(runs: Sequence[Sequence[Window]]) -> list[Window]:
    """The windows of runs of equal length, put together: means over updates, and largest values."""
    return [_together(same) for same in zip(*runs, strict=True)]


def mean_of(windows: Sequence[Window], name: str) -> float:
    """The mean of a value over all updates that were measured in the windows."""
    counted = sum(window.counted for window in windows)
    return sum(window.counted * getattr(window, name) for window in windows) / counted if counted else 0.0


def _together(windows: Sequence[Window]) -> Window:
    distance, gap = (sum(getattr(w, name) for w in windows) / len(windows) for name in ("distance", "gap"))
    values: dict[str, Any] = {name: mean_of(windows, name) for name in _MEANS}
    values |= {name: max(getattr(w, name) for w in windows) for name in ("largest_step", "largest_term", "farthest")}
    return Window(windows[0].end, distance, gap, sum(window.counted for window in windows), **values)
