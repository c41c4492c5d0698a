"""The seam: processes that share weights, runs that exchange differences, parts of the visits, other backends."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import hogwild
from hogwild.arrays import Table
from hogwild.errors import ConfigError, InputError
from hogwild.executor.delta import Delta, RowDelta
from hogwild.executor.events import Exchange
from hogwild.executor.plan import Plan
from hogwild.executor.sharing import WeightStore, map_weights
from hogwild.kernels.loop.order import file_order, locate, shuffled
from hogwild.programs.program import Program
from places import ROOT
from problems.tasks import Cells, Touches, count_program, touches

ROWS = 500


# -- parts of the visits, and exact positions -------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize(("samples", "block"), [(1, 1), (100, 1), (103, 16), (64, 64)])
def test_parts_of_an_order_have_every_sample_once(samples: int, block: int, parts: int) -> None:
    for whole in (shuffled(samples, 5, 2, block), file_order(samples)):
        shards = [whole.shard(part, parts) for part in range(parts)]
        found = [locate(shard, k) for shard in shards for k in range(shard.samples)]
        assert sorted(found) == list(range(samples))
        # They go through the order at the same pace: what the first k positions of all parts hold is its beginning.
        turns = [locate(shard, k) for k in range(shards[0].samples) for shard in shards if k < shard.samples]
        assert turns == [locate(whole, k) for k in range(samples)]


@pytest.mark.parametrize(("mode", "threads"), [("serial", 1), ("hogwild", 3), ("round-robin", 2), ("minibatch", 2)])
def test_runs_of_all_parts_make_every_visit_once(mode: str, threads: int) -> None:
    samples = touches(1001, ROWS)
    total = np.zeros(ROWS)
    for part in range(3):
        program = count_program(ROWS)
        executor = hogwild.AsyncExecutor(threads=threads, mode=mode, sharing="replica")
        *_, last = executor.run(program, samples, epochs=2, lr=1.0, shard=(part, 3))
        assert last.samples == 2 * len(range(part, 1001, 3))
        total += program.weights.values[:, 0]
    np.testing.assert_array_equal(total, 2 * np.bincount(samples.rows, minlength=ROWS))


@pytest.mark.parametrize(("mode", "threads"), [("serial", 1), ("hogwild", 3), ("round-robin", 2)])
def test_workers_stand_still_at_exact_positions(mode: str, threads: int) -> None:
    program, samples = count_program(ROWS), touches(1000, ROWS)
    executor = hogwild.AsyncExecutor(threads=threads, mode=mode, sharing="replica")
    seen = []
    for event in executor.run(program, samples, epochs=2, lr=1.0, exchange_every=300):
        if isinstance(event, Exchange):
            seen.append(event.samples)
            assert program.weights.values.sum() == event.samples
    assert seen == [300, 600, 900, 1200, 1500, 1800]
    np.testing.assert_array_equal(program.weights.values[:, 0], 2 * np.bincount(samples.rows, minlength=ROWS))


def test_exchanges_do_not_change_what_a_serial_run_learns() -> None:
    feed = hogwild.feed_of(np.random.default_rng(0).normal(size=(300, 5)), np.arange(300) % 2)
    found = []
    for every in (0, 70):
        program = hogwild.Linear(l2=0.01)
        events = hogwild.AsyncExecutor(mode="serial").run(program, feed, epochs=3, lr=0.1, exchange_every=every)
        losses = [event.loss for event in events if event.kind == "epoch"]
        found.append((losses, program.arrays()["weight"].tobytes()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shard": (2, 2)}, r"shard is \(2, 2\)"), ({"shard": (-1, 2)}, "counted from 0"),
        ({"exchange_every": -1}, "exchange_every is -1"),
        ({"exchange_every": 3, "mode": "round-robin", "threads": 2}, "multiple of 2 visits"),
    ],
)  # fmt: skip
def test_parts_and_exchanges_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        next(hogwild.AsyncExecutor().run(count_program(ROWS), touches(10, ROWS), lr=1.0, **options))


# -- two processes that map one store ---------------------------------------------------------------------------------

_CHILD = """
import json, sys
import numpy as np
import hogwild
from hogwild.executor.sharing import Handle, map_weights
from problems.tasks import Cells, count_program, touches
from problems.seam import linear_feed

