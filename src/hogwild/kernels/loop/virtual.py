"""Workers that are not there: one thread makes the visits of k workers, in the order of a clock that it keeps itself.

A visit reads weights at one moment and writes them at two later ones, half of its rows each (a torn update); what
other workers write between is not in its gradient. Each row has a stamp, the moment of its last write: by these a write
is lost where two come together, and those visits that are looked at find the errors that a trace finds (`trace.py`),
with windows as long as a trace makes them. Workers share cores in turns of a slice. The same state and seed give the
same run, bit for bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import NEXT, ORDER_KEY, ORDER_SHIFT, Floats, Ids, Offsets, Scratch, Step
from hogwild.kernels.compiler.atomics import copy_bytes
from hogwild.kernels.compiler.jit import fresh, in_package, inner, kernel, loop
from hogwild.kernels.compiler.rng import below, draw
from hogwild.kernels.loop.guard import guard
from hogwild.kernels.loop.order import locate
from hogwild.kernels.loop.schedule import elapsed_at, rate_at
from hogwild.kernels.loop.task import apply, gradient
from hogwild.kernels.loop.trace import (
    GRADIENTS,
    LOOKED_AT,
    Found,
    count_found,
    differ,
    distance,
    place_of_row,
)

Times = npt.NDArray[np.float64]

CLAIM, OPEN, READ, CHECK, WRITE, REST, CLOSE = range(7)  # what a worker does next
POSITION, VISIT, LOOKED, MADE, UPDATES_THEN, OVERWRITTEN, DELAY, CLASH = range(8)  # cells of `ints`
JITTER, READING, WRITING, COPYING, OPENED, WRITTEN, REMAINS = range(7)  # cells of `floats`: lengths and moments
NOW, UPDATES, QUEUED, ACTIVE, VISITS, LOST, BUSY = range(7)  # cells of `state`
FIRST_ROW, BYTES, ADDRESS, CELLS_AT, COUNTS = range(5)  # columns of `places`
_UNIT = 1.0 / (1 << 53)
_SPREAD = math.sqrt(12.0)  # of numbers that are spread evenly over their range: range by standard deviation


class Costs(NamedTuple):
    """Seconds of a visit of n rows: gradient[0] + gradient[1] n, and so on. rows: how many are usual.

    fused: share of gradient and apply that both take in one, where a task can do that; copy: of the rows, by a trace.
    """

    gradient: Times
    apply: Times
    copy: Times
    fused: float
    rows: float


class Rules(NamedTuple):
    """How many workers there are, and threads: those that are no workers take cores from them.

    slice: seconds of a turn on a core; last: share of it that the last of the other threads uses. jitter: standard
    deviation of the length of a visit, relative. delay: lengths of a visit between its reading and its writing; below
    0: as costs are. lost: chance that one of two writes at once is lost; below 0: where both are at the same row.
    torn: writes have two halves. every: visits of a worker of which one is looked at; 0: none.
    """

    workers: int
    threads: int
    cores: int
    slice: float
    last: float
    jitter: float
    delay: float
    lost: float
    torn: bool
    every: int


class Virtual(NamedTuple):
    """All that virtual workers have, a line for each, and where the clock stands.

    due: when a thread on a core is next to be seen to: at its `event`, or where its slice `ends`. Of a thread that
    waits for a core `event` is how far off that is. places: a line for each weight array with rows: its first row
    number, bytes a row, address, first cell in `additive`, and whether workers write it in common; wholes: bytes,
    address and first cell likewise. before, after: copies of what a visit writes, with their addresses, `stride` cells
    from row to row, the wholes from cell `whole` on; pending: rows still to be written, the wholes last. dense: cells
    of Scratch.dense.
    """

    costs: Costs
    rules: Rules
    due: Times
    event: Times
    ends: Times
    phase: Offsets
    queue: Offsets
    ints: Offsets
    floats: Times
    state: Times
    random: npt.NDArray[np.uint64]
    opened: npt.NDArray[np.uint64]
    stamps: Times
    owners: Ids
    places: Offsets
    wholes: Offsets
    additive: npt.NDArray[np.bool_]
    before: Floats
    after: Floats
    merged: Floats
    before_at: int
    after_at: int
    merged_at: int
    pending: npt.NDArray[np.int8]
    stride: int
    whole: int
    dense: int
    scratches: Scratch
    spare: Scratch
    counts: Offsets
    delays: Offsets
    sizes: Times


def _run_virtual(task: Any, samples: Any, weights: Any, virtual: Any, span: Any, drain: bool) -> Any:
    """The visits of a span by virtual workers; drain: to the end of the last of them. Returns the new sum of losses."""
    state, rules, all_ = virtual.state, virtual.rules, virtual.scratches
    cursor, loss = span.start, span.loss
    epoch_began = elapsed_at(span.schedule, float(span.before))
    all_.count[:, ORDER_KEY] = virtual.spare.count[ORDER_KEY] = span.order.key
    all_.count[:, ORDER_SHIFT] = virtual.spare.count[ORDER_SHIFT] = span.order.shift
    if state[ACTIVE] == 0:
        begin(virtual)
    while state[ACTIVE] > 0:
        worker = soonest(virtual.due)
        state[NOW] = virtual.due[worker]
        if virtual.event[worker] > state[NOW]:
            end_slice(virtual, worker)
            continue
        scratch = Scratch(
            all_.count[worker], all_.rows[worker], all_.grads[worker], all_.clock[worker], all_.random[worker],
            all_.floats[worker], all_.ints[worker], all_.dense[worker][: virtual.dense],
        )  # fmt: skip
        wait = 0.0
        while wait == 0.0:  # what follows at the same moment is of the same worker
            phase = virtual.phase[worker]
            if phase == CLAIM:
                if cursor == span.stop:
                    if not drain:
                        return loss
                    retire(virtual, worker)
                    break
                virtual.ints[worker, POSITION] = cursor
                virtual.ints[worker, VISIT] = locate(span.order, cursor)
                scratch.clock[0] = np.float32(elapsed_at(span.schedule, float(span.before + cursor)) - epoch_began)
                cursor += 1
                scratch.count[NEXT] = locate(span.order, min(cursor, span.order.samples - 1))
                wait = claim(virtual, worker)
            elif phase == OPEN:
                virtual.opened[worker] = scratch.random[0]
                wait = open_look(virtual, worker)
            elif phase == READ:
                visit = virtual.ints[worker, VISIT]
                loss += np.float64(gradient(task, samples, visit, weights, scratch))
                guard(task, visit, scratch)
                state[VISITS] += 1
                wait = read(virtual, worker, scratch.count[0])
            elif phase == CHECK:
                wait = check(virtual, worker, scratch)
            elif phase == WRITE:
                if virtual.ints[worker, LOOKED]:
                    virtual.spare.random[0] = virtual.opened[worker]
                    virtual.spare.clock[0] = scratch.clock[0]
                    visit = virtual.ints[worker, VISIT]
                    gradient(task, samples, visit, weights, virtual.spare)
                    guard(task, visit, virtual.spare)
                    keep_size(virtual, worker, scratch)
                progress = float(span.before + virtual.ints[worker, POSITION])
                elapsed = np.float32(elapsed_at(span.schedule, progress) - epoch_began)
                step = Step(rate_at(span.schedule, progress), elapsed, span.private, worker, rules.workers)
                save_rows(virtual, worker, scratch)
                apply(task, weights, scratch, step)
                wait = write(virtual, worker, scratch)
            elif phase == REST:
                wait = write_rest(virtual, worker, scratch)
            else:
                wait = close(virtual, worker, scratch)
            state[BUSY] += wait
            virtual.event[worker] = state[NOW] + wait
            virtual.due[worker] = min(virtual.event[worker], virtual.ends[worker])
    return loss


run_virtual = loop(_run_virtual)
run_fresh_virtual = fresh(_run_virtual)


def virtual_runner(task: Any, samples: Any, weights: Any) -> Any:
    """The compiled loop for these types; code for types from outside the package is not cached on disk."""
    return run_virtual if in_package(task, samples, weights) else run_fresh_virtual


# -- The clock: who is on a core, and until when ----------------------------------------------------------------------


@kernel
def soonest(due: Any) -> int:
    """The thread that is to be seen to next; of several the first."""
    least, found = due[0], 0
    for thread in range(1, len(due)):
        if due[thread] < least:
            least, found = due[thread], thread
    return found


@kernel
def chance(random: Any) -> float:
    """A number from 0 to below 1."""
    return np.float64(draw(random) >> np.uint64(11)) * _UNIT


@inner
def begin(virtual: Any) -> None:
    """An epoch begins: all want to claim; as many as there are cores are on one, the others wait."""
    rules, state = virtual.rules, virtual.state
    state[ACTIVE], state[QUEUED] = rules.workers, 0
    for thread in range(rules.threads):
        virtual.phase[thread] = CLAIM
        virtual.event[thread] = 0.0 if thread < rules.workers else math.inf
        if thread < rules.cores:
            resume(virtual, thread)
        else:
            enqueue(virtual, thread)


@inner
def enqueue(virtual: Any, thread: int) -> None:
    """Wait for a core."""
    state, queue = virtual.state, virtual.queue
    virtual.due[thread] = virtual.ends[thread] = math.inf
    queue[int(state[QUEUED])] = thread
    state[QUEUED] += 1


@inner
def resume(virtual: Any, thread: int) -> None:
    """On a core from now on, for a slice of about the usual length."""
    rules, now = virtual.rules, virtual.state[NOW]
    virtual.event[thread] += now
    virtual.ends[thread] = math.inf
    if rules.threads > rules.cores:
        share = rules.last if thread >= rules.workers and thread == rules.threads - 1 else 1.0
        virtual.ends[thread] = now + rules.slice * share * (0.5 + chance(virtual.random))
    virtual.due[thread] = min(virtual.event[thread], virtual.ends[thread])


@inner
def next_thread(virtual: Any) -> None:
    """A core is free: one of those who wait has it, by chance, so that none is always beside the same other."""
    state, queue = virtual.state, virtual.queue
    waiting = int(state[QUEUED])
    if waiting > 0:
        at = below(virtual.random, waiting)
        following = queue[at]
        queue[at] = queue[waiting - 1]
        state[QUEUED] -= 1
        resume(virtual, following)


@inner
def end_slice(virtual: Any, thread: int) -> None:
    """The slice of a thread is over: another one has its core, or it goes on."""
    virtual.event[thread] -= virtual.state[NOW]
    enqueue(virtual, thread)
    next_thread(virtual)


@inner
def retire(virtual: Any, worker: int) -> None:
    """Nothing is left to claim in this epoch."""
    virtual.due[worker] = virtual.event[worker] = virtual.ends[worker] = math.inf
    virtual.state[ACTIVE] -= 1
    next_thread(virtual)


# -- What a worker does next; each returns the seconds until it does the next thing -----------------------------------


@inner
def claim(virtual: Any, worker: int) -> float:
    """A visit begins. How long it will take is known when its rows are: up to then what is usual."""
    rules, costs, ints = virtual.rules, virtual.costs, virtual.ints
    looked = rules.every > 0 and ints[worker, MADE] % rules.every == 0
    ints[worker, LOOKED] = 1 if looked else 0
    ints[worker, MADE] += 1
    jitter = max(0.05, 1.0 + rules.jitter * _SPREAD * (chance(virtual.random) - 0.5))
    virtual.floats[worker, JITTER] = jitter
    virtual.phase[worker] = OPEN if looked else READ
    if rules.delay >= 0.0:
        return 0.0
    usual = (costs.gradient[0] + costs.gradient[1] * costs.rows) * jitter
    if looked:
        return usual + (costs.copy[0] + costs.copy[1] * costs.rows) * jitter
    return 0.5 * usual * costs.fused


@inner
def open_look(virtual: Any, worker: int) -> float:
    """A trace has copied the rows that the visit will read."""
    rules, costs = virtual.rules, virtual.costs
    virtual.ints[worker, UPDATES_THEN] = int(virtual.state[UPDATES])
    virtual.floats[worker, OPENED] = virtual.state[NOW]
    virtual.phase[worker] = READ
    if rules.delay >= 0.0:
        return 0.0
    return 0.5 * (costs.gradient[0] + costs.gradient[1] * costs.rows) * virtual.floats[worker, JITTER]


@inner
def read(virtual: Any, worker: int, rows: int) -> float:
    """The gradient is computed, in the middle of its time."""
    rules, costs, floats = virtual.rules, virtual.costs, virtual.floats
    jitter, looked = floats[worker, JITTER], virtual.ints[worker, LOOKED] == 1
    scale = jitter if looked else jitter * costs.fused
    reading = (costs.gradient[0] + costs.gradient[1] * rows) * scale
    writing = (costs.apply[0] + costs.apply[1] * rows) * scale
    floats[worker, READING], floats[worker, WRITING] = reading, writing
    floats[worker, COPYING] = (costs.copy[0] + costs.copy[1] * rows) * jitter
    virtual.phase[worker] = CHECK if looked else WRITE
    if rules.delay >= 0.0:
        floats[worker, COPYING] = 0.0
        length = reading + writing
        floats[worker, REMAINS] = max(0.0, 1.0 - rules.delay) * length
        return rules.delay * length
    rest = max(0.0, reading - 0.5 * (costs.gradient[0] + costs.gradient[1] * costs.rows) * scale)
    return rest + (floats[worker, COPYING] if looked else first_part(rules) * writing)


@inner
def first_part(rules: Any) -> float:
    """Share of the time of writing after which the first part of a write is there."""
    return 0.25 if rules.torn else 0.5


@inner
def check(virtual: Any, worker: int, scratch: Any) -> float:
    """A trace compares what was read with its copy, and looks how late the gradient is."""
    floats, ints = virtual.floats, virtual.ints
    began, copying = floats[worker, OPENED] - floats[worker, COPYING], floats[worker, COPYING]
    met = was_written(virtual, worker, scratch, began, virtual.state[NOW] - copying)
    ints[worker, OVERWRITTEN] = 1 if met else 0
    ints[worker, DELAY] = int(virtual.state[UPDATES]) - ints[worker, UPDATES_THEN]
    ints[worker, CLASH] = 0
    floats[worker, WRITTEN] = virtual.state[NOW]
    virtual.phase[worker] = WRITE
    if virtual.rules.delay >= 0.0:
        return 0.0
    return copying + first_part(virtual.rules) * floats[worker, WRITING]


@inner
def was_written(virtual: Any, worker: int, scratch: Any, began: float, ended: float) -> bool:
    """Whether another worker has written a row of a visit. The windows of its rows are equally long, one after the
    other, as copies are: the first from `began` to `ended`."""
    count, copying = scratch.count[0], virtual.floats[worker, COPYING]
    for k in range(count):
        row = np.int64(scratch.rows[k])
        late = copying * k / count
        stamp = virtual.stamps[row]
        if virtual.owners[row] != worker and stamp > began + late and stamp <= ended + late:
            return True
    last = len(virtual.stamps) - 1
    stamp = virtual.stamps[last]
    return virtual.owners[last] != worker and stamp > began and stamp <= ended + copying


@inner
def keep_size(virtual: Any, worker: int, scratch: Any) -> None:
    """How far the gradient is from that of this moment."""
    place = virtual.counts[worker, LOOKED_AT] % virtual.sizes.shape[1]
    virtual.sizes[worker, place] = distance(scratch, virtual.spare)


@inner
def close(virtual: Any, worker: int, scratch: Any) -> float:
    """A trace compares what was written with what should have come of it, and counts."""
    floats, ints, copying = virtual.floats, virtual.ints, virtual.floats[worker, COPYING]
    clash = ints[worker, CLASH] == 1 or was_written(
        virtual, worker, scratch, floats[worker, WRITTEN], virtual.state[NOW] - copying
    )
    found = Found(ints[worker, OVERWRITTEN] == 1, ints[worker, DELAY])
    count_found(virtual.counts[worker], virtual.delays[worker], found, clash)
    virtual.phase[worker] = CLAIM
    if virtual.rules.delay >= 0.0:
        return floats[worker, REMAINS]
    return 2.0 * copying + floats[worker, READING] + floats[worker, WRITING]


# -- Writing: `apply` writes all at once; half of it is taken back, and written later ---------------------------------


@inner
def save_rows(virtual: Any, worker: int, scratch: Any) -> None:
    """Copy what will be written."""
    target = virtual.before_at + worker * virtual.before.shape[1] * 4
    for k in range(scratch.count[0]):
        address, size, _ = place(virtual, scratch.rows[k])
        copy_bytes(target + k * virtual.stride * 4, address, size)
    target += virtual.whole * 4
    for a in range(virtual.wholes.shape[0]):
        copy_bytes(target, virtual.wholes[a, 1], virtual.wholes[a, 0])
        target += virtual.wholes[a, 0]


@inner
def place(virtual: Any, row: Any) -> Any:
    """Address and bytes of a row, and the line of its array."""
    row = np.int64(row)
    a = place_of_row(virtual.places, row)
    size = virtual.places[a, BYTES]
    return virtual.places[a, ADDRESS] + (row - virtual.places[a, FIRST_ROW]) * size, size, a


@inner
def write(virtual: Any, worker: int, scratch: Any) -> float:
    """The first half of what `apply` has written stays, unless it is lost; the second is taken back."""
    rules, count = virtual.rules, scratch.count[0]
    torn = rules.torn and rules.delay < 0.0
    half = count - count // 2 if torn else count
    writing = virtual.floats[worker, WRITING]
    start = virtual.state[NOW] - (0.0 if rules.delay >= 0.0 else first_part(rules) * writing)
    virtual.floats[worker, REMAINS] = virtual.floats[worker, REMAINS] if rules.delay >= 0.0 else start
    base = worker * virtual.before.shape[1] * 4
    before, after = virtual.before_at + base, virtual.after_at + base
    for k in range(count):
        virtual.pending[worker, k] = 0
        address, size, a = place(virtual, scratch.rows[k])
        was = before + k * virtual.stride * 4
        if not differ(was, address, size):
            continue
        if k >= half:
            copy_bytes(after + k * virtual.stride * 4, address, size)
            copy_bytes(address, was, size)
            virtual.pending[worker, k] = 1
        elif virtual.places[a, COUNTS] and is_lost(virtual, worker, np.int64(scratch.rows[k]), k, count, start):
            copy_bytes(address, was, size)
    write_wholes(virtual, worker, torn, before + virtual.whole * 4, after + virtual.whole * 4)
    virtual.phase[worker] = REST
    return 0.5 * writing if torn else 0.0


@inner
def is_lost(virtual: Any, worker: int, row: Any, k: int, count: int, start: float) -> bool:
    """Whether the write of a row, the k-th of so many, meets another one and is lost; if not it gets its stamp."""
    rules, floats, state = virtual.rules, virtual.floats, virtual.state
    writing = floats[worker, WRITING]
    instant = rules.delay >= 0.0
    moment = start if instant else start + writing * (k + 0.5) / count
    stamp = virtual.stamps[row]
    if virtual.owners[row] != worker:
        apart = abs(moment - stamp)
        if rules.lost < 0.0:
            gone = apart < writing / count
        else:
            gone = rules.lost > 0.0 and apart < writing and chance(virtual.random) < rules.lost
        if virtual.ints[worker, LOOKED]:
            since = floats[worker, WRITTEN] + floats[worker, COPYING] * k / count
            if (stamp > since and stamp <= moment) or gone:
                virtual.ints[worker, CLASH] = 1
        if gone:
            state[LOST] += 1
            return True
    virtual.stamps[row] = moment
    virtual.owners[row] = worker
    return False


@inner
def write_wholes(virtual: Any, worker: int, torn: bool, before: int, after: int) -> None:
    """The dense tables, all of which every visit writes, are the end of what it writes."""
    last = virtual.pending.shape[1] - 1
    virtual.pending[worker, last] = 0
    changed = False
    for a in range(virtual.wholes.shape[0]):
        size, address = virtual.wholes[a, 0], virtual.wholes[a, 1]
        if torn:
            copy_bytes(after, address, size)
            copy_bytes(address, before, size)
            virtual.pending[worker, last] = 1
        elif differ(before, address, size):
            changed = True
        before += size
        after += size
    if changed and is_lost(virtual, worker, len(virtual.stamps) - 1, 0, 1, virtual.state[NOW]):
        restore_wholes(virtual, worker)


@inner
def restore_wholes(virtual: Any, worker: int) -> None:
    """As if a visit had not written the dense tables."""
    source = virtual.before_at + (worker * virtual.before.shape[1] + virtual.whole) * 4
    for a in range(virtual.wholes.shape[0]):
        copy_bytes(virtual.wholes[a, 1], source, virtual.wholes[a, 0])
        source += virtual.wholes[a, 0]


@inner
def write_rest(virtual: Any, worker: int, scratch: Any) -> float:
    """The second half: what others have written meanwhile stays, and this is added to it."""
    rules, floats, count = virtual.rules, virtual.floats, scratch.count[0]
    torn = rules.torn and rules.delay < 0.0
    if torn:
        for k in range(count):
            if virtual.pending[worker, k]:
                row = np.int64(scratch.rows[k])
                address, size, a = place(virtual, row)
                counts = virtual.places[a, COUNTS] == 1
                if counts and is_lost(virtual, worker, row, k, count, floats[worker, REMAINS]):
                    continue
                merge(virtual, worker, k * virtual.stride, address, size, virtual.places[a, CELLS_AT])
        write_rest_of_wholes(virtual, worker)
    virtual.state[UPDATES] += 1
    virtual.counts[worker, GRADIENTS] += 1
    looked = virtual.ints[worker, LOOKED] == 1
    virtual.phase[worker] = CLOSE if looked else CLAIM
    if rules.delay >= 0.0:
        return 0.0 if looked else floats[worker, REMAINS]
    return first_part(rules) * floats[worker, WRITING] + (floats[worker, COPYING] if looked else 0.0)


@inner
def write_rest_of_wholes(virtual: Any, worker: int) -> None:
    """The dense tables, unless this write of them is lost."""
    last = virtual.pending.shape[1] - 1
    if not virtual.pending[worker, last]:
        return
    if is_lost(virtual, worker, len(virtual.stamps) - 1, 0, 1, virtual.state[NOW]):
        return
    cell = virtual.whole
    for a in range(virtual.wholes.shape[0]):
        merge(virtual, worker, cell, virtual.wholes[a, 1], virtual.wholes[a, 0], virtual.wholes[a, 2])
        cell += virtual.wholes[a, 0] // 4


@inner
def merge(virtual: Any, worker: int, cell: int, address: int, size: int, additive: int) -> None:
    """Write cells that were taken back: as they were to be; where others have changed them since, add the change."""
    base = (worker * virtual.before.shape[1] + cell) * 4
    if not differ(virtual.before_at + base, address, size):
        copy_bytes(address, virtual.after_at + base, size)
        return
    merged, before, after = virtual.merged, virtual.before, virtual.after
    copy_bytes(virtual.merged_at, address, size)
    for c in range(size // 4):
        now = after[worker, cell + c]
        merged[c] = merged[c] + (now - before[worker, cell + c]) if virtual.additive[additive + c] else now
    copy_bytes(address, virtual.merged_at, size)
