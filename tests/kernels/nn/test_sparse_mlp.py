"""Embeddings with dense layers: gradients against differences of a slow twin, for every part; and the quick visit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hogwild
from compiling import OFF, cases, compiled_in_full
from hogwild.arrays import ORDER_KEY, ORDER_SHIFT, SlotRows, Step, ValuedSlotRows, make_scratch
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.compiler.jit import open_kernel
from hogwild.kernels.loop.task import apply, fused, gradient
from kernels.sparse.test_linear import in_new_process
from reference.linear import Weight, move
from reference.mlp import MlpTwin, rows_of

FEATURES = 9


@open_kernel
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> float:
    return gradient(task, samples, visit, weights, scratch)


@open_kernel
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    apply(task, weights, scratch, step)


@open_kernel
def _fused(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> float:
    return fused(task, samples, visit, weights, scratch, step)


def _feed(slots: int = 3, dense: int = 2, values: bool = True, classes: int = 2, rows: int = 7) -> Feed:
    """Rows of up to four entries a slot, some slots empty, features that repeat."""
    random = np.random.default_rng(3)
    counts = random.integers(0, 4, (rows, slots))
    ids = random.integers(0, FEATURES, counts.sum()).astype(np.int32)
    owners = np.concatenate([np.repeat(np.arange(slots), line) for line in counts]).astype(np.uint16)
    offsets = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    numbers = random.standard_normal((rows, dense)).astype(np.float32)
    targets = (np.arange(rows) % classes if classes else random.standard_normal(rows)).astype(np.float32)
    importance = random.uniform(0.5, 2, rows).astype(np.float32)
    samples: Any = SlotRows(offsets, ids, owners, numbers, targets, importance)
    if values:
        samples = ValuedSlotRows(*samples, random.uniform(0.5, 2, len(ids)).astype(np.float32))
    names = {"slots": [f"s{k}" for k in range(slots)], "dense": [f"d{k}" for k in range(dense)]}
    return Feed(samples, FEATURES, schema=names).check()


def _started(feed: Feed, **options: Any) -> tuple[Any, Any, Any]:
    program = hogwild.SparseMLP(**{"dim": 3, "hidden": (4, 5), "batch_size": 16, "init": 0.7, **options})
    program.startup(feed, seed=5)
    # Biases too: at zero the sums of empty rows would stand at the kink of relu, where differences see half a slope.
    program.weights.values[:] += np.random.default_rng(4).uniform(0.05, 0.1, len(program.weights.values))
    if program.config.wide:
        table = program.weights.table.reshape(program.features, -1)
        table[:, program.config.dim : program.width] = np.random.default_rng(8).standard_normal((FEATURES, 1)) / 3
    return program, program.samples(feed), make_scratch(program.room(feed), np.uint64(1))


def _named(program: Any, scratch: Any) -> dict[str, np.ndarray]:
    """The gradient in scratch under the names of the arrays."""
    task, dim = program.task, program.config.dim
    flat, at, found = scratch.dense, 0, {}
    for layer, (before, after) in enumerate(zip(task.sizes[:-1].tolist(), task.sizes[1:].tolist(), strict=True), 1):
        found[f"layer_{layer}_weight"] = flat[at : at + before * after].reshape(before, after)
        at += before * after
        found[f"layer_{layer}_bias"] = flat[at : at + after]
        at += after
    assert at == len(flat)
    table = np.zeros((program.features, program.width))
    rows = scratch.rows[: scratch.count[0]]
    assert len(set(rows.tolist())) == len(rows)
    table[rows] = scratch.grads[: scratch.count[0]]
    found["embedding"] = table[:, :dim]
    if program.config.wide:
        found["wide"] = table[:, dim:]
    return found


CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"values": False}, {"combiner": "mean"}),
    ({}, {"combiner": "mean", "activation": "tanh"}),
    ({}, {"combiner": "sqrtn", "lookup_activation": "tanh"}),
    ({"values": False}, {"combiner": "sqrtn", "lookup_activation": "relu", "activation": "tanh"}),
    ({"slots": 1, "dense": 0}, {"lookup_activation": "relu"}),
    ({"classes": 4}, {"wide": True}),
    ({"classes": 0}, {"hidden": ()}),
    ({}, {"wide": True, "hidden": (4,)}),
    ({"rows": 1}, {"classes": (0, 1)}),
]


@pytest.mark.parametrize("case", cases(CASES, CASES[:1]), ids=str)
def test_gradients_are_those_of_the_twin(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    data, options = case
    feed = _feed(**data)
    program, samples, scratch = _started(feed, loss="squared" if data.get("classes") == 0 else "auto", **options)
    loss = _gradient(program.task, samples, 0, program.weights, scratch)
    twin, rows = MlpTwin(program), rows_of(samples, len(program.slots))
    arrays = program.arrays()
    if program.own_unit:  # quantities are learnt in a unit of their own, as the rows of `samples` have them
        arrays = {name: array for name, array in program.arrays(state=True).items() if name in arrays}
    assert loss == pytest.approx(twin.batch_loss(arrays, rows), rel=1e-5)
    expected = twin.derivatives(arrays, rows)
    found = _named(program, scratch)
    assert set(found) == set(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=2e-3, atol=2e-4, err_msg=name)


@compiled_in_full
def test_l2_of_dense_layers_is_in_their_gradient_but_not_for_biases() -> None:
    plain, samples, scratch = _started(_feed())
    _gradient(plain.task, samples, 0, plain.weights, scratch)
    before = {name: array.copy() for name, array in _named(plain, scratch).items()}
    heavy, samples, scratch = _started(_feed(), l2=0.5)
    _gradient(heavy.task, samples, 0, heavy.weights, scratch)
    after, arrays = _named(heavy, scratch), heavy.arrays()
    np.testing.assert_allclose(
        after["layer_2_weight"], before["layer_2_weight"] + 0.5 * arrays["layer_2_weight"], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(after["layer_2_bias"], before["layer_2_bias"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("optimizer", cases(["sgd", "momentum", "adagrad", "adam", "ftrl"], ["adam"]))
def test_a_step_moves_every_weight_by_its_rule(optimizer: str) -> None:
    feed = _feed()
    program, samples, scratch = _started(feed, optimizer=optimizer)
    step = Step(np.float32(0.1), np.float32(0), 0, 0, 1)
    weights = {
        name: [Weight(value=float(x)) for x in array.reshape(-1)] for name, array in program.arrays().items()
    }  # fmt: skip
    touched = np.unique(samples.ids)
    for _ in range(3):
        _gradient(program.task, samples, 0, program.weights, scratch)
        slopes = {name: array.copy() for name, array in _named(program, scratch).items()}
        _apply(program.task, program.weights, scratch, step)
        for name, array in slopes.items():
            for k, g in enumerate(array.reshape(-1)):
                if name != "embedding" or k // program.config.dim in touched:
                    move(program.task.rule, weights[name][k], float(g), 0.1)
    for name, array in program.arrays().items():
        expected = np.array([weight.value for weight in weights[name]]).reshape(array.shape)
        np.testing.assert_allclose(array, expected, rtol=2e-3, atol=2e-5, err_msg=name)


@compiled_in_full
@pytest.mark.parametrize("options", [{}, {"l2": 0.01}, {"wide": True}], ids=str)
def test_the_quick_visit_of_gradient_descent_is_the_same_step(options: dict[str, Any]) -> None:
    feed = _feed()
    step = Step(np.float32(0.05), np.float32(0), 0, 0, 1)
    losses = []
    results = []
    for quick in (False, True):
        program, samples, scratch = _started(feed, optimizer="sgd", **options)
        if quick:
            losses.append(_fused(program.task, samples, 0, program.weights, scratch, step))
        else:
            losses.append(_gradient(program.task, samples, 0, program.weights, scratch))
            _apply(program.task, program.weights, scratch, step)
        results.append(program.arrays())
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    for name in results[0]:
        np.testing.assert_allclose(results[0][name], results[1][name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_batches_of_an_epoch_hold_every_row_once_and_the_last_may_be_short() -> None:
    feed = _feed(rows=7)
    program, samples, scratch = _started(feed, batch_size=3)
    assert program.visits(feed) == 3
    for key in (0, 987654321):
        scratch.count[ORDER_KEY], scratch.count[ORDER_SHIFT] = key, 0
        seen = []
        for visit in range(3):
            _gradient(program.task, samples, visit, program.weights, scratch)
            seen += scratch.ints[: 3 if visit < 2 else 1].tolist()
        assert sorted(seen) == list(range(7))
        assert (seen == list(range(7))) == (key == 0)


@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_all_of_it_with_the_compiler_off(tmp_path: Any) -> None:
    done = in_new_process(
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", __file__], tmp_path, NUMBA_DISABLE_JIT="1",
        PYTHONWARNINGS="ignore",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
