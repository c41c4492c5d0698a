"""Which weights the workers hold in common: one copy, private hot rows, or whole replicas.

Lock-free is not contention-free: a cache line that two cores write travels between them at every visit. Private
copies avoid that. Each worker keeps, for its private cells, a base (their value at the last merge); merging adds
mine - base to the common copy, under the lock of a slice, and takes over what others have added. No difference is
lost: each is added exactly once, by the worker that made it.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import CELL, Floats, Table
from hogwild.executor.memory import CommonArray, round_to_pages
from hogwild.kernels.merge import merge_mixed_rows, merge_rows

SLICE_BYTES = 1 << 18  # merged under one lock: about 20 microseconds
MERGE_VISITS = 500  # visits of a worker between two merges of the same row, at the least
MERGE_SHARE = 0.08  # of a worker's time that merging may take
HOT_BYTES = 1 << 20  # private beginning of each ranked array under `hot`: half of a usual L2 cache


@dataclass(frozen=True)
class Slice:
    """A part of a weight array that is merged at once. lock: held by whoever merges it; mixed: not all additive."""

    master: Floats
    additive: Any
    mixed: bool
    lock: threading.Lock
    start: int
    stop: int


class Part(NamedTuple):
    """One worker's copy of a slice, and its value at the last merge."""

    slice: Slice
    mine: Floats
    base: Floats

    def merge(self) -> None:
        """Add what changed to the common copy, and take over what others added. The lock is held."""
        where = self.slice
        if where.mixed:
            merge_mixed_rows(where.master, self.mine, self.base, where.additive)
        else:
            merge_rows(where.master, self.mine, self.base)

    def refresh(self) -> None:
        """Take over the common copy as it is."""
        # Cells that are not additive too: `settle` has set the stamps of penalties back to the beginning of an epoch.
        self.mine[:] = self.base[:] = self.slice.master


class Copies:
    """The private copies of one worker, and what is still to be merged."""

    def __init__(self, weights: Any, private: int, share: float) -> None:
        self.weights = weights
        self.private = private
        self.share = np.float32(share)
        self.parts: list[Part] = []
        self.always: list[Part] = []  # merged at every span
        self._queue: deque[int] = deque()
        self._owed = 0.0
        self._work = self._merging = 0.0  # seconds
        self._visits = self._merges = 0

    def start_at(self, turn: float) -> None:
        """Begin the rotation at a point of its own, so that workers seldom meet at a slice."""
        self._queue = deque(range(len(self.parts)))
        self._queue.rotate(-int(turn * len(self.parts)))

    def merge_some(self, visits: int, seconds: float, every: int) -> None:
        """After a span: merge so many slices that all come round once in `every` visits (0: as often as is cheap)."""
        for part in self.always:
            with part.slice.lock:
                part.merge()
        if not self.parts:
            return
        self._visits += visits
        self._work += seconds
        self._owed += visits * len(self.parts) / (every or self._affordable())
        due = min(int(self._owed), len(self.parts))
        self._owed -= int(self._owed)
        began = time.perf_counter()
        for _ in range(due):
            number = self._queue.popleft()
            part = self.parts[number]
            if part.slice.lock.acquire(blocking=False):
                try:
                    part.merge()
                finally:
                    part.slice.lock.release()
                self._queue.append(number)
            else:  # somebody else merges it now: take the next one first, nobody waits
                self._queue.insert(min(1, len(self._queue)), number)
        self._merging += time.perf_counter() - began
        self._merges += due

    def _affordable(self) -> float:
        """Visits between two merges of a row such that merging takes MERGE_SHARE of the time of the work."""
        if not self._merges or not self._work:
            return MERGE_VISITS
        rotation = self._merging / self._merges * len(self.parts)
        return max(MERGE_VISITS, rotation * self._visits / (MERGE_SHARE * self._work))

    def merge_all(self) -> None:
        """Add all that this worker has changed; the workers are parked."""
        for part in (*self.parts, *self.always):
            part.merge()

    def refresh(self) -> None:
        """Take over the common copy as it is; the workers are parked and everything is merged."""
        for part in (*self.parts, *self.always):
            part.refresh()


