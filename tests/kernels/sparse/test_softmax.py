"""Linear tasks with one output a class: against the twin, the fused form against the pair, and two known equals."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild.arrays import DenseRows, Rows
from hogwild.kernels.loop.schedule import Schedule, elapsed_at
from hogwild.kernels.optim.losses import Hinge, Logistic
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Sgd, row_cells, settle
from hogwild.kernels.sparse.linear import ClassesTask, LinearTask, score_class_rows
from problems.linear import FEATURES, ROWS, drive, make_rows, make_weights, scratch_for
from reference import linear as reference

SCHEDULE = Schedule(0.2, 0.5 / ROWS, 0.0)
ONE = np.float32(1)
WIDTH = 3
TASKS = {
    "sgd": ClassesTask(Logistic(), Sgd(), Free(), ONE, WIDTH),
    "adagrad-penalty": ClassesTask(Logistic(), Adagrad(), Penalty(np.float32(0.02), np.float32(0.2)), ONE, WIDTH),
    "adam": ClassesTask(Logistic(), Adam(), Free(), ONE, WIDTH),
    "ftrl": ClassesTask(Logistic(), Ftrl(l1=np.float32(0.2), l2=np.float32(0.1)), Free(), ONE, WIDTH),
    "hinge": ClassesTask(Hinge(), Sgd(), Free(), ONE, WIDTH),
}


@pytest.mark.parametrize("name", TASKS)
def test_twin_and_pair(name):
    task, samples = TASKS[name], make_rows(21, Rows, classes=WIDTH)
    fused, pair = make_weights(task, WIDTH), make_weights(task, WIDTH)
    twin = reference.LinearTwin(task, FEATURES, WIDTH)
    loss = drive(task, samples, fused, scratch_for(WIDTH), SCHEDULE, False)
    pair_loss = drive(task, samples, pair, scratch_for(WIDTH), SCHEDULE, True)
    twin_loss = twin.run(samples, SCHEDULE, np.arange(ROWS))
    for one, other in zip(fused, pair, strict=True):
        np.testing.assert_allclose(one, other, rtol=5e-5, atol=1e-6)
    assert loss == pytest.approx(pair_loss, rel=1e-6)
    assert loss == pytest.approx(twin_loss, rel=1e-4)
    settle(task.rule, task.penalty, fused.table, WIDTH, np.float32(elapsed_at(SCHEDULE, float(ROWS))))
    got = fused.table.reshape(FEATURES, row_cells(task.rule, task.penalty, WIDTH))[:, :WIDTH]
    np.testing.assert_allclose(got, twin.weight(), rtol=2e-3, atol=3e-4)
    np.testing.assert_allclose(fused.bias[:WIDTH], [w.value for w in twin.bias], rtol=2e-3, atol=2e-4)


def test_dense_rows():
    task, samples = TASKS["sgd"], make_rows(22, DenseRows, classes=WIDTH)
    weights, twin = make_weights(task, WIDTH), reference.LinearTwin(task, FEATURES, WIDTH)
    drive(task, samples, weights, scratch_for(WIDTH), SCHEDULE, False)
    twin.run(samples, SCHEDULE, np.arange(ROWS))
    np.testing.assert_allclose(weights.table.reshape(FEATURES, WIDTH), twin.weight(), rtol=1e-4, atol=1e-5)


def test_hinge_of_classes_is_one_binary_model_a_class():
    samples = make_rows(23, Rows, classes=WIDTH)
    task = TASKS["hinge"]
    weights = make_weights(task, WIDTH)
    drive(task, samples, weights, scratch_for(WIDTH), SCHEDULE, False)
    for k in range(WIDTH):
        binary = LinearTask(Hinge(), Sgd(), Free(), ONE)
        alone = make_weights(binary, 1)
        sides = np.where(samples.targets == k, 1, -1).astype(np.float32)
        drive(binary, samples._replace(targets=sides), alone, scratch_for(1), SCHEDULE, False)
        np.testing.assert_allclose(weights.table.reshape(FEATURES, WIDTH)[:, k], alone.table, rtol=1e-5, atol=1e-6)
        assert weights.bias[k] == pytest.approx(alone.bias[0], rel=1e-5)


def test_softmax_of_two_classes_moves_them_apart_evenly():
    task = TASKS["sgd"]._replace(width=2)
    weights = make_weights(task, 2)
    drive(task, make_rows(24, Rows, classes=2), weights, scratch_for(2), SCHEDULE, False)
    table = weights.table.reshape(FEATURES, 2)
    np.testing.assert_allclose(table[:, 0], -table[:, 1], atol=1e-6)


def test_scores():
    samples = make_rows(25, Rows, classes=WIDTH)
    random = np.random.default_rng(25)
    weight = random.normal(0, 1, (FEATURES, WIDTH)).astype(np.float32)
    bias = random.normal(0, 1, WIDTH).astype(np.float32)
    scores = np.empty((ROWS - 5, WIDTH), np.float32)
    score_class_rows(samples, weight, bias, scores, 5)
    exact = [bias + sum((v * weight[j] for j, v in reference.entries(samples, r)), start=0) for r in range(5, ROWS)]
    np.testing.assert_allclose(scores, exact, rtol=1e-5, atol=1e-5)
