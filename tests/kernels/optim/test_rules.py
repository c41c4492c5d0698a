"""Update rules and lazy penalties against float64 twins, where every weight pays at every visit."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild.arrays import Step
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.loop.schedule import Schedule, elapsed_at
from hogwild.kernels.optim.losses import Logistic
from hogwild.kernels.optim.penalties import Free, Penalty, flow, owes, shorten
from hogwild.kernels.optim.rules import (
    RULES,
    Adagrad,
    Adam,
    Ftrl,
    Momentum,
    Sgd,
    begin_row,
    cell_names,
    row_cells,
    row_table,
    settle,
    stride,
    update,
)
from hogwild.kernels.sparse.linear import LinearTask
from problems.linear import FEATURES, ROWS, drive, make_rows, make_weights, scratch_for
from reference import linear as reference

CONSTANT = Schedule(0.1, 0.0, 0.0)
LINEAR = Schedule(0.2, 1.0 / ROWS, 0.0)
INVERSE = Schedule(0.2, 0.0, 0.05)
BOTH = Schedule(0.2, 0.9 / ROWS, 0.1)
RULE_TAGS = [Sgd(), Momentum(), Adagrad(), Adam(), Ftrl(l1=np.float32(0.3), l2=np.float32(0.2))]
NAMES = [type(rule).__name__ for rule in RULE_TAGS]


@kernel
def step_many(rule, table, gradients, rates):
    for k in range(len(gradients)):
        step = Step(rates[k], np.float32(0), 0, 0, 1)
        count = begin_row(rule, Free(), table, 0, 1, step)
        update(rule, table, 0, 1, gradients[k], rates[k], count)


@kernel
def pay(penalty, weight, due):
    return flow(penalty, weight, due)


@pytest.mark.parametrize("rule", RULE_TAGS, ids=NAMES)
def test_one_weight_follows_its_rule(rule):
    random = np.random.default_rng(2)
    gradients = random.normal(0, 1, 60).astype(np.float32)
    rates = np.linspace(0.3, 0.001, 60).astype(np.float32)
    table = np.zeros(row_cells(rule, Free(), 1), np.float32)
    step_many(rule, table, gradients, rates)
    twin = reference.Weight()
    for gradient, rate in zip(gradients, rates, strict=True):
        reference.move(rule, twin, float(gradient), float(rate))
    assert abs(twin.value) > 0.01
    assert table[0] == pytest.approx(twin.value, rel=2e-4)
    if isinstance(rule, Adam):
        assert table[-1] == 60


def test_ftrl_keeps_its_weight_when_the_rate_falls_to_nothing():
    gradients = np.full(50, -1, np.float32)
    rates = np.linspace(0.5, 1e-4, 50).astype(np.float32)
    table = np.zeros(row_cells(Ftrl(), Free(), 1), np.float32)
    step_many(Ftrl(), table, gradients[:45], rates[:45])
    before = float(table[0])
    step_many(Ftrl(), table, gradients[45:], rates[45:])
    assert before > 0.5
    assert table[0] >= before


def test_ftrl_starts_from_weights_without_memory():
    table = np.array([2.0, 0, 0], np.float32)
    step_many(Ftrl(), table, np.zeros(1, np.float32), np.full(1, 0.1, np.float32))
    assert table[0] == pytest.approx(2.0)


def test_ftrl_l1_makes_exact_zeros():
    random = np.random.default_rng(3)
    gradients = random.normal(0, 1, 40).astype(np.float32)
    table = np.zeros(3, np.float32)
    step_many(Ftrl(l1=np.float32(100)), table, gradients, np.full(40, 0.1, np.float32))
    assert table[0] == 0.0
    assert table[1] == pytest.approx(gradients.sum(), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("l1", "l2"), [(0, 0), (0.2, 0), (0, 0.3), (0.2, 0.3), (0, 50), (0.1, 50)])
def test_flow_in_parts_is_flow_at_once(l1, l2):
    penalty = Penalty(np.float32(l1), np.float32(l2))
    for due in (0.0, 1e-6, 1e-3, 0.05, 0.0667, 0.7, 3.0):
        for weight in (-2.0, 0.1, 1.5):
            once = pay(penalty, np.float32(weight), np.float32(due))
            parts = np.float32(weight)
            for _ in range(3):
                parts = np.float32(pay(penalty, parts, np.float32(due / 3)))
            exact = reference.shrink(weight, l1, l2, due, parts=2_000)
            assert once == pytest.approx(exact, rel=1e-3 if l2 == 50 else 1e-5, abs=1e-6)
            assert parts == pytest.approx(float(once), rel=2e-5, abs=1e-6)


def test_shorten_keeps_nan():
    assert np.isnan(shorten(np.float32(np.nan), np.float32(0.1)))


@pytest.mark.parametrize("schedule", [CONSTANT, LINEAR, INVERSE, BOTH], ids=["constant", "linear", "inverse", "both"])
def test_clock_is_the_integral_of_the_rate(schedule):
    total = sum(reference.time_of(schedule, position) for position in range(ROWS))
    assert elapsed_at(schedule, float(ROWS)) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("schedule", [CONSTANT, LINEAR, INVERSE], ids=["constant", "linear", "inverse"])
@pytest.mark.parametrize("rule", RULE_TAGS[:4], ids=NAMES[:4])
def test_lazy_penalty_equals_dense_penalty(rule, schedule):
    samples = make_rows(11)
    for l1, l2 in ((0.05, 0.0), (0.0, 0.3), (0.05, 0.3)):
        task = LinearTask(Logistic(), rule, Penalty(np.float32(l1), np.float32(l2)), np.float32(1))
        weights, twin = make_weights(task, 1), reference.LinearTwin(task, FEATURES, 1)
        loss = drive(task, samples, weights, scratch_for(1), schedule, False)
        end = np.float32(elapsed_at(schedule, float(ROWS)))
        settle(task.rule, task.penalty, weights.table, 1, end)
        twin_loss = twin.run(samples, schedule, np.arange(ROWS))
        cells = row_cells(rule, task.penalty, 1)
        got = weights.table.reshape(FEATURES, cells)
        tolerance = 3e-3 if isinstance(rule, Adam) else 1e-3
        np.testing.assert_allclose(got[:, 0], twin.weight()[:, 0], rtol=tolerance, atol=2e-4)
        assert loss == pytest.approx(twin_loss, rel=1e-3)
        assert not got[:, -1].any()  # stamps are back at the beginning of an epoch


def test_strong_l1_empties_the_model_and_the_bias_stays():
    samples = make_rows(12)
    task = LinearTask(Logistic(), Sgd(), Penalty(np.float32(5), np.float32(0)), np.float32(1))
    weights = make_weights(task, 1)
    drive(task, samples, weights, scratch_for(1), CONSTANT, False)
    settle(task.rule, task.penalty, weights.table, 1, np.float32(elapsed_at(CONSTANT, float(ROWS))))
    assert not weights.table[::2].any()
    assert weights.bias[0] != 0


def test_a_private_row_is_paid_for_by_one_worker_and_a_common_one_by_whoever_comes():
    penalty = Penalty(np.float32(0), np.float32(1))
    for private, payers in ((1, 1), (0, 3)):
        paid = []
        for worker in range(3):
            table = np.array([1.0, 0.0], np.float32)
            pay_once(penalty, table, 0, private, worker, 3)
            if table[1]:
                paid.append(table[0])
                assert table[1] == np.float32(0.5)
        assert paid == pytest.approx([np.exp(-0.5)] * payers, rel=1e-6)


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 100])
def test_payers_are_spread_evenly(workers):
    payers = np.array([[owes(Step(0.0, 0.0, 10_000, w, workers), row) for w in range(workers)] for row in range(2000)])
    assert (payers.sum(axis=1) == 1).all()
    assert payers.sum(axis=0).max() < 1.5 * 2000 / workers + 3


@kernel
def pay_once(penalty, table, row, private, worker, workers):
    begin_row(Sgd(), penalty, table, row, 1, Step(np.float32(0.1), np.float32(0.5), private, worker, workers))


def test_time_never_runs_backwards():
    table = np.array([1.0, 0.9], np.float32)  # another worker has stamped a later time
    pay_once(Penalty(np.float32(1), np.float32(1)), table, 0, 0, 0, 1)
    assert table.tolist() == [1.0, np.float32(0.9)]


@pytest.mark.parametrize("rule", RULE_TAGS, ids=NAMES)
@pytest.mark.parametrize("penalty", [Free(), Penalty(np.float32(1), np.float32(1))], ids=["free", "penalty"])
def test_layout_agrees_in_and_out_of_compiled_code(rule, penalty):
    for width in (1, 3):
        cells = row_cells(rule, penalty, width)
        assert ask_stride(rule, penalty, width) == cells
        table = row_table(rule, penalty, 3, width)
        assert (table.cells, len(table.additive), table.width) == (cells, cells, width)
        sizes = [1 if name in ("count", "stamp") else width for name in cell_names(rule, penalty)]
        assert width + sum(sizes) == cells


@kernel
def ask_stride(rule, penalty, width):
    return stride(rule, penalty, width)


def test_every_rule_has_a_name():
    assert [RULES[name.lower()] for name in NAMES] == [type(rule) for rule in RULE_TAGS]
