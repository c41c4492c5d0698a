"""Visits on a device: a stream for each worker, over one copy of the weights there, which all write without locks."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import torch

from hogwild.errors import ConfigError, shorten
from hogwild.executor.backends.backend import Stateless
from hogwild.executor.backends.compiled import CompiledThreads
from hogwild.executor.plan import Plan
from hogwild.executor.sharing import WeightStore
from hogwild.kernels.loop.span import Span
from hogwild.pytorch.devices.device import device_of
from hogwild.pytorch.devices.module import ModuleWork
from hogwild.pytorch.devices.profiling import OperationProfile
from hogwild.pytorch.devices.sparse_mlp import SparseMLPWork
from hogwild.pytorch.devices.text import TextWork

_WORKS: dict[str, Any] = {"module": ModuleWork, "sparse_mlp": SparseMLPWork, "text_classifier": TextWork}


class DeviceStreams(Stateless):
    """Streams of a device. What is done there the form of the program says (`TableWork`)."""

    trace = None
    notes: Sequence[str] = ()
    span_seconds = 0.05  # at its end the device is waited for

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._device = device_of(plan.config.device)
        self._work = _WORKS[plan.program.name](plan, self._device)
        self.group: int = self._work.group
        self._open = self._failed = False
        self._threads = torch.get_num_threads()

    def open(self, store: WeightStore) -> None:
        """Weights and samples go to the device."""
        self._count = store.workers
        try:
            self.notes = self._work.open(store)
            self._device.wait()
        except torch.OutOfMemoryError as error:
            raise self._full(error) from error
        self._open = True

    def prepare(self) -> float:
        """Streams for the workers; returns seconds."""
        began = time.perf_counter()
        if self._device.is_processor:
            torch.set_num_threads(1)  # a worker; it holds for threads that are made from now on
        self._streams = [self._device.stream() for _ in range(self._count)]
        self._operations = OperationProfile(self._device)
        return time.perf_counter() - began

    def begin(self, position: int) -> None:
        """Nothing is counted in rounds."""

    def run(self, worker: int, span: Span) -> float:
        """Make the visits of a span, and wait for them; returns the worker's new sum of losses."""
        with self._operations.looking(worker), self._device.within(self._streams[worker]):
            try:
                loss = span.loss + float(self._work.run(worker, span))
            except torch.OutOfMemoryError as error:
                raise self._full(error) from error
        if not math.isfinite(loss):
            self.fetch()  # for whoever says how large the weights are
        return loss

    def _full(self, error: Exception) -> ConfigError:
        return ConfigError(
            f"{self._device.name} has too little memory ({shorten(error)}); use smaller batches, fewer --threads, or "
            f"{self._work.remedy}"
        )

    def probe(self, weights: Any, spans: Sequence[Span], most: float = math.inf) -> float:
        """A learning rate is found by compiled code, on the processor."""
        return CompiledThreads(self._plan).probe(weights, spans, most)

    def fetch(self) -> None:
        """The weights come home; workers may be writing."""
        if self._open:
            self._work.fetch()

    def send(self) -> None:
        """The weights go to the device; workers are parked."""
        self._work.send()
        self._device.wait()

    def stop(self) -> None:
        """A worker has failed; nobody waits for another."""
        self._failed = True

    def close(self) -> None:
        """The weights come home, unless the device has failed; its memory is given back."""
        if self._open:
            if not self._failed:
                self._work.fetch()
            self._open = False
            del self._work
            torch.set_num_threads(self._threads)
