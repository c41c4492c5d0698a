"""The loss of a program on samples that it does not learn from."""

from __future__ import annotations

from typing import Any

from hogwild.kernels.compiler.jit import open_kernel
from hogwild.kernels.loop.task import gradient


@open_kernel
def total_loss(task: Any, samples: Any, weights: Any, scratch: Any, visits: int) -> float:
    """The sum over the visits, in their order."""
    total = 0.0
    for visit in range(visits):
        total += gradient(task, samples, visit, weights, scratch)
    return total
