"""Products of matrices inside flat arrays, against NumPy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.nn.blas import Block, libraries, multiply, multiply_by_transposed, multiply_transposed


@kernel
def _products(kind: int, a: Any, b: Any, c: Any, m: int, n: int, k: int, numbers: Any) -> None:
    if kind == 0:
        multiply(a, b, c, m, n, k, numbers[0], numbers[1])
    elif kind == 1:
        multiply_transposed(a, b, c, m, n, k, numbers[0], numbers[1])
    else:
        multiply_by_transposed(a, b, c, m, n, k, numbers[0], numbers[1])


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 5, 7), (40, 17, 33)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (-0.5, 1.0)])
def test_products_lie_where_they_should(kind: int, m: int, n: int, k: int, alpha: float, beta: float) -> None:
    random = np.random.default_rng(1)
    shapes = [(k, m) if kind == 1 else (m, k), (n, k) if kind == 2 else (k, n), (m, n)]
    arrays, blocks, inner = [], [], []
    for at, (rows, columns) in enumerate(shapes, 2):  # each with cells before it, and a gap after each row
        stride = columns + at
        array = random.standard_normal(at + rows * stride).astype(np.float32)
        arrays.append(array)
        blocks.append(Block(array, at, stride))
        inner.append(array[at : at + rows * stride].reshape(rows, stride)[:, :columns])
    left = inner[0].T if kind == 1 else inner[0]
    right = inner[1].T if kind == 2 else inner[1]
    expected = arrays[2].copy()
    place = blocks[2]
    expected[place.at :].reshape(m, place.stride)[:, :n] = alpha * left @ right + beta * inner[2]
    _products(kind, *blocks, m, n, k, np.array([alpha, beta], np.float32))
    np.testing.assert_allclose(arrays[2], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name, _ in libraries()])
def test_every_library_takes_the_call(name: str) -> None:
    sgemm = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(dict(libraries())[name])
    random = np.random.default_rng(2)
    a, b, c = (random.standard_normal(shape).astype(np.float32) for shape in ((5, 3), (3, 4), (5, 4)))
    expected = 2 * a @ b + 0.5 * c
    given = (b"N", b"N", 4, 5, 3, 2.0, b, 4, a, 3, 0.5, c, 4)
    kept = [
        np.frombuffer(item, np.uint8) if isinstance(item, bytes)
        else np.array([item], np.int64) if isinstance(item, int)
        else np.array([item], np.float32) if isinstance(item, float) else item
        for item in given
    ]  # fmt: skip
    sgemm(*(item.ctypes.data for item in kept))
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def test_there_is_always_a_library() -> None:
    assert [name for name, _ in libraries()][-1] == "BLAS of SciPy"