class Sharing:
    """The weights of all workers of a run."""

    def __init__(self, name: str, workers: int, merge_every: int = 0) -> None:
        self.name = name
        self.merge_every = merge_every
        self.copies: list[Copies] = []
        self._workers = workers

    @property
    def longest_span(self) -> int:
        """Visits after which a worker must come back to merge."""
        private = any(copies.parts for copies in self.copies)
        return max(1, self.merge_every // 2) if private and self.merge_every else 1 << 40

    def place(self, weights: Any, tables: Mapping[str, Table], private: Mapping[str, int]) -> Any:
        """Give each worker its copies; `private` says how many leading rows of each array. Returns the common weights.

        With nothing private, every worker works on `weights` itself.
        """
        fields: dict[str, Floats] = {}
        views: list[dict[str, Floats]] = [{} for _ in range(self._workers)]
        parts: list[list[Part]] = [[] for _ in range(self._workers)]
        always: list[list[Part]] = [[] for _ in range(self._workers)]
        ranked = 0
        for name, array in zip(weights._fields, weights, strict=True):
            table = tables[name]
            rows = min(private.get(name, 0), table.rows)
            common, per_worker = _share_array(array, rows * table.cells, self._workers)
            fields[name] = common
            if table.kind == "ranked":
                ranked = max(ranked, rows)
            slices = _slices(common.reshape(-1), table, rows)
            for worker, view in enumerate(per_worker):
                views[worker][name] = view
                flat = view.reshape(-1)
                target = always if table.kind == "scalar" else parts
                for piece in slices:
                    mine = flat[piece.start : piece.stop]
                    target[worker].append(Part(piece, mine, mine.copy()))
        for worker in range(self._workers):
            copies = Copies(type(weights)(**views[worker]), ranked, 1.0 / self._workers)
            copies.parts, copies.always = parts[worker], always[worker]
            copies.start_at(worker / self._workers)
            self.copies.append(copies)
        return type(weights)(**fields)

    def collect(self) -> None:
        """With the workers parked: everything that anyone has changed is in the common weights."""
        for copies in self.copies:
            copies.merge_all()

    def refresh(self) -> None:
        """With the workers parked and after `collect`: all copies equal the common weights."""
        for copies in self.copies:
            copies.refresh()


def private_rows(name: str, tables: Mapping[str, Table], workers: int, hot_rows: int = 0) -> dict[str, int]:
    """How many leading rows of each array are private under a sharing.

    Scalars are private under every sharing once there are two workers: a cell that every visit writes is nothing but
    contention.
    """
    if workers == 1 and name == "all":
        return {}
    rows: dict[str, int] = {}
    for array, table in tables.items():
        if name == "replica" or table.kind == "scalar" or (name == "hot" and table.kind == "dense"):
            rows[array] = table.rows
        elif name == "hot":
            rows[array] = whole_pages(hot_rows or HOT_BYTES // (CELL * table.cells), table)
    return rows


def whole_pages(rows: int, table: Table) -> int:
    """The least number of rows, at least `rows`, that end at the end of a page; all rows if that is past the end."""
    row_bytes = CELL * table.cells
    page = round_to_pages(1)
    step = page // math.gcd(page, row_bytes)
    return min(-(-rows // step) * step, table.rows)


def _share_array(array: Any, private_cells: int, workers: int) -> tuple[Any, list[Any]]:
    if private_cells == 0:
        return array, [array] * workers
    if private_cells >= array.size:
        return array, [array.copy() for _ in range(workers)]
    common = CommonArray(array)
    views = [common.view(private_cells).reshape(array.shape) for _ in range(workers)]
    return common.array.reshape(array.shape), views


def _slices(flat: Floats, table: Table, rows: int) -> list[Slice]:
    per_slice = max(1, SLICE_BYTES // (CELL * table.cells)) * table.cells
    end = rows * table.cells
    additive = table.mask()
    mixed = not additive.all()
    cuts = [(start, min(start + per_slice, end)) for start in range(0, end, per_slice)]
    return [Slice(flat[a:b], additive, mixed, threading.Lock(), a, b) for a, b in cuts]
