"""A dense model of a user's own: two layers in one DenseParameters, by way of scratch.dense, in all modes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import hogwild
from compiling import cases, compiled_in_full
from executor.staged import EXPECTED, MOMENTS, Staged, kinds
from hogwild.arrays import Table, has_dense
from hogwild.executor.readers.checkpoint import Checkpointer, Output, identity_of, load_checkpoint
from hogwild.executor.trace import add_up
from hogwild.kernels.compiler.jit import fresh
from hogwild.kernels.loop.order import locate, shuffled
from hogwild.kernels.optim.rules import RULES, Adam, Sgd, dense_tables
from reference.linear import Weight, move

INPUTS, HIDDEN, CLASSES, ROWS = 5, 7, 3, 301
SHAPES = ((INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
CELLS = sum(math.prod(shape) for shape in SHAPES)
RATES = {"sgd": 0.1, "momentum": 0.01, "adagrad": 0.1, "adam": 0.01, "ftrl": 0.1}


class Points(NamedTuple):
    inputs: np.ndarray  # (rows, inputs)
    labels: np.ndarray  # int32


class Net(NamedTuple):
    rule: Any


@fresh
def net_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    """tanh of the first layer, softmax of the second; the loss is the logarithm of the chance of the label."""
    x, label = samples.inputs[visit], samples.labels[visit]
    hidden, scores = scratch.floats[:HIDDEN], scratch.floats[HIDDEN : HIDDEN + CLASSES]
    one, two = INPUTS * HIDDEN, INPUTS * HIDDEN + HIDDEN
    three = two + HIDDEN * CLASSES
    values, grads = weights.values, scratch.dense
    for h in range(HIDDEN):
        total = values[one + h]
        for i in range(INPUTS):
            total += x[i] * values[i * HIDDEN + h]
        hidden[h] = np.float32(math.tanh(total))
    most = np.float32(-np.inf)
    for k in range(CLASSES):
        total = values[three + k]
        for h in range(HIDDEN):
            total += hidden[h] * values[two + h * CLASSES + k]
        scores[k] = total
        most = max(most, total)
    odds = np.float32(0)
    for k in range(CLASSES):
        odds += np.float32(math.exp(scores[k] - most))
    loss = np.float32(math.log(odds)) + most - scores[label]
    for k in range(CLASSES):
        scores[k] = np.float32(math.exp(scores[k] - most)) / odds - np.float32(k == label)
        grads[three + k] = scores[k]
    for h in range(HIDDEN):
        back = np.float32(0)
        for k in range(CLASSES):
            grads[two + h * CLASSES + k] = hidden[h] * scores[k]
            back += values[two + h * CLASSES + k] * scores[k]
        back *= np.float32(1) - hidden[h] * hidden[h]
        grads[one + h] = back
        for i in range(INPUTS):
            grads[i * HIDDEN + h] = x[i] * back
    return loss


@hogwild.gradient_of(Net)
def _net_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    return net_gradient(task, samples, visit, weights, scratch)


@hogwild.apply_of(Net)
def _net_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    hogwild.step_dense(task.rule, weights, scratch.dense, step.rate)


def _points(rows: int = ROWS) -> Points:
    random = np.random.default_rng(1)
    labels = random.integers(0, CLASSES, rows).astype(np.int32)
    centres = 2 * np.random.default_rng(2).standard_normal((CLASSES, INPUTS))
    return Points((centres[labels] + random.standard_normal((rows, INPUTS))).astype(np.float32), labels)


def _values() -> np.ndarray:
    return np.random.default_rng(3).normal(0, 0.4, CELLS).astype(np.float32)


def _net(rule: Any, **options: Any) -> hogwild.CustomProgram:
    return hogwild.CustomProgram(
        Net(rule), lambda: hogwild.make_dense(rule, _values()), room=hogwild.Room(0, floats=HIDDEN + CLASSES),
        evaluate=lambda weights, feed: {"loss": _twin_loss(weights.values, feed)}, **options,
    )  # fmt: skip


def _run(program: Any, feed: Any, **options: Any) -> Any:
    executor = hogwild.AsyncExecutor(seed=5, **options)
    return program, [event for event in executor.run(program, feed) if event.kind == "epoch"]


# -- a slow twin: matrices in float64, one weight after the other ------------------------------------------------------


def _parts(values: np.ndarray) -> list[np.ndarray]:
    ends = np.cumsum([math.prod(shape) for shape in SHAPES])
    return [part.reshape(shape) for part, shape in zip(np.split(values, ends[:-1]), SHAPES, strict=True)]


def _twin_scores(values: np.ndarray, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, first_bias, second, second_bias = _parts(np.asarray(values, np.float64))
    hidden = np.tanh(inputs @ first + first_bias)
    return hidden, hidden @ second + second_bias


def _twin_loss(values: np.ndarray, feed: Points) -> float:
    scores = _twin_scores(values, feed.inputs)[1]
    return float(np.mean(np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(scores)), feed.labels]))


def _twin_gradient(values: np.ndarray, feed: Points, visit: int) -> np.ndarray:
    x = feed.inputs[visit].astype(np.float64)
    hidden, scores = _twin_scores(values, x)
    slopes = np.exp(scores - np.logaddexp.reduce(scores)) - np.eye(CLASSES)[feed.labels[visit]]
    back = (_parts(np.asarray(values, np.float64))[2] @ slopes) * (1 - hidden**2)
    return np.concatenate([np.outer(x, back).ravel(), back, np.outer(hidden, slopes).ravel(), slopes])


def _twin_run(rule: Any, feed: Points, rate: float, rounds: int, together: bool = False, epochs: int = 1) -> np.ndarray:
    """The gradients of each round are those of the weights before it; they are added up, or written one by one."""
    weights = [Weight(value=float(x)) for x in _values()]
    for epoch in range(epochs):
        order = shuffled(len(feed.labels), 5, epoch)
        for first in range(0, len(feed.labels), rounds):
            values = np.array([weight.value for weight in weights])
            visits = [locate(order, k) for k in range(first, min(first + rounds, len(feed.labels)))]
            found = [_twin_gradient(values, feed, visit) for visit in visits]
            for grads in [sum(found)] if together else found:
                for weight, grad in zip(weights, grads, strict=True):
                    move(rule, weight, float(grad), rate)
    return np.array([weight.value for weight in weights])


# -- what it learns, and how ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", cases(list(RULES), ["sgd", "adam"]))
def test_serial_is_the_twin_to_rounding_and_repeats_bit_for_bit(name: str) -> None:
    rule, feed = RULES[name](), _points(30)
    options = {"mode": "serial", "schedule": "constant", "epochs": 2, "lr": RATES[name]}
    program, epochs = _run(_net(rule), feed, **options)
    expected = _twin_run(rule, feed, RATES[name], 1, epochs=2)
    np.testing.assert_allclose(program.weights.values, expected, rtol=2e-3, atol=2e-4)
    assert epochs[1].loss < epochs[0].loss
    again, _ = _run(_net(rule), feed, **options)
    for name, array in program.weights._asdict().items():
        assert array.tobytes() == getattr(again.weights, name).tobytes(), name


@pytest.mark.parametrize("sharing", ["hot", "replica"])
def test_one_worker_gives_the_bits_of_serial_under_every_sharing(sharing: str) -> None:
    serial, _ = _run(_net(Adam()), _points(), mode="serial", epochs=2, lr=0.01)
    alone, _ = _run(_net(Adam()), _points(), threads=1, sharing=sharing, epochs=2, lr=0.01)
    for name, array in serial.weights._asdict().items():
        assert array.tobytes() == getattr(alone.weights, name).tobytes(), name


@pytest.mark.parametrize("mode", ["hogwild", "locked", "round-robin", "minibatch"])
def test_it_is_learnt_in_every_mode_and_steps_are_counted(mode: str) -> None:
    """100 visits of 3 workers: in rounds, two workers have no visit in the last one, and must not step."""
    feed, epochs = _points(100), 4
    program, _ = _run(_net(Adam()), feed, mode=mode, threads=3, epochs=epochs, lr=0.02)
    before = _twin_loss(_values(), feed)
    assert program.evaluate(feed)["loss"] < 0.4 * before
    steps = (34 if mode == "minibatch" else 100) * epochs
    if mode == "hogwild":
        assert 0 < program.weights.steps[0] <= steps  # lost ones
    else:
        assert program.weights.steps[0] == steps


def test_round_robin_is_the_twin_that_reads_before_all_of_a_round_write() -> None:
    feed = _points(100)
    program, _ = _run(_net(Adam()), feed, mode="round-robin", threads=3, schedule="constant", epochs=1, lr=0.01)
    np.testing.assert_allclose(program.weights.values, _twin_run(Adam(), feed, 0.01, 3), rtol=2e-3, atol=2e-4)
    assert program.weights.steps[0] == 100


@pytest.mark.parametrize(("threads", "batch", "steps"), [(3, 3, 34), (4, 5, 20), (3, 8, 13)])
def test_minibatch_is_the_twin_that_adds_gradients_up(threads: int, batch: int, steps: int) -> None:
    """100 visits: the last batch may be short, and in the last round of 4 workers nobody is left but the turn to end a
    batch in which there is nothing."""
    feed = _points(100)
    options = {"mode": "minibatch", "threads": threads, "batch": batch, "schedule": "constant"}
    program, _ = _run(_net(Adam()), feed, epochs=1, lr=0.01, **options)
    expected = _twin_run(Adam(), feed, 0.01, batch, together=True)
    np.testing.assert_allclose(program.weights.values, expected, rtol=2e-3, atol=2e-4)
    assert program.weights.steps[0] == steps


def test_an_empty_batch_at_the_end_is_no_step() -> None:
    """10 visits of 4 workers in batches of 5: the last round has two turns without a visit, after the last batch."""
    program, _ = _run(_net(Adam()), _points(10), mode="minibatch", threads=4, batch=5, epochs=3, lr=0.01)
    assert program.weights.steps[0] == 6


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_two_workers_learn_under_every_sharing(sharing: str) -> None:
    feed = _points(2000)
    program, _ = _run(_net(Adam()), feed, threads=2, sharing=sharing, merge_every=8, epochs=3, lr=0.01)
    assert program.evaluate(feed)["loss"] < 0.4 * _twin_loss(_values(), feed)


# -- the trace --------------------------------------------------------------------------------------------------------


@compiled_in_full
def test_modes_without_errors_show_none_and_gradients_are_what_the_snapshot_gives() -> None:
    for mode, threads in (("serial", 1), ("locked", 3), ("minibatch", 3)):
        _, epochs = _run(_net(Adam()), _points(), mode=mode, threads=threads, trace=True, epochs=1, lr=0.01)
        total = add_up(epochs[0].trace)
        assert (total["gradients"], total["errors"], total["delay"]["max"]) == (ROWS, 0, 0)
        assert total["wrong"]["samples"] >= ROWS // 64
        assert total["wrong"]["max"] == 0.0


def test_in_round_robin_all_but_the_first_of_a_round_are_late_and_nothing_is_overwritten() -> None:
    _, epochs = _run(_net(Adam()), _points(90), mode="round-robin", threads=3, trace=True, epochs=1, lr=0.01)
    assert [w["delay"]["max"] for w in epochs[0].trace] == [0, 1, 2]
    assert [kinds(w) for w in epochs[0].trace] == [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 0, 1)]
    assert [w["wrong"]["mean"] > 0 for w in epochs[0].trace] == [False, True, True]


def test_private_copies_cannot_be_overwritten() -> None:
    _, epochs = _run(_net(Adam()), _points(2000), threads=2, sharing="replica", trace=True, epochs=1, lr=0.01)
    total = add_up(epochs[0].trace)
    assert (total["gradients"], total["errors"], total["wrong"]["max"]) == (2000, 0, 0.0)


def _staged(feed: Any) -> Staged:
    room = hogwild.Room(0, dense=CELLS, floats=HIDDEN + CLASSES)
    return Staged(Net(Sgd()), feed, hogwild.make_dense(Sgd(), _values()), dense_tables(Sgd(), CELLS), room)


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_a_write_of_another_worker_to_the_dense_part_is_depends_on_its_moment(moment: str) -> None:
    staged = _staged(_points(3))

    def write() -> None:
        staged.weights.values[-1] += np.float32(0.3)

    assert kinds(staged.visit(1, moment, write)) == EXPECTED[moment]


def test_a_planted_error_has_its_size() -> None:
    """The gradient that is applied is of older weights: it is compared with that of the weights as they are now."""
    feed = _points(3)
    staged = _staged(feed)
    used = _twin_gradient(staged.weights.values, feed, 2)
    now = staged.weights.values + np.float32(0.3)
    entry = staged.visit(2, "waiting", lambda: np.copyto(staged.weights.values, now))
    true = _twin_gradient(now, feed, 2)
    size = np.linalg.norm(used - true) / np.linalg.norm(true)
    assert entry["wrong"]["max"] == pytest.approx(size, rel=1e-3)
    assert size > 0.05


# -- saving -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", cases(["sgd", "adam"], ["adam"]))
def test_a_run_that_is_saved_and_gone_on_with_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    rule, feed, options = RULES[name](), _points(), {"epochs": 6, "lr": 0.01, "seed": 5}
    config = hogwild.TrainConfig(mode="serial", **options)
    whole = _net(rule)
    list(hogwild.AsyncExecutor(mode="serial").run(whole, feed, **options))

    program, executor = _net(rule), hogwild.AsyncExecutor(mode="serial")
    identity = identity_of(program, config, feed)
    saver = Checkpointer(executor, program, Output(tmp_path / "m"), None, identity)
    run = executor.run(program, feed, **options)
    for event in run:
        if event.kind == "epoch" and event.epoch == 2:
            executor.park()
        saver(event)
        if event.kind == "parked":
            break
    run.close()

    found = load_checkpoint(tmp_path / "m", _net(rule), identity)
    assert found is not None
    again, start = found
    assert 0 < start.position.epoch < 6
    list(hogwild.AsyncExecutor(mode="serial").run(again, feed, start=start, **options))
    for field, array in whole.weights._asdict().items():
        assert getattr(again.weights, field).tobytes() == array.tobytes(), field


def test_a_saved_model_has_the_arrays_by_name_also_empty_ones(tmp_path: Path) -> None:
    program, _ = _run(_net(Sgd()), _points(20), mode="serial", epochs=1, lr=0.1)
    hogwild.save_model(tmp_path / "m", program)
    again = hogwild.load_model(tmp_path / "m", _net(Sgd())).program
    assert again.weights._fields == ("values", "first", "second", "steps")
    assert [array.size for array in again.weights] == [CELLS, 0, 0, 0]
    assert again.weights.values.tobytes() == program.weights.values.tobytes()


# -- beside a table of rows, and what is refused ----------------------------------------------------------------------


class Shifted(NamedTuple):
    """Weights: a number for each class, in rows, before the dense parameters."""

    shifts: np.ndarray
    values: np.ndarray
    first: np.ndarray
    second: np.ndarray
    steps: np.ndarray


class ShiftedNet(NamedTuple):
    rule: Any


@hogwild.gradient_of(ShiftedNet)
def _shifted_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    loss = net_gradient(task, samples, visit, weights, scratch)
    label = samples.labels[visit]
    scratch.rows[0] = label
    scratch.grads[0, 0] = weights.shifts[label, 0] - np.float32(label)
    scratch.count[0] = 1
    return loss


@hogwild.apply_of(ShiftedNet)
def _shifted_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    hogwild.step_dense(task.rule, weights, scratch.dense, step.rate)
    for k in range(scratch.count[0]):
        weights.shifts[scratch.rows[k], 0] -= np.float32(0.1) * scratch.grads[k, 0]


def _shifted(**options: Any) -> hogwild.CustomProgram:
    def startup() -> Shifted:
        return Shifted(np.zeros((CLASSES, 1), np.float32), *hogwild.make_dense(Adam(), _values()))

    return hogwild.CustomProgram(ShiftedNet(Adam()), startup, **options)


@pytest.mark.parametrize(("mode", "threads"), [("serial", 1), pytest.param("minibatch", 3, marks=pytest.mark.full)])
def test_rows_and_dense_parameters_go_together(mode: str, threads: int) -> None:
    feed = _points(90)
    tables = {"shifts": hogwild.Table(CLASSES, 1, "ranked")}
    room = hogwild.Room(1, floats=HIDDEN + CLASSES)
    program, epochs = _run(
        _shifted(tables=tables, room=room), feed, mode=mode, threads=threads, trace=True, epochs=4, lr=0.01
    )
    np.testing.assert_allclose(program.weights.shifts[:, 0], np.arange(CLASSES), atol=0.05)
    alone, _ = _run(_net(Adam()), feed, mode=mode, threads=threads, epochs=4, lr=0.01)
    np.testing.assert_allclose(program.weights.values, alone.weights.values, rtol=1e-4, atol=1e-5)
    assert add_up(epochs[1].trace)["wrong"]["max"] == 0.0


def test_the_room_that_is_needed_is_known() -> None:
    program = _shifted(tables={"shifts": hogwild.Table(CLASSES, 1, "ranked")})
    program.startup(_points(3), 1)
    assert has_dense(program.weights)
    assert program.room(_points(3)) == hogwild.Room(CLASSES, 1, CELLS)
    assert program.tables()["first"] == Table(CELLS, 1, "dense", (False,), width=0)


class Ruleless(NamedTuple):
    pass


hogwild.gradient_of(Ruleless)(_net_gradient)
hogwild.apply_of(Ruleless)(_net_apply)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (_shifted, "`tables` must name shifts: kind ranked"),
        (lambda: hogwild.CustomProgram(Ruleless(), lambda: hogwild.make_dense(Sgd(), _values())), "no field `rule`"),
        (lambda: hogwild.CustomProgram(Net(Adam()), lambda: hogwild.make_dense(Sgd(), _values())), "array has 0 cells"),
        (
            lambda: hogwild.CustomProgram(
                Net(Sgd()), lambda: hogwild.make_dense(Sgd(), _values()), room=hogwild.Room(0, dense=7)
            ),
            "dense=7 for",
        ),
        (
            lambda: hogwild.CustomProgram(
                Net(Sgd()), lambda: hogwild.make_dense(Sgd(), _values())._replace(values=np.zeros((2, 2), np.float32))
            ),
            "flat",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_runs(program: Any, message: str) -> None:
    with pytest.raises(hogwild.ConfigError, match=message):
        list(hogwild.AsyncExecutor(mode="serial").run(program(), _points(3), epochs=1, lr=0.1))
