"""Watch expressions: parsed by us, never evaluated; values read from a program's arrays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

import hogwild
from hogwild.errors import ConfigError
from hogwild.executor.readers.watch import Every, Watch, make_watch, parse_every
from problems.tasks import count_program, touches


class Weights(NamedTuple):
    table: np.ndarray
    bias: np.ndarray


class Model:
    """What a Watch asks of a program."""

    def __init__(self):
        self.weights = Weights(np.arange(-6, 6, dtype=np.float32).reshape(3, 4), np.array([0.5], np.float32))

    def watchable(self):
        return {**self.weights._asdict(), "twice": lambda: 2 * self.weights.table}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("bias", [0.5]),
        ("bias[0]", 0.5),
        ("table[1]", [-2, -1, 0, 1]),
        ("table[1,:2]", [-2, -1]),
        ("table[-1, 1:4:2]", [3, 5]),
        ("table[:, 0]", [-6, -2, 2]),
        (" table[ 2 , : ] ", [2, 3, 4, 5]),
        ("table[::-2,3]", [5, -3]),
        ("twice[0,:1]", [-12]),
        ("min(table)", -6),
        ("max(table[0])", -3),
        ("mean(table)", -0.5),
        ("norm(table[2])", math.sqrt(4 + 9 + 16 + 25)),
        ("rms(table[2])", math.sqrt((4 + 9 + 16 + 25) / 4)),
        ("nonzeros(table)", 11),
        ("nonzeros( twice[1] )", 3),
    ],
)
def test_values(text, value):
    assert Watch([text]).read(Model()) == {text: pytest.approx(value)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tabel", "no 'tabel' .did you mean table"),
        ("nrom(table)", "did you mean norm"),
        ("table[x]", "'x' is no index"),
        ("table[0", "not NAME"),
        ("table[0][1]", "no index"),
        ("norm(table))", "not NAME"),
        ("__import__('os').system('true')", "not NAME|no '__import__'"),
        ("table.__class__", "known names: table, bias, twice"),
        ("table[9]", "shape 3 x 4"),
        ("table[0,0,0]", "shape 3 x 4"),
        ("table[::0]", "step of 0"),
        ("", "not NAME"),
    ],
)
def test_expressions_that_cannot_be_read(text, said):
    with pytest.raises(ConfigError, match=said):
        Watch([text]).read(Model())


def test_too_many_cells_are_refused_with_a_remedy():
    model = Model()
    model.weights = Weights(np.zeros((40, 40), np.float32), np.zeros(1, np.float32))
    with pytest.raises(ConfigError, match=r"1600 cells.*table\[0, :5\].*norm\(table\)"):
        Watch(["table"]).read(model)


def test_functions_of_the_user():
    def largest(weights):
        return np.abs(weights.table).max()

    watch = Watch([largest, lambda weights: weights.bias, lambda weights: 1])
    assert watch.read(Model()) == {"largest": 6.0, "function": [0.5], "function 2": 1}
    assert Watch({"mine": largest, "also": "norm(bias)"}).read(Model()) == {"mine": 6.0, "also": 0.5}


def test_a_function_that_fails_is_named():
    with pytest.raises(ConfigError, match="'broken': the function failed: ZeroDivisionError"):
        Watch({"broken": lambda weights: 1 / 0}).read(Model())
    with pytest.raises(ConfigError, match="must return"):
        Watch({"text": lambda weights: "hello"}).read(Model())
    with pytest.raises(ConfigError, match="neither"):
        Watch([3])


def test_values_are_copies():
    model = Model()
    seen = Watch(["table[0]"]).read(model)
    model.weights.table[:] = 99
    assert seen == {"table[0]": [-6, -5, -4, -3]}


def test_every():
    assert parse_every("100000") == Every(samples=100_000)
    assert parse_every(10) == Every(samples=10)
    assert parse_every("1e5") == Every(samples=100_000)
    assert parse_every("2.5s") == Every(seconds=2.5)
    assert parse_every("2m") == Every(seconds=120)
    for wrong in ("0", "-1", "s", "5x", "1.5", "nan", "", "1..5s", "inf"):
        with pytest.raises(ConfigError, match="100000"):
            parse_every(wrong)


def test_due_by_samples_and_by_seconds():
    by_samples = Watch(["bias"], every=100)
    assert [by_samples.due(samples, 0.0) for samples in (0, 99, 100, 150, 350, 399, 400)] == [
        False, False, True, False, True, False, True,
    ]  # fmt: skip
    by_seconds = Watch(["bias"], every="2s")
    assert [by_seconds.due(0, seconds) for seconds in (0.0, 1.9, 2.1, 3.9, 9.0, 9.5)] == [
        False, False, True, False, True, False,
    ]  # fmt: skip


def test_make_watch():
    assert make_watch(None) is None
    assert make_watch([]) is None
    watch = make_watch("norm(table)")
    assert watch is not None
    assert watch.names == ("norm(table)",)
    assert make_watch(watch) is watch


def test_the_default_of_a_program_is_its_raw_arrays():
    from hogwild.programs.program import Program

    class Bare(Program):
        def startup(self, feed, seed):
            self.weights = Weights(np.zeros((1, 2), np.float32), np.ones(1, np.float32))

    program = Bare()
    program.startup(None, 1)
    assert Watch(["bias", "table[0]"]).read(program) == {"bias": [1.0], "table[0]": [0.0, 0.0]}


def _values(program, samples, every, **options):
    watch = Watch({"sum": lambda weights: float(weights.values.sum())}, every=every)
    executor = hogwild.AsyncExecutor(**options)
    events = [e for e in executor.run(program, samples, watch=watch, lr=1.0) if e.kind == "watched"]
    return [(event.samples, event.values["sum"]) for event in events]


@pytest.mark.parametrize("mode", ["hogwild", "serial", "locked"])
@pytest.mark.parametrize("every", [1000, 777, 20_000, 33_000])
def test_a_number_of_samples_is_exact(mode, every):
    """Each visit adds 1: every value is that of its sample number, whoever made the visits, private rows included."""
    for sharing in ("all", "hot", "replica") if mode == "hogwild" else ("all",):
        seen = _values(count_program(50), touches(20_000, 50), every, mode=mode, threads=2, sharing=sharing, epochs=3)
        if mode == "hogwild" and sharing == "all":  # two workers may lose updates of one another
            assert [samples for samples, _ in seen] == list(range(every, 60_001, every))
        else:
            assert seen == [(samples, samples) for samples in range(every, 60_001, every)]


@pytest.mark.parametrize(("mode", "batch"), [("round-robin", 0), ("minibatch", 10)])
def test_where_workers_go_in_rounds_it_is_the_round_that_the_sample_is_in(mode, batch):
    seen = _values(count_program(50), touches(999, 50), 100, mode=mode, threads=3, batch=batch, epochs=1)
    step = 3 if mode == "round-robin" else 30
    assert seen == [(samples, samples) for samples in (-(-k // step) * step for k in range(100, 1000, 100))]


def test_a_watch_serves_one_run_after_another_and_one_that_goes_on():
    watch = Watch({"sum": lambda weights: float(weights.values.sum())}, every=300)
    program, executor = count_program(5), hogwild.AsyncExecutor(mode="serial", shuffle=False)
    for _ in range(2):
        run = executor.run(program, touches(1000, 5), watch=watch, lr=1.0, epochs=1)
        assert [event.samples for event in run if event.kind == "watched"] == [300, 600, 900]
    assert program.weights.values.sum() == 2000
    for event in executor.run(program, touches(1000, 5), watch=watch, lr=1.0, epochs=1):
        if event.kind == "watched":
            executor.stop()
    run = executor.run(program, touches(1000, 5), watch=watch, lr=1.0, epochs=1, start=executor.state())
    assert [event.samples for event in run if event.kind == "watched"] == [600, 900]


def test_looking_changes_nothing():
    options = {"mode": "serial", "epochs": 2, "lr": 0.3}
    feed = hogwild.feed_of(np.random.default_rng(0).normal(size=(500, 4)), [0, 1] * 250)
    plain, looked = hogwild.Linear(l2=0.01), hogwild.Linear(l2=0.01)
    list(hogwild.AsyncExecutor(**options).run(plain, feed))
    list(hogwild.AsyncExecutor(**options).run(looked, feed, watch=Watch("norm(weights)", every=7)))
    np.testing.assert_array_equal(plain.arrays()["weight"], looked.arrays()["weight"])
