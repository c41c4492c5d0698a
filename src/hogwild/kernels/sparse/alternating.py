"""Alternating least squares for what users have: every row of one side is solved for, with the other side as it is.

Of all pairs of user and item, those that are there should score 1, all others 0; the latter count `weight` each. Every
pair pays l2 for the two rows that it reads, by its count. For the row x of a user with items v that is

    sum over own items (1 - v x)^2 + weight sum over all items (v x)^2 + l2 (n + weight items) x^2,

a sum of squares whose lowest place solves A x = b, A = sum v v' + weight V'V + l2 (n + weight items), b = sum v. Some
steps of conjugate gradients from where the row stands come near enough, and never make A: a step takes dim^2 and n dim.
(Hu, Koren, Volinsky 2008; penalties by count as of Rendle and others 2021, Revisiting the performance of iALS.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats, Ids, Offsets
from hogwild.kernels.compiler.jit import kernel

_F = np.float32
_SMALL = np.float32(1e-12)  # square of what is left of a row, from which on it is solved


class Side(NamedTuple):
    """Rows to solve for, (rows, dim), and those of the other side; row k has others[offsets[k]:offsets[k + 1]]."""

    rows: Floats
    across: Floats
    offsets: Offsets
    others: Ids


class System(NamedTuple):
    """What all rows of a side have in common. gram: weight times the products of all columns of the other side."""

    gram: Floats
    weight: np.float32
    l2: np.float32
    steps: int


@kernel
def multiply(side: Any, system: Any, row: int, vector: Any, out: Any) -> None:
    """A times a vector, without A."""
    dim, across = len(vector), side.across
    first, stop = side.offsets[row], side.offsets[row + 1]
    due = system.l2 * (_F(stop - first) + system.weight * _F(len(across)))
    for c in range(dim):
        out[c] = due * vector[c]
    for j in range(dim):
        times, line = vector[j], system.gram[j]
        for c in range(dim):
            out[c] += times * line[c]
    for k in range(first, stop):
        other = across[side.others[k]]
        times = _F(0)
        for c in range(dim):
            times += other[c] * vector[c]
        for c in range(dim):
            out[c] += times * other[c]


@kernel
def _dot(one: Any, other: Any) -> Any:
    total = _F(0)
    for c in range(len(one)):
        total += one[c] * other[c]
    return total


@kernel
def solve_row(side: Any, system: Any, row: int, room: Any) -> Any:
    """Move a row to near its lowest place; returns its loss there, penalty apart. room: (4, dim)."""
    x, wanted, left, way, image = side.rows[row], room[0], room[1], room[2], room[3]
    dim, first, stop = len(x), side.offsets[row], side.offsets[row + 1]
    if first == stop:
        for c in range(dim):
            x[c] = _F(0)
        return 0.0
    for c in range(dim):
        wanted[c] = _F(0)
    for k in range(first, stop):
        other = side.across[side.others[k]]
        for c in range(dim):
            wanted[c] += other[c]
    multiply(side, system, row, x, image)
    for c in range(dim):
        left[c] = wanted[c] - image[c]
        way[c] = left[c]
    size = _dot(left, left)
    for _ in range(system.steps):
        if size <= _SMALL:
            break
        multiply(side, system, row, way, image)
        far = size / _dot(way, image)
        for c in range(dim):
            x[c] += far * way[c]
            left[c] -= far * image[c]
        now = _dot(left, left)
        turn = now / size
        size = now
        for c in range(dim):
            way[c] = left[c] + turn * way[c]
    # x A x = x b - x left; what the row pays as penalty is no loss.
    count = _F(stop - first)
    due = system.l2 * (count + system.weight * _F(len(side.across)))
    return np.float64(count - _dot(wanted, x) - _dot(left, x) - due * _dot(x, x))


@kernel
def solve_rows(side: Any, system: Any, start: int, stop: int, room: Any) -> Any:
    """Solve for the rows from start to stop; returns the sum of their losses."""
    loss = 0.0
    for row in range(start, stop):
        loss += solve_row(side, system, row, room)
    return loss
