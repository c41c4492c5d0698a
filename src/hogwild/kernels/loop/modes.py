"""How workers take turns between `gradient` and `apply`, as tags that select compiled code.

`Free` never waits. The others are defined by waiting, with real atomics, yields and a way out:
`Locked` lets one worker at a time be between read and write (a ticket lock, so nobody starves).
`RoundRobin` computes the gradients of a round of k visits in parallel on weights that nobody writes, then applies
them in the order of the visits. `Minibatch` adds the gradients of a batch up, in the order of the visits, and
applies the sum once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import PAD, SUMMED, Ids, Offsets, Scratch
from hogwild.kernels.compiler.atomics import call_up, fetch_add, store, wait_for
from hogwild.kernels.compiler.jit import choice, inner, kernel
from hogwild.kernels.loop.task import apply

TURN, READY, DONE = 0, PAD, 2 * PAD  # cells of `turns`, each on cache lines of its own


class FreeMode(NamedTuple):
    """No worker ever waits."""


class Locked(NamedTuple):
    """turns[TURN] is the ticket being served, turns[READY] the next ticket to give out."""

    turns: Offsets
    stop: Offsets


class RoundRobin(NamedTuple):
    """turns[TURN] counts visits applied, turns[READY] gradients computed, since the epoch began."""

    turns: Offsets
    stop: Offsets
    worker: int
    workers: int


class Minibatch(NamedTuple):
    """turns[TURN] counts gradients added up, turns[DONE] visits whose batch has been applied."""

    turns: Offsets
    stop: Offsets
    worker: int
    workers: int
    batch: int
    visits: int          # of the epoch, rounded up to whole rounds: the last one applies what is left
    total: Scratch       # the shared sum, written only by the worker whose turn it is
    slots: Ids           # open addressing: where a row of weights stands in `total`, plus one


def make_turns() -> npt.NDArray[np.int64]:
    """The padded cells through which workers take turns."""
    return np.zeros(3 * PAD, np.int64)


@choice
def first_offset(mode: Any) -> Any:
    """Where in a round this worker's visit stands."""


@choice
def round_size(mode: Any) -> Any:
    """Visits in a round: the loop goes on by this many."""


@choice
def enter(mode: Any, position: int) -> Any:
    """Wait until the weights may be read. False: stop."""


@choice
def await_turn(mode: Any, position: int) -> Any:
    """Wait until the weights may be written. False: stop."""


