"""Segments of memory that all workers map, and objects whose arrays lie in one.

Objects are pickled: by this process, for the workers that it starts, and never from or to a file.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Sequence
from multiprocessing.reduction import DupFd
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hogwild.machine import check_memory
from hogwild.mapping import map_file, memory_file, round_to_pages

Bytes = npt.NDArray[np.uint8]
_ALIGNED = 64  # bytes: where each array begins
_LEAST = 1024  # bytes of an array that is worth a place of its own


class Segment:
    """Memory without a name, for one file descriptor: it is gone with the last process that maps it, however that ends.

    It can be handed to a process that is being started, and only then.
    """

    def __init__(self, size: int) -> None:
        self._size = max(round_to_pages(size), round_to_pages(1))
        self._file = memory_file(self._size)
        self.cells = map_file(self._file.fileno(), self._size, self._size // 4)

    @property
    def bytes(self) -> Bytes:
        """All of it."""
        return self.cells.view(np.uint8)

    def __getstate__(self) -> dict[str, Any]:
        return {"size": self._size, "file": DupFd(self._file.fileno())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._size = state["size"]
        self._file = os.fdopen(state["file"].detach(), "r+b", buffering=0)
        self.cells = map_file(self._file.fileno(), self._size, self._size // 4)


def view_of(
    memory: Bytes | Tensor, start: int, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype
) -> Tensor:
    """A tensor over bytes from `start` on."""
    cells = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if all(shape) else 0
    part = memory[start : start + cells * dtype.itemsize]
    part = part if isinstance(part, Tensor) else torch.from_numpy(part)
    if not cells:
        return torch.empty(tuple(shape), dtype=dtype, device=part.device)
    return part.view(dtype).as_strided(tuple(shape), tuple(stride))


# -- objects ----------------------------------------------------------------------------------------------------------


class Parcel(NamedTuple):
    """An object as pickle has it, its arrays and tensors in a segment: those who open it share them and copy none.

    Whoever writes to such an array writes for all; data is not written to.
    """

    text: bytes
    places: tuple[tuple[int, int], ...]
    segment: Segment

    def open(self, load: Callable[[Any], Any] | None = None) -> Any:
        """The object; load: what stands for a persistent id."""
        memory = self.segment.bytes
        parts = [memory[start : start + size].data for start, size in self.places]
        return _Unpickler(io.BytesIO(self.text), parts, load).load()


def pack(given: Any, name: Callable[[Any], Any] | None = None) -> Parcel:
    """An object for other processes; name: the persistent id of what they have already, None for the rest."""
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    _Pickler(stream, lambda buffer: _keep(buffers, buffer), name).dump(given)
    places, end = [], 0
    for buffer in buffers:
        size = buffer.raw().nbytes
        places.append((end, size))
        end += -(-size // _ALIGNED) * _ALIGNED
    remedy = "use less data, or a dataset that reads files."
    check_memory(end, "what workers read needs, in memory that they share,", remedy)
    segment = Segment(end)
    for (start, size), buffer in zip(places, buffers, strict=True):
        segment.bytes[start : start + size] = np.frombuffer(buffer.raw(), np.uint8)
    return Parcel(stream.getvalue(), tuple(places), segment)


def _keep(buffers: list[pickle.PickleBuffer], buffer: pickle.PickleBuffer) -> bool:
    """Whether an array is left in the pickled text: it is, if it is small or lies in pieces."""
    try:
        if buffer.raw().nbytes < _LEAST:
            return True
    except BufferError:
        return True
    buffers.append(buffer)
    return False


class _Pickler(pickle.Pickler):
    """Tensors go as arrays, which pickle hands out; else they would be copied for each process."""

    def __init__(self, stream: Any, keep: Callable[[pickle.PickleBuffer], bool], name: Any) -> None:
        super().__init__(stream, protocol=5, buffer_callback=keep)
        self._name = name

    def persistent_id(self, given: Any) -> Any:
        return None if self._name is None else self._name(given)

    def reducer_override(self, given: Any) -> Any:
        plain = type(given) is Tensor and given.layout is torch.strided and given.device.type == "cpu"
        if plain and not given.requires_grad and given.dtype is not torch.bfloat16 and given.is_contiguous():
            return torch.from_numpy, (given.numpy(),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """What `_Pickler` wrote."""

    def __init__(self, stream: Any, buffers: Any, load: Any) -> None:
        super().__init__(stream, buffers=buffers)
        self._load = load

    def persistent_load(self, name: Any) -> Any:
        if self._load is None:
            raise pickle.UnpicklingError("nothing is shared here")
        return self._load(name)
