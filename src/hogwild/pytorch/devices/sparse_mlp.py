"""`SparseMLP` on a device: a visit is a batch, whose gradient comes from autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hogwild.executor.plan import Plan
from hogwild.kernels.loop.order import Order
from hogwild.kernels.optim.penalties import Free
from hogwild.pytorch.data import rows_of
from hogwild.pytorch.devices.device import Device
from hogwild.pytorch.devices.rows import move_dense, move_rows
from hogwild.pytorch.devices.upload import Batch, Places
from hogwild.pytorch.devices.work import TableWork, costs_of
from hogwild.pytorch.export import combined

_ACTIVATIONS: dict[str, Any] = {"none": lambda x: x, "relu": torch.relu, "tanh": torch.tanh}
_ENDLESS = 62  # bits: of an order whose rows are not kept near one another


class SparseMLPWork(TableWork):
    """Rows looked up and put together, dense layers, one score or one a class."""

    def __init__(self, plan: Plan, device: Device) -> None:
        super().__init__(plan, device)
        program: Any = plan.program
        config = program.config
        self._sizes: list[int] = plan.task.sizes.tolist()
        self._dim, self._width, self._slots = config.dim, program.width, len(program.slots or ())
        self._combiner, self._loss = config.combiner, plan.task.head.loss
        self._activation = _ACTIVATIONS[config.activation]
        self._lookup_activation = _ACTIVATIONS[config.lookup_activation]
        self._l2 = 0.0 if isinstance(self._penalty, Free) else float(self._penalty.l2)

    @property
    def batch(self) -> int:
        """Samples of a visit."""
        size: int = self._plan.task.batch
        return size

    def rows(self, visits: Places, order: Order) -> Places:
        """As compiled code chooses them."""
        shift = 0 if order.shift >= _ENDLESS // 2 else order.shift
        window = self.batch << shift if shift else 1 << _ENDLESS
        return rows_of(int(visits[0]), self.batch, len(self._plan.samples.targets), order.key, window)

    def step(self, batch: Batch, rate: float, elapsed: float) -> Tensor:
        """Scores, their loss, its gradient, and a step."""
        weights = self.weights
        entries = self.entries(weights.table, batch.ids, self._width, elapsed)
        layers = [part.requires_grad_() for part in self._layers(weights.values)]
        costs = costs_of(self._scores(batch, entries, layers), batch.targets, self._loss)
        loss = (costs * batch.importance).sum() / batch.size
        entry_grads, *layer_grads = torch.autograd.grad(loss, [entries, *layers])
        if self._l2:
            layer_grads[::2] = [
                grad + self._l2 * part.detach() for grad, part in zip(layer_grads[::2], layers[::2], strict=True)
            ]
        move_dense(self._rule, weights, torch.cat([grad.reshape(-1) for grad in layer_grads]), rate)
        move_rows(self._rule, self._penalty, weights.table, batch.ids, entry_grads, rate, elapsed)
        return loss.detach()

    def _layers(self, values: Tensor) -> list[Tensor]:
        """Matrix and biases of each dense layer: views, each a leaf."""
        found, at = [], 0
        for before, after in zip(self._sizes[:-1], self._sizes[1:], strict=True):
            end = at + before * after
            found += [values[at:end].view(before, after).detach(), values[end : end + after].detach()]
            at = end + after
        return found

    def _scores(self, batch: Batch, entries: Tensor, layers: list[Tensor]) -> Tensor:
        bags = batch.rows * self._slots + (0 if batch.slots is None else batch.slots)
        looked_up = combined(entries[:, : self._dim], bags, batch.size * self._slots, batch.values, self._combiner)
        given = self._lookup_activation(looked_up.view(batch.size, self._slots * self._dim))
        given = given if batch.dense is None else torch.cat([given, batch.dense], 1)
        for k in range(0, len(layers), 2):
            given = torch.addmm(layers[k + 1], given, layers[k])
            given = self._activation(given) if k + 2 < len(layers) else given
        if self._width > self._dim:
            wide = entries[:, self._dim :]
            wide = wide if batch.values is None else wide * batch.values[:, None]
            given = given.index_add(0, batch.rows, wide)
        return given
