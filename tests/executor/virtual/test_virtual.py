"""Virtual workers: the same run twice, the serial run where nothing comes between, and no visit or update too few."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import pytest

import hogwild
from hogwild.errors import ConfigError
from hogwild.executor.trace import add_up
from hogwild.executor.virtual.machine import Machine, Pace
from hogwild.executor.virtual.run import VirtualExecutor
from problems.tasks import Cells, Touches, count_program, touches

VISITS, EPOCHS = 600, 2
SHARED = Pace(slice=2e-6, jitter=0.3)  # slices of a few visits: they end in the middle of some


def _feed() -> Any:
    random = np.random.default_rng(3)
    rows = (random.random((VISITS, 30)) < 0.2) * random.normal(size=(VISITS, 30))
    return hogwild.feed_of(rows.astype(np.float32), rows[:, 0] + rows[:, 1] > 0)


FEED = _feed()


def _run(executor: Any, program: Any = None, feed: Any = FEED, **options: Any) -> tuple[Any, list[Any], dict[str, Any]]:
    """Weights, events of epochs, and what the backend counted."""
    program = program or hogwild.Linear(l2=1e-3)
    epochs, counted = [], {}
    for event in executor.run(program, feed, **{"epochs": EPOCHS, "lr": 0.1, **options}):
        if event.kind == "epoch":
            epochs.append(event)
        if event.kind == "finished" and isinstance(executor, VirtualExecutor):
            backend = executor.backend
            counted = {"visits": backend.visits, "lost": backend.lost, "seconds": backend.seconds, "busy": backend.busy}
    return program.weights, epochs, counted


def _same(one: Any, other: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _gradients(epochs: list[Any]) -> list[int]:
    return [add_up(epoch.trace)["gradients"] for epoch in epochs]


def test_one_virtual_worker_is_the_serial_run_bit_for_bit():
    serial, epochs, _ = _run(hogwild.AsyncExecutor(mode="serial"))
    virtual, predicted, counted = _run(VirtualExecutor(Machine(1)))
    assert _same(serial, virtual)
    assert [event.loss for event in epochs] == [event.loss for event in predicted]
    assert counted["visits"] == EPOCHS * VISITS


@pytest.mark.parametrize("workers", [2, 9])
def test_with_no_delay_and_nothing_lost_it_is_the_serial_run(workers):
    serial, epochs, _ = _run(hogwild.AsyncExecutor(mode="serial"))
    virtual, predicted, _ = _run(VirtualExecutor(Machine(workers, delay=0.0, lost=0.0)))
    assert _same(serial, virtual)
    assert [event.loss for event in epochs] == [event.loss for event in predicted]


@pytest.mark.full
def test_the_loop_of_virtual_workers_makes_what_gradient_and_apply_make_in_turn():
    """A chance that never comes is not zero: the loop of virtual workers makes these visits, one after the other."""
    locked, epochs, _ = _run(hogwild.AsyncExecutor(mode="locked", threads=1))
    virtual, predicted, counted = _run(VirtualExecutor(Machine(5, delay=0.0, lost=1e-300)))
    assert _same(locked, virtual)
    assert [event.loss for event in epochs] == [event.loss for event in predicted]
    assert counted["lost"] == 0


@pytest.mark.parametrize("machine", [Machine(7), Machine(6, cores=2, load=1.5, pace=SHARED), Machine(4, delay=2.0)])
def test_the_same_run_twice_and_another_with_another_seed(machine):
    first, epochs, counted = _run(VirtualExecutor(machine))
    again, repeated, recounted = _run(VirtualExecutor(machine))
    assert _same(first, again)
    assert counted == recounted
    assert [event.trace for event in epochs] == [event.trace for event in repeated]
    other, _, _ = _run(VirtualExecutor(machine), seed=2)
    assert not _same(first, other)


@pytest.mark.parametrize("workers", [2, 31, 256])
def test_every_visit_is_made_once_an_epoch(workers):
    _, epochs, counted = _run(VirtualExecutor(Machine(workers)))
    assert counted["visits"] == EPOCHS * VISITS
    assert _gradients(epochs) == [VISITS] * EPOCHS
    assert counted["seconds"] >= counted["busy"] / workers * 0.999999


def test_two_cores_are_never_more_than_two_times_as_fast_and_others_take_their_share():
    free, shared = (_run(VirtualExecutor(Machine(6, cores=2, load=load, pace=SHARED)))[2] for load in (0.0, 4.0))
    assert 1.8 < free["busy"] / free["seconds"] <= 2.000001
    assert shared["busy"] / shared["seconds"] < 0.8 * free["busy"] / free["seconds"]


def test_more_workers_meet_more_writes_of_others():
    rates, delays = [], []
    for workers in (1, 2, 8, 32):
        _, epochs, _ = _run(VirtualExecutor(Machine(workers, every=4)))
        trace = add_up(tuple(worker for epoch in epochs for worker in epoch.trace))
        rates.append(trace["error_rate"])
        delays.append(trace["delay"]["mean"])
    assert rates[0] == delays[0] == 0
    assert rates == sorted(rates)
    assert delays == sorted(delays)
    assert rates[-1] > 0.5


def test_a_copy_of_the_executor_simulates_the_same_machine():
    executor = VirtualExecutor(Machine(3))
    assert _same(_run(executor)[0], _run(copy.deepcopy(executor))[0])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"workers": 0}, "workers is 0"), ({"workers": 257}, "workers is 257"), ({"cores": -1}, "cores is -1"),
        ({"delay": -0.5}, "delay is -0.5"), ({"delay": float("nan")}, "delay is nan"), ({"lost": 1.5}, "lost is 1.5"),
        ({"load": -1.0}, "load is -1.0"), ({"every": -1}, "every is -1"),
    ],
)  # fmt: skip
def test_machines_that_cannot_be(fields, why):
    with pytest.raises(ConfigError, match=why):
        Machine(**fields)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"mode": "locked"}, "mode is locked"), ({"sharing": "hot"}, "sharing is hot"),
        ({"threads": 2}, "threads is 2"), ({"device": "cpu"}, "device is cpu"),
    ],
)  # fmt: skip
def test_options_that_virtual_workers_cannot_have(options, why):
    with pytest.raises(ConfigError, match=why):
        VirtualExecutor(Machine(2), **options)


# -- Updates, counted: tasks of these tests are compiled anew ---------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("machine", [Machine(1), Machine(5, lost=0.0), Machine(64, lost=0.0),
                                     Machine(6, cores=2, load=1.3, lost=0.0, pace=SHARED),
                                     Machine(8, delay=3.0, lost=0.0)])  # fmt: skip
def test_where_nothing_is_lost_every_update_is_there(machine):
    feed = touches(500, 7)
    weights, epochs, counted = _run(VirtualExecutor(machine), count_program(7), feed)
    assert weights.values[:, 0].tolist() == (EPOCHS * np.bincount(feed.rows, minlength=7)).tolist()
    assert _gradients(epochs) == [500] * EPOCHS
    assert counted["lost"] == 0


@pytest.mark.full
@pytest.mark.parametrize("lost", [None, 0.3])
def test_what_is_missing_was_lost(lost):
    weights, _, counted = _run(VirtualExecutor(Machine(32, lost=lost)), count_program(3), touches(500, 3))
    assert 0 < counted["lost"] < EPOCHS * 500
    assert weights.values.sum() + counted["lost"] == EPOCHS * 500


class Both(NamedTuple):
    """Adds to two rows in each visit; its loss is how far they are apart when it reads them."""


@hogwild.gradient_of(Both)
def both_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    scratch.rows[0], scratch.rows[1] = 0, 1
    scratch.grads[0, 0] = scratch.grads[1, 0] = samples.amounts[visit]
    scratch.count[0] = 2
    return abs(weights.values[0, 0] - weights.values[1, 0])


@hogwild.apply_of(Both)
def both_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    for k in range(scratch.count[0]):
        weights.values[scratch.rows[k], 0] += scratch.grads[k, 0]


@pytest.mark.full
def test_torn_updates_are_seen_in_halves_and_never_more_than_there_are_workers():
    feed = Touches(np.zeros(500, np.int32), np.ones(500, np.float32))
    apart = {}
    for torn in (True, False):
        program = hogwild.CustomProgram(
            Both(), lambda: Cells(np.zeros((2, 1), np.float32)), room=hogwild.Room(rows=2),
            tables={"values": hogwild.Table(2, 1, "ranked")},
        )  # fmt: skip
        weights, epochs, _ = _run(VirtualExecutor(Machine(8, torn=torn, lost=0.0)), program, feed)
        apart[torn] = [epoch.loss for epoch in epochs]
        assert weights.values[:, 0].tolist() == [500 * EPOCHS] * 2
    assert apart[False] == [0.0] * EPOCHS
    assert all(0 < each < 8 for each in apart[True])
