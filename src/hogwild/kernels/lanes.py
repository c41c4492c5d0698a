"""Rows of numbers as vectors of 16 floats, in registers: four dot products at once, weighted sums of rows.

What the compiler makes of plain loops reads and writes a row once for every row that is added to it, and uses half of
the width of the registers. These are written out for it. A row is `blocks` times as many vectors as the tuple `lanes`
has entries; that number is a constant of the code, and so small that the sums of a whole block stay in registers.
Arrays are flat in effect: a place is a number of cells from their beginning, and nothing checks it.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 16
# Sums of a block that stay in registers: there are 32 registers of 16 floats with AVX-512, 16 of 8 with AVX2.
MOST = 8 if llvm.get_host_cpu_features().get("avx512f") else 4

_FLOAT, _INT, _LONG, _BYTE = ir.FloatType(), ir.IntType(32), ir.IntType(64), ir.IntType(8)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_NOTHING = ir.Constant(_VECTOR, ir.Undefined)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)


def layout(dim: int) -> tuple[tuple[int, ...], int]:
    """`lanes` and `blocks` of rows of `dim` numbers: few cells in few blocks; a block costs a fiftieth of a row."""
    vectors = -(-dim // LANES)
    blocks, size = min(
        ((-(-vectors // size), size) for size in range(1, MOST + 1)), key=lambda n: n[0] * n[1] * (50 + n[0])
    )
    return (0,) * size, blocks


# -- pieces of code -------------------------------------------------------------------------------------------------


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _at(builder: Any, base: Any, place: Any, vector: int) -> Any:
    start = builder.gep(base, [builder.add(place, _LONG(LANES * vector))])
    return builder.bitcast(start, _VECTOR.as_pointer())


def _load(builder: Any, base: Any, place: Any, vector: int) -> Any:
    found = builder.load(_at(builder, base, place, vector))
    found.align = 4
    return found


def _store(builder: Any, value: Any, base: Any, place: Any, vector: int) -> None:
    builder.store(value, _at(builder, base, place, vector)).align = 4


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{LANES}f32"), [a, b, c])


def _spread(builder: Any, number: Any) -> Any:
    first = builder.insert_element(_NOTHING, number, _INT(0))
    return builder.shuffle_vector(first, _NOTHING, _places([0] * LANES))


def _places(numbers: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_INT, len(numbers)), numbers)


def _fold(builder: Any, a: Any, b: Any, step: int) -> Any:
    """Sums of neighbours `step` lanes apart: of a in the even groups of lanes, of b in the odd ones."""
    even = [(k // step) % 2 == 0 for k in range(LANES)]
    low = [k if even[k] else LANES + k - step for k in range(LANES)]
    high = [k + step if even[k] else LANES + k for k in range(LANES)]
    return builder.fadd(builder.shuffle_vector(a, b, _places(low)), builder.shuffle_vector(a, b, _places(high)))


def _four_sums(builder: Any, four: list[Any]) -> Any:
    """The sums over the lanes of four vectors, as one vector of four."""
    a, b, c, d = four
    found = _fold(builder, _fold(builder, a, b, 1), _fold(builder, c, d, 1), 2)
    for half in (LANES // 2, LANES // 4):
        low = builder.shuffle_vector(found, found, _places(list(range(half))))
        high = builder.shuffle_vector(found, found, _places(list(range(half, 2 * half))))
        found = builder.fadd(low, high)
    return found


def _step(builder: Any, blocks: Any, size: int) -> Any:
    """Loops over the blocks of a row; gives the first cell of each."""
    return cgutils.for_range_slice(builder, _LONG(0), builder.mul(blocks, _LONG(LANES * size)), _LONG(LANES * size))


# -- compiled -------------------------------------------------------------------------------------------------------


def _compiled() -> tuple[Any, ...]:
    long = types.int64

    @intrinsic
    def dots(typing: Any, lanes: Any, blocks: Any, x: Any, at: Any, y: Any, four: Any, first: Any, out: Any, to: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, x, at, y, four, first, out, to = args
            kinds = signature.args
            x, y, four = (_data(context, builder, kinds[k], v) for k, v in ((2, x), (4, y), (5, four)))
            rows = [builder.load(builder.gep(four, [builder.add(first, _LONG(k))])) for k in range(4)]
            sums = [cgutils.alloca_once_value(builder, _ZERO) for _ in rows]
            with _step(builder, blocks, kinds[0].count) as (cell, _):
                for vector in range(kinds[0].count):
                    mine = _load(builder, x, builder.add(at, cell), vector)
                    for row, total in zip(rows, sums, strict=True):
                        other = _load(builder, y, builder.add(row, cell), vector)
                        builder.store(_multiply_add(builder, mine, other, builder.load(total)), total)
            found = _four_sums(builder, [builder.load(total) for total in sums])
            target = builder.gep(_data(context, builder, kinds[7], out), [to])
            builder.store(found, builder.bitcast(target, found.type.as_pointer())).align = 4
            return context.get_dummy_value()

        return types.void(lanes, long, x, long, y, four, long, out, long), build

    @intrinsic
    def add_rows(typing: Any, lanes: Any, blocks: Any, target: Any, to: Any, source: Any, places: Any, first: Any, factors: Any, factor: Any, stride: Any, count: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, target, to, source, places, first, factors, factor, stride, count = args
            kinds = signature.args
            target, source, places, factors = (
                _data(context, builder, kinds[k], v) for k, v in ((2, target), (4, source), (5, places), (7, factors))
            )
            size = kinds[0].count
            sums = [cgutils.alloca_once(builder, _VECTOR) for _ in range(size)]
            with _step(builder, blocks, size) as (cell, _):
                here = builder.add(to, cell)
                for vector, total in enumerate(sums):
                    builder.store(_load(builder, target, here, vector), total)
                with cgutils.for_range(builder, count) as loop:
                    row = builder.load(builder.gep(places, [builder.add(first, loop.index)]))
                    number = builder.load(builder.gep(factors, [builder.add(factor, builder.mul(stride, loop.index))]))
                    number, row = _spread(builder, number), builder.add(row, cell)
                    for vector, total in enumerate(sums):
                        value = _load(builder, source, row, vector)
                        builder.store(_multiply_add(builder, number, value, builder.load(total)), total)
                for vector, total in enumerate(sums):
                    _store(builder, builder.load(total), target, here, vector)  # RACE(lost update): docs/races.md
            return context.get_dummy_value()

        return types.void(lanes, long, target, long, source, places, long, factors, long, long, long), build

    @intrinsic
    def copy_row(typing: Any, lanes: Any, blocks: Any, target: Any, to: Any, source: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, target, to, source, at = args
            target = _data(context, builder, signature.args[2], target)
            source = _data(context, builder, signature.args[4], source)
            with _step(builder, blocks, signature.args[0].count) as (cell, _):
                for vector in range(signature.args[0].count):
                    value = _load(builder, source, builder.add(at, cell), vector)
                    _store(builder, value, target, builder.add(to, cell), vector)
            return context.get_dummy_value()

        return types.void(lanes, long, target, long, source, long), build

    @intrinsic
    def prefetch_row(typing: Any, lanes: Any, blocks: Any, source: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, source, at = args
            source = _data(context, builder, signature.args[2], source)
            kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
            ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            with _step(builder, blocks, signature.args[0].count) as (cell, _):
                for vector in range(signature.args[0].count):
                    line = builder.bitcast(_at(builder, source, builder.add(at, cell), vector), _BYTE.as_pointer())
                    builder.call(ask, [line, _INT(0), _INT(3), _INT(1)])
            return context.get_dummy_value()

        return types.void(lanes, long, source, long), build

    @intrinsic
    def float_of_bits(typing: Any, bits: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], _FLOAT)

        return types.float32(types.int32), build

    return dots, add_rows, copy_row, prefetch_row, float_of_bits


# -- the same, interpreted ------------------------------------------------------------------------------------------


def _cells(lanes: Any, blocks: Any, array: Any, at: Any) -> Any:
    return array.reshape(-1)[at : at + LANES * len(lanes) * blocks]


def _dots(lanes: Any, blocks: Any, x: Any, at: Any, y: Any, four: Any, first: Any, out: Any, to: Any) -> None:
    for k in range(4):
        out[to + k] = _cells(lanes, blocks, x, at) @ _cells(lanes, blocks, y, four[first + k])


def _add_rows(
    lanes: Any, blocks: Any, target: Any, to: Any, source: Any, places: Any, first: Any, factors: Any, factor: Any,
    stride: Any, count: Any,
) -> None:  # fmt: skip
    for k in range(count):
        row = _cells(lanes, blocks, source, places[first + k])
        _cells(lanes, blocks, target, to)[:] += factors[factor + k * stride] * row


def _copy_row(lanes: Any, blocks: Any, target: Any, to: Any, source: Any, at: Any) -> None:
    _cells(lanes, blocks, target, to)[:] = _cells(lanes, blocks, source, at)


def _prefetch_row(lanes: Any, blocks: Any, source: Any, at: Any) -> None:
    return None


def _float_of_bits(bits: Any) -> Any:
    return np.int32(bits).view(np.float32)


_INTERPRETED = (_dots, _add_rows, _copy_row, _prefetch_row, _float_of_bits)
# dots(lanes, blocks, x, at, y, places, first, out, to): out[to:to + 4] = x[at:] times each of the rows of y at
# places[first:first + 4].
# add_rows(lanes, blocks, target, to, source, places, first, factors, factor, stride, count): to the row of target at
# `to` add factors[factor + k stride] times the row of source at places[first + k], for k below count.
dots, add_rows, copy_row, prefetch_row, float_of_bits = _INTERPRETED if nb.config.DISABLE_JIT else _compiled()
