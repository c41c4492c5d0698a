"""A node: one process that owns weights, has them trained by the executor's workers, and exchanges with other nodes."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import time
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import ray

from hogwild.arrays import Floats, Table
from hogwild.cluster.paging.words import PagedWords, PooledWords
from hogwild.cluster.parted import PartSource
from hogwild.cluster.strategies.average import Average
from hogwild.cluster.strategies.columns import Columns
from hogwild.cluster.strategies.gossip import Gossip
from hogwild.cluster.strategies.merge import Merge
from hogwild.cluster.strategies.paged import AsynchronousPaged, Paged, Pages
from hogwild.cluster.strategies.parameter_actor import Asynchronous, ParameterActor
from hogwild.cluster.strategies.strategy import Member, Strategy
from hogwild.cluster.wire.combining import combine
from hogwild.cluster.wire.ledger import Ledger
from hogwild.cluster.wire.link import Link
from hogwild.cluster.wire.packing import Packet, pack, unpack
from hogwild.cluster.wire.rounds import LONGEST, Round, Rounds
from hogwild.cluster.wire.tiers import Tiers
from hogwild.cluster.wire.traffic import Traffic, Usage
from hogwild.config.cluster import ClusterConfig
from hogwild.errors import ClusterError, DivergedError
from hogwild.executor.events import EpochEnded, Event, Exchange, Finished, Progress, Started
from hogwild.executor.run import AsyncExecutor
from hogwild.executor.state import RunState

_DIVERGED = 100.0  # times the first loss
_TRIM_FROM, _MAP_FROM = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>


def strategy_of(config: ClusterConfig) -> type[Strategy]:
    """The strategy that is asked for."""
    if config.paged:
        return AsynchronousPaged if config.asynchronous else Paged
    if config.strategy == "parameter-actor":
        return Asynchronous if config.asynchronous else ParameterActor
    return {"average": Average, "columns": Columns, "gossip": Gossip, "merge": Merge}[config.strategy]


def keep_memory() -> None:
    """Let memory that was given back be used again, by this process: each exchange takes as much as the one before.

    The usual allocator would give it to the system every time, and a fourth of an exchange would be new pages.
    """
    with suppress(AttributeError, OSError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(_MAP_FROM, 1 << 30)
        library.mallopt(_TRIM_FROM, (1 << 31) - 1)


def rehearse(tables: Mapping[str, Table], config: ClusterConfig) -> None:
    """Compile what an exchange needs, or find it compiled, before the clock runs."""
    small = {name: replace(table, rows=1) for name, table in tables.items()}
    weights = namedtuple("Weights", list(small))(*(np.ones((1, table.cells), np.float32) for table in small.values()))
    ledger = Ledger(weights, small)
    for array in weights:
        array += 1
    (mine,) = ledger.take(config.deltas)
    found = unpack(pack(mine, small, config.deltas), small)
    ledger.settle(combine([found, mine], small, config.combine, config.deltas), found)


class Work(NamedTuple):
    """What a node has to do. options: of `AsyncExecutor.run`; start: where it goes on from."""

    options: dict[str, Any]
    shard: tuple[int, int]
    exchange_every: int
    start: RunState | None = None


class Prepared(NamedTuple):
    """What a node says before it begins: its part of an epoch, the tables of its weights, what was chosen."""

    samples: int
    units: int
    tables: dict[str, Table]
    started: Started


@dataclass
class Status:
    """How far a node is."""

    rank: int
    epoch: int = 0
    samples: int = 0
    loss: float = float("nan")
    lr: float = 0.0
    speed: float = 0.0
    units_speed: float = 0.0
    seconds: float = 0.0
    traffic: Traffic = field(default_factory=Traffic)
    usage: dict[str, float] = field(default_factory=dict)


class Report(NamedTuple):
    """Where a node stands still: at the end of an epoch, or parked in it."""

    ended: bool
    state: RunState
    loss: float
    """Mean of this epoch so far."""
    lr: float
    epoch_seconds: float
    status: Status


class Node:
    """Runs inside of a process of its own; others call it from several threads."""

    def __init__(self, rank: int, config: ClusterConfig) -> None:
        self.rank, self.config = rank, config
        keep_memory()
        self.traffic = Traffic()
        self._usage = Usage()
        self._status = Status(rank, traffic=self.traffic)
        self._change = threading.Condition()
        self._lock = threading.Lock()
        self._first_loss = math.nan
        self._run: Iterator[Event] | None = None
        self._rounds = Rounds(1, {}, config.combine, config.deltas)  # until it is connected
        self._aborted = ""

    def pid(self) -> int:
        """Of its process."""
        return os.getpid()

    # -- before a run -----------------------------------------------------------------------------------------------

    def prepare(self, packed: bytes, source: Any, work: Work, weights: Sequence[Floats]) -> Prepared:
        """Make the program ready, with these weights (if any): everything that takes time but is no training."""
        with self._alone():
            return self._prepare(packed, source, work, weights)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nothing is made ready or trained meanwhile: what was told to stop ends before the next begins."""
        if not self._lock.acquire(timeout=LONGEST):
            raise ClusterError(f"node {self.rank} is still busy {LONGEST:.0f} s after it was told to stop.")
        try:
            yield
        finally:
            self._lock.release()

    def _prepare(self, packed: bytes, source: Any, work: Work, weights: Sequence[Floats]) -> Prepared:
        self._close()
        self._aborted = ""
        # As Ray unpacks the arguments of every call: what comes from the driver is trusted.
        self._source, program = source, ray.cloudpickle.loads(packed)
        self._feed = source.feed() if isinstance(source, PartSource) else ray.cloudpickle.loads(source)
        if self.config.paged:
            program = PagedWords(program, source.text, work.exchange_every, self.config.noise_pool)
        elif self.config.noise_pool:
            program = PooledWords(program, self.config.noise_pool)
        self._executor = AsyncExecutor(threads=work.options["threads"])
        self._program, self._every, self._epochs = program, work.exchange_every, work.options["epochs"]
        options = {name: value for name, value in work.options.items() if name != "threads"}
        if isinstance(source, PartSource):  # a trial of sharings, or of rates, looks at any of it
            source.wait(1.0 if options.get("sharing") == "auto" else 0.0, LONGEST)
        self._run = self._executor.run(
            program, self._feed, shard=work.shard, exchange_every=work.exchange_every, start=work.start, **options
        )
        started = next(self._run)
        assert isinstance(started, Started)
        if len(weights):
            self._executor.take_over(weights)
            self.traffic.receive("weights", sum(array.nbytes for array in weights))
        self._visits = self._executor.plan.visits
        self._began = work.start.position if work.start else (0, 0)
        self._tables = dict(self._executor.plan.tables)
        if isinstance(program, PagedWords):  # of all rows, not of those at hand
            self._tables = program.tables_of(len(self._feed.counts))
        self._seed = work.options["seed"]
        self._held = False
        self._target: int | None = None
        self._tail = False
        self._number = self._numbers(*self._began)
        self._tiers = Tiers.of(self.config.tier_rows, self._epochs * self._visits // self._every)
        self._first_loss = math.nan
        self._wait_for_text(self._began[1])
        self._status = Status(self.rank, self._began[0], started.samples, traffic=self.traffic)
        part = self._visits / max(1, self._executor.plan.whole)
        samples, units = program.epoch_samples(self._feed), program.units(self._feed)
        return Prepared(round(samples * part), round(units * part), self._tables, started)

    def connect(
        self, peers: Sequence[Any], servers: Sequence[Any], visits: Sequence[int], attempt: int, fetchers: Sequence[Any]
    ) -> None:
        """The others, and how many visits an epoch has for each."""
        self._all_visits, self._attempt = visits, attempt
        self._link = Link(self.rank, peers, servers, self.traffic)
        count = len(peers)
        self._rounds = Rounds(count, self._tables, self.config.combine, self.config.deltas)
        store = self._executor.store
        opened = partial(Ledger, store.weights, store.tables, store.slices)
        pages = None
        if isinstance(self._program, PagedWords):
            pages = Pages(self._program, fetchers[self.rank], self._visits, self._every, self._seed)
        me = Member(self.rank, count, self._tables, self.config, self._link, self._rounds, opened, pages)
        self._strategy = strategy_of(self.config)(me)
        rehearse(self._tables, self.config)

    def _wait_for_text(self, visits: int) -> None:
        """Until the fetcher has encoded what so many visits of the first epoch need, and those to the next exchange."""
        if isinstance(self._source, PartSource):
            self._source.wait(min(1.0, (visits + self._every) / max(1, self._visits)), LONGEST)

    # -- the run ----------------------------------------------------------------------------------------------------

    def train(self) -> Report:
        """Until the epoch ends, or the driver wants all to stand still."""
        with self._alone():
            return self._train()

    def _train(self) -> Report:
        assert self._run is not None
        if not self._tail:
            self._begin()
        while not self._tail:
            event = next(self._run)
            self._note(event)
            if isinstance(event, Exchange) and self._exchange_next():
                return self._stand(ended=False)
            if isinstance(event, EpochEnded):
                self._ended, self._tail = event, True
            if isinstance(event, Finished):
                self._check_aborted()
                raise ClusterError(f"node {self.rank} was asked to train after its run had ended.")
        while self._strategy.in_step and self._number < self._last():  # those of others who have more to do
            if self._exchange_next():
                return self._stand(ended=False)
        self._tail = False
        report = self._stand(ended=True)
        self._number = 0
        return report

    def _begin(self) -> None:
        """Visits begin, or go on."""
        began = time.perf_counter()
        self._strategy.begin(Round(self._status.epoch, self._number, attempt=self._attempt))
        self.traffic.exchanging += time.perf_counter() - began
        self._draw_noise()

    def _draw_noise(self) -> None:
        if isinstance(self._program, PooledWords):
            self._program.draw((self._seed, self.rank, self._status.epoch, self._number))

    def _last(self) -> int:
        """Exchanges of this epoch, of the node that has most."""
        epoch = self._ended.epoch - 1
        return max(((epoch + 1) * v) // self._every - (epoch * v) // self._every for v in self._all_visits)

    def _numbers(self, epoch: int, visits: int) -> int:
        """Exchanges made in an epoch, when so many of its visits are."""
        return (epoch * self._visits + visits) // self._every - (epoch * self._visits) // self._every

    def _exchange_next(self) -> bool:
        """The next exchange of this epoch; whether all stand still after it."""
        with self._change:
            while self._held:
                self._check_aborted()
                if not self._change.wait(LONGEST):
                    raise ClusterError(f"node {self.rank} was held for {LONGEST:.0f} s; the driver does not let go.")
            self._number += 1
            number = self._number
        self._exchange(Round(self._epoch, number, attempt=self._attempt), self._tiers.leading(number))
        self._draw_noise()
        self._wait_for_text(number * self._every if self._epoch == 0 else self._visits)
        return self._target is not None and number >= self._target

    @property
    def _epoch(self) -> int:
        return self._ended.epoch - 1 if self._tail else self._status.epoch

    def _exchange(self, here: Round, leading: int | None) -> None:
        began = time.perf_counter()
        self._check_aborted()
        self._strategy.exchange(here, leading)
        self.traffic.exchanges += 1
        self.traffic.exchanging += time.perf_counter() - began

    def _stand(self, ended: bool) -> Report:
        """Everything is brought together, and the node stands still."""
        state = self._executor.state()
        epoch = state.position.epoch - 1 if ended else self._epoch
        exact = ended and epoch + 1 == self._epochs
        self._here = Round(epoch, self._number, whole=True, exact=exact, attempt=self._attempt)
        self._exchange(self._here, None)
        self._target = None
        status = self.status()
        loss, seconds = (self._ended.loss, self._ended.epoch_seconds) if ended else (status.loss, 0.0)
        return Report(ended, state, loss, status.lr, seconds, status)

    def level(self) -> None:
        """All stand still: take over what others brought last."""
        self._strategy.level(self._here)

    def _note(self, event: Event) -> None:
        status = self._status
        status.samples, status.epoch, status.seconds = event.samples, event.epoch, event.seconds
        if isinstance(event, Progress | EpochEnded):
            status.loss, status.lr = event.loss, event.lr
            if math.isnan(self._first_loss):
                self._first_loss = event.loss
            if event.loss > _DIVERGED * (1 + abs(self._first_loss)):
                raise DivergedError(
                    f"the loss of node {self.rank} rose from {self._first_loss:.4g} to {event.loss:.4g}. Use --combine "
                    "project, a smaller --sync-every, or a smaller --lr."
                )
        if isinstance(event, Progress):
            status.speed, status.units_speed = event.samples_per_second, event.units_per_second

    # -- from other threads -----------------------------------------------------------------------------------------

    def status(self) -> Status:
        """How far it is."""
        self._status.usage = self._usage.now()
        return self._status

    def hold(self) -> int:
        """No exchange begins until `release`; the number of the last that has."""
        with self._change:
            self._held = True
            return self._number

    def release(self, target: int | None) -> None:
        """Go on, up to this exchange, where there is one."""
        with self._change:
            self._held = False
            self._target = target
            self._change.notify_all()

    def meet(self, rank: int, here: Round, packet: Packet, leading: int | None) -> Packet:
        """Another node calls."""
        here.check(self._attempt)
        self.traffic.receive("changes", packet.nbytes)
        reply = self._strategy.answer(rank, here, packet, leading)
        self.traffic.send("changes", reply.nbytes)
        return reply

    def measure_link(self) -> float:
        """Bytes a second between this node and another process of the run."""
        return self._link.rate()

    def echo(self, packet: Packet) -> Packet:
        """As it came: another node measures its link."""
        self.traffic.receive("probe", packet.nbytes)
        self.traffic.send("probe", packet.nbytes)
        return packet

    def weights(self) -> list[Floats]:
        """All of them; the workers stand still."""
        arrays = [array.copy() for array in self._program.weights]
        self.traffic.send("weights", sum(array.nbytes for array in arrays))
        return arrays

    def abort(self, why: str) -> None:
        """Nobody waits any more, and nothing is exchanged."""
        with self._change:
            self._aborted = why
            self._held = False
            self._change.notify_all()
        if self._run is not None:
            self._executor.stop()
            self._rounds.abort(why)

    def _check_aborted(self) -> None:
        if self._aborted:
            raise ClusterError(self._aborted)

    def _close(self) -> None:
        if self._run is not None:
            self._run.close()  # type: ignore[attr-defined]
            self._run = None
