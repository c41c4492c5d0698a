"""Quantities in a unit of their own, of mean 0 and standard deviation 1, in which dense layers learn them; and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hogwild.arrays import Floats


class Unit(NamedTuple):
    """What the user's quantities are measured by.

    Examples
    --------
    >>> unit = Unit.of(np.array([1e5, 3e5], np.float32), np.ones(2, np.float32))
    >>> unit, unit.inward(np.array([2e5, 4e5], np.float32)).tolist(), unit.outward(np.zeros(1, np.float32)).tolist()
    (Unit(mean=200000.0, spread=100000.0), [0.0, 2.0], [200000.0])
    """

    mean: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, targets: Floats, importance: Floats) -> Unit:
        """That of some targets, each with its importance; a spread of 1 where all are the same."""
        wide, weight = targets.astype(np.float64), importance.astype(np.float64)
        weight = weight if weight.sum() > 0 else np.ones(len(wide))
        mean = float(np.average(wide, weights=weight))
        spread = float(np.sqrt(np.average((wide - mean) ** 2, weights=weight)))
        return cls(mean, spread if spread > 1e-30 else 1.0)

    def inward(self, targets: Floats) -> Floats:
        """The user's quantities in this unit."""
        return ((targets.astype(np.float64) - self.mean) / self.spread).astype(np.float32)

    def outward(self, scores: Floats) -> Floats:
        """Quantities of this unit as the user's."""
        return (scores.astype(np.float64) * self.spread + self.mean).astype(np.float32)
