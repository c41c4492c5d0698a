"""Small programs of a user's kind, for tests of the executor: compiled fresh, outside the package."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import hogwild
from hogwild.kernels.compiler.atomics import load, store, wait_for


class Cells(NamedTuple):
    """Weights: one number a row."""

    values: np.ndarray


class Touches(NamedTuple):
    """Samples: each touches one row."""

    rows: np.ndarray
    amounts: np.ndarray


class Count(NamedTuple):
    """Adds amounts to rows: with integers in float cells every lost update shows."""


@hogwild.gradient_of(Count)
def count_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    scratch.rows[0] = samples.rows[visit]
    scratch.grads[0, 0] = samples.amounts[visit]
    scratch.count[0] = 1
    return weights.values[samples.rows[visit], 0] * np.float32(0) + samples.amounts[visit]


@hogwild.apply_of(Count)
def count_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    for k in range(scratch.count[0]):
        weights.values[scratch.rows[k], 0] += scratch.grads[k, 0]


def count_program(rows: int, kind: str = "ranked") -> hogwild.CustomProgram:
    return hogwild.CustomProgram(
        Count(),
        lambda: Cells(np.zeros((rows, 1), np.float32)),
        room=hogwild.Room(rows=1),
        tables={"values": hogwild.Table(rows, 1, kind)},
    )


def touches(visits: int, rows: int, seed: int = 0) -> Touches:
    random = np.random.default_rng(seed)
    return Touches(random.integers(0, rows, visits).astype(np.int32), np.ones(visits, np.float32))


class Fail(NamedTuple):
    """Goes out of bounds, or to infinity, at one sample."""

    at: int
    infinite: bool


@hogwild.gradient_of(Fail)
def fail_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    if visit == task.at:
        if task.infinite:
            return np.float32(np.inf)
        raise ValueError("planted")
    scratch.count[0] = 0
    return np.float32(1)


@hogwild.apply_of(Fail)
def fail_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    return


def fail_program(at: int, infinite: bool = False) -> hogwild.CustomProgram:
    return hogwild.CustomProgram(Fail(at, infinite), lambda: Cells(np.ones((4, 1), np.float32)), room=hogwild.Room(1))


class Twice(NamedTuple):
    """As Count, with the row in the list twice."""


@hogwild.gradient_of(Twice)
def twice_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    for k in range(2):
        scratch.rows[k] = samples.rows[visit]
        scratch.grads[k, 0] = samples.amounts[visit]
    scratch.count[0] = 2
    return samples.amounts[visit]


hogwild.apply_of(Twice)(count_apply)


READ, GO, GRADIENTS = 0, 8, 16  # flags; behind one that is waited for are two cells that waiting needs
MIDDLE = 101  # this visit of an Interleave waits to be told, as visit 0 does


class Interleave(NamedTuple):
    """Visits in a planted order: visit 0 reads its row, then waits until it is told to go on; others wait for it."""

    flags: np.ndarray
    stop: np.ndarray


@hogwild.gradient_of(Interleave)
def interleave_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    scratch.rows[0] = samples.rows[visit]
    scratch.grads[0, 0] = weights.values[samples.rows[visit], 0] + np.float32(1)
    scratch.count[0] = 1
    if visit == 0:
        # A trace computes the gradient thrice: for its rows, for what it is, and on the snapshot. The second waits.
        store(task.flags, GRADIENTS, load(task.flags, GRADIENTS) + 1)
        if load(task.flags, GRADIENTS) == 2:
            store(task.flags, READ, 1)
            wait_for(task.flags, GO, 1, task.stop)
    else:
        wait_for(task.flags, READ, 1, task.stop)
        if visit == MIDDLE:
            wait_for(task.flags, GO, 1, task.stop)
    return np.float32(1)


@hogwild.apply_of(Interleave)
def interleave_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    weights.values[scratch.rows[0], 0] += scratch.grads[0, 0]


class Wrong(NamedTuple):
    """Asks its samples for something that they do not have."""


@hogwild.gradient_of(Wrong)
def wrong_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    return samples.colour[visit]


@hogwild.apply_of(Wrong)
def wrong_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    return
