"""Rows of weights, eight at a time: read, paid for and moved as vectors in registers, whatever the update rule.

A place is a number of cells from the beginning of an array, and nothing checks it. Tables of weights are read and
written by several workers at once: docs/races.md.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from hogwild.kernels.simd.emit import data
from hogwild.kernels.simd.rows8 import CODE, LANES
from hogwild.kernels.simd.rules8 import MOVES, PACES, Octet, Plain

EIGHT = LANES


class Eight:
    """Eight weights in a formula, and what the rule remembers of them."""

    def __init__(self, builder: Any, table: Any, cell: Any, width: Any) -> None:
        self._builder, self._table, self._cell, self._width = builder, table, cell, width

    def _at(self, slot: int) -> Any:
        return self._builder.add(self._cell, self._builder.mul(self._width, ir.IntType(64)(slot)))

    def __getitem__(self, slot: int) -> Octet:
        # RACE(stale read): docs/races.md
        return Octet(self._builder, CODE.load(self._builder, self._table, self._at(slot)))

    def __setitem__(self, slot: int, value: Octet) -> None:
        # RACE(lost update): docs/races.md
        CODE.store(self._builder, value.value, self._table, self._at(slot))


def _spread(builder: Any, numbers: Any) -> list[Octet]:
    return [Octet(builder, CODE.spread(builder, number)) for number in numbers]


def _spread_parts(builder: Any, kind: Any, bundle: Any) -> list[Octet]:
    return _spread(builder, [builder.extract_value(bundle, k) for k in range(len(kind.types))])


def _compiled() -> tuple[Any, ...]:
    long, number = types.int64, types.float32

    @intrinsic
    def move_eight(typing: Any, rule: Any, table: Any, cell: Any, width: Any, grads: Any, at: Any, rate: Any, fixes: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            rule, table, cell, width, grads, at, rate, fixes = args
            kinds = signature.args
            weights = Eight(builder, data(context, builder, kinds[1], table), cell, width)
            gradient = Octet(builder, CODE.load(builder, data(context, builder, kinds[4], grads), at))
            (rate,) = _spread(builder, [rate])
            constants, fixes = _spread_parts(builder, kinds[0], rule), _spread_parts(builder, kinds[7], fixes)
            MOVES[kinds[0].instance_class](weights, gradient, rate, constants, fixes)
            return context.get_dummy_value()

        return types.void(rule, table, long, long, grads, long, number, fixes), build

    @intrinsic
    def fade_eight(typing: Any, rule: Any, table: Any, cell: Any, width: Any, due: Any, fixes: Any, factor: Any, out: Any, to: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            rule, table, cell, width, due, fixes, factor, out, to = args
            kinds = signature.args
            weights = Eight(builder, data(context, builder, kinds[1], table), cell, width)
            constants, fixes = _spread_parts(builder, kinds[0], rule), _spread_parts(builder, kinds[5], fixes)
            pace = PACES[kinds[0].instance_class](weights, constants, fixes)
            due, factor = _spread(builder, [due, factor])
            left = weights[0] * factor * (due * pace).exp_of_minus()
            # RACE(lost update): docs/races.md
            CODE.store(builder, left.value, data(context, builder, kinds[7], out), to)
            return context.get_dummy_value()

        return types.void(rule, table, long, long, number, fixes, number, out, long), build

    @intrinsic
    def read_eight(typing: Any, table: Any, cell: Any, factor: Any, out: Any, to: Any, sums: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            table, cell, factor, out, to, sums = args
            out = data(context, builder, signature.args[3], out)
            # RACE(stale read): docs/races.md
            read = Octet(builder, CODE.load(builder, data(context, builder, signature.args[0], table), cell))
            (factor,) = _spread(builder, [factor])
            read = read * factor
            CODE.store(builder, read.value, out, to)
            CODE.store(builder, (read + Octet(builder, CODE.load(builder, out, sums))).value, out, sums)
            return context.get_dummy_value()

        return types.void(table, long, number, out, long, long), build

    @intrinsic
    def add_eight(typing: Any, array: Any, to: Any, x: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, to, x = args
            array = data(context, builder, signature.args[0], array)
            total = Octet(builder, CODE.load(builder, array, to)) + Octet(builder, CODE.load(builder, array, x))
            CODE.store(builder, total.value, array, to)
            return context.get_dummy_value()

        return types.void(array, long, long), build

    @intrinsic
    def pull_eight(typing: Any, array: Any, x: Any, y: Any, factor: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, x, y, factor = args
            array = data(context, builder, signature.args[0], array)
            apart = Octet(builder, CODE.load(builder, array, x)) - Octet(builder, CODE.load(builder, array, y))
            (factor,) = _spread(builder, [factor])
            CODE.store(builder, (apart * factor).value, array, y)
            return context.get_dummy_value()

        return types.void(array, long, long, number), build

    return move_eight, fade_eight, read_eight, add_eight, pull_eight


# -- the same, interpreted ------------------------------------------------------------------------------------------


class _Cells:
    """As Eight, of an array."""

    def __init__(self, table: Any, cell: int, width: int) -> None:
        self._table, self._cell, self._width = table, cell, width

    def _part(self, slot: int) -> Any:
        first = self._cell + slot * self._width
        return self._table.reshape(-1)[first : first + EIGHT]

    def __getitem__(self, slot: int) -> Plain:
        return Plain(self._part(slot).copy())

    def __setitem__(self, slot: int, value: Plain) -> None:
        self._part(slot)[:] = value.value


def _move_eight(rule: Any, table: Any, cell: int, width: int, grads: Any, at: int, rate: Any, fixes: Any) -> None:
    constants, factors = [Plain(c) for c in rule], [Plain(f) for f in fixes]
    MOVES[type(rule)](_Cells(table, cell, width), _Cells(grads, at, 0)[0], Plain(rate), constants, factors)


def _fade_eight(rule: Any, table: Any, cell: int, width: int, due: Any, fixes: Any, factor: Any, out: Any, to: int) -> None:  # noqa: E501
    weights = _Cells(table, cell, width)
    pace = PACES[type(rule)](weights, [Plain(c) for c in rule], [Plain(f) for f in fixes])
    _Cells(out, to, 0)[0] = weights[0] * Plain(factor) * (Plain(due) * pace).exp_of_minus()


def _read_eight(table: Any, cell: int, factor: Any, out: Any, to: int, sums: int) -> None:
    out[to : to + EIGHT] = factor * table[cell : cell + EIGHT]
    out[sums : sums + EIGHT] += out[to : to + EIGHT]


def _add_eight(array: Any, to: int, x: int) -> None:
    array[to : to + EIGHT] += array[x : x + EIGHT]


def _pull_eight(array: Any, x: int, y: int, factor: Any) -> None:
    array[y : y + EIGHT] = factor * (array[x : x + EIGHT] - array[y : y + EIGHT])


_INTERPRETED = (_move_eight, _fade_eight, _read_eight, _add_eight, _pull_eight)
# move_eight(rule, table, cell, width, grads, at, rate, fixes): `update` of the weights at `cell` by grads[at:].
# fade_eight(rule, table, cell, width, due, fixes, factor, out, to): out[to:] = factor times the weights after so much
# L2 penalty, at the pace of the rule.
# read_eight(table, cell, factor, out, to, sums): out[to:] = factor times the weights; added to out[sums:] too.
# add_eight(array, to, x): add those at x to those at `to`.
# pull_eight(array, x, y, factor): those at y become factor times the difference of those at x and at y.
move_eight, fade_eight, read_eight, add_eight, pull_eight = _INTERPRETED if nb.config.DISABLE_JIT else _compiled()

