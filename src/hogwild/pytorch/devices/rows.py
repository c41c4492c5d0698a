"""Steps of the update rules of compiled code (`kernels/optim/rules.py`) on tensors, by the same formulas.

Rows are laid out as there: weights, what the rule remembers of each, a count, a stamp. A table on a device has one row
more than the program's: the last is nobody's. Distinct rows of a batch are found without waiting for the device to say
how many there are; the places that are left over are rows of nobody.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hogwild.kernels.compiler.jit import choice
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import (
    SLOTS,
    Adagrad,
    Adam,
    Ftrl,
    Momentum,
    Sgd,
    moved,
    root,
    select,
    signed,
    unbiased,
)
from hogwild.pytorch.devices.device import Device

# -- what formulas are made of, of tensors ----------------------------------------------------------------------------


def _root(number: Tensor) -> Tensor:
    return number.sqrt()


def _signed(size: Tensor, number: Tensor) -> Tensor:
    return torch.copysign(size, number)


def _select(test: Tensor, yes: Any, no: Any) -> Tensor:
    return torch.where(test, _plain(yes), _plain(no))


def _unbiased(mean: Tensor, beta: float, count: Tensor, which: int) -> Tensor:
    return mean / (1 - torch.pow(beta, count))


def _plain(number: Any) -> Any:
    return float(number) if isinstance(number, np.generic) else number


root.of(Tensor)(_root)
signed.of(Tensor)(_signed)
select.of(Tensor)(_select)
unbiased.of(Tensor)(_unbiased)


def rule_on(device: Device, rule: Any) -> Any:
    """A rule whose constants are numbers of Python, which go with a call; of `l1` the sign of tensors is asked."""
    plain = type(rule)(*(float(constant) for constant in rule))
    if isinstance(plain, Ftrl):
        plain = plain._replace(l1=torch.tensor(plain.l1, device=device.place))
    return plain


# -- penalties --------------------------------------------------------------------------------------------------------


@choice
def pace_of(rule: Any, own: Tensor, width: int) -> Any:
    """How far the rule moves the weights of some rows for a unit of learning rate and of gradient."""


def _adagrad_pace(rule: Any, own: Tensor, width: int) -> Tensor:
    squares = own[:, width : 2 * width]
    return torch.where(squares > 0, 1 / (squares + rule.epsilon).sqrt(), 0.0)


def _adam_pace(rule: Any, own: Tensor, width: int) -> Tensor:
    count = own[:, 3 * width, None]
    spread = _unbiased(own[:, 2 * width : 3 * width], rule.beta2, count, 1)
    return torch.where(count > 0, 1 / (spread.sqrt() + rule.epsilon), 0.0)


pace_of.of(Sgd)(lambda rule, own, width: 1.0)
pace_of.of(Momentum)(lambda rule, own, width: 1.0 / (1.0 - rule.beta))
pace_of.of(Adagrad)(_adagrad_pace)
pace_of.of(Adam)(_adam_pace)


def paid(rule: Any, penalty: Any, own: Tensor, width: int, elapsed: float) -> Tensor:
    """The weights of some rows, penalties paid up to a time: see `kernels/optim/penalties.py` for the formula."""
    if isinstance(penalty, Free):
        return own[:, :width]
    due = (elapsed - own[:, -1:]).clamp(min=0) * pace_of(rule, own, width)
    x = float(penalty.l2) * due
    part = torch.where(x > 0, -torch.expm1(-x) / x, 1.0)
    found = own[:, :width] * torch.exp(-x)
    cut = float(penalty.l1) * due * part
    return torch.where(found.abs() <= cut, 0.0, found - torch.copysign(cut, found))


# -- rows and dense weights -------------------------------------------------------------------------------------------


def distinct(ids: Tensor, nobody: int) -> tuple[Tensor, Tensor]:
    """Distinct ids, with `nobody` up to the number of ids, and for each id its place among them."""
    ranked, order = torch.sort(ids, stable=True)
    new = torch.ones_like(ranked)
    new[1:] = (ranked[1:] != ranked[:-1]).long()
    place = new.cumsum(0) - 1
    rows = torch.full_like(ids, nobody).scatter_(0, place, ranked)
    return rows, torch.empty_like(place).scatter_(0, order, place)


def move_rows(rule: Any, penalty: Any, table: Tensor, ids: Tensor, grads: Tensor, rate: float, elapsed: float) -> None:
    """Move rows of a table in place, each by the sum of its gradients; no other row is read or written."""
    width = grads.shape[1]
    if not len(ids):
        return
    if isinstance(rule, Sgd) and isinstance(penalty, Free):
        table[:, :width].index_add_(0, ids, grads, alpha=-rate)  # RACE(lost update): docs/races.md
        return
    rows, place = distinct(ids, len(table) - 1)
    total = torch.zeros_like(grads).index_add_(0, place, grads)
    own = table.index_select(0, rows)  # RACE(stale read): docs/races.md
    own[:, :width] = paid(rule, penalty, own, width, elapsed)
    if not isinstance(penalty, Free):
        own[:, -1].clamp_(min=elapsed)
    table.index_copy_(0, rows, stepped(rule, own, total, rate))  # RACE(lost update): docs/races.md


def stepped(rule: Any, own: Tensor, grads: Tensor, rate: float) -> Tensor:
    """Whole rows after a step, in place."""
    width, slots = grads.shape[1], len(SLOTS[type(rule)])
    parts = [own[:, k * width : (k + 1) * width] if k <= slots else 0.0 for k in range(3)]
    count: Any = 0.0
    if isinstance(rule, Adam):
        own[:, 3 * width] += 1
        count = own[:, 3 * width, None]
    for k, new in enumerate(moved(rule, *parts, grads, rate, count)[: 1 + slots]):
        own[:, k * width : (k + 1) * width] = new
    return own


def move_outputs(rule: Any, outputs: Tensor, grads: Tensor, rate: float) -> None:
    """Move all rows of a small table."""
    outputs.copy_(stepped(rule, outputs.clone(), grads, rate))  # RACE(lost update): docs/races.md


def move_dense(rule: Any, weights: Any, grads: Tensor, rate: float) -> None:
    """Move all dense weights (`DenseParameters`)."""
    count: Any = 0.0
    if isinstance(rule, Adam):
        weights.steps.add_(1)  # RACE(lost update): docs/races.md
        count = weights.steps.clone()
    held = (weights.values, *(slot if slot.numel() else 0.0 for slot in (weights.first, weights.second)))
    for slot, new in zip(held, moved(rule, *held, grads, rate, count), strict=True):
        if isinstance(slot, Tensor):
            slot.copy_(new)  # RACE(lost update): docs/races.md
