"""Update rules, chosen by type, and the rows of weights that they move.

A row of weights is stored with what its update rule remembers, so that one cache line serves both:
`[w_0 … w_{width-1} | slot 1 of each | slot 2 of each | count | stamp]`. The rule says how many slots it has
and whether it counts visits; the stamp is there only with a penalty. A cell of weight k is `base + k`.

A formula is written once. Compiled as it stands it moves one weight; simd/rules8.py runs it with vectors for numbers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import DenseParameters, Floats, Table
from hogwild.kernels.compiler.jit import choice, inner, open_kernel
from hogwild.kernels.optim.penalties import charge, owes, pace, stamps


class Sgd(NamedTuple):
    """w -= rate * g."""


class Momentum(NamedTuple):
    """v = beta v + g; w -= rate * v, at the touches of a row only: between them neither v nor w moves or fades."""

    beta: np.float32 = np.float32(0.9)


class Adagrad(NamedTuple):
    """s += g^2; w -= rate * g / sqrt(s + epsilon)."""

    epsilon: np.float32 = np.float32(1e-12)


class Adam(NamedTuple):
    """Adam at the touches of a row only: its moving averages do not fade in between, and its bias correction counts
    the touches of that row (a row that is named twice in one sample is touched twice)."""

    beta1: np.float32 = np.float32(0.9)
    beta2: np.float32 = np.float32(0.999)
    epsilon: np.float32 = np.float32(1e-8)


class Ftrl(NamedTuple):
    """FTRL-proximal (McMahan et al. 2013) with alpha = the learning rate of the visit; l1 and l2 as in the paper.

    After gradients g_1 … g_t of a weight, w minimises sum g_s w + sum (q_s - q_{s-1}) (w - w_s)^2 / 2 + l1 |w| +
    l2 w^2 / 2, where q_s = (beta + sqrt(g_1^2 + … + g_s^2)) / rate_s. The paper keeps z = sum g_s - sum (q_s - q_{s-1})
    w_s, and w = -shorten(z, l1) / (q_t + l2). The slot `pull` keeps z + q_t w instead: what the penalties hold back,
    which is l1 sign(z) - l2 w, or the gradients that have not yet overcome l1. Then the next z is pull + g - q w: no
    earlier q is needed, and nothing grows as the rate falls to zero.
    """

    beta: np.float32 = np.float32(1)
    l1: np.float32 = np.float32(0)
    l2: np.float32 = np.float32(0)


RULES: dict[str, type] = {"sgd": Sgd, "momentum": Momentum, "adagrad": Adagrad, "adam": Adam, "ftrl": Ftrl}
# What each rule remembers for a weight: a name, and whether merging adds it up over workers. Sums over visits add up;
# moving averages stay with the worker who made them, and so does `pull`, which every touch makes anew from the weight:
# what k workers make of it, each for itself, would add up to k times as much, and k - 1 times that at the next merge.
SLOTS: dict[type, tuple[tuple[str, bool], ...]] = {
    Sgd: (),
    Momentum: (("speed", False),),
    Adagrad: (("squares", True),),
    Adam: (("mean", False), ("square", False)),
    Ftrl: (("pull", False), ("squares", True)),
}


def row_cells(rule: Any, penalty: Any, width: int) -> int:
    """Cells (float32) in one row of `width` weights."""
    return width * (1 + len(SLOTS[type(rule)])) + isinstance(rule, Adam) + stamps(penalty)


def row_table(rule: Any, penalty: Any, rows: int, width: int, kind: Any = "ranked") -> Table:
    """How so many rows of `width` weights are shared, with what the rule remembers of them."""
    slots = tuple(summed for _, summed in SLOTS[type(rule)] for _ in range(width))
    count = (False,) * isinstance(rule, Adam)
    stamp = (True,) * stamps(penalty)  # written by the one worker who pays, taken over by the others
    additive = (True,) * width + slots + count + stamp
    return Table(rows, row_cells(rule, penalty, width), kind, additive, width)


def cell_names(rule: Any, penalty: Any) -> tuple[str, ...]:
    """Names of the parts of a row after its weights, in their order; slots are `width` cells each, the rest one."""
    names = tuple(name for name, _ in SLOTS[type(rule)])
    return names + ("count",) * isinstance(rule, Adam) + ("stamp",) * stamps(penalty)


@choice
def slots_of(rule: Any) -> Any:
    """Values that the rule remembers for each weight. A compile-time constant."""


slots_of.of(Sgd)(lambda rule: 0)
slots_of.of(Momentum, Adagrad)(lambda rule: 1)
slots_of.of(Adam, Ftrl)(lambda rule: 2)


@choice
def counts_visits(rule: Any) -> Any:
    """1 if the rule keeps a count for each row."""


counts_visits.of(Sgd, Momentum, Adagrad, Ftrl)(lambda rule: 0)
counts_visits.of(Adam)(lambda rule: 1)


@inner
def stride(rule: Any, penalty: Any, width: int) -> int:
    """`row_cells` for compiled code: folds to a constant when the width is one."""
    return width * (1 + slots_of(rule)) + counts_visits(rule) + stamps(penalty)


# -- what formulas are made of, besides signs: of single numbers here, of vectors in simd/rules8.py -------------------


@choice
def root(number: Any) -> Any:
    """The square root."""


@choice
def signed(size: Any, number: Any) -> Any:
    """A size with the sign of a number."""


@choice
def select(test: Any, yes: Any, no: Any) -> Any:
    """`yes` where the test holds, else `no`."""


@choice
def unbiased(mean: Any, beta: Any, count: Any, which: int) -> Any:
    """A moving average without the zero that it began with, after so many visits; which: the first slot's or the
    second's."""


