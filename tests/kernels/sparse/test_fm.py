"""Factorization machines: against twins that enumerate all pairs, the fused form against the pair, derivatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from compiling import OFF, cases, compiled_in_full
from hogwild.arrays import BinaryRows, DenseRows, SlotRows
from hogwild.kernels.loop.schedule import Schedule, elapsed_at
from hogwild.kernels.loop.task import gradient
from hogwild.kernels.optim.losses import Logistic, Squared
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Momentum, Sgd, row_cells, settle
from hogwild.kernels.sparse.fm import score_rows
from hogwild.kernels.sparse.fm_rows import FactorPenalty, TouchedPenalty
from problems.fm import (
    SLOTS,
    drive,
    drive_pair,
    fields_of,
    make_lone_rows,
    make_machine,
    make_slot_rows,
    make_task,
    scratch_for,
)
from problems.linear import FEATURES, ROWS, make_rows
from reference import factorization as reference_fm

SCHEDULE = Schedule(0.1, 0.5 / ROWS, 0.0)
_F = np.float32
L2 = FactorPenalty(Penalty(_F(0), _F(0.05)), Penalty(_F(0), _F(0.2)))
TOUCHED = TouchedPenalty(_F(0.05), _F(0.2))
NONE = FactorPenalty(Penalty(_F(0), _F(0)), Penalty(_F(0), _F(0.1)))


def check(task, samples, run, seed=3):
    """Train as `run` does and by the twin; both must agree."""
    weights, weight, factors = make_machine(task, seed)
    twin = reference_fm.FMTwin(task, weight, factors)
    loss = run(task, samples, weights, scratch_for(task), SCHEDULE)
    assert loss == pytest.approx(twin.run(samples, SCHEDULE, np.arange(ROWS)), rel=2e-4)
    width = 1 + factors[0].size
    settle(task.rule, task.penalty, weights.table, width, _F(elapsed_at(SCHEDULE, float(ROWS))))
    got = weights.table.reshape(FEATURES, row_cells(task.rule, task.penalty, width))
    twin_weight, twin_factors = twin.plain()
    np.testing.assert_allclose(got[:, 0], twin_weight, rtol=5e-3, atol=5e-4)
    np.testing.assert_allclose(got[:, 1:width], twin_factors.reshape(FEATURES, -1), rtol=5e-3, atol=5e-4)
    assert weights.bias[0] == pytest.approx(twin.bias.value, rel=5e-3, abs=1e-4)
    assert factors.size == 0 or np.abs(twin_factors - factors).max() > 0.05
    return weights


def check_both(task, samples):
    """The fused form and the pair, against the twin and each other."""
    one, other = (check(task, samples, run) for run in (drive, drive_pair))
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-6)


def test_rows_with_a_penalty():
    check(make_task(Logistic(), Adagrad(_F(0.01)), L2, dim=10), make_rows(1), drive)


def test_rows_with_a_penalty_when_touched():
    check(make_task(Logistic(), Adagrad(_F(0.01)), TOUCHED, dim=10), make_rows(1), drive)


def test_slots():
    check(make_task(Logistic(), Adam(), Free(), dim=4, slots=SLOTS), make_slot_rows(2), drive_pair)


@compiled_in_full
@pytest.mark.parametrize(
    ("rule", "penalty", "dim"),
    [(Adagrad(), TOUCHED, 4), (Adam(), L2, 3), (Momentum(), NONE, 8), (Adagrad(), Free(), 1), (Ftrl(), Free(), 10)],
    ids=["adagrad-touched-4", "adam-l2-3", "momentum-l2-8", "adagrad-1", "ftrl-10"],
)
def test_one_entry_a_slot(rule, penalty, dim):
    samples = make_lone_rows(5)
    slots = [samples.slots[first:last].tolist() for first, last in itertools.pairwise(samples.offsets)]
    assert all(row == sorted(set(row)) for row in slots)
    assert min(map(len, slots)) < max(map(len, slots)) == SLOTS
    check_both(make_task(Logistic(), rule, penalty, dim=dim, slots=SLOTS), samples)


@compiled_in_full
@pytest.mark.parametrize(
    ("rule", "penalty"),
    [
        (Sgd(), Free()), (Sgd(), L2), (Momentum(), NONE), (Adagrad(), Free()), (Adagrad(_F(0.01)), NONE), (Adam(), L2),
        (Sgd(), TOUCHED), (Momentum(), TOUCHED), (Adagrad(_F(0.01)), TOUCHED), (Adam(), TOUCHED), (Ftrl(), TOUCHED),
    ],
    ids=[
        "sgd", "sgd-l2", "momentum-l2", "adagrad", "adagrad-l2", "adam-l2", "sgd-touched", "momentum-touched",
        "adagrad-touched", "adam-touched", "ftrl-touched",
    ],
)
@pytest.mark.parametrize("slots", [0, SLOTS])
def test_rules(rule, penalty, slots):
    samples = make_slot_rows(4) if slots else make_rows(4)
    check_both(make_task(Logistic(), rule, penalty, dim=3 if slots else 9, slots=slots), samples)


@compiled_in_full
@pytest.mark.parametrize("slots", [0, SLOTS])
def test_a_penalty_of_zero_when_touched_is_none(slots):
    samples = make_slot_rows(4) if slots else make_rows(4)
    found = []
    for penalty in (Free(), TouchedPenalty(_F(0), _F(0))):
        task = make_task(Logistic(), Adagrad(), penalty, dim=3 if slots else 9, slots=slots)
        weights, _, _ = make_machine(task, 3)
        drive(task, samples, weights, scratch_for(task), SCHEDULE)
        found.append(weights)
    np.testing.assert_allclose(found[0].table, found[1].table, rtol=1e-5, atol=1e-7)


@compiled_in_full
def test_ftrl_with_penalties_of_its_own():
    rule, factor_rule = Ftrl(l2=_F(0.1)), Ftrl(l2=_F(0.5))
    check_both(make_task(Logistic(), rule, dim=8, factor_rule=factor_rule), make_rows(5))


@compiled_in_full
@pytest.mark.parametrize("kind", [BinaryRows, DenseRows, SlotRows])
def test_other_bundles(kind):
    slots = SLOTS if kind is SlotRows else 0
    samples = make_slot_rows(6, kind) if slots else make_rows(6, kind)
    check_both(make_task(Squared() if kind is BinaryRows else Logistic(), Sgd(), dim=2, slots=slots), samples)


@compiled_in_full
def test_without_factors():
    check_both(make_task(Logistic(), Adagrad(), dim=0), make_rows(7))


@pytest.mark.skipif(not OFF, reason="`gradient` is called as it stands")
@pytest.mark.parametrize("slots", [0, SLOTS])
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=["logistic", "squared"])
def test_derivatives(loss, slots):
    """The gradient in scratch against differences of the twin's loss in each weight."""
    task = make_task(loss, Sgd(), dim=3, slots=slots)
    samples = make_slot_rows(8) if slots else make_rows(8)
    weights, weight, factors = make_machine(task, 8)
    weights.bias[0] = 0.3
    scratch = scratch_for(task)
    for row in (0, 3, 5, 7):  # 3 is empty, 5 has one id twice
        listed = reference_fm.entries(samples, row)
        target, importance = float(samples.targets[row]), float(samples.importance[row])

        def cost(w, v, b, listed=listed, target=target, importance=importance):
            at = np.array([reference_fm.score(w, v, b, listed)])
            return importance * reference_fm.loss_of(type(loss).__name__, at, target)

        gradient(task, samples, row, weights, scratch)
        count = int(scratch.count[0])
        found = np.zeros((FEATURES + 1, scratch.grads.shape[1]))
        np.add.at(found, scratch.rows[:count], scratch.grads[:count])
        w, v, b = weight.astype(float), factors.astype(float), 0.3
        step = 1e-5
        assert found[-1, 0] == pytest.approx((cost(w, v, b + step) - cost(w, v, b - step)) / (2 * step), abs=1e-4)
        for feature in {i for i, _, _ in listed}:
            for c in range(1 + factors[0].size):
                ends = []
                for way in (step, -step):
                    w2, v2 = w.copy(), v.copy()
                    if c:
                        v2[feature].reshape(-1)[c - 1] += way
                    else:
                        w2[feature] += way
                    ends.append(cost(w2, v2, b))
                assert found[feature, c] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-4)


@pytest.mark.parametrize("slots", cases([False, True], [False]))
def test_scores(slots):
    task = make_task(Squared(), Sgd(), dim=4, slots=SLOTS) if slots else make_task(Squared(), Sgd(), dim=10)
    samples = make_slot_rows(9) if slots else make_rows(9)
    weights, weight, factors = make_machine(task, 9)
    weights.bias[0] = -0.4
    scores = np.empty(ROWS - 2, np.float32)
    score_rows(task, samples, weights, scratch_for(task).floats, scores, 2)
    exact = [
        reference_fm.score(weight.astype(float), factors.astype(float), -0.4, reference_fm.entries(samples, row))
        for row in range(2, ROWS)
    ]
    np.testing.assert_allclose(scores, exact, rtol=1e-4, atol=1e-5)
    assert fields_of(task) == factors.shape[1]
