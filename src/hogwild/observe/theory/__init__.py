"""`hogwild.theory`: the convergence theorem of AsynGrad, its constants measured, and an experiment on it.

`learning_rate`, `updates`, `largest_tau`, `smallest_epsilon`, `gap_bound` and `Recursion` are formulas. The rest is
imported when first used: `objective_of` (a problem whose optimum is known), `Measured`, `Trained` and `Simulated` (ways
to run it), `estimate` (c, q, kappa, tau), `experiment` (does the bound hold?) and `draw` (a picture of that).
"""

from __future__ import annotations

import importlib
from typing import Any

from hogwild.observe.theory.bound import Recursion, gap_bound, largest_tau, learning_rate, smallest_epsilon, updates

_HOMES = {
    "BoundCheck": "check",
    "Estimates": "estimates",
    "Measured": "runs",
    "Objective": "objective",
    "Simulated": "runs",
    "Trained": "runs",
    "Window": "windows",
    "draw": "plot",
    "estimate": "estimates",
    "experiment": "check",
    "objective_of": "objective",
}

__all__ = [  # noqa: PLE0604
    "Recursion", "gap_bound", "largest_tau", "learning_rate", "smallest_epsilon", "updates", *_HOMES,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hogwild.theory' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hogwild.observe.theory.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
