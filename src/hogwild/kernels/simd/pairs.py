"""Products in bfloat16: two numbers of 16 bits in the place of one, multiplied as they are and summed up in float32.

A bfloat16 has the sign, the exponent and 7 bits of a float32, and what is multiplied is rounded to the nearest. Two
neighbours along the sum are one *cell* of 32 bits: one instruction (AVX512_BF16) adds two products in each of 16 sums.
Cells stand in arrays of float32, as strips (strips.py) with half as many rows. Numbers below 1.2e-38 count as 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils

from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.compiler.jit import choice
from hogwild.kernels.simd.emit import INT, LONG, VectorCode

ROW = 16  # cells of a row of a strip
_CODE = VectorCode(ROW)
_CHAINS = 12  # sums at once: an instruction begins every cycle, and ends six later


class Float32(NamedTuple):
    """A cell is a number."""


class BFloat16(NamedTuple):
    """A cell is two numbers."""


def has_pairs() -> bool:
    """Whether code is compiled for a processor that multiplies pairs; without the compiler NumPy does it anywhere."""
    if nb.config.DISABLE_JIT:
        return True
    if nb.config.CPU_NAME or nb.config.CPU_FEATURES is not None:
        return False
    return bool(llvm.get_host_cpu_features().get("avx512bf16"))


# -- in Python --------------------------------------------------------------------------------------------------------


def as_pairs(low: Any, high: Any) -> Any:
    """Cells of numbers that are neighbours along a sum."""
    halves = []
    for numbers in (low, high):
        bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
        nearest = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
        halves.append(np.where(np.isnan(numbers), bits >> np.uint32(16) | np.uint32(0x40), nearest))
    return (halves[0] | halves[1] << np.uint32(16)).view(np.float32)


@choice
def numbers_of(products: Any, cells: Any) -> Any:
    """A matrix of cells as numbers; those of a cell are neighbours in a row."""


@numbers_of.of(Float32)
def _themselves(products: Any, cells: Any) -> Any:
    return cells


@numbers_of.of(BFloat16)
def _both(products: Any, cells: Any) -> Any:
    bits = np.ascontiguousarray(cells).view(np.uint32)
    halves = np.stack([bits << np.uint32(16), bits & np.uint32(0xFFFF0000)], -1)
    return halves.view(np.float32).reshape(len(cells), 2 * cells.shape[1])


# -- as code ----------------------------------------------------------------------------------------------------------


class _Half(ir.Type):  # llvmlite has no type of this
    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Half)

    def __hash__(self) -> int:
        return hash(_Half)


_HALVES = ir.VectorType(_Half(), 2 * ROW)


def _call(builder: Any, name: str, returns: Any, values: list[Any]) -> Any:
    kind = ir.FunctionType(returns, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.avx512bf16.{name}.512"), values)


@choice
def add_product(products: Any, builder: Any, code: Any, a: Any, b: Any, cell: Any) -> None:
    """Add the products of two vectors of cells to the vector of sums in `cell`."""


@add_product.of(Float32)
def _add_one(products: Any, builder: Any, code: Any, a: Any, b: Any, cell: Any) -> None:
    code.add_product(builder, a, b, cell)


@add_product.of(BFloat16)
def _add_two(products: Any, builder: Any, code: Any, a: Any, b: Any, cell: Any) -> None:
    pairs = [builder.bitcast(x, _HALVES) for x in (b, a)]  # a number in all lanes is read by the instruction itself
    builder.store(_call(builder, "dpbf16ps", _CODE.vector, [builder.load(cell), *pairs]), cell)


@choice
def chains_for(products: Any, sums: int) -> Any:
    """Into how many each of so many sums is divided, that none waits for the last of its products to be added."""


chains_for.of(Float32)(lambda products, sums: 1)
chains_for.of(BFloat16)(lambda products, sums: _CHAINS // sums)


def _rounded(builder: Any, low: Any, high: Any) -> Any:
    """32 numbers of 16 bits: first those of one vector, then those of the other."""
    return _call(builder, "cvtne2ps2bf16", _HALVES, [high, low])


def _load_where(builder: Any, holds: Any, array: Any, place: Any, other: Any) -> Any:
    """Sixteen numbers of an array, or zeros, for which those at another place are read."""
    found = _CODE.load(builder, array, builder.select(holds, place, other))
    return builder.select(holds, found, _CODE.zero)


# -- numbers into cells -----------------------------------------------------------------------------------------------


def _pair_columns(a: Any, at: Any, count: Any, b: Any, to: Any) -> None:
    cells = -(-count // (2 * ROW)) * ROW
    row = np.zeros(2 * cells, np.float32)
    row[:count] = a[at : at + count]
    b[to : to + cells] = as_pairs(row[::2], row[1::2])


@instruction(_pair_columns)
def pair_columns(b_: Any, a: Any, at: Any, count: Any, b: Any, to: Any) -> None:
    """Neighbours in a row of so many numbers become cells; whole rows of cells, filled up with zeros. Numbers behind
    them are read, up to whole rows of them."""
    lanes, last = _CODE.places(range(ROW)), b_.trunc(count, INT)
    counts = b_.insert_element(ir.Constant(_CODE.integers, ir.Undefined), last, INT(0))
    counts = b_.shuffle_vector(counts, counts, _CODE.places([0] * ROW))
    with cgutils.for_range_slice(b_, LONG(0), count, LONG(2 * ROW)) as (first, _):
        parts = []
        for part in range(2):
            begin = b_.add(first, LONG(part * ROW))
            found = _load_where(b_, b_.icmp_signed("<", begin, count), a, b_.add(at, begin), at)
            start = b_.insert_element(ir.Constant(_CODE.integers, ir.Undefined), b_.trunc(begin, INT), INT(0))
            places = b_.add(b_.shuffle_vector(start, start, _CODE.places([0] * ROW)), lanes)
            parts.append(b_.select(b_.icmp_signed("<", places, counts), found, _CODE.zero))
        cells = b_.bitcast(_rounded(b_, *parts), _CODE.vector)
        _CODE.store(b_, cells, b, b_.add(to, b_.udiv(first, LONG(2))))


def _pair_rows(a: Any, at: Any, apart: Any, count: Any, b: Any, to: Any, b_apart: Any) -> None:
    rows = [a[at + k * apart : at + k * apart + ROW] for k in range(count)]
    rows += [np.zeros(ROW, np.float32)] * (count % 2)
    for k in range(0, count, 2):
        b[to + k // 2 * b_apart : to + k // 2 * b_apart + ROW] = as_pairs(rows[k], rows[k + 1])


@instruction(_pair_rows)
def pair_rows(b_: Any, a: Any, at: Any, apart: Any, count: Any, b: Any, to: Any, b_apart: Any) -> None:
    """Two rows each of so many, `apart` cells from one to the next and 16 numbers long, become one row of cells, which
    are `b_apart` from one to the next; to a last one without another belong zeros."""
    mixed = [k // 2 + ROW * (k % 2) for k in range(2 * ROW)]
    with cgutils.for_range_slice(b_, LONG(0), count, LONG(2)) as (k, _):
        first, after = b_.add(at, b_.mul(k, apart)), b_.add(k, LONG(1))
        low = _CODE.load(b_, a, first)  # RACE(stale read): docs/races.md
        high = _load_where(b_, b_.icmp_signed("<", after, count), a, b_.add(first, apart), first)
        halves = b_.bitcast(_rounded(b_, low, high), ir.VectorType(ir.IntType(16), 2 * ROW))
        cells = b_.bitcast(b_.shuffle_vector(halves, halves, _CODE.places(mixed)), _CODE.vector)
        _CODE.store(b_, cells, b, b_.add(to, b_.mul(b_.lshr(k, LONG(1)), b_apart)))


def _join_strips(a: Any, at: Any, apart: Any, count: Any, b: Any, to: Any) -> None:
    for k in range(count):
        low, high = (a[first : first + ROW] for first in (at + k * ROW, at + apart + k * ROW))
        row = np.concatenate([low, high])
        b[to + k * ROW : to + (k + 1) * ROW] = as_pairs(row[::2], row[1::2])


@instruction(_join_strips)
def join_strips(b_: Any, a: Any, at: Any, apart: Any, count: Any, b: Any, to: Any) -> None:
    """So many rows of two strips, the second `apart` cells after the first, become rows of cells, of neighbours."""
    with cgutils.for_range_slice(b_, LONG(0), b_.mul(count, LONG(ROW)), LONG(ROW)) as (row, _):
        first = b_.add(at, row)
        parts = [_CODE.load(b_, a, place) for place in (first, b_.add(first, apart))]
        _CODE.store(b_, b_.bitcast(_rounded(b_, *parts), _CODE.vector), b, b_.add(to, row))


def _turn_strips(a: Any, at: Any, apart: Any, count: Any, b: Any, to: Any) -> None:
    cells = np.zeros(ROW * ROW, np.float32)
    _join_strips(a, at, apart, min(count, ROW), cells, 0)
    b[to : to + ROW * ROW] = cells.reshape(ROW, ROW).T.ravel()


@instruction(_turn_strips)
def turn_strips(b_: Any, a: Any, at: Any, apart: Any, count: Any, b: Any, to: Any) -> None:
    """The first 16 rows of two strips, as `join_strips` has them, turned over: row k is the cell k of all of them. If
    there are fewer rows, others are zero."""
    rows = []
    for k in range(ROW):
        first, holds = b_.add(at, LONG(k * ROW)), b_.icmp_signed("<", LONG(k), count)
        # RACE(stale read): docs/races.md
        parts = [_load_where(b_, holds, a, place, at) for place in (first, b_.add(first, apart))]
        rows.append(b_.bitcast(_rounded(b_, *parts), _CODE.vector))
    for k, row in enumerate(_CODE.turned(b_, rows)):
        _CODE.store(b_, row, b, b_.add(to, LONG(k * ROW)))
