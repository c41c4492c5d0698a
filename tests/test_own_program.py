"""The seam as a user meets it: the worked example, and two programs that are quite unlike it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import hogwild
from hogwild.kernels.compiler.rng import below
from hogwild.kernels.loop.order import locate, shuffled
from places import ROOT

MODES = ["hogwild", "serial", "locked", "round-robin", "minibatch"]


def _load_example() -> Any:
    spec = importlib.util.spec_from_file_location("own_program", ROOT / "examples" / "own_program.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["own_program"] = module
    spec.loader.exec_module(module)
    return module


own = _load_example()
TRAIN, TEST = own.make_ratings(20_000, seed=1), own.make_ratings(3_000, seed=2)


def _run(program: Any, feed: Any, **options: Any) -> Any:
    """Train; returns the program and the events of its epochs."""
    executor = hogwild.AsyncExecutor(**options)
    return program, [event for event in executor.run(program, feed) if event.kind == "epoch"]


# -- the worked example -----------------------------------------------------------------------------------------------


def _noise(weights: Any) -> float:
    return own.errors(weights, TEST)["rmse"]


@pytest.mark.parametrize("mode", MODES)
def test_ratings_are_learned_in_every_mode(mode: str) -> None:
    program, epochs = _run(own.make_program(), TRAIN, threads=2, mode=mode, epochs=8, lr=0.1)
    assert len(epochs) == 8
    assert _noise(own.make_vectors()) > 0.8
    assert _noise(program.weights) < 0.15  # the noise in the data is 0.1
    assert program.evaluate(TEST)["rmse"] == _noise(program.weights)


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_ratings_are_learned_under_every_sharing(sharing: str) -> None:
    program, _ = _run(own.make_program(), TRAIN, threads=2, sharing=sharing, epochs=8, lr=0.1)
    assert _noise(program.weights) < 0.15


def test_serial_repeats_bit_for_bit_and_another_seed_does_not() -> None:
    first, second, other = (
        _run(own.make_program(), TRAIN, mode="serial", epochs=2, lr=0.1, seed=seed)[0].weights for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first.users, second.users)
    np.testing.assert_array_equal(first.items, second.items)
    assert not np.array_equal(first.items, other.items)


@pytest.mark.parametrize("sharing", ["all", "hot", "replica"])
def test_one_worker_gives_the_bits_of_serial_under_every_sharing(sharing: str) -> None:
    serial, _ = _run(own.make_program(), TRAIN, mode="serial", epochs=2, lr=0.1)
    alone, _ = _run(own.make_program(), TRAIN, threads=1, sharing=sharing, epochs=2, lr=0.1)
    np.testing.assert_array_equal(alone.weights.users, serial.weights.users)
    np.testing.assert_array_equal(alone.weights.items, serial.weights.items)


def _summed_gradients(feed: Any, batch: int, epochs: int, lr: float, seed: int = 1) -> Any:
    """The slow twin of mode `minibatch`: all gradients of a batch on the same weights, then one update with the sum."""
    users, items = (array.astype(np.float64) for array in own.make_vectors())
    visits = len(feed.stars)
    for epoch in range(epochs):
        order = shuffled(visits, seed, epoch)
        for first in range(0, visits, batch):
            positions = range(first, min(first + batch, visits))
            steps = np.zeros_like(users), np.zeros_like(items)
            for position in positions:
                visit = locate(order, position)
                user, item = feed.users[visit], feed.items[visit]
                error = users[user] @ items[item] - feed.stars[visit]
                steps[0][user] += error * items[item] + 0.01 * users[user]
                steps[1][item] += error * users[user] + 0.01 * items[item]
            rate = lr * (1 - (epoch * visits + positions[-1]) / (epochs * visits))
            users -= rate * steps[0]
            items -= rate * steps[1]
    return users, items


@pytest.mark.parametrize(("threads", "batch"), [(2, 0), (3, 8), (10, 10)])
def test_minibatch_is_the_slow_twin(threads: int, batch: int) -> None:
    feed = own.Ratings(*(array[:333] for array in TRAIN))  # leaves a rest in every epoch
    program, _ = _run(own.make_program(), feed, threads=threads, mode="minibatch", batch=batch, epochs=2, lr=0.5)
    users, items = _summed_gradients(feed, batch or threads, epochs=2, lr=0.5)
    np.testing.assert_allclose(program.weights.users, users, atol=2e-5)
    np.testing.assert_allclose(program.weights.items, items, atol=2e-5)


def test_minibatch_depends_on_the_batch_and_not_on_the_workers() -> None:
    feed = own.Ratings(*(array[:500] for array in TRAIN))
    options = {"mode": "minibatch", "batch": 6, "epochs": 2, "lr": 0.1}
    two, three = (_run(own.make_program(), feed, threads=threads, **options)[0].weights for threads in (2, 3))
    np.testing.assert_array_equal(two.users, three.users)
    np.testing.assert_array_equal(two.items, three.items)


def test_trace_counts_every_gradient_and_finds_none_wrong_in_serial() -> None:
    _, epochs = _run(own.make_program(), TRAIN, mode="serial", trace=True, epochs=1, lr=0.1)
    (entry,) = epochs[0].trace
    assert entry["gradients"] == len(TRAIN.stars)
    assert entry["errors"] == entry["delay"]["max"] == entry["wrong"]["max"] == 0
    assert entry["wrong"]["samples"] == entry["looked_at"] > 300


def test_trace_of_two_workers_learns_as_well() -> None:
    program, epochs = _run(own.make_program(), TRAIN, threads=2, trace=True, epochs=8, lr=0.1)
    assert sum(entry["gradients"] for entry in epochs[-1].trace) == len(TRAIN.stars)
    assert _noise(program.weights) < 0.15


def test_functional_form() -> None:
    weights = hogwild.async_executor(
        startup_program=own.make_vectors, main_program=own.Rate(np.float32(0.01)), feed=TRAIN, threads=2,
        room=hogwild.Room(rows=2, width=own.WIDTH), epochs=8, lr=0.1, quiet=True,
    )  # fmt: skip
    assert isinstance(weights, own.Vectors)
    assert _noise(weights) < 0.15


def test_the_file_runs(capsys: pytest.CaptureFixture[str]) -> None:
    own.main()
    assert capsys.readouterr().out.count("rmse") == 2


def test_a_learning_rate_is_found_and_the_best_epoch_is_kept() -> None:
    program = hogwild.train(own.make_program(), TRAIN, valid=TEST, threads=1, epochs=8, quiet=True)
    assert _noise(program.weights) < 0.15


def test_saved_and_loaded_again(tmp_path: Path) -> None:
    program, _ = _run(own.make_program(), TRAIN, mode="serial", epochs=1, lr=0.1)
    hogwild.save_model(tmp_path / "ratings", program)
    loaded = hogwild.load_model(tmp_path / "ratings", own.make_program()).program
    np.testing.assert_array_equal(loaded.weights.items, program.weights.items)
    assert loaded.evaluate(TEST) == program.evaluate(TEST)


def test_a_model_of_other_shapes_is_refused(tmp_path: Path) -> None:
    program, _ = _run(own.make_program(), TRAIN, mode="serial", epochs=1, lr=0.1)
    hogwild.save_model(tmp_path / "ratings", program)
    narrow = hogwild.CustomProgram(
        own.Rate(np.float32(0)), lambda: own.Vectors(np.zeros((3, 2), np.float32), np.zeros((3, 2), np.float32))
    )
    with pytest.raises(hogwild.HogwildError, match=r"users.*\(300, 8\).*\(3, 2\)"):
        hogwild.load_model(tmp_path / "ratings", narrow)


def test_the_functions_run_as_plain_python_too(tmp_path: Path) -> None:
    """With the compiler off, as a user would look for a mistake of theirs."""
    feed = own.Ratings(*(array[:60] for array in TRAIN))
    compiled, _ = _run(own.make_program(), feed, mode="serial", epochs=2, lr=0.1)
    code = (
        "import sys, numpy as np; sys.path.insert(0, sys.argv[1]); import hogwild, own_program as own\n"
        "feed = own.Ratings(*(array[:60] for array in own.make_ratings(20_000, seed=1)))\n"
        "program = hogwild.train(own.make_program(), feed, mode='serial', epochs=2, lr=0.1, quiet=True)\n"
        "np.savez(sys.argv[2], **program.arrays())"
    )
    target = tmp_path / "weights.npz"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", code, str(ROOT / "examples"), str(target)], env=environment, check=True)
    with np.load(target) as plain:
        for name, array in compiled.arrays().items():
            np.testing.assert_allclose(plain[name], array, rtol=1e-5, atol=1e-6)


def test_a_task_without_functions_is_told_what_to_register() -> None:
    class Bare(NamedTuple):
        pass

    with pytest.raises(hogwild.ConfigError, match=r"Bare has no gradient; register one with @hogwild\.gradient_of"):
        hogwild.CustomProgram(Bare(), own.make_vectors)


# -- a window: one visit touches many rows of two tables, some of them at random --------------------------------------

WORDS, SIDE, NEGATIVES = 20, 2, 3


class Tokens(NamedTuple):
    words: np.ndarray


class Embeddings(NamedTuple):
    inputs: np.ndarray
    outputs: np.ndarray


class SkipGram(NamedTuple):
    side: int
    negatives: int


@hogwild.gradient_of(SkipGram)
def window_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    words, width = len(weights.outputs), weights.inputs.shape[1]
    center = samples.words[visit]
    scratch.rows[0] = center
    scratch.grads[0, :] = np.float32(0)
    count, loss = 1, np.float32(0)
    for place in range(max(visit - task.side, 0), min(visit + task.side + 1, len(samples.words))):
        if place == visit:
            continue
        for draw in range(1 + task.negatives):
            word = np.int64(samples.words[place]) if draw == 0 else below(scratch.random, words)
            score = np.float32(0)
            for k in range(width):
                score += weights.inputs[center, k] * weights.outputs[word, k]
            chance = np.float32(1) / (np.float32(1) + np.exp(-score))
            pull = chance - np.float32(1) if draw == 0 else chance
            scratch.rows[count] = len(weights.inputs) + word
            for k in range(width):
                scratch.grads[0, k] += pull * weights.outputs[word, k]
                scratch.grads[count, k] = pull * weights.inputs[center, k]
            count += 1
            loss -= np.log(chance if draw == 0 else np.float32(1) - chance)
    scratch.count[0] = count
    return loss


@hogwild.apply_of(SkipGram)
def window_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    inputs = len(weights.inputs)
    for e in range(scratch.count[0]):
        row = scratch.rows[e]
        for k in range(weights.inputs.shape[1]):
            if row < inputs:
                weights.inputs[row, k] -= step.rate * scratch.grads[e, k]
            else:
                weights.outputs[row - inputs, k] -= step.rate * scratch.grads[e, k]


def _skip_gram() -> hogwild.CustomProgram:
    def startup() -> Embeddings:
        inputs = np.random.default_rng(0).normal(0, 0.1, (WORDS, 6)).astype(np.float32)
        return Embeddings(inputs, np.zeros((WORDS, 6), np.float32))

    most = 1 + 2 * SIDE * (1 + NEGATIVES)
    tables = {name: hogwild.Table(WORDS, 6, "ranked") for name in Embeddings._fields}
    return hogwild.CustomProgram(
        SkipGram(SIDE, NEGATIVES), startup, room=hogwild.Room(rows=most, width=6), tables=tables
    )


def _two_topics(length: int) -> Tokens:
    """Runs of words of one of two halves of the vocabulary: words of a half have their neighbours in common."""
    random = np.random.default_rng(3)
    half = np.repeat(random.integers(0, 2, length // 20), 20)
    return Tokens((half * (WORDS // 2) + random.integers(0, WORDS // 2, len(half))).astype(np.int32))


@pytest.mark.parametrize(("mode", "sharing"), [("hogwild", "all"), ("hogwild", "replica"), ("minibatch", "auto")])
def test_windows_group_words_by_topic(mode: str, sharing: str) -> None:
    program, epochs = _run(_skip_gram(), _two_topics(4000), threads=2, mode=mode, sharing=sharing, epochs=4, lr=0.1)
    units = program.weights.inputs / np.linalg.norm(program.weights.inputs, axis=1, keepdims=True)
    likeness = units @ units.T
    half = WORDS // 2
    inside = (likeness[:half, :half].mean() + likeness[half:, half:].mean()) / 2
    across = likeness[:half, half:].mean()
    assert inside > 0.7 > 0.2 > across
    assert epochs[-1].loss < epochs[0].loss


@pytest.mark.full
def test_a_sized_gradient_draws_the_same_random_rows_again() -> None:
    """The trace computes a gradient twice: if it drew other negatives the second time, it would call it wrong."""
    program, epochs = _run(_skip_gram(), _two_topics(2000), mode="serial", trace=True, epochs=1, lr=0.1)
    (entry,) = epochs[0].trace
    assert entry["wrong"]["samples"] > 20
    assert entry["wrong"]["max"] == 0
    untraced, _ = _run(_skip_gram(), _two_topics(2000), mode="serial", epochs=1, lr=0.1)
    np.testing.assert_allclose(program.weights.inputs, untraced.weights.inputs, rtol=1e-4, atol=1e-5)


# -- a batch: one visit is a matrix product through BLAS, and touches every row ---------------------------------------

INPUTS, OUTPUTS, BATCH, BATCHES = 12, 5, 16, 120


class Batches(NamedTuple):
    inputs: np.ndarray  # (batches, batch, inputs)
    targets: np.ndarray  # (batches, batch, outputs)


class Layer(NamedTuple):
    matrix: np.ndarray


class LeastSquares(NamedTuple):
    scale: np.float32


@hogwild.gradient_of(LeastSquares)
def batch_gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    x, targets = samples.inputs[visit], samples.targets[visit]
    rows, columns = weights.matrix.shape
    apart = scratch.floats[: targets.size].reshape(targets.shape)
    np.dot(x, weights.matrix, apart)
    loss = np.float32(0)
    for i in range(targets.shape[0]):
        for k in range(columns):
            apart[i, k] = (apart[i, k] - targets[i, k]) * task.scale
            loss += apart[i, k] * apart[i, k]
    np.dot(x.T, apart, scratch.grads[:rows])
    for row in range(rows):
        scratch.rows[row] = row
    scratch.count[0] = rows
    return loss / task.scale / np.float32(2)


@hogwild.apply_of(LeastSquares)
def batch_apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    for e in range(scratch.count[0]):
        for k in range(weights.matrix.shape[1]):
            weights.matrix[scratch.rows[e], k] -= step.rate * scratch.grads[e, k]


TRUE_LAYER = np.random.default_rng(4).normal(0, 1, (INPUTS, OUTPUTS)).astype(np.float32)


def _batches() -> Batches:
    inputs = np.random.default_rng(5).normal(0, 1, (BATCHES, BATCH, INPUTS)).astype(np.float32)
    return Batches(inputs, inputs @ TRUE_LAYER)


def _layer() -> hogwild.CustomProgram:
    return hogwild.CustomProgram(
        LeastSquares(np.float32(1 / BATCH)), lambda: Layer(np.zeros((INPUTS, OUTPUTS), np.float32)),
        room=hogwild.Room(rows=INPUTS, width=OUTPUTS, floats=BATCH * OUTPUTS),
    )  # fmt: skip


@pytest.mark.parametrize("sharing", ["all", "replica"])
def test_a_dense_layer_is_learned_through_blas(sharing: str) -> None:
    # Replicas add up what each worker has learned: if merged seldom, both learn all, and the sum is double.
    program, _ = _run(_layer(), _batches(), threads=2, sharing=sharing, merge_every=2, epochs=4, lr=0.05)
    np.testing.assert_allclose(program.weights.matrix, TRUE_LAYER, atol=0.02)


def test_batches_in_serial_are_gradient_descent_in_numpy() -> None:
    feed = _batches()
    program, _ = _run(_layer(), feed, mode="serial", schedule="constant", epochs=1, lr=0.1)
    matrix, order = np.zeros((INPUTS, OUTPUTS)), shuffled(BATCHES, 1, 0)
    for position in range(BATCHES):
        x, y = feed.inputs[locate(order, position)], feed.targets[locate(order, position)]
        matrix -= 0.1 * x.T @ (x @ matrix - y) / BATCH
    np.testing.assert_allclose(program.weights.matrix, matrix, atol=1e-4)
