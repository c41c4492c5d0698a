"""Several labels a row: the loss of a set against its definition, and training against one binary model a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hogwild.arrays import Rows
from hogwild.kernels.compiler.jit import open_kernel
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.optim.losses import EachLabel, Hinge, Logistic, slopes
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import Sgd
from hogwild.kernels.sparse.linear import ClassesTask, LinearTask
from problems.linear import FEATURES, ROWS, drive, make_rows, make_weights, scratch_for

WIDTH = 3
SETS = [(), (0,), (2,), (0, 2), (0, 1, 2)]  # none, the first, the last, apart, all
OFFSETS = np.concatenate(([0], np.cumsum([len(each) for each in SETS])))
LABELS = np.array([label for each in SETS for label in each], np.int32)
ONE = np.float32(1)
SCHEDULE = Schedule(0.2, 0.5 / ROWS, 0.0)


@open_kernel
def _slopes(loss: Any, scores: Any, width: int, target: Any) -> Any:
    return slopes(loss, scores, width, target)


@pytest.mark.parametrize("own", [Logistic(), Hinge()])
def test_loss_of_a_set(own):
    random = np.random.default_rng(5)
    for number, labels in enumerate(SETS):
        scores = random.normal(0, 2, WIDTH + 1).astype(np.float32)
        sides = np.array([1.0 if k in labels else -1.0 for k in range(WIDTH)])
        margins = sides * scores[:WIDTH].astype(np.float64)
        logistic = isinstance(own, Logistic)
        losses = np.log1p(np.exp(-margins)) if logistic else np.maximum(0, 1 - margins)
        moves = -sides / (1 + np.exp(margins)) if logistic else np.where(margins < 1, -sides, 0.0)
        last = scores[WIDTH]
        found = _slopes(EachLabel(own, OFFSETS, LABELS), scores, WIDTH, np.float32(number))
        assert found == pytest.approx(losses.sum(), rel=1e-5)
        np.testing.assert_allclose(scores[:WIDTH], moves, rtol=1e-5, atol=1e-6)
        assert scores[WIDTH] == last


@pytest.mark.parametrize("pair", [False, True])
def test_labels_are_one_binary_model_each(pair):
    samples = make_rows(31, Rows, classes=len(SETS))
    task = ClassesTask(EachLabel(Logistic(), OFFSETS, LABELS), Sgd(), Free(), ONE, WIDTH)
    weights = make_weights(task, WIDTH)
    total = drive(task, samples, weights, scratch_for(WIDTH), SCHEDULE, pair)
    losses = 0.0
    for k in range(WIDTH):
        binary = LinearTask(Logistic(), Sgd(), Free(), ONE)
        alone = make_weights(binary, 1)
        has = np.array([k in SETS[int(number)] for number in samples.targets])
        sides = np.where(has, 1, -1).astype(np.float32)
        losses += drive(binary, samples._replace(targets=sides), alone, scratch_for(1), SCHEDULE, False)
        np.testing.assert_allclose(weights.table.reshape(FEATURES, WIDTH)[:, k], alone.table, rtol=1e-4, atol=1e-6)
        assert weights.bias[k] == pytest.approx(alone.bias[0], rel=1e-4)
    assert total == pytest.approx(losses, rel=1e-4)
