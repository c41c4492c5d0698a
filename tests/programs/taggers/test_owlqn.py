"""OWL-QN against coordinate descent, which is slow and obvious."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hogwild.programs.taggers.owlqn import Limits, minimise

EXACT = Limits(500, delta=1e-9)


def lasso(seed: int, rows: int = 40, columns: int = 25) -> tuple[Any, Any]:
    """Least squares with columns of very different sizes."""
    draw = np.random.default_rng(seed)
    matrix = draw.normal(size=(rows, columns)) * draw.uniform(0.3, 3, columns)
    return matrix, matrix @ (draw.normal(size=columns) * (draw.random(columns) < 0.4)) + draw.normal(size=rows)


def smooth_of(matrix: Any, wanted: Any) -> Any:
    def smooth(x: Any) -> tuple[float, Any]:
        rest = matrix @ x.astype(np.float64) - wanted
        return 0.5 * float(rest @ rest), (matrix.T @ rest).astype(np.float32)

    return smooth


def by_coordinates(matrix: Any, wanted: Any, l1: float) -> Any:
    """One number after the other to where it is best, until nothing moves."""
    x = np.zeros(matrix.shape[1])
    for _ in range(5000):
        for k in range(len(x)):
            pull = matrix[:, k] @ (wanted - matrix @ x + matrix[:, k] * x[k])
            x[k] = np.sign(pull) * max(abs(pull) - l1, 0) / (matrix[:, k] @ matrix[:, k])
    return x


@pytest.mark.parametrize("l1", [0.0, 5.0, 40.0])
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_it_finds_the_least_value_and_its_zeros(l1: float, start: float) -> None:
    matrix, wanted = lasso(3)
    expected = by_coordinates(matrix, wanted, l1)
    found = minimise(smooth_of(matrix, wanted), np.full(25, start, np.float32), l1, EXACT)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert np.count_nonzero(found) <= np.count_nonzero(expected) + 1
    assert np.count_nonzero(found) < 25 or not l1


def test_a_large_penalty_leaves_nothing() -> None:
    matrix, wanted = lasso(4)
    assert not minimise(smooth_of(matrix, wanted), np.ones(25, np.float32), 1e4, EXACT).any()
    assert not minimise(smooth_of(matrix, wanted), np.zeros(25, np.float32), 1e4, EXACT).any()


def test_values_never_rise_and_the_limits_hold() -> None:
    matrix, wanted = lasso(5)
    smooth, seen = smooth_of(matrix, wanted), []

    def look(x: Any, iteration: int) -> bool:
        seen.append((iteration, smooth(x)[0] + 5 * float(np.abs(x).sum())))
        return iteration == 7

    minimise(smooth, np.ones(25, np.float32), 5.0, Limits(100), look)
    assert [iteration for iteration, _ in seen] == list(range(1, 8))
    assert all(later <= sooner + 1e-9 for (_, sooner), (_, later) in pairwise(seen))
    seen.clear()
    minimise(smooth, np.ones(25, np.float32), 5.0, Limits(3), look)
    assert len(seen) == 3
    seen.clear()
    minimise(smooth, np.ones(25, np.float32), 5.0, Limits(6, delta=1e6, period=2), look)
    assert len(seen) == 2  # too small a fall
