"""Products of pairs of bfloat16, compiled, against NumPy's with numbers rounded alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiling import OFF
from hogwild.kernels.compiler.jit import inner
from hogwild.kernels.simd import pairs
from hogwild.kernels.simd.pairs import BFloat16
from hogwild.kernels.simd.strips import STRIP
from kernels.simd.products import check_stacks, check_tiles

RANDOM = np.random.default_rng(5)
compiled = pytest.mark.skipif(OFF or not pairs.has_pairs(), reason="compares compiled code, which this CPU cannot run")


def _floats(count: int) -> Any:
    return RANDOM.normal(size=count).astype(np.float32)


def _pairs(count: int) -> Any:
    return pairs.as_pairs(_floats(count), _floats(count))


def _numbers(low: Any, high: Any) -> list[float]:
    cells = pairs.as_pairs(np.float32(low), np.float32(high)).reshape(-1, 1)
    return pairs.numbers_of(BFloat16(), cells).T.ravel().tolist()


def test_numbers_are_rounded_to_the_nearest() -> None:
    step = 2.0**-7
    low = [1.0, 1 + step, 1 + 0.49 * step, 1 + 0.51 * step, 1 + 0.5 * step, 1 + 1.5 * step, -3e38, np.inf]
    expected = [1.0, 1 + step, 1.0, 1 + step, 1.0, 1 + 2 * step, -226 * 2.0**120, np.inf]
    assert _numbers(low, [0] * 8) == [*expected, *[0] * 8]
    assert _numbers([0] * 8, low) == [*[0] * 8, *expected]
    assert np.isnan(_numbers([np.nan], [-np.nan])).all()


APART = 20 * STRIP


@inner
def _columns(a: Any, count: int, b: Any) -> None:
    pairs.pair_columns(a, 3, count, b, 5)


@inner
def _rows(a: Any, count: int, b: Any) -> None:
    pairs.pair_rows(a, 3, STRIP, count, b, 5, 2 * STRIP)


@inner
def _joined(a: Any, count: int, b: Any) -> None:
    pairs.join_strips(a, 3, APART, count, b, 5)


@inner
def _turned(a: Any, count: int, b: Any) -> None:
    pairs.turn_strips(a, 3, APART, count, b, 5)


TWINS: dict[Any, Any] = {
    _columns: lambda a, count, b: pairs._pair_columns(a, 3, count, b, 5),
    _rows: lambda a, count, b: pairs._pair_rows(a, 3, STRIP, count, b, 5, 2 * STRIP),
    _joined: lambda a, count, b: pairs._join_strips(a, 3, APART, count, b, 5),
    _turned: lambda a, count, b: pairs._turn_strips(a, 3, APART, count, b, 5),
}


@compiled
@pytest.mark.parametrize("count", [1, 15, 16, 17, 18])
@pytest.mark.parametrize("run", TWINS, ids=["columns", "rows", "joined", "turned"])
def test_numbers_become_cells(run: Any, count: int) -> None:
    a, before = _floats(40 * STRIP), _floats(40 * STRIP)
    a[3 + min(count - 1, 7)] = np.nan
    found, expected = before.copy(), before.copy()
    run(a, count, found)
    TWINS[run](a, count, expected)
    assert found.tobytes() == expected.tobytes()
    assert found.tobytes() != before.tobytes()


@compiled
@pytest.mark.parametrize(("rows", "side", "keep"), [(1, 4, ()), (3, 2, (0,)), (6, 4, ()), (6, 4, (0,))])
def test_tiles(rows: int, side: int, keep: Any) -> None:
    check_tiles(BFloat16(), rows, side, keep, _pairs, _floats)


@compiled
@pytest.mark.parametrize("rows", [1, 6])
def test_stacks(rows: int) -> None:
    check_stacks(BFloat16(), rows, _pairs, _floats)
