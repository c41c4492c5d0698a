"""The update rules of optim/rules.py on eight weights of a row at once.

As they stand there the compiler makes no vectors of them where gradients come from memory: it cannot know that those
are no weights. So their formulas are run here while code is made, each number being a vector in a register; with the
compiler off, an array.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from hogwild.kernels.compiler.instructions import instruction
from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.optim.penalties import pace
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Momentum, Sgd, root, select, signed, unbiased, update
from hogwild.kernels.simd.emit import LONG, VectorCode
from hogwild.kernels.simd.rows8 import CODE, LANES

_FAST = ("reassoc", "contract", "arcp", "nsz", "afn")  # as in jit.py
_SMALL = 0.25
_SERIES = (1.0, -1.0, 1 / 2, -1 / 6, 1 / 24, -1 / 120, 1 / 720)  # of exp(-x), to 1.3e-8 below _SMALL
_NONE = np.float32(0)
_FENCE = "arithmetic.fence"  # what goes through it is a number of its own, which no formula is rearranged with


class Vector:  # noqa: PLW1641
    """Numbers of a formula, in a register; beside them a plain number stands for as many equal ones. Mostly eight."""

    __array_ufunc__ = None  # NumPy's numbers leave signs between them and vectors to these

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value
        self.code = CODE if value.type.count == LANES else VectorCode(value.type.count)

    @classmethod
    def load(cls, builder: Any, array: Any, place: Any, code: VectorCode = CODE) -> Vector:
        """Numbers of an array."""
        return cls(builder, code.load(builder, array, place))

    def store(self, array: Any, place: Any) -> None:
        """Write them into an array."""
        self.code.store(self.builder, self.value, array, place)

    def _other(self, other: Any) -> Any:
        return other.value if isinstance(other, Vector) else self.code.each(other)

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
        return Passed(self.builder, self.builder.fcmp_ordered(sign, self.value, self._other(other)), self.code)

    def __le__(self, other: Any) -> Passed:
        return self._test("<=", other)

    def __gt__(self, other: Any) -> Passed:
        return self._test(">", other)

    def __eq__(self, other: Any) -> Passed:  # type: ignore[override]
        return self._test("==", other)

    def call(self, name: str, *others: Vector) -> Vector:
        """A function of the compiler's own."""
        kind = ir.FunctionType(self.code.vector, [self.code.vector] * (1 + len(others)))
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{self.code.lanes}f32")
        values = [self.value, *(other.value for other in others)]
        return Vector(self.builder, self.builder.call(function, values, fastmath=_FAST))

    def exp_of_minus(self) -> Vector:
        """exp(-x), of x that are not negative; by a short series where all are small, as they nearly always are."""
        builder, code = self.builder, self.code
        found = cgutils.alloca_once(builder, code.vector)
        large = builder.fcmp_unordered(">=", self.value, code.each(_SMALL))
        bits = ir.IntType(code.lanes)
        any_large = builder.icmp_unsigned("!=", builder.bitcast(large, bits), bits(0))
        with builder.if_else(any_large, likely=False) as (some, none):
            with some:
                builder.store(code.exp_of_less(builder, (_NONE - self).value), found)
            with none:
                builder.store(code.polynomial(builder, self.value, list(_SERIES)), found)
        return Vector(builder, builder.load(found))


class Passed:
    """Which of several numbers pass a test."""

    def __init__(self, builder: Any, value: Any, code: VectorCode) -> None:
        self.builder, self.value, self.code = builder, value, code

    def select(self, yes: Any, no: Any) -> Vector:
        """`yes` where it holds, else `no`."""
        values = (x.value if isinstance(x, Vector) else self.code.each(x) for x in (yes, no))
        return Vector(self.builder, self.builder.select(self.value, *values))


class Fixes(list[Any]):
    """What stands for the number of visits in a formula of vectors: see `fixes_of`."""

    __array_ufunc__ = None


def _paced(rule: Any, row: Any) -> Any:
    """`pace` of the weights row[0], as of a table whose cells are vectors."""
    found = pace.find(type(rule))(rule, row, 0, 1, _COUNT)
    return select(row[_COUNT][1] > _NONE, found, _NONE) if isinstance(rule, Adam) else found  # 0 of a row never visited


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


@instruction(lambda number: number, types.float32)
def rounded(b: Any, number: Any) -> Any:
    """A number, rounded whatever follows: as if it had been stored."""
    kind = ir.FunctionType(number.type, [number.type])
    return b.call(cgutils.get_or_insert_function(b.module, kind, f"llvm.{_FENCE}.f32"), [number])


@choice
def fixes_of(rule: Any, count: Any) -> Any:
    """What the number of visits of a row says for all its weights: two factors; zeros where there is nothing."""


