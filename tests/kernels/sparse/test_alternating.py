"""Alternating least squares: the rows that conjugate gradients find against those of a plain solver."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild.kernels.sparse.alternating import Side, System, solve_rows
from reference.factorization import solved

DIM = 5


def problem(weight: float, l2: float, steps: int) -> tuple[Side, System, list[list[int]]]:
    """Six rows, one without and one with all of nine others."""
    random = np.random.default_rng(2)
    owned = [sorted(random.choice(9, size, replace=False).tolist()) for size in (3, 0, 9, 1, 4, 5)]
    rows, across = (random.standard_normal((n, DIM)).astype(np.float32) for n in (6, 9))
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in owned])])
    others = np.array([k for own in owned for k in own], np.int32)
    gram = np.ascontiguousarray(np.float32(weight) * (across.T @ across))
    return Side(rows, across, offsets, others), System(gram, np.float32(weight), np.float32(l2), steps), owned


@pytest.mark.parametrize(("weight", "l2"), [(0.2, 0.05), (0.01, 0.5), (1.0, 0.003)])
def test_rows_are_those_of_a_plain_solver(weight: float, l2: float) -> None:
    side, system, owned = problem(weight, l2, 3 * DIM)
    loss = solve_rows(side, system, 0, 6, np.zeros((4, DIM), np.float32))
    expected = [solved(own, side.across.astype(np.float64), weight, l2) for own in owned]
    for row, (wanted, _), own in zip(side.rows, expected, owned, strict=True):
        np.testing.assert_allclose(row, wanted if own else 0, rtol=2e-3, atol=2e-4)
    assert loss == pytest.approx(sum(each for (_, each), own in zip(expected, owned, strict=True) if own), rel=1e-3)


def test_each_step_comes_nearer_and_parts_are_the_whole() -> None:
    whole, _, _ = problem(0.1, 0.05, 0)
    room = np.zeros((4, DIM), np.float32)
    far = []
    for steps in (0, 1, 3, 15):
        side, system, owned = problem(0.1, 0.05, steps)
        solve_rows(side, system, 0, 2, room)
        solve_rows(side, system, 2, 6, room)
        wanted = [solved(own, side.across.astype(np.float64), 0.1, 0.05)[0] for own in owned]
        far.append(float(np.abs(side.rows[2:] - np.array(wanted)[2:]).max()))
        if not steps:
            assert (side.rows[2:] == whole.rows[2:]).all()
    assert far == sorted(far, reverse=True)
    assert far[-1] < 1e-3
