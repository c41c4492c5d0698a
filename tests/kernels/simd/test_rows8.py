"""Rows of tags in registers: every compiled piece against its interpreted twin, anywhere in an array, for 1 to 70 tags.

Whole arrays are compared: what lies beside a row must stay as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hogwild.arrays import aligned_floats
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.simd import matrix8, rows8
from hogwild.kernels.simd.matrix8 import add_outer, add_pairs, combine, row_products, take_pairs, times_outer
from hogwild.kernels.simd.rows8 import (
    LANES,
    MOST,
    exps,
    extent,
    layout,
    multiply,
    scale_row,
    score_rows,
    take_from_rows,
)

# One layout compiles for all its numbers of tags: one vector, several with two sums each, eight, and blocks of five.
TAGS = [1, 2, 3, 4, 5, 6, 7, 8, 17, 20, 23, 24, 57, 61, 64, 65, 69, 70]


@kernel
def run_score_rows(lanes: Any, blocks: Any, table: Any, stride: int, ids: Any, first: int, last: int, factor: Any, out: Any, pads: int, to: int) -> None:  # noqa: E501
    score_rows(lanes, len(blocks), table, stride, ids, first, last, factor, out, pads, to)


@kernel
def run_take_from_rows(lanes: Any, blocks: Any, table: Any, stride: int, ids: Any, first: int, last: int, row: Any, at: int) -> None:  # noqa: E501
    take_from_rows(lanes, len(blocks), table, stride, ids, first, last, row, at)


@kernel
def run_combine(lanes: Any, blocks: Any, matrix: Any, at: int, count: int, factors: Any, start: int, out: Any, to: int) -> None:  # noqa: E501
    combine(lanes, len(blocks), matrix, at, count, factors, start, out, to)


@kernel
def run_row_products(lanes: Any, blocks: Any, matrix: Any, at: int, count: int, row: Any, place: int, out: Any, to: int) -> None:  # noqa: E501
    row_products(lanes, len(blocks), matrix, at, count, row, place, out, to)


@kernel
def run_add_outer(lanes: Any, blocks: Any, matrix: Any, at: int, count: int, factors: Any, start: int, row: Any, place: int) -> None:  # noqa: E501
    add_outer(lanes, len(blocks), matrix, at, count, factors, start, row, place)


@kernel
def run_times_outer(lanes: Any, blocks: Any, matrix: Any, at: int, count: int, factors: Any, start: int, row: Any, place: int, total: Any, to: int) -> None:  # noqa: E501
    times_outer(lanes, len(blocks), matrix, at, count, factors, start, row, place, total, to)


@kernel
def run_add_pairs(matrix: Any, at: int, table: Any, pairs: Any, first: int, last: int, factor: Any) -> None:
    add_pairs(matrix, at, table, pairs, first, last, factor)


@kernel
def run_take_pairs(matrix: Any, at: int, table: Any, pairs: Any, first: int, last: int, factor: Any) -> None:
    take_pairs(matrix, at, table, pairs, first, last, factor)


@kernel
def run_multiply(lanes: Any, blocks: Any, array: Any, to: int, x: int, y: int) -> Any:
    return multiply(lanes, len(blocks), array, to, x, y)


@kernel
def run_scale_row(lanes: Any, blocks: Any, array: Any, to: int, x: int, factor: Any) -> None:
    scale_row(lanes, len(blocks), array, to, x, factor)


@kernel
def run_extent(array: Any, at: int, vectors: int) -> Any:
    return extent(array, at, vectors)


@kernel
def run_exps(array: Any, at: int, vectors: int, shift: Any) -> None:
    exps(array, at, vectors, shift)


def both(run: Any, *arguments: Any, tolerance: float = 1e-5) -> tuple[Any, ...]:
    """Run a piece compiled and interpreted, each on copies; all arrays must be the same. Gives those of the first."""
    name = run.__name__.removeprefix("run")
    slow = getattr(rows8, name, None) or getattr(matrix8, name)
    mine, theirs = ([a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2))
    plain = [len(a) if k == 1 and isinstance(a, tuple) else a for k, a in enumerate(theirs)]  # blocks
    found, expected = run(*mine), slow(*plain)
    for one, other in zip(mine, theirs, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    if expected is not None:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    return found, *(a for a in mine if isinstance(a, np.ndarray))


def numbers(count: int, seed: int, first: int = 3) -> np.ndarray:
    """Random numbers that do not begin at a cache line."""
    found = aligned_floats(count + first)[first:]
    found[:] = np.random.default_rng(seed).normal(size=count)
    return found


def width_of(tags: int) -> int:
    lanes, blocks = layout(tags)
    return LANES * len(lanes) * len(blocks)


def test_a_layout_holds_the_tags_and_little_else() -> None:
    for tags in range(1, 600):
        lanes, blocks = layout(tags)
        assert 1 <= len(lanes) <= MOST
        assert tags <= width_of(tags) < 1.15 * tags + LANES
        assert len(blocks) == 1 or tags > LANES * MOST


@pytest.mark.parametrize("tags", TAGS)
def test_scores_of_rows(tags: int) -> None:
    """Also of no row, of the same row twice, and of rows that lie further apart than they are wide."""
    width = width_of(tags)
    for stride in (width, 2 * width + 1):
        table, ids = numbers(6 * stride, tags), np.array([9, 5, 0, 2, 2, 9], np.int32)
        out = numbers(5 * width, tags + 1)
        out[width : 2 * width] = np.where(np.arange(width) < tags, 0, -np.inf)
        for first, last in ((1, 5), (2, 2), (0, 0), (3, 5)):
            rows = table, stride, ids, first, last
            both(run_score_rows, *layout(tags), *rows, np.float32(0.5), out, width, 2 * width + 1)


@pytest.mark.parametrize("tags", TAGS)
def test_taking_from_rows(tags: int) -> None:
    width = width_of(tags)
    table, ids = numbers(6 * width, tags), np.array([9, 5, 0, 2, 2, 9], np.int32)
    row = numbers(2 * width, tags + 1)
    for first, last in ((1, 5), (2, 2), (4, 5)):
        both(run_take_from_rows, *layout(tags), table, width, ids, first, last, row, 5)
    _, changed, _, _ = both(run_take_from_rows, *layout(tags), table, width, ids, 3, 5, row, 5)
    twice = table[2 * width : 3 * width] - row[5 : 5 + width] - row[5 : 5 + width]
    np.testing.assert_allclose(changed[2 * width : 3 * width], twice, atol=1e-6)


@pytest.mark.parametrize("tags", TAGS)
def test_products_of_a_row_and_a_matrix(tags: int) -> None:
    width, rows = width_of(tags), -(-tags // 4) * 4
    matrix, factors = numbers((rows + 1) * width + 7, tags), numbers(rows + width + 9, tags + 1)
    for count in sorted({1, 2, 3, tags}):
        out = numbers(2 * width + 5, tags + 2)
        _, _, _, found = both(run_combine, *layout(tags), matrix, 7, min(count, tags), factors, 4, out, 3)
        exact = factors[4 : 4 + min(count, tags)].astype(np.float64) @ matrix[7:].reshape(-1, width)[: min(count, tags)]
        np.testing.assert_allclose(found[3 : 3 + width], exact, rtol=1e-4, atol=1e-5)
    both(run_row_products, *layout(tags), matrix, 7, rows, factors, 9, numbers(rows + 9, tags), 5, tolerance=1e-4)
    both(run_row_products, *layout(tags), matrix, 7, 4, factors, 9, numbers(rows + 9, tags), 2, tolerance=1e-4)


@pytest.mark.parametrize("tags", TAGS)
def test_products_of_two_rows(tags: int) -> None:
    width = width_of(tags)
    matrix, total = numbers((tags + 2) * width, tags), numbers((tags + 2) * width, tags + 1)
    factors, row = numbers(tags + 3, tags + 2), numbers(width + 1, tags + 3)
    for count in sorted({1, tags}):
        both(run_add_outer, *layout(tags), matrix, 6, count, factors, 2, row, 1)
        both(run_times_outer, *layout(tags), matrix, 6, count, factors, 2, row, 1, total, 9)


@pytest.mark.parametrize("tags", TAGS)
def test_rows_times_rows_and_numbers(tags: int) -> None:
    width = width_of(tags)
    array = numbers(4 * width + 1, tags)
    for to, x, y in ((0, width, 2 * width), (width, width, 2 * width + 1), (width, 3 * width, width)):
        both(run_multiply, *layout(tags), array, to, x, y)
        both(run_scale_row, *layout(tags), array, to, x, np.float32(-1.5))


@pytest.mark.parametrize("chunks", [0, 1, 2, 5])
def test_pairs(chunks: int) -> None:
    """Cells of a matrix by their numbers; fillings share the last one."""
    random = np.random.default_rng(chunks)
    matrix, table = numbers(90, 1), numbers(8 * 8, 2)
    pairs = np.concatenate([random.permutation(70)[:8] for _ in range(8)]).astype(np.int32)
    pairs[13:16] = pairs[30] = 72
    table[13:16] = table[30] = 0
    both(run_add_pairs, matrix, 5, table, pairs, 8, 8 + 8 * chunks, np.float32(0.3))
    both(run_take_pairs, matrix, 5, table, pairs, 8, 8 + 8 * chunks, np.float32(0.3))


@pytest.mark.parametrize("tags", TAGS)
def test_the_extent_of_rows(tags: int) -> None:
    width = width_of(tags)
    array = numbers(2 * width + 9, tags)
    array[4 + tags : 4 + width] = -np.inf
    found = both(run_extent, array, 4, width // LANES)[0]
    assert found == (array[4 : 4 + tags].min(), array[4 : 4 + tags].max())
    array[4 : 4 + width] = -np.inf
    assert both(run_extent, array, 4, width // LANES)[0] == (np.inf, -np.inf)


def test_exponentials() -> None:
    array = np.concatenate([[5, 5, 5], np.linspace(-120, 0, 8 * 4000), [5]]).astype(np.float32)
    given = array[3:-1].astype(np.float64)
    _, found = both(run_exps, array, 3, 4000, np.float32(0), tolerance=1e-6)
    assert (found[[0, 1, 2, -1]] == 5).all()
    normal = given > -87.29
    np.testing.assert_allclose(found[3:-1][normal], np.exp(given[normal]), rtol=1e-6)
    assert not found[3:-1][given < -87.31].any()
    assert found[-2] == 1


@pytest.mark.parametrize("shift", [0.0, 3.0, 1e4, -1e4])
def test_exponentials_of_differences(shift: float) -> None:
    array = np.array([0, -1e-3, -1, -50, -88, -1e30, -np.inf, -0.0], np.float32) + np.float32(shift)
    _, found = both(run_exps, array, 0, 1, np.float32(shift), tolerance=1e-6)
    assert found[0] == found[7] == 1
    assert not found[4:7].any()
    array[2] = np.nan
    run_exps(array, 0, 1, np.float32(shift))
    assert np.isnan(array[2])
    assert np.isfinite(np.delete(array, 2)).all()
