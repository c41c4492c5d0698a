"""Update rules as formulas over eight weights of a row at once.

The same rules as in updates.py. There the compiler makes no vectors where gradients come from memory: it cannot know
that they are no weights. A formula is written once and works on vectors in registers, as `Octet`, and on NumPy arrays,
as `Plain`, where nothing is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Momentum, Sgd
from hogwild.kernels.simd.emit import data
from hogwild.kernels.simd.rows8 import CODE, LANES

_FAST = ("reassoc", "contract", "arcp", "nsz", "afn")  # as in jit.py
_SMALL = 0.25
_SERIES = (1.0, -1.0, 1 / 2, -1 / 6, 1 / 24, -1 / 120, 1 / 720)  # of exp(-x), to 1.3e-8 below _SMALL
_SIGNS = {"<=": np.less_equal, ">": np.greater, "==": np.equal}


class Octet:
    """Eight numbers of a formula, in a register."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def all(self, number: float) -> Octet:
        """One number eight times."""
        return Octet(self.builder, CODE.each(number))

    def _join(self, name: str, other: Octet) -> Octet:
        return Octet(self.builder, getattr(self.builder, name)(self.value, other.value, flags=_FAST))

    def __add__(self, other: Octet) -> Octet:
        return self._join("fadd", other)

    def __sub__(self, other: Octet) -> Octet:
        return self._join("fsub", other)

    def __mul__(self, other: Octet) -> Octet:
        return self._join("fmul", other)

    def __truediv__(self, other: Octet) -> Octet:
        return self._join("fdiv", other)

    def _call(self, name: str, *others: Octet) -> Octet:
        kind = ir.FunctionType(CODE.vector, [CODE.vector] * (1 + len(others)))
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{LANES}f32")
        values = [self.value, *(other.value for other in others)]
        return Octet(self.builder, self.builder.call(function, values, fastmath=_FAST))

    def root(self) -> Octet:
        """Square roots."""
        return self._call("sqrt")

    def size(self) -> Octet:
        """Without their signs."""
        return self._call("fabs")

    def signed(self, other: Octet) -> Octet:
        """With the signs of others."""
        return self._call("copysign", other)

    def exp_of_minus(self) -> Octet:
        """exp(-x), of x that are not negative; by a short series where all are small, as they nearly always are."""
        builder = self.builder
        found = cgutils.alloca_once(builder, CODE.vector)
        large = builder.fcmp_unordered(">=", self.value, CODE.each(_SMALL))
        any_large = builder.icmp_unsigned("!=", builder.bitcast(large, ir.IntType(LANES)), ir.IntType(LANES)(0))
        with builder.if_else(any_large, likely=False) as (some, none):
            with some:
                builder.store(CODE.exp_of_less(builder, (self.all(0) - self).value), found)
            with none:
                builder.store(CODE.polynomial(builder, self.value, list(_SERIES)), found)
        return Octet(builder, builder.load(found))

    def where(self, sign: str, yes: Octet, no: Octet) -> Octet:
        """`yes` where these numbers compare with 0 as the sign says."""
        test = self.builder.fcmp_ordered(sign, self.value, CODE.zero)
        return Octet(self.builder, self.builder.select(test, yes.value, no.value))


class Plain:
    """Numbers of a formula, as an array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def all(self, number: float) -> Plain:
        """One number as often as there are some."""
        return Plain(np.float32(number))

    def __add__(self, other: Plain) -> Plain:
        return Plain(self.value + other.value)

    def __sub__(self, other: Plain) -> Plain:
        return Plain(self.value - other.value)

    def __mul__(self, other: Plain) -> Plain:
        return Plain(self.value * other.value)

    def __truediv__(self, other: Plain) -> Plain:
        return Plain(self.value / other.value)

    def root(self) -> Plain:
        """Square roots."""
        return Plain(np.sqrt(self.value))

    def size(self) -> Plain:
        """Without their signs."""
        return Plain(np.abs(self.value))

    def signed(self, other: Plain) -> Plain:
        """With the signs of others."""
        return Plain(np.copysign(self.value, other.value))

    def exp_of_minus(self) -> Plain:
        """exp(-x)."""
        return Plain(np.exp(-self.value))

    def where(self, sign: str, yes: Plain, no: Plain) -> Plain:
        """`yes` where these numbers compare with 0 as the sign says."""
        return Plain(np.where(_SIGNS[sign](self.value, 0), yes.value, no.value))


# -- formulas: w[0] are eight weights, w[1] and w[2] what the rule remembers of them; g are their gradients ----------


def _sgd(w: Any, g: Any, rate: Any, constants: Any, fixes: Any) -> None:
    w[0] = w[0] - rate * g


def _momentum(w: Any, g: Any, rate: Any, constants: Any, fixes: Any) -> None:
    w[1] = speed = constants[0] * w[1] + g
    w[0] = w[0] - rate * speed


def _adagrad(w: Any, g: Any, rate: Any, constants: Any, fixes: Any) -> None:
    w[1] = squares = w[1] + g * g
    w[0] = w[0] - rate * g / (squares + constants[0]).root()


def _adam(w: Any, g: Any, rate: Any, constants: Any, fixes: Any) -> None:
    beta1, beta2, epsilon = constants
    one = g.all(1)
    w[1] = mean = beta1 * w[1] + (one - beta1) * g
    w[2] = square = beta2 * w[2] + (one - beta2) * g * g
    w[0] = w[0] - rate * (mean * fixes[0]) / ((square * fixes[1]).root() + epsilon)


def _ftrl(w: Any, g: Any, rate: Any, constants: Any, fixes: Any) -> None:
    beta, l1, l2 = constants
    zero = g.all(0)
    w[2] = squares = w[2] + g * g
    firmness = (beta + squares.root()) / rate
    pull = w[1] + g - firmness * w[0]
    left = pull.size() - l1
    w[0] = weight = left.where("<=", zero, zero - left.signed(pull) / (firmness + l2))
    w[1] = weight.where("==", pull, l1.signed(pull) - l2 * weight)


def _unit_pace(w: Any, constants: Any, fixes: Any) -> Any:
    return w[0].all(1)


def _momentum_pace(w: Any, constants: Any, fixes: Any) -> Any:
    one = w[0].all(1)
    return one / (one - constants[0])


def _adagrad_pace(w: Any, constants: Any, fixes: Any) -> Any:
    squares = w[1]
    return squares.where(">", squares.all(1) / (squares + constants[0]).root(), squares.all(0))


def _adam_pace(w: Any, constants: Any, fixes: Any) -> Any:
    square = w[2] * fixes[1]
    return fixes[1].where(">", square.all(1) / (square.root() + constants[2]), square.all(0))


MOVES: dict[type, Callable[..., None]] = {
    Sgd: _sgd, Momentum: _momentum, Adagrad: _adagrad, Adam: _adam, Ftrl: _ftrl,
}  # fmt: skip
"""`update` of each rule."""
PACES: dict[type, Callable[..., Any]] = {
    Sgd: _unit_pace, Momentum: _momentum_pace, Adagrad: _adagrad_pace, Adam: _adam_pace, Ftrl: _unit_pace,
}  # fmt: skip
"""`pace` of each rule."""


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