root.otherwise(lambda number: np.float32(math.sqrt(number)))
signed.otherwise(lambda size, number: np.float32(math.copysign(size, number)))
select.otherwise(lambda test, yes, no: yes if test else no)
unbiased.otherwise(lambda mean, beta, count, which: mean / (np.float32(1) - np.float32(beta**count)))


# -- one weight -----------------------------------------------------------------------------------------------------


@choice
def moved(rule: Any, weight: Any, first: Any, second: Any, gradient: Any, rate: Any, count: Any) -> Any:
    """A weight and the two slots of its rule after a step against the gradient; count: visits of its row."""


@moved.of(Sgd)
def _sgd(rule: Any, weight: Any, first: Any, second: Any, gradient: Any, rate: Any, count: Any) -> Any:
    return weight - rate * gradient, first, second


@moved.of(Momentum)
def _momentum(rule: Any, weight: Any, first: Any, second: Any, gradient: Any, rate: Any, count: Any) -> Any:
    speed = rule.beta * first + gradient
    return weight - rate * speed, speed, second


@moved.of(Adagrad)
def _adagrad(rule: Any, weight: Any, first: Any, second: Any, gradient: Any, rate: Any, count: Any) -> Any:
    total = first + gradient * gradient
    # The compiler makes of this a fast reciprocal root; it does not if epsilon is added outside of the root.
    return weight - rate * gradient / root(total + rule.epsilon), total, second


@moved.of(Adam)
def _adam(rule: Any, weight: Any, first: Any, second: Any, gradient: Any, rate: Any, count: Any) -> Any:
    one = np.float32(1)
    mean = rule.beta1 * first + (one - rule.beta1) * gradient
    square = rule.beta2 * second + (one - rule.beta2) * gradient * gradient
    level, spread = unbiased(mean, rule.beta1, count, 0), unbiased(square, rule.beta2, count, 1)
    return weight - rate * level / (root(spread) + rule.epsilon), mean, square


@moved.of(Ftrl)
def _ftrl(rule: Any, weight: Any, first: Any, second: Any, gradient: Any, rate: Any, count: Any) -> Any:
    zero = np.float32(0)
    squares = second + gradient * gradient
    firmness = (rule.beta + root(squares)) / rate
    pull = first + gradient - firmness * weight
    left = abs(pull) - rule.l1
    new = -(select(left <= zero, zero, signed(left, pull)) / (firmness + rule.l2))
    # pull + firmness * weight, without the difference of large numbers
    held = select(new == zero, pull, signed(rule.l1, pull) - rule.l2 * new)
    return new, held, squares


