"""Watch expressions: parsed by us, never evaluated; values read from a program's arrays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from hogwild.errors import ConfigError
from hogwild.executor.readers.watch import Every, Watch, make_watch, parse_every


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
