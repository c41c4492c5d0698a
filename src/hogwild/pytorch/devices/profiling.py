"""For `--profile`: the operations of PyTorch, by its own profiler, in the first spans of the first worker."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from torch.profiler import ProfilerActivity, profile

from hogwild.pytorch.devices.device import Device
from hogwild.timeline import Operation, Timeline, current

_SPANS = 4  # that are looked at: the first has one visit
_EVENTS = 5000  # of the trace, at the most
_MICRO = 1e-6
_KINDS = {"cuda": "CUDA", "xpu": "XPU"}


class OperationProfile:
    """Looks at operations while a timeline is kept, and tells them to it. Made in the main thread, as the profiler
    wants it."""

    def __init__(self, device: Device) -> None:
        self._timeline = current()
        self._device, self._spans, self._told = device, 0, 0
        self._kinds = {ProfilerActivity.CPU}
        if device.place.type in _KINDS:
            self._kinds.add(getattr(ProfilerActivity, _KINDS[device.place.type]))
        if self._timeline is not None:
            os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it would write to standard error
            with profile(activities=self._kinds):
                pass

    def looking(self, worker: int) -> AbstractContextManager[Any]:
        """Around a span of a worker."""
        if self._timeline is None or worker or self._spans >= _SPANS:
            return nullcontext()
        self._spans += 1
        return self._look(self._timeline)

    @contextmanager
    def _look(self, timeline: Timeline) -> Iterator[None]:
        with profile(activities=self._kinds) as found:
            began = time.perf_counter()
            yield
        for each in found.key_averages():
            there = getattr(each, "self_device_time_total", 0)
            timeline.count(each.key, Operation(each.count, _MICRO * each.self_cpu_time_total, _MICRO * there))
        for event in found.events()[: _EVENTS - self._told]:
            self._told += 1
            here = event.device_type.name == "CPU"
            track = f"PyTorch, thread {event.thread}" if here else f"{self._device.name}, stream {event.thread}"
            start, stop = (began + _MICRO * moment for moment in (event.time_range.start, event.time_range.end))
            timeline.add(event.name, start, stop, track)
