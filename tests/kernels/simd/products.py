"""Tiles and stacks of strips in compiled code, and by their twins, for any kind of product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import inner
from hogwild.kernels.simd import strips
from hogwild.kernels.simd.strips import STRIP

Numbers = Callable[[int], Any]


@inner
def _tile(products: Any, rows: Any, side: Any, keep: Any, count: int, a: Any, b: Any, c: Any, places: Any) -> None:
    at, by_row, by_step, place, b_apart, to, c_apart = places
    strips.tile(products, rows, side, keep, count, a, at, by_row, by_step, b, place, b_apart, c, to, c_apart)


def check_tiles(products: Any, rows: int, side: int, keep: Any, numbers: Numbers, sums: Numbers) -> None:
    """Tiles of all kinds of steps. numbers: cells that are multiplied; sums: what products are added to."""
    for count, by_row, by_step in ((0, 9, 1), (1, 9, 1), (9, 9, 1), (9, 1, 7)):
        a, b, c = numbers(200), numbers(4 * 10 * STRIP + 5), sums(4 * 7 * STRIP + 2)
        places = (3, by_row, by_step, 5, 10 * STRIP, 2, 7 * STRIP)
        expected = c.copy()
        strips._tile(products, (0,) * rows, (0,) * side, keep, count, a, 3, by_row, by_step, b, 5, 10 * STRIP,
                     expected, 2, 7 * STRIP)  # fmt: skip
        _tile(products, (0,) * rows, (0,) * side, keep, count, a, b, c, places)
        np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)


@inner
def _stack(products: Any, rows: Any, count: int, a: Any, b: Any, c: Any) -> None:
    strips.stack(products, rows, count, a, 1, 7 * STRIP, b, 2, c, 3, 20)


def check_stacks(products: Any, rows: int, numbers: Numbers, sums: Numbers) -> None:
    """A stack of so many rows."""
    a, b, c = numbers(24 * STRIP), numbers(4 * STRIP * STRIP), sums(160)
    expected = c.copy()
    strips._stack(products, (0,) * rows, 3, a, 1, 7 * STRIP, b, 2, expected, 3, 20)
    _stack(products, (0,) * rows, 3, a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)
