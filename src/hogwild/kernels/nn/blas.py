"""Products of matrices that lie in flat arrays, by the BLAS that is installed, without the GIL.

Compiled code calls it by a name that is bound to an address when this module is loaded: so it can be cached.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.compiler.jit import inner


class Block(NamedTuple):
    """A matrix in row order inside an array: it begins at cell `at`, its rows are `stride` cells apart."""

    cells: Any
    at: int
    stride: int


_NAME = "hogwild_sgemm"


def libraries() -> Iterator[tuple[str, int]]:
    """Each BLAS that is installed, the fastest first, with the address of its SGEMM, as Fortran calls it.

    MKL is there if its user wants it; NumPy's wheels bring a newer OpenBLAS than SciPy's, by some hundredths faster;
    SciPy's door opens whatever BLAS it was built with.
    """
    found = [("MKL", path, "sgemm_") for path in sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))]
    wheels = Path(np.__file__).parents[1].glob("numpy.libs/libscipy_openblas64_*")
    found += [("OpenBLAS of NumPy", path, "scipy_sgemm_64_") for path in sorted(wheels)]
    for name, path, symbol in found:
        try:
            yield name, _address(getattr(ctypes.CDLL(str(path)), symbol))
        except (OSError, AttributeError):
            continue  # a part of it is missing, or its names are others
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__["sgemm"]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    yield "BLAS of SciPy", int(pointer_of(capsule, name_of(capsule)))


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _compiled() -> Any:
    # Loaded here, before any run holds BLAS to one thread, which a library that is loaded later does not heed.
    llvm.add_symbol(_NAME, next(libraries())[1])

    @intrinsic
    def gemm(
        typingctx: Any, transposed: Any, a: Any, at_a: Any, by_a: Any, b: Any, at_b: Any, by_b: Any, c: Any, at_c: Any,
        by_c: Any, m: Any, n: Any, k: Any, alpha: Any, beta: Any,
    ) -> Any:  # fmt: skip
        size = types.int64
        signature = types.void(
            size, a, size, size, b, size, size, c, size, size, size, size, size, types.float32, types.float32
        )

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()

            def data(place: int) -> Any:
                array = context.make_array(signature.args[place])(context, builder, args[place])
                return builder.bitcast(builder.gep(array.data, [args[place + 1]]), pointer)

            def number(value: Any) -> Any:
                # A BLAS of 32-bit integers reads the lower half of what stands there: its first four bytes.
                return builder.bitcast(cgutils.alloca_once_value(builder, value), pointer)

            def letter(transposed: int) -> Any:
                is_transposed = builder.icmp_signed("==", args[0], word(transposed))
                return number(builder.select(is_transposed, ir.IntType(8)(ord("T")), ir.IntType(8)(ord("N"))))

            call = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(ir.VoidType(), [pointer] * 13), _NAME
            )
            # BLAS counts by columns: there our matrices are their transposes, and c' = b' a'.
            m, n, k, alpha, beta = args[10:]
            builder.call(
                call,
                [letter(2), letter(1), number(n), number(m), number(k), number(alpha), data(4), number(args[6]),
                 data(1), number(args[3]), number(beta), data(7), number(args[9])],
            )  # fmt: skip
            return context.get_dummy_value()

        return signature, build

    return gemm


def _interpreted(
    transposed: int, a: Any, at_a: int, by_a: int, b: Any, at_b: int, by_b: int, c: Any, at_c: int, by_c: int, m: int,
    n: int, k: int, alpha: Any, beta: Any,
) -> None:  # fmt: skip
    def view(cells: Any, at: int, by: int, rows: int, columns: int) -> Any:
        flat = cells.reshape(-1)[at:]
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), (by * flat.itemsize, flat.itemsize))

    left = view(a, at_a, by_a, k, m).T if transposed == 1 else view(a, at_a, by_a, m, k)
    right = view(b, at_b, by_b, n, k).T if transposed == 2 else view(b, at_b, by_b, k, n)
    out = view(c, at_c, by_c, m, n)
    out[...] = alpha * (left @ right) + (beta * out if beta != 0 else np.float32(0))


_gemm = _interpreted if nb.config.DISABLE_JIT else _compiled()


@inner
def multiply(a: Any, b: Any, c: Any, m: int, n: int, k: int, alpha: Any, beta: Any) -> None:
    """c = alpha a b + beta c, where a is m x k, b k x n and c m x n."""
    _product(0, a, b, c, m, n, k, alpha, beta)


@inner
def multiply_transposed(a: Any, b: Any, c: Any, m: int, n: int, k: int, alpha: Any, beta: Any) -> None:
    """c = alpha a' b + beta c, where a is k x m, b k x n and c m x n."""
    _product(1, a, b, c, m, n, k, alpha, beta)


@inner
def multiply_by_transposed(a: Any, b: Any, c: Any, m: int, n: int, k: int, alpha: Any, beta: Any) -> None:
    """c = alpha a b' + beta c, where a is m x k, b n x k and c m x n."""
    _product(2, a, b, c, m, n, k, alpha, beta)


@inner
def _product(transposed: int, a: Any, b: Any, c: Any, m: int, n: int, k: int, alpha: Any, beta: Any) -> None:
    _gemm(
        transposed, a.cells, a.at, a.stride, b.cells, b.at, b.stride, c.cells, c.at, c.stride, m, n, k,
        np.float32(alpha), np.float32(beta),
    )  # fmt: skip
