"""Gradient errors of a run: the probes that go into compiled code, and their summary for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from hogwild.arrays import CELL, PAD, Room, Table, make_scratch, split_tables
from hogwild.kernels.loop.trace import (
    BUCKETS,
    DELAY_MAX,
    DELAY_SUM,
    ERRORS,
    EXACT,
    GRADIENTS,
    KEPT,
    PRIVATE,
    READ_OVER,
    SIZED,
    STEPS,
    WRITE_OVER,
    Traced,
)

SIZE_EVERY = 64  # visits between two of which the gradient is computed twice


class Trace:
    """Counts of all workers in one run. Each epoch is summarised, then forgotten."""

    def __init__(self, tables: Mapping[str, Table], room: Room, every: int = SIZE_EVERY) -> None:
        self._tables, self._wholes = split_tables(tables, room)
        self._room = room
        self._every = every
        self._clock = np.zeros(PAD, np.int64)
        entries = sum(table.rows for table in self._tables.values()) + 1
        self._written = np.zeros(entries, np.int64)
        self._writing = np.zeros(entries, np.int64)
        self.probes: list[Traced] = []

    def mark_private(self, private: Mapping[str, int]) -> None:
        """Rows that only their worker writes cannot be overwritten by others."""
        first = 0
        for name, table in self._tables.items():
            self._written[first : first + private.get(name, 0)] = PRIVATE
            first += table.rows
        if self._wholes and all(private.get(name, 0) == table.rows for name, table in self._wholes.items()):
            self._written[-1] = PRIVATE

    def add_worker(self, weights: Any) -> Traced:
        """The probe of the next worker, for its own weights."""
        # Zero pages that nobody touches take no memory: a snapshot holds only rows that were read.
        snapshot = type(weights)(*(np.zeros(array.shape, array.dtype) for array in weights))
        places, wholes = np.zeros((len(self._tables), 4), np.int64), np.zeros((len(self._wholes), 3), np.int64)
        first = 0
        for k, (name, table) in enumerate(self._tables.items()):
            array, copy = getattr(weights, name), getattr(snapshot, name)
            places[k] = first, table.cells * CELL, array.ctypes.data, copy.ctypes.data
            first += table.rows
        for k, name in enumerate(self._wholes):
            array, copy = getattr(weights, name), getattr(snapshot, name)
            wholes[k] = array.nbytes, array.ctypes.data, copy.ctypes.data
        probe = Traced(
            clock=self._clock,
            written=self._written,
            writing=self._writing,
            counts=np.zeros(PAD, np.int64),
            delays=np.zeros(BUCKETS + PAD, np.int64),
            sizes=np.zeros(KEPT, np.float64),
            places=places,
            wholes=wholes,
            worker=len(self.probes),
            every=self._every,
            snapshot=snapshot,
            spare=make_scratch(self._room, np.uint64(0)),
        )
        self.probes.append(probe)
        return probe

    def take(self) -> tuple[dict[str, Any], ...]:
        """Summarise what was counted since the last call, one entry a worker; start again from zero."""
        result = tuple(_summary(probe) for probe in self.probes)
        for probe in self.probes:
            probe.counts[:] = 0
            probe.delays[:] = 0
        return result


def _summary(probe: Traced) -> dict[str, Any]:
    counts = probe.counts
    gradients = int(counts[GRADIENTS])
    sized = int(min(counts[SIZED], len(probe.sizes)))
    sizes = probe.sizes[:sized]
    return {
        "worker": probe.worker,
        "gradients": gradients,
        "errors": int(counts[ERRORS]),
        "error_rate": int(counts[ERRORS]) / gradients if gradients else 0.0,
        "read_overwrites": int(counts[READ_OVER]),
        "write_overwrites": int(counts[WRITE_OVER]),
        "delay": _delay(_delay_counts(probe.delays), int(counts[DELAY_SUM]), int(counts[DELAY_MAX])),
        "wrong": {
            "samples": sized,
            "mean": float(sizes.mean()) if sized else 0.0,
            "p50": float(np.median(sizes)) if sized else 0.0,
            "p99": float(np.quantile(sizes, 0.99)) if sized else 0.0,
            "max": float(sizes.max()) if sized else 0.0,
        },
    }


def _delay_counts(delays: Any) -> dict[int, int]:
    """How many gradients were late by how much; delays past 255 are rounded down by a thirtieth at the most."""
    return {_delay_in(int(bucket)): int(delays[bucket]) for bucket in np.flatnonzero(delays)}


def _delay_in(bucket: int) -> int:
    if bucket < EXACT:
        return bucket
    doublings, inside = divmod(bucket - EXACT, STEPS)
    return int((EXACT << doublings) * (1 + inside / STEPS))


def _delay(counts: Mapping[int, int], total: int, largest: int) -> dict[str, Any]:
    gradients = sum(counts.values())
    return {
        "mean": total / gradients if gradients else 0.0,
        "p50": _percentile(counts, 0.50),
        "p99": _percentile(counts, 0.99),
        "max": largest,
        "counts": dict(counts),
    }


def _percentile(counts: Mapping[int, int], share: float) -> int:
    left = share * sum(counts.values())
    for delay in sorted(counts):
        left -= counts[delay]
        if left <= 0:
            return delay
    return 0


def add_up(workers: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """Workers or epochs together: sums, and the rates and percentiles of the whole."""
    names = ("gradients", "errors", "read_overwrites", "write_overwrites")
    total: dict[str, Any] = {name: sum(entry[name] for entry in workers) for name in names}
    gradients = total["gradients"]
    total["error_rate"] = total["errors"] / gradients if gradients else 0.0
    counts: Counter[int] = Counter()
    for entry in workers:
        counts.update(entry["delay"]["counts"])
    late = round(sum(entry["delay"]["mean"] * entry["gradients"] for entry in workers))
    total["delay"] = _delay(counts, late, max((entry["delay"]["max"] for entry in workers), default=0))
    sized = sum(entry["wrong"]["samples"] for entry in workers)
    wrong = sum(entry["wrong"]["mean"] * entry["wrong"]["samples"] for entry in workers)
    total["wrong"] = {
        "samples": sized,
        "mean": wrong / sized if sized else 0.0,
        "max": max((entry["wrong"]["max"] for entry in workers), default=0.0),
    }
    return total
