"""Rows of a table that all move along one vector: row <- keep row + factor vector, as in lanes.py, in registers."""

from __future__ import annotations

from typing import Any

import numba as nb
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.simd.emit import VectorCode, data
from hogwild.kernels.simd.rows16 import LANES

_CODE = VectorCode(LANES)


def _compiled() -> Any:
    code = _CODE

    @intrinsic
    def move_rows(typing: Any, lanes: Any, blocks: Any, table: Any, places: Any, first: Any, count: Any, keep: Any, source: Any, at: Any, factors: Any, start: Any, stride: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, blocks, table, places, first, count, keep, source, at, factors, start, stride = args
            kinds = signature.args
            table, places, source, factors = (
                data(context, builder, kinds[k], v) for k, v in ((2, table), (3, places), (7, source), (9, factors))
            )
            size = kinds[0].count
            kept = code.spread(builder, keep)
            with code.rows_of(builder, blocks, size) as (cell, _):
                vectors = [code.load(builder, source, builder.add(at, cell), vector) for vector in range(size)]
                with cgutils.for_range(builder, count) as loop:
                    row = builder.add(builder.load(builder.gep(places, [builder.add(first, loop.index)])), cell)
                    place = builder.add(start, builder.mul(stride, loop.index))
                    factor = code.spread(builder, builder.load(builder.gep(factors, [place])))
                    for vector, along in enumerate(vectors):
                        old = builder.fmul(kept, code.load(builder, table, row, vector))
                        # RACE(lost update): docs/races.md
                        code.store(builder, code.multiply_add(builder, factor, along, old), table, row, vector)
            return context.get_dummy_value()

        long, number = types.int64, types.float32
        return types.void(lanes, long, table, places, long, long, number, source, long, factors, long, long), build

    return move_rows


def _move_rows(
    lanes: Any, blocks: Any, table: Any, places: Any, first: Any, count: Any, keep: Any, source: Any, at: Any,
    factors: Any, start: Any, stride: Any,
) -> None:  # fmt: skip
    size = LANES * len(lanes) * blocks
    for k in range(count):
        row = table[places[first + k] : places[first + k] + size]
        row[:] = keep * row + factors[start + k * stride] * source[at : at + size]


# move_rows(lanes, blocks, table, places, first, count, keep, source, at, factors, start, stride): the row of table at
# places[first + k], for k below count, becomes `keep` of itself plus factors[start + k stride] times the vector at `at`
# of source, one after the other: a row that is named twice moves twice.
move_rows = _move_rows if nb.config.DISABLE_JIT else _compiled()
