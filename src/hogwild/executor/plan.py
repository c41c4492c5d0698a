"""From a program, a feed and options to a crew that is ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.arrays import CELL, Room, Table, bytes_of, make_scratch, split_tables
from hogwild.config import TrainConfig
from hogwild.errors import ConfigError
from hogwild.executor.merging import ALONE, Pace
from hogwild.executor.modes import Turns, lockstep_of, workers_of
from hogwild.executor.sharing import WeightStore, private_rows
from hogwild.executor.spanlog import timed_task
from hogwild.executor.spans import Claims
from hogwild.executor.trace import Trace
from hogwild.executor.workers import Counters, Crew
from hogwild.kernels.compiler.rng import seeds
from hogwild.kernels.loop.order import Order, file_order, shuffled
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.loop.trace import Untraced
from hogwild.machine import memory
from hogwild.programs.program import CompiledProgram

_BLOCK = 1 << 14  # samples that stay together when data larger than memory is shuffled
_MOST_ROWS = 1 << 31  # that an int32 can name
_LEAST_MERGES = 16  # of a worker in an epoch: private rows must not drift apart in a short one


@dataclass(frozen=True)
class Plan:
    """What a run is about, before anything of it runs. `weights` are the program's."""

    config: TrainConfig
    program: CompiledProgram
    task: Any
    samples: Any
    weights: Any
    tables: Mapping[str, Table]
    room: Room
    visits: int
    part: float = 1.0
    """Of a step of the learning rate, that a visit makes; see `Program.divide`."""

    @property
    def workers(self) -> int:
        """Workers of the run."""
        return workers_of(self.config)

    @property
    def bytes(self) -> int:
        """Bytes of the samples."""
        return bytes_of(arrays_in(self.samples))

    @property
    def fits(self) -> bool:
        """Whether the samples fit into memory, so that any of them can be read at any moment."""
        return self.bytes < memory() // 2 and self.visits < _MOST_ROWS

    def order(self, epoch: int) -> Order:
        """The order of the visits of an epoch."""
        if not self.config.shuffle:
            return file_order(self.visits)
        return shuffled(self.visits, self.config.seed, epoch, 1 if self.fits else _BLOCK)


def make_plan(config: TrainConfig, program: CompiledProgram, feed: Any) -> Plan:
    """Start the program up and gather what it says of itself."""
    part = program.divide(workers_of(config) if config.mode == "hogwild" else 1)
    program.startup(feed, config.seed)
    room = program.room(feed)
    return Plan(
        config, program, timed_task(program.task), program.samples(feed), program.weights,
        check_tables(program.tables(), program.weights, room), room, program.visits(feed),
        part,
    )  # fmt: skip


def check_tables(tables: Mapping[str, Table], weights: Any, room: Room) -> dict[str, Table]:
    """The tables in the order of the weight arrays; compiled code will trust that each covers its array."""
    for name in (*weights._fields, *tables):
        if name not in tables or name not in weights._fields:
            raise ConfigError(f"tables are there for {', '.join(tables)}, weights for {', '.join(weights._fields)}.")
    for name, array in zip(weights._fields, weights, strict=True):
        table = tables[name]
        if table.rows * table.cells != array.size:
            raise ConfigError(
                f"the table of {name} says {table.rows} rows of {table.cells} cells, but the array has {array.size} "
                "cells; a row of a table is all that belongs to one row number."
            )
        if table.additive and len(table.additive) != table.cells:
            raise ConfigError(f"`additive` of {name} has {len(table.additive)} entries for {table.cells} cells a row.")
    if sum(table.rows for table in split_tables(tables, room)[0].values()) > _MOST_ROWS:
        raise ConfigError(f"the model has more than {_MOST_ROWS} rows, which no row number (int32) can name.")
    return {name: tables[name] for name in weights._fields}


def merge_pace(plan: Plan) -> Pace:
    """How far a worker may go before it merges: as the user says; else as the program likes it, and less if need be."""
    workers, liked = plan.workers, plan.program.merge_every
    if plan.config.merge_every:
        return Pace(plan.config.merge_every, timed=False)
    if workers == 1:
        return ALONE
    # What a worker has not merged is unknown to all others, and each of these has the like: so by the pairs of workers.
    lead = _LEAST_MERGES * workers * (workers - 1)
    most = max(1, plan.visits // lead)
    return Pace(min(most, max(1, liked // (workers - 1) ** 2)) if liked else most, lead, timed=not liked)


def build_crew(plan: Plan, weights: Any, schedule: Schedule, sharing: str) -> tuple[Crew, Trace | None]:
    """Workers on the given weights, which may be a copy; and their trace."""
    config, workers = plan.config, plan.workers
    hot = config.hot_rows or plan.program.hot_rows
    private = private_rows(sharing, plan.tables, workers, hot) if config.mode == "hogwild" else {}
    needed = 2 * CELL * workers * sum(rows * plan.tables[name].cells for name, rows in private.items())
    if needed > memory():
        raise ConfigError(
            f"the private copies of {workers} workers need {needed / 1e9:.1f} GB, more than this machine has; "
            "use --sharing all."
        )
    shared = WeightStore(sharing, weights, plan.tables, private, workers, merge_pace(plan) if private else ALONE)
    turns = Turns(config, plan.room, plan.visits)
    trace = None
    probes: list[Any] = [Untraced()] * workers
    if config.trace:
        trace = Trace(plan.tables, plan.room)
        trace.mark_private(private)
        probes = [trace.add_worker(copies.weights) for copies in shared.copies]
    crew = Crew(
        task=plan.task, samples=plan.samples, schedule=schedule, sharing=shared,
        claims=Claims(workers, lockstep_of(config), shared.span_seconds), counters=Counters(workers), turns=turns,
        probes=probes, scratches=[make_scratch(plan.room, seed) for seed in seeds(config.seed, workers)],
        order=file_order(plan.visits),
    )  # fmt: skip
    return crew, trace


def arrays_in(bundle: Any) -> tuple[Any, ...]:
    """The arrays of a (nested) bundle."""
    if isinstance(bundle, np.ndarray):
        return (bundle,)
    if isinstance(bundle, tuple):
        return tuple(array for item in bundle for array in arrays_in(item))
    return ()