@choice
def update(rule: Any, table: Any, cell: int, width: int, gradient: Any, rate: Any, count: Any) -> None:
    """Move the weight at `cell` against its gradient; slots lie `width` cells apart; count: visits of its row."""


@update.of(Sgd)
def _update_alone(rule: Any, table: Any, cell: int, width: int, gradient: Any, rate: Any, count: Any) -> None:
    none = np.float32(0)
    table[cell] = moved(rule, table[cell], none, none, gradient, rate, count)[0]  # RACE(lost update): docs/races.md


@update.of(Momentum, Adagrad)
def _update_one_slot(rule: Any, table: Any, cell: int, width: int, gradient: Any, rate: Any, count: Any) -> None:
    weight, first, _ = moved(rule, table[cell], table[cell + width], np.float32(0), gradient, rate, count)
    table[cell + width] = first  # RACE(lost update): docs/races.md
    table[cell] = weight  # RACE(lost update): docs/races.md


@update.of(Adam, Ftrl)
def _update_two_slots(rule: Any, table: Any, cell: int, width: int, gradient: Any, rate: Any, count: Any) -> None:
    weight, first, second = moved(
        rule, table[cell], table[cell + width], table[cell + 2 * width], gradient, rate, count
    )
    table[cell + width] = first  # RACE(lost update): docs/races.md
    table[cell + 2 * width] = second  # RACE(lost update): docs/races.md
    table[cell] = weight  # RACE(lost update): docs/races.md


@choice
def unpenalized(rule: Any) -> Any:
    """The rule for a bias, which no penalty shrinks."""


unpenalized.of(Sgd, Momentum, Adagrad, Adam)(lambda rule: rule)
unpenalized.of(Ftrl)(lambda rule: Ftrl(rule.beta, np.float32(0), np.float32(0)))


# -- the pace of a penalty ------------------------------------------------------------------------------------------


pace.of(Sgd, Ftrl)(lambda rule, table, cell, width, count_cell: np.float32(1))
pace.of(Momentum)(lambda rule, table, cell, width, count_cell: np.float32(1) / (np.float32(1) - rule.beta))


@pace.of(Adagrad)
def _adagrad_pace(rule: Any, table: Any, cell: int, width: int, count_cell: int) -> Any:
    squares = table[cell + width]
    speed = np.float32(1) / root(squares + rule.epsilon)
    return select(squares > np.float32(0), speed, np.float32(0))  # never touched: the pace is not known yet


@pace.of(Adam)
def _adam_pace(rule: Any, table: Any, cell: int, width: int, count_cell: int) -> Any:
    count = table[count_cell]
    if count == np.float32(0):
        return np.float32(0)
    return np.float32(1) / (root(unbiased(table[cell + 2 * width], rule.beta2, count, 1)) + rule.epsilon)


# -- one row --------------------------------------------------------------------------------------------------------


@choice
def visits_of(rule: Any, table: Any, count_cell: int) -> Any:
    """Count this visit of a row, where the rule wants it."""


visits_of.of(Sgd, Momentum, Adagrad, Ftrl)(lambda rule, table, count_cell: np.float32(0))


@visits_of.of(Adam)
def _count_visit(rule: Any, table: Any, count_cell: int) -> Any:
    table[count_cell] += np.float32(1)  # RACE(lost update): docs/races.md
    return table[count_cell]


@inner
def pay_row(rule: Any, penalty: Any, table: Any, row: int, width: int, step: Any) -> None:
    """Pay a row's penalty, where this worker is to."""
    cells = stride(rule, penalty, width)
    if owes(step, row):
        charge(penalty, rule, table, row * cells, width, row * cells + cells - 1, step.elapsed)


@inner
def begin_row(rule: Any, penalty: Any, table: Any, row: int, width: int, step: Any) -> Any:
    """Before a row's weights move: pay its penalty, count the visit; returns the count."""
    pay_row(rule, penalty, table, row, width, step)
    return visits_of(rule, table, (row + 1) * stride(rule, penalty, width) - 1 - stamps(penalty))


