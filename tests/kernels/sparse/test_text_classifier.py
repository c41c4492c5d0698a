"""The task of text classifiers: against the twin, and the fused form against the pair."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiling import OFF, cases
from hogwild.arrays import BinaryRows, Room, Rows, make_scratch
from hogwild.kernels.loop.schedule import Schedule
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Momentum, Sgd, row_cells, settle
from hogwild.kernels.simd.rows16 import LANES, layout, move_rows
from hogwild.kernels.sparse.text_classifier import TextTask, TextWeights, mean_rows
from places import ROOT
from problems.linear import FEATURES, ROWS, drive, make_rows
from reference.linear import time_of
from reference.text_classifier import TextTwin

SCHEDULE = Schedule(0.2, 0.5 / ROWS, 0.0)
L2 = Penalty(np.float32(0), np.float32(0.1))
DECAY = np.float32(0.1)


def make_task(rule: Any, penalty: Any = Free(), dim: int = 5, outputs: int = 1) -> TextTask:  # noqa: B008
    lanes, blocks = layout(dim)
    return TextTask(rule, penalty, lanes, blocks, outputs, DECAY, np.float32(0 if outputs > 1 else 2))


TASKS = {
    "sgd": make_task(Sgd()),
    "adagrad-l2": make_task(Adagrad(), L2, outputs=3),
    "sgd-l2": make_task(Sgd(), L2),
    "momentum": make_task(Momentum()),
    "adam-l2": make_task(Adam(), L2),
    "adagrad": make_task(Adagrad(), dim=20),
    "ftrl": make_task(Ftrl(l2=np.float32(0.1))),
    "many blocks": make_task(Sgd(), dim=LANES * 8 + 3),
}
COMPILED = ("sgd",)  # each takes seconds to compile; the inner run has them all


class Problem:
    """Random weights for a task, as the kernels and as the twin have them."""

    def __init__(self, task: TextTask, dim: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.task, self.dim = task, dim
        self.width = LANES * len(task.lanes) * task.blocks
        self.embedding = random.normal(0, 0.3, (FEATURES, dim)).astype(np.float32)
        self.output = random.normal(0, 0.5, (task.outputs, dim)).astype(np.float32)
        self.bias = random.normal(0, 0.1, task.outputs).astype(np.float32)

    def weights(self) -> TextWeights:
        rule, width = self.task.rule, self.width
        table = np.zeros((FEATURES, row_cells(rule, self.task.penalty, width)), np.float32)
        table[:, : self.dim] = self.embedding
        outputs = np.zeros((self.task.outputs, row_cells(rule, Free(), width + 1)), np.float32)
        outputs[:, : self.dim], outputs[:, width] = self.output, self.bias
        return TextWeights(table.reshape(-1), outputs.reshape(-1))

    def twin(self) -> TextTwin:
        return TextTwin(self.task, self.embedding, self.output, self.bias)

    def run(self, samples: Any, pair: bool) -> tuple[TextWeights, float]:
        weights = self.weights()
        room = Room(8 + self.task.outputs, self.width + 1, floats=3 * self.width + self.task.outputs + 8, ints=9)
        scratch = make_scratch(room, np.uint64(1))
        loss = drive(self.task, samples, weights, scratch, SCHEDULE, pair)
        if isinstance(self.task.penalty, Penalty):
            elapsed = sum(time_of(SCHEDULE, position) for position in range(ROWS))
            settle(self.task.rule, self.task.penalty, weights.table, self.width, np.float32(elapsed))
        return weights, loss


def without_repeats(samples: Any) -> Any:
    """The same texts, each id once: one that is named twice decays at once in one form, twice in the other."""
    spans = [range(a, b) for a, b in zip(samples.offsets, samples.offsets[1:], strict=False)]
    kept = [[k for k in span if samples.ids[k] not in samples.ids[span.start : k]] for span in spans]
    places = np.array([k for row in kept for k in row])
    offsets = np.cumsum([0, *map(len, kept)]).astype(np.int64)
    arrays = {name: getattr(samples, name)[places] for name in ("ids", "values") if name in samples._fields}
    return samples._replace(offsets=offsets, **arrays)


def compare(task: TextTask, samples: Any, dim: int) -> None:
    problem = Problem(task, dim, 7)
    (fused, loss), (pair, pair_loss) = problem.run(samples, False), problem.run(samples, True)
    twin = problem.twin()
    exact = twin.run(samples, SCHEDULE, np.arange(ROWS))
    for one, other in zip(fused, pair, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert loss == pytest.approx(pair_loss, rel=1e-5)
    assert loss == pytest.approx(exact, rel=1e-4)
    rows, layer = fused.table.reshape(FEATURES, -1), fused.outputs.reshape(problem.task.outputs, -1)
    np.testing.assert_allclose(rows[:, :dim], twin.embedding(), rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(layer[:, :dim], twin.outputs()[:, :-1], rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(layer[:, problem.width], twin.outputs()[:, -1], rtol=2e-3, atol=2e-4)
    assert not rows[:, dim : problem.width].any()  # what fills the cache line stays empty
    assert np.abs(twin.embedding() - problem.embedding).max() > 0.05


@pytest.mark.parametrize("name", cases(TASKS, COMPILED))
def test_fused_pair_and_twin_agree(name: str) -> None:
    task = TASKS[name]
    classes = task.outputs if task.outputs > 1 else 0
    dim = {"adagrad": 20, "many blocks": LANES * 8 + 3}.get(name, 5)
    for kind in (Rows, BinaryRows) if OFF and name == "sgd" else (BinaryRows if name == "sgd" else Rows,):
        compare(task, without_repeats(make_rows(1, kind, classes)), dim)
        compare(task._replace(decay=np.float32(0)), make_rows(2, kind, classes), dim)


@pytest.mark.parametrize("kind", cases([Rows, BinaryRows], [Rows]))
def test_means_of_rows(kind: type) -> None:
    samples, problem = make_rows(6, kind), Problem(TASKS["sgd"], 5, 6)
    means = np.full((12, 5), 9.0, np.float32)
    mean_rows(samples, problem.embedding, means, 2, problem.task.unit)
    twin = problem.twin()
    np.testing.assert_allclose(means, [twin.mean(samples, row) for row in range(2, 14)], rtol=1e-4, atol=1e-5)


def test_rows_move_one_after_the_other() -> None:
    from hogwild.kernels.compiler.jit import fresh

    @fresh
    def call(lanes, table, places, source, factors):  # type: ignore[no-untyped-def]
        move_rows(lanes, 2, table, places, 1, 3, np.float32(0.5), source, 4, factors, 2, 1)

    random = np.random.default_rng(0)
    table, source = random.normal(size=200).astype(np.float32), random.normal(size=80).astype(np.float32)
    places, factors = np.array([0, 100, 7, 100]), np.arange(6, dtype=np.float32)
    expected, along = table.astype(np.float64), source[4 : 4 + 4 * LANES].astype(np.float64)
    for place, factor in ((100, 2.0), (7, 3.0), (100, 4.0)):
        expected[place : place + 4 * LANES] = 0.5 * expected[place : place + 4 * LANES] + factor * along
    call((0, 0), table, places, source, factors)
    np.testing.assert_allclose(table, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.full
@pytest.mark.skipif(OFF, reason="this is the inner run")
def test_all_rules_modes_and_penalties_without_the_compiler(tmp_path: Path) -> None:
    root = ROOT
    chosen = [f"tests/{place}/sparse/test_text_classifier.py" for place in ("kernels", "programs")]
    paths = os.pathsep.join(str(root / name) for name in ("src", "tests"))
    extra = {"PYTHONPATH": paths, "HOGWILD_CACHE": str(tmp_path), "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen],
        cwd=root, env={**os.environ, **extra}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
