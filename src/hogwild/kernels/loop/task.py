"""The seam of every program: what one visit does, as functions chosen by the type of the task.

`gradient(task, samples, visit, weights, scratch)` reads weights, fills scratch and returns the loss;
`apply(task, weights, scratch, step)` writes weights from scratch. A task may register `fused`, one function
that does both, for the lock-free mode where it is faster.
"""

from __future__ import annotations

from typing import Any

from hogwild.kernels.compiler.jit import choice, open_kernel


@choice
def gradient(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    """Fill scratch with the gradient of one visit; return its loss."""


@choice
def apply(task: Any, weights: Any, scratch: Any, step: Any) -> Any:
    """Write the gradient in scratch into the weights."""


@choice
def fused(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    """Gradient and apply in one, without the round trip through scratch; return the loss."""


def _pair(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    loss = gradient(task, samples, visit, weights, scratch)
    apply(task, weights, scratch, step)
    return loss


fused.otherwise(_pair)

gradient_of = gradient.of
apply_of = apply.of
fused_of = fused.of


# -- The loss of a program on samples that it does not learn from -----------------------------------------------------


@open_kernel
def total_loss(task: Any, samples: Any, weights: Any, scratch: Any, first: int, stop: int) -> float:
    """The sum over the visits first … stop - 1, in their order."""
    total = 0.0
    for visit in range(first, stop):
        total += gradient(task, samples, visit, weights, scratch)
    return total
