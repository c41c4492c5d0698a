"""Rows scattered over batches: every row once, in every window, and another order with another key."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild.kernels.loop.order import row_at


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 64, 100, 1000])
@pytest.mark.parametrize("window", [5, 64, 1 << 40])
def test_every_row_comes_once_and_stays_in_its_window(rows: int, window: int) -> None:
    for key in (1, 12345, (1 << 61) + 7):
        found = np.array([row_at(place, rows, window, key) for place in range(rows)])
        np.testing.assert_array_equal(np.sort(found), np.arange(rows))
        np.testing.assert_array_equal(found // window, np.arange(rows) // window)


def test_the_order_depends_on_the_key_and_looks_shuffled() -> None:
    first, second = (np.array([row_at(place, 4096, 1 << 40, key) for place in range(4096)]) for key in (11**15, 7**20))
    assert (first == second).mean() < 0.01
    for order in (first, second):
        assert abs(np.corrcoef(order, np.arange(4096))[0, 1]) < 0.06
        batches = order.reshape(-1, 64)
        assert np.abs(batches.mean(axis=1) - 2048).max() < 4.5 * 4096 / np.sqrt(12 * 64)  # each batch from everywhere


def test_no_key_is_the_order_of_the_file() -> None:
    assert [row_at(place, 10, 4, 0) for place in range(10)] == list(range(10))
