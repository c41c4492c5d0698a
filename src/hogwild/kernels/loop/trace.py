"""Counting and sizing gradient errors while workers overwrite each other.

Every update of the weights (one a gradient; in mode `minibatch` one a batch) gets a number from one atomic counter.
`written[row]` holds the number and the worker of the last write of a row, `writing[row]` the worker that writes it now.
The dense tables of a program with Room.dense, which every visit reads and writes, have one entry together: the last.
So, for one visit:

* read-overwrite: a row that the gradient read carries a number later than the visit's beginning, from another worker;
* write-overwrite: another worker wrote the row between the beginning and the end of this worker's writing it;
* delay: how many gradients others applied between this visit's beginning and its own application.

On every n-th visit the rows that were read are copied to a private snapshot, the gradient is computed again there,
and the distance of the gradient that is used from it is recorded.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import ORDER_KEY, ORDER_SHIFT, Offsets, Scratch
from hogwild.kernels.compiler.atomics import copy_bytes, exchange, fetch_add, load, store
from hogwild.kernels.compiler.jit import choice, fresh, kernel
from hogwild.kernels.loop.task import gradient

WORKERS = 1 << 16                      # `written` packs number * WORKERS + worker + 1
PRIVATE = -1                           # in `written`: no other worker ever writes this row
GRADIENTS, ERRORS, READ_OVER, WRITE_OVER, DELAY_SUM, DELAY_MAX, SIZED = range(7)   # cells of `counts`
EXACT = 256                            # delays below this have a bucket of their own
STEPS = 32                             # buckets for each doubling beyond
BUCKETS = EXACT + STEPS * 32
KEPT = 4096                            # sizes kept a worker and epoch, the last ones


class Untraced(NamedTuple):
    """No trace: nothing of it is in the compiled code."""


class Traced(NamedTuple):
    """clock, written, writing: shared; the rest is one worker's. places: a line for each weight array with rows: its
    first row number, bytes a row, its address and that of its private snapshot; wholes: a line for each that is read as
    a whole: its bytes and both addresses."""

    clock: Offsets
    written: Offsets
    writing: Offsets
    counts: Offsets
    delays: Offsets
    sizes: npt.NDArray[np.float64]
    places: npt.NDArray[np.int64]
    wholes: npt.NDArray[np.int64]
    worker: int
    every: int
    snapshot: Any
    spare: Scratch


class Opened(NamedTuple):
    """What was noted when a visit began."""

    number: int
    random: np.uint64


@choice
def open_visit(probe: Any, scratch: Any) -> Any:
    """Note the time before anything is read."""


@choice
def measure(probe: Any, opened: Any, task: Any, samples: Any, visit: Any, scratch: Any) -> None:
    """Now and then, before a gradient is handed in: how wrong it is by now."""


@choice
def begin_writing(probe: Any, scratch: Any) -> Any:
    """Mark the rows that are about to be written. True if another worker is at one of them."""


@choice
def check_reads(probe: Any, opened: Any, scratch: Any) -> Any:
    """Whether another worker has written what was read. After marking: so no write falls between the two."""


@choice
def end_writing(probe: Any, scratch: Any) -> Any:
    """Stamp the rows that were written. True if another worker has begun to write one of them meanwhile."""


@choice
def count_gradient(probe: Any, read: Any, clash: Any) -> None:
    """A gradient has been handed in, with these errors."""


@open_visit.of(Untraced)
def _nothing_noted(probe: Any, scratch: Any) -> Any:
    return Opened(0, np.uint64(0))


@measure.of(Untraced)
def _nothing_measured(probe: Any, opened: Any, task: Any, samples: Any, visit: Any, scratch: Any) -> None:
    return


@begin_writing.of(Untraced)
@end_writing.of(Untraced)
def _nothing_marked(probe: Any, scratch: Any) -> Any:
    return False


@check_reads.of(Untraced)
def _nothing_checked(probe: Any, opened: Any, scratch: Any) -> Any:
    return False


@count_gradient.of(Untraced)
def _nothing_counted(probe: Any, read: Any, clash: Any) -> None:
    return


@open_visit.of(Traced)
def _note(probe: Any, scratch: Any) -> Any:
    return Opened(load(probe.clock, 0), scratch.random[0])


@measure.of(Traced)
def _measure_some(probe: Any, opened: Any, task: Any, samples: Any, visit: Any, scratch: Any) -> None:
    if probe.counts[GRADIENTS] % probe.every == 0:
        size_error(probe, opened, task, samples, visit, scratch)


@begin_writing.of(Traced)
def _mark(probe: Any, scratch: Any) -> Any:
    clash = False
    for k in range(scratch.count[0]):
        clash |= mark_row(probe.written, probe.writing, np.int64(scratch.rows[k]), probe.worker)
    if len(scratch.dense) > 0:
        clash |= mark_row(probe.written, probe.writing, len(probe.written) - 1, probe.worker)
    return clash


@kernel
def mark_row(written: Any, writing: Any, row: Any, worker: int) -> bool:
    """Mark one row. True if another worker is at it."""
    if written[row] == PRIVATE:
        return False
    before = exchange(writing, row, worker + 1)
    return before != 0 and before != worker + 1


@check_reads.of(Traced)
def _check_reads(probe: Any, opened: Any, scratch: Any) -> Any:
    delay = load(probe.clock, 0) - opened.number
    probe.counts[DELAY_SUM] += delay
    probe.counts[DELAY_MAX] = max(probe.counts[DELAY_MAX], delay)
    probe.delays[bucket_of(delay)] += 1
    overwritten = False
    for k in range(scratch.count[0]):
        overwritten |= is_newer(probe.written, np.int64(scratch.rows[k]), probe.worker, opened.number)
    if len(scratch.dense) > 0:
        overwritten |= is_newer(probe.written, len(probe.written) - 1, probe.worker, opened.number)
    return overwritten


@kernel
def is_newer(written: Any, row: Any, worker: int, number: int) -> bool:
    """Whether another worker has written a row after the write of this number."""
    stamp = load(written, row)
    return stamp > 0 and stamp % WORKERS != worker + 1 and stamp // WORKERS > number


@end_writing.of(Traced)
def _stamp(probe: Any, scratch: Any) -> Any:
    stamp = (fetch_add(probe.clock, 0, 1) + 1) * WORKERS + probe.worker + 1
    clash = False
    for k in range(scratch.count[0]):
        lost = stamp_row(probe.written, probe.writing, np.int64(scratch.rows[k]), stamp)
        clash |= lost and not repeated(scratch, k)
    if len(scratch.dense) > 0:
        clash |= stamp_row(probe.written, probe.writing, len(probe.written) - 1, stamp)
    return clash


@kernel
def stamp_row(written: Any, writing: Any, row: Any, stamp: int) -> bool:
    """Stamp one row. True if its mark is no longer this worker's."""
    if written[row] == PRIVATE:
        return False
    writer = exchange(writing, row, 0)
    store(written, row, stamp)
    return writer != stamp % WORKERS


