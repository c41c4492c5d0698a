"""Lazy L2 and L1: a row pays its penalty when it is touched, so that only touched rows are written. Chosen by type."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.jit import choice, kernel


class Free(NamedTuple):
    """No penalty: nothing is stored or computed for it."""


class Penalty(NamedTuple):
    """Elastic net, decoupled from the update rule: dw/dt = -(l2 w + l1 sign(w)) until w is 0, paid at touches of a row.

    Time is the sum of learning rates; the stamp of a row is the time up to which it has been paid. The exact solution
    is used, so that paying in many parts equals paying at once, and rounded stamps telescope: what is not charged now
    is charged at the next touch.
    """

    l1: np.float32
    l2: np.float32


@choice
def stamps(penalty: Any) -> Any:
    """1 if rows carry a stamp."""


@stamps.of(Free)
def _unstamped(penalty: Any) -> int:
    return 0


@stamps.of(Penalty)
def _stamped(penalty: Any) -> int:
    return 1


@kernel
def shorten(number: Any, cut: Any) -> Any:
    """Soft threshold: a number brought nearer to zero by `cut`, not past it. NaN stays NaN."""
    return np.float32(0) if abs(number) <= cut else number - np.float32(math.copysign(cut, number))


@choice
def charge(penalty: Any, table: Any, base: int, width: int, stamp_cell: int, elapsed: Any, share: Any) -> None:
    """Pay a row's penalty up to `elapsed`; share: the part of it that this worker is to pay."""


@charge.of(Free)
def _charge_nothing(
    penalty: Any, table: Any, base: int, width: int, stamp_cell: int, elapsed: Any, share: Any
) -> None:
    return


@charge.of(Penalty)
def _charge(penalty: Any, table: Any, base: int, width: int, stamp_cell: int, elapsed: Any, share: Any) -> None:
    due = (elapsed - table[stamp_cell]) * share
    if due <= np.float32(0):
        return
    table[stamp_cell] = elapsed  # RACE(lost update): docs/races.md
    toll = flow(penalty, due)
    for k in range(width):
        table[base + k] = paid(penalty, table[base + k], toll)  # RACE(lost update): docs/races.md


@kernel
def flow(penalty: Any, due: Any) -> Any:
    """What `due` units of penalty do to a weight: it is scaled by the first number, then shortened by the second.

    The solution of dw/dt = -(l2 w + l1) is w exp(-x) - l1 due (1 - exp(-x)) / x with x = l2 due.
    """
    x = penalty.l2 * due
    if x < np.float32(0.02):  # the next term of the series is below half a unit in the last place
        part = np.float32(1) - x * (np.float32(0.5) - x * np.float32(1 / 6))
    else:
        part = np.float32(-math.expm1(-x)) / x
    return np.float32(1) - x * part, penalty.l1 * due * part


@choice
def toll_of(penalty: Any, table: Any, stamp_cell: int, elapsed: Any) -> Any:
    """The unpaid penalty of a row, for `paid`."""


@toll_of.of(Free)
def _no_toll(penalty: Any, table: Any, stamp_cell: int, elapsed: Any) -> Any:
    return np.float32(1), np.float32(0)


@toll_of.of(Penalty)
def _toll(penalty: Any, table: Any, stamp_cell: int, elapsed: Any) -> Any:
    due = elapsed - table[stamp_cell]  # RACE(stale read): docs/races.md
    return flow(penalty, max(due, np.float32(0)))


@choice
def paid(penalty: Any, weight: Any, toll: Any) -> Any:
    """A weight after its toll."""


@paid.of(Free)
def _unchanged(penalty: Any, weight: Any, toll: Any) -> Any:
    return weight


@paid.of(Penalty)
def _shrunk(penalty: Any, weight: Any, toll: Any) -> Any:
    return shorten(weight * toll[0], toll[1])


@kernel
def weight_at(penalty: Any, table: Any, cell: int, stamp_cell: int, elapsed: Any) -> Any:
    """Read a weight as it stands now, unpaid penalty deducted."""
    return paid(penalty, table[cell], toll_of(penalty, table, stamp_cell, elapsed))  # RACE(stale read): docs/races.md
