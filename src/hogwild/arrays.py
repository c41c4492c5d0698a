"""The bundles of arrays that cross into compiled code. Integers and floats only: no strings, no objects.

`samples` (Rows, BinaryRows, DenseRows, SlotRows, Tokens, Chains or a program's own) are read-only while training runs.
`weights` are NamedTuples of float32 arrays that all workers read and write with no lock.
`Scratch` belongs to one worker.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.errors import InputError

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Slots = npt.NDArray[np.uint16]
Keys = npt.NDArray[np.uint64]

CELL = 4          # bytes of one weight
NEXT, ORDER_KEY, ORDER_SHIFT, SUMMED, TICK, PHASE_TICKS = range(1, 7)  # cells of Scratch.count after the first
ROOM_ROWS, ALL_ROWS, FAULT, FAULT_COUNT, FAULT_ROW = range(11, 16)  # its last: limits of a user's task, what broke them
PAD = 16          # 8-byte slots in 128 bytes: private things of two workers never share a cache line pair
_LARGEST = float(np.finfo(np.float32).max)


class Rows(NamedTuple):
    """Sparse samples: sample i has features ids[offsets[i]:offsets[i + 1]] with the values beside them."""

    offsets: Offsets
    ids: Ids
    values: Floats
    targets: Floats
    importance: Floats


class BinaryRows(NamedTuple):
    """Sparse samples whose values are all 1: there is no array of values to read."""

    offsets: Offsets
    ids: Ids
    targets: Floats
    importance: Floats


class DenseRows(NamedTuple):
    """Dense samples: row i of the matrix."""

    matrix: Floats
    targets: Floats
    importance: Floats


class SlotRows(NamedTuple):
    """Samples of several slots: entry k of `ids` belongs to slot slots[k], in rising order of slots within a sample;
    row i of the matrix `dense` holds the numbers beside them. All values are 1."""

    offsets: Offsets
    ids: Ids
    slots: Slots
    dense: Floats
    targets: Floats
    importance: Floats


class ValuedSlotRows(NamedTuple):
    """As SlotRows, where each entry has a value."""

    offsets: Offsets
    ids: Ids
    slots: Slots
    dense: Floats
    targets: Floats
    importance: Floats
    values: Floats


class Ratings(NamedTuple):
    """What users think of items: user users[k] gave items[k] the rating values[k]; 1 where there are no ratings.
    Ids are ranks of frequency (0 the most frequent); -1 is one that training has not seen."""

    users: Ids
    items: Ids
    values: Floats


class Interactions(NamedTuple):
    """What users have: user users[k] has items[k]. seen[offsets[u]:offsets[u + 1]] are all items of user u in rising
    order, each once."""

    users: Ids
    items: Ids
    offsets: Offsets
    seen: Ids


class Tokens(NamedTuple):
    """Running text: word ids, which are ranks of frequency (0 the most frequent); -1 ends a sentence."""

    ids: Ids


class Chains(NamedTuple):
    """Tagged sentences: sentence s is the tokens offsets[s]:offsets[s + 1]; token t has the features
    ids[starts[t]:starts[t + 1]], in rising order, which are ranks of frequency (0 the most frequent), and the tag
    tags[t]; -1 is a tag that training has not seen."""

    offsets: Offsets
    starts: Offsets
    ids: Ids
    tags: Ids


class ValuedChains(NamedTuple):
    """As Chains, where each feature of a token has a value."""

    offsets: Offsets
    starts: Offsets
    ids: Ids
    tags: Ids
    values: Floats


AnyRows = Rows | BinaryRows | DenseRows | SlotRows | ValuedSlotRows
AnyChains = Chains | ValuedChains


class Scratch(NamedTuple):
    """What one worker has for itself. `gradient` fills it, `apply` reads it.

    count[0] is the number of touched rows of weights; rows[:count[0]] are their numbers and
    grads[:count[0]] their gradients. Rows of the second array of `weights` are numbered after those
    of the first, and so on, so that one number names one row of the whole model.
    dense (which begins at a cache line) is the gradient of all dense tables, flat, in the order of the weights: every
    visit fills the whole of it. Where there is one (Room.dense) the dense tables have no row numbers.
    The loop sets count[NEXT], the sample of the next visit, which a task may prefetch; count[ORDER_KEY] and
    count[ORDER_SHIFT], those of the epoch's order, by which `row_at` finds the rows of a batch; and, in a sum of
    several gradients, count[SUMMED], their number. Where phases are timed count[TICK] is the processor's counter at the
    last mark, and the ticks of each phase stand from count[PHASE_TICKS] on: see `kernels/compiler/clock.py`. For tasks
    from outside the package count[ROOM_ROWS] is the most that count[0] may be, count[ALL_ROWS] the number of rows that
    have numbers, and count[FAULT] one more than a visit that broke these, with its count[0] and the row beside
    it: see `guard`.
    clock[0] is the time of lazy regularization, set by the loop; random[0] the random state;
    floats (which begin at a cache line) and ints are for whatever else the task needs.
    """

    count: Offsets  # type: ignore[assignment]  # not the method of tuples
    rows: Ids
    grads: Floats
    clock: Floats
    random: npt.NDArray[np.uint64]
    floats: Floats
    ints: Offsets
    dense: Floats


class Room(NamedTuple):
    """How much scratch one visit of a program needs at the most: rows of `width` cells; cells of all dense tables;
    floats and ints for whatever else."""

    rows: int
    width: int = 1
    dense: int = 0
    floats: int = 0
    ints: int = 0


class DenseParameters(NamedTuple):
    """All dense weights of a model, one after the other, and what their update rule remembers: one type for all rules.

    values: the weights, flat; first, second: a number for each of them; steps: one cell that counts steps. Empty where
    the rule remembers nothing of the kind. A model with other weights too has these four fields among its own.
    `make_dense` makes them, `step_dense` moves them.
    """

    values: Floats
    first: Floats
    second: Floats
    steps: Floats


def has_dense(weights: Any) -> bool:
    """Whether weights have the fields of DenseParameters."""
    return set(DenseParameters._fields) <= set(weights._fields)


class Step(NamedTuple):
    """What `apply` is told: the learning rate of this visit, and what lazy regularization needs.

    elapsed: the sum of learning rates since the epoch began; private: how many leading rows of a ranked
    array this worker has a copy of. Of these each has one worker of all that pays its penalty: see `owes`.
    """

    rate: np.float32
    elapsed: np.float32
    private: int
    worker: int
    workers: int


@dataclass(frozen=True)
class Table:
    """How the rows of one weight array are stored and shared.

    kind: `ranked` (row numbers are ranks of feature frequency, so that hot rows are a prefix), `dense`
    (most visits touch every row; with Room.dense, all do) or `scalar` (a few cells that every visit writes: a private
    delta under every sharing, so that no cache line is fought over).
    additive: for each cell of a row, whether merging adds the differences of workers (weights, sums of
    squares) or whether each worker keeps its own (moving averages, counts, stamps).
    width: leading cells of a row that are weights, by default all; what comes after them is an update rule's memory.
    """

    rows: int
    cells: int
    kind: Literal["ranked", "dense", "scalar"] = "dense"
    additive: tuple[bool, ...] = field(default=())
    width: int | None = None

    def mask(self) -> npt.NDArray[np.bool_]:
        """One flag a cell of a row."""
        return np.array(self.additive or (True,) * self.cells, dtype=np.bool_)


def split_tables(tables: Mapping[str, Table], room: Room) -> tuple[dict[str, Table], dict[str, Table]]:
    """The tables whose rows have numbers, and those that every visit touches as a whole, by way of Scratch.dense."""
    whole = {name: table for name, table in tables.items() if room.dense and table.kind == "dense"}
    return {name: table for name, table in tables.items() if name not in whole}, whole


def make_scratch(room: Room, seed: np.uint64) -> Scratch:
    """Allocate the scratch of one worker."""
    random = np.zeros(PAD, dtype=np.uint64)
    random[0] = seed
    return Scratch(
        count=np.zeros(PAD, dtype=np.int64),
        rows=np.zeros(room.rows + PAD, dtype=np.int32),
        grads=np.zeros((room.rows + PAD, room.width), dtype=np.float32),
        clock=np.zeros(2 * PAD, dtype=np.float32),
        random=random,
        floats=aligned_floats(room.floats + 2 * PAD),
        ints=np.zeros(room.ints + PAD, dtype=np.int64),
        dense=aligned_floats(room.dense + 2 * PAD)[: room.dense],
    )


def limited_scratch(room: Room, tables: Mapping[str, Table], seed: np.uint64) -> Scratch:
    """As `make_scratch`, with the limits of a user's task in it."""
    scratch = make_scratch(room, seed)
    scratch.count[ROOM_ROWS], scratch.count[ALL_ROWS] = room.rows, numbered_rows(tables, room)
    return scratch


