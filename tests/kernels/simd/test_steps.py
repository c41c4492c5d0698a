"""A gradient and the steps against it in one, compiled, against the same in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiling import OFF
from hogwild.kernels.compiler.jit import inner
from hogwild.kernels.optim.rules import SLOTS, Adagrad, Adam, Ftrl, Momentum, Sgd
from hogwild.kernels.simd import steps
from hogwild.kernels.simd.steps import FIXES
from hogwild.kernels.simd.strips import STRIP

pytestmark = pytest.mark.skipif(OFF, reason="compares compiled code with what runs then")
RATE, SHRINK = np.float32(0.1), np.float32(0.01)


@inner
def _step(rule: Any, rows: Any, starts: Any, a: Any, b: Any, values: Any, one: Any, two: Any) -> None:
    steps.step_tile(rule, rows, 3, starts, 1, a, 2, b, 3, values, one, two, 5, 200, RATE, SHRINK)


@pytest.mark.parametrize("rule", [Sgd(), Momentum(), Adagrad(), Adam(), Ftrl()], ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("rows", [1, 6])
def test_tiles_are_stepped_against(rule: Any, rows: int) -> None:
    random = np.random.default_rng(7)
    starts = np.array([9, 0, 4, 5, 10])
    a, b = (random.normal(size=size).astype(np.float32) for size in (2 + 10 * rows, 220))
    for step in range(3):
        b[200 + FIXES * step : 202 + FIXES * step] = (1.5, 1.2)
    found = [random.normal(size=5 + 7 * STRIP).astype(np.float32) for _ in range(1 + len(SLOTS[type(rule)]))]
    found[1:] = [np.abs(array) for array in found[1:]]
    found += [np.zeros(0, np.float32)] * (3 - len(found))
    expected = [array.copy() for array in found]
    steps._step_tile(rule, (0,) * rows, 3, starts, 1, a, 2, b, 3, *expected, 5, 200, RATE, SHRINK)
    before = [array.copy() for array in found]
    _step(rule, (0,) * rows, starts, a, b, *found)
    for old, mine, twin in zip(before, found, expected, strict=True):
        np.testing.assert_allclose(mine, twin, rtol=1e-5, atol=1e-6)
        changed = np.flatnonzero(mine != old)
        assert not len(old) or (len(changed) and changed[0] >= 5 and changed[-1] < 5 + rows * STRIP)
