"""Samples on a device: all of them, sent once; or, where they do not fit, batch by batch from pinned memory.

Where they are sent batch by batch, a thread puts the next batch together while the device works on this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hogwild.arrays import bytes_of
from hogwild.pytorch.devices.device import Device, sent_in_pieces, tensor_of

Places = npt.NDArray[np.int64]
_SIXTEEN_BITS = 0xFFFF


class Batch(NamedTuple):
    """Some samples: `rows` says of each entry of `ids` to which of them it belongs. None: the samples have none."""

    size: int
    ids: Tensor
    rows: Tensor
    slots: Tensor | None
    values: Tensor | None
    dense: Tensor | None
    targets: Tensor
    importance: Tensor


class Samples:
    """Sparse rows of a feed (see `hogwild.arrays`), as batches on a device."""

    def __init__(self, samples: Any, device: Device, room: int) -> None:
        """room: bytes of the device that weights and steps need."""
        self._device = device
        self._offsets: Places = samples.offsets
        arrays = {name: array for name, array in samples._asdict().items() if array.size}
        self.bytes = bytes_of(tuple(arrays.values()))
        self.whole = device.free is None or room + self.bytes <= device.free
        tensors = {name: tensor_of(array) for name, array in arrays.items()}
        self._parts = {name: device.keep(tensor) for name, tensor in tensors.items()} if self.whole else tensors
        none = torch.zeros(0, dtype=torch.int64)
        self._ids: Tensor = self._parts.get("ids", device.keep(none) if self.whole else none)

    @property
    def notes(self) -> list[str]:
        """What the user should know of where they are."""
        return [] if self.whole else [sent_in_pieces(self._device, self.bytes)]

    def batches(self, chosen: Iterable[Places]) -> Iterator[Batch]:
        """The samples of these rows, batch after batch."""
        if self.whole:
            yield from map(self.gather, chosen)
            return
        with ThreadPoolExecutor(1) as ahead:
            coming = None
            for rows in chosen:
                found, coming = coming, ahead.submit(self.gather, rows)
                if found is not None:
                    yield self._sent(found.result())
            if coming is not None:
                yield self._sent(coming.result())

    def _sent(self, batch: Batch) -> Batch:
        parts = batch._asdict().items()
        return batch._replace(**{name: self._device.send(part) for name, part in parts if isinstance(part, Tensor)})

    def gather(self, rows: Places) -> Batch:
        """A batch of what is on the device, there; of what is here, here. The device is not waited for."""
        total = int((self._offsets[rows + 1] - self._offsets[rows]).sum())
        numbers = torch.from_numpy(rows)
        numbers = self._device.send(numbers) if self.whole else numbers
        parts, place = self._parts, numbers.device
        begins = parts["offsets"][numbers]
        sizes = parts["offsets"][numbers + 1] - begins
        inside = torch.arange(len(rows), device=place)
        row = torch.repeat_interleave(inside, sizes, output_size=total)
        entries = torch.arange(total, device=place) + (begins - sizes.cumsum(0) + sizes)[row]
        slots = parts["slots"][entries].long() & _SIXTEEN_BITS if "slots" in parts else None
        return Batch(
            len(rows), self._ids[entries].long(), row, slots, parts["values"][entries] if "values" in parts else None,
            parts["dense"][numbers] if "dense" in parts else None, parts["targets"][numbers],
            parts["importance"][numbers],
        )  # fmt: skip
