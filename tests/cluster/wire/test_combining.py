"""Changes of several nodes as one, by a slow twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cluster.wire import exchange as twin
from hogwild.arrays import Table
from hogwild.cluster.wire.combining import add, combine, join, split, subtract
from hogwild.errors import InputError
from hogwild.executor.delta import RowDelta

TABLES = {
    "words": Table(rows=60, cells=9, kind="ranked"),
    "squares": Table(rows=40, cells=14, kind="ranked", width=7),
    "mixed": Table(rows=7, cells=4, additive=(True, True, False, True), width=2),
    "bias": Table(rows=1, cells=1, kind="scalar"),
}


def _node(seed: int, whole: bool = False) -> list[RowDelta]:
    """Random changes; some tables have none. whole: of whole numbers, which add up to the last bit."""
    random = np.random.default_rng(seed)
    changes = []
    for name, table in TABLES.items():
        ids = np.flatnonzero(random.random(table.rows) < random.choice([0, 0.3, 0.9, 1]))
        shape = len(ids), table.cells
        cells = random.integers(-50, 50, size=shape) if whole else random.normal(size=shape)
        cells[random.random(len(ids)) < 0.1] = 0
        if len(ids) or random.random() < 0.5:
            changes.append(RowDelta(name, ids, (cells * table.mask()).astype(np.float32)))
    return changes[::-1] if seed % 2 else changes


def _check_order(changes: list[RowDelta]) -> None:
    names = [change.table for change in changes]
    assert names == [name for name in TABLES if name in names]
    for change in changes:
        assert len(change.ids)
        assert change.ids.dtype == np.int64
        assert (np.diff(change.ids) > 0).all()
        assert change.cells.dtype == np.float32
        assert change.cells.shape == (len(change.ids), TABLES[change.table].cells)


def _as_rows(changes: list[RowDelta]) -> dict[tuple[str, int], np.ndarray]:
    return {(name, row): cells for name in TABLES for row, cells in twin.rows_of(changes, name).items()}


@pytest.mark.parametrize("how", ["project", "sum", "mean"])
@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 7, 16])
def test_combined_as_by_the_twin(how: Any, nodes: int) -> None:
    for seed in range(3):
        many = [_node(100 * nodes + 10 * seed + k) for k in range(nodes)]
        before = [[(c.ids.copy(), c.cells.copy()) for c in changes] for changes in many]
        found = combine(many, TABLES, how)
        _check_order(found)
        expected, rows = twin.combine(many, TABLES, how), _as_rows(found)
        assert list(rows) == list(expected)
        for key, cells in rows.items():
            np.testing.assert_allclose(cells, expected[key], rtol=1e-4, atol=1e-5)
        for changes, copies in zip(many, before, strict=True):
            for change, (ids, cells) in zip(changes, copies, strict=True):
                np.testing.assert_array_equal(change.ids, ids)
                np.testing.assert_array_equal(change.cells, cells)
        for change, again in zip(found, combine(many, TABLES, how), strict=True):
            np.testing.assert_array_equal(change.cells, again.cells)


@pytest.mark.parametrize("how", ["project", "sum", "mean"])
def test_nothing_changed(how: Any) -> None:
    none = [RowDelta("words", np.zeros(0, np.int64), np.zeros((0, 9), np.float32))]
    assert combine([[]], TABLES, how) == []
    assert combine([[], none, []], TABLES, how) == []


@pytest.mark.parametrize("nodes", [2, 4, 8])
def test_what_all_agree_on_counts_once(nodes: int) -> None:
    change = RowDelta("words", np.arange(60), np.random.default_rng(0).normal(size=(60, 9)).astype(np.float32))
    [found] = combine([[change]] * nodes, TABLES, "project")
    np.testing.assert_array_equal(found.cells, change.cells)


def test_different_directions_are_summed() -> None:
    many = [[RowDelta("words", np.array([5]), np.eye(9, dtype=np.float32)[k : k + 1])] for k in range(9)]
    [found] = combine(many, TABLES, "project")
    np.testing.assert_array_equal(found.cells, np.ones((1, 9)))


def test_a_rule_s_memory_is_summed_in_every_way() -> None:
    change = RowDelta("squares", np.array([3, 39]), np.ones((2, 14), np.float32))
    for how, weight in (("project", 1), ("sum", 4), ("mean", 1)):
        [found] = combine([[change]] * 4, TABLES, how)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found.cells, [[weight] * 7 + [4] * 7] * 2)


def test_nothing_is_lost_in_sums() -> None:
    for nodes in (2, 5, 16):
        many = [_node(seed, whole=True) for seed in range(nodes)]
        whole = _as_rows(combine(many, TABLES, "sum"))
        for key, cells in twin.combine(many, TABLES, "sum").items():
            np.testing.assert_array_equal(whole[key], cells)
        rest = combine(many, TABLES, "sum")
        for changes in many:
            rest = subtract(rest, changes, TABLES)
        assert {(c.table, row) for c in rest for row in c.ids.tolist()} == set(whole)
        assert all((change.cells == 0).all() for change in rest)


def test_sums_and_differences_have_rows_of_either() -> None:
    for seed in range(10):
        one, other = _node(seed, whole=True), _node(seed + 50, whole=True)
        first, second = _as_rows(one), _as_rows(other)
        for combined, sign in ((add(one, other, TABLES), 1), (subtract(one, other, TABLES), -1)):
            _check_order(combined)
            found = _as_rows(combined)
            assert set(found) == {*first, *second}
            for key, cells in found.items():
                np.testing.assert_array_equal(cells, first.get(key, 0) + sign * second.get(key, np.float32(0)))


@pytest.mark.parametrize("parts", [1, 2, 3, 16, 100])
def test_split_and_joined(parts: int) -> None:
    for seed in range(5):
        changes = [change for change in _node(seed) if len(change.ids)]
        pieces = split(changes, parts)
        assert len(pieces) == parts
        for owner, piece in enumerate(pieces):
            assert all(len(change.ids) and (change.ids % parts == owner).all() for change in piece)
        joined = {change.table: change for change in join(pieces)}
        assert sorted(joined) == sorted(change.table for change in changes)
        for change in changes:
            np.testing.assert_array_equal(joined[change.table].ids, change.ids)
            np.testing.assert_array_equal(joined[change.table].cells, change.cells)
    assert join([[], []]) == join([]) == []


def test_owners_combine_to_the_same_bits() -> None:
    many = [_node(seed) for seed in range(4)]
    owned = [combine(own, TABLES, "project") for own in zip(*(split(changes, 4) for changes in many), strict=True)]
    whole, joined = _as_rows(combine(many, TABLES, "project")), _as_rows(join(owned))
    assert set(whole) == set(joined)
    for key, cells in whole.items():
        np.testing.assert_array_equal(joined[key], cells)


def test_arrays_of_other_processes_will_do() -> None:
    many = [_node(3), _node(4)]
    expected = _as_rows(combine(many, TABLES, "project"))
    for change in (change for changes in many for change in changes):
        change.cells.flags.writeable = change.ids.flags.writeable = False
    for key, cells in _as_rows(combine(many, TABLES, "project")).items():
        np.testing.assert_array_equal(cells, expected[key])


def test_rows_in_any_order_are_joined_in_theirs() -> None:
    # As `Delta.take` gives them when it goes on from where it stopped.
    change = RowDelta("words", np.array([7, 9, 1]), np.array([[7], [9], [1]], np.float32) * np.ones(9, np.float32))
    for parts in ([[change]], [[change], [RowDelta("words", np.array([3]), np.full((1, 9), 3, np.float32))]]):
        [found] = join(parts)
        assert found.ids.tolist() == sorted(found.ids)
        np.testing.assert_array_equal(found.cells[:, 0], found.ids)
    with pytest.raises(InputError, match="have to rise"):
        combine([[change]], TABLES, "sum")


def test_what_does_not_fit() -> None:
    change = RowDelta("bias", np.array([0]), np.ones((1, 1), np.float32))
    with pytest.raises(InputError, match="twice"):
        combine([[change, change]], TABLES, "sum")
    with pytest.raises(InputError, match="expected"):
        add([change], [change._replace(cells=np.ones((1, 2), np.float32))], TABLES)
    with pytest.raises(InputError, match="no table 'verbs'"):
        subtract([change], [change._replace(table="verbs")], TABLES)
    with pytest.raises(InputError, match="'median'"):
        combine([[change]], TABLES, "median")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="row 0 of table 'bias' comes from two owners"):
        join([[change], [change]])