@count_gradient.of(Traced)
def _count(probe: Any, read: Any, clash: Any) -> None:
    probe.counts[GRADIENTS] += 1
    probe.counts[READ_OVER] += 1 if read else 0
    probe.counts[WRITE_OVER] += 1 if clash else 0
    probe.counts[ERRORS] += 1 if read or clash else 0


@kernel
def repeated(scratch: Any, k: int) -> bool:
    """Whether row k of the list stood earlier in it: then this worker itself has ended the writing of it."""
    for j in range(k):
        if scratch.rows[j] == scratch.rows[k]:
            return True
    return False


@kernel
def bucket_of(delay: int) -> int:
    """Bucket of a delay: exact below EXACT, then STEPS buckets for each doubling."""
    if delay < EXACT:
        return max(delay, 0)
    doublings = int(math.log2(delay / EXACT))
    inside = (delay - (EXACT << doublings)) * STEPS // (EXACT << doublings)
    return min(EXACT + doublings * STEPS + inside, BUCKETS - 1)


@fresh
def size_error(probe: Any, opened: Any, task: Any, samples: Any, visit: Any, scratch: Any) -> None:
    """Record |s - g| / |g| of the gradient s in scratch against g, computed on a snapshot of the rows read."""
    last = probe.places.shape[0] - 1
    for k in range(scratch.count[0]):
        row = np.int64(scratch.rows[k])
        a = 0
        while a < last and row >= probe.places[a + 1, 0]:
            a += 1
        shift = (row - probe.places[a, 0]) * probe.places[a, 1]
        copy_bytes(probe.places[a, 3] + shift, probe.places[a, 2] + shift, probe.places[a, 1])
    for a in range(probe.wholes.shape[0]):
        copy_bytes(probe.wholes[a, 2], probe.wholes[a, 1], probe.wholes[a, 0])
    probe.spare.random[0] = opened.random
    probe.spare.clock[0] = scratch.clock[0]
    probe.spare.count[ORDER_KEY] = scratch.count[ORDER_KEY]
    probe.spare.count[ORDER_SHIFT] = scratch.count[ORDER_SHIFT]
    gradient(task, samples, visit, probe.snapshot, probe.spare)
    apart = 0.0
    norm = 0.0
    for k in range(scratch.count[0]):
        for c in range(scratch.grads.shape[1]):
            true = np.float64(probe.spare.grads[k, c])
            apart += (scratch.grads[k, c] - true) ** 2
            norm += true**2
    for c in range(len(scratch.dense)):
        true = np.float64(probe.spare.dense[c])
        apart += (scratch.dense[c] - true) ** 2
        norm += true**2
    size = math.sqrt(apart / norm) if norm > 0.0 else (0.0 if apart == 0.0 else math.inf)
    probe.sizes[probe.counts[SIZED] % len(probe.sizes)] = size
    probe.counts[SIZED] += 1
