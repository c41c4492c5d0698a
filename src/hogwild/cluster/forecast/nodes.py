"""Nodes that are not there: each has weights of its own and virtual workers, and all exchange as nodes of a cluster do.

One after the other makes its visits up to the next exchange, in this process. What they change is found, rounded and
combined by the code of real nodes, so that with one worker a node the weights are those of a real run, bit for bit.
Seconds are virtual: of the slowest node, of what an exchange costs (`scaling.Costs`), and of the wire.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any

from hogwild.arrays import bytes_of
from hogwild.cluster.forecast.scaling import Costs
from hogwild.cluster.wire.combining import combine
from hogwild.cluster.wire.ledger import Ledger
from hogwild.cluster.wire.packing import Form, Rows, pack
from hogwild.cluster.wire.tiers import Tiers, usual_interval
from hogwild.config.cluster import ClusterConfig
from hogwild.errors import ConfigError
from hogwild.executor.events import EpochEnded, Event, Exchange, Finished, Started
from hogwild.executor.run import AsyncExecutor
from hogwild.executor.virtual.machine import Machine
from hogwild.executor.virtual.run import VirtualExecutor, check_virtual
from hogwild.executor.virtual.simulate import Lab, Outcome, Simulation, Tell, Watch, run_lab, silent
from hogwild.feeds.held_out import hold_out
from hogwild.kernels.loop.order import shard_size
from hogwild.machine import check_memory
from hogwild.programs.program import Program

VIRTUAL = "virtual"
_STRATEGIES = ("average", "parameter-actor")
_WITHOUT = ("workers_per_node", "asynchronous", "shards", "paged", "noise_pool")


@dataclass(frozen=True)
class Wire:
    """Between two nodes. rate: bits a second; latency: seconds, there and back."""

    rate: float = 10e9
    latency: float = 2e-4


def check_nodes(config: ClusterConfig) -> None:
    """ConfigError for what nodes of a simulation cannot do."""
    if config.cluster != VIRTUAL:
        raise ConfigError(f"cluster is {config.cluster!r}; a simulation has cluster {VIRTUAL}.")
    if config.strategy not in _STRATEGIES:
        raise ConfigError(f"strategy is {config.strategy}; simulated are {' and '.join(_STRATEGIES)}, in step.")
    for name in _WITHOUT:
        if getattr(config, name) != ClusterConfig.__dataclass_fields__[name].default:
            raise ConfigError(f"{name} has no effect on a simulation; leave it out.")


def simulate(
    program: Program, feed: Any, *, nodes: int = 2, workers: Sequence[int] = (1,), valid: Any = None,
    cluster: ClusterConfig | None = None, wire: Wire | None = None, tell: Tell | None = None, **options: Any,
) -> Simulation:  # fmt: skip
    """Predict loss, traffic and speed-up of training on several nodes, without a cluster.

    Parameters
    ----------
    program, feed, valid, tell, options : as for `hogwild.simulate`.
    nodes : each with weights of its own; at most 256.
    workers : of a node, 1 to 256 each; one prediction for each number.
    cluster : how they exchange: `ClusterConfig(cluster="virtual", …)`.
    wire : between them.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> from hogwild.cluster.forecast.nodes import simulate
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> found = simulate(hogwild.Linear(), (X, X[:, 0] > 0), nodes=3, epochs=2, lr=0.1)
    >>> found.predictions[0].nodes, found.predictions[0].gradients
    (3, 600)
    """
    check_virtual(options)
    config = replace(cluster or ClusterConfig(cluster=VIRTUAL), nodes=nodes)
    check_nodes(config)
    feed = program.feed_from(feed)
    valid = None if valid is None else program.feed_from(valid, feed)
    train = AsyncExecutor(**options).config_for(program)
    feed, valid, _ = hold_out(train, feed, valid)
    lab = NodesLab(program, feed, valid, train, tell or silent, config, wire or Wire())
    return run_lab(lab, Machine(), workers, ())


@dataclass(frozen=True)
class NodesLab(Lab):
    """A program, its data and how nodes train it together."""

    cluster: ClusterConfig = field(default_factory=lambda: ClusterConfig(cluster=VIRTUAL))
    wire: Wire = field(default_factory=Wire)

    def simulated(self, machine: Machine, lr: float) -> Outcome:
        """A run of nodes with the workers of such a machine each."""
        count = self.cluster.nodes or 2
        if count == 1:
            return super().simulated(machine, lr)
        whole = self.program.visits(self.feed)
        visits = [shard_size(whole, rank, count) for rank in range(count)]
        if not all(visits):
            raise ConfigError(f"{count} nodes for {whole} visits in an epoch: use fewer nodes.")
        every = self.cluster.sync_every or usual_interval(visits, self.program.units(self.feed))
        options = self.options(lr=lr, threads=None, sharing="all", trace=False)
        with ExitStack() as stack:
            nodes = []
            for rank in range(count):
                executor, program = VirtualExecutor(machine, **options), copy.deepcopy(self.program)
                run = executor.run(program, self.feed, shard=(rank, count), exchange_every=every)
                stack.enter_context(closing(run))  # type: ignore[type-var]
                nodes.append(_Node(executor, program, run))
                if rank == 0:
                    needed = 2 * count * bytes_of(program.weights)
                    check_memory(needed, f"{count} virtual nodes need", "simulate fewer.")
            return _Together(self, nodes, machine.workers, every).run()


class _Node:
    """One of them: its run, what it has told the others, and what is under way."""

    def __init__(self, executor: VirtualExecutor, program: Program, run: Iterator[Event]) -> None:
        self.program, self._run = program, run
        started = next(run)
        assert isinstance(started, Started)
        self.started, self.plan, self.backend = started, executor.plan, executor.backend
        store = executor.store
        self.ledger = Ledger(store.weights, store.tables, store.slices)
        self.flight: deque[tuple[list[Rows], list[Rows]]] = deque()  # what was sent, and what came of that of all
        self.last: Event = started
        self.seconds = 0.0  # of its workers, up to the last exchange

    def go_on(self) -> bool:
        """Train up to the next exchange, or to the end of the epoch; whether it is an exchange."""
        self.last = next(event for event in self._run if isinstance(event, Exchange | EpochEnded | Finished))
        return isinstance(self.last, Exchange)

    @property
    def ended(self) -> EpochEnded:
        """The end of the epoch."""
        assert isinstance(self.last, EpochEnded)
        return self.last

    def receive(self, most: int) -> None:
        """Take over what came, until no more than so many are under way."""
        while len(self.flight) > most:
            mine, all_ = self.flight.popleft()
            self.ledger.settle(all_, mine)


class _Together:
    """A run of them all, and its clock."""

    def __init__(self, lab: NodesLab, nodes: Sequence[_Node], workers: int, every: int) -> None:
        self._lab, self._nodes, self._workers, self._every = lab, nodes, workers, every
        self._config, self._tables = lab.cluster, nodes[0].plan.tables
        plan = nodes[0].plan
        self._epochs, self._visits = plan.config.epochs, [node.plan.visits for node in nodes]
        self._tiers = Tiers.of(lab.cluster.tier_rows, self._epochs * plan.visits // every)
        self._seconds = self._sent = 0.0
        self._watch = Watch(workers, workers, True)

    def run(self) -> Outcome:
        """All epochs."""
        count = len(self._nodes)
        started = self._nodes[0].started
        total = sum(node.started.total for node in self._nodes)
        note = f"{count} virtual nodes of {self._workers} workers, an exchange every {self._every:,} visits of a node."
        self._tell(replace(started, total=total, threads=count * self._workers, notes=(*started.notes, note)))
        for epoch in range(self._epochs):
            began, number = self._seconds, 0
            while self._go_on(epoch):
                number += 1
                self._exchange(self._tiers.leading(number))
            self._exchange(None, whole=True, exact=epoch + 1 == self._epochs)
            self._tell(self._epoch_ended(began))
        for node in self._nodes:
            node.go_on()
        return self._finished()

    def _go_on(self, epoch: int) -> bool:
        """All nodes that have not ended an epoch go on; whether any comes to an exchange: then all do it."""
        busy = [node for node in self._nodes if not (isinstance(node.last, EpochEnded) and node.last.epoch > epoch)]
        return sum(node.go_on() for node in busy) > 0

    def _tell(self, event: Event, outcome: Outcome | None = None) -> None:
        self._watch(event)
        self._lab.tell(event, outcome)

    def _exchange(self, leading: int | None, whole: bool = False, exact: bool = False) -> None:
        """As `strategies.strategy.Together` has it: answers come by some exchanges later, but where all stand still."""
        config = self._config
        late = 0 if whole else config.max_delay
        form: Form = "float32" if exact else config.deltas
        many = []
        for node in self._nodes:
            node.receive(max(1, late) - 1)
            keeps = config.error_feedback and not exact
            (mine,) = node.ledger.take(form, leading=leading, every=not config.touched, keeps=keeps)
            many.append([rows.kept() for rows in mine])
        all_ = combine(many, self._tables, config.combine, form)
        for node, mine in zip(self._nodes, many, strict=True):
            node.flight.append((mine, all_))
            node.receive(late)
        self._pass(many, all_, leading, late, form)

    def _pass(self, many: list[list[Rows]], all_: list[Rows], leading: int | None, late: int, form: Form) -> None:
        """The clock, and the bytes: the terms of `scaling`, with the rows that changed."""
        nodes, costs, wire = len(many), Costs(), self._lab.wire
        computing = max(node.backend.seconds - node.seconds for node in self._nodes)
        for node in self._nodes:
            node.seconds = node.backend.seconds
        mine = max(many, key=self._cells)
        up, down = (len(pack(rows, self._tables, form)) for rows in (mine, all_))
        if self._config.strategy == "average":
            busiest, owned, calls = (up + down) * (nodes - 1) / nodes, 1 / nodes, 2 * (nodes - 1)
        else:
            busiest, owned, calls = up + (nodes - 1) * down, 1.0, nodes + 1
        cell = 1 / 112  # costs are those of a row of so many
        looked = sum(
            table.cells * (min(table.rows, leading) if leading and table.kind == "ranked" else table.rows)
            for table in self._tables.values()
        )
        standing = cell * (self._cells(mine) * costs.take + self._cells(all_) * costs.settle + looked * costs.look)
        combining = owned * cell * sum(map(self._cells, many)) * costs.combine
        beside = combining + calls * costs.call + (up + down) * costs.byte
        carried = busiest * 8 / wire.rate + wire.latency
        self._seconds += computing + standing + beside / self._workers + max(0.0, carried - late * computing)
        self._sent += busiest

    def _cells(self, changes: list[Rows]) -> float:
        return sum(len(rows.numbers) * self._tables[rows.table].cells for rows in changes)

    def _epoch_ended(self, began: float) -> EpochEnded:
        first, lab = self._nodes[0], self._lab
        ends = [node.ended for node in self._nodes]
        loss = sum(end.loss * visits for end, visits in zip(ends, self._visits, strict=True)) / sum(self._visits)
        trace = tuple(
            {**entry, "worker": rank * self._workers + entry["worker"]}
            for rank, end in enumerate(ends)
            for entry in end.trace
        )
        metrics = first.program.evaluate(lab.valid) if lab.valid is not None else {}
        return replace(
            first.ended, seconds=self._seconds, epoch_seconds=self._seconds - began, loss=loss, trace=trace,
            samples=sum(end.samples for end in ends), metrics=metrics,
        )  # fmt: skip

    def _finished(self) -> Outcome:
        ends = [node.last for node in self._nodes if isinstance(node.last, Finished)]
        samples, units = sum(end.samples for end in ends), sum(end.units for end in ends)
        seconds = self._seconds
        event = replace(
            ends[0], seconds=seconds, train_seconds=seconds, samples=samples, units=units,
            samples_per_second=samples / seconds, units_per_second=units / seconds,
        )  # fmt: skip
        self._watch(event)
        assert self._watch.outcome is not None
        backends, visits = [node.backend for node in self._nodes], max(1, self._epochs * max(self._visits))
        found = replace(
            self._watch.outcome, seconds=seconds, nodes=len(ends), every=self._every, sent=self._sent / visits,
            speed_up=sum(backend.busy for backend in backends) / seconds,
            lost=sum(backend.lost for backend in backends) / max(1, sum(backend.visits for backend in backends)),
        )  # fmt: skip
        self._lab.tell(event, found)
        return found
