"""What several nodes changed, as one change; and sums, differences and parts of changes.

Everywhere the ids of changes are row numbers, rising, and a table has one change at the most. Tables of which no row
has changed are left out of what is returned; where only one node has changes of a table, its arrays may be returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from hogwild.arrays import Table
from hogwild.cluster.wire.packing import checked
from hogwild.errors import InputError, brief
from hogwild.executor.delta import RowDelta
from hogwild.kernels.loop.combine import merge_changes

Combine = Literal["project", "sum", "mean"]
Changes = Sequence[RowDelta]


def combine(many: Sequence[Changes], tables: Mapping[str, Table], how: Combine) -> list[RowDelta]:
    """The changes of several nodes, in the order of their ranks, as one; tables in their order.

    `project` counts the direction that two rows have in common once, and combines nodes by twos, then these by twos; a
    node that has not changed a row has no part in it. `sum` adds, `mean` divides the sum by the number of nodes,
    whether or not they have changed a row. An update rule's memory is summed in any case.

    Examples
    --------
    >>> tables = {"weights": Table(rows=9, cells=2)}
    >>> one = [RowDelta("weights", np.array([4]), np.array([[1, 2]], np.float32))]
    >>> other = [RowDelta("weights", np.array([4, 7]), np.array([[1, 2], [3, 3]], np.float32))]
    >>> combine([one, other], tables, "project")[0].cells.tolist()
    [[1.0, 2.0], [3.0, 3.0]]
    >>> combine([one, other], tables, "sum")[0].cells.tolist()
    [[2.0, 4.0], [3.0, 3.0]]
    """
    if how not in ("project", "sum", "mean"):
        raise InputError(f"changes cannot be combined by {brief(how)}, but by project, sum or mean.")
    found = []
    for table, changes in _by_table(many, tables):
        whole = _fold(changes, table, how == "project")
        if how == "mean":
            cells = whole.cells.copy()
            cells[:, : _width(table)] /= np.float32(len(many))
            whole = whole._replace(cells=cells)
        found.append(whole)
    return found


def subtract(whole: Changes, mine: Changes, tables: Mapping[str, Table]) -> list[RowDelta]:
    """What has to be added to the second changes to have the first: of rows of either."""
    return [_merge(pair, _width(table), -1) for table, pair in _by_table([whole, mine], tables)]


def add(one: Changes, other: Changes, tables: Mapping[str, Table]) -> list[RowDelta]:
    """The sum of two changes: of rows of either."""
    return [_merge(pair, _width(table)) for table, pair in _by_table([one, other], tables)]


def split(changes: Changes, parts: int) -> list[list[RowDelta]]:
    """Changes by the owners of their rows: row r is of owner r % parts.

    Examples
    --------
    >>> change = RowDelta("weights", np.array([3, 4, 8]), np.zeros((3, 2), np.float32))
    >>> [[part.ids.tolist() for part in own] for own in split([change], 3)]
    [[[3]], [[4]], [[8]]]
    """
    found: list[list[RowDelta]] = [[] for _ in range(parts)]
    for change in changes:
        owners = change.ids % parts
        for owner, own in enumerate(found):
            some = np.flatnonzero(owners == owner)
            if len(some):
                own.append(RowDelta(change.table, change.ids[some], change.cells[some]))
    return found


def join(parts: Sequence[Changes]) -> list[RowDelta]:
    """Changes of disjoint rows, in any order, as one, sorted; tables in the order in which they come first."""
    tables: dict[str, list[RowDelta]] = {}
    for changes in parts:
        for change in changes:
            tables.setdefault(change.table, []).append(change)
    found = [some[0] if len(some) == 1 and _rises(some[0]) else _join(some) for some in tables.values()]
    return [change for change in found if len(change.ids)]


def _rises(change: RowDelta) -> bool:
    return bool((change.ids[1:] > change.ids[:-1]).all())


def _join(changes: Changes) -> RowDelta:
    name = changes[0].table
    ids = np.sort(np.concatenate([change.ids for change in changes]))
    if (ids[1:] == ids[:-1]).any():
        raise InputError(f"row {ids[:-1][ids[1:] == ids[:-1]][0]} of table {name!r} comes from two owners.")
    cells = np.empty((len(ids), changes[0].cells.shape[1]), np.float32)
    for change in changes:
        cells[np.searchsorted(ids, change.ids)] = change.cells
    return RowDelta(name, ids, cells)


def _by_table(many: Sequence[Changes], tables: Mapping[str, Table]) -> Iterator[tuple[Table, list[RowDelta]]]:
    """Each table that has changes, with those of each, which may be none."""
    nodes = []
    for changes in many:
        nodes.append({change.table: checked(change, tables) for change in changes})
        if len(nodes[-1]) < len(changes):
            raise InputError("a table has changes twice; add them up first.")
    for name, table in tables.items():
        if any(name in node and len(node[name].ids) for node in nodes):
            none = RowDelta(name, np.zeros(0, np.int64), np.zeros((0, table.cells), np.float32))
            yield table, [node.get(name, none) for node in nodes]


def _width(table: Table) -> int:
    return table.cells if table.width is None else table.width


def _fold(changes: list[RowDelta], table: Table, project: bool) -> RowDelta:
    """Nodes by twos, then these by twos; one that is left over goes on as it is."""
    while len(changes) > 1:
        pairs = [changes[k : k + 2] for k in range(0, len(changes), 2)]
        changes = [_merge(pair, _width(table), 1, project) if len(pair) > 1 else pair[0] for pair in pairs]
    return changes[0]


def _merge(pair: Changes, width: int, sign: int = 1, project: bool = False) -> RowDelta:
    one, other = pair
    if not len(other.ids) or (sign == 1 and not len(one.ids)):
        return one if len(one.ids) else other
    room = len(one.ids) + len(other.ids)
    ids, cells = np.empty(room, np.int64), np.empty((room, one.cells.shape[1]), np.float32)
    count = merge_changes(one[1:], other[1:], (ids, cells), width, np.float32(sign), project)
    return RowDelta(one.table, ids[:count], cells[:count])
