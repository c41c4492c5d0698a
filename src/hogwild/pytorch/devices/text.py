"""`TextClassifier` on a device: a step is for some texts at once, whose gradients are summed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hogwild.errors import ConfigError
from hogwild.executor.plan import Plan
from hogwild.kernels.loop.order import Order
from hogwild.kernels.optim.rules import unpenalized
from hogwild.pytorch.devices.device import Device
from hogwild.pytorch.devices.rows import move_outputs, move_rows, rule_on
from hogwild.pytorch.devices.upload import Batch, Places
from hogwild.pytorch.devices.work import TableWork, costs_of

_MOST, _PART = 16, 1000  # texts of a step where the user gives no number: with more of them, sums step too far


class TextWork(TableWork):
    """The mean of the rows of a text, and a linear layer above it."""

    def __init__(self, plan: Plan, device: Device) -> None:
        super().__init__(plan, device)
        program: Any = plan.program
        if program.several:
            raise ConfigError("rows have several labels, which is learnt by compiled code only; leave out --device.")
        config = plan.config
        self.group = config.batch or (1 if config.mode == "serial" else max(1, min(_MOST, plan.visits // _PART)))
        self._output_rule = rule_on(device, unpenalized(plan.task.rule))
        self._width, self._outputs, self._decay = program.width, plan.task.outputs, float(plan.task.decay)
        self._unit = float(plan.task.unit)

    @property
    def batch(self) -> int:
        """Texts of a step."""
        return self.group

    def shape_of(self, name: str) -> tuple[int, ...]:
        """A row an output."""
        return (self._outputs, -1)

    def rows(self, visits: Places, order: Order) -> Places:
        """A visit is a text."""
        return visits

    def step(self, batch: Batch, rate: float, elapsed: float) -> Tensor:
        """Scores, their loss, its gradient, and a step."""
        weights = self.weights
        entries = self.entries(weights.table, batch.ids, self._width, elapsed)
        outputs = weights.outputs[:, : self._width + 1].detach().requires_grad_()
        loss = (costs_of(self._scores(batch, entries, outputs), batch.targets) * batch.importance).sum()
        entry_grads, output_grads = torch.autograd.grad(loss, [entries, outputs])
        if self._decay:
            entry_grads = entry_grads + self._decay * batch.importance[batch.rows][:, None] * entries.detach()
        move_rows(self._rule, self._penalty, weights.table, batch.ids, entry_grads, rate, elapsed)
        move_outputs(self._output_rule, weights.outputs, output_grads, rate)
        return loss.detach()

    def _scores(self, batch: Batch, entries: Tensor, outputs: Tensor) -> Tensor:
        values = entries.new_ones(len(batch.rows)) if batch.values is None else batch.values
        total = entries.new_zeros(batch.size).index_add_(0, batch.rows, values.abs())
        size = total if self._unit == 0 else (self._unit * total).sqrt()
        shares = values * torch.where(total > 0, 1 / size, 0.0)[batch.rows]
        means = entries.new_zeros(batch.size, self._width).index_add(0, batch.rows, shares[:, None] * entries)
        return torch.addmm(outputs[:, self._width], means, outputs[:, : self._width].T)
