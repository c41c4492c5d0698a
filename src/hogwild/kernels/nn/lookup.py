"""Rows of an embedding table put together for a batch of samples, and what comes back to them.

A sample has entries (an id and, where there are values, a value) in one or several slots. The rows of the entries of a
slot are added up, each times its value; the mean divides by the sum of the values, sqrt-n by the root of the sum of
their squares. Slots stand one after the other in the input of the first dense layer, then the dense columns.
With a wide part a row has more cells than its embedding: they are weights that go straight to the outputs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import SlotRows, ValuedSlotRows
from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.compiler.prefetch import prefetch
from hogwild.kernels.nn.dense import activate
from hogwild.kernels.optim.penalties import weight_at
from hogwild.kernels.optim.rules import begin_row, stride, update

AHEAD = 8  # entries between asking for a row and reading it
LINE = 16  # cells of a cache line


class OneSlot(NamedTuple):
    """All entries of a sample are in the first slot; the array of slots is not read."""


class ManySlots(NamedTuple):
    """Entries say which slot they are in."""


class Sum(NamedTuple):
    """Rows times values, added up."""


class Mean(NamedTuple):
    """... divided by the sum of the values."""


class SqrtN(NamedTuple):
    """... divided by the root of the sum of their squares."""


COMBINERS: dict[str, Any] = {"sum": Sum(), "mean": Mean(), "sqrtn": SqrtN()}


@choice
def value_at(samples: Any, entry: int) -> Any:
    """Value of an entry."""


@value_at.of(SlotRows)
def _one(samples: Any, entry: int) -> Any:
    return np.float32(1)


@value_at.of(ValuedSlotRows)
def _value(samples: Any, entry: int) -> Any:
    return samples.values[entry]


@choice
def slot_end(layout: Any, samples: Any, entry: int, end: int) -> Any:
    """The first entry after this one that is in another slot, or the end of the sample."""


@slot_end.of(OneSlot)
def _whole_sample(layout: Any, samples: Any, entry: int, end: int) -> Any:
    return end


@slot_end.of(ManySlots)
def _same_slot(layout: Any, samples: Any, entry: int, end: int) -> Any:
    last = entry + 1
    while last < end and samples.slots[last] == samples.slots[entry]:
        last += 1
    return last


@choice
def slot_of(layout: Any, samples: Any, entry: int) -> Any:
    """Slot of an entry."""


@slot_of.of(OneSlot)
def _first_slot(layout: Any, samples: Any, entry: int) -> Any:
    return np.int64(0)


@slot_of.of(ManySlots)
def _named_slot(layout: Any, samples: Any, entry: int) -> Any:
    return np.int64(samples.slots[entry])


@choice
def share(combiner: Any, samples: Any, entry: int, end: int) -> Any:
    """What the values of the entries of a slot are multiplied by."""


@share.of(Sum)
def _whole(combiner: Any, samples: Any, entry: int, end: int) -> Any:
    return np.float32(1)


@share.of(Mean)
def _mean_share(combiner: Any, samples: Any, entry: int, end: int) -> Any:
    total = np.float32(0)
    for e in range(entry, end):
        total += value_at(samples, e)
    return np.float32(1) / total if total != np.float32(0) else np.float32(0)


@share.of(SqrtN)
def _root_share(combiner: Any, samples: Any, entry: int, end: int) -> Any:
    total = np.float32(0)
    for e in range(entry, end):
        total += value_at(samples, e) * value_at(samples, e)
    return np.float32(1) / np.float32(math.sqrt(total)) if total > np.float32(0) else np.float32(0)


@inner
def ask_for(samples: Any, table: Any, entry: int, cells: Any) -> None:
    """Ask for the row of an entry."""
    base: Any = np.int64(np.uint32(samples.ids[entry])) * cells
    for line in range(0, cells, LINE):
        prefetch(table, base + line)


@inner
def ask_ahead(samples: Any, table: Any, entry: int, end: int, after: Any, cells: int) -> None:
    """Ask for the row AHEAD entries later: of this sample, which ends at `end`, or of the one after it."""
    later = entry + AHEAD
    if later < end:
        ask_for(samples, table, later, cells)
    elif after[0] + later - end < after[1]:
        ask_for(samples, table, after[0] + later - end, cells)


@inner
def sample_after(samples: Any, chosen: Any, row: int, rows: int) -> Any:
    """First entry and end of the next sample of a batch; asks for the ids of the one after that."""
    if row + 2 < rows:
        prefetch(samples.ids, samples.offsets[chosen[row + 2]])
        prefetch(samples.ids, samples.offsets[chosen[row + 2]] + LINE)
    if row + 1 < rows:
        return samples.offsets[chosen[row + 1]], samples.offsets[chosen[row + 1] + 1]
    return np.int64(0), np.int64(0)


@inner
def gather(task: Any, samples: Any, chosen: Any, rows: int, table: Any, floats: Any, elapsed: Any) -> None:
    """The input of the first layer for the samples `chosen[:rows]`."""
    width = task.sizes[0]
    cells = stride(task.rule, task.penalty, task.width)
    numbers = samples.dense.shape[1]
    for row in range(rows):
        sample = chosen[row]
        into = floats[row * width : (row + 1) * width]
        into[:] = np.float32(0)
        entry, end = samples.offsets[sample], samples.offsets[sample + 1]
        after = sample_after(samples, chosen, row, rows)
        if row == 0:
            for e in range(entry, min(entry + AHEAD, end)):
                ask_for(samples, table, e, cells)
        while entry < end:
            stop = slot_end(task.layout, samples, entry, end)
            part = share(task.combiner, samples, entry, stop)
            at = slot_of(task.layout, samples, entry) * task.dim
            target = into[at : at + task.dim]
            for e in range(entry, stop):
                ask_ahead(samples, table, e, end, after, cells)
                add_row(task, table, np.int64(np.uint32(samples.ids[e])), part * value_at(samples, e), target, elapsed)
            entry = stop
        activate(task.lookup_activation, into[: width - numbers])
        for k in range(numbers):
            into[width - numbers + k] = samples.dense[sample, k]


@inner
def add_row(task: Any, table: Any, row: Any, factor: Any, target: Any, elapsed: Any) -> None:
    """Add a row of the table, times a factor, to the input."""
    cells = stride(task.rule, task.penalty, task.width)
    own = table[row * cells : (row + 1) * cells]  # and a loop from 0: else nothing is vectorised
    for c in range(len(target)):  # RACE(stale read): docs/races.md
        target[c] += factor * weight_at(task.penalty, task.rule, own, c, task.width, cells - 1, elapsed)


@inner
def add_wide(task: Any, samples: Any, chosen: Any, rows: int, table: Any, scores: Any, elapsed: Any) -> None:
    """Add the wide part of each sample to its scores, which stand row after row."""
    outputs = task.width - task.dim
    cells = stride(task.rule, task.penalty, task.width)
    for row in range(rows):
        sample = chosen[row]
        for e in range(samples.offsets[sample], samples.offsets[sample + 1]):
            base = np.int64(np.uint32(samples.ids[e])) * cells
            last = base + cells - 1
            value = value_at(samples, e)
            for k in range(outputs):
                cell = base + task.dim + k
                weight = weight_at(task.penalty, task.rule, table, cell, task.width, last, elapsed)
                scores[row * outputs + k] += value * weight


@inner
def scatter(task: Any, samples: Any, chosen: Any, rows: int, table: Any, grads: Any, slopes: Any, step: Any) -> None:
    """Move the rows of all entries against their derivatives, one entry after the other."""
    width, outputs = task.sizes[0], task.sizes[len(task.sizes) - 1]
    cells = stride(task.rule, task.penalty, task.width)
    for row in range(rows):
        sample = chosen[row]
        entry, end = samples.offsets[sample], samples.offsets[sample + 1]
        own = slopes[row * outputs : (row + 1) * outputs]
        while entry < end:
            stop = slot_end(task.layout, samples, entry, end)
            part = share(task.combiner, samples, entry, stop)
            at = row * width + slot_of(task.layout, samples, entry) * task.dim
            grad = grads[at : at + task.dim]
            for e in range(entry, stop):
                ident: Any = np.int64(np.uint32(samples.ids[e]))
                count = begin_row(task.rule, task.penalty, table, ident, task.width, step)
                value = value_at(samples, e)
                cell = table[ident * cells : (ident + 1) * cells]
                factor = value * part
                for c in range(len(grad)):
                    update(task.rule, cell, c, task.width, factor * grad[c], step.rate, count)
                for k in range(task.width - task.dim):
                    update(task.rule, cell, task.dim + k, task.width, value * own[k], step.rate, count)
            entry = stop


@inner
def collect(task: Any, samples: Any, chosen: Any, rows: int, scratch: Any, grads: Any, slopes: Any) -> int:
    """Add up the derivatives in each distinct row, in `scratch`; returns the number of rows."""
    width, outputs = task.sizes[0], task.sizes[len(task.sizes) - 1]
    mask = task.places - 1
    places = scratch.ints[task.batch : task.batch + task.places]  # where a row stands in the list, plus one
    places[:] = 0
    lines = 0
    for row in range(rows):
        sample = chosen[row]
        entry, end = samples.offsets[sample], samples.offsets[sample + 1]
        own = slopes[row * outputs : (row + 1) * outputs]
        while entry < end:
            stop = slot_end(task.layout, samples, entry, end)
            part = share(task.combiner, samples, entry, stop)
            at = row * width + slot_of(task.layout, samples, entry) * task.dim
            grad = grads[at : at + task.dim]
            for e in range(entry, stop):
                ident = samples.ids[e]
                place = np.int64(np.uint32(ident) * np.uint32(2654435761)) & mask
                while places[place] != 0 and scratch.rows[places[place] - 1] != ident:
                    place = (place + 1) & mask
                line = places[place] - 1
                if line < 0:
                    line = lines
                    lines += 1
                    places[place] = lines
                    scratch.rows[line] = ident
                    scratch.grads[line, :] = np.float32(0)
                total = scratch.grads[line]
                value = value_at(samples, e)
                factor = value * part
                for c in range(len(grad)):
                    total[c] += factor * grad[c]
                for k in range(task.width - task.dim):
                    total[task.dim + k] += value * own[k]
            entry = stop
    return lines
