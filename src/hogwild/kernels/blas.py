"""Products of matrices that lie in flat arrays, by the BLAS of SciPy, from compiled code and without the GIL.

The call goes through the door that the compiler itself uses for `np.dot`: so compiled code that holds it can be cached.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.jit import inner


class Block(NamedTuple):
    """A matrix in row order inside an array: it begins at cell `at`, its rows are `stride` cells apart."""

    cells: Any
    at: int
    stride: int


def _compiled() -> Any:
    from numba.np.linalg import ensure_blas

    # It loads the library: here, before a run holds BLAS to one thread, which a library loaded later does not heed.
    ensure_blas()

    @intrinsic
    def gemm(
        typingctx: Any, turned: Any, a: Any, at_a: Any, by_a: Any, b: Any, at_b: Any, by_b: Any, c: Any, at_c: Any,
        by_c: Any, m: Any, n: Any, k: Any, alpha: Any, beta: Any,
    ) -> Any:  # fmt: skip
        ensure_blas()
        size = types.int64
        signature = types.void(
            size, a, size, size, b, size, size, c, size, size, size, size, size, types.float32, types.float32
        )

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            letter, word, pointer = ir.IntType(8), ir.IntType(64), ir.IntType(8).as_pointer()

            def data(place: int) -> Any:
                array = context.make_array(signature.args[place])(context, builder, args[place])
                return builder.bitcast(builder.gep(array.data, [args[place + 1]]), pointer)

            def number(place: int) -> Any:
                return builder.bitcast(cgutils.alloca_once_value(builder, args[place]), pointer)

            kind = ir.FunctionType(
                ir.IntType(32),
                [letter] * 3 + [word] * 3 + [pointer, pointer, word, pointer, word, pointer, pointer, word],
            )
            call = cgutils.get_or_insert_function(builder.module, kind, "numba_xxgemm")
            plain, other = letter(ord("n")), letter(ord("t"))
            left = builder.select(builder.icmp_signed("==", args[0], word(1)), other, plain)
            right = builder.select(builder.icmp_signed("==", args[0], word(2)), other, plain)
            # BLAS counts by columns: there our matrices are their transposes, and c' = b' a'.
            builder.call(
                call,
                [letter(ord("s")), right, left, args[11], args[10], args[12], number(13), data(4), args[6], data(1),
                 args[3], number(14), data(7), args[9]],
            )  # fmt: skip
            return context.get_dummy_value()

        return signature, build

    return gemm


def _interpreted(
    turned: int, a: Any, at_a: int, by_a: int, b: Any, at_b: int, by_b: int, c: Any, at_c: int, by_c: int, m: int,
    n: int, k: int, alpha: Any, beta: Any,
) -> None:  # fmt: skip
    def view(cells: Any, at: int, by: int, rows: int, columns: int) -> Any:
        flat = cells.reshape(-1)[at:]
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), (by * flat.itemsize, flat.itemsize))

    left = view(a, at_a, by_a, k, m).T if turned == 1 else view(a, at_a, by_a, m, k)
    right = view(b, at_b, by_b, n, k).T if turned == 2 else view(b, at_b, by_b, k, n)
    out = view(c, at_c, by_c, m, n)
    out[...] = alpha * (left @ right) + (beta * out if beta != 0 else np.float32(0))


_gemm = _interpreted if nb.config.DISABLE_JIT else _compiled()


@inner
def multiply(a: Any, b: Any, c: Any, m: int, n: int, k: int, alpha: Any, beta: Any) -> None:
    """c = alpha a b + beta c, where a is m x k, b k x n and c m x n."""
    _gemm(
        0, a.cells, a.at, a.stride, b.cells, b.at, b.stride, c.cells, c.at, c.stride, m, n, k, np.float32(alpha),
        np.float32(beta),
    )  # fmt: skip


@inner
def multiply_turned(a: Any, b: Any, c: Any, m: int, n: int, k: int, alpha: Any, beta: Any) -> None:
    """c = alpha a' b + beta c, where a is k x m, b k x n and c m x n."""
    _gemm(
        1, a.cells, a.at, a.stride, b.cells, b.at, b.stride, c.cells, c.at, c.stride, m, n, k, np.float32(alpha),
        np.float32(beta),
    )  # fmt: skip


@inner
def multiply_by_turned(a: Any, b: Any, c: Any, m: int, n: int, k: int, alpha: Any, beta: Any) -> None:
    """c = alpha a b' + beta c, where a is m x k, b n x k and c m x n."""
    _gemm(
        2, a.cells, a.at, a.stride, b.cells, b.at, b.stride, c.cells, c.at, c.stride, m, n, k, np.float32(alpha),
        np.float32(beta),
    )  # fmt: skip
