"""What a form of a program for devices has in common with others: weights there and here, and spans of visits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from hogwild.arrays import CELL, bytes_of
from hogwild.executor.plan import Plan
from hogwild.executor.sharing import WeightStore
from hogwild.kernels.loop.order import Order, visits_at
from hogwild.kernels.loop.schedule import elapsed_at, rate_after
from hogwild.kernels.loop.span import Span
from hogwild.kernels.optim.losses import STEEP, Huber, Poisson, Quantile, Squared
from hogwild.kernels.optim.penalties import Free
from hogwild.pytorch.devices.device import Device, check_room, tensor_of
from hogwild.pytorch.devices.rows import paid, rule_on
from hogwild.pytorch.devices.upload import Batch, Places, Samples

_COPIES = 6  # of what a visit reads and writes, that a step makes at the most


def costs_of(scores: Tensor, targets: Tensor, loss: Any = None) -> Tensor:
    """The loss of each row: of one score a class, of one score for two classes (-1 and 1), or of a quantity."""
    if scores.shape[1] > 1:
        return functional.cross_entropy(scores, targets.long(), reduction="none")
    if isinstance(loss, Squared):
        return 0.5 * (scores[:, 0] - targets).square()
    if isinstance(loss, Huber):
        return functional.huber_loss(scores[:, 0], targets, reduction="none", delta=float(loss.delta))
    if isinstance(loss, Quantile):
        short = targets - scores[:, 0]
        return torch.maximum(float(loss.level) * short, (float(loss.level) - 1) * short)
    if isinstance(loss, Poisson):
        low = scores[:, 0].clamp(max=STEEP)
        mean = low.exp() + low.exp().detach() * (scores[:, 0] - low)  # straight past that
        return mean - targets * scores[:, 0] + torch.xlogy(targets, targets) - targets
    return functional.softplus(-targets * scores[:, 0], threshold=1e9)  # never cut short: as compiled code has it


class TableWork(ABC):
    """A program with one row of weights a feature, on a device: as tensors in the shapes of its arrays.

    The table is (rows + 1, cells), its last row nobody's; other weights are as `shapes` says.
    """

    remedy: ClassVar[str] = "use a smaller --dim, fewer features (--hash-bits), sgd, or leave --device out."

    def __init__(self, plan: Plan, device: Device) -> None:
        self.group = 1
        self._plan, self._device, task = plan, device, plan.task
        self._rule, self._penalty = rule_on(device, task.rule), task.penalty
        self._cells = plan.tables["table"].cells
        self._weights: Any = None
        self._samples: Samples

    @abstractmethod
    def rows(self, visits: Places, order: Order) -> Places:
        """The rows of the feed of one step: those of some visits."""

    @abstractmethod
    def step(self, batch: Batch, rate: float, elapsed: float) -> Tensor:
        """Move the weights by a batch; the sum of the losses of its visits, which is on the device."""

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of a weight array that is not the table."""
        return (-1,)

    # -- weights ------------------------------------------------------------------------------------------------

    def open(self, store: WeightStore) -> list[str]:
        """Send weights and samples; what the user should know of it."""
        self._store = store
        samples = self._plan.samples
        entries = len(samples.ids) / max(1, len(samples.targets)) * self.batch
        step = _COPIES * CELL * (self._cells * entries + self._dense_cells) * store.workers
        room = bytes_of(store.weights) + CELL * self._cells + int(step)
        check_room(self._device, room, self.remedy)
        self._weights = type(store.weights)(*self._made(store.weights))
        self.send()
        self._samples = Samples(samples, self._device, room)
        return self._samples.notes

    @property
    @abstractmethod
    def batch(self) -> int:
        """Samples of a step."""

    @property
    def _dense_cells(self) -> int:
        return sum(array.size for name, array in self._store.weights._asdict().items() if name != "table")

    def _made(self, weights: Any) -> list[Tensor]:
        made = []
        for name, array in weights._asdict().items():
            cells = array.size + (self._cells if name == "table" else 0)
            flat = torch.zeros(cells, device=self._device.place)
            made.append(flat.view(-1, self._cells) if name == "table" else flat.view(self.shape_of(name)))
        return made

    def _pairs(self) -> list[tuple[Tensor, Tensor]]:
        """Arrays here and there, flat, without the row that is nobody's."""
        here = (tensor_of(array.reshape(-1)) for array in self._store.weights)
        return [(mine, there.view(-1)[: len(mine)]) for mine, there in zip(here, self._weights, strict=True)]

    def send(self) -> None:
        """What is here goes there."""
        for mine, there in self._pairs():
            there.copy_(mine)

    def fetch(self) -> None:
        """What is there comes here."""
        for mine, there in self._pairs():
            mine.copy_(there)

    @property
    def weights(self) -> Any:
        """The tensors, as this thread may write them: autograd knows nothing of what others write meanwhile."""
        return type(self._weights)(*(tensor.data for tensor in self._weights))

    def entries(self, table: Tensor, ids: Tensor, width: int, elapsed: float) -> Tensor:
        """The weights of the row of each entry, penalties paid: a leaf, of which a gradient can be asked."""
        cells = width if isinstance(self._penalty, Free) else self._cells
        own = table[:, :cells].index_select(0, ids)  # RACE(stale read): docs/races.md
        return paid(self._rule, self._penalty, own, width, elapsed).detach().requires_grad_()

    # -- visits -------------------------------------------------------------------------------------------------

    def run(self, worker: int, span: Span) -> Tensor:
        """The visits of a span, one step after the other; the sum of their losses."""
        positions = np.arange(span.start, span.stop)
        visits = visits_at(span.order, positions)
        groups = [visits[k : k + self.group] for k in range(0, len(visits), self.group)]
        losses = torch.zeros((), device=self._device.place)
        batches = self._samples.batches(self.rows(group, span.order) for group in groups)
        at = span.before + span.start
        for group, batch in zip(groups, batches, strict=True):
            at += len(group)
            rate = float(np.float32(rate_after(span.schedule, at - 1)))
            losses += self.step(batch, rate, self._elapsed(span, at - 1))
        return losses

    def _elapsed(self, span: Span, position: int) -> float:
        """The clock of lazy regularization: the sum of learning rates since the epoch began."""
        if isinstance(self._penalty, Free):
            return 0.0
        since, now = (elapsed_at(span.schedule, float(moment)) for moment in (span.before, position))
        return float(np.float32(now - since))
