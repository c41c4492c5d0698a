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
from hogwild.kernels.loop.delta import add_changed, settle_changed, take_changed

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

    def take(self, most: int = 1 << 16, leading: int | None = None) -> list[RowDelta]:
        """Rows that differ from the base, so many of each table at the most; the base catches up.

        Where there are more, the next call goes on with them. An empty list: nothing has changed. leading: look only at
        so many leading rows, the most frequent ones, of tables that are ranked.
        """
        found = [RowDelta(name, *side.take(most, leading)) for name, side in self._sides.items()]
        return [change for change in found if len(change.ids)]

    def add(self, change: RowDelta) -> None:
        """Add what changed elsewhere to the common weights, and to the base."""
        self._side(change.table).add(change)

    def settle(self, whole: Sequence[RowDelta], mine: Sequence[RowDelta]) -> None:
        """Put `whole`, that came of the changes of all, in the place of `mine`, that were taken here before.

        Both have rows in rising order of their numbers, and the workers stand still.
        """
        came, made = ({change.table: change for change in changes} for changes in (whole, mine))
        for table in {**came, **made} or self._sides:
            self._side(table).settle(came.get(table), made.get(table))

    def _side(self, table: str) -> _Side:
        if table not in self._sides:
            raise InputError(f"there is no table {table!r} here, but {', '.join(self._sides)}.")
        return self._sides[table]


class _Side:
    """One table."""

    def __init__(self, common: Floats, table: Table, slices: list[Slice], ids: RowIds | None) -> None:
        self._common, self._base = common, common.copy()
        self._bits = self._common.view(np.int32), self._base.view(np.int32)
        self._mask = -table.mask().astype(np.int32)
        self._ranked = table.kind == "ranked"
        self._ids = None if ids is None else np.asarray(ids, np.int64)  # None: rows go by their numbers
        self._sorted = None if self._ids is None else np.argsort(self._ids, kind="stable")
        self._slices = slices
        self._next = 0

    def take(self, most: int, leading: int | None) -> tuple[RowIds, Floats]:
        """Names and differences."""
        end = len(self._common) if leading is None or not self._ranked else min(leading, len(self._common))
        rows = np.empty(min(most, end), np.int64)
        cells = np.empty((len(rows), self._common.shape[1]), np.float32)
        count, start = 0, min(self._next, end)
        for first, last in ((start, end), (0, start)):
            for a, b, lock in self._segments(first, last):
                with lock:
                    room = rows[count:], cells[count:]
                    found, stopped = take_changed(self._common, self._base, self._bits, self._mask, (a, b), *room)
                count += found
                if stopped < b:
                    self._next = stopped
                    return self._named(rows), cells
        return self._named(rows[:count]), cells[:count]

    def _named(self, rows: RowIds) -> RowIds:
        return rows if self._ids is None else self._ids[rows]

    def _rows_of(self, change: RowDelta) -> RowIds:
        """The numbers of the rows that a change names."""
        if self._ids is None or self._sorted is None:
            rows = change.ids
            strange = (rows < 0) | (rows >= len(self._common))
        else:
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
        return rows

    def settle(self, whole: RowDelta | None, mine: RowDelta | None) -> None:
        """Put one change in the place of another."""
        none = np.zeros(0, np.int64), np.zeros((0, self._common.shape[1]), np.float32)
        came, made = (none if change is None else (self._rows_of(change), change.cells) for change in (whole, mine))
        for first, last, lock in self._segments(0, len(self._common)):
            (a, b), (c, d) = (np.searchsorted(rows, (first, last)) for rows, _ in (came, made))
            with lock:
                settle_changed(
                    self._common, self._base, came[0][a:b], came[1][a:b], made[0][c:d], made[1][c:d]
                )  # fmt: skip

    def add(self, change: RowDelta) -> None:
        """Add differences of rows by their names."""
        rows, changes = self._rows_of(change), change.cells
        if len(rows) and (np.diff(rows) < 0).any():
            order = np.argsort(rows, kind="stable")
            rows, changes = rows[order], changes[order]
        for first, last, lock in self._segments(0, len(self._common)):
            a, b = np.searchsorted(rows, (first, last))
            if a < b:
                with lock:
                    add_changed(self._common, self._base, rows[a:b], changes[a:b])

    def _segments(self, first: int, last: int) -> Iterator[tuple[int, int, AbstractContextManager[Any]]]:
        """Runs of rows with what has to be held: the lock of those that workers have copies of and merge."""
        done = first
        for where in self._slices:
            a, b = (max(first, where.start // where.shape[0]), min(last, where.stop // where.shape[0]))
            if a < b:
                yield a, b, where.lock
                done = b
        if done < last:
            yield done, last, nullcontext()
