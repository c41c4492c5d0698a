"""Lazy L2 and L1: a row pays its penalty when it is touched, so that only touched rows are written. Chosen by type."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner, kernel


class Free(NamedTuple):
    """No penalty: nothing is stored or computed for it."""


class Penalty(NamedTuple):
    """Elastic net: the objective is the mean loss + l1 |w| + l2 w^2 / 2. A row pays when it is touched.

    The penalty moves a weight at the pace at which the update rule moves it: dw/dt = -pace (l2 w + l1 sign(w)) until w
    is 0, where time is the sum of learning rates. Between two touches of a row the pace is constant, and the exact
    solution is used: paying late, in parts or at once is the same. The stamp of a row is the time up to which it has
    paid; rounded stamps telescope: what is not charged now is charged at the next touch.
    """

    l1: np.float32
    l2: np.float32


@choice
def stamps(penalty: Any) -> Any:
    """1 if rows carry a stamp."""


stamps.of(Free)(lambda penalty: 0)
stamps.of(Penalty)(lambda penalty: 1)


@kernel
def shorten(number: Any, cut: Any) -> Any:
    """Soft threshold: a number brought nearer to zero by `cut`, not past it. NaN stays NaN."""
    left = abs(number) - cut
    return np.float32(0) if left <= np.float32(0) else np.float32(math.copysign(left, number))


@choice
def pace(rule: Any, table: Any, cell: int, width: int, count_cell: int) -> Any:
    """How far the rule moves the weight at `cell` for a unit of learning rate and of gradient; rules register it."""


@inner
def flow(penalty: Any, weight: Any, due: Any) -> Any:
    """A weight after `due` units of penalty.

    The solution of dw/dt = -(l2 w + l1) is w exp(-x) - l1 due (1 - exp(-x)) / x with x = l2 due.
    """
    x = penalty.l2 * due
    small = x < np.float32(0.5)
    # No branch and no call, so that loops over weights vectorise: below 1/2 a series, beyond exp(-x) = exp(-x / 32)^32.
    z = x if small else min(x, np.float32(16)) / np.float32(32)
    part = np.float32(1 / 24) - z * (np.float32(1 / 120) - z * (np.float32(1 / 720) - z * np.float32(1 / 5040)))
    part = np.float32(1) - z * (np.float32(1 / 2) - z * (np.float32(1 / 6) - z * part))
    root = np.float32(1) - z * part
    for _ in range(5):
        root *= root
    part = part if small else (np.float32(1) - root) / x
    return shorten(weight * (np.float32(1) - x * part), penalty.l1 * due * part)


@kernel
def owes(step: Any, row: int) -> bool:
    """Whether this worker is to pay the penalty of a row.

    Of a row that is private, each worker has a copy, and merging adds up what they change. If each paid, even a share,
    two that pay much between two merges would together take more than there is. So one pays for all; its stamp goes to
    the others with the weight, and they deduct what is due since then from what they read.
    """
    if row >= step.private:
        return True
    spread = (np.int64(row) * np.int64(40503)) & np.int64(0xFFFF)  # neighbours have different payers
    return (spread * step.workers) >> 16 == step.worker


@choice
def charge(penalty: Any, rule: Any, table: Any, base: int, width: int, stamp_cell: int, elapsed: Any) -> None:
    """Pay a row's penalty up to `elapsed`."""


charge.of(Free)(lambda penalty, rule, table, base, width, stamp_cell, elapsed: None)


@charge.of(Penalty)
def _charge(penalty: Any, rule: Any, table: Any, base: int, width: int, stamp_cell: int, elapsed: Any) -> None:
    due = elapsed - table[stamp_cell]
    if due <= np.float32(0):
        return
    table[stamp_cell] = elapsed  # RACE(lost update): docs/races.md
    for k in range(width):
        speed = pace(rule, table, base + k, width, stamp_cell - 1)
        table[base + k] = flow(penalty, table[base + k], due * speed)  # RACE(lost update): docs/races.md


@choice
def weight_at(penalty: Any, rule: Any, table: Any, cell: int, width: int, stamp_cell: int, elapsed: Any) -> Any:
    """Read the weight at `cell` as it stands now, unpaid penalty deducted."""


@weight_at.of(Free)
def _plain(penalty: Any, rule: Any, table: Any, cell: int, width: int, stamp_cell: int, elapsed: Any) -> Any:
    return table[cell]  # RACE(stale read): docs/races.md


@weight_at.of(Penalty)
def _shrunk(penalty: Any, rule: Any, table: Any, cell: int, width: int, stamp_cell: int, elapsed: Any) -> Any:
    due = max(elapsed - table[stamp_cell], np.float32(0))  # RACE(stale read): docs/races.md
    return flow(penalty, table[cell], due * pace(rule, table, cell, width, stamp_cell - 1))
