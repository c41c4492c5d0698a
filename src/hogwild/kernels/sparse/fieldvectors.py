"""Sums of factors by fields, a vector of factors at a time: as wide as the machine's vectors are.

`lanes` has as many entries as a vector of factors. A place is a number of cells from the beginning of an array, and
nothing checks it. All of it is scratch of one worker.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.simd.emit import FLOAT, LONG, VectorCode, data

_FAST = ("reassoc", "contract", "nsz")
_CHAINS = 4  # sums side by side: one alone would wait for itself at each addition; a power of two


def _sum(builder: Any, vector: Any, count: int) -> Any:
    total = FLOAT(0)
    for lane in range(count):
        total = builder.fadd(total, builder.extract_element(vector, ir.IntType(32)(lane)), flags=_FAST)
    return total


def _compiled() -> tuple[Any, ...]:
    long, number = types.int64, types.float32

    @intrinsic
    def pull_fields(typing: Any, lanes: Any, array: Any, to: Any, sums: Any, room: Any, fields: Any, factor: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, array, to, sums, room, fields, factor = args
            array, dim = data(context, builder, signature.args[1], array), signature.args[0].count
            if dim:
                code = VectorCode(dim)
                factor = code.spread(builder, factor)
                with cgutils.for_range(builder, fields) as loop:
                    value = code.load(builder, array, builder.add(sums, builder.mul(loop.index, room)))
                    place = builder.add(to, builder.mul(loop.index, LONG(dim)))
                    code.store(builder, builder.fmul(value, factor), array, place)
            return context.get_dummy_value()

        return types.void(lanes, array, long, long, long, long, number), build

    @intrinsic
    def dot_fields(typing: Any, lanes: Any, array: Any, room: Any, fields: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, array, room, fields = args
            array, dim = data(context, builder, signature.args[1], array), signature.args[0].count
            if not dim:
                return FLOAT(0)
            code = VectorCode(dim)
            totals = [cgutils.alloca_once(builder, code.vector) for _ in range(_CHAINS)]
            for total in totals:
                builder.store(code.zero, total)
            with cgutils.for_range(builder, fields) as outer:
                row = builder.mul(outer.index, room)
                column = builder.mul(outer.index, LONG(dim))

                def add(g: Any, total: Any, row: Any = row, column: Any = column) -> None:
                    ours = code.load(builder, array, builder.add(row, builder.mul(g, LONG(dim))))
                    theirs = code.load(builder, array, builder.add(builder.mul(g, room), column))
                    builder.store(code.multiply_add(builder, ours, theirs, builder.load(total)), total)

                whole = builder.and_(outer.index, LONG(-_CHAINS))
                with cgutils.for_range_slice(builder, LONG(0), whole, LONG(_CHAINS)) as (g, _):
                    for k, total in enumerate(totals):
                        add(builder.add(g, LONG(k)), total)
                with cgutils.for_range_slice(builder, whole, outer.index, LONG(1)) as (g, _):
                    add(g, totals[0])
            found = builder.load(totals[0])
            for total in totals[1:]:
                found = builder.fadd(found, builder.load(total), flags=_FAST)
            return _sum(builder, found, dim)

        return number(lanes, array, long, long), build

    return pull_fields, dot_fields


# -- the same, interpreted ------------------------------------------------------------------------------------------


def _pull_fields(lanes: Any, array: Any, to: int, sums: int, room: int, fields: int, factor: Any) -> None:
    dim = len(lanes)
    for g in range(fields):
        array[to + g * dim : to + (g + 1) * dim] = factor * array[sums + g * room : sums + g * room + dim]


def _dot_fields(lanes: Any, array: Any, room: int, fields: int) -> Any:
    dim = len(lanes)
    table = array[: fields * room].reshape(fields, room)[:, : fields * dim].reshape(fields, fields, dim)
    return np.float32(np.tril((table * table.transpose(1, 0, 2)).sum(axis=2), -1).sum())


_INTERPRETED = (_pull_fields, _dot_fields)
# pull_fields(lanes, array, to, sums, room, fields, factor): for each field g, the vector at `to` + g dim becomes factor
# times that at `sums` + g room.
# dot_fields(lanes, array, room, fields): the sum over f and g < f of <s_fg, s_gf>, where s_fg is at f room + g dim.
pull_fields, dot_fields = _INTERPRETED if nb.config.DISABLE_JIT else _compiled()
