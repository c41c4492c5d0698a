"""Gradient errors of a run: the probes that go into compiled code, and their summary for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from hogwild.arrays import CELL, PAD, Room, Table, limited_scratch, split_tables
from hogwild.kernels.loop.trace import (
    BUCKETS,
    DELAY_MAX,
    DELAY_SUM,
    DELAYED,
    ERRORS,
    EXACT,
    GRADIENTS,
    KEPT,
    LOOKED_AT,
    READ_OVER,
    STEPS,
    WRITE_OVER,
    Traced,
)

LOOK_EVERY = 64  # visits of a worker, of which one is looked at
KINDS = ("errors", "read_overwrites", "write_overwrites", "delayed")
"""What is counted of the gradients that are looked at."""
_CELLS = (ERRORS, READ_OVER, WRITE_OVER, DELAYED)


class Counted(Protocol):
    """What a worker has counted: see `kernels/loop/trace.py`."""

    @property
    def worker(self) -> int: ...
    @property
    def counts(self) -> Any: ...
    @property
    def delays(self) -> Any: ...
    @property
    def sizes(self) -> Any: ...


class TraceCells(NamedTuple):
    """What one worker of many has counted, in arrays of all of them."""

    worker: int
    counts: Any
    delays: Any
    sizes: Any


class Trace:
    """Counts of all workers in one run. Each epoch is summarised, then forgotten."""

    def __init__(self, tables: Mapping[str, Table], room: Room, workers: int, every: int = LOOK_EVERY) -> None:
        self._all, (self._tables, self._wholes) = tables, split_tables(tables, room)
        self._room = room
        self._every = every
        self._made = np.zeros(workers * PAD, np.int64)
        self.probes: list[Traced] = []

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
        cells = max((table.cells for table in self._tables.values()), default=0)
        copies = np.zeros((2, self._room.rows * cells + int(wholes[:, 0].sum()) // CELL), np.float32)
        before, after = (copies.ctypes.data + k * copies.strides[0] for k in range(2))
        probe = Traced(
            made=self._made, counts=np.zeros(PAD, np.int64), delays=np.zeros(BUCKETS + PAD, np.int64),
            sizes=np.zeros(KEPT, np.float64), places=places, wholes=wholes,
            made_at=self._made.ctypes.data + len(self.probes) * PAD * self._made.itemsize, before=before, after=after,
            stride=cells * CELL, worker=len(self.probes), every=self._every, snapshot=snapshot,
            spare=limited_scratch(self._room, self._all, np.uint64(0)), copies=copies,
        )  # fmt: skip
        self.probes.append(probe)
        return probe

    def take(self) -> tuple[dict[str, Any], ...]:
        """Summarise what was counted since the last call, one entry a worker; start again from zero."""
        result = tuple(summary_of(probe) for probe in self.probes)
        for probe in self.probes:
            probe.counts[:] = 0
            probe.delays[:] = 0
        return result


def summary_of(probe: Counted) -> dict[str, Any]:
    """What a worker found, for people and files."""
    counts = probe.counts
    looked_at = int(counts[LOOKED_AT])
    return {
        "worker": probe.worker,
        "gradients": int(counts[GRADIENTS]),
        "looked_at": looked_at,
        **{kind: int(counts[cell]) for kind, cell in zip(KINDS, _CELLS, strict=True)},
        "error_rate": _share(int(counts[ERRORS]), looked_at),
        "delay": _delay(_delay_counts(probe.delays), int(counts[DELAY_SUM]), int(counts[DELAY_MAX])),
        "wrong": _wrong(probe.sizes[: min(looked_at, len(probe.sizes))]),
    }


def _wrong(sizes: Any) -> dict[str, Any]:
    """How far gradients were from those of their moment."""
    there = len(sizes) > 0
    return {
        "samples": len(sizes),
        "mean": float(sizes.mean()) if there else 0.0,
        "p50": float(np.median(sizes)) if there else 0.0,
        "p99": float(np.quantile(sizes, 0.99)) if there else 0.0,
        "max": float(sizes.max()) if there else 0.0,
    }


def counted_summary(
    worker: int, counts: Mapping[str, int], delays: Mapping[int, int], sizes: Sequence[float]
) -> dict[str, Any]:  # fmt: skip
    """The same where a worker looks at every gradient and counts versions: delays, and how many had each; sizes: how
    wrong some of them were."""
    made = sum(delays.values())
    late = sum(delay * count for delay, count in delays.items())
    return {
        "worker": worker, "gradients": made, "looked_at": made, **{kind: counts[kind] for kind in KINDS},
        "error_rate": _share(counts["errors"], made), "delay": _delay(delays, late, max(delays, default=0)),
        "wrong": _wrong(np.array(sizes)),
    }  # fmt: skip


def _share(count: int, whole: int) -> float:
    return count / whole if whole else 0.0


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
    names = ("gradients", "looked_at", *KINDS)
    total: dict[str, Any] = {name: sum(entry[name] for entry in workers) for name in names}
    total["error_rate"] = _share(total["errors"], total["looked_at"])
    counts: Counter[int] = Counter()
    for entry in workers:
        counts.update(entry["delay"]["counts"])
    late = round(sum(entry["delay"]["mean"] * entry["looked_at"] for entry in workers))
    total["delay"] = _delay(counts, late, max((entry["delay"]["max"] for entry in workers), default=0))
    sized = sum(entry["wrong"]["samples"] for entry in workers)
    wrong = sum(entry["wrong"]["mean"] * entry["wrong"]["samples"] for entry in workers)
    total["wrong"] = {
        "samples": sized,
        "mean": wrong / sized if sized else 0.0,
        "max": max((entry["wrong"]["max"] for entry in workers), default=0.0),
    }
    return total
