"""Products over strips and the cells of an LSTM, compiled, against the same in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiling import OFF
from hogwild.kernels.compiler.jit import inner
from hogwild.kernels.simd import strips
from hogwild.kernels.simd.pairs import Float32
from hogwild.kernels.simd.strips import GATES, STRIP

pytestmark = pytest.mark.skipif(OFF, reason="compares compiled code with what runs then")
RANDOM = np.random.default_rng(5)


def _floats(count: int) -> Any:
    return RANDOM.normal(size=count).astype(np.float32)


@inner
def _tile(rows: Any, side: Any, keep: Any, count: int, a: Any, b: Any, c: Any, places: Any) -> None:
    at, by_row, by_step, place, b_apart, to, c_apart = places
    strips.tile(Float32(), rows, side, keep, count, a, at, by_row, by_step, b, place, b_apart, c, to, c_apart)


@pytest.mark.parametrize("keep", [(), (0,)], ids=["anew", "kept"])
@pytest.mark.parametrize(("rows", "side"), [(1, 4), (2, 2), (3, 2), (4, 1), (5, 1), (6, 1), (6, 4)])
def test_tiles(rows: int, side: int, keep: Any) -> None:
    for count, by_row, by_step in ((0, 9, 1), (1, 9, 1), (9, 9, 1), (9, 1, 7)):
        a, b, c = _floats(200), _floats(4 * 10 * STRIP + 5), _floats(4 * 7 * STRIP + 2)
        places = (3, by_row, by_step, 5, 10 * STRIP, 2, 7 * STRIP)
        expected = c.copy()
        strips._tile(Float32(), (0,) * rows, (0,) * side, keep, count, a, 3, by_row, by_step, b, 5, 10 * STRIP,
                     expected, 2, 7 * STRIP)  # fmt: skip
        _tile((0,) * rows, (0,) * side, keep, count, a, b, c, places)
        np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)


@inner
def _stack(rows: Any, count: int, a: Any, b: Any, c: Any) -> None:
    strips.stack(Float32(), rows, count, a, 1, 7 * STRIP, b, 2, c, 3, 20)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6])
def test_stacks(rows: int) -> None:
    a, b, c = _floats(24 * STRIP), _floats(4 * STRIP * STRIP), _floats(160)
    expected = c.copy()
    strips._stack(Float32(), (0,) * rows, 3, a, 1, 7 * STRIP, b, 2, expected, 3, 20)
    _stack((0,) * rows, 3, a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


@inner
def _turn(a: Any, b: Any) -> None:
    strips.turn_block(a, 3, b, 5)


def test_blocks_are_turned_over() -> None:
    a, b = _floats(300), _floats(300)
    expected = b.copy()
    strips._turn_block(a, 3, expected, 5)
    _turn(a, b)
    np.testing.assert_array_equal(b, expected)
    assert b[5 + 2 * STRIP + 7] == a[3 + 7 * STRIP + 2]


@inner
def _open(rows: int, gates: Any, floats: Any, by_before: int) -> None:
    strips.open_cells(rows, gates, 4, 5 * STRIP, floats, 0, by_before, 50, 100, 150, 17)


@inner
def _close(rows: int, gates: Any, floats: Any, by_before: int) -> None:
    strips.close_cells(rows, gates, 4, 5 * STRIP, floats, 0, by_before, 50, 100, 150, 17)


@pytest.mark.parametrize("by_before", [0, 17])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_cells(scale: float, by_before: int) -> None:
    gates, floats = np.float32(scale) * _floats(20 * STRIP + 4), _floats(210)
    other_gates, other_floats = gates.copy(), floats.copy()
    for compiled, plain in ((_open, strips._open_cells), (_close, strips._close_cells)):
        compiled(3, gates, floats, by_before)
        plain(3, other_gates, 4, 5 * STRIP, other_floats, 0, by_before, 50, 100, 150, 17)
        np.testing.assert_allclose(gates, other_gates, atol=2e-6)
        np.testing.assert_allclose(floats, other_floats, atol=2e-6)
    assert len(gates) >= GATES * 5 * STRIP


def test_what_is_not_a_number_stays_so() -> None:
    gates, floats = np.zeros(20 * STRIP + 4, np.float32), np.zeros(210, np.float32)
    gates[4] = np.nan
    _open(3, gates, floats, 17)
    assert np.isnan(gates[4])
    assert np.isnan(floats[[50, 100, 150]]).all()
    assert np.isfinite(np.delete(floats, [50, 100, 150])).all()
