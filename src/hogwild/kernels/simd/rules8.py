"""Update rules as formulas over eight weights of a row at once.

The same rules as in updates.py. There the compiler makes no vectors where gradients come from memory: it cannot know
that they are no weights. A formula is written once and works on vectors in registers, as `Octet`, and on NumPy arrays,
as `Plain`, where nothing is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Momentum, Sgd
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
