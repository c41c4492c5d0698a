"""One run on a cluster: nodes train until they shall stand still; a fault falls back to where they last did."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ray

from hogwild.arrays import Floats
from hogwild.cluster.holding import Copies, Holding, Shards
from hogwild.cluster.metrics import Mirror
from hogwild.cluster.node import Prepared, Report, Status, Work, strategy_of
from hogwild.cluster.parted import Parted
from hogwild.cluster.site import Site
from hogwild.cluster.strategies.merge import merge_words
from hogwild.cluster.wire.link import fetched
from hogwild.cluster.wire.tiers import PARTS, usual_interval
from hogwild.cluster.wire.traffic import Traffic
from hogwild.config import TrainConfig
from hogwild.errors import ClusterError, ConfigError, WorkerError
from hogwild.executor.events import EpochEnded, Event, Finished, Joined, Lost, Nodes, Parked, Progress, Started, Watched
from hogwild.executor.modes import lockstep_of
from hogwild.executor.plan import judged
from hogwild.executor.state import Position, RunState
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.loop.order import shard_size
from hogwild.machine import cores

_TICK = 0.2  # seconds between two looks at the nodes
_TELL = 1.0  # seconds between two events about their traffic
_ANSWER = 30.0  # seconds in which a node says how far it is
_SNAPSHOT = 30.0  # seconds of training that a fault costs at the most, about
_PATIENCE = 3  # faults in a row without a step forward, after which the last one ends the run
_FIRST = 2  # exchanges, which open connections and are slower than all others
_TUNING = 2.0  # seconds of training after which the interval is set by what was measured
_SHARE = 0.3  # of what a link carries: above that the interval grows
_GROWTH = 8  # times that interval at the most: longer ones cost quality
_SEED = 7919


@dataclass
class Snapshot:
    """All nodes when they last stood still: what a fault falls back to. weights: one for all nodes, or one for each."""

    states: list[RunState | None]
    weights: list[Sequence[Floats]]
    every: int
    epoch: int = 0
    samples: int = 0


class Course:
    """One run."""

    def __init__(self, site: Site, program: Any, feed: Any, config: TrainConfig, start: RunState | None) -> None:
        self.site, self.program, self.feed, self.config, self.start = site, program, feed, config, start
        self.fleet, self.count, self.cluster = site.fleet, site.count, site.config
        self.strategy = strategy_of(self.cluster)
        self.holding: Holding = (Shards if self.cluster.paged else Copies)(self.fleet, program, self.cluster)
        self.epoch = start.position.epoch if start else 0
        self.lr = (start.lr if start else config.lr) or program.rate or 0.0
        self.best_loss, self.best_epoch = (start.best_loss, start.best_epoch) if start else (math.inf, -1)
        self.loss = start.last_loss if start else math.nan
        self.metrics: dict[str, float] = {}
        self.again = 0  # samples that were visited once more, after faults
        self._seconds = start.train_seconds if start else 0.0
        self._since: float | None = None
        self._evaluating = 0.0
        self._statuses = [Status(rank) for rank in range(self.count)]
        self._gone = [Traffic() for _ in range(self.count)]  # of nodes that were replaced
        self._filling: dict[int, Any] = {}  # fetchers at work
        self._told = self._parked = 0.0
        self._warm: list[tuple[int, float]] = []  # bytes and seconds of nodes, once connected
        self._rate = math.inf  # bytes a second of the slowest link
        self._tuned = bool(self.cluster.sync_every) or start is not None or self.cluster.strategy == "merge"
        self._growth = 1  # times the interval, from where all next stand still
        self._grown = 1  # times, so far
        self._mirror = Mirror()
        self._look = False  # at what is watched, where all stand still

    # -- clocks and counts ------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Of training: of none while the nodes stand still."""
        return self._seconds + (time.perf_counter() - self._since if self._since is not None else 0.0)

    @property
    def samples(self) -> int:
        """Visited by all."""
        return sum(status.samples for status in self._statuses)

    @property
    def total(self) -> int:
        """To be visited by all."""
        return self.config.epochs * sum(each.samples for each in self.prepared)

    def when(self) -> dict[str, Any]:
        """What every event carries."""
        return {"seconds": self.seconds, "epoch": self.epoch, "samples": self.samples}

    def _halt(self) -> None:
        self._seconds, self._since = self.seconds, None

    # -- a run and its faults ---------------------------------------------------------------------------------------

    def events(self, valid: Any, watch: Any, wishes: set[str]) -> Iterator[Event]:
        """All events. wishes: `stop` and `park`, which may come at any time."""
        self.valid, self.watch, self.wishes = valid, watch, wishes
        self.parted = isinstance(self.feed, Parted)
        # As a node has it before it starts up, in the order of its own ids; where that needs all rows, after it.
        shipped = ray.cloudpickle.dumps(self.holding.shipped())
        self.holding.allot()
        self.program.divide(self.site.workers if self.config.mode == "hogwild" else 1)
        self.program.startup(self.feed, self.config.seed)
        if isinstance(self.feed, Feed) and self.parted:
            shipped = ray.cloudpickle.dumps(self.program.for_part(self.feed))
            self.site.check_store(len(shipped))
        # As bytes: arrays that Ray brings are read-only, and code trusts others.
        self._shipped = ray.put(shipped)
        if valid is not None:
            self.program.check_fit(valid)
        if self.start is None:
            self.program.renew()
        self._open_feed()
        self.site.check_store(self.holding.stored + self._shipped_bytes)
        every = self.start.epoch_visits if self.start else self._interval()
        first = self._divided(self.holding.first()[0])
        self.snapshot = Snapshot([None] * self.count, first, every, self.epoch)
        if self.start is not None:
            self.snapshot.states = list(self._states_of(self.start, every))
        try:
            yield from self._generations()
        finally:
            self.program.finish(self.feed)

    def _open_feed(self) -> None:
        """What each node trains on, and the visits of an epoch that it makes."""
        self._shipped_bytes = 0
        if self.parted:
            self._sources: list[Any] = list(self.site.sources)
            self.visits = self.feed.visits_of(self.program, self._sources)
        else:
            packed = ray.cloudpickle.dumps(self.feed)
            self._shipped_bytes = len(packed)
            self.site.check_store(len(packed))
            self._sources = [ray.put(packed)] * self.count
            whole = self.program.visits(self.feed)
            self.visits = [shard_size(whole, rank, self.count) for rank in range(self.count)]
        if not all(self.visits):
            raise ConfigError(
                f"{self.count} nodes for {sum(self.visits)} visits in an epoch: some would have nothing to do; use "
                "fewer nodes."
            )

    def _part(self, rank: int) -> tuple[tuple[int, int], int]:
        """Which visits a node makes of the data that it has, and from which seed."""
        if not self.parted:
            return (rank, self.count), self.config.seed
        return (0, 1), (self.config.seed + _SEED * rank) % (1 << 62)  # a part has random numbers of its own

    def _divided(self, weights: Sequence[Floats]) -> list[Sequence[Floats]]:
        """The weights that nodes begin with: one for all, or one for each."""
        return [weights]

    def _interval(self) -> int:
        """Visits of a node between two exchanges, before anything is measured."""
        step = lockstep_of(replace(self.config, threads=self.site.workers)) or 1
        if self.cluster.sync_every:
            return -(-self.cluster.sync_every // step) * step
        return usual_interval(self.visits, self.program.units(self.feed), step)

    def _generations(self) -> Iterator[Event]:
        """Train; after a fault replace who is dead, and go on from the last snapshot."""
        faults, reached, begun = 0, -1, False
        while True:
            try:
                self._prepare()
                if not begun:
                    begun = True
                    if not self._tuned and self.count > 1:
                        self._rate = min(self.fleet.ask("measure_link"))
                    if self.watch is not None:
                        self.watch.begin(self.samples, self.seconds)
                    yield self._started()
                yield from self._train()
                return
            except (ClusterError, WorkerError) as error:
                self._halt()
                faults = faults + 1 if reached == self.snapshot.samples else 1
                reached = self.snapshot.samples
                if faults > _PATIENCE:
                    raise
                yield self._recover(error)

    def _recover(self, error: Exception) -> Lost:
        """Nobody waits any more, who is dead is forgotten, and all counts are those of the snapshot again."""
        lost = max(0, self.samples - self.snapshot.samples)
        self.again += lost
        when = self.when()
        dead = self.fleet.drop_dead(f"the run goes back to its last snapshot: {error}")
        for rank, status in enumerate(self._statuses):
            if f"node {rank}" in dead:  # the others go on counting
                self._gone[rank] = self._gone[rank].plus(status.traffic)
        self.epoch = self.snapshot.epoch
        return Lost(**when, what=", ".join(dead), why=str(error), again=lost)

    def _prepare(self) -> None:
        """All nodes ready, at the place and with the weights of the snapshot."""
        self.fleet.start_nodes()
        if len(self.snapshot.states) < self.count:
            self._divide_anew()
        self._fill()
        snapshot = self.snapshot
        held = self.holding.references(snapshot.weights, self.count)

        def work(rank: int) -> Work:
            # Patience is the driver's, who sees the validation data.
            options = {**vars(self.config), "threads": self.site.workers, "lr": self.lr or None, "patience": 0}
            shard, options["seed"] = self._part(rank)
            return Work(options, shard, snapshot.every, snapshot.states[rank])

        if not self.lr:  # tried by one node, for all
            self.lr = self.fleet.prepare(self._shipped, self._sources, work, held, [0])[0].started.lr
        self.prepared: list[Prepared] = self.fleet.prepare(
            self._shipped, self._sources, work, held, range(self.count)
        )
        self.fleet.connect(self.prepared, held[0], self.visits)
        self.holding.connected(snapshot.weights)
        self._statuses = self.fleet.ask("status")

    def _fill(self) -> None:
        """Fetchers that are missing read again; all encode what is not there yet."""
        if not self.parted:
            return
        missing = self.fleet.start_fetchers()
        again = self.feed.read_again(self.fleet, missing, self.site.workers) if missing else []
        for rank, source in zip(missing, again, strict=True):
            self._sources[rank] = source
            self._filling.pop(rank, None)
        for rank in range(self.count):
            if rank not in self._filling:
                self._filling[rank] = self.fleet.fetcher(rank).fill.remote()

    # -- training ---------------------------------------------------------------------------------------------------

    def _train(self) -> Iterator[Event]:
        """From the snapshot to the end."""
        reason = "early" if self._without_hope else "done"
        while self.epoch < self.config.epochs and not self._without_hope:
            self._since = time.perf_counter()
            self._parked = self.seconds
            running = {rank: node.train.remote() for rank, node in enumerate(self.fleet.nodes)}
            reports = yield from self._until_all_stand(running)
            while len({report.ended for report in reports}) > 1:  # not in step: some were past their last exchange
                running = {rank: self.fleet.nodes[rank].train.remote() for rank in running if not reports[rank].ended}
                reports = yield from self._until_all_stand(running, reports)
            self._stand(reports)
            if all(report.ended for report in reports):
                yield self._end_epoch(reports)
                reason = "early" if self._without_hope else "done"
                if self.epoch < self.config.epochs and not self._without_hope and "stop" not in self.wishes:
                    yield from self._take_in()
            if self._look or (self.watch is not None and self.watch.due(self.samples, self.seconds)):
                self._look = False
                yield Watched(**self.when(), values=self.watch.read(self.program))
            if "stop" in self.wishes and self.epoch < self.config.epochs:
                reason = "stopped"
                break
            if "park" in self.wishes:
                self.wishes.discard("park")
                yield Parked(**self.when())
            if self._growth > 1 and self.epoch < self.config.epochs:
                self.snapshot.every *= self._growth
                self._grown, self._growth = self._grown * self._growth, 1
                self._prepare()
        yield self._nodes()
        yield self._finished(reason)

    @property
    def _without_hope(self) -> bool:
        return 0 < self.config.patience <= self.epoch - max(0, self.best_epoch)

    def _until_all_stand(
        self, running: dict[int, Any], before: Sequence[Report] = ()
    ) -> Generator[Event, None, list[Report]]:
        """Events until all nodes stand still; their reports. before: of those that do already, or did."""
        reports = {rank: report for rank, report in enumerate(before) if rank not in running}
        asked = False
        while True:
            waiting = [reference for rank, reference in running.items() if rank not in reports]
            filling = [reference for reference in self._filling.values() if reference is not None]
            done, _ = ray.wait([*waiting, *filling], timeout=_TICK)
            for rank, reference in running.items():
                if rank not in reports and reference in done:
                    reports[rank] = fetched(reference, f"node {rank}")
                    self._statuses[rank] = reports[rank].status
            for rank, reference in self._filling.items():
                if reference is not None and reference in done:
                    fetched(reference, f"fetcher {rank}")
                    self._filling[rank] = None
            if len(reports) == self.count:
                self._halt()
                return [reports[rank] for rank in range(self.count)]
            self._statuses = self.fleet.ask("status", longest=_ANSWER)
            yield self._progress()
            if not self._warm and min(status.traffic.exchanges for status in self._statuses) >= _FIRST:
                self._warm = [(status.traffic.busiest("changes"), status.seconds) for status in self._statuses]
            if self.seconds >= self._told + _TELL:
                self._told = self.seconds
                yield self._nodes()
            if not asked and not reports and self._wants_to_stand():
                asked = self._ask_to_stand()

    def _wants_to_stand(self) -> bool:
        if self.watch is not None and self.watch.due(self.samples, self.seconds):
            self._look = True
        if self._look:
            return True
        if not self._tuned and self.seconds >= _TUNING and self._warm:
            self._tuned, self._growth = True, self._wanted_growth()
        return self._growth > 1 or bool(self.wishes) or self.seconds - self._parked >= _SNAPSHOT

    def _ask_to_stand(self) -> bool:
        """Agree on an exchange that no node has begun; False where the end of the epoch comes before it."""
        numbers = self.fleet.ask("hold", longest=_ANSWER)
        target: int | None = max(numbers) + 1
        every, epoch = self.snapshot.every, self.epoch
        if target > min((epoch + 1) * v // every - epoch * v // every for v in self.visits):
            target = None
        self.fleet.ask("release", target, longest=_ANSWER)
        return target is not None

    def _stand(self, reports: Sequence[Report]) -> None:
        """All stand still: take a snapshot, and their weights."""
        self.fleet.ask("level")
        weights = self.holding.collect([0] if self.strategy.levels else range(self.count))
        if self.cluster.strategy == "gossip":  # whoever begins again begins with what all have in the mean
            weights = [[np.mean(each, axis=0) for each in zip(*weights, strict=True)]]
        self._take(weights)
        self._statuses = self.fleet.ask("status", longest=_ANSWER)  # with the weights among what was sent
        self.epoch = reports[0].state.position.epoch
        states: list[RunState | None] = [report.state for report in reports]
        self.snapshot = Snapshot(states, weights, self.snapshot.every, self.epoch, self.samples)
        self.lr_now = reports[0].lr
        self.loss = _weighted([report.loss for report in reports], self.visits)

    def _take(self, weights: Sequence[Sequence[Floats]]) -> None:
        """The program has the weights of all nodes."""
        if self.cluster.strategy == "merge":
            merge_words(self.program, weights, [source.counts for source in self._sources])
            return
        for array, new in zip(self.program.weights, weights[0], strict=True):
            if array is not new:
                array[...] = new

    def _take_in(self) -> Iterator[Event]:
        """Between two epochs: machines that joined since become nodes, unless there is too little to do for them."""
        fixed = self.cluster.strategy in ("merge", "columns")
        refused = "" if fixed else self.site.grow(sum(self.visits) // PARTS)
        before, self.count = self.count, self.site.count
        if refused or self.count > before:
            yield Joined(**self.when(), nodes=self.count, refused=refused)
        if self.count > before:
            self._gone += [Traffic() for _ in range(before, self.count)]
            self._warm = []
            self._prepare()

    def _divide_anew(self) -> None:
        """There are more nodes than the snapshot has: all get new parts of the data; again, where that fails."""
        if self.parted:
            before, self.feed = self.feed, self.site.open_again()
            if not self.feed.is_as(before):
                raise ConfigError(f"{self.feed.source} has changed since the run began.")
            self._filling.clear()
        self._open_feed()
        known = [state for state in self.snapshot.states if state is not None]
        self.snapshot.states = [self._state_between(known, rank) for rank in range(self.count)]
        if not self.cluster.sync_every:
            self.snapshot.every = self._interval() * self._grown

    def _state_between(self, known: Sequence[RunState], rank: int) -> RunState:
        """A node that begins an epoch; a new one has random numbers of its own."""
        state = known[rank % len(known)]
        random = state.random + np.uint64(_SEED * (rank // len(known)))
        return replace(state, random=random, epoch_visits=self.visits[rank])

    def _wanted_growth(self) -> int:
        """The interval follows the link: changes take no more than a share of what it carries."""
        share = 1e-9
        for status, (before, began) in zip(self._statuses, self._warm, strict=True):
            seconds = status.seconds - began
            if seconds > 0:
                share = max(share, (status.traffic.busiest("changes") - before) / seconds / self._rate)
        growth: int = 2 ** max(0, math.ceil(math.log2(share / _SHARE)))
        return min(_GROWTH, growth)

    # -- events -----------------------------------------------------------------------------------------------------

    def _started(self) -> Started:
        started = [each.started for each in self.prepared]
        first, cluster = started[0], self.cluster
        each = sum(p.units for p in self.prepared) / max(1, sum(p.samples for p in self.prepared))
        told: dict[str, Any] = {"unit": self.program.unit, "each": each} if self.program.tells_units else {}
        how = f"{cluster.strategy}{', asynchronous' if cluster.asynchronous else ''}"
        words = round(self.snapshot.every * each) if self.program.tells_units else self.snapshot.every
        link = f"; the slowest link carries {self._rate / 1e6:,.0f} MB/s" if self._rate < math.inf else ""
        notes = [
            *self.site.session.notes,
            f"{self.count} nodes of {self.site.workers} workers, {how}: an exchange every {words:,} "
            f"{self.program.unit if self.program.tells_units else 'samples'} of a node{link}.",
            *dict.fromkeys(note for one in started for note in one.notes),
        ]
        return Started(
            **self.when(), total=self.total, threads=self.count * self.site.workers, mode=self.config.mode,
            sharing=first.sharing, lr=self.lr, compile_seconds=max(one.compile_seconds for one in started),
            prepare_seconds=max(one.prepare_seconds for one in started), notes=tuple(notes), **told,
        )  # fmt: skip

    def _progress(self) -> Progress:
        done = max(1, self.samples)
        speed = sum(status.speed for status in self._statuses)
        return Progress(
            **self.when(), total=self.total, loss=_weighted([status.loss for status in self._statuses], self.visits),
            lr=self._statuses[0].lr, samples_per_second=speed,
            units_per_second=sum(status.units_speed for status in self._statuses),
            seconds_left=(self.total - self.samples) / speed if speed else math.nan,
            balance=tuple(status.samples / done for status in self._statuses),
        )  # fmt: skip

    def _nodes(self) -> Nodes:
        nodes = []
        for status, gone in zip(self._statuses, self._gone, strict=True):
            traffic = status.traffic.plus(gone)
            total = traffic.total
            nodes.append({
                "node": status.rank, "samples": status.samples, "units_per_second": status.units_speed,
                "sent": total.sent, "received": total.received, "messages_sent": total.messages_sent,
                "messages_received": total.messages_received, "seconds_waited": traffic.waited,
                "seconds_exchanging": traffic.exchanging, "exchanges": traffic.exchanges,
                "kinds": traffic.told()["kinds"], **status.usage,
            })  # fmt: skip
        self._mirror.show(nodes)
        return Nodes(**self.when(), nodes=tuple(nodes), every=self.snapshot.every, again=self.again)

    def _end_epoch(self, reports: Sequence[Report]) -> EpochEnded:
        if self.valid is not None:
            began = time.perf_counter()
            self.metrics = self.program.evaluate(self.valid, cores())
            self._evaluating += time.perf_counter() - began
        watched = judged(self.config, self.program, self.metrics, self.loss) if self.valid is not None else self.loss
        best = watched < self.best_loss if self.valid is not None else True
        if best:
            self.best_loss, self.best_epoch = watched, self.epoch
        return EpochEnded(
            **self.when(), loss=self.loss, lr=self.lr_now, epoch_seconds=max(r.epoch_seconds for r in reports),
            metrics=dict(self.metrics), best=best,
        )  # fmt: skip

    def _finished(self, reason: str) -> Finished:
        units, samples = sum(p.units for p in self.prepared), max(1, sum(p.samples for p in self.prepared))
        speed = self.samples / self.seconds if self.seconds > 0 else 0.0
        return Finished(
            **self.when(), reason=reason, loss=self.loss, units=round(self.samples * units / samples),
            train_seconds=self.seconds, evaluate_seconds=self._evaluating, samples_per_second=speed,
            units_per_second=speed * units / samples, metrics=dict(self.metrics),
        )  # fmt: skip

    # -- where it stands, for a checkpoint ----------------------------------------------------------------------------

    def state(self) -> RunState:
        """Of all nodes in one: visits are those of all in this epoch, `epoch_visits` those of a node between exchanges,
        random states one node's after another's."""
        states = [state for state in self.snapshot.states if state is not None]
        return RunState(
            position=Position(self.epoch, sum(state.position.visits for state in states)),
            random=np.concatenate([state.random for state in states]), seed=self.config.seed, sharing=states[0].sharing,
            lr=self.lr, epoch_visits=self.snapshot.every, epochs=self.config.epochs,
            loss_sum=sum(state.loss_sum for state in states),
            last_loss=self.loss, best_loss=self.best_loss, best_epoch=self.best_epoch, train_seconds=self.seconds,
        )  # fmt: skip

    def _states_of(self, start: RunState, every: int) -> Iterator[RunState]:
        """The state of each node, from that of all."""
        epoch, visits = start.position
        whole = sum(self.visits)
        before = [epoch * v // every for v in self.visits]
        number = (visits + epoch * whole - every * sum(before)) // (every * self.count) if visits else 0
        places = [(before[k] + number) * every - epoch * v if visits else 0 for k, v in enumerate(self.visits)]
        if sum(places) != visits or len(start.random) % self.count:
            raise ConfigError(
                f"the run stood at visit {visits:,} of an epoch, which these {self.count} nodes never do; go on with "
                "the data and the nodes that it had."
            )
        for rank, place in enumerate(places):
            random = np.split(start.random, self.count)[rank]
            yield replace(
                start, position=Position(epoch, place), random=random, epoch_visits=self.visits[rank],
                loss_sum=start.loss_sum / self.count,
            )  # fmt: skip


def _weighted(values: Sequence[float], weights: Sequence[int]) -> float:
    """The mean of those that are known."""
    known = [(value, weight) for value, weight in zip(values, weights, strict=True) if math.isfinite(value)]
    return sum(v * w for v, w in known) / sum(w for _, w in known) if known else math.nan
