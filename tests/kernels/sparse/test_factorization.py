"""Matrix factorization against its twin: the pair and the fused form, all kinds, rules, penalties; the top of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiling import OFF, compiled_in_full
from hogwild.arrays import Interactions, Ratings, Room, Step, make_scratch
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.loop.schedule import Schedule, elapsed_at, rate_at
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.optim.losses import Squared
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import Adagrad, Adam, Ftrl, Momentum, Sgd, row_cells, settle
from hogwild.kernels.sparse.factorization import (
    FactorTask,
    FactorWeights,
    Pairwise,
    Rated,
    Sampled,
    Shape,
    best_of_rows,
    draw_unseen_items,
    hide_seen,
)
from reference.factorization import FactorTwin

USERS, ITEMS, DIM, VISITS = 4, 6, 3, 24
SCHEDULE = Schedule(0.1, 0.05 / VISITS, 0.0)
SHRINK = Penalty(np.float32(0), np.float32(0.3))
RULES = {
    "sgd": Sgd(), "momentum": Momentum(), "adagrad": Adagrad(), "adam": Adam(), "ftrl": Ftrl(l2=np.float32(0.2)),
}  # fmt: skip
KINDS = {"squared": (Rated(Squared()), 0), "logistic": (Sampled(), 2), "bpr": (Pairwise(), 1), "bpr3": (Pairwise(), 3)}


def make_samples(kind: Any) -> tuple[Any, list[list[int]]]:
    """Ratings, and what each user has; the last user has every item, the last id included."""
    random = np.random.default_rng(7)
    users = random.integers(0, USERS - 1, VISITS).astype(np.int32)
    items = random.integers(0, ITEMS - 2, VISITS).astype(np.int32)
    users[:ITEMS], items[:ITEMS] = USERS - 1, np.arange(ITEMS)
    seen = [sorted({int(i) for u, i in zip(users, items, strict=True) if u == user}) for user in range(USERS)]
    if isinstance(kind, Rated):
        return Ratings(users, items, random.integers(1, 6, VISITS).astype(np.float32)), seen
    offsets = np.cumsum([0, *map(len, seen)]).astype(np.int64)
    return Interactions(users, items, offsets, np.concatenate(seen).astype(np.int32)), seen


def make_task(kind: str, rule: str, shrink: bool, bias: bool) -> FactorTask:
    tag, negatives = KINDS[kind]
    mean = np.float32(3 if kind == "squared" else 0)
    shape = Shape(DIM, DIM + bias, USERS, ITEMS, negatives, mean, np.float32(0.05), np.float32(0.08))
    return FactorTask(tag, RULES[rule], SHRINK if shrink else Free(), shape)


def make_tables(task: FactorTask) -> tuple[FactorWeights, np.ndarray, np.ndarray]:
    """Weights, and the same numbers as matrices."""
    random = np.random.default_rng(3)
    cells = row_cells(task.rule, task.penalty, task.shape.width)
    plain, tables = [], []
    for rows in (USERS, ITEMS):
        table = np.zeros((rows, cells), np.float32)
        table[:, : task.shape.width] = random.normal(0, 0.5, (rows, task.shape.width))
        plain.append(table[:, : task.shape.width].astype(np.float64))
        tables.append(table.reshape(-1))
    return FactorWeights(*tables), plain[0], plain[1]


@kernel
def drive(task: Any, samples: Any, weights: Any, scratch: Any, schedule: Any, pair: bool) -> Any:
    """Visit all samples in turn, by the fused form or by the pair; returns the sum of losses."""
    loss = 0.0
    for visit in range(len(samples.users)):
        elapsed = np.float32(elapsed_at(schedule, float(visit)))
        step = Step(rate_at(schedule, float(visit)), elapsed, 0, 0, 1)
        scratch.clock[0] = elapsed
        if pair:
            loss += gradient(task, samples, visit, weights, scratch)
            apply(task, weights, scratch, step)
        else:
            loss += fused(task, samples, visit, weights, scratch, step)
    return loss


def check(task: FactorTask) -> None:
    samples, seen = make_samples(task.kind)
    losses, tables = [], []
    for pair in (True, False):
        weights, users, items = make_tables(task)
        rows = 2 + task.shape.negatives
        scratch = make_scratch(Room(rows, task.shape.width, floats=rows * (task.shape.width + 1)), np.uint64(1))
        losses.append(drive(task, samples, weights, scratch, SCHEDULE, pair))
        tables.append(weights)
    for one, other in zip(*tables, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)
    twin = FactorTwin(users, items, task)
    assert losses[0] == pytest.approx(twin.run(samples, seen, SCHEDULE, range(VISITS)), rel=1e-4)
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    end = np.float32(elapsed_at(SCHEDULE, float(VISITS)))
    cells = row_cells(task.rule, task.penalty, task.shape.width)
    for table, exact, before in zip(tables[1], twin.matrices(), (users, items), strict=True):
        settle(task.rule, task.penalty, table, task.shape.width, end)
        got = table.reshape(-1, cells)[:, : task.shape.width]
        np.testing.assert_allclose(got, exact, rtol=5e-3, atol=5e-4)
        assert np.abs(got - before).max() > 0.01
    if isinstance(task.kind, Pairwise) and task.shape.width > DIM and not task.shape.l2:
        np.testing.assert_array_equal(tables[0].users.reshape(USERS, -1)[:, DIM], users[:, DIM])


EVERY = [
    pytest.param(kind, rule, shrink, bias, id=f"{kind}-{rule}{'-shrink' * shrink}{'-bias' * bias}")
    for kind in KINDS
    for rule in RULES
    for shrink in (False, True)
    for bias in (True, False)
    if not (shrink and rule == "ftrl") and (rule in ("sgd", "adagrad") or kind == "bpr3")
]  # fmt: skip


@compiled_in_full
@pytest.mark.parametrize(("kind", "rule", "shrink", "bias"), EVERY)
def test_every_variant_interpreted(kind: str, rule: str, shrink: bool, bias: bool) -> None:
    check(make_task(kind, rule, shrink, bias))


def test_every_item_that_a_user_has_not_is_drawn_alike() -> None:
    seen = [[0, 1, 4], [], [0, 1, 2, 3, 5], [5]]
    offsets = np.cumsum([0, *map(len, seen)]).astype(np.int64)
    users = np.repeat(np.arange(4, dtype=np.int32), 100 if OFF else 6000)
    drawn = np.empty((2, len(users)), np.int32)
    draw_unseen_items(offsets, np.concatenate(seen).astype(np.int32), users, 6, np.array([9], np.uint64), drawn)
    for user, owned in enumerate(seen):
        counts = np.bincount(drawn[:, users == user].ravel(), minlength=6)
        free = [item for item in range(6) if item not in owned]
        assert counts[owned].sum() == 0
        assert (np.abs(counts[free] - counts.sum() / len(free)) < 5 * np.sqrt(counts.sum() / len(free))).all()


def test_the_best_of_rows_against_sorting() -> None:
    random = np.random.default_rng(5)
    scores = random.integers(0, 40, (7, 150)).astype(np.float32)  # many equal ones
    scores[1] = -np.inf
    scores[2, 3:] = -np.inf
    scores[3, 10] = np.nan
    offsets, seen = np.array([0, 2, 2], np.int64), np.array([5, 149], np.int32)
    hide_seen(scores, np.array([0, -1, 1, -1, -1, 0, 1], np.int32), offsets, seen)
    assert np.isneginf(scores[0, [5, 149]]).all()
    assert np.isneginf(scores[5, [5, 149]]).all()
    ids, values = np.empty((7, 9), np.int32), np.empty((7, 9), np.float32)
    best_of_rows(scores, ids, values)
    for row, mine, sizes in zip(scores, ids, values, strict=True):
        order = np.argsort(-row, kind="stable")
        order = order[np.isfinite(row[order])][:9]
        assert mine.tolist() == [*order.tolist(), *[-1] * (9 - len(order))]
        np.testing.assert_array_equal(sizes[: len(order)], row[order])