# -- all dense weights of a model -----------------------------------------------------------------------------------


def make_dense(rule: Any, values: Floats) -> DenseParameters:
    """Dense weights, which are taken as they are, with room for what the rule remembers of them."""
    first, second = (np.zeros(len(values) if len(SLOTS[type(rule)]) > slot else 0, np.float32) for slot in range(2))
    return DenseParameters(values, first, second, np.zeros(int(isinstance(rule, Adam)), np.float32))


def dense_tables(rule: Any, cells: int) -> dict[str, Table]:
    """How so many dense weights are shared, and what the rule remembers of them."""
    tables = {name: Table(0, 1, "dense") for name in DenseParameters._fields}
    tables["values"] = Table(cells, 1, "dense")
    for name, (_, summed) in zip(("first", "second"), SLOTS[type(rule)], strict=False):
        tables[name] = Table(cells, 1, "dense", (summed,), width=0)
    if isinstance(rule, Adam):
        tables["steps"] = Table(1, 1, "dense", (False,), width=0)
    return tables


@choice
def step_dense(rule: Any, parameters: Any, gradient: Any, rate: Any) -> None:
    """Move all dense weights against their gradient, which stands in the same order.

    parameters: a DenseParameters, or weights that have its fields; gradient: one cell a weight, as in Scratch.dense.
    """


@step_dense.of(Sgd, Momentum, Adagrad, Adam, Ftrl)
def _step_all(rule: Any, parameters: Any, gradient: Any, rate: Any) -> None:
    count = visits_of(rule, parameters.steps, 0)
    move_dense(rule, parameters, gradient, 0, len(parameters.values), rate, count)


@choice
def move_dense(rule: Any, parameters: Any, gradient: Any, start: int, stop: int, rate: Any, count: Any) -> None:
    """Move some of the dense weights, in a step of that number."""


@move_dense.of(Sgd)
def _move_alone(rule: Any, parameters: Any, gradient: Any, start: int, stop: int, rate: Any, count: Any) -> None:
    values, none = parameters.values, np.float32(0)
    for k in range(start, stop):
        values[k] = moved(rule, values[k], none, none, gradient[k], rate, count)[0]  # RACE(lost update): docs/races.md


@move_dense.of(Momentum, Adagrad)
def _move_one_slot(rule: Any, parameters: Any, gradient: Any, start: int, stop: int, rate: Any, count: Any) -> None:
    values, first, none = parameters.values, parameters.first, np.float32(0)
    for k in range(start, stop):
        weight, one, _ = moved(rule, values[k], first[k], none, gradient[k], rate, count)
        first[k] = one  # RACE(lost update): docs/races.md
        values[k] = weight  # RACE(lost update): docs/races.md


@move_dense.of(Adam, Ftrl)
def _move_two_slots(rule: Any, parameters: Any, gradient: Any, start: int, stop: int, rate: Any, count: Any) -> None:
    values, first, second = parameters.values, parameters.first, parameters.second
    for k in range(start, stop):
        weight, one, two = moved(rule, values[k], first[k], second[k], gradient[k], rate, count)
        first[k] = one  # RACE(lost update): docs/races.md
        second[k] = two  # RACE(lost update): docs/races.md
        values[k] = weight  # RACE(lost update): docs/races.md


# -- penalties, where the workers are parked ------------------------------------------------------------------------


@open_kernel
def settle(rule: Any, penalty: Any, table: Any, width: int, elapsed: Any) -> None:
    """With the workers parked at the end of an epoch: pay every row's penalty and set the clocks to zero."""
    cells = stride(rule, penalty, width)
    for row in range(len(table) // cells):
        base = row * cells
        charge(penalty, rule, table, base, width, base + cells - 1, elapsed)
        if stamps(penalty) == 1:
            table[base + cells - 1] = np.float32(0)


@open_kernel
def settle_copy(rule: Any, penalty: Any, table: Any, width: int, step: Any) -> None:
    """At the end of an epoch, on a worker's own copy: pay for the private rows of which it is the payer."""
    for row in range(min(step.private, len(table) // stride(rule, penalty, width))):
        pay_row(rule, penalty, table, row, width, step)