def numbered_rows(tables: Mapping[str, Table], room: Room) -> int:
    """How many rows have numbers."""
    return sum(table.rows for table in split_tables(tables, room)[0].values())


def aligned_floats(count: int) -> Floats:
    """Zeros that begin at a cache line."""
    line = 64 // CELL
    room = np.zeros(count + line, dtype=np.float32)
    first = -(room.ctypes.data // CELL) % line
    return room[first : first + count]


def check_rows(samples: AnyRows, features: int) -> None:
    """Check at the door what compiled code will trust: lengths, bounds and finite numbers."""
    rows = len(samples.targets)
    if len(samples.importance) != rows:
        raise InputError(f"there are {rows} targets but {len(samples.importance)} sample weights; give one a row.")
    if isinstance(samples, DenseRows):
        if samples.matrix.shape != (rows, features):
            raise InputError(f"the matrix is {samples.matrix.shape}, expected ({rows}, {features}).")
        _check_finite(samples.matrix, "features")
    else:
        offsets = samples.offsets
        fits = len(offsets) == rows + 1 and offsets[0] == 0 and offsets[-1] == len(samples.ids)
        if not fits or (np.diff(offsets) < 0).any():
            raise InputError(f"row offsets do not fit {rows} rows and {len(samples.ids)} ids; the data is damaged.")
        if len(samples.ids) and (int(samples.ids.min()) < 0 or int(samples.ids.max()) >= features):
            raise InputError(f"a feature id lies outside 0 … {features - 1}; raise `features` or check the ids.")
        if isinstance(samples, SlotRows | ValuedSlotRows):
            _check_slots(samples)
        if isinstance(samples, Rows | ValuedSlotRows):
            if len(samples.values) != len(samples.ids):
                raise InputError(f"there are {len(samples.ids)} ids but {len(samples.values)} values.")
            _check_finite(samples.values, "values")
    _check_finite(samples.targets, "targets")
    _check_finite(samples.importance, "sample weights")


def _check_slots(samples: SlotRows | ValuedSlotRows) -> None:
    if len(samples.slots) != len(samples.ids):
        raise InputError(f"there are {len(samples.ids)} ids but {len(samples.slots)} slots; give one an id.")
    if samples.dense.ndim != 2 or len(samples.dense) != len(samples.targets):
        raise InputError(f"dense columns are {samples.dense.shape}, expected ({len(samples.targets)}, columns).")
    falls = np.flatnonzero(np.diff(samples.slots.astype(np.int32)) < 0) + 1
    if len(falls) and (samples.offsets[np.searchsorted(samples.offsets, falls)] != falls).any():
        raise InputError("the slots of a sample are not in rising order; sort the entries of each sample by slot.")
    _check_finite(samples.dense, "dense columns")


def _check_finite(array: npt.NDArray[Any], what: str) -> None:
    # The sum of squares is finite exactly when every entry is (float64 cannot overflow on float32 squares here).
    if array.size and not np.isfinite(array).all():
        place = np.unravel_index(int(np.argmin(np.isfinite(array))), array.shape)
        raise InputError(f"{what} hold {array[place]} at {tuple(int(i) for i in place)}; clean or drop that row.")


def bytes_of(bundle: tuple[npt.NDArray[Any], ...]) -> int:
    """Bytes held by all arrays of a bundle."""
    return sum(array.nbytes for array in bundle)


def number_of(word: str) -> float | None:
    """The word as a number (NaN and infinity too), or None."""
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def fits_float32(number: float) -> bool:
    """Whether the number is finite and stays so in float32."""
    return math.isfinite(number) and abs(number) <= _LARGEST
