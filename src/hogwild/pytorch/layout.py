"""Where the parameters, buffers and optimiser state of a module lie in two segments of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hogwild.errors import ConfigError, brief
from hogwild.pytorch.memory import Bytes, view_of

_ALIGNED = 64  # bytes
_TRAINED = (torch.float32, torch.float64)
_KNOWN = (*_TRAINED, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


class Place(NamedTuple):
    """A parameter or a buffer: its name in the module, and where it lies, in bytes."""

    name: str
    buffer: bool
    trained: bool
    start: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def view(self, memory: Bytes | Tensor) -> Tensor:
        """The tensor in this memory."""
        return view_of(memory, self.start, self.shape, self.stride, self.dtype)

    @property
    def cells(self) -> int:
        """Numbers that it holds."""
        return int(np.prod(self.shape))


class Layout(NamedTuple):
    """All places. The first `flat` float32 cells are the parameters whose gradient is dense, one after the other, in
    the order of `places`: one step of a rule goes over all of them. What shares memory in the module shares it here."""

    places: tuple[Place, ...]
    flat: int
    size: int

    @property
    def trained(self) -> tuple[Place, ...]:
        """The parameters that training changes."""
        return tuple(place for place in self.places if place.trained)

    @property
    def joined(self) -> int:
        """How many of these, the first, are in the flat part."""
        return sum(place.start < 4 * self.flat for place in self.trained)


def lay_out(module: nn.Module) -> Layout:
    """Find a place for everything in a module."""
    rows = {id(part.weight) for part in module.modules() if getattr(part, "sparse", False) and hasattr(part, "weight")}
    named = [(name, False, tensor) for name, tensor in module.named_parameters()]
    named += [(name, True, tensor) for name, tensor in module.named_buffers()]
    for name, _, tensor in named:
        _check(name, tensor)
    owners: dict[int, list[Tensor]] = {}
    for _, _, tensor in named:
        owners.setdefault(tensor.untyped_storage().data_ptr(), []).append(tensor)

    def joins(tensor: Tensor, buffer: bool) -> bool:
        alone = len(owners[tensor.untyped_storage().data_ptr()]) == 1 and tensor.is_contiguous()
        dense = alone and tensor.dtype is torch.float32 and id(tensor) not in rows
        return dense and tensor.requires_grad and not buffer

    places, end = [], 0
    for name, buffer, tensor in named:
        if joins(tensor, buffer):
            places.append(_place(name, buffer, tensor, end))
            end += 4 * tensor.numel()
    flat, begins = end // 4, dict[int, int]()
    for name, buffer, tensor in named:
        if joins(tensor, buffer):
            continue
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in begins or not storage.nbytes():
            end = -(-end // _ALIGNED) * _ALIGNED
            begins[storage.data_ptr()] = end
            end += storage.nbytes()
        inside = tensor.storage_offset() * tensor.dtype.itemsize
        places.append(_place(name, buffer, tensor, begins[storage.data_ptr()] + inside))
    if not any(place.trained for place in places):
        raise ConfigError("the module has no parameter that requires a gradient; there is nothing to train.")
    return Layout(tuple(places), flat, max(end, 1))


def _place(name: str, buffer: bool, tensor: Tensor, start: int) -> Place:
    trained = not buffer and tensor.requires_grad
    return Place(name, buffer, trained, start, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


def _check(name: str, tensor: Tensor) -> None:
    if isinstance(tensor, nn.parameter.UninitializedTensorMixin):
        raise ConfigError(
            f"{name} of the module has no size yet; run the module once on a batch before, or give sizes."
        )
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise ConfigError(f"{name} of the module is on {tensor.device}; workers share memory of the CPU: module.cpu().")
    known = _TRAINED if tensor.requires_grad else _KNOWN
    if tensor.dtype not in known:
        raise ConfigError(f"{name} of the module is {tensor.dtype}; use {' or '.join(map(str, _TRAINED))}.")


def bind(module: nn.Module, layout: Layout, memory: Bytes | Tensor, copy: bool = False) -> None:
    """Let the parameters and buffers of a module be views of this memory; copy: with the values that they have."""
    found: dict[tuple[str, bool], Tensor] = {(name, False): tensor for name, tensor in module.named_parameters()}
    found |= {(name, True): tensor for name, tensor in module.named_buffers()}
    if found.keys() != {(place.name, place.buffer) for place in layout.places}:
        raise ConfigError("the factory makes another module each time: its parameters have other names in a worker.")
    for place in layout.places:
        tensor, view = found[place.name, place.buffer], place.view(memory)
        if tuple(tensor.shape) != place.shape or tensor.dtype != place.dtype:
            raise ConfigError(
                f"the factory makes another module each time: {place.name} is {brief(tuple(tensor.shape))} in a "
                f"worker, {place.shape} before."
            )
        if copy:
            view.copy_(tensor.detach())
        _let_be(tensor, view)


def _let_be(tensor: Tensor, view: Tensor) -> None:
    """From now on the tensor of a module, to whoever refers to it, is this view."""
    if torch._has_compatible_shallow_copy_type(tensor, view):
        tensor.data = view
    else:  # of another kind of device
        trained = isinstance(tensor, nn.Parameter)
        torch.utils.swap_tensors(tensor, nn.Parameter(view, tensor.requires_grad) if trained else view)


class Buffers:
    """The buffers of a module, which lie in memory that all share, and stay there."""

    def __init__(self, module: nn.Module) -> None:
        self._places = [
            (part, name, f"{owner}.{name}".lstrip("."), buffer)
            for owner, part in module.named_modules()
            for name, buffer in part._buffers.items()
            if buffer is not None
        ]

    def keep(self) -> None:
        """Those that forward did not change in place but made anew are written to the memory that all share."""
        for part, name, whole, mine in self._places:
            buffer = part._buffers.get(name)
            if buffer is mine or buffer is None:
                continue
            if buffer.shape != mine.shape or buffer.dtype != mine.dtype:
                shape = tuple(mine.shape)
                raise ConfigError(f"forward gives the buffer {whole} another shape; workers share one of {shape}.")
            mine.copy_(buffer.detach())  # RACE(lost update): docs/races.md
            part._buffers[name] = mine

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Meanwhile the module has copies, which nobody else sees."""
        for part, name, _, mine in self._places:
            part._buffers[name] = mine.clone()
        try:
            yield
        finally:
            for part, name, _, mine in self._places:
                part._buffers[name] = mine


