"""Small problems for factorization machines, and one compiled loop over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.arrays import NEXT, Room, Scratch, SlotRows, Step, ValuedSlotRows, make_scratch
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.loop.schedule import elapsed_at, rate_at
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import row_cells
from hogwild.kernels.sparse.fm import Fields, FMTask, FMWeights, OneField
from problems.linear import FEATURES, ROWS, make_rows

SLOTS = 3
FREE = Free()


def make_slot_rows(seed: int, kind: type = ValuedSlotRows) -> Any:
    """As `make_rows`, with slots in rising order, several entries of one slot and slots without any."""
    rows = make_rows(seed)
    random = np.random.default_rng(seed)
    slots = np.concatenate([np.sort(random.integers(0, SLOTS, n)) for n in np.diff(rows.offsets)]).astype(np.uint16)
    head = (rows.offsets, rows.ids, slots, np.zeros((ROWS, 0), np.float32), rows.targets, rows.importance)
    return SlotRows(*head) if kind is SlotRows else ValuedSlotRows(*head, rows.values)


def make_lone_rows(seed: int) -> ValuedSlotRows:
    """As `make_slot_rows`, with one entry of a slot at the most."""
    rows, random = make_rows(seed), np.random.default_rng(seed)
    counts = np.minimum(np.diff(rows.offsets), SLOTS)
    kept = np.concatenate([np.arange(first, first + n) for first, n in zip(rows.offsets, counts, strict=False)])
    slots = np.concatenate([np.sort(random.permutation(SLOTS)[:n]) for n in counts]).astype(np.uint16)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(rows.offsets.dtype)
    head = (offsets, rows.ids[kept], slots, np.zeros((ROWS, 0), np.float32), rows.targets, rows.importance)
    return ValuedSlotRows(*head, rows.values[kept])


def fields_of(task: FMTask) -> int:
    """Fields of a task."""
    return 1 if isinstance(task.fields, OneField) else task.fields.count


def make_task(
    loss: Any, rule: Any, penalty: Any = FREE, dim: int = 4, slots: int = 0, factor_rule: Any = None
) -> FMTask:
    """A task; slots: of a field-aware machine."""
    fields = Fields(slots) if slots else OneField()
    return FMTask(loss, rule, factor_rule or rule, penalty, np.float32(1), fields, (0,) * dim)


def make_machine(task: FMTask, seed: int) -> tuple[FMWeights, np.ndarray, np.ndarray]:
    """Weights of a task that begin with random numbers, and these numbers."""
    fields, dim = fields_of(task), len(task.lanes)
    width = 1 + fields * dim
    random = np.random.default_rng(seed)
    plain = random.normal(0, 0.3, (FEATURES, width)).astype(np.float32)
    table = np.zeros((FEATURES, row_cells(task.rule, task.penalty, width)), np.float32)
    table[:, :width] = plain
    weights = FMWeights(table.reshape(-1), np.zeros(row_cells(task.rule, Free(), 1), np.float32))
    return weights, plain[:, 0], plain[:, 1:].reshape(FEATURES, fields, dim)


def scratch_for(task: FMTask) -> Scratch:
    """Scratch for one visit of any sample."""
    fields, dim = fields_of(task), len(task.lanes)
    room = -(-fields * dim // 8) * 8
    return make_scratch(Room(FEATURES + 1, 1 + fields * dim, floats=(fields + FEATURES) * room), np.uint64(1))


@kernel
def step_at(schedule: Any, visit: int, visits: int, scratch: Any) -> Any:
    """What a loop tells a visit."""
    elapsed = np.float32(elapsed_at(schedule, float(visit)))
    scratch.clock[0] = elapsed
    scratch.count[NEXT] = min(visit + 1, visits - 1)
    return Step(rate_at(schedule, float(visit)), elapsed, 0, 0, 1)


@kernel
def drive(task: Any, samples: Any, weights: Any, scratch: Any, schedule: Any) -> Any:
    """Visit all samples in turn, by the fused form; returns the sum of losses."""
    loss = 0.0
    for visit in range(len(samples.targets)):
        step = step_at(schedule, visit, len(samples.targets), scratch)
        loss += fused(task, samples, visit, weights, scratch, step)
    return loss


@kernel
def drive_pair(task: Any, samples: Any, weights: Any, scratch: Any, schedule: Any) -> Any:
    """As `drive`, by `gradient` and `apply`."""
    loss = 0.0
    for visit in range(len(samples.targets)):
        step = step_at(schedule, visit, len(samples.targets), scratch)
        loss += gradient(task, samples, visit, weights, scratch)
        apply(task, weights, scratch, step)
    return loss
