"""A machine that is simulated, and the arrays by which compiled code does it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hogwild.arrays import CELL, PAD, Scratch, aligned_floats, limited_scratch, numbered_rows, split_tables
from hogwild.errors import ConfigError
from hogwild.executor.plan import Plan
from hogwild.executor.sharing import SHORT
from hogwild.executor.trace import LOOK_EVERY
from hogwild.kernels.compiler.rng import seeds
from hogwild.kernels.loop.trace import BUCKETS, KEPT
from hogwild.kernels.loop.virtual import Costs, Rules, Virtual
from hogwild.machine import check_memory

MOST_WORKERS = 256
_LINE = 64 // CELL  # cells of a cache line
_STREAM = 0x51B  # of the random numbers of the clock, beside those of the workers


@dataclass(frozen=True)
class Pace:
    """How long visits take: what `measure` finds, or what one likes to assume.

    Parameters
    ----------
    gradient, apply, copy : (seconds of a visit, seconds of each row of it): to compute the gradient, to write it, and
        to copy the rows, as a trace does.
    fused : share of gradient and apply that an ordinary visit takes.
    rows : rows of a usual visit.
    jitter : standard deviation of the length of a visit, relative to it.
    contention : by how much a visit takes longer for each other worker that runs, relative.
    slice : seconds that a thread keeps a core when others wait for it.
    """

    gradient: tuple[float, float] = (0.0, 1e-8)
    apply: tuple[float, float] = (0.0, 1e-8)
    copy: tuple[float, float] = (0.0, 5e-9)
    fused: float = 1.0
    rows: float = 50.0
    jitter: float = 0.1
    contention: float = 0.0
    slice: float = 0.003

    @property
    def visit(self) -> float:
        """Seconds of a usual visit, alone on a core."""
        return self.fused * sum(base + each * self.rows for base, each in (self.gradient, self.apply))

    def costs(self) -> Costs:
        """For compiled code."""
        reading, writing, copying = (np.array(part, np.float64) for part in (self.gradient, self.apply, self.copy))
        return Costs(reading, writing, copying, float(self.fused), float(self.rows))


@dataclass(frozen=True)
class Machine:
    """What is simulated.

    Parameters
    ----------
    workers : 1 to 256.
    cores : at most so many workers run at once, in turns of a slice; 0: one for each worker.
    load : other programs that want a core, on average.
    delay : lengths of a visit between its reading and its writing; None: as visits are; 0: nothing comes between.
    lost : chance that one of two writes of a row at the same time is lost; None: where both are at that row at once.
    torn : whether the halves of an update are written one after the other, with others between.
    every : visits of a worker of which one is looked at, as a trace does.
    """

    workers: int = 1
    cores: int = 0
    load: float = 0.0
    delay: float | None = None
    lost: float | None = None
    torn: bool = True
    every: int = LOOK_EVERY
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        _check("workers", self.workers, 1 <= self.workers <= MOST_WORKERS, f"it lies between 1 and {MOST_WORKERS}")
        _check("cores", self.cores, 0 <= self.cores <= MOST_WORKERS, f"it lies between 1 and {MOST_WORKERS}")
        _check("load", self.load, 0 <= self.load <= MOST_WORKERS, f"it lies between 0 and {MOST_WORKERS}")
        if self.delay is not None:
            _check("delay", self.delay, 0 <= self.delay <= 1e6, "it is not negative, in lengths of a visit. Try 1")
        if self.lost is not None:
            _check("lost", self.lost, 0 <= self.lost <= 1, "it is a chance between 0 and 1")
        _check("every", self.every, 0 <= self.every < 1 << 30, "it is not negative; 0 means none")

    @property
    def used(self) -> int:
        """Cores there are."""
        return self.cores or self.workers

    @property
    def is_serial(self) -> bool:
        """Whether nothing can come between the reading and the writing of a visit."""
        return self.workers == 1 or (self.delay == 0 and self.lost == 0)

    def rules(self, workers: int) -> Rules:
        """For compiled code, of so many workers."""
        others = math.ceil(self.load - 1e-9)
        last = self.load - (others - 1) if others else 1.0
        threads = workers + others
        return Rules(
            workers, threads, min(self.used, threads), float(self.pace.slice), float(last), float(self.pace.jitter),
            -1.0 if self.delay is None else float(self.delay), -1.0 if self.lost is None else float(self.lost),
            self.torn, self.every,
        )  # fmt: skip


def _check(name: str, value: float, fits: bool, why: str) -> None:
    if not fits:
        raise ConfigError(f"{name} is {value}; {why}.")


def workers_on(plan: Plan, machine: Machine) -> int:
    """Workers that a real run would have: where scalars are private, one a core (`make_store`)."""
    return min(machine.workers, machine.used) if has_private(plan, machine) else machine.workers


def has_private(plan: Plan, machine: Machine) -> bool:
    """Whether the workers of a real run of sharing `all` have copies of scalars."""
    scalars = any(table.kind == "scalar" for table in plan.tables.values())
    return scalars and machine.workers > 1 and plan.visits >= SHORT


def make_virtual(plan: Plan, machine: Machine) -> Virtual:
    """Everything that virtual workers need, on the weights of the plan."""
    workers, room = workers_on(plan, machine), plan.room
    rules = machine.rules(workers)
    tables, whole_tables = split_tables(plan.tables, room)
    rows = numbered_rows(plan.tables, room)
    cells = max((table.cells for table in tables.values()), default=0)
    wholes = sum(getattr(plan.weights, name).size for name in whole_tables)
    line = room.rows * cells + wholes
    scratch = room.rows * (room.width + 1) + room.dense + room.floats + 2 * room.ints
    needed = CELL * workers * (2 * line + scratch) + 12 * rows
    check_memory(needed, f"{workers} virtual workers need", "simulate fewer.")
    private = has_private(plan, machine)
    places, additive, first, cell = np.zeros((len(tables), 5), np.int64), [np.zeros(0, np.bool_)], 0, 0
    for k, (name, table) in enumerate(tables.items()):
        counts = not (private and table.kind == "scalar")
        places[k] = first, table.cells * CELL, getattr(plan.weights, name).ctypes.data, cell, counts
        additive.append(table.mask())
        first, cell = first + table.rows, cell + table.cells
    at = np.zeros((len(whole_tables), 3), np.int64)
    for k, (name, table) in enumerate(whole_tables.items()):
        array = getattr(plan.weights, name)
        at[k] = array.nbytes, array.ctypes.data, cell
        additive.append(np.resize(table.mask(), array.size))
        cell += array.size
    before, after = (np.zeros((workers, line + 1), np.float32) for _ in range(2))
    merged = np.zeros(max(cells, wholes) + 1, np.float32)
    threads = rules.threads
    return Virtual(
        costs=machine.pace.costs(), rules=rules, due=np.full(threads, np.inf), event=np.zeros(threads),
        ends=np.full(threads, np.inf), phase=np.zeros(threads, np.int64), queue=np.zeros(threads, np.int64),
        ints=np.zeros((workers, PAD), np.int64), floats=np.zeros((workers, PAD)), state=np.zeros(PAD),
        random=seeds(plan.config.seed ^ _STREAM, plan.shard[0] + 1)[-1:], opened=np.zeros(workers, np.uint64),
        stamps=np.full(rows + 1, -np.inf), owners=np.full(rows + 1, -1, np.int32), places=places, wholes=at,
        additive=np.concatenate(additive), before=before, after=after, merged=merged, before_at=before.ctypes.data,
        after_at=after.ctypes.data, merged_at=merged.ctypes.data, pending=np.zeros((workers, room.rows + 1), np.int8),
        stride=cells, whole=room.rows * cells, dense=room.dense, scratches=_scratches(plan, workers),
        spare=limited_scratch(room, plan.tables, np.uint64(0)), counts=np.zeros((workers, PAD), np.int64),
        delays=np.zeros((workers, BUCKETS + PAD), np.int64), sizes=np.zeros((workers, KEPT)),
    )  # fmt: skip


def _scratches(plan: Plan, workers: int) -> Scratch:
    """The scratch of all workers: arrays with a line for each of them."""
    one = limited_scratch(plan.room, plan.tables, np.uint64(0))
    random = np.zeros((workers, PAD), np.uint64)
    part = plan.shard[0]
    random[:, 0] = seeds(plan.config.seed, (part + 1) * workers)[part * workers :]
    return Scratch(
        count=np.repeat(one.count[None], workers, axis=0),
        rows=np.zeros((workers, len(one.rows)), np.int32),
        grads=np.zeros((workers, *one.grads.shape), np.float32),
        clock=np.zeros((workers, len(one.clock)), np.float32),
        random=random,
        floats=_lines(workers, len(one.floats)),
        ints=np.zeros((workers, len(one.ints)), np.int64),
        dense=_lines(workers, len(one.dense)),
    )


def _lines(workers: int, cells: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """A line of zeros for each worker, which begins at a cache line."""
    width = -(-max(cells, 1) // _LINE) * _LINE
    return aligned_floats(workers * width).reshape(workers, width)
