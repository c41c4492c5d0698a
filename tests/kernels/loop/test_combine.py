"""Rows in fewer bits and back, and two sets of rows as one, against slow twins."""

from __future__ import annotations

import numpy as np
import pytest

from cluster.wire import exchange as twin
from hogwild.kernels.loop.combine import (
    STEPS4,
    STEPS8,
    count_steps4,
    count_steps8,
    merge_changes,
    round_cells,
    weigh_steps4,
    weigh_steps8,
    widen_cells,
)

SHAPES = [(0, 5, (0, 5)), (1, 1, (0, 1)), (4, 7, (0, 7)), (3, 8, (3, 8)), (5, 112, (0, 100)), (6, 9, (8, 9))]


def _cells(rows: int, cells: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    found = (random.normal(size=(rows, cells)) * 10.0 ** random.integers(-6, 6, size=(rows, 1))).astype(np.float32)
    found[rows // 2 : rows // 2 + 1] = 0
    return found


def _there_and_back(most: int, cells: np.ndarray, bounds: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count, weigh = (count_steps8, weigh_steps8) if most == STEPS8 else (count_steps4, weigh_steps4)
    width = bounds[1] - bounds[0]
    steps = np.full((len(cells), width), 99, np.int8)
    if most == STEPS4:
        steps = np.full((len(cells), (width + 1) // 2), 255, np.uint8)
    scales, back = np.full(len(cells), np.nan, np.float32), np.full_like(cells, 5)
    assert count(cells, bounds, scales, steps) == len(cells)
    weigh(steps, scales, bounds, back)
    return scales, steps, back


@pytest.mark.parametrize("most", [STEPS8, STEPS4])
@pytest.mark.parametrize(("rows", "cells", "bounds"), SHAPES)
def test_steps_are_within_half_a_step(most: int, rows: int, cells: int, bounds: tuple[int, int]) -> None:
    given = _cells(rows, cells)
    scales, _, back = _there_and_back(most, given, bounds)
    part = slice(*bounds)
    for row in range(rows):
        scale, steps = twin.steps_of(given[row, part], most)
        assert scales[row] == pytest.approx(scale, rel=1e-6)
        # Where a cell is halfway between two steps, float32 may take the other one.
        assert np.abs(back[row, part] - steps * scale).max() <= scale * 1.001
        assert np.abs(back[row, part].astype(float) - given[row, part]).max() <= scale / 2 * (1 + 1e-4)
    outside = np.delete(back, np.arange(*bounds), axis=1)
    assert (outside == 5).all()
    # What was rounded once is not moved again by being sent on.
    np.testing.assert_allclose(_there_and_back(most, back, bounds)[2][:, part], back[:, part], rtol=1e-6)


@pytest.mark.parametrize("most", [STEPS8, STEPS4])
def test_whole_steps_stay_what_they_are(most: int) -> None:
    given = np.arange(-most, most + 1, dtype=np.float32)[np.newaxis] * np.float32(0.25)
    scales, _, back = _there_and_back(most, given, (0, 2 * most + 1))
    assert scales[0] == 0.25
    np.testing.assert_array_equal(back, given)


@pytest.mark.parametrize("most", [STEPS8, STEPS4])
def test_rows_of_nothing_have_no_scale(most: int) -> None:
    given = np.zeros((3, 5), np.float32)
    given[1] = 1e-40
    scales, _, back = _there_and_back(most, given, (0, 5))
    np.testing.assert_array_equal(scales, 0)
    np.testing.assert_array_equal(back, 0)


@pytest.mark.parametrize("count", [count_steps8, count_steps4])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, np.finfo(np.float32).max])
def test_the_first_row_that_cannot_be_sent_is_named(count: object, bad: float) -> None:
    given = _cells(6, 5)
    given[3, 4] = given[5, 0] = bad
    dtype, width = (np.int8, 5) if count is count_steps8 else (np.uint8, 3)
    assert count(given, (0, 5), np.zeros(6, np.float32), np.zeros((6, width), dtype)) == 3  # type: ignore[operator]


def test_bfloat16_is_the_nearest() -> None:
    given = np.concatenate([_cells(50, 9).reshape(-1), np.float32([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 2.9e38])])
    halves, back = np.zeros(len(given), np.uint16), np.zeros(len(given), np.float32)
    assert round_cells(given, halves)
    assert widen_cells(halves, back)
    np.testing.assert_array_equal(back, [twin.bfloat16_of(float(value)) for value in given])
    again = np.zeros_like(halves)
    assert round_cells(back, again)
    np.testing.assert_array_equal(again, halves)


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf, np.finfo(np.float32).max])
def test_what_is_no_finite_bfloat16_is_found(bad: float) -> None:
    given = np.ones(40, np.float32)
    given[33] = bad
    assert not round_cells(given, np.zeros(40, np.uint16))
    halves = (given.view(np.uint32) >> 16).astype(np.uint16)
    assert widen_cells(halves, given) == np.isfinite(bad)


def _merge(one: tuple, other: tuple, width: int, sign: float, project: bool) -> tuple[np.ndarray, np.ndarray]:
    room = len(one[0]) + len(other[0])
    ids, cells = np.zeros(room, np.int64), np.zeros((room, one[1].shape[1]), np.float32)
    count = merge_changes(one, other, (ids, cells), width, np.float32(sign), project)
    return ids[:count], cells[:count]


@pytest.mark.parametrize(("rows", "other_rows"), [(0, 0), (0, 3), (4, 0), (30, 40), (50, 50)])
@pytest.mark.parametrize(("cells", "width"), [(1, 1), (7, 5), (112, 112), (3, 0)])
@pytest.mark.parametrize("project", [False, True])
def test_two_sets_of_rows_become_one(rows: int, other_rows: int, cells: int, width: int, project: bool) -> None:
    random = np.random.default_rng(rows + cells)
    sets = []
    for size in (rows, other_rows):
        ids = np.sort(random.choice(50, size, replace=False))
        sets.append((ids, _cells(size, cells, seed=size + 1)))
    for sign in (1.0, -1.0) if not project else (1.0,):
        ids, found = _merge(*sets, width, sign, project)
        one, other = (dict(zip(ids.tolist(), cells.astype(float), strict=True)) for ids, cells in sets)
        np.testing.assert_array_equal(ids, sorted({*one, *other}))
        for row, values in zip(ids.tolist(), found, strict=True):
            a, b = one.get(row, np.zeros(cells)), sign * other.get(row, np.zeros(cells))
            weights = twin.project(a[:width], b[:width]) if project else (a + b)[:width]
            expected = np.concatenate([weights, (a + b)[width:]])
            np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-6 * max(abs(a).max(), abs(b).max()))


def test_a_row_with_itself_is_itself_and_with_another_direction_the_sum() -> None:
    ids, cells = np.arange(8), _cells(8, 112)
    np.testing.assert_array_equal(_merge((ids, cells), (ids, cells), 112, 1, True)[1], cells)
    left, right = cells.copy(), cells.copy()
    left[:, 50:], right[:, :50] = 0, 0
    np.testing.assert_array_equal(_merge((ids, left), (ids, right), 112, 1, True)[1], cells)


def test_what_is_not_finite_stays_so() -> None:
    ids = np.arange(3)
    one, other = np.ones((3, 5), np.float32), np.ones((3, 5), np.float32)
    one[0, 2], other[1, 2] = np.nan, np.inf
    found = _merge((ids, one), (ids, other), 5, 1, True)[1]
    assert not np.isfinite(found[:2, 2]).any()
    np.testing.assert_array_equal(found[2], 1)
