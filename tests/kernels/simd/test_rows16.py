"""Rows in registers: against NumPy in float64, for several layouts, rows anywhere in an array."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiling import OFF
from hogwild.arrays import aligned_floats
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.simd import rows16 as lanes_module
from hogwild.kernels.simd.rows16 import LANES, MOST, add_rows, copy_row, dots, layout, prefetch_row, weigh
from places import ROOT
from reference import word2vec as twin

LAYOUTS = [((0,), 1), ((0,), 3), ((0, 0, 0), 2), ((0,) * MOST, 1)]
ROWS = 9


@kernel
def run_dots(lanes: Any, blocks: int, x: Any, ats: Any, y: Any, places: Any, out: Any, tos: Any) -> None:
    dots(lanes, blocks, x, ats, y, places, 2, out, tos)


@kernel
def run_add(
    lanes: Any, blocks: int, target: Any, tos: Any, source: Any, places: Any, factors: Any, starts: Any, count: int
) -> None:
    prefetch_row(lanes, blocks, source, places[0])
    add_rows(lanes, blocks, target, tos, source, places, 1, factors, starts, 3, count)


@kernel
def run_copy(lanes: Any, blocks: int, target: Any, to: int, source: Any, at: int) -> None:
    copy_row(lanes, blocks, target, to, source, at)


@kernel
def run_weigh(scores: Any, at: int, low: int, middle: int, high: int, sign: Any, factor: Any) -> Any:
    return weigh(scores, at, low, middle, high, sign, factor)


def tables(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """One of rows, and one of cells that begins anywhere."""
    random = np.random.default_rng(cells)
    rows = aligned_floats(ROWS * cells).reshape(ROWS, cells)
    rows[:] = random.normal(size=rows.shape)
    flat = aligned_floats(ROWS * cells + 3)[3:]
    flat[:] = random.normal(size=len(flat))
    return rows, flat


@pytest.mark.parametrize("dim", [1, 15, 16, 17, 100, 128, 200, 300, 1000, 4096])
def test_a_layout_holds_the_numbers_and_little_else(dim: int) -> None:
    lanes, blocks = layout(dim)
    cells = LANES * len(lanes) * blocks
    assert 1 <= len(lanes) <= MOST
    assert cells >= dim
    assert cells < 1.1 * dim + LANES


@pytest.mark.parametrize(("lanes", "blocks"), LAYOUTS)
@pytest.mark.parametrize("rows", [1, 2])
def test_dots(lanes: tuple[int, ...], blocks: int, rows: int) -> None:
    cells = LANES * len(lanes) * blocks
    table, flat = tables(cells)
    numbers = [5, 8, 0, 0, 3, 7]
    places = np.array(numbers, np.int64) * cells
    ats, tos = (cells + 5, 3 * cells + 1)[:rows], (9, 3)[:rows]
    out = np.full(14, 99, np.float32)
    run_dots(lanes, blocks, flat, ats, table, places, out, tos)
    for at, to in zip(ats, tos, strict=True):
        exact = table.astype(np.float64)[numbers[2:]] @ flat[at : at + cells].astype(np.float64)
        np.testing.assert_allclose(out[to : to + 4], exact, rtol=1e-5, atol=1e-5)
        out[to : to + 4] = 99
    assert (out == 99).all()


@pytest.mark.parametrize(("lanes", "blocks"), LAYOUTS)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_add_rows(lanes: tuple[int, ...], blocks: int, rows: int, count: int) -> None:
    cells = LANES * len(lanes) * blocks
    table, flat = tables(cells)
    before = table.copy()
    places = np.array([8, 4, 1, 4, 0, 6], np.int64) * cells + 2  # rows of `flat` begin at its third cell
    factors = np.random.default_rng(1).normal(size=20).astype(np.float32)
    changed, starts = (7, 3)[:rows], (2, 0)[:rows]
    run_add(lanes, blocks, table, tuple(row * cells for row in changed), flat, places, factors, starts, count)
    for row, start in zip(changed, starts, strict=True):
        exact = before[row].astype(np.float64)
        for k in range(count):
            exact += np.float64(factors[start + 3 * k]) * flat[places[1 + k] : places[1 + k] + cells]
        np.testing.assert_allclose(table[row], exact, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(np.delete(table, changed, axis=0), np.delete(before, changed, axis=0))


@pytest.mark.parametrize(("lanes", "blocks"), LAYOUTS)
def test_copy_row(lanes: tuple[int, ...], blocks: int) -> None:
    cells = LANES * len(lanes) * blocks
    rows, flat = tables(cells)
    before = flat.copy()
    run_copy(lanes, blocks, flat, 2 * cells + 1, rows, 4 * cells)
    np.testing.assert_array_equal(flat[2 * cells + 1 : 3 * cells + 1], rows[4])
    np.testing.assert_array_equal(flat[: 2 * cells + 1], before[: 2 * cells + 1])
    np.testing.assert_array_equal(flat[3 * cells + 1 :], before[3 * cells + 1 :])


SCORES = np.concatenate([np.linspace(-100, 100, 16 * 250 - 5), [0.0, -0.0, 1e-30, 1e30, -1e30]]).astype(np.float32)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_logistic_function_and_its_logarithm(sign: float) -> None:
    scores = np.concatenate([[5, 5], SCORES, [5]]).astype(np.float32)
    costs, chances = [], []
    for k in range(len(SCORES)):  # one lane at a time, each in its turn
        scores[2 + k - k % LANES : 2 + k - k % LANES + LANES] = SCORES[k - k % LANES : k - k % LANES + LANES]
        lane = k % LANES
        costs.append(run_weigh(scores, 2 + k - lane, lane, -1, lane, np.float32(sign), np.float32(1)))
        chances.append(scores[2 + k])
    exact = np.array([twin.chance_against(sign * float(x)) for x in SCORES])
    np.testing.assert_allclose(costs, [twin.surprise(sign * float(x)) for x in SCORES], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(chances, exact, rtol=1e-6, atol=1e-6)
    likely = exact > 1e-30  # small chances are right in proportion, not only small
    np.testing.assert_allclose(np.array(chances)[likely], exact[likely], rtol=2e-5)
    assert (scores[[0, 1, -1]] == 5).all()


@pytest.mark.parametrize(
    ("low", "middle", "high"), [(0, -1, 15), (3, 7, 11), (-20, 4, 40), (5, 5, 5), (9, 3, 8), (16, 20, 24)]
)
def test_lanes_outside_count_for_nothing(low: int, middle: int, high: int) -> None:
    given = np.random.default_rng(0).normal(0, 3, LANES).astype(np.float32)
    scores = given.copy()
    cost = run_weigh(scores, 0, low, middle, high, np.float32(-1), np.float32(-0.25))
    on = [lane for lane in range(LANES) if low <= lane <= high and lane != middle]
    assert cost == pytest.approx(sum(twin.surprise(-float(given[lane])) for lane in on), rel=1e-6)
    exact = [-0.25 * twin.chance_against(-float(given[lane])) if lane in on else 0.0 for lane in range(LANES)]
    np.testing.assert_allclose(scores, exact, rtol=1e-5)


def test_a_score_that_is_no_number_stays_one() -> None:
    """So that a model which has gone astray shows it in its loss; but not where nobody looks."""
    scores = np.zeros(LANES, np.float32)
    scores[3] = np.nan
    cost = run_weigh(scores, 0, 4, -1, 15, np.float32(1), np.float32(1))
    assert math.isclose(cost, 12 * math.log(2), rel_tol=1e-6)
    assert scores[3] == 0
    scores[3] = np.nan
    assert math.isnan(run_weigh(scores, 0, 0, -1, 15, np.float32(1), np.float32(1)))
    assert np.isnan(scores[3])


@pytest.mark.full
@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_rows_without_the_compiler(tmp_path: Path) -> None:
    root = ROOT
    paths = os.pathsep.join(str(root / name) for name in ("src", "tests"))
    names = ("simd/test_rows16", "word2vec/test_word2vec", "word2vec/test_windows")
    files = [f"tests/kernels/{name}.py" for name in names]
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1", "HOGWILD_CACHE": str(tmp_path)}
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "not many and not precision and not windows and not fullest",  # slow, and no other code
        *files,
    ]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_the_inner_run_is_interpreted() -> None:
    assert (lanes_module.dots is lanes_module._dots) == OFF
