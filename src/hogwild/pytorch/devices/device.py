"""A device: whether it is there, what its memory holds, and how tensors and work get to it."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hogwild.errors import ConfigError, brief
from hogwild.machine import memory
from hogwild.messages import listed

_KINDS = ("cuda", "xpu", "mps")
_PINNED = ("cuda", "xpu")  # to which copies from pinned memory run while other work goes on
_USED = 0.9  # of the memory that is free: PyTorch, and what a step makes, need some


class Device:
    """A device of PyTorch by its name. `free`: bytes that may be taken of its memory, None where nobody tells."""

    def __init__(self, name: str, free: int | None = None) -> None:
        self.name = name
        self.place = torch.device(name)
        self.free = free
        self._module: Any = getattr(torch, self.place.type, None)

    @property
    def is_processor(self) -> bool:
        """Whether it is the processor itself."""
        return str(self.place.type) == "cpu"

    def keep(self, tensor: Tensor) -> Tensor:
        """A copy there, for the whole run."""
        return tensor.to(self.place, copy=True)

    def send(self, tensor: Tensor) -> Tensor:
        """A copy there, for a step; from pinned memory, where that lets other work go on meanwhile."""
        if self.place.type in _PINNED:
            return tensor.pin_memory().to(self.place, non_blocking=True)
        return self.keep(tensor)

    def stream(self) -> Any:
        """A stream of its own for a worker; None on a device that has only one."""
        return self._module.Stream(self.place) if self.place.type in _PINNED else None

    def within(self, stream: Any) -> AbstractContextManager[Any]:
        """What is done inside is done by this stream."""
        return nullcontext() if stream is None else self._module.stream(stream)

    def wait(self) -> None:
        """Until all that it was told to do is done."""
        if hasattr(self._module, "synchronize") and not self.is_processor:
            self._module.synchronize()


def device_of(name: str) -> Device:
    """The device of this name; ConfigError, in one line, where there is none."""
    try:
        device = Device(name)
        torch.zeros(1, device=device.place).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, ImportError):
        found = listed(["cpu", *(kind for kind in _KINDS if _is_there(kind))])
        raise ConfigError(
            f"there is no device {brief(name)} here: PyTorch {torch.__version__} finds {found}."
        ) from None
    device.free = _free(device)
    return device


def _is_there(kind: str) -> bool:
    module = torch.backends.mps if kind == "mps" else getattr(torch, kind, None)
    return module is not None and bool(module.is_available())


def _free(device: Device) -> int | None:
    if device.is_processor:
        return memory() // 2  # the other half is what is sent there
    module: Any = getattr(torch, device.place.type, None)
    if hasattr(module, "mem_get_info"):
        return int(_USED * module.mem_get_info(device.place)[0])
    if hasattr(module, "recommended_max_memory"):
        return int(_USED * (module.recommended_max_memory() - module.current_allocated_memory()))
    return None


def check_room(device: Device, needed: int, remedy: str) -> None:
    """ConfigError, before anything is sent, for weights that the device cannot hold."""
    if device.free is not None and needed > device.free:
        raise ConfigError(
            f"the weights, and a step of each stream, need {needed / 1e9:.2f} GB, and {device.name} has "
            f"{device.free / 1e9:.2f} GB to give; {remedy}"
        )


def sent_in_pieces(device: Device, size: int) -> str:
    """What the user is told of samples that do not fit."""
    return (
        f"The samples ({size / 1e9:.2f} GB) do not fit on {device.name} beside the weights: they are sent batch by "
        "batch, while it works."
    )


def tensor_of(array: npt.NDArray[Any]) -> Tensor:
    """A tensor over an array that is only read; of 16 bits without sign by the bits: `& 0xFFFF` has the numbers."""
    if array.dtype == np.uint16:
        array = array.view(np.int16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of arrays that cannot be written
        return torch.from_numpy(array)
