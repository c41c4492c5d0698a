"""Rows as floats, and as they are sent."""

from __future__ import annotations

import numpy as np

from hogwild.arrays import Floats, Table
from hogwild.cluster.wire.ledger import not_finite
from hogwild.cluster.wire.packing import FORMS, Form, Rows, layout_of, record_size
from hogwild.executor.delta import RowIds
from hogwild.kernels.loop.records import Records, settle_records, take_records


def rows_of(name: str, numbers: RowIds, values: Floats, table: Table, form: Form) -> Rows:
    """Rows of a table with these cells, (rows, cells), as they are sent; numbers rise."""
    count, size = len(numbers), record_size(table, form)
    body, found = np.empty((1, count * size), np.uint8), np.zeros(1, np.int64)
    out = np.empty((1, count), np.int64), body, found
    cells, nothing = np.array(values, np.float32), np.zeros((count, table.cells), np.float32)
    room = np.empty(table.cells, np.float32)
    bad = take_records(
        cells, nothing, (0, count), layout_of(table), FORMS.index(form), (0, 1), out, room, (True, True)
    )
    if bad >= 0:
        raise not_finite(int(numbers[bad]), name)
    return Rows(name, numbers, body[0], form)


def values_of(rows: Rows, table: Table) -> Floats:
    """The cells of rows, (rows, cells); 0 where they are not sent."""
    count = len(rows.numbers)
    cells, base = (np.zeros((count, table.cells), np.float32) for _ in range(2))
    came = Records(np.arange(count), rows.body, FORMS.index(rows.form), 0, 1)
    nothing = Records(np.zeros(0, np.int64), np.zeros(0, np.uint8), 0, 0, 1)
    room = np.empty((2, table.cells), np.float32)
    settle_records(cells, base, came, nothing, layout_of(table), *room)
    return cells


def part_of(rows: Rows, which: RowIds, table: Table) -> Rows:
    """Some of the rows, by their places."""
    size = record_size(table, rows.form)
    return rows._replace(numbers=rows.numbers[which], body=rows.body.reshape(-1, size)[which].reshape(-1))
