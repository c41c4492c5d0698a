"""What several nodes changed, as one change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from hogwild.arrays import Table
from hogwild.cluster.wire.ledger import not_finite
from hogwild.cluster.wire.packing import FORMS, Form, Rows, layout_of, record_size
from hogwild.errors import InputError, brief
from hogwild.kernels.loop.records import combine_records

Combine = Literal["project", "sum", "mean"]
_WAYS: tuple[Combine, ...] = get_args(Combine)


def combine(many: Sequence[Sequence[Rows]], tables: Mapping[str, Table], how: Combine, form: Form) -> list[Rows]:
    """The changes of several nodes, in the order of their ranks, as one, in a form of its own; tables in their order.

    `project` counts the direction that two rows have in common once, and combines nodes by twos, then these by twos; a
    node that has not changed a row has no part in it. `sum` adds, `mean` divides the sum by the number of nodes,
    whether or not they have changed a row. An update rule's memory is summed in any case.
    """
    if how not in _WAYS:
        raise InputError(f"changes cannot be combined by {brief(how)}, but by project, sum or mean.")
    by_name = [{rows.table: rows for rows in changes} for changes in many]
    found = []
    for name, table in tables.items():
        given = [node.get(name) for node in by_name]
        if any(rows is not None and len(rows.numbers) for rows in given):
            found.append(_combine(name, table, given, how, form))
    return found


def _combine(name: str, table: Table, given: Sequence[Rows | None], how: Combine, form: Form) -> Rows:
    there = [rows for rows in given if rows is not None]
    places = np.zeros((len(given), 4), np.int64)
    number = began = 0
    for place, rows in zip(places, given, strict=True):
        count, used = (0, form) if rows is None else (len(rows.numbers), rows.form)
        place[:] = number, number + count, began, FORMS.index(used)
        number += count
        began += count * record_size(table, used)
    most, size = min(number, table.rows), record_size(table, form)
    numbers, body = np.empty(most, np.int64), np.empty(most * size, np.uint8)
    all_records = np.concatenate([rows.numbers for rows in there]), np.concatenate([rows.body for rows in there])
    room = np.empty((len(given), table.cells), np.float32), np.zeros(len(given), np.bool_)
    count = combine_records(
        all_records, places, layout_of(table), _WAYS.index(how), (numbers, body, FORMS.index(form)), *room
    )
    if count < 0:
        raise not_finite(-1 - count, name)
    return Rows(name, numbers[:count], body[: count * size], form)
