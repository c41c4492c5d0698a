"""Counting and sizing gradient errors while workers overwrite each other, on some of the visits.

A visit that is looked at compares the weights themselves, bit for bit: the other workers mark nothing, and run as if
there were no trace. The gradient is computed once to know its rows; these are copied; then, as in any visit,

* the gradient is computed; read-overwrite: a row that it reads has changed meanwhile;
* it is applied; write-overwrite: a row is not what the same update makes of a copy from just before;
* delay: how many updates others made between its beginning and its application. Every worker counts its own, on a cache
  line of its own. A gradient that is late, with nothing overwritten, is delayed and nothing else.

On that copy the gradient is computed again, too: the distance of the gradient that is used from it is recorded.
The dense tables of a program with Room.dense, which every visit reads and writes, are copied as a whole.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import ORDER_KEY, ORDER_SHIFT, PAD, Floats, Offsets, Scratch
from hogwild.kernels.compiler.atomics import copy_bytes, load, publish
from hogwild.kernels.compiler.bytes import load_half, load_word
from hogwild.kernels.compiler.jit import choice, inner, kernel
from hogwild.kernels.loop.guard import guard
from hogwild.kernels.loop.task import apply, gradient

# Cells of `counts`: visits, those that were looked at, and what was found of these.
GRADIENTS, LOOKED_AT, ERRORS, READ_OVER, WRITE_OVER, DELAYED, DELAY_SUM, DELAY_MAX = range(8)
EXACT = 256                            # delays below this have a bucket of their own
STEPS = 32                             # buckets for each doubling beyond
BUCKETS = EXACT + STEPS * 32
KEPT = 4096                            # sizes kept a worker and epoch, the last ones


class Untraced(NamedTuple):
    """No trace: nothing of it is in the compiled code."""


class Passing(NamedTuple):
    """A trace that does not look at this visit: made_at is the address where the worker counts its updates."""

    made_at: int


class Traced(NamedTuple):
    """made: updates of each worker, PAD cells apart; the rest is one worker's, made_at the address of its own updates.

    places: a line for each weight array with rows: its first row number, bytes a row, its address and that of its
    private snapshot; wholes: a line for each that is read as a whole: its bytes and both addresses. before, after: the
    addresses of copies of what a visit reads and writes, one listed row after the other, then the wholes; stride: bytes
    from one row to the next.
    """

    made: Offsets
    counts: Offsets
    delays: Offsets
    sizes: npt.NDArray[np.float64]
    places: npt.NDArray[np.int64]
    wholes: npt.NDArray[np.int64]
    made_at: int
    before: int
    after: int
    stride: int
    worker: int
    every: int
    snapshot: Any
    spare: Scratch
    copies: Floats                     # the memory of `before` and `after`


class Opened(NamedTuple):
    """What was noted when a visit began."""

    others: int
    random: np.uint64


class Found(NamedTuple):
    """What was found of a visit before it was applied."""

    read: bool
    delay: int


@choice
def open_visit(probe: Any, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    """Before anything is read: a copy of what the visit will read."""


@choice
def end_reading(probe: Any, opened: Any) -> Any:
    """The gradient is computed. Whether another worker has written what was read meanwhile."""


@choice
def begin_writing(probe: Any, opened: Any, read: Any, scratch: Any) -> Any:
    """The gradient is about to be applied: how late it is, and a copy of what it will write."""


@choice
def end_writing(probe: Any, opened: Any, scratch: Any) -> None:
    """The gradient has been applied: a copy of what came of it."""


@choice
def count_update(probe: Any, updates: Any) -> None:
    """A visit has been made, and with it so many updates of the weights."""


@choice
def settle(probe: Any, opened: Any, found: Any, exclusive: Any, visit: Any, rest: Any) -> None:
    """After a visit: compare, compute the gradient again, count. exclusive: nobody else could write meanwhile."""


@open_visit.of(Untraced, Passing)
def _nothing_opened(probe: Any, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    return Opened(0, np.uint64(0))


@end_reading.of(Untraced, Passing)
def _nothing_read(probe: Any, opened: Any) -> Any:
    return False


@begin_writing.of(Untraced, Passing)
def _nothing_found(probe: Any, opened: Any, read: Any, scratch: Any) -> Any:
    return Found(False, 0)


@end_writing.of(Untraced, Passing)
def _nothing_copied(probe: Any, opened: Any, scratch: Any) -> None:
    return


@count_update.of(Untraced)
def _nothing_counted(probe: Any, updates: Any) -> None:
    return


@settle.of(Untraced, Passing)
def _nothing_settled(probe: Any, opened: Any, found: Any, exclusive: Any, visit: Any, rest: Any) -> None:
    return


@open_visit.of(Traced)
def _open(probe: Any, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    repeat_gradient(probe, scratch.random[0], task, samples, visit, weights, scratch)
    copy_rows(probe, probe.before, probe.spare)
    return Opened(made_by_others(probe.made, probe.worker), scratch.random[0])


@end_reading.of(Traced)
def _end_reading(probe: Any, opened: Any) -> Any:
    return has_changed(probe, probe.before, probe.spare, 2)


@begin_writing.of(Traced)
def _begin_writing(probe: Any, opened: Any, read: Any, scratch: Any) -> Any:
    delay = made_by_others(probe.made, probe.worker) - opened.others
    copy_rows(probe, probe.before, scratch)
    return Found(read, delay)


@end_writing.of(Traced)
def _end_writing(probe: Any, opened: Any, scratch: Any) -> None:
    copy_rows(probe, probe.after, scratch)


@count_update.of(Traced)
def _count_update(probe: Any, updates: Any) -> None:
    probe.counts[GRADIENTS] += 1
    publish(probe.made_at, np.int64(load_word(probe.made_at)) + updates)


@count_update.of(Passing)
def _count_passing(probe: Any, updates: Any) -> None:
    publish(probe.made_at, np.int64(load_word(probe.made_at)) + updates)


@settle.of(Traced)
def _settle(probe: Any, opened: Any, found: Any, exclusive: Any, visit: Any, rest: Any) -> None:
    task, samples, scratch, step = rest
    fill_snapshot(probe, probe.before, scratch)
    repeat_gradient(probe, opened.random, task, samples, visit, probe.snapshot, scratch)
    probe.sizes[probe.counts[LOOKED_AT] % len(probe.sizes)] = distance(scratch, probe.spare)
    clash = False
    if not exclusive:
        apply(task, probe.snapshot, scratch, step)
        clash = has_changed(probe, probe.after, scratch, 3)
    count_found(probe.counts, probe.delays, found, clash)


@kernel
def count_found(counts: Any, delays: Any, found: Any, clash: bool) -> None:
    """One more visit that was looked at."""
    wrong = found.read or clash
    counts[LOOKED_AT] += 1
    counts[READ_OVER] += 1 if found.read else 0
    counts[WRITE_OVER] += 1 if clash else 0
    counts[ERRORS] += 1 if wrong else 0
    counts[DELAYED] += 1 if found.delay > 0 and not wrong else 0
    counts[DELAY_SUM] += found.delay
    counts[DELAY_MAX] = max(counts[DELAY_MAX], found.delay)
    delays[bucket_of(found.delay)] += 1


@kernel
def made_by_others(made: Any, worker: int) -> int:
    """Updates that all other workers have made."""
    total = 0
    for other in range(len(made) // PAD):
        if other != worker:
            total += load(made, other * PAD)
    return total


@kernel
def bucket_of(delay: int) -> int:
    """Bucket of a delay: exact below EXACT, then STEPS buckets for each doubling."""
    if delay < EXACT:
        return max(delay, 0)
    doublings = int(math.log2(delay / EXACT))
    inside = (delay - (EXACT << doublings)) * STEPS // (EXACT << doublings)
    return min(EXACT + doublings * STEPS + inside, BUCKETS - 1)


@choice
def repeat_gradient(
    probe: Any, random: Any, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any
) -> None:
    """The gradient of a visit in the spare scratch, with the same random numbers."""


@repeat_gradient.of(Traced)
def _repeat_gradient(
    probe: Any, random: Any, task: Any, samples: Any, visit: Any, weights: Any, scratch: Any
) -> None:
    probe.spare.random[0] = random
    probe.spare.clock[0] = scratch.clock[0]
    probe.spare.count[ORDER_KEY] = scratch.count[ORDER_KEY]
    probe.spare.count[ORDER_SHIFT] = scratch.count[ORDER_SHIFT]
    gradient(task, samples, visit, weights, probe.spare)
    guard(task, visit, probe.spare)


# -- Rows by their numbers, copied and compared -----------------------------------------------------------------------


@kernel
def place_of_row(places: Any, row: Any) -> int:
    """The line of the array that a row is in."""
    a = 0
    while a < places.shape[0] - 1 and row >= places[a + 1, 0]:
        a += 1
    return a


@inner
def copy_rows(probe: Any, target: int, scratch: Any) -> None:
    """Copy the rows that are listed in scratch, and the wholes, one after the other."""
    for k in range(scratch.count[0]):
        row = np.int64(scratch.rows[k])
        a = place_of_row(probe.places, row)
        size = probe.places[a, 1]
        copy_bytes(target + k * probe.stride, probe.places[a, 2] + (row - probe.places[a, 0]) * size, size)
    target += (len(scratch.rows) - PAD) * probe.stride
    for a in range(probe.wholes.shape[0]):
        copy_bytes(target, probe.wholes[a, 1], probe.wholes[a, 0])
        target += probe.wholes[a, 0]


@inner
def fill_snapshot(probe: Any, copied: int, scratch: Any) -> None:
    """Bring copied rows and wholes to their places in the snapshot: not in the middle of a visit, as pages of it that
    are touched for the first time take longer than all else."""
    for k in range(scratch.count[0]):
        row = np.int64(scratch.rows[k])
        a = place_of_row(probe.places, row)
        size = probe.places[a, 1]
        copy_bytes(probe.places[a, 3] + (row - probe.places[a, 0]) * size, copied + k * probe.stride, size)
    copied += (len(scratch.rows) - PAD) * probe.stride
    for a in range(probe.wholes.shape[0]):
        copy_bytes(probe.wholes[a, 2], copied, probe.wholes[a, 0])
        copied += probe.wholes[a, 0]


@inner
def has_changed(probe: Any, copied: int, scratch: Any, column: int) -> bool:
    """Whether any listed row, or a whole, differs from its copy; in the weights (column 2) or in the snapshot (3)."""
    for k in range(scratch.count[0]):
        row = np.int64(scratch.rows[k])
        a = place_of_row(probe.places, row)
        size = probe.places[a, 1]
        if differ(copied + k * probe.stride, probe.places[a, column] + (row - probe.places[a, 0]) * size, size):
            return True
    copied += (len(scratch.rows) - PAD) * probe.stride
    for a in range(probe.wholes.shape[0]):
        if differ(copied, probe.wholes[a, column - 1], probe.wholes[a, 0]):
            return True
        copied += probe.wholes[a, 0]
    return False


@kernel
def differ(one: int, other: int, size: int) -> bool:
    """Whether the cells at two addresses differ in any bit."""
    apart = 0
    for shift in range(0, size, 4):
        apart |= load_half(one + shift) ^ load_half(other + shift)
    return apart != 0


@kernel
def distance(scratch: Any, true: Any) -> float:
    """|s - g| / |g| of the gradient s in scratch from the true one."""
    apart = 0.0
    norm = 0.0
    for k in range(scratch.count[0]):
        for c in range(scratch.grads.shape[1]):
            g = np.float64(true.grads[k, c])
            apart += (scratch.grads[k, c] - g) ** 2
            norm += g**2
    for c in range(len(scratch.dense)):
        g = np.float64(true.dense[c])
        apart += (scratch.dense[c] - g) ** 2
        norm += g**2
    if norm > 0.0:
        return math.sqrt(apart / norm)
    return 0.0 if apart == 0.0 else math.inf
