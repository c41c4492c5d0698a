"""What a run is about: a program, a feed and options, checked against each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.arrays import Room, Table, bytes_of, split_tables
from hogwild.config import TrainConfig
from hogwild.errors import ConfigError
from hogwild.executor.modes import workers_of
from hogwild.executor.spanlog import timed_task
from hogwild.kernels.compiler.jit import renewed
from hogwild.kernels.loop.order import Order, file_order, locate, shard_size, shuffled
from hogwild.kernels.loop.rehearsal import Act, rehearse
from hogwild.kernels.loop.task import is_users, paced
from hogwild.machine import memory
from hogwild.programs.program import CompiledProgram, Metrics, Program

_BLOCK = 1 << 14  # samples that stay together when data larger than memory is shuffled
_MOST_ROWS = 1 << 31  # that an int32 can name
_REHEARSED = 32  # first visits of a run that are made before it with every index checked, if the task is a user's


@dataclass(frozen=True)
class Plan:
    """What a run is about, before anything of it runs. `weights` are the program's."""

    config: TrainConfig
    program: Program
    task: Any
    """Of compiled code, as samples and room; None where visits are none."""
    samples: Any
    weights: Any
    tables: Mapping[str, Table]
    room: Room
    whole: int
    """Visits of an epoch, of all parts."""
    visits: int
    part: float = 1.0
    """Of a step of the learning rate, that a visit makes; see `Program.divide`."""
    shard: tuple[int, int] = (0, 1)
    """Which part of the visits this run makes, of how many; `visits` are those of the part."""
    exchange_every: int = 0
    """Visits after which the workers stand still for an exchange with others; 0: never."""
    backend: Callable[[Plan], Any] | None = None
    """What makes the visits, as one worker, in place of the threads of the run: see `executor/virtual/`."""

    @property
    def workers(self) -> int:
        """Workers of the run."""
        return 1 if self.backend is not None else workers_of(self.config)

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
        block = 1 if self.fits else _BLOCK
        whole = shuffled(self.whole, self.config.seed, epoch, block) if self.config.shuffle else file_order(self.whole)
        return whole.shard(*self.shard)

    @property
    def act(self) -> Act | None:
        """What visits must keep to, where they are a user's code; None where they are this package's."""
        if not is_users(self.task):
            return None
        return Act(self.task, self.samples, self.weights, self.tables, self.room)

    def rehearse(self) -> float:
        """Before anything of it runs: a user's code on some visits, with every index checked; returns seconds."""
        began, act = time.perf_counter(), self.act
        if act is not None:
            order = self.order(0)
            first = (locate(order, position) for position in range(min(_REHEARSED, self.visits)))
            rehearse(act, order, dict.fromkeys((*_telling_visits(self.samples, self.whole), *first)))
        return time.perf_counter() - began


def make_plan(
    config: TrainConfig, program: Program, feed: Any, shard: tuple[int, int] = (0, 1), exchange_every: int = 0
) -> Plan:
    """Start the program up and gather what it says of itself."""
    program.check_mode(config.mode)
    program.check_device(config)
    part = program.divide(workers_of(config) if config.mode == "hogwild" else 1)
    program.gather(workers_of(config))
    program.startup(feed, config.seed)
    task, samples, room = None, None, Room(0)
    if isinstance(program, CompiledProgram):
        task = renewed(paced(program.task, config.mode))
        task = task if config.device else timed_task(task)
        samples, room = program.samples(feed), program.room(feed)
    tables = check_tables(program.tables(), program.weights, room)
    whole = program.visits(feed)
    return Plan(
        config, program, task, samples, program.weights, tables, room, whole, shard_size(whole, *shard), part, shard,
        exchange_every,
    )  # fmt: skip


# -- The best epoch: by which it is told ------------------------------------------------------------------------------

_HOW = "give some (--valid, --valid-share, --valid-last)"


def judged(config: TrainConfig, program: Program, metrics: Metrics, loss: float) -> float:
    """How good an epoch is, the lower the better, by what the user asked for, else by what is usual for the program."""
    return program.judge(metrics, loss) if config.best_by == "auto" else program.judge_by(config.best_by, metrics, loss)


def check_best(config: TrainConfig, program: Program, valid: Any) -> None:
    """ConfigError for what cannot be watched; as far as that is known, which is more after startup."""
    if valid is None and config.patience:
        raise ConfigError(f"patience needs validation data to watch; {_HOW}, or leave patience out.")
    if valid is None and config.best_by not in ("auto", "loss"):
        raise ConfigError(f"best_by is {config.best_by}, and there are no data to measure it on; {_HOW}.")
    known = program.judged_by
    if known and config.best_by not in ("auto", *known):
        raise ConfigError(
            f"best_by is {config.best_by}, which is not measured of such a model; choose one of {', '.join(known)}."
        )


def _telling_visits(samples: Any, visits: int) -> Iterator[int]:
    """Where a mistake shows: the first and the last visit, and those of the least and largest number of each array."""
    yield from (0, visits - 1)
    for array in arrays_in(samples):
        if array.dtype.kind in "iu" and array.ndim and len(array) == visits:
            yield from (int(place) // (array.size // visits) for place in (array.argmin(), array.argmax()))


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


def arrays_in(bundle: Any) -> tuple[Any, ...]:
    """The arrays of a (nested) bundle."""
    if isinstance(bundle, np.ndarray):
        return (bundle,)
    if isinstance(bundle, tuple):
        return tuple(array for item in bundle for array in arrays_in(item))
    return ()