fixes_of.of(Sgd, Momentum, Adagrad, Ftrl)(lambda rule, count: (np.float32(0), np.float32(0)))


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


class Weights:
    """As many weights of a table as the code has lanes, and what the rule remembers of them, as a row of vectors."""

    def __init__(self, builder: Any, table: Any, cell: Any, width: Any, fixes: Any = None, code: VectorCode = CODE) -> None:  # noqa: E501
        self._builder, self._table, self._cell, self._width, self._fixes = builder, table, cell, width, fixes
        self._code = code

    def _at(self, slot: int) -> Any:
        return self._builder.add(self._cell, self._builder.mul(self._width, LONG(slot)))

    def __getitem__(self, slot: int) -> Any:
        # RACE(stale read): docs/races.md
        return self._fixes if slot == _COUNT else Vector.load(self._builder, self._table, self._at(slot), self._code)

    def __setitem__(self, slot: int, value: Vector) -> None:
        value.store(self._table, self._at(slot))  # RACE(lost update): docs/races.md


class _Cells(Weights):
    """The same, of an array."""

    def _part(self, slot: int) -> Any:
        first = self._cell + slot * self._width
        return self._table.reshape(-1)[first : first + self._code.lanes]

    def __getitem__(self, slot: int) -> Any:
        return self._fixes if slot == _COUNT else self._part(slot).copy()

    def __setitem__(self, slot: int, value: Any) -> None:
        self._part(slot)[:] = value


def spread(builder: Any, numbers: Any, code: VectorCode = CODE) -> list[Vector]:
    """Numbers, each in all lanes."""
    return [Vector(builder, code.spread(builder, number)) for number in numbers]


def spread_rule(rule: Any, lanes: int = LANES) -> Any:
    """A rule whose constants are arrays."""
    return type(rule)(*(np.full(lanes, constant, np.float32) for constant in rule))


# Each after the same in plain Python.


def _move_eight(rule: Any, drag: Any, table: Any, cell: int, width: int, grads: Any, at: int, rate: Any, fixes: Any) -> None:  # noqa: E501
    _move(spread_rule(rule), drag, _Cells(None, table, cell, width), _Cells(None, grads, at, 0)[0], rate, Fixes(fixes))


def _move(rule: Any, drag: Any, row: Any, gradient: Any, rate: Any, fixes: Any) -> None:
    """`update` of the weights row[0]; drag: nothing, or what adds so many times themselves to their gradient."""
    for share in drag:
        gradient = gradient + row[0] * share
    update(rule, row, 0, 1, gradient, rate, fixes)


@instruction(_move_eight)
def move_eight(b: Any, rule: Any, drag: Any, table: Any, cell: Any, width: Any, grads: Any, at: Any, rate: Any, fixes: Any) -> None:  # noqa: E501
    """`update` of the weights at `cell` by grads[at:], and by `drag` times themselves where it has a number."""
    gradient, (rate,) = Vector.load(b, grads, at), spread(b, [rate])
    rule, row = type(rule)(*spread(b, rule)), Weights(b, table, cell, width)
    _move(rule, spread(b, drag), row, gradient, rate, Fixes(spread(b, fixes)))


def _apart(builder: Any, array: Any, places: Any, factor: Any) -> Vector:
    """Factor times the difference of the numbers at two places; rounded whatever follows: as if it had been stored."""
    x, y = (CODE.load(builder, array, place) for place in places)
    return Vector(builder, builder.fmul(builder.fsub(x, y), factor)).call(_FENCE)


def _move_apart_eight(rule: Any, drag: Any, table: Any, cell: int, width: int, array: Any, places: Any, factor: Any, rate: Any, fixes: Any) -> None:  # noqa: E501
    x, y = (_Cells(None, array, place, 0)[0] for place in places)
    _move(spread_rule(rule), drag, _Cells(None, table, cell, width), factor * (x - y), rate, Fixes(fixes))


@instruction(_move_apart_eight)
def move_apart_eight(b: Any, rule: Any, drag: Any, table: Any, cell: Any, width: Any, array: Any, places: Any, factor: Any, rate: Any, fixes: Any) -> None:  # noqa: E501
    """As `move_eight`, by factor times the difference of the numbers at two places of an array."""
    gradient, (rate,) = _apart(b, array, places, CODE.spread(b, factor)), spread(b, [rate])
    rule, row = type(rule)(*spread(b, rule)), Weights(b, table, cell, width)
    _move(rule, spread(b, drag), row, gradient, rate, Fixes(spread(b, fixes)))


