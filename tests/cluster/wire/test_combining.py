"""Changes of several nodes as one, by a slow twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cluster.wire import exchange as twin
from hogwild.arrays import Table
from hogwild.cluster.wire import combining
from hogwild.errors import InputError
from hogwild.executor.delta import RowDelta

TABLES = {
    "words": Table(rows=60, cells=9, kind="ranked"),
    "squares": Table(rows=40, cells=14, kind="ranked", width=7),
    "mixed": Table(rows=7, cells=4, additive=(True, True, False, True), width=2),
    "bias": Table(rows=1, cells=1, kind="scalar"),
}


def combine(many: list[list[RowDelta]], tables: dict[str, Table], how: Any, form: Any = "float32") -> list[RowDelta]:
    """Changes of floats as one."""
    given = [twin.written(changes, tables, form) for changes in many]
    return twin.read(combining.combine(given, tables, how, form), tables)


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
    np.testing.assert_allclose(found.cells, change.cells, rtol=1e-5)


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


@pytest.mark.parametrize("form", ["bfloat16", "int8", "int4"])
def test_rounded_as_asked_for(form: Any) -> None:
    many = [_node(seed) for seed in range(3)]
    rounded = [twin.read(twin.written(changes, TABLES, form), TABLES) for changes in many]
    exact, found = _as_rows(combine(rounded, TABLES, "sum")), _as_rows(combine(many, TABLES, "sum", form))
    assert list(found) == list(exact)
    for (name, row), cells in found.items():
        width = TABLES[name].width or TABLES[name].cells
        for part in (cells[:width] - exact[name, row][:width], cells[width:] - exact[name, row][width:]):
            bound = np.abs(exact[name, row]).max() * {"bfloat16": 1 / 256, "int8": 1 / 254, "int4": 1 / 14}[form]
            assert np.abs(part).max(initial=0) <= bound * (1 + 1e-4)


def test_what_is_not_finite_is_named() -> None:
    change = RowDelta("words", np.array([5]), np.full((1, 9), 3e38, np.float32))
    with pytest.raises(InputError, match="row 5 of table 'words' is not finite"):
        combining.combine(2 * [twin.written([change], TABLES, "float32")], TABLES, "sum", "int8")


def test_ways_that_there_are_not() -> None:
    with pytest.raises(InputError, match="'median'"):
        combining.combine([[]], TABLES, "median", "int8")  # type: ignore[arg-type]
