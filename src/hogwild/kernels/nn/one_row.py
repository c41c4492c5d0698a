"""One row through embeddings and dense layers, for serving: checked, looked up and multiplied in one call.

There is one row to multiply by, so that every weight is read once and used once: the time is that of reading them. A
product by BLAS packs the matrix before, for many rows; here the weights of inputs that are zero are not even read, and
behind relu that is half of them or more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Floats, Offsets, ValuedSlotRows
from hogwild.kernels.compiler.jit import inner, kernel, open_kernel
from hogwild.kernels.nn.dense import activate
from hogwild.kernels.nn.lookup import add_wide, gather

NO_FEATURE, NO_SLOT, UNSORTED, NOT_FINITE = -1, -2, -3, -4


class GivenRow(NamedTuple):
    """What the user gave: features with values and slots, and the numbers beside them; not checked yet."""

    ids: Any
    values: Any
    slots: Any
    numbers: Any


class RowRoom(NamedTuple):
    """Room for one row: the features that are known, what each layer gives, a number an input of the widest layer, and
    its scores; with how many features and slots the model has."""

    row: ValuedSlotRows
    floats: Floats
    used: Offsets
    scores: Floats
    features: int
    slots: int


@kernel
def take_row(given: Any, room: Any) -> int:
    """Copy the features that are known, and the numbers. Returns how many features, or what is wrong (negative)."""
    ids, values, slots, numbers = given.ids, given.values, given.slots, given.numbers
    row = room.row
    count = 0
    before = 0
    for k in range(len(ids)):
        slot = slots[k]
        if ids[k] < 0:
            return NO_FEATURE
        if slot < 0 or slot >= room.slots:
            return NO_SLOT
        if slot < before:
            return UNSORTED
        if not np.isfinite(values[k]):
            return NOT_FINITE
        before = slot
        if ids[k] < room.features:
            row.ids[count], row.slots[count], row.values[count] = ids[k], slot, values[k]
            count += 1
    for k in range(len(numbers)):
        if not np.isfinite(numbers[k]):
            return NOT_FINITE
        row.dense[0, k] = numbers[k]
    row.offsets[1] = count
    return count


@kernel
def add_inputs(inputs: Any, matrix: Any, sums: Any, used: Any) -> None:
    """Add inputs times the matrix (inputs x sums, in row order) to the sums. used: room for a number an input.

    Four rows of the matrix at a time: sums are read and written once for them, and four streams of memory flow at once.
    """
    width = len(sums)
    count = 0
    for i in range(len(inputs)):  # without a branch, which nothing can foretell
        used[count] = i
        count += inputs[i] != np.float32(0)
    fours = count - count % 4
    for k in range(0, fours, 4):
        i, j, m, n = used[k], used[k + 1], used[k + 2], used[k + 3]
        a, b, c, d = inputs[i], inputs[j], inputs[m], inputs[n]
        row_a, row_b = matrix[i * width : (i + 1) * width], matrix[j * width : (j + 1) * width]
        row_c, row_d = matrix[m * width : (m + 1) * width], matrix[n * width : (n + 1) * width]
        for s in range(width):
            sums[s] += a * row_a[s] + b * row_b[s] + c * row_c[s] + d * row_d[s]
    for k in range(fours, count):
        a = inputs[used[k]]
        row_a = matrix[used[k] * width : (used[k] + 1) * width]
        for s in range(width):
            sums[s] += a * row_a[s]


@inner
def forward_row(task: Any, layers: Any, floats: Any, used: Any) -> Any:
    """As `forward` of dense.py for one row; returns where the sums of the last layer begin."""
    sizes = task.sizes
    last = len(sizes) - 1
    at = 0
    source: Any = np.int64(0)
    for layer in range(1, last + 1):
        before, after = sizes[layer - 1], sizes[layer]
        target = source + before
        sums = floats[target : target + after]
        bias = at + before * after
        for k in range(after):
            sums[k] = layers[bias + k]
        add_inputs(floats[source:target], layers[at:bias], sums, used)
        if layer < last:
            activate(task.activation, sums)
        at, source = bias + after, target
    return source


@open_kernel
def score_row(task: Any, given: Any, weights: Any, room: Any) -> int:
    """The scores of one row, to `room.scores`; `weights` have paid their penalties. Returns what `take_row` does."""
    count = take_row(given, room)
    if count < 0:
        return count
    room.used[0] = 0  # the row is the first of its kind, and the only one
    gather(task, room.row, room.used, 1, weights.table, room.floats, np.float32(0))
    at = forward_row(task, weights.values, room.floats, room.used)
    for k in range(len(room.scores)):
        room.scores[k] = room.floats[at + k]
    if task.width > task.dim:
        room.used[0] = 0
        add_wide(task, room.row, room.used, 1, weights.table, room.scores, np.float32(0))
    return count