@choice
def deliver(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    """Hand in the gradient."""


@choice
def updates(mode: Any, position: int) -> Any:
    """How many updates of the weights a visit makes."""


@choice
def sums_up(mode: Any) -> Any:
    """Whether what is written is not a gradient, but the sum of several, while nobody else writes."""


@choice
def deliver_rest(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    """A turn without a visit, at the end of an epoch: what is left of a batch is written."""


@choice
def leave(mode: Any, position: int) -> None:
    """Pass the turn on."""


@first_offset.of(FreeMode, Locked)
def _no_offset(mode: Any) -> Any:
    return np.int64(0)


@round_size.of(FreeMode, Locked)
def _no_round(mode: Any) -> Any:
    return np.int64(1)


@first_offset.of(RoundRobin, Minibatch)
def _worker_offset(mode: Any) -> Any:
    return np.int64(mode.worker)


@round_size.of(RoundRobin, Minibatch)
def _worker_round(mode: Any) -> Any:
    return np.int64(mode.workers)


@deliver.of(FreeMode, Locked, RoundRobin)
def _deliver_now(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    apply(task, weights, scratch, step)


@updates.of(FreeMode, Locked, RoundRobin)
def _one_update(mode: Any, position: int) -> Any:
    return 1


@sums_up.of(FreeMode, Locked, RoundRobin)
def _sums_nothing(mode: Any) -> Any:
    return False


# -- free -------------------------------------------------------------------------------------------------------


@enter.of(FreeMode)
def _free_enter(mode: Any, position: int) -> Any:
    return True


@await_turn.of(FreeMode, Locked)
def _no_turn(mode: Any, position: int) -> Any:
    return True


@leave.of(FreeMode)
def _free_leave(mode: Any, position: int) -> None:
    return


# -- locked -----------------------------------------------------------------------------------------------------


@enter.of(Locked)
def _lock(mode: Any, position: int) -> Any:
    ticket = fetch_add(mode.turns, READY, 1)
    return wait_for(mode.turns, TURN, ticket, mode.stop)


@leave.of(Locked)
def _unlock(mode: Any, position: int) -> None:
    fetch_add(mode.turns, TURN, 1)
    call_up(mode.turns, TURN)


# -- round robin ------------------------------------------------------------------------------------------------


@enter.of(RoundRobin)
def _round_begins(mode: Any, position: int) -> Any:
    return wait_for(mode.turns, TURN, position - mode.worker, mode.stop)


@await_turn.of(RoundRobin)
def _round_turn(mode: Any, position: int) -> Any:
    fetch_add(mode.turns, READY, 1)
    call_up(mode.turns, READY)
    all_read = wait_for(mode.turns, READY, position - mode.worker + mode.workers, mode.stop)
    return all_read and wait_for(mode.turns, TURN, position, mode.stop)


@deliver_rest.of(RoundRobin)
def _nothing_left(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    return


@leave.of(RoundRobin)
def _round_passes(mode: Any, position: int) -> None:
    store(mode.turns, TURN, position + 1)
    call_up(mode.turns, TURN)


# -- minibatch --------------------------------------------------------------------------------------------------


@enter.of(Minibatch)
def _batch_begins(mode: Any, position: int) -> Any:
    return wait_for(mode.turns, DONE, position - position % mode.batch, mode.stop)


@await_turn.of(Minibatch)
def _batch_turn(mode: Any, position: int) -> Any:
    return wait_for(mode.turns, TURN, position, mode.stop)


@deliver.of(Minibatch)
def _add_up(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    add_gradient(mode.total, mode.slots, scratch)
    end_batch(mode, position, task, weights, scratch, step)


@updates.of(Minibatch)
def _last_updates(mode: Any, position: int) -> Any:
    return 1 if is_last(mode, position) else 0


@sums_up.of(Minibatch)
def _sums_batches(mode: Any) -> Any:
    return True


@deliver_rest.of(Minibatch)
def _rest_of_batch(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    end_batch(mode, position, task, weights, scratch, step)


@choice
def end_batch(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    """Where a batch ends, write its sum, unless that is of no gradient at all."""


@end_batch.of(Minibatch)
def _end_batch(mode: Any, position: int, task: Any, weights: Any, scratch: Any, step: Any) -> None:
    total = mode.total
    if not is_last(mode, position) or total.count[SUMMED] == 0:
        return
    total.clock[0] = scratch.clock[0]
    apply(task, weights, total, step)
    clear_sum(total, mode.slots)


@inner
def is_last(mode: Any, position: int) -> bool:
    """Whether a batch ends with this visit."""
    return (position + 1) % mode.batch == 0 or position + 1 == mode.visits


@leave.of(Minibatch)
def _batch_passes(mode: Any, position: int) -> None:
    if is_last(mode, position):
        store(mode.turns, DONE, position + 1)
        call_up(mode.turns, DONE)
    store(mode.turns, TURN, position + 1)
    call_up(mode.turns, TURN)


@kernel
def add_gradient(total: Any, slots: Any, scratch: Any) -> None:
    """Add the gradient in scratch to `total`: rows that are there already are summed, others appended."""
    total.count[SUMMED] += 1
    for c in range(len(scratch.dense)):
        total.dense[c] += scratch.dense[c]
    mask = len(slots) - 1
    for k in range(scratch.count[0]):
        row = scratch.rows[k]
        slot = _slot(slots, total, row, mask)
        place = slots[slot] - 1
        if place < 0:
            place = np.int32(total.count[0])
            total.count[0] += 1
            slots[slot] = place + 1
            total.rows[place] = row
            total.grads[place, :] = np.float32(0)
        for c in range(scratch.grads.shape[1]):
            total.grads[place, c] += scratch.grads[k, c]


@kernel
def clear_sum(total: Any, slots: Any) -> None:
    """Empty `total` for the next batch."""
    slots[:] = 0
    total.dense[:] = np.float32(0)
    total.count[0] = total.count[SUMMED] = 0


@kernel
def _slot(slots: Any, total: Any, row: int, mask: int) -> int:
    """The slot of a row, or the free one where it belongs."""
    slot = np.int64(np.uint32(row) * np.uint32(2654435761)) & mask
    while slots[slot] != 0 and total.rows[slots[slot] - 1] != row:
        slot = (slot + 1) & mask
    return slot


