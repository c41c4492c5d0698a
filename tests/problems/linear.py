"""Small random problems for tests of linear kernels, and the compiled loop that runs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.arrays import BinaryRows, DenseRows, Room, Rows, Scratch, Step, make_scratch
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.loop.schedule import elapsed_at, rate_at
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import row_cells
from hogwild.kernels.sparse.linear import LinearWeights

FEATURES = 12
ROWS = 40


def make_rows(seed: int, kind: type = Rows, classes: int = 0) -> Any:
    """Samples with empty rows, repeated ids and the last id; targets -1/1, or class numbers."""
    random = np.random.default_rng(seed)
    targets = random.integers(0, classes, ROWS) if classes else random.choice([-1, 1], ROWS)
    importance = random.uniform(0.5, 2.0, ROWS)
    tail = (targets.astype(np.float32), importance.astype(np.float32))
    if kind is DenseRows:
        return DenseRows(random.normal(0, 0.5, (ROWS, FEATURES)).astype(np.float32), *tail)
    lengths = random.integers(0, 7, ROWS)
    lengths[3] = lengths[-1] = 0  # empty rows, the last among them
    lengths[5] = 4
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = random.integers(0, FEATURES, offsets[-1]).astype(np.int32)
    ids[offsets[5] : offsets[5] + 2] = FEATURES - 1  # the last id, twice in one row
    if kind is BinaryRows:
        return BinaryRows(offsets, ids, *tail)
    return Rows(offsets, ids, random.normal(0, 0.7, len(ids)).astype(np.float32), *tail)


def make_weights(task: Any, width: int) -> LinearWeights:
    """Zero weights for FEATURES features."""
    return LinearWeights(
        np.zeros(FEATURES * row_cells(task.rule, task.penalty, width), np.float32),
        np.zeros(row_cells(task.rule, Free(), width), np.float32),
    )


def scratch_for(width: int) -> Scratch:
    """Scratch for one visit of any sample of `make_rows`."""
    return make_scratch(Room(FEATURES + 1, width, floats=5 * FEATURES * width), np.uint64(1))


@kernel
def drive(task: Any, samples: Any, weights: Any, scratch: Any, schedule: Any, pair: bool) -> Any:
    """Visit all samples in turn, by the fused form or by the pair; returns the sum of losses."""
    loss = 0.0
    for visit in range(len(samples.targets)):
        elapsed = np.float32(elapsed_at(schedule, float(visit)))
        step = Step(rate_at(schedule, float(visit)), elapsed, 0, 0, 1)
        scratch.clock[0] = elapsed
        if pair:
            loss += gradient(task, samples, visit, weights, scratch)
            apply(task, weights, scratch, step)
        else:
            loss += fused(task, samples, visit, weights, scratch, step)
    return loss
