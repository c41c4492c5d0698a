"""Inputs times a matrix for one row, those that are zero left out: against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild.kernels.nn.one_row import add_inputs


@pytest.mark.parametrize("inputs", [0, 1, 3, 4, 5, 8, 39])
@pytest.mark.parametrize("width", [1, 2, 7, 16, 33])
@pytest.mark.parametrize("zeros", [0.0, 0.5, 1.0])
def test_sums_are_those_of_the_whole_product(inputs: int, width: int, zeros: float) -> None:
    random = np.random.default_rng(inputs * 100 + width)
    x = random.standard_normal(inputs).astype(np.float32)
    x[random.random(inputs) < zeros] = 0
    matrix = random.standard_normal((inputs, width)).astype(np.float32)
    sums = random.standard_normal(width).astype(np.float32)
    expected = sums + x.astype(np.float64) @ matrix
    add_inputs(x, matrix.reshape(-1), sums, np.zeros(inputs, np.int64))
    np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-5)


def test_what_is_not_a_number_is_not_taken_for_zero() -> None:
    x, sums = np.array([0, np.nan, -0.0, 1, 1], np.float32), np.zeros(3, np.float32)
    add_inputs(x, np.ones(15, np.float32), sums, np.zeros(5, np.int64))
    assert np.isnan(sums).all()
