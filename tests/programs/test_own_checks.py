"""A user's own program that is wrong: nothing is spoilt in silence, and the message names the line."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import hogwild
from compiling import cases

ROWS, WIDTH = 10, 3


class Touches(NamedTuple):
    rows: np.ndarray
    amounts: np.ndarray


class Cells(NamedTuple):
    values: np.ndarray


class Add(NamedTuple):
    """Adds amounts to a row. `more` rows than the room has; `far`: cells behind a row; `jump`: rows behind the last."""

    more: int = 0
    far: int = 0
    jump: int = 0
    count: int = 1


@hogwild.gradient_of(Add)
def add_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    row = samples.rows[visit]
    for k in range(1 + task.more):
        scratch.rows[k] = row
    for c in range(WIDTH + task.far):
        scratch.grads[0, c] = samples.amounts[visit]
    scratch.count[0] = task.count
    return samples.amounts[visit]


@numba.njit
def _move(values: Any, row: int, moves: Any) -> None:
    for c in range(len(moves)):
        values[row, c] += moves[c]


@hogwild.apply_of(Add)
def add_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    for k in range(scratch.count[0]):
        _move(weights.values, scratch.rows[k] + task.jump, scratch.grads[k])


def _line(function: Any, text: str) -> int:
    """Where a line stands in this file."""
    lines, first = inspect.getsourcelines(getattr(function, "py_func", function))
    return first + next(k for k, line in enumerate(lines) if text in line)


def _program(task: Any, **options: Any) -> hogwild.CustomProgram:
    def startup() -> Cells:
        return Cells(np.zeros((ROWS, WIDTH), np.float32))

    return hogwild.CustomProgram(task, startup, **{"room": hogwild.Room(rows=1, width=WIDTH), **options})


def _touches(rows: list[int]) -> Touches:
    return Touches(np.array(rows, np.int32), np.ones(len(rows), np.float32))


def _train(task: Any, rows: list[int], mode: str = "serial") -> Any:
    options: dict[str, Any] = {"mode": mode, "threads": 2, "sharing": "all", "epochs": 1, "lr": 1.0, "quiet": True}
    return hogwild.train(_program(task), _touches(rows), **options).weights.values


def test_a_program_that_keeps_to_its_room_is_trained_as_ever() -> None:
    values = _train(Add(), [1] * 50 + [9] * 20)
    assert values[:, 0].tolist() == [0, 50, 0, 0, 0, 0, 0, 0, 0, 20]


@pytest.mark.parametrize(
    ("task", "function", "line", "said"),
    [
        (Add(more=1), add_gradient, "scratch.rows[k] = row", "index 1 is out of bounds"),
        (Add(more=10**6), add_gradient, "scratch.rows[k] = row", "index 1 is out of bounds"),
        (Add(far=1), add_gradient, "scratch.grads[0, c] =", "index 3 is out of bounds"),
        (Add(count=2), add_gradient, "scratch.count[0] =", r"scratch.count\[0\] is 2, but Room\(rows=1\)"),
        (Add(count=-1), add_gradient, "scratch.count[0] =", r"scratch.count\[0\] is -1"),
        (Add(jump=9), _move, "values[row, c] +=", "index 10 is out of bounds"),
    ],
)
@pytest.mark.parametrize("mode", ["serial", "hogwild"])
def test_scratch_and_weights_out_of_bounds_are_named_with_file_and_line(
    mode: str, task: Any, function: Any, line: str, said: str
) -> None:
    number = _line(function, line)
    with pytest.raises(hogwild.ConfigError, match=rf"\(test_own_checks.py, line {number}\): {said}") as found:
        _train(task, [1] * 50, mode)
    assert line in str(found.value)


@pytest.mark.parametrize("row", [-1, -3, ROWS, 5_000_000, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("at", [0, 777, 1999])
def test_a_row_that_is_not_there_is_found_before_anything_runs(row: int, at: int) -> None:
    """Wherever it stands among the samples: the largest and the least number of an array are looked at first."""
    rows = [1] * 2000
    rows[at] = row
    number = _line(add_gradient, "scratch.rows[k] = row")
    program = _program(Add())
    with pytest.raises(hogwild.ConfigError, match=rf"visit {at}: .*line {number}\): row {row} .* from 0 to 9"):
        hogwild.train(program, _touches(rows), mode="serial", epochs=1, lr=1.0, quiet=True)
    assert not program.weights.values.any()


class Hide(NamedTuple):
    """As Add, of rows that no array of samples shows."""


@hogwild.gradient_of(Hide)
def hide_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    scratch.rows[0] = np.int32(samples.amounts[visit])
    scratch.grads[0, :] = np.float32(1)
    scratch.count[0] = 1
    return np.float32(1)


@hogwild.apply_of(Hide)
def hide_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    for k in range(scratch.count[0]):
        for c in range(WIDTH):
            weights.values[scratch.rows[k], c] += scratch.grads[k, c]


@pytest.mark.parametrize("mode", cases(["serial", "hogwild", "locked", "round-robin", "minibatch"], ["serial"]))
@pytest.mark.parametrize("trace", cases([False, True], [False]))
def test_every_visit_of_a_run_is_looked_at(mode: str, trace: bool) -> None:
    """Behind the visits that are rehearsed too, in every mode, with a trace and without: it is not applied."""
    samples = Touches(np.zeros(20_000, np.int32), np.ones(20_000, np.float32))
    samples.amounts[15_000] = -2
    program = _program(Hide())
    executor = hogwild.AsyncExecutor(threads=2, mode=mode, trace=trace, sharing="all", shuffle=False)
    number = _line(hide_gradient, "scratch.rows[0] =")
    with pytest.raises(hogwild.HogwildError, match=rf"visit 15000: .*line {number}\): row -2 "):
        list(executor.run(program, samples, epochs=1, lr=1.0))
    assert not program.weights.values[ROWS - 2].any()


class Spill(NamedTuple):
    """As Add, with a visit that writes behind its room."""

    grads: bool


@hogwild.gradient_of(Spill)
def spill_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    k = 2 if samples.amounts[visit] == 2 else 0
    scratch.rows[0] = samples.rows[visit]
    scratch.grads[0, :] = np.float32(1)
    if task.grads:
        scratch.grads[k, 0] = np.float32(1)
    else:
        scratch.rows[k] = 1
    scratch.count[0] = 1
    return np.float32(1)


@hogwild.apply_of(Spill)
def spill_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    for k in range(scratch.count[0]):
        for c in range(WIDTH):
            weights.values[scratch.rows[k], c] += scratch.grads[k, c]


@pytest.mark.parametrize("mode", ["serial", "hogwild", "minibatch"])
@pytest.mark.parametrize(("grads", "line"), [(True, "scratch.grads[k, 0] ="), (False, "scratch.rows[k] = 1")])
def test_what_is_written_behind_its_room_is_found_in_every_visit(mode: str, grads: bool, line: str) -> None:
    """Behind the visits that are rehearsed too: it was lost without a word."""
    samples = Touches(np.zeros(20_000, np.int32), np.zeros(20_000, np.float32))
    samples.amounts[15_000], samples.amounts[19_000] = 2, 9  # the largest number, which is looked at first, is sound
    number = _line(spill_gradient, line)
    executor = hogwild.AsyncExecutor(threads=2, mode=mode, sharing="all", shuffle=False)
    with pytest.raises(hogwild.HogwildError, match=rf"visit 15000: .*line {number}\): index 2 is out of bounds"):
        list(executor.run(_program(Spill(grads)), samples, epochs=1, lr=1.0))


def test_arrays_of_unequal_lengths_are_refused_and_visits_allow_them() -> None:
    samples = Touches(np.zeros(100, np.int32), np.ones(10, np.float32))
    with pytest.raises(hogwild.InputError, match=r"differ in length \(rows 100, amounts 10\).*`visits`"):
        hogwild.train(_program(Add()), samples, mode="serial", lr=1.0, quiet=True)
    program = hogwild.train(_program(Add(), visits=10), samples, mode="serial", lr=1.0, epochs=1, quiet=True)
    assert program.weights.values[0].tolist() == [10, 10, 10]
    number = _line(add_gradient, "scratch.grads[0, c] =")
    with pytest.raises(hogwild.ConfigError, match=rf"visit 99: .*line {number}\): index 99 is out of bounds"):
        hogwild.train(_program(Add(), visits=100), samples, mode="serial", lr=1.0, quiet=True)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ((np.zeros(3, np.int32), np.ones(3, np.float32)), "NamedTuple of arrays, or a feed, not tuple"),
        ({"rows": np.zeros(3)}, "not dict"),
        (Touches([1, 2, 3], np.ones(3, np.float32)), r"samples.rows is a list; .*numpy.array\(rows\)"),  # type: ignore[arg-type]
    ],
)
def test_samples_of_another_kind_are_refused(samples: Any, said: str) -> None:
    with pytest.raises(hogwild.InputError, match=said):
        hogwild.train(_program(Add()), samples, mode="serial", lr=1.0, quiet=True)


# -- registered a second time -----------------------------------------------------------------------------------------


@pytest.mark.full
def test_functions_registered_again_after_a_run_are_those_that_run() -> None:
    class Change(NamedTuple):
        by: int

    def gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
        scratch.rows[0] = samples.rows[visit]
        scratch.grads[0, :] = np.float32(task.by)
        scratch.count[0] = 1
        return np.float32(1)

    def ten_times(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
        scratch.rows[0] = samples.rows[visit]
        scratch.grads[0, :] = np.float32(10 * task.by)
        scratch.count[0] = 1
        return np.float32(1)

    def apply_less(task: Any, weights: Any, scratch: Any, step: Any) -> None:
        for c in range(WIDTH):
            weights.values[scratch.rows[0], c] -= scratch.grads[0, c]

    hogwild.gradient_of(Change)(gradient)
    hogwild.apply_of(Change)(hide_apply)
    program = _program(Change(2))
    executor = hogwild.AsyncExecutor(mode="serial", epochs=1, lr=1.0)
    found = []
    register = (None, (hogwild.gradient_of, ten_times), (hogwild.apply_of, apply_less), (hogwild.gradient_of, gradient))
    for change in register:
        if change is not None:
            change[0](Change)(change[1])
        before = program.weights.values[4, 0] if program.weights is not None else 0.0
        list(executor.run(program, _touches([4] * 5)))
        found.append(float(program.weights.values[4, 0] - before))
    assert found == [10, 100, -100, -10]


# -- what is wrong at registration ------------------------------------------------------------------------------------


class Idle(NamedTuple):
    pass


def _four(task: Any, samples: Any, visit: int, weights: Any) -> Any:
    return np.float32(0)


def _silent(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    scratch.count[0] = 0


def _sometimes(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    if visit == 3:
        return  # noqa: RET502
    return np.float32(0)


def _any_number(*arguments: Any) -> Any:
    return np.float32(0)


@pytest.mark.parametrize(
    ("register", "function", "said"),
    [
        (hogwild.gradient_of, _four, r"_four \(test_own_checks.py, line \d+\) takes \(.*\); gradient takes "
         r"\(task, samples, visit, weights, scratch\)"),
        (hogwild.apply_of, _silent, r"_silent .*; apply takes \(task, weights, scratch, step\)"),
        (hogwild.fused_of, _four, r"fused takes \(task, samples, visit, weights, scratch, step\)"),
        (hogwild.gradient_of, _any_number, r"takes \(\*arguments.*\); gradient takes"),
        (hogwild.gradient_of, _silent, r"_silent \(test_own_checks.py, line \d+\) ends without a loss"),
        (hogwild.gradient_of, _sometimes, rf"line {_line(_sometimes, 'noqa: RET502')}\) ends without a loss"),
        (hogwild.gradient_of, 3, "takes a plain Python function, not 3"),
    ],
)  # fmt: skip
def test_functions_that_cannot_work_are_refused_at_registration(register: Any, function: Any, said: str) -> None:
    with pytest.raises(hogwild.ConfigError, match=said):
        register(Idle)(function)
    with pytest.raises(hogwild.ConfigError, match="Idle has no gradient; register one"):
        _program(Idle())


@pytest.mark.parametrize("given", [Idle(), _four, dict, "Idle", None])
def test_registration_takes_the_class_of_a_task(given: Any) -> None:
    with pytest.raises(hogwild.ConfigError, match=r"@hogwild.gradient_of takes the class of a task, "):
        hogwild.gradient_of(given)


def test_a_program_takes_a_task_and_functions() -> None:
    with pytest.raises(hogwild.ConfigError, match=r"the task is the class Add; make one: Add\(…\)"):
        _program(Add)
    with pytest.raises(hogwild.ConfigError, match=r"the task is \{\}; it must be a NamedTuple"):
        _program({})
    with pytest.raises(hogwild.ConfigError, match="startup is a Cells; it is the function that makes the weights"):
        hogwild.CustomProgram(Add(), Cells(np.zeros((2, 2), np.float32)))  # type: ignore[arg-type]


def test_a_function_that_is_compiled_already_is_taken_as_it_was_written() -> None:
    class Compiled(NamedTuple):
        more: int = 0
        far: int = 0
        jump: int = 0
        count: int = 1

    hogwild.gradient_of(Compiled)(numba.njit(add_gradient))
    hogwild.apply_of(Compiled)(numba.njit(hide_apply))
    assert _train(Compiled(), [2] * 7)[2].tolist() == [7, 7, 7]
