"""A PyTorch module on a device: one process, a stream for each worker, over copies of both segments of its memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from hogwild.arrays import DenseRows, bytes_of
from hogwild.executor.plan import Plan
from hogwild.executor.sharing import WeightStore
from hogwild.kernels.loop.order import visits_at
from hogwild.kernels.loop.schedule import rate_after
from hogwild.kernels.loop.span import Span
from hogwild.pytorch.data import Rows, Tensors
from hogwild.pytorch.devices.device import Device, check_room, sent_in_pieces, tensor_of
from hogwild.pytorch.devices.upload import Places, Samples
from hogwild.pytorch.layout import count_bytes
from hogwild.pytorch.worker import Elsewhere, Visitor


class ModuleWork:
    """What a module does on a device: the visits of its workers, in threads of this process."""

    group = 1
    remedy: ClassVar[str] = "use a smaller module, an optimizer that remembers less (sgd), or leave --device out."

    def __init__(self, plan: Plan, device: Device) -> None:
        self._plan, self._device = plan, device
        self._visitors: list[Visitor] = []

    def open(self, store: WeightStore) -> list[str]:
        """Send the module, what its optimizer remembers, and the samples; what the user should know of it."""
        program: Any = self._plan.program
        given = program.equipment(self._plan.config)
        self._here = [tensor_of(array.view(np.uint8)) for array in store.weights]
        self._counted = count_bytes(given.layout, given.workers)
        room = bytes_of(store.weights) + given.layout.size * store.workers
        check_room(self._device, room, self.remedy)
        self._there = values, state = tuple(self._device.keep(part) for part in self._here)
        source, notes = source_on(program.source, self._device, room)
        there = Elsewhere(values, state, source)
        self._visitors = [Visitor(worker, given, there) for worker in range(store.workers)]
        return notes

    def send(self) -> None:
        """What is here goes there. Counts of steps stay here."""
        for here, there in zip(self._here, self._there, strict=True):
            there.copy_(here)

    def fetch(self) -> None:
        """What is there comes here, but for the counts of steps, which are here."""
        for here, there, first in zip(self._here, self._there, (0, self._counted), strict=True):
            here[first:].copy_(there[first:])

    def run(self, worker: int, span: Span) -> Tensor:
        """The visits of a span; the sum of their losses, for which the device is not waited for."""
        visitor, positions = self._visitors[worker], np.arange(span.start, span.stop)
        losses = torch.zeros((), device=self._device.place)
        for visit, position in zip(visits_at(span.order, positions).tolist(), positions.tolist(), strict=True):
            at = span.before + position
            loss = visitor.loss(visit, span.order.key, at)
            visitor.backward(loss)
            visitor.apply(rate_after(span.schedule, at))
            losses += loss.detach()
        return losses


# -- samples ----------------------------------------------------------------------------------------------------------


def source_on(source: Any, device: Device, room: int) -> tuple[Any, list[str]]:
    """Samples whose batches are on the device, and what to say of it. room: bytes that the module needs there.

    Arrays are sent once, if they fit; a dataset of the user's is read as it is needed, and its batches are sent.
    """
    if isinstance(source, Rows) and isinstance(source.samples, DenseRows):
        targets = tensor_of(source.samples.targets)
        source = Tensors([tensor_of(source.samples.matrix), targets.long() if source.long else targets])
    if isinstance(source, Tensors):
        size = sum(tensor.nbytes for tensor in source.tensors)
        if device.free is None or room + size <= device.free:
            return Tensors([device.keep(tensor) for tensor in source.tensors]), []
        return Sent(source, device), [sent_in_pieces(device, size)]
    if isinstance(source, Rows):
        rows: Any = source.samples
        samples = Samples(rows._replace(ids=source.ids), device, room)
        return (RowsThere(source, samples) if samples.whole else Sent(source, device)), samples.notes
    return Sent(source, device), []


class RowsThere:
    """`Rows` that are on a device as a whole."""

    def __init__(self, rows: Rows, samples: Samples) -> None:
        self._count, self._slots, self._long, self._samples = len(rows), rows.slots, rows.long, samples

    def __len__(self) -> int:
        return self._count

    def batch(self, rows: Places) -> tuple[Tensor, ...]:
        """The samples of these rows, as `Rows` gives them."""
        batch = self._samples.gather(rows)
        each = max(1, self._slots)
        bags = batch.rows * each + (0 if batch.slots is None else batch.slots)
        sizes = torch.zeros(batch.size * each, dtype=torch.int64, device=bags.device)
        sizes.index_add_(0, bags, torch.ones_like(bags))
        dense = batch.dense if batch.dense is not None else batch.targets.new_zeros(batch.size, 0)
        more = [dense] * bool(self._slots) + ([] if batch.values is None else [batch.values])
        targets = batch.targets.long() if self._long else batch.targets
        return batch.ids, sizes.cumsum(0) - sizes, *more, targets


class Sent:
    """Samples that stay here; batches are sent as they are asked for, while other streams work."""

    def __init__(self, source: Any, device: Device) -> None:
        self._source, self._device = source, device

    def __len__(self) -> int:
        return len(self._source)

    def batch(self, rows: Places) -> Any:
        """The samples of these rows."""
        return self._moved(self._source.batch(rows))

    def _moved(self, part: Any) -> Any:
        if isinstance(part, Tensor):
            return self._device.send(part)
        if isinstance(part, Mapping):
            return {name: self._moved(item) for name, item in part.items()}
        if isinstance(part, list | tuple):
            moved = [self._moved(item) for item in part]
            return type(part)(*moved) if hasattr(part, "_fields") else type(part)(moved)
        return part