# -- the state of a rule ----------------------------------------------------------------------------------------------


class State(NamedTuple):
    """What a rule remembers, in a segment: for each worker how often it has stepped each parameter, then the slots of
    the flat part, then those of each other parameter. Nobody writes another worker's counts, so that none is lost."""

    counts: npt.NDArray[np.int64]
    flat: tuple[Tensor, ...]
    others: tuple[tuple[Tensor, ...], ...]

    def slots(self, layout: Layout) -> Iterator[tuple[Place, tuple[Tensor, ...]]]:
        """What is remembered of each parameter."""
        joined = layout.trained[: layout.joined]
        for place in joined:
            first = place.start // 4
            yield place, tuple(slot[first : first + place.cells].view(place.shape) for slot in self.flat)
        yield from zip(layout.trained[layout.joined :], self.others, strict=True)


def state_size(layout: Layout, slots: int, workers: int) -> int:
    """Bytes of the state of a rule with so many slots."""
    return _spans(layout, slots, workers)[-1]


def state_in(memory: Bytes, layout: Layout, slots: int, workers: int, there: Tensor | None = None) -> State:
    """The state in this memory; there: a copy of it on a device, where the slots are to be. Counts stay here."""
    trained, ends = layout.trained, _spans(layout, slots, workers)
    held = memory if there is None else there
    counts = memory[: 8 * workers * len(trained)].view(np.int64).reshape(workers, len(trained))
    begins = [ends[0] + 4 * k * layout.flat for k in range(slots)]
    flat = tuple(view_of(held, begin, (layout.flat,), (1,), torch.float32) for begin in begins)
    others = []
    for place, start in zip(trained[layout.joined :], ends[1:], strict=False):
        size = place.cells * place.dtype.itemsize
        plain = tuple(torch.empty(place.shape, device="meta").stride())
        others.append(tuple(view_of(held, start + k * size, place.shape, plain, place.dtype) for k in range(slots)))
    return State(counts, flat, tuple(others))


def count_bytes(layout: Layout, workers: int) -> int:
    """Bytes at the beginning of a state that are counts."""
    return _spans(layout, 0, workers)[0]


def _spans(layout: Layout, slots: int, workers: int) -> list[int]:
    """Where the counts end, where the flat slots do, and those of each other parameter."""
    ends = [-(-8 * workers * len(layout.trained) // _ALIGNED) * _ALIGNED]
    ends.append(-(-(ends[0] + 4 * slots * layout.flat) // _ALIGNED) * _ALIGNED)
    for place in layout.trained[layout.joined :]:
        ends.append(-(-(ends[-1] + slots * place.cells * place.dtype.itemsize) // _ALIGNED) * _ALIGNED)
    return ends
