"""The weights of a run, and which of them the workers hold in common: one copy, private hot rows, or whole replicas.

Lock-free is not contention-free: a cache line that two cores write travels between them at every visit. Private
copies avoid that, and are merged all the time: see merging.py.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from hogwild.arrays import CELL, Floats, Table
from hogwild.errors import ConfigError
from hogwild.executor.delta import Delta, Namer
from hogwild.executor.merging import ALONE, Brake, Copies, Pace, Slice, Tier, tiers_of
from hogwild.executor.plan import Plan
from hogwild.executor.spans import SPAN_SECONDS
from hogwild.machine import check_memory, cores
from hogwild.mapping import make_private, map_file, memory_file, round_to_pages

# -- Arrays whose leading part is private to a worker while the rest is common, with no branch in compiled code -------
# The common array lies in a memory file. A worker maps that file once more and lays private memory over the first
# pages of its own mapping: to a kernel it is one plain array.


class Handle(NamedTuple):
    """A weight array in a memory file: its open file, by which another process maps the same memory."""

    file: int
    shape: tuple[int, ...]
    dtype: str = "float32"


class CommonArray:
    """A flat float32 array in a memory file, of which workers can have views with a private beginning."""

    def __init__(self, values: Floats) -> None:
        self._bytes = max(round_to_pages(values.nbytes), mmap.PAGESIZE)
        self._file = memory_file(self._bytes)
        self._cells = values.size
        self.array = self.view(0)
        self.array[:] = values.reshape(-1)
        self.handle = Handle(self._file.fileno(), values.shape)

    def view(self, private_cells: int) -> Floats:
        """A view whose first cells (whole pages) are private and begin as a copy of the common ones."""
        view = map_file(self._file.fileno(), self._bytes, self._cells)
        size = round_to_pages(private_cells * CELL)
        if size:
            make_private(view.ctypes.data, size)
            cells = min(size // CELL, self._cells)
            view[:cells] = self.array[:cells]
        return view


def map_weights(kind: type, handles: Mapping[str, Handle]) -> Any:
    """Weights of this NamedTuple type in memory that another process made, for both to read and write without locks.

    The files of the handles must be open in this process: inherited, or sent to it (`socket.send_fds`). They may be
    closed afterwards.
    """
    fields = {}
    for name, handle in handles.items():
        size = CELL * math.prod(handle.shape)
        there = os.fstat(handle.file).st_size
        if handle.dtype != "float32" or there < size:
            raise ConfigError(f"the memory of {name} holds {there} bytes, not {handle.shape} of {handle.dtype}.")
        fields[name] = map_file(handle.file, there, size // CELL).reshape(handle.shape)
    return kind(**fields)


HOT_ROWS = 1 << 16  # private beginning of each ranked array under `hot`, at the most
HOT_BYTES = 1 << 20  # and in bytes: half of a usual L2 cache
# A worker may be ahead of the others by these parts of an epoch and of all visits so far, for each pair of workers:
# private rows must not drift apart, neither in a short run nor at the beginning of a long one.
_PART_OF_EPOCH, _PART_OF_VISITS = 16, 8
SHORT = 4000  # visits of an epoch: below that there is little to gain, and one copy learns best
TURN_SECONDS = 0.001  # of work between two turns, where the user names no number of visits


class WeightStore:
    """The weights of all workers of a run.

    Parameters
    ----------
    weights : what is there; with nothing private, every worker works on it.
    private : how many leading rows of each array are private to a worker.
    workers : who works on them, each with copies of its own; `make_store` says how many.
    place : `heap`, or `shared`: all arrays are moved to memory that other processes can map (`handles`).
    """

    def __init__(
        self, name: str, weights: Any, tables: Mapping[str, Table], private: Mapping[str, int], workers: int,
        pace: Pace = ALONE, place: Literal["heap", "shared"] = "heap",
    ) -> None:  # fmt: skip
        self.name = name
        self.workers = workers
        self.pace = pace
        self.private = private
        self.tables = dict(tables)
        self.slices: dict[str, list[Slice]] = {}
        self._memory: dict[str, CommonArray] = {}
        fields: dict[str, Floats] = {}
        views: list[dict[str, Floats]] = [{} for _ in range(workers)]
        tiers: list[list[Tier]] = [[] for _ in range(workers)]
        for array_name, array in zip(weights._fields, weights, strict=True):
            table = tables[array_name]
            rows = min(private.get(array_name, 0), table.rows)
            common, per_worker = self._share(array_name, array, rows * table.cells, workers, place == "shared")
            fields[array_name] = common
            slices = tiers_of(common.reshape(-1), table, rows)
            self.slices[array_name] = [where for tier in slices for where in tier]
            for worker, view in enumerate(per_worker):
                views[worker][array_name] = view
                flat = view.reshape(-1)
                for tier in slices:
                    tiers[worker].append(Tier([where.part(flat) for where in tier], worker / workers))
        self.weights = type(weights)(**fields)
        prefix = _private_prefix(tables, private)
        self.copies = [
            Copies(type(weights)(**views[worker]), prefix, tiers[worker], Brake(workers), pace)
            for worker in range(workers)
        ]

    def _share(
        self, name: str, array: Any, private_cells: int, workers: int, shared: bool
    ) -> tuple[Any, list[Any]]:
        whole = private_cells >= array.size
        if shared or 0 < private_cells < array.size:
            common = self._memory[name] = CommonArray(array)
            views = [common.view(0 if whole else private_cells).reshape(array.shape) for _ in range(workers)]
            array = common.array.reshape(array.shape)
            return array, [view.copy() for view in views] if whole and private_cells else views
        if private_cells == 0:
            return array, [array] * workers
        return array, [array.copy() for _ in range(workers)]

    def view(self, worker: int) -> Any:
        """The weights as a worker sees them: the common ones, its private copies before or in place of them."""
        return self.copies[worker].weights

    def handles(self) -> dict[str, Handle]:
        """By which another process maps the common weights (`map_weights`); of a store in shared memory."""
        missing = [name for name in self.weights._fields if name not in self._memory]
        if missing:
            raise ConfigError(f"{', '.join(missing)} are not in shared memory; make the store with place='shared'.")
        return {name: memory.handle for name, memory in self._memory.items()}

    def open_delta(self, names: Namer) -> Delta:
        """What changes from now on, for others. names: `row_ids` of the program."""
        return Delta(self.weights, self.tables, self.slices, names)

    @property
    def span_seconds(self) -> float:
        """Aim of a span: a worker with private copies comes back often, to merge."""
        return TURN_SECONDS if self.copies[0].tiers else SPAN_SECONDS

    def collect(self) -> None:
        """With the workers parked: everything that anyone has changed is in the common weights."""
        for copies in self.copies:
            copies.merge_all()

    def refresh(self) -> None:
        """With the workers parked and after `collect`: all copies equal the common weights."""
        for copies in self.copies:
            copies.refresh()


def make_store(plan: Plan, weights: Any, sharing: str) -> WeightStore:
    """The weights of a run, which may be a copy of the program's, under a sharing.

    Where copies are private there is one worker a core, however many threads there are (`Crew`). One without a core
    would visit, once it has one, from a copy of long ago, and what it changed would come late: rows that are merged at
    every fourth or sixteenth turn only would take the same early steps in every copy. Whoever sets the pace by hand
    gets a worker for each thread.
    """
    config, workers = plan.config, plan.workers
    hot = config.hot_rows or plan.program.hot_rows
    one_copy = config.mode != "hogwild" or (sharing == "all" and plan.visits < SHORT)
    private = {} if one_copy else private_rows(sharing, plan.tables, workers, hot)
    if private and not config.merge_every:
        workers = min(workers, cores())
    needed = 2 * CELL * workers * sum(rows * plan.tables[name].cells for name, rows in private.items())
    check_memory(needed, f"the private copies of {workers} workers need", "use --sharing all.")
    return WeightStore(sharing, weights, plan.tables, private, workers, merge_pace(plan, workers) if private else ALONE)


def merge_pace(plan: Plan, workers: int) -> Pace:
    """How far a worker may go before it merges: as the user says; else as the program likes it, and less if need be."""
    liked = plan.program.merge_every
    if plan.config.merge_every:
        return Pace(plan.config.merge_every, timed=False)
    if workers == 1:
        return ALONE
    # What a worker has not merged is unknown to all others, and each of these has the like: so by their pairs.
    others = workers - 1
    pairs = workers * others
    # In a short epoch the part itself gets smaller: steps are long there, and there is no time to gain.
    most = max(1, plan.visits * min(plan.visits, SHORT) // (SHORT * _PART_OF_EPOCH * pairs))
    most = min(most, max(1, liked // others**2)) if liked else most
    return Pace(most, _PART_OF_VISITS * pairs, timed=not liked)


def private_rows(name: str, tables: Mapping[str, Table], workers: int, hot_rows: int = 0) -> dict[str, int]:
    """How many leading rows of each array are private under a sharing.

    Scalars are private under every sharing once there are two workers: a cell that every visit writes is nothing but
    contention. (`make_store` leaves that out under `all` where samples are few.)
    """
    if workers == 1 and name == "all":
        return {}
    rows: dict[str, int] = {}
    hot = _hot_prefix([table.cells for table in tables.values() if table.kind == "ranked"], hot_rows)
    for array, table in tables.items():
        if name == "replica" or table.kind == "scalar" or (name == "hot" and table.kind == "dense"):
            rows[array] = table.rows
        elif name == "hot":
            rows[array] = min(hot, table.rows)
    return rows


def _hot_prefix(cells: list[int], wanted: int) -> int:
    """Private rows at the beginning of ranked arrays of so many cells a row: one number for all, as in `Step`."""
    if not cells:
        return 0
    rows = wanted or min(HOT_ROWS, HOT_BYTES // (CELL * max(cells)))
    return whole_pages(max(1, rows), cells)


def whole_pages(rows: int, cells: list[int]) -> int:
    """The least number of rows, at least `rows`, that end at the end of a page whatever their cells of these."""
    page = round_to_pages(1)
    step = math.lcm(*(page // math.gcd(page, CELL * count) for count in cells))
    return -(-rows // step) * step


def _private_prefix(tables: Mapping[str, Table], private: Mapping[str, int]) -> int:
    """`Step.private`: of the ranked arrays or, where there are none, of the dense ones, private as a whole."""
    kinds = {table.kind for table in tables.values()}
    kind = "ranked" if "ranked" in kinds else "dense"
    return max((private.get(name, 0) for name, table in tables.items() if table.kind == kind), default=0)
