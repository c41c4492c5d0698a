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
from kernels.simd.products import check_stacks, check_tiles

pytestmark = pytest.mark.skipif(OFF, reason="compares compiled code with what runs then")
RANDOM = np.random.default_rng(5)


def _floats(count: int) -> Any:
    return RANDOM.normal(size=count).astype(np.float32)


@pytest.mark.parametrize("keep", [(), (0,)], ids=["anew", "kept"])
@pytest.mark.parametrize(("rows", "side"), [(1, 4), (2, 2), (3, 2), (4, 1), (5, 1), (6, 1), (6, 4)])
def test_tiles(rows: int, side: int, keep: Any) -> None:
    check_tiles(Float32(), rows, side, keep, _floats, _floats)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6])
def test_stacks(rows: int) -> None:
    check_stacks(Float32(), rows, _floats, _floats)


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
