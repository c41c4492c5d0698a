"""Rows with what update rules remember of them and penalties to pay: read, paid for and moved eight weights at a time.

The width of a row is a multiple of eight. With L1, whose threshold no vector here knows, and with values that are not
1, it is a weight at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.optim.penalties import Free, Penalty, charge, owes, stamps, weight_at
from hogwild.kernels.optim.rules import counts_visits, stride, update, visits_of
from hogwild.kernels.simd.rules8 import EIGHT, add_eight, fade_eight, fixes_of, move_eight, read_eight


@choice
def add_row(penalty: Any, rule: Any, table: Any, row: Any, width: int, value: Any, now: Any, floats: Any, to: int, spare: int) -> None:  # noqa: E501
    """Add value times a row, unpaid penalty deducted, to floats[to:]; floats[spare:] has room for a row."""


@inner
def _add(table: Any, base: int, width: int, value: Any, floats: Any, to: int, spare: int) -> None:
    for c in range(0, width, EIGHT):
        read_eight(table, base + c, value, floats, spare + c, (to + c,))


@add_row.of(Free)
def _add_free(penalty: Any, rule: Any, table: Any, row: Any, width: int, value: Any, now: Any, floats: Any, to: int, spare: int) -> None:  # noqa: E501
    _add(table, row * stride(rule, penalty, width), width, value, floats, to, spare)


@add_row.of(Penalty)
def _add_faded(penalty: Any, rule: Any, table: Any, row: Any, width: int, value: Any, now: Any, floats: Any, to: int, spare: int) -> None:  # noqa: E501
    cells = stride(rule, penalty, width)
    base = row * cells
    last = base + cells - 1
    due = now - table[last]  # RACE(stale read): docs/races.md
    if due <= np.float32(0):
        _add(table, base, width, value, floats, to, spare)
    elif penalty.l1 > np.float32(0):
        for k in range(width):
            floats[to + k] += value * weight_at(penalty, rule, table, base + k, width, last, now)
    else:
        fixes = fixes_of(rule, _visits(rule, table, last))
        for c in range(0, width, EIGHT):
            fade_eight(rule, table, base + c, width, due * penalty.l2, fixes, value, floats, spare + c)
            add_eight(floats, to + c, spare + c)


@inner
def _visits(rule: Any, table: Any, stamp_cell: int) -> Any:
    """How often a row was visited, where the rule counts that."""
    return table[stamp_cell - 1] if counts_visits(rule) == 1 else np.float32(0)


@choice
def pay(penalty: Any, rule: Any, table: Any, base: int, width: int, elapsed: Any) -> None:
    """Pay the penalty of the row whose first cell is `base`."""


pay.of(Free)(lambda penalty, rule, table, base, width, elapsed: None)


@pay.of(Penalty)
def _pay(penalty: Any, rule: Any, table: Any, base: int, width: int, elapsed: Any) -> None:
    last = base + stride(rule, penalty, width) - 1
    if penalty.l1 > np.float32(0):
        charge(penalty, rule, table, base, width, last, elapsed)
        return
    due = elapsed - table[last]
    if due <= np.float32(0):
        return
    table[last] = elapsed  # RACE(lost update): docs/races.md
    fixes = fixes_of(rule, _visits(rule, table, last))
    for c in range(0, width, EIGHT):
        fade_eight(rule, table, base + c, width, due * penalty.l2, fixes, np.float32(1), table, base + c)


@inner
def move_row(task: Any, table: Any, row: Any, width: int, grads: Any, at: int, value: Any, rate: Any, step: Any) -> None:  # noqa: E501
    """Update a row of a table against the gradient value * grads[at:]."""
    cells = stride(task.rule, task.penalty, width)
    base = row * cells
    if owes(step, row):
        pay(task.penalty, task.rule, table, base, width, step.elapsed)
    count = visits_of(task.rule, table, base + cells - 1 - stamps(task.penalty))
    if value == np.float32(1):
        fixes = fixes_of(task.rule, count)
        for c in range(0, width, EIGHT):
            move_eight(task.rule, (), table, base + c, width, grads, at + c, rate, fixes)
    else:
        for k in range(width):
            update(task.rule, table, base + k, width, value * grads[at + k], rate, count)
