"""Linear tasks with one output: against the twin, and the fused form against the pair."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from compiling import OFF
from hogwild.arrays import BinaryRows, DenseRows, Rows
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.optim.losses import Hinge, Logistic, Squared
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Momentum, Sgd, row_cells
from hogwild.kernels.sparse.linear import LinearTask, score_rows
from places import ROOT
from problems.linear import FEATURES, ROWS, drive, make_rows, make_weights, scratch_for
from reference import linear as reference

SCHEDULE = Schedule(0.2, 0.5 / ROWS, 0.0)
PENALTY = Penalty(np.float32(0.01), np.float32(0.1))
ONE = np.float32(1)
TASKS = {
    "sgd": LinearTask(Logistic(), Sgd(), Free(), ONE),
    "sgd-penalty": LinearTask(Logistic(), Sgd(), PENALTY, ONE),
    "momentum-penalty": LinearTask(Logistic(), Momentum(), PENALTY, ONE),
    "adagrad": LinearTask(Logistic(), Adagrad(), Free(), ONE),
    "adagrad-penalty": LinearTask(Logistic(), Adagrad(), PENALTY, ONE),
    "adam-penalty": LinearTask(Logistic(), Adam(), PENALTY, ONE),
    "ftrl": LinearTask(Logistic(), Ftrl(l1=np.float32(0.2), l2=np.float32(0.1)), Free(), ONE),
    "hinge": LinearTask(Hinge(), Adagrad(), Free(), ONE),
    "squared": LinearTask(Squared(), Sgd(), Free(), ONE),
}


def compare(task, samples):
    """Train by the fused form, by the pair and by the twin; all must agree."""
    fused, pair, twin = make_weights(task, 1), make_weights(task, 1), reference.LinearTwin(task, FEATURES, 1)
    loss = drive(task, samples, fused, scratch_for(1), SCHEDULE, False)
    pair_loss = drive(task, samples, pair, scratch_for(1), SCHEDULE, True)
    twin_loss = twin.run(samples, SCHEDULE, np.arange(ROWS))
    for one, other in zip(fused, pair, strict=True):  # the compiler may contract the two forms differently
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)
    assert loss == pytest.approx(pair_loss, rel=1e-6)
    assert loss == pytest.approx(twin_loss, rel=1e-4)
    if isinstance(task.penalty, Free):  # with a penalty the rows still owe: test_updates settles first
        got = fused.table.reshape(FEATURES, row_cells(task.rule, task.penalty, 1))[:, 0]
        np.testing.assert_allclose(got, twin.weight()[:, 0], rtol=2e-3, atol=2e-4)
    assert fused.bias[0] == pytest.approx(twin.bias[0].value, rel=2e-3, abs=1e-4)
    assert np.abs(twin.weight()).max() > 0.01


@pytest.mark.parametrize("name", TASKS)
def test_sparse_rows(name):
    for seed in (1, 2):
        compare(TASKS[name], make_rows(seed, Rows))


@pytest.mark.parametrize("kind", [BinaryRows, DenseRows])
def test_other_bundles(kind):
    compare(TASKS["adagrad"], make_rows(3, kind))


def test_a_model_without_bias_leaves_it_alone():
    task = TASKS["adagrad"]._replace(bias=np.float32(0))
    compare(task, make_rows(4))
    weights = make_weights(task, 1)
    drive(task, make_rows(4), weights, scratch_for(1), SCHEDULE, False)
    assert not weights.bias.any()


def test_binary_rows_equal_rows_of_ones():
    binary = make_rows(5, BinaryRows)
    ones = Rows(binary.offsets, binary.ids, np.ones(len(binary.ids), np.float32), *binary[2:])
    short, full = make_weights(TASKS["sgd"], 1), make_weights(TASKS["sgd"], 1)
    drive(TASKS["sgd"], binary, short, scratch_for(1), SCHEDULE, False)
    drive(TASKS["sgd"], ones, full, scratch_for(1), SCHEDULE, False)
    np.testing.assert_allclose(short.table, full.table, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", [Rows, BinaryRows, DenseRows])
def test_scores(kind):
    samples = make_rows(6, kind)
    weight = np.random.default_rng(6).normal(0, 1, FEATURES).astype(np.float32)
    scores = np.empty(10, np.float32)
    score_rows(samples, weight, np.float32(0.25), scores, 30)
    exact = [0.25 + sum(v * float(weight[j]) for j, v in reference.entries(samples, row)) for row in range(30, 40)]
    np.testing.assert_allclose(scores, exact, rtol=1e-5, atol=1e-6)


def in_new_process(code_or_args, tmp_path, **environment):
    root = ROOT
    paths = os.pathsep.join(str(root / name) for name in ("src", "tests"))
    return subprocess.run(
        [sys.executable, *code_or_args],
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths, "HOGWILD_CACHE": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.full
@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_kernels_run_without_the_compiler(tmp_path):
    chosen = [f"tests/kernels/{name}.py" for name in
              ("optim/test_losses", "optim/test_rules", "sparse/test_linear", "sparse/test_softmax")]
    deselect = "not compiler and not bad_id and not flow_in_parts"
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", deselect, *chosen]
    done = in_new_process(arguments, tmp_path, NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


PLANTED = """
import numpy as np
from problems.linear import drive, make_rows, make_weights, scratch_for, FEATURES
from hogwild.kernels.sparse.linear import LinearTask
from hogwild.kernels.optim.losses import Logistic
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.optim.rules import Sgd
task = LinearTask(Logistic(), Sgd(), Free(), np.float32(1))
samples = make_rows(1)
drive(task, samples, make_weights(task, 1), scratch_for(1), Schedule(0.1, 0.0, 0.0), False)
print("good ids pass")
samples.ids[-1] = FEATURES + 1000
try:
    drive(task, samples, make_weights(task, 1), scratch_for(1), Schedule(0.1, 0.0, 0.0), False)
except IndexError as error:
    print("caught", error)
"""


@pytest.mark.skipif(OFF, reason="bounds checks are the compiler's")
def test_bounds_checks_catch_a_bad_id(tmp_path):
    done = in_new_process(["-c", PLANTED], tmp_path, NUMBA_BOUNDSCHECK="1")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "good ids pass" in done.stdout
    assert "caught" in done.stdout
