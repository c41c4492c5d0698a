"""Programs that have a second form, in PyTorch, for devices with memory of their own such as GPUs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hogwild.config import TrainConfig
from hogwild.errors import ConfigError
from hogwild.programs.program import CompiledProgram


class DeviceProgram(CompiledProgram):
    """A program of compiled code with a form for devices: `hogwild.pytorch.devices`, imported when it is asked for."""

    sums_visits = True
    """Whether visits of one sample are summed into one update on a device (`TrainConfig.batch`)."""

    def check_device(self, config: TrainConfig) -> None:
        """ConfigError where there is no PyTorch or no such device, or an option has no effect there."""
        if not config.device:
            return
        if config.batch and not self.sums_visits:
            raise ConfigError(f"batch is {config.batch}; a visit of this model is a batch already: see batch_size.")
        _devices("device").device_of(config.device)

    def backend(self, config: TrainConfig) -> Any:
        """Compiled code, or streams of a device."""
        return _devices("backend").DeviceStreams if config.device else None


def _devices(name: str) -> Any:
    """A module by name: PyTorch may be missing, and its package stands above this one."""
    import_module("hogwild.pytorch").require_torch()
    return import_module(f"hogwild.pytorch.devices.{name}")
