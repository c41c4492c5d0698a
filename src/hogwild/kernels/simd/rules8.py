"""The update rules of optim/rules.py on eight weights of a row at once.

As they stand there the compiler makes no vectors of them where gradients come from memory: it cannot know that those
are no weights. So their formulas are run here while code is made, each number being a vector in a register; with the
compiler off, an array.
"""

from __future__ import annotations

import math
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.optim.penalties import pace
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Momentum, Sgd, root, select, signed, unbiased, update
from hogwild.kernels.simd.emit import data
from hogwild.kernels.simd.rows8 import CODE, LANES

_FAST = ("reassoc", "contract", "arcp", "nsz", "afn")  # as in jit.py
_SMALL = 0.25
_SERIES = (1.0, -1.0, 1 / 2, -1 / 6, 1 / 24, -1 / 120, 1 / 720)  # of exp(-x), to 1.3e-8 below _SMALL
_NONE = np.float32(0)


class Vector:  # noqa: PLW1641
    """Eight numbers of a formula, in a register; beside them a plain number stands for eight equal ones."""

    __array_ufunc__ = None  # NumPy's numbers leave signs between them and vectors to these

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def _other(self, other: Any) -> Any:
        return other.value if isinstance(other, Vector) else CODE.each(other)

    def _join(self, name: str, x: Any, y: Any) -> Vector:
        return Vector(self.builder, getattr(self.builder, name)(x, y, flags=_FAST))

    def __add__(self, other: Any) -> Vector:
        return self._join("fadd", self.value, self._other(other))

    def __sub__(self, other: Any) -> Vector:
        return self._join("fsub", self.value, self._other(other))

    def __rsub__(self, other: Any) -> Vector:
        return self._join("fsub", self._other(other), self.value)

    def __mul__(self, other: Any) -> Vector:
        return self._join("fmul", self.value, self._other(other))

    def __truediv__(self, other: Any) -> Vector:
        return self._join("fdiv", self.value, self._other(other))

    def __rtruediv__(self, other: Any) -> Vector:
        return self._join("fdiv", self._other(other), self.value)

    def __neg__(self) -> Vector:
        return select(self == _NONE, _NONE, _NONE - self)  # not -0

    def __abs__(self) -> Vector:
        return self.call("fabs")

    def _test(self, sign: str, other: Any) -> Passed:
        return Passed(self.builder, self.builder.fcmp_ordered(sign, self.value, self._other(other)))

    def __le__(self, other: Any) -> Passed:
        return self._test("<=", other)

    def __gt__(self, other: Any) -> Passed:
        return self._test(">", other)

    def __eq__(self, other: Any) -> Passed:  # type: ignore[override]
        return self._test("==", other)

    def call(self, name: str, *others: Vector) -> Vector:
        """A function of the compiler's own."""
        kind = ir.FunctionType(CODE.vector, [CODE.vector] * (1 + len(others)))
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{LANES}f32")
        values = [self.value, *(other.value for other in others)]
        return Vector(self.builder, self.builder.call(function, values, fastmath=_FAST))

    def exp_of_minus(self) -> Vector:
        """exp(-x), of x that are not negative; by a short series where all are small, as they nearly always are."""
        builder = self.builder
        found = cgutils.alloca_once(builder, CODE.vector)
        large = builder.fcmp_unordered(">=", self.value, CODE.each(_SMALL))
        any_large = builder.icmp_unsigned("!=", builder.bitcast(large, ir.IntType(LANES)), ir.IntType(LANES)(0))
        with builder.if_else(any_large, likely=False) as (some, none):
            with some:
                builder.store(CODE.exp_of_less(builder, (_NONE - self).value), found)
            with none:
                builder.store(CODE.polynomial(builder, self.value, list(_SERIES)), found)
        return Vector(builder, builder.load(found))


