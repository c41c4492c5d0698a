"""What other processes have to be told, and what they tell: a network, or another process, as one more worker.

A `Delta` keeps a base of its own, beside the common weights of a run. What workers changed since it was last asked is
what differs from that base, row by row; what comes from elsewhere is added to both. So nothing is told twice, nothing
is lost, and no worker waits for longer than another worker's merge takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Table
from hogwild.errors import InputError
from hogwild.executor.merging import Slice
from hogwild.kernels.loop.delta import add_changed, take_changed

RowIds = npt.NDArray[np.int64]
Namer = Callable[[str], RowIds | None]


class RowDelta(NamedTuple):
    """Differences of some rows of a table. ids: names of the rows that all processes share; cells: (rows, cells)."""

    table: str
    ids: RowIds
    cells: Floats


class Delta:
    """Changes of the common weights of a store, to be told to others, and those of others.

    `WeightStore.open_delta` makes one. It may be used from one thread at a time, while workers run.
    """

    def __init__(self, weights: Any, tables: dict[str, Table], slices: dict[str, list[Slice]], names: Namer) -> None:
        self._sides = {
            name: _Side(array.reshape(-1, tables[name].cells), tables[name], slices[name], names(name))
            for name, array in zip(weights._fields, weights, strict=True)
        }

    def take(self, most: int = 1 << 16) -> list[RowDelta]:
        """Rows that differ from the base, so many of each table at the most; the base catches up.

        Where there are more, the next call goes on with them. An empty list: nothing has changed.
        """
        found = [RowDelta(name, *side.take(most)) for name, side in self._sides.items()]
        return [change for change in found if len(change.ids)]

    def add(self, change: RowDelta) -> None:
        """Add what changed elsewhere to the common weights, and to the base."""
        if change.table not in self._sides:
            raise InputError(f"there is no table {change.table!r} here, but {', '.join(self._sides)}.")
        self._sides[change.table].add(change)


class _Side:
    """One table."""

    def __init__(self, common: Floats, table: Table, slices: list[Slice], ids: RowIds | None) -> None:
        self._common, self._base = common, common.copy()
        self._additive = table.mask()
        self._ids = np.arange(table.rows) if ids is None else np.asarray(ids, np.int64)
        self._sorted = np.argsort(self._ids, kind="stable")
        self._slices = slices
        self._next = 0

    def take(self, most: int) -> tuple[RowIds, Floats]:
        """Names and differences."""
        rows = np.empty(min(most, len(self._common)), np.int64)
        cells = np.empty((len(rows), self._common.shape[1]), np.float32)
        count, start = 0, self._next
        for first, last in ((start, len(self._common)), (0, start)):
            for a, b, lock in segments(self._slices, first, last):
                with lock:
                    room = rows[count:], cells[count:]
                    found, stopped = take_changed(self._common, self._base, self._additive, (a, b), *room)
                count += found
                if stopped < b:
                    self._next = stopped
                    return self._ids[rows], cells
        return self._ids[rows[:count]], cells[:count]

    def add(self, change: RowDelta) -> None:
        """Add differences of rows by their names."""
        places = np.searchsorted(self._ids, change.ids, sorter=self._sorted)
        rows = self._sorted[np.minimum(places, len(self._sorted) - 1)]
        strange = self._ids[rows] != change.ids
        if strange.any():
            raise InputError(
                f"row {change.ids[strange][0]} of table {change.table!r} is not known here; give all processes the "
                "same vocabulary."
            )
        if change.cells.shape != (len(rows), self._common.shape[1]):
            cells = self._common.shape[1]
            raise InputError(f"changes of {change.table!r} are {change.cells.shape}; a row has {cells} cells.")
        order = np.argsort(rows, kind="stable")
        rows, cells = rows[order], change.cells[order]
        for first, last, lock in segments(self._slices, 0, len(self._common)):
            a, b = np.searchsorted(rows, (first, last))
            if a < b:
                with lock:
                    add_changed(self._common, self._base, rows[a:b], cells[a:b])


def segments(
    slices: Sequence[Slice], first: int, last: int
) -> Iterator[tuple[int, int, AbstractContextManager[Any]]]:
    """Runs of rows with what has to be held: the lock of those that workers have copies of and merge."""
    done = first
    for where in slices:
        a, b = (max(first, where.start // where.shape[0]), min(last, where.stop // where.shape[0]))
        if a < b:
            yield a, b, where.lock
            done = b
    if done < last:
        yield done, last, nullcontext()