def _move_runs(rule: Any, lanes: Any, drag: Any, table: Any, cell: int, width: int, array: Any, at: int, apart: int, runs: int, factor: Any, rate: Any, fixes: Any) -> None:  # noqa: E501
    dim = len(lanes)
    wide, code = spread_rule(rule, dim), VectorCode(dim)
    for run in range(runs if dim else 0):
        row, first = _Cells(None, table, cell + run * dim, width, None, code), at + run * apart
        _move(wide, drag, row, factor * array[first : first + dim], rate, Fixes(fixes))


@instruction(_move_runs)
def move_runs(b: Any, rule: Any, lanes: Any, drag: Any, table: Any, cell: Any, width: Any, array: Any, at: Any, apart: Any, runs: Any, factor: Any, rate: Any, fixes: Any) -> None:  # noqa: E501
    """`update` of so many runs of weights at `cell`, one after the other, each of as many as `lanes` has entries: by
    factor times the numbers of an array from `at` on, where the runs lie `apart`. They are moved eight weights at a
    time where runs are short."""
    if not lanes:
        return
    one = VectorCode(len(lanes))

    def move(run: Any, together: int) -> None:
        code = VectorCode(together * one.lanes)
        first = b.add(at, b.mul(run, apart))
        parts = [one.load(b, array, b.add(first, b.mul(apart, LONG(k)))) for k in range(together)]
        gradient = Vector(b, b.fmul(code.joined(b, parts), code.spread(b, factor))).call(_FENCE)
        row = Weights(b, table, b.add(cell, b.mul(run, LONG(one.lanes))), width, None, code)
        numbers = [spread(b, given, code) for given in (rule, drag, [rate], fixes)]
        _move(type(rule)(*numbers[0]), numbers[1], row, gradient, numbers[2][0], Fixes(numbers[3]))

    together = max(1, EIGHT // one.lanes)
    whole = b.sub(runs, b.urem(runs, LONG(together)))
    with cgutils.for_range_slice(b, LONG(0), whole, LONG(together)) as (run, _):
        move(run, together)
    if together > 1:
        with cgutils.for_range_slice(b, whole, runs, LONG(1)) as (run, _):
            move(run, 1)


def _fade_eight(rule: Any, table: Any, cell: int, width: int, due: Any, fixes: Any, factor: Any, out: Any, to: int) -> None:  # noqa: E501
    weights = _Cells(None, table, cell, width, Fixes(fixes))
    speed = _paced(spread_rule(rule), weights)
    _Cells(None, out, to, 0)[0] = weights[0] * factor * np.exp(-due * speed)


@instruction(_fade_eight)
def fade_eight(b: Any, rule: Any, table: Any, cell: Any, width: Any, due: Any, fixes: Any, factor: Any, out: Any, to: Any) -> None:  # noqa: E501
    """out[to:] = factor times the weights at `cell` after so much L2 penalty, at the pace of the rule."""
    weights = Weights(b, table, cell, width, Fixes(spread(b, fixes)))
    speed = _paced(type(rule)(*spread(b, rule)), weights)
    due, factor = spread(b, [due, factor])
    left = weights[0] * factor * (due * speed).exp_of_minus()
    left.call(_FENCE).store(out, to)  # RACE(lost update): docs/races.md


def _read_eight(table: Any, cell: int, factor: Any, out: Any, to: int, sums: tuple[int, ...]) -> None:
    out[to : to + EIGHT] = factor * table[cell : cell + EIGHT]
    for place in sums:
        out[place : place + EIGHT] += out[to : to + EIGHT]


@instruction(_read_eight)
def read_eight(b: Any, table: Any, cell: Any, factor: Any, out: Any, to: Any, sums: Any) -> None:
    """out[to:] = factor times the weights at `cell`; added to out[place:] too, if `sums` has a place."""
    read = Vector.load(b, table, cell) * Vector(b, CODE.spread(b, factor))  # RACE(stale read): docs/races.md
    read.store(out, to)
    for place in sums:
        (read + Vector.load(b, out, place)).store(out, place)


def _add_eight(array: Any, to: int, x: int) -> None:
    array[to : to + EIGHT] += array[x : x + EIGHT]


@instruction(_add_eight)
def add_eight(b: Any, array: Any, to: Any, x: Any) -> None:
    """Add the numbers at x to those at `to`."""
    (Vector.load(b, array, to) + Vector.load(b, array, x)).store(array, to)


def _gradient_eight(array: Any, x: int, y: int, factor: Any) -> None:
    array[y : y + EIGHT] = factor * (array[x : x + EIGHT] - array[y : y + EIGHT])


@instruction(_gradient_eight)
def gradient_eight(b: Any, array: Any, x: Any, y: Any, factor: Any) -> None:
    """The numbers at y become factor times the difference of those at x and at y."""
    _apart(b, array, (x, y), CODE.spread(b, factor)).store(array, y)
