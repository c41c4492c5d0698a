"""What a node has told others, row by row: what differs from it is to be told, what others tell is added to both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hogwild.arrays import Floats, Table
from hogwild.cluster.wire.packing import FORMS, Form, Packet, Rows, layout_of, record_size
from hogwild.errors import InputError
from hogwild.executor.delta import RowIds, segments
from hogwild.executor.merging import Slice
from hogwild.kernels.loop.records import Records, settle_records, take_records


class Ledger:
    """Of the weights of one process: for each table a base, which is what others know of it.

    It may be used by one thread at a time. naming: (first, step), where row r has the number first + step * r.
    """

    def __init__(
        self, weights: Any, tables: Mapping[str, Table], slices: Mapping[str, list[Slice]] | None = None,
        naming: tuple[int, int] = (0, 1),
    ) -> None:  # fmt: skip
        self._pages = {
            name: _Page(name, array.reshape(-1, tables[name].cells), tables[name], (slices or {}).get(name, []), naming)
            for name, array in zip(weights._fields, weights, strict=True)
        }

    def take(
        self, form: Form, owners: int = 1, leading: int | None = None, *, every: bool = False, keeps: bool = False
    ) -> list[list[Rows]]:
        """Rows that differ from the base, for each owner; row number r is of owner r % owners.

        From then on the base has them, as they are sent, and so have the weights: what rounding leaves out is given up.
        The rows are good until the next call, which writes over them: `pack` and `Rows.kept` copy them.

        leading: look only at so many leading rows, the most frequent ones, of tables that are ranked; every: rows that
        have not changed too; keeps: the weights keep what rounding leaves out, and the next call finds it.
        """
        found: list[list[Rows]] = [[] for _ in range(owners)]
        for page in self._pages.values():
            for own, rows in zip(found, page.take(form, owners, leading, every, keeps), strict=True):
                if len(rows.numbers):
                    own.append(rows)
        return found

    def settle(self, came: Sequence[Rows], made: Sequence[Rows] = ()) -> None:
        """Put what came of the changes of all in the place of those that were taken here before."""
        one, other = ({rows.table: rows for rows in changes} for changes in (came, made))
        for table in {**one, **other}:
            self._pages[table].settle(one.get(table), other.get(table))


    def rebase(self, leading: int) -> None:
        """Others know so many leading rows as they are now."""
        for page in self._pages.values():
            page.rebase(leading)


class _Page:
    """One table."""

    def __init__(
        self, name: str, common: Floats, table: Table, slices: list[Slice], naming: tuple[int, int]
    ) -> None:
        self._name, self._common, self._base, self._table = name, common, common.copy(), table
        self._layout, self._slices, self._naming = layout_of(table), slices, naming
        self._values = np.empty((2, table.cells), np.float32)
        self._numbers, self._bodies = np.empty((1, 0), np.int64), np.empty((1, 0), np.uint8)

    def _make_room(self, owners: int, rows: int, size: int) -> None:
        """Kept from one exchange to the next: new memory would cost more than what is written to it."""
        most = rows // owners + 1
        if len(self._numbers) != owners or self._numbers.shape[1] < most or self._bodies.shape[1] < most * size:
            self._numbers, self._bodies = np.empty((owners, most), np.int64), np.empty((owners, most * size), np.uint8)

    def take(self, form: Form, owners: int, leading: int | None, every: bool, keeps: bool) -> list[Rows]:
        rows, size = len(self._common), record_size(self._table, form)
        end = rows if leading is None or self._table.kind != "ranked" else min(leading, rows)
        self._make_room(owners, rows, size)
        counts = np.zeros(owners, np.int64)
        out = self._numbers, self._bodies, counts
        for first, last, lock in segments(self._slices, 0, end):
            with lock:
                bad = take_records(
                    self._common, self._base, (first, last), self._layout, FORMS.index(form), self._naming, out,
                    self._values[0], (every, keeps),
                )  # fmt: skip
            if bad >= 0:
                number = self._naming[0] + self._naming[1] * bad
                raise not_finite(number, self._name)
        return [
            Rows(self._name, self._numbers[owner, :count], self._bodies[owner, : count * size], form)
            for owner, count in enumerate(counts.tolist())
        ]

    def rebase(self, leading: int) -> None:
        self._base[:leading] = self._common[:leading]

    def settle(self, came: Rows | None, made: Rows | None) -> None:
        first, step = self._naming
        for start, stop, lock in segments(self._slices, 0, len(self._common)):
            one, other = (self._between(rows, first + step * start, first + step * stop) for rows in (came, made))
            with lock:
                settle_records(self._common, self._base, one, other, self._layout, *self._values)

    def _between(self, rows: Rows | None, first: int, last: int) -> Records:
        """Rows whose numbers are between two."""
        numbers, body, form = (_NONE, _NOTHING, FORMS[0]) if rows is None else rows[1:]
        a, b = np.searchsorted(numbers, (first, last))
        size = record_size(self._table, form)
        return Records(numbers[a:b], body[a * size : b * size], FORMS.index(form), *self._naming)


_NONE: RowIds = np.zeros(0, np.int64)
_NOTHING: Packet = np.zeros(0, np.uint8)


def not_finite(number: int, table: str) -> InputError:
    """A row cannot be sent."""
    return InputError(f"the change of row {number} of table {table!r} is not finite; lower the learning rate.")
