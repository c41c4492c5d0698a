"""Factorization machines: the score of a row is linear, plus a product for each pair of its features.

Feature i has a weight w_i and a vector of factors v_i; entries of a sample are (i, x). Let s be the sum of x v_i. Then
the sum over pairs of x_i x_j <v_i, v_j> is (<s, s> - sum of <x v_i, x v_i>) / 2, and its derivative in v_i is
x (s - x v_i): the work is that of the entries, not that of the pairs.

Field-aware machines have a vector v_ig for each field g that a partner may be of, and a sum s_fg for each pair of
fields; a plain one is a machine with one field. A row of the table is `[w | factors]`, with the slots of the update
rule behind; in scratch.floats stand the sums, then the factors of each entry times its value, in rows of whole vectors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import NEXT, Floats
from hogwild.kernels.compiler.jit import choice, inner, kernel, open_kernel
from hogwild.kernels.compiler.prefetch import prefetch
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.optim.losses import cost, slope
from hogwild.kernels.optim.penalties import stamps
from hogwild.kernels.optim.rules import begin_row, stride, update, visits_of
from hogwild.kernels.simd.rules8 import EIGHT, fixes_of, gradient_eight, move_apart_eight, move_eight, move_runs
from hogwild.kernels.sparse.fm_rows import Reader, dot_fields, dragged, drags, field_gradients, read_row
from hogwild.kernels.sparse.linear import move_bias
from hogwild.kernels.sparse.samples import LINE, count_of, entries_of, id_of, prefetch_entries, value_of


class OneField(NamedTuple):
    """All features are of one kind."""


class FMTask(NamedTuple):
    """Loss, update rules of weights and of factors, and penalty; `bias` is 1, or 0 for a model without one. `lanes` has
    as many entries as a vector of factors: so compiled code knows the number."""

    loss: Any
    rule: Any
    factor_rule: Any
    penalty: Any
    bias: np.float32
    fields: Any
    lanes: tuple[int, ...]


class Entry(NamedTuple):
    """An entry of a sample: where its row stands in scratch.floats, its field, the derivative in its weight, and
    whether it is known that no two entries of the sample are of one field."""

    place: Any
    field: Any
    grad: Any
    alone: Any


class FMWeights(NamedTuple):
    """Rows of `table` (one a feature) and `bias` (one), each with the slots of the update rule; flat."""

    table: Floats
    bias: Floats


@choice
def count_fields(fields: Any) -> Any:
    """How many fields there are."""


@choice
def field_of(fields: Any, entries: Any, k: int) -> Any:
    """The field of the k-th entry."""


@choice
def read_rows(fields: Any, task: Any, entries: Any, weights: Any, floats: Any, reader: Any) -> Any:
    """Fill scratch.floats with sums and factors of entries; returns the sum of the weights times the values."""


@choice
def product_of_pairs(fields: Any, task: Any, entries: Any, floats: Any) -> Any:
    """The sum over pairs of entries, from what scratch.floats holds."""


@choice
def factor_gradients(fields: Any, task: Any, floats: Any, entry: Entry) -> None:
    """Turn the row of an entry in scratch.floats into the derivatives in its factors."""


@choice
def move_factors(fields: Any, task: Any, table: Any, base: int, floats: Any, entry: Entry, step: Any, visits: Any) -> None:  # noqa: E501
    """Move the factors of the row that begins at `base`."""


@choice
def are_alone(fields: Any, entries: Any) -> Any:
    """Whether it is known that no two entries are of one field."""


count_fields.of(OneField)(lambda fields: 1)
field_of.of(OneField)(lambda fields, entries, k: 0)
are_alone.of(OneField)(lambda fields, entries: False)


@inner
def factors_of(task: Any) -> int:
    """Factors of a feature."""
    return count_fields(task.fields) * len(task.lanes)


@inner
def room_of(task: Any) -> int:
    """Cells of a row in scratch.floats."""
    return (factors_of(task) + EIGHT - 1) // EIGHT * EIGHT


@inner
def place_of(task: Any, k: int) -> int:
    """Where in scratch.floats the row of the k-th entry begins."""
    return (count_fields(task.fields) + k) * room_of(task)


@inner
def read_all(task: Any, entries: Any, weights: Any, floats: Any, reader: Any) -> Any:
    """As `read_rows`: the row of each entry at its place, and added to the sum of its field."""
    room, width, total = room_of(task), 1 + factors_of(task), np.float32(0)
    for c in range(count_fields(task.fields) * room):
        floats[c] = np.float32(0)
    for k in range(count_of(entries)):
        row, value, place = id_of(entries, k), value_of(entries, k), place_of(task, k)
        sums = (field_of(task.fields, entries, k) * room,)
        total += read_row(task.penalty, task.rule, weights.table, row, width, reader, value, floats, place, sums)
    return total


@read_rows.of(OneField)
def _read_rows(fields: Any, task: Any, entries: Any, weights: Any, floats: Any, reader: Any) -> Any:
    return read_all(task, entries, weights, floats, reader)


@product_of_pairs.of(OneField)
def _product(fields: Any, task: Any, entries: Any, floats: Any) -> Any:
    room = room_of(task)
    total = np.float32(0)
    for c in range(room):
        total += floats[c] * floats[c]
    rows = floats[room : room + count_of(entries) * room]
    for c in range(len(rows)):
        total -= rows[c] * rows[c]
    return np.float32(0.5) * total


@factor_gradients.of(OneField)
def _one_field_gradients(fields: Any, task: Any, floats: Any, entry: Entry) -> None:
    for c in range(0, room_of(task), EIGHT):
        gradient_eight(floats, c, entry.place + c, entry.grad)


@move_factors.of(OneField)
def _move_apart(fields: Any, task: Any, table: Any, base: int, floats: Any, entry: Entry, step: Any, visits: Any) -> None:  # noqa: E501
    place, grad = entry.place, entry.grad
    count, drag = factors_of(task), drags(task.penalty)[1]
    width, fixes = 1 + count, fixes_of(task.factor_rule, visits)
    whole = count // EIGHT * EIGHT
    for c in range(0, whole, EIGHT):
        cell, places = base + 1 + c, (c, place + c)
        move_apart_eight(task.factor_rule, drag, table, cell, width, floats, places, grad, step.rate, fixes)
    if whole < count:
        gradient_eight(floats, whole, place + whole, grad)
    for c in range(whole, count):
        mine = dragged(drag, floats[place + c], table[base + 1 + c])
        update(task.factor_rule, table, base + 1 + c, width, mine, step.rate, visits)


# -- one sample -----------------------------------------------------------------------------------------------------


@inner
def score_row(task: Any, entries: Any, weights: Any, floats: Any, reader: Any) -> Any:
    """The score of one sample under the weights as they stand; reader: a Step, or a Reader, which pays for no row."""
    total = read_rows(task.fields, task, entries, weights, floats, reader)
    # RACE(stale read): docs/races.md
    return total + product_of_pairs(task.fields, task, entries, floats) + task.bias * weights.bias[0]


@inner
def move_weight(task: Any, table: Any, base: int, grad: Any, step: Any, visits: Any) -> None:
    """Move the weight of the row that begins at `base`."""
    pulled = dragged(drags(task.penalty)[0], grad, table[base])
    update(task.rule, table, base, 1 + factors_of(task), pulled, step.rate, visits)


@inner
def move_by(task: Any, table: Any, base: int, floats: Any, place: int, step: Any, visits: Any) -> None:
    """Move the factors of the row that begins at `base`; the derivatives in them stand at `place` in scratch.floats."""
    count, drag = factors_of(task), drags(task.penalty)[1]
    width, fixes = 1 + count, fixes_of(task.factor_rule, visits)
    whole = count // EIGHT * EIGHT
    for c in range(0, whole, EIGHT):
        move_eight(task.factor_rule, drag, table, base + 1 + c, width, floats, place + c, step.rate, fixes)
    for c in range(whole, count):
        mine = dragged(drag, floats[place + c], table[base + 1 + c])
        update(task.factor_rule, table, base + 1 + c, width, mine, step.rate, visits)


@inner
def prefetch_rows(entries: Any, first: int, last: int, table: Any, cells: int) -> None:
    """Ask for the rows, of so many cells, of some entries of the next sample."""
    for k in range(first, min(last, count_of(entries))):
        base = id_of(entries, k) * cells
        for c in range(0, cells, LINE):
            prefetch(table, base + c)
        prefetch(table, base + cells - 1)


@gradient.of(FMTask)
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    entries = entries_of(samples, visit)
    score = score_row(task, entries, weights, scratch.floats, Reader(scratch.clock[0]))
    grad = slope(task.loss, score, samples.targets[visit]) * samples.importance[visit]
    count, factors, alone = count_of(entries), factors_of(task), are_alone(task.fields, entries)
    for k in range(count):
        mine, place = grad * value_of(entries, k), place_of(task, k)
        entry = Entry(place, field_of(task.fields, entries, k), mine, alone)
        factor_gradients(task.fields, task, scratch.floats, entry)
        scratch.rows[k] = id_of(entries, k)
        scratch.grads[k, 0] = mine
        for c in range(factors):
            scratch.grads[k, 1 + c] = scratch.floats[place + c]
    scratch.rows[count] = len(weights.table) // stride(task.rule, task.penalty, 1 + factors)
    scratch.grads[count, 0] = grad * task.bias
    scratch.grads[count, 1:] = np.float32(0)
    scratch.count[0] = count + 1
    return cost(task.loss, score, samples.targets[visit]) * samples.importance[visit]


@apply.of(FMTask)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    factors = factors_of(task)
    features = len(weights.table) // stride(task.rule, task.penalty, 1 + factors)
    for k in range(scratch.count[0]):
        row: Any = np.int64(scratch.rows[k])
        if row < features:
            for c in range(factors):
                scratch.floats[c] = scratch.grads[k, 1 + c]
            visits = begin_row(task.rule, task.penalty, weights.table, row, 1 + factors, step)
            base = row * stride(task.rule, task.penalty, 1 + factors)
            move_weight(task, weights.table, base, scratch.grads[k, 0], step, visits)
            move_by(task, weights.table, base, scratch.floats, 0, step, visits)
        else:
            move_bias(task, weights, scratch.grads[k, 0], step)


@fused.of(FMTask)
def _fused(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    entries = entries_of(samples, visit)
    count = count_of(entries)
    for k in range(0, count, LINE):
        prefetch_entries(samples, scratch.count[NEXT], k)  # samples are visited in random order: none is in the cache
    score = score_row(task, entries, weights, scratch.floats, step)
    grad = slope(task.loss, score, samples.targets[visit]) * samples.importance[visit]
    coming = entries_of(samples, scratch.count[NEXT])
    cells = stride(task.rule, task.penalty, 1 + factors_of(task))
    alone = are_alone(task.fields, entries)
    for k in range(count):  # rows are paid for: reading them did that
        prefetch_rows(coming, k, k + 1, weights.table, cells)  # not all at once: loads that are under way are few
        base, mine = id_of(entries, k) * cells, grad * value_of(entries, k)
        visits = visits_of(task.rule, weights.table, base + cells - 1 - stamps(task.penalty))
        move_weight(task, weights.table, base, mine, step, visits)
        entry = Entry(place_of(task, k), field_of(task.fields, entries, k), mine, alone)
        move_factors(task.fields, task, weights.table, base, scratch.floats, entry, step, visits)
    prefetch_rows(coming, count, count_of(coming), weights.table, cells)
    move_bias(task, weights, grad * task.bias, step)
    return cost(task.loss, score, samples.targets[visit]) * samples.importance[visit]


@open_kernel
def score_rows(task: Any, samples: Any, weights: Any, floats: Any, scores: Any, first: int) -> None:
    """Scores of the samples from `first` on, as many as there is room for; `floats` as in scratch."""
    for i in range(len(scores)):
        scores[i] = score_row(task, entries_of(samples, first + i), weights, floats, Reader(np.float32(0)))


@kernel
def score_one(machine: Any, listed: Any, numbers: Any, floats: Any) -> Any:
    """The score of one sample: as `score_rows`, of entries; for types of this package only, as its cache is."""
    return score_row(machine, listed, numbers, floats, Reader(np.float32(0)))


# -- Field-aware factorization machines: a feature has factors for each field that a partner may be of ----------------
# With v_ig the factors of feature i for partners of field g, let s_fg be the sum of x v_ig over the entries of field
# f. The sum over pairs of x_i x_j <v_ig, v_jf>, where i is of field f and j of field g, is half of the sum over all
# f, g of <s_fg, s_gf>, less half of the entries with themselves; its derivative in v_ig is x (s_gf - x v_ig [f = g]).
# So the work is that of entries times fields, however many entries a field has.
# Most samples have one entry of each field at the most. Then the row of an entry is the sum of its field, and is read
# straight to there; the products of fields with themselves are no pairs, and are cleared.


class Fields(NamedTuple):
    """Features are of so many fields."""

    count: int  # type: ignore[assignment]  # not the method of tuples


count_fields.of(Fields)(lambda fields: fields.count)
field_of.of(Fields)(lambda fields, entries, k: np.int64(entries.slots[k]))


@are_alone.of(Fields)
def _are_rising(fields: Any, entries: Any) -> Any:
    for k in range(1, count_of(entries)):
        if entries.slots[k] <= entries.slots[k - 1]:
            return False
    return True


@read_rows.of(Fields)
def _read_fields(fields: Any, task: Any, entries: Any, weights: Any, floats: Any, reader: Any) -> Any:
    if not are_alone(fields, entries):
        return read_all(task, entries, weights, floats, reader)
    dim, room, width, total = len(task.lanes), room_of(task), 1 + factors_of(task), np.float32(0)
    cleared = 0
    for k in range(count_of(entries)):
        row, value, field = id_of(entries, k), value_of(entries, k), field_of(fields, entries, k)
        place = field * room
        for c in range(cleared, place):
            floats[c] = np.float32(0)
        total += read_row(task.penalty, task.rule, weights.table, row, width, reader, value, floats, place, ())
        for c in range(place + field * dim, place + (field + 1) * dim):
            floats[c] = np.float32(0)
        cleared = place + room
    for c in range(cleared, fields.count * room):
        floats[c] = np.float32(0)
    return total


@product_of_pairs.of(Fields)
def _field_product(fields: Any, task: Any, entries: Any, floats: Any) -> Any:
    dim, room = len(task.lanes), room_of(task)
    alone = np.float32(0)
    if not are_alone(fields, entries):
        for f in range(fields.count):
            within = floats[f * room + f * dim :]
            for c in range(dim):
                alone += within[c] * within[c]
        for k in range(count_of(entries)):
            own = floats[place_of(task, k) + field_of(fields, entries, k) * dim :]
            for c in range(dim):
                alone -= own[c] * own[c]
    return dot_fields(task.lanes, floats, room, fields.count) + np.float32(0.5) * alone


@factor_gradients.of(Fields)
def _many_field_gradients(fields: Any, task: Any, floats: Any, entry: Entry) -> None:
    dim, room, field, grad = len(task.lanes), room_of(task), entry.field, entry.grad
    own, sums = entry.place + field * dim, field * dim
    if entry.alone:
        field_gradients(task.lanes, floats, entry.place, sums, room, fields.count, grad)
        return
    field_gradients(task.lanes, floats, entry.place, sums, room, field, grad)
    for c in range(dim):
        floats[own + c] = grad * (floats[sums + field * room + c] - floats[own + c])
    after = field + 1
    field_gradients(task.lanes, floats, own + dim, sums + after * room, room, fields.count - after, grad)


@move_factors.of(Fields)
def _move_by_gradients(fields: Any, task: Any, table: Any, base: int, floats: Any, entry: Entry, step: Any, visits: Any) -> None:  # noqa: E501
    if entry.alone:
        rule, drag, width = task.factor_rule, drags(task.penalty)[1], 1 + factors_of(task)
        fixes, room, first, grad = fixes_of(rule, visits), room_of(task), entry.field * len(task.lanes), entry.grad
        cell, runs, rate = base + 1, fields.count, step.rate
        move_runs(rule, task.lanes, drag, table, cell, width, floats, first, room, runs, grad, rate, fixes)
        return
    factor_gradients(fields, task, floats, entry)
    move_by(task, table, base, floats, entry.place, step, visits)
