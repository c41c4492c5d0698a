"""Pieces of code over vectors of floats in registers, of which rows16.py and rows8.py make their loops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

FLOAT, INT, LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)


class VectorCode:
    """Code over vectors of so many floats. A place is a number of cells from the beginning of an array."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.vector = ir.VectorType(FLOAT, lanes)
        self.integers = ir.VectorType(INT, lanes)
        self.nothing = ir.Constant(self.vector, ir.Undefined)
        self.zero = self.each(0)

    def each(self, number: float) -> Any:
        """One number in all lanes."""
        return ir.Constant(self.vector, [float(np.float32(number))] * self.lanes)

    def places(self, numbers: Iterable[int]) -> Any:
        """Whole numbers, as a constant vector."""
        numbers = list(numbers)
        return ir.Constant(ir.VectorType(INT, len(numbers)), numbers)

    def at(self, builder: Any, base: Any, place: Any, vector: int) -> Any:
        """Address of a vector of a row."""
        start = builder.gep(base, [builder.add(place, LONG(self.lanes * vector))])
        return builder.bitcast(start, self.vector.as_pointer())

    def load_row(self, builder: Any, base: Any, place: Any, vectors: int) -> list[Any]:
        """So many vectors of a row."""
        return [self.load(builder, base, place, vector) for vector in range(vectors)]

    def load(self, builder: Any, base: Any, place: Any, vector: int = 0) -> Any:
        """A vector of a row."""
        found = builder.load(self.at(builder, base, place, vector))
        found.align = 4
        return found

    def store(self, builder: Any, value: Any, base: Any, place: Any, vector: int = 0) -> None:
        """Write a vector of a row."""
        builder.store(value, self.at(builder, base, place, vector)).align = 4

    def multiply_add(self, builder: Any, a: Any, b: Any, c: Any) -> Any:
        """a b + c."""
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fma.v{self.lanes}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [a, b, c])

    def spread(self, builder: Any, number: Any) -> Any:
        """A number, float or int32, in all lanes."""
        nothing = self.nothing if number.type == FLOAT else ir.Constant(self.integers, ir.Undefined)
        first = builder.insert_element(nothing, number, INT(0))
        return builder.shuffle_vector(first, nothing, self.places([0] * self.lanes))

    def halved(self, builder: Any, vector: Any, join: Any, lanes: int) -> Any:
        """A vector of so many lanes, made of the halves of this one, again and again, by a function of two vectors."""
        half = self.lanes // 2
        while half >= lanes:
            low = builder.shuffle_vector(vector, vector, self.places(range(half)))
            high = builder.shuffle_vector(vector, vector, self.places(range(half, 2 * half)))
            vector = join(low, high)
            half //= 2
        return vector

    def joined(self, builder: Any, parts: list[Any]) -> Any:
        """One vector of 1, 2, 4 … equally long ones, one after the other."""
        while len(parts) > 1:
            lanes = self.places(range(2 * parts[0].type.count))
            parts = [builder.shuffle_vector(*parts[k : k + 2], lanes) for k in range(0, len(parts), 2)]
        return parts[0]

    def spread_at(self, builder: Any, base: Any, place: Any) -> Any:
        """The number at a place, in all lanes."""
        return self.spread(builder, builder.load(builder.gep(base, [place])))

    def make_sums(self, builder: Any, count: int) -> list[Any]:
        """Cells for so many vectors."""
        return [cgutils.alloca_once(builder, self.vector) for _ in range(count)]

    def add_product(self, builder: Any, a: Any, b: Any, cell: Any) -> None:
        """Add a b to the vector in a cell."""
        builder.store(self.multiply_add(builder, a, b, builder.load(cell)), cell)

    def clear(self, builder: Any, cells: list[Any]) -> None:
        """Set the vectors in cells to zero."""
        for cell in cells:
            builder.store(self.zero, cell)

    def fold(self, builder: Any, vector: Any, join: Any) -> Any:
        """One number of all lanes, by a function of two vectors."""
        return builder.extract_element(self.halved(builder, vector, join, 1), INT(0))

    def sum(self, builder: Any, vector: Any) -> Any:
        """The sum over the lanes."""
        return self.fold(builder, vector, builder.fadd)

    def pair_sums(self, builder: Any, a: Any, b: Any, step: int) -> Any:
        """Sums of neighbours `step` lanes apart: of a in the even groups of lanes, of b in the odd ones."""
        even = [(k // step) % 2 == 0 for k in range(self.lanes)]
        low = [k if even[k] else self.lanes + k - step for k in range(self.lanes)]
        high = [k + step if even[k] else self.lanes + k for k in range(self.lanes)]
        return builder.fadd(*(builder.shuffle_vector(a, b, self.places(lanes)) for lanes in (low, high)))

    def store_four_sums(self, builder: Any, four: list[Any], base: Any, place: Any) -> None:
        """Write the sums over the lanes of the vectors that four cells hold."""
        a, b, c, d = (builder.load(cell) for cell in four)
        found = self.pair_sums(builder, self.pair_sums(builder, a, b, 1), self.pair_sums(builder, c, d, 1), 2)
        found = self.halved(builder, found, builder.fadd, 4)
        builder.store(found, builder.bitcast(builder.gep(base, [place]), found.type.as_pointer())).align = 4

    def turned(self, builder: Any, rows: list[Any]) -> list[Any]:
        """As many vectors as lanes, as the rows of a square that is turned over."""
        step = 1
        while step < self.lanes:
            found = list(rows)
            even = [k for k in range(self.lanes) if k // step % 2 == 0]
            for low in even:
                a, b = rows[low], rows[low + step]
                first = [k if k in even else self.lanes + k - step for k in range(self.lanes)]
                second = [k + step if k in even else self.lanes + k for k in range(self.lanes)]
                found[low] = builder.shuffle_vector(a, b, self.places(first))
                found[low + step] = builder.shuffle_vector(a, b, self.places(second))
            rows, step = found, 2 * step
        return rows

    def select(self, builder: Any, sign: str, x: Any, y: Any, chosen: Any, other: Any) -> Any:
        """`chosen` in the lanes where x compares with y as the sign says, `other` elsewhere and where one is NaN."""
        return builder.select(builder.fcmp_ordered(sign, x, y), chosen, other)

    def polynomial(self, builder: Any, x: Any, factors: list[float]) -> Any:
        """factors[0] + factors[1] x + …"""
        found = self.each(factors[-1])
        for factor in factors[-2::-1]:
            found = self.multiply_add(builder, found, x, self.each(factor))
        return found

    def exp_of_less(self, builder: Any, x: Any) -> Any:
        """exp(x) to about 2e-7 of it, for x <= 0; 0 below -87.3, where it would be no normal number."""
        # exp(x) = 2^whole exp(r), |r| <= log(2) / 2; log(2) in two parts, so that r is exact to the last bit.
        least = self.each(-87.3)
        kept = self.select(builder, "<", x, least, least, x)
        power = builder.fmul(kept, self.each(1.4426950408889634))
        whole = builder.fptosi(builder.fsub(power, self.each(0.5)), self.integers)  # cut towards zero: the nearest
        count = builder.sitofp(whole, self.vector)
        r = self.multiply_add(builder, count, self.each(-0.693359375), kept)
        r = self.multiply_add(builder, count, self.each(2.12194440e-4), r)
        rest = self.polynomial(builder, r, [1, 1, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720])
        exponent = builder.shl(builder.add(whole, self.places([127] * self.lanes)), self.places([23] * self.lanes))
        found = builder.fmul(rest, builder.bitcast(exponent, self.vector))
        return self.select(builder, "<", x, least, self.zero, found)

    def gather(self, builder: Any, base: Any, ids: Any, first: Any) -> Any:
        """The numbers at so many places, ids[first], ids[first + 1] …, from `base` on."""
        found = self.nothing
        for lane in range(self.lanes):
            place = builder.load(builder.gep(ids, [builder.add(first, LONG(lane))]))
            value = builder.load(builder.gep(base, [builder.sext(place, LONG)]))
            found = builder.insert_element(found, value, INT(lane))
        return found

    def rows_of(self, builder: Any, blocks: Any, size: int) -> Any:
        """Loops over the blocks of a row, of `size` vectors each; gives the first cell of each."""
        cells = LONG(self.lanes * size)
        return cgutils.for_range_slice(builder, LONG(0), builder.mul(blocks, cells), cells)