handles, part = json.loads(sys.argv[1]), int(sys.argv[2])
maps = {kind: {name: Handle(*handle) for name, handle in found.items()} for kind, found in handles.items()}
counts = count_program(%d)
counts.weights = map_weights(Cells, maps["counts"])
samples = touches(4000, %d)
mine = samples._replace(rows=samples.rows // 2 * 2 + part)   # rows of its own: no addition can be lost
executor = hogwild.AsyncExecutor(threads=1, sharing="all")
*_, last = executor.run(counts, mine, epochs=2, lr=1.0)
feed = linear_feed()
linear = hogwild.Linear(optimizer="sgd")
linear.startup(feed, 1)
linear.finish(feed)
linear.weights = map_weights(type(linear.weights), maps["linear"])
*_, trained = hogwild.AsyncExecutor(threads=1, sharing="all").run(linear, feed, epochs=5, lr=0.1, shard=(part, 2))
print(json.dumps([last.samples, trained.samples]))
"""


def test_two_processes_map_one_store_and_train_without_locks() -> None:
    """Each counts rows of its own, so that the sum is exact; then both train one model, each with half the visits."""
    from problems.seam import linear_feed

    counts = WeightStore(
        "all", Cells(np.zeros((ROWS, 1), np.float32)), {"values": Table(ROWS, 1, "ranked")}, {}, 1, place="shared"
    )
    feed = linear_feed()
    program = hogwild.Linear(optimizer="sgd")
    program.startup(feed, 1)
    program.finish(feed)
    model = WeightStore("all", program.weights, program.tables(), {}, 1, place="shared")
    handles = {"counts": counts.handles(), "linear": model.handles()}
    files = [handle.file for found in handles.values() for handle in found.values()]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _CHILD % (ROWS, ROWS), json.dumps(handles), str(part)], pass_fds=files,
            stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths},
        )
        for part in range(2)
    ]  # fmt: skip
    told = [json.loads(child.communicate(timeout=300)[0]) for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert told == [[8000, 5 * len(feed) // 2]] * 2
    rows = touches(4000, ROWS).rows // 2 * 2
    expected = 2 * (np.bincount(rows, minlength=ROWS) + np.bincount(rows + 1, minlength=ROWS))
    np.testing.assert_array_equal(counts.weights.values[:, 0], expected)
    alone = hogwild.train(hogwild.Linear(optimizer="sgd"), feed, epochs=5, lr=0.1, mode="serial", quiet=True)
    program.weights = model.weights
    # Visits that overwrite each other cost little here: classes are far apart, and so is what half of them would reach.
    assert program.evaluate(feed)["loss"] < 1.2 * alone.evaluate(feed)["loss"]


def test_weights_on_the_heap_have_no_handles_and_memory_is_checked_before_it_is_mapped() -> None:
    weights, tables = Cells(np.zeros((4, 1), np.float32)), {"values": Table(4, 1)}
    with pytest.raises(ConfigError, match="place='shared'"):
        WeightStore("all", weights, tables, {}, 1).handles()
    store = WeightStore("replica", weights, tables, {"values": 4}, 2, place="shared")
    handles = store.handles()
    with pytest.raises(ConfigError, match="holds 4096 bytes"):
        map_weights(Cells, {"values": handles["values"]._replace(shape=(1 << 20, 1))})
    other = map_weights(Cells, handles)
    store.view(0).values[2] = 5  # private until it is merged
    assert other.values.sum() == 0
    store.collect()
    assert other.values[2, 0] == 5
    other.values[1] = 7
    store.copies[1].merge_all()
    assert store.view(1).values[:, 0].tolist() == [0, 7, 5, 0]


# -- differences of rows, exchanged -----------------------------------------------------------------------------------


class _Renamed(hogwild.CustomProgram):
    """Counts whose rows this process has ranked in an order of its own."""

    names: Any = None

    def row_ids(self, table: str) -> Any:
        return self.names


def _renamed(seed: int) -> tuple[_Renamed, Touches, Any]:
    """A program, its samples, and the count of each row by its name."""
    program = count_program(ROWS)
    program.__class__ = _Renamed
    program.names = np.random.default_rng(seed).permutation(ROWS).astype(np.int64) * 7 - 1000
    samples = touches(30_000 + 1000 * seed, ROWS)
    counts = dict(zip(program.names.tolist(), 2 * np.bincount(samples.rows, minlength=ROWS), strict=True))
    return program, samples, counts


def _swap(deltas: Sequence[Delta], most: int = 1 << 16) -> int:
    """Tell each of two what the other has learnt; returns how many rows were told."""
    told = [delta.take(most) for delta in deltas]
    for delta, changes in zip(deltas, reversed(told), strict=True):
        for change in changes:
            delta.add(change)
    return sum(len(change.ids) for changes in told for change in changes)


@pytest.mark.parametrize("sharing", ["replica", "hot"])
def test_two_stores_exchange_what_they_learn_and_end_equal(sharing: str) -> None:
    """Integers in float cells, while two workers of each run: a difference that is lost or told twice would show."""
    sides = [_renamed(1), _renamed(2)]
    executors = [hogwild.AsyncExecutor(threads=2, sharing=sharing, hot_rows=ROWS) for _ in sides]
    runs = [
        executor.run(program, samples, epochs=2, lr=1.0)
        for executor, (program, samples, _) in zip(executors, sides, strict=True)
    ]
    for run in runs:
        next(run)
    deltas = [executor.open_delta() for executor in executors]
    waiting = list(runs)
    while waiting:
        _swap(deltas, most=100)
        waiting = [run for run in waiting if next(run).kind != "finished"]  # both stand at their end, not past it
    while _swap(deltas):
        pass
    for run in runs:
        assert list(run) == []
    expected = {name: count + sides[1][2][name] for name, count in sides[0][2].items()}
    for program, _, _ in sides:
        assert dict(zip(program.names.tolist(), program.weights.values[:, 0].tolist(), strict=True)) == expected


def test_a_difference_is_told_once_in_pieces_and_not_echoed() -> None:
    tables = {"values": Table(10, 2, "ranked", (True, False))}
    stores = [WeightStore("all", Cells(np.zeros((10, 2), np.float32)), tables, {}, 1) for _ in range(2)]
    names = [np.arange(10)[::-1].copy(), np.arange(10)]
    one, two = (store.open_delta(lambda _, k=k: names[k]) for k, store in enumerate(stores))
    stores[0].weights.values[:, 0] = np.arange(10)
    stores[0].weights.values[:, 1] = 99  # does not add up: stays where it is
    pieces = [one.take(4) for _ in range(4)]
    assert [sum(len(change.ids) for change in piece) for piece in pieces] == [4, 4, 1, 0]
    for change in (change for piece in pieces for change in piece):
        two.add(change)
    np.testing.assert_array_equal(stores[1].weights.values[:, 0], np.arange(10)[::-1])
    assert stores[1].weights.values[:, 1].sum() == 0
    assert two.take() == []  # what came from elsewhere is no news
    stores[1].weights.values[3, 0] += 0.1
    (change,) = two.take()
    assert (change.table, change.ids.tolist()) == ("values", [3])
    one.add(change)
    assert stores[0].weights.values[6, 0] == pytest.approx(6.1)
    assert one.take() == []


def test_rows_and_tables_that_are_not_known_are_refused() -> None:
    store = WeightStore("all", Cells(np.zeros((3, 1), np.float32)), {"values": Table(3, 1)}, {}, 1)
    delta = store.open_delta(lambda table: None)
    for change, message in (
        (RowDelta("values", np.array([1, 3]), np.ones((2, 1), np.float32)), "row 3 of table 'values' is not known"),
        (RowDelta("other", np.array([1]), np.ones((1, 1), np.float32)), "no table 'other' here"),
        (RowDelta("values", np.array([1]), np.ones((1, 2), np.float32)), "a row has 1 cells"),
    ):
        with pytest.raises(InputError, match=message):
            delta.add(change)
    assert store.weights.values.sum() == 0
    with pytest.raises(ConfigError, match="there is no run"):
        hogwild.AsyncExecutor().open_delta()


# -- a backend of one's own -------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    line: Any


class _Slope(Program):
    """Fits a line through the origin, with visits in Python."""

    name = "slope"

    def __init__(self) -> None:
        self.weights = _Line(np.zeros(1, np.float32))

    def startup(self, feed: Any, seed: int) -> None:
        self.feed = feed

    def backend(self, config: Any) -> Any:
        return _InPython

    def evaluate(self, feed: Any, threads: int = 1) -> dict[str, float]:
        return {"loss": float(np.mean((feed[:, 0] * self.weights.line[0] - feed[:, 1]) ** 2) / 2)}


class _InPython:
    """Visits as plain Python, one worker at a time."""

    trace = None
    notes = ()
    group = 1
    span_seconds = 0.0

    def __init__(self, plan: Plan) -> None:
        self._plan, self._lock, self.calls = plan, threading.Lock(), []
        self.random = np.zeros(plan.workers, np.uint64)

    def open(self, store: WeightStore) -> None:
        self._store = store

    def prepare(self) -> float:
        return 0.0

    def begin(self, position: int) -> None:
        self.calls.append(position)

    def run(self, worker: int, span: Any) -> float:
        with self._lock:
            return self._visit(self._store.view(worker), span)

    def probe(self, weights: Any, spans: Sequence[Any], most: float = math.inf) -> float:
        return [self._visit(weights, span) for span in spans][-1] if spans else 0.0

    def _visit(self, weights: Any, span: Any) -> float:
        loss = span.loss
        for position in range(span.start, span.stop):
            x, y = self._plan.program.feed[locate(span.order, position)]
            apart = x * weights.line[0] - y
            weights.line[0] -= span.schedule.first * apart * x
            loss += float(apart) ** 2 / 2
        return loss

    def fetch(self) -> None:
        return

    def send(self) -> None:
        return

    def stop(self) -> None:
        return

    def phases(self, worker: int) -> Sequence[int]:
        return ()

    def close(self) -> None:
        self.calls.append(-1)


@pytest.mark.parametrize(("threads", "sharing"), [(1, "auto"), (2, "auto"), (2, "replica")])
def test_a_program_whose_visits_are_not_compiled_code(threads: int, sharing: str) -> None:
    """Calibrated, trained, validated and stopped by the same executor."""
    x = np.random.default_rng(0).normal(size=300)
    feed = np.column_stack([x, 3 * x])
    program = _Slope()
    executor = hogwild.AsyncExecutor(threads=threads, sharing=sharing)
    events = list(executor.run(program, feed, epochs=4, valid=feed))
    assert events[0].notes[0].startswith("learning rate")
    assert events[-1].samples == 1200
    assert program.weights.line[0] == pytest.approx(3, abs=0.01)
    assert events[-1].metrics["loss"] < 1e-3
    assert sum(event.kind == "epoch" for event in events) == 4


def test_slow_visits_are_tried_less_often() -> None:
    """A visit that takes ten milliseconds: calibration makes a few hundred of them, not ten thousands."""

    def visits(seconds: float) -> int:
        program = _Slope()
        program.visit_seconds = seconds
        made = []

        class Counting(_InPython):
            def probe(self, weights: Any, spans: Sequence[Any], most: float = math.inf) -> float:
                made.extend(span.stop - span.start for span in spans)
                return super().probe(weights, spans, most)

        program.backend = lambda config: Counting
        x = np.linspace(-1, 1, 5000)
        next(hogwild.AsyncExecutor(mode="serial").run(program, np.column_stack([x, 3 * x]), epochs=1))
        return sum(made)

    assert visits(2e-5) > 10_000
    assert visits(1e-2) < 1000
