"""Update rules and lazy regularization, chosen by type.

A row of weights is stored with what its update rule remembers, so that one cache line serves both:
`[w_0 … w_{width-1} | slot 1 of each | slot 2 of each | count | stamp]`. The rule says how many slots it has
and whether it counts visits; the stamp is there only with a penalty. A cell of weight k is `base + k`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.jit import choice, kernel


class Sgd(NamedTuple):
    """w -= rate * g."""


class Momentum(NamedTuple):
    """v = beta v + g; w -= rate * v, on touched weights only."""

    beta: np.float32 = np.float32(0.9)


class Adagrad(NamedTuple):
    """s += g^2; w -= rate * g / sqrt(s)."""

    epsilon: np.float32 = np.float32(1e-6)


class Adam(NamedTuple):
    """Adam on touched weights only; its bias correction counts the visits of each row."""

    beta1: np.float32 = np.float32(0.9)
    beta2: np.float32 = np.float32(0.999)
    epsilon: np.float32 = np.float32(1e-8)


class Ftrl(NamedTuple):
    """FTRL-proximal (McMahan et al. 2013): alpha is the learning rate; l1 and l2 are exact."""

    beta: np.float32 = np.float32(1)
    l1: np.float32 = np.float32(0)
    l2: np.float32 = np.float32(0)


class Free(NamedTuple):
    """No penalty: nothing is stored or computed for it."""


class Penalty(NamedTuple):
    """Elastic net, decoupled from the update rule: dw = -elapsed * (l2 w + l1 sign(w)), applied when a row is touched.

    The stamp of a row is the elapsed time (sum of learning rates) up to which it has been paid. Rounded stamps
    telescope: what is not charged now is charged at the next touch.
    """

    l1: np.float32
    l2: np.float32


RULES: dict[str, type] = {"sgd": Sgd, "momentum": Momentum, "adagrad": Adagrad, "adam": Adam, "ftrl": Ftrl}
SLOTS: dict[type, int] = {Sgd: 0, Momentum: 1, Adagrad: 1, Adam: 2, Ftrl: 2}
# Slots that are sums over visits add up over workers; moving averages stay with the worker who made them.
SUMMED: dict[type, bool] = {Sgd: True, Momentum: False, Adagrad: True, Adam: False, Ftrl: True}


def row_cells(rule: Any, penalty: Any, width: int) -> int:
    """Cells (float32) in one row of `width` weights."""
    return width * (1 + SLOTS[type(rule)]) + isinstance(rule, Adam) + isinstance(penalty, Penalty)


def additive_cells(rule: Any, penalty: Any, width: int) -> tuple[bool, ...]:
    """Which cells of a row are merged by adding differences."""
    slots = SLOTS[type(rule)]
    tail = isinstance(rule, Adam) + isinstance(penalty, Penalty)
    return (True,) * width + (SUMMED[type(rule)],) * (slots * width) + (False,) * tail


@choice
def slots_of(rule: Any) -> Any:
    """Values that the rule remembers for each weight. A compile-time constant."""


@slots_of.of(Sgd)  # type: ignore[attr-defined]
def _no_slots(rule: Any) -> int:
    return 0


@slots_of.of(Momentum, Adagrad)  # type: ignore[attr-defined]
def _one_slot(rule: Any) -> int:
    return 1


@slots_of.of(Adam, Ftrl)  # type: ignore[attr-defined]
def _two_slots(rule: Any) -> int:
    return 2


@choice
def counts_visits(rule: Any) -> Any:
    """1 if the rule keeps a count for each row."""


@counts_visits.of(Sgd, Momentum, Adagrad, Ftrl)  # type: ignore[attr-defined]
def _uncounted(rule: Any) -> int:
    return 0


@counts_visits.of(Adam)  # type: ignore[attr-defined]
def _counted(rule: Any) -> int:
    return 1


@choice
def stamps(penalty: Any) -> Any:
    """1 if rows carry a stamp."""


@stamps.of(Free)  # type: ignore[attr-defined]
def _unstamped(penalty: Any) -> int:
    return 0


@stamps.of(Penalty)  # type: ignore[attr-defined]
def _stamped(penalty: Any) -> int:
    return 1


@kernel
def stride(rule: Any, penalty: Any, width: int) -> int:
    """`row_cells` for compiled code: folds to a constant when the width is one."""
    return width * (1 + slots_of(rule)) + counts_visits(rule) + stamps(penalty)


# -- one weight -----------------------------------------------------------------------------------------------------


@choice
def update(rule: Any, table: Any, cell: int, width: int, gradient: Any, rate: Any, count: Any) -> None:
    """Move the weight at `cell` against its gradient; slots lie `width` cells apart; count: visits of its row."""


@update.of(Sgd)  # type: ignore[attr-defined]
def _sgd(rule: Any, table: Any, cell: int, width: int, gradient: Any, rate: Any, count: Any) -> None:
    table[cell] -= rate * gradient  # RACE(lost update): docs/races.md


@update.of(Momentum)  # type: ignore[attr-defined]
def _momentum(rule: Any, table: Any, cell: int, width: int, gradient: Any, rate: Any, count: Any) -> None:
    speed = rule.beta * table[cell + width] + gradient
    table[cell + width] = speed  # RACE(lost update): docs/races.md
    table[cell] -= rate * speed  # RACE(lost update): docs/races.md


@update.of(Adagrad)  # type: ignore[attr-defined]
def _adagrad(rule: Any, table: Any, cell: int, width: int, gradient: Any, rate: Any, count: Any) -> None:
    total = table[cell + width] + gradient * gradient
    table[cell + width] = total  # RACE(lost update): docs/races.md
    table[cell] -= rate * gradient / (np.float32(math.sqrt(total)) + rule.epsilon)  # RACE(lost update): docs/races.md


@update.of(Adam)  # type: ignore[attr-defined]
def _adam(rule: Any, table: Any, cell: int, width: int, gradient: Any, rate: Any, count: Any) -> None:
    one = np.float32(1)
    mean = rule.beta1 * table[cell + width] + (one - rule.beta1) * gradient
    square = rule.beta2 * table[cell + 2 * width] + (one - rule.beta2) * gradient * gradient
    table[cell + width] = mean  # RACE(lost update): docs/races.md
    table[cell + 2 * width] = square  # RACE(lost update): docs/races.md
    mean /= one - np.float32(rule.beta1**count)
    square /= one - np.float32(rule.beta2**count)
    table[cell] -= rate * mean / (np.float32(math.sqrt(square)) + rule.epsilon)  # RACE(lost update): docs/races.md


@update.of(Ftrl)  # type: ignore[attr-defined]
def _ftrl(rule: Any, table: Any, cell: int, width: int, gradient: Any, rate: Any, count: Any) -> None:
    before = np.float32(math.sqrt(table[cell + 2 * width]))
    total = table[cell + 2 * width] + gradient * gradient
    after = np.float32(math.sqrt(total))
    pull = table[cell + width] + gradient - (after - before) / rate * table[cell]
    table[cell + width] = pull  # RACE(lost update): docs/races.md
    table[cell + 2 * width] = total  # RACE(lost update): docs/races.md
    if abs(pull) <= rule.l1:
        table[cell] = np.float32(0)  # RACE(lost update): docs/races.md
    else:
        shrunk = pull - rule.l1 if pull > 0 else pull + rule.l1
        table[cell] = -shrunk / ((rule.beta + after) / rate + rule.l2)  # RACE(lost update): docs/races.md


# -- one row --------------------------------------------------------------------------------------------------------


@choice
def visits_of(rule: Any, table: Any, count_cell: int) -> Any:
    """Count this visit of a row, where the rule wants it."""


@visits_of.of(Sgd, Momentum, Adagrad, Ftrl)  # type: ignore[attr-defined]
def _never_counted(rule: Any, table: Any, count_cell: int) -> Any:
    return np.float32(0)


@visits_of.of(Adam)  # type: ignore[attr-defined]
def _count_visit(rule: Any, table: Any, count_cell: int) -> Any:
    table[count_cell] += np.float32(1)  # RACE(lost update): docs/races.md
    return table[count_cell]


@choice
def charge(penalty: Any, table: Any, base: int, width: int, stamp_cell: int, elapsed: Any, share: Any) -> None:
    """Pay a row's penalty up to `elapsed`; share: the part of it that this worker is to pay."""


