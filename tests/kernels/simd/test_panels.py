"""Products over panels and the cells of an LSTM, compiled, against the same in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiling import OFF
from hogwild.kernels.compiler.jit import inner
from hogwild.kernels.simd import panels
from hogwild.kernels.simd.panels import PANEL, STRIP, UNITS

pytestmark = pytest.mark.skipif(OFF, reason="compares compiled code with what runs then")
RANDOM = np.random.default_rng(5)


def _floats(count: int) -> Any:
    return RANDOM.normal(size=count).astype(np.float32)


@inner
def _tile(rows: Any, strips: Any, keep: Any, count: int, a: Any, b: Any, c: Any, places: Any) -> None:
    at, by_row, by_step, place, stride, to, apart = places
    panels.tile(rows, strips, keep, count, a, at, by_row, by_step, b, place, stride, c, to, apart)


@pytest.mark.parametrize("keep", [(), (0,)], ids=["anew", "kept"])
@pytest.mark.parametrize(("rows", "strips"), [(1, 4), (2, 2), (3, 2), (4, 1), (5, 1), (6, 1), (6, 2)])
def test_tiles(rows: int, strips: int, keep: Any) -> None:
    for count, by_row, by_step in ((0, 9, 1), (1, 9, 1), (9, 9, 1), (9, 1, 7)):
        a, b, c = _floats(200), _floats(10 * 70), _floats(6 * 80)
        places = (3, by_row, by_step, 5, 68, 2, 70)
        expected = c.copy()
        panels._tile((0,) * rows, (0,) * strips, keep, count, a, 3, by_row, by_step, b, 5, 68, expected, 2, 70)
        _tile((0,) * rows, (0,) * strips, keep, count, a, b, c, places)
        np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)
        assert STRIP * strips <= 68


@inner
def _dots(rows: Any, columns: Any, count: int, a: Any, b: Any, c: Any) -> None:
    panels.dots(rows, columns, count, a, 1, PANEL, 5 * PANEL, b, 2, PANEL, 4 * PANEL, c, 3, 7)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 3), (2, 3), (4, 3)])
@pytest.mark.parametrize("count", [1, 3])
def test_dots(rows: int, columns: int, count: int) -> None:
    a, b, c = _floats(16 * PANEL), _floats(16 * PANEL), _floats(60)
    expected = c.copy()
    panels._dots((0,) * rows, (0,) * columns, count, a, 1, PANEL, 5 * PANEL, b, 2, PANEL, 4 * PANEL, expected, 3, 7)
    _dots((0,) * rows, (0,) * columns, count, a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


@inner
def _stack(rows: Any, count: int, a: Any, b: Any, c: Any) -> None:
    panels.stack(rows, count, a, 1, 7 * PANEL, b, 2, c, 3, 20)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6])
def test_stacks(rows: int) -> None:
    a, b, c = _floats(24 * PANEL), _floats(4 * PANEL * STRIP), _floats(160)
    expected = c.copy()
    panels._stack((0,) * rows, 3, a, 1, 7 * PANEL, b, 2, expected, 3, 20)
    _stack((0,) * rows, 3, a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


@inner
def _open(count: int, gates: Any, floats: Any) -> None:
    panels.open_cells(count, gates, 4, 70, floats, 0, 40, 80, 120)


@inner
def _close(count: int, gates: Any, floats: Any) -> None:
    panels.close_cells(count, gates, 4, 70, floats, 0, 40, 80, 120)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_cells(scale: float) -> None:
    gates, floats = np.float32(scale) * _floats(200), _floats(160)
    other_gates, other_floats = gates.copy(), floats.copy()
    for compiled, plain in ((_open, panels._open_cells), (_close, panels._close_cells)):
        compiled(2, gates, floats)
        plain(2, other_gates, 4, 70, other_floats, 0, 40, 80, 120)
        np.testing.assert_allclose(gates, other_gates, atol=2e-6)
        np.testing.assert_allclose(floats, other_floats, atol=2e-6)
    assert UNITS == 16


def test_what_is_not_a_number_stays_so() -> None:
    gates, floats = np.zeros(200, np.float32), np.zeros(160, np.float32)
    gates[4] = np.nan
    _open(2, gates, floats)
    assert np.isnan(gates[4])
    assert np.isnan(floats[[40, 80, 120]]).all()
    assert np.isfinite(np.delete(floats, [40, 80, 120])).all()
