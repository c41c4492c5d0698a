"""Changes of rows as floats, to and fro, and slow, obvious twins of what they go through between nodes.

Twins are of float64, one row and one cell at a time.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hogwild.arrays import Table
from hogwild.cluster.wire.ledger import Ledger
from hogwild.cluster.wire.packing import Rows
from hogwild.executor.delta import RowDelta


@lru_cache
def _weights(name: str) -> Any:
    return namedtuple("Weights", [name])


def _small(change: Any, table: Table, count: int) -> tuple[Any, Ledger]:
    """A table of so many rows, all 0, and its ledger."""
    small = replace(table, rows=count)
    weights = _weights(change.table)(np.zeros((count, table.cells), np.float32))
    return weights, Ledger(weights, {change.table: small})


def written(changes: Sequence[RowDelta], tables: dict[str, Table], form: Any) -> list[Rows]:
    """Changes as records, of all their rows."""
    found = []
    for change in changes:
        weights, ledger = _small(change, tables[change.table], len(change.ids))
        weights[0][:] = change.cells
        rows = [rows for own in ledger.take(form, every=True) for rows in own]
        body = rows[0].body.copy() if rows else np.zeros(0, np.uint8)
        found.append(Rows(change.table, np.asarray(change.ids, np.int64), body, form))
    return found


def read(changes: Sequence[Rows], tables: dict[str, Table]) -> list[RowDelta]:
    """Records as changes."""
    found = []
    for change in changes:
        weights, ledger = _small(change, tables[change.table], len(change.numbers))
        ledger.settle([change._replace(numbers=np.arange(len(change.numbers)))])
        found.append(RowDelta(change.table, change.numbers, weights[0]))
    return found


def bfloat16_of(value: float) -> float:
    """The nearest number of 8 binary digits, of two equally near the one whose last digit is 0; for normal numbers."""
    if value == 0:
        return 0.0
    size, exponent = Fraction(abs(value)), 0
    while size >= 256:
        size, exponent = size / 2, exponent + 1
    while size < 128:
        size, exponent = size * 2, exponent - 1
    return float(np.sign(value) * round(size) * Fraction(2) ** exponent)


def steps_of(cells: np.ndarray, most: int) -> tuple[float, np.ndarray]:
    """The scale of a part of a row and its cells in whole steps of it."""
    size = max((abs(float(cell)) for cell in cells), default=0.0)
    if size == 0:
        return 0.0, np.zeros(len(cells), int)
    scale = size / most
    return scale, np.array([int(np.floor(float(cell) / scale + 0.5)) for cell in cells])


def project(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Two vectors with the direction that they have in common counted once."""
    common, square, other_square = float(one @ other), float(one @ one), float(other @ other)
    if square == 0:
        return other
    if other_square == 0:
        return one
    return one * (1 - common / (2 * square)) + other * (1 - common / (2 * other_square))


def tree(vectors: list[np.ndarray | None]) -> np.ndarray | None:
    """Vectors of nodes by twos, then these by twos; None is a node that has none."""
    if len(vectors) == 1:
        return vectors[0]
    pairs = [[vector for vector in vectors[k : k + 2] if vector is not None] for k in range(0, len(vectors), 2)]
    return tree([None if not pair else pair[0] if len(pair) == 1 else project(*pair) for pair in pairs])


def combine(many: list[list[RowDelta]], tables: dict[str, Table], how: str) -> dict[tuple[str, int], np.ndarray]:
    """The combined change of each row, by table and row."""
    found = {}
    for name, table in tables.items():
        width = table.cells if table.width is None else table.width
        rows = [rows_of(changes, name) for changes in many]
        for row in sorted(set().union(*rows)):
            given = [node[row].astype(np.float64) if row in node else None for node in rows]
            there = [cells for cells in given if cells is not None]
            if how == "project":
                weights = tree([None if cells is None else cells[:width] for cells in given])
            else:
                weights = sum(cells[:width] for cells in there) / (len(many) if how == "mean" else 1)
            found[name, row] = np.concatenate([weights, sum(cells[width:] for cells in there)])
    return found


def rows_of(changes: list[RowDelta], name: str) -> dict[int, np.ndarray]:
    """Rows of one table by their numbers."""
    return {int(row): cells for change in changes if change.table == name
            for row, cells in zip(change.ids, change.cells, strict=True)}