@charge.of(Free)  # type: ignore[attr-defined]
def _charge_nothing(
    penalty: Any, table: Any, base: int, width: int, stamp_cell: int, elapsed: Any, share: Any
) -> None:
    return


@charge.of(Penalty)  # type: ignore[attr-defined]
def _charge(penalty: Any, table: Any, base: int, width: int, stamp_cell: int, elapsed: Any, share: Any) -> None:
    due = (elapsed - table[stamp_cell]) * share
    if due <= np.float32(0):
        return
    table[stamp_cell] = elapsed  # RACE(lost update): docs/races.md
    for k in range(width):
        table[base + k] = shrunk(penalty, table[base + k], due)  # RACE(lost update): docs/races.md


@kernel
def shrunk(penalty: Any, weight: Any, due: Any) -> Any:
    """A weight after `due` units of penalty: decay by l2, then soft threshold by l1."""
    weight *= np.float32(math.exp(-penalty.l2 * due))
    cut = penalty.l1 * due
    return max(weight - cut, np.float32(0)) if weight > np.float32(0) else min(weight + cut, np.float32(0))


@choice
def weight_at(penalty: Any, table: Any, cell: int, stamp_cell: int, elapsed: Any) -> Any:
    """Read a weight as it stands now, unpaid penalty deducted."""


@weight_at.of(Free)  # type: ignore[attr-defined]
def _weight_free(penalty: Any, table: Any, cell: int, stamp_cell: int, elapsed: Any) -> Any:
    return table[cell]  # RACE(stale read): docs/races.md


@weight_at.of(Penalty)  # type: ignore[attr-defined]
def _weight_shrunk(penalty: Any, table: Any, cell: int, stamp_cell: int, elapsed: Any) -> Any:
    due = elapsed - table[stamp_cell]  # RACE(stale read): docs/races.md
    return shrunk(penalty, table[cell], max(due, np.float32(0)))


@kernel
def begin_row(rule: Any, penalty: Any, table: Any, row: int, width: int, step: Any) -> Any:
    """Before a row's weights move: pay its penalty, count the visit; returns the count."""
    cells = stride(rule, penalty, width)
    base = row * cells
    share = step.share if row < step.private else np.float32(1)
    charge(penalty, table, base, width, base + cells - 1, step.elapsed, share)
    return visits_of(rule, table, base + cells - 1 - stamps(penalty))


@kernel
def settle(rule: Any, penalty: Any, table: Any, width: int, elapsed: Any) -> None:
    """With the workers parked at the end of an epoch: pay every row's penalty and set the clocks to zero."""
    cells = stride(rule, penalty, width)
    for row in range(len(table) // cells):
        base = row * cells
        charge(penalty, table, base, width, base + cells - 1, elapsed, np.float32(1))
        if stamps(penalty) == 1:
            table[base + cells - 1] = np.float32(0)
