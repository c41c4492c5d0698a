"""A node that has some columns of all rows: it makes all visits, block by block, and exchanges scores with others."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import ray

from hogwild.arrays import Floats
from hogwild.cluster.columns.part import Part, Scored
from hogwild.cluster.node import Node, Prepared, Report, Status, Work, rehearse
from hogwild.cluster.parted import PartSource
from hogwild.cluster.strategies.columns import CELLS, Columns, Scores, table_of
from hogwild.cluster.strategies.strategy import Member
from hogwild.cluster.wire.ledger import Ledger
from hogwild.cluster.wire.link import Link
from hogwild.cluster.wire.rounds import LONGEST, Round, Rounds
from hogwild.errors import ClusterError, DivergedError
from hogwild.executor.events import Started
from hogwild.executor.state import Position, RunState
from hogwild.kernels.loop.order import shard_size
from hogwild.kernels.loop.schedule import make_schedule, rate_after

_DIVERGED = 100.0  # times the first loss


class ColumnsNode(Node):
    """As a `Node`, without the executor. Samples are those of all nodes, of which each counts its share."""

    _part: Part | None = None

    # -- before a run -----------------------------------------------------------------------------------------------

    def _prepare(self, packed: bytes, source: Any, work: Work, weights: Sequence[Floats]) -> Prepared:
        self._close()
        self._aborted = ""
        began, options, start = time.perf_counter(), work.options, work.start
        self._source, program = source, ray.cloudpickle.loads(packed).narrowed(weights[0].shape[1])
        self._feed = feed = source.feed() if isinstance(source, PartSource) else ray.cloudpickle.loads(source)
        self._part = part = Part(program, feed, weights, options["seed"], options["threads"], work.shard[1])
        self.traffic.receive("weights", sum(array.nbytes for array in weights))
        self._visits, self._every, self._epochs = part.visits, work.exchange_every, options["epochs"]
        self._schedule = make_schedule(
            options["schedule"], options["lr"], part.visits, self._epochs, options["decay"], options["lr_end"]
        )
        self._state = start or RunState(
            Position(), np.zeros(1, np.uint64), options["seed"], "all", options["lr"], part.visits
        )
        self._scale, self._units = program.loss_scale, program.units(feed)
        self._table = table_of(part.most * self._every)
        self._shard, self._held, self._target = work.shard, False, None
        self._first_loss = math.nan
        compiling, nothing = time.perf_counter(), part.score(part.block(0, 0, 0))
        part.learn(nothing, nothing.scores, self._schedule)
        epoch, visits = self._state.position
        self._number = -(-visits // self._every)
        self._wait_for_text(visits if epoch == 0 else self._visits)
        self._status = Status(self.rank, epoch, self._samples(epoch, visits), traffic=self.traffic)
        samples, units = (shard_size(whole, *self._shard) for whole in (part.visits, self._units))
        started = Started(
            0.0, epoch, self._status.samples, samples * self._epochs, options["threads"], options["mode"], "all",
            options["lr"], time.perf_counter() - compiling, compiling - began,
        )  # fmt: skip
        return Prepared(samples, units, self._table, started)

    def connect(
        self, peers: Sequence[Any], servers: Sequence[Any], visits: Sequence[int], attempt: int, fetchers: Sequence[Any]
    ) -> None:
        """The others."""
        self._attempt = attempt
        self._link = Link(self.rank, peers, servers, self.traffic)
        self._rounds = Rounds(len(peers), self._table, "sum", self.config.deltas)
        opened = partial(Ledger, Scores(np.zeros((0, CELLS), np.float32)), self._table)
        me = Member(self.rank, len(peers), self._table, self.config, self._link, self._rounds, opened)
        self._strategy = self._scores = Columns(me)
        rehearse(self._table, self.config)

    def _samples(self, epoch: int, visits: int) -> int:
        """Its share of so many."""
        return shard_size(epoch * self._visits + visits, *self._shard)

    # -- the run ----------------------------------------------------------------------------------------------------

    def _train(self) -> Report:
        """Blocks go out ahead of those that are learnt from, and none is under way where it stands still."""
        self._since, self._before = time.perf_counter(), self._state.position.visits
        flight: deque[tuple[Round, Scored, list[Any]]] = deque()
        while True:
            self._check_aborted()
            if len(flight) <= self.config.max_delay and self._may_go_on():
                flight.append(self._send_next())
            elif flight:
                self._learn(*flight.popleft())
            else:
                return self._report()

    def _may_go_on(self) -> bool:
        """Whether there is another block, before the end of the epoch and where all stand still next; counts it."""
        with self._change:
            while self._held:
                self._check_aborted()
                if not self._change.wait(LONGEST):
                    raise ClusterError(f"node {self.rank} was held for {LONGEST:.0f} s; the driver does not let go.")
            over = self._number * self._every >= self._visits
            if over or (self._target is not None and self._number >= self._target):
                return False
            self._number += 1
            return True

    def _send_next(self) -> tuple[Round, Scored, list[Any]]:
        assert self._part is not None
        epoch, number = self._state.position.epoch, self._number
        stop = min(number * self._every, self._visits)
        self._wait_for_text(stop if epoch == 0 else self._visits)
        scored = self._part.score(self._part.block(epoch, (number - 1) * self._every, stop))
        here, began = Round(epoch, number, attempt=self._attempt), time.perf_counter()
        awaited = self._scores.send_out(here, scored.scores)
        self.traffic.exchanging += time.perf_counter() - began
        return here, scored, awaited

    def _learn(self, here: Round, scored: Scored, awaited: list[Any]) -> None:
        assert self._part is not None
        began = time.perf_counter()
        sums = self._scores.bring_in(here, awaited, len(scored.scores))
        self.traffic.exchanging += time.perf_counter() - began
        self.traffic.exchanges += 1
        loss = self._state.loss_sum + self._part.learn(scored, sums, self._schedule)
        position = Position(here.epoch, scored.stop)
        self._state = replace(self._state, position=position, loss_sum=loss)
        self._tell(position, loss / position.visits * self._scale)

    def _tell(self, position: Position, loss: float) -> None:
        if math.isnan(self._first_loss):
            self._first_loss = loss
        if not loss <= _DIVERGED * (1 + abs(self._first_loss)):
            raise DivergedError(
                f"the loss of node {self.rank} rose from {self._first_loss:.4g} to {loss:.4g}. Use a smaller "
                "--sync-every, or a smaller --lr."
            )
        status, seconds = self._status, time.perf_counter() - self._since
        status.epoch, status.loss, status.lr = position.epoch, loss, self._rate(position)
        status.samples = self._samples(*position)
        status.speed = (position.visits - self._before) / seconds / self._shard[1]
        status.units_speed = status.speed * self._units / self._visits
        status.seconds = self._state.train_seconds + seconds

    def _rate(self, position: Position) -> float:
        return rate_after(self._schedule, position.epoch * self._visits + position.visits)

    def _report(self) -> Report:
        """Where it stands still, with nothing under way."""
        epoch, visits = self._state.position
        ended, loss, seconds = visits >= self._visits, self._status.loss, time.perf_counter() - self._since
        self._state = replace(self._state, train_seconds=self._state.train_seconds + seconds)
        lr = self._rate(self._state.position)
        if ended:
            self._state = replace(self._state, position=Position(epoch + 1, 0), loss_sum=0.0, last_loss=loss)
            self._number = 0
        self._target = None
        status = self.status()
        status.epoch = self._state.position.epoch
        return Report(ended, self._state, loss, lr, seconds, status)

    def level(self) -> None:
        """Nothing: each has its own columns."""

    # -- from other threads -----------------------------------------------------------------------------------------

    def weights(self) -> list[Floats]:
        """Its columns; the workers stand still."""
        assert self._part is not None
        arrays = self._part.arrays()
        self.traffic.send("weights", sum(array.nbytes for array in arrays))
        return arrays

    def abort(self, why: str) -> None:
        """Nobody waits any more, and nothing is exchanged."""
        super().abort(why)
        self._rounds.abort(why)

    def _close(self) -> None:
        if self._part is not None:
            self._part.close()
            self._part = None