class Passed:
    """Which of eight numbers pass a test."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def select(self, yes: Any, no: Any) -> Vector:
        """`yes` where it holds, else `no`."""
        values = (x.value if isinstance(x, Vector) else CODE.each(x) for x in (yes, no))
        return Vector(self.builder, self.builder.select(self.value, *values))


class Fixes(list[Any]):
    """What stands for the number of visits in a formula of vectors: see `fixes_of`."""

    __array_ufunc__ = None


def _paced(rule: Any, row: Any, fixes: Fixes) -> Any:
    """`pace` of the weights row[0], as of a table whose cells are vectors."""
    row.fixes = fixes
    found = pace.find(type(rule))(rule, row, 0, 1, _COUNT)
    return select(fixes[1] > _NONE, found, _NONE) if isinstance(rule, Adam) else found  # 0 of a row never visited


root.of(Vector)(lambda number: number.call("sqrt"))
root.of(np.ndarray)(np.sqrt)
signed.of(Vector)(lambda size, number: size.call("copysign", number))
signed.of(np.ndarray)(np.copysign)
select.of(Passed)(Passed.select)
select.of(np.ndarray)(np.where)
unbiased.of(Vector, np.ndarray)(lambda mean, beta, fixes, which: mean * fixes[which])


@inner
def faded(weight: Any, x: Any) -> Any:
    """weight exp(-x), for x that is not negative."""
    if x < np.float32(_SMALL):
        part = np.float32(1 / 24) - x * (np.float32(1 / 120) - x * np.float32(1 / 720))
        part = np.float32(1) - x * (np.float32(1 / 2) - x * (np.float32(1 / 6) - x * part))
        return weight - weight * x * part
    return weight * np.float32(math.exp(-x))


@choice
def fixes_of(rule: Any, count: Any) -> Any:
    """What the number of visits of a row says for all its weights: two factors; zeros where there is nothing."""


@fixes_of.of(Sgd, Momentum, Adagrad, Ftrl)
def _nothing_to_fix(rule: Any, count: Any) -> Any:
    return np.float32(0), np.float32(0)


@fixes_of.of(Adam)
def _adam_fixes(rule: Any, count: Any) -> Any:
    one = np.float32(1)
    if count < one:
        return np.float32(0), np.float32(0)
    return one / (one - np.float32(rule.beta1**count)), one / (one - np.float32(rule.beta2**count))


# -- Rows of weights, eight at a time: read, paid for and moved as vectors in registers, whatever the update rule -----
# A place is a number of cells from the beginning of an array, and nothing checks it. Tables of weights are read and
# written by several workers at once: docs/races.md.


EIGHT = LANES


_COUNT = -1  # the cell of a row of vectors that holds what stands for its count


class Eight:
    """Eight weights of a table, and what the rule remembers of them, as a row of vectors."""

    fixes: Any = None

    def __init__(self, builder: Any, table: Any, cell: Any, width: Any) -> None:
        self._builder, self._table, self._cell, self._width = builder, table, cell, width

    def _at(self, slot: int) -> Any:
        return self._builder.add(self._cell, self._builder.mul(self._width, ir.IntType(64)(slot)))

    def __getitem__(self, slot: int) -> Any:
        if slot == _COUNT:
            return self.fixes
        # RACE(stale read): docs/races.md
        return Vector(self._builder, CODE.load(self._builder, self._table, self._at(slot)))

    def __setitem__(self, slot: int, value: Vector) -> None:
        # RACE(lost update): docs/races.md
        CODE.store(self._builder, value.value, self._table, self._at(slot))


def _spread(builder: Any, numbers: Any) -> list[Vector]:
    return [Vector(builder, CODE.spread(builder, number)) for number in numbers]


def _spread_parts(builder: Any, kind: Any, bundle: Any) -> list[Vector]:
    return _spread(builder, [builder.extract_value(bundle, k) for k in range(len(kind.types))])


def _compiled() -> tuple[Any, ...]:
    long, number = types.int64, types.float32

    @intrinsic
    def move_eight(typing: Any, rule: Any, table: Any, cell: Any, width: Any, grads: Any, at: Any, rate: Any, fixes: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            rule, table, cell, width, grads, at, rate, fixes = args
            kinds = signature.args
            weights = Eight(builder, data(context, builder, kinds[1], table), cell, width)
            gradient = Vector(builder, CODE.load(builder, data(context, builder, kinds[4], grads), at))
            (rate,) = _spread(builder, [rate])
            rule = kinds[0].instance_class(*_spread_parts(builder, kinds[0], rule))
            update(rule, weights, 0, 1, gradient, rate, Fixes(_spread_parts(builder, kinds[7], fixes)))
            return context.get_dummy_value()

        return types.void(rule, table, long, long, grads, long, number, fixes), build

    @intrinsic
    def fade_eight(typing: Any, rule: Any, table: Any, cell: Any, width: Any, due: Any, fixes: Any, factor: Any, out: Any, to: Any) -> Any:  # noqa: E501
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            rule, table, cell, width, due, fixes, factor, out, to = args
            kinds = signature.args
            weights = Eight(builder, data(context, builder, kinds[1], table), cell, width)
            rule = kinds[0].instance_class(*_spread_parts(builder, kinds[0], rule))
            speed = _paced(rule, weights, Fixes(_spread_parts(builder, kinds[5], fixes)))
            due, factor = _spread(builder, [due, factor])
            left = weights[0] * factor * (due * speed).exp_of_minus()
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
            read = Vector(builder, CODE.load(builder, data(context, builder, signature.args[0], table), cell))
            (factor,) = _spread(builder, [factor])
            read = read * factor
            CODE.store(builder, read.value, out, to)
            CODE.store(builder, (read + Vector(builder, CODE.load(builder, out, sums))).value, out, sums)
            return context.get_dummy_value()

        return types.void(table, long, number, out, long, long), build

    @intrinsic
    def add_eight(typing: Any, array: Any, to: Any, x: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, to, x = args
            array = data(context, builder, signature.args[0], array)
            total = Vector(builder, CODE.load(builder, array, to)) + Vector(builder, CODE.load(builder, array, x))
            CODE.store(builder, total.value, array, to)
            return context.get_dummy_value()

        return types.void(array, long, long), build

    @intrinsic
    def gradient_eight(typing: Any, array: Any, x: Any, y: Any, factor: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array, x, y, factor = args
            array = data(context, builder, signature.args[0], array)
            apart = Vector(builder, CODE.load(builder, array, x)) - Vector(builder, CODE.load(builder, array, y))
            (factor,) = _spread(builder, [factor])
            CODE.store(builder, (apart * factor).value, array, y)
            return context.get_dummy_value()

        return types.void(array, long, long, number), build

    return move_eight, fade_eight, read_eight, add_eight, gradient_eight


# -- the same, interpreted ------------------------------------------------------------------------------------------


class _Cells:
    """As Eight, of an array."""

    fixes: Any = None

    def __init__(self, table: Any, cell: int, width: int) -> None:
        self._table, self._cell, self._width = table.reshape(-1), cell, width

    def _part(self, slot: int) -> Any:
        first = self._cell + slot * self._width
        return self._table[first : first + EIGHT]

    def __getitem__(self, slot: int) -> Any:
        return self.fixes if slot == _COUNT else self._part(slot).copy()

    def __setitem__(self, slot: int, value: Any) -> None:
        self._part(slot)[:] = value


def _spread_rule(rule: Any) -> Any:
    return type(rule)(*(np.full(EIGHT, constant, np.float32) for constant in rule))


def _move_eight(rule: Any, table: Any, cell: int, width: int, grads: Any, at: int, rate: Any, fixes: Any) -> None:
    update(_spread_rule(rule), _Cells(table, cell, width), 0, 1, _Cells(grads, at, 0)[0], rate, Fixes(fixes))


def _fade_eight(rule: Any, table: Any, cell: int, width: int, due: Any, fixes: Any, factor: Any, out: Any, to: int) -> None:  # noqa: E501
    weights = _Cells(table, cell, width)
    speed = _paced(_spread_rule(rule), weights, Fixes(fixes))
    _Cells(out, to, 0)[0] = weights[0] * factor * np.exp(-due * speed)


def _read_eight(table: Any, cell: int, factor: Any, out: Any, to: int, sums: int) -> None:
    out[to : to + EIGHT] = factor * table[cell : cell + EIGHT]
    out[sums : sums + EIGHT] += out[to : to + EIGHT]


def _add_eight(array: Any, to: int, x: int) -> None:
    array[to : to + EIGHT] += array[x : x + EIGHT]


def _gradient_eight(array: Any, x: int, y: int, factor: Any) -> None:
    array[y : y + EIGHT] = factor * (array[x : x + EIGHT] - array[y : y + EIGHT])


_INTERPRETED = (_move_eight, _fade_eight, _read_eight, _add_eight, _gradient_eight)
# move_eight(rule, table, cell, width, grads, at, rate, fixes): `update` of the weights at `cell` by grads[at:].
# fade_eight(rule, table, cell, width, due, fixes, factor, out, to): out[to:] = factor times the weights after so much
# L2 penalty, at the pace of the rule.
# read_eight(table, cell, factor, out, to, sums): out[to:] = factor times the weights; added to out[sums:] too.
# add_eight(array, to, x): add those at x to those at `to`.
# gradient_eight(array, x, y, factor): those at y become factor times the difference of those at x and at y.
move_eight, fade_eight, read_eight, add_eight, gradient_eight = _INTERPRETED if nb.config.DISABLE_JIT else _compiled()
