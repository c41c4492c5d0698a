"""Rows as records and back, taken, combined and taken over, against slow twins."""

from __future__ import annotations

import numpy as np
import pytest

from cluster.wire import exchange as twin
from hogwild.kernels.loop.records import (
    BFLOAT16,
    FLOAT32,
    INT4,
    INT8,
    MEAN,
    PROJECT,
    SUM,
    Layout,
    Records,
    combine_records,
    record_bytes,
    settle_records,
    sound_records,
    take_records,
)

SHAPES = [(0, 5, 5), (1, 1, 1), (4, 7, 7), (3, 8, 5), (5, 112, 100), (6, 9, 8), (3, 6, 0)]  # rows, cells, weights
FORMS = [FLOAT32, BFLOAT16, INT8, INT4]
MOST = {INT8: 127, INT4: 7}


def _layout(cells: int, weights: int, columns: np.ndarray | None = None) -> Layout:
    straight = weights == cells and columns is None
    return Layout(weights, cells - weights, straight, np.arange(cells) if columns is None else columns)


def _cells(rows: int, cells: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    found = (random.normal(size=(rows, cells)) * 10.0 ** random.integers(-6, 6, size=(rows, 1))).astype(np.float32)
    found[rows // 2 : rows // 2 + 1] = 0
    return found


def _records(cells: np.ndarray, layout: Layout, form: int, numbers: np.ndarray | None = None) -> Records:
    """Of every row."""
    size = record_bytes(form, layout.weights, layout.others)
    out = np.empty((1, len(cells)), np.int64), np.empty((1, len(cells) * size), np.uint8), np.zeros(1, np.int64)
    room = np.empty(cells.shape[1], np.float32)
    common, base = cells.copy(), np.zeros_like(cells)
    bad = take_records(common, base, (0, len(cells)), layout, form, (0, 1), out, room, (True, False))
    assert bad == -1
    np.testing.assert_array_equal(common[:, layout.columns], base[:, layout.columns])
    return Records(out[0][0] if numbers is None else numbers, out[1][0], form, 0, 1)


def _back(records: Records, layout: Layout, rows: int, cells: int) -> np.ndarray:
    """Added to nothing."""
    common, base = np.zeros((rows, cells), np.float32), np.zeros((rows, cells), np.float32)
    none = Records(np.zeros(0, np.int64), np.zeros(0, np.uint8), FLOAT32, 0, 1)
    settle_records(common, base, records, none, layout, *np.empty((2, cells), np.float32))
    np.testing.assert_array_equal(common, base)
    return common


def _there_and_back(cells: np.ndarray, layout: Layout, form: int) -> np.ndarray:
    return _back(_records(cells, layout, form), layout, *cells.shape)


@pytest.mark.parametrize("form", [INT8, INT4])
@pytest.mark.parametrize(("rows", "cells", "weights"), SHAPES)
def test_steps_are_within_half_a_step(form: int, rows: int, cells: int, weights: int) -> None:
    given, layout = _cells(rows, cells), _layout(cells, weights)
    back = _there_and_back(given, layout, form)
    for part, most in ((slice(0, weights), MOST[form]), (slice(weights, cells), 127)):
        for row in range(rows if part.start < part.stop else 0):
            scale, steps = twin.steps_of(given[row, part], most)
            if part.stop - part.start == 1:  # as short as the size of a step: sent as it is
                assert back[row, part] == given[row, part]
                continue
            # Where a cell is halfway between two steps, float32 may take the other one.
            assert np.abs(back[row, part] - steps * scale).max() <= scale * 1.001
            assert np.abs(back[row, part].astype(float) - given[row, part]).max() <= scale / 2 * (1 + 1e-4)
    # What was rounded once is not moved again by being sent on.
    np.testing.assert_allclose(_there_and_back(back, layout, form), back, rtol=1e-6)


@pytest.mark.parametrize("form", [INT8, INT4])
def test_whole_steps_stay_what_they_are(form: int) -> None:
    given = np.arange(-MOST[form], MOST[form] + 1, dtype=np.float32)[np.newaxis] * np.float32(0.25)
    layout = _layout(given.shape[1], given.shape[1])
    records = _records(given, layout, form)
    assert records.body[:4].view(np.float32)[0] == 0.25
    assert len(records.body) == 4 + (len(given[0]) if form == INT8 else MOST[form] + 1)
    np.testing.assert_array_equal(_back(records, layout, *given.shape), given)


@pytest.mark.parametrize("form", [INT8, INT4])
def test_rows_of_nothing_have_no_step(form: int) -> None:
    given = np.zeros((3, 5), np.float32)
    given[1] = 1e-40
    records = _records(given, _layout(5, 5), form)
    np.testing.assert_array_equal(records.body.reshape(3, -1)[:, :4], 0)
    np.testing.assert_array_equal(_back(records, _layout(5, 5), 3, 5), 0)


@pytest.mark.parametrize("form", FORMS[1:])
@pytest.mark.parametrize("weights", [5, 2])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, np.finfo(np.float32).max])
def test_the_first_row_that_cannot_be_sent_is_named(form: int, weights: int, bad: float) -> None:
    given, layout = _cells(6, 5), _layout(5, weights)
    given[3, 4] = given[5, 0] = bad
    size = record_bytes(form, layout.weights, layout.others)
    out = np.empty((1, 6), np.int64), np.empty((1, 6 * size), np.uint8), np.zeros(1, np.int64)
    base, room = np.zeros_like(given), np.empty(5, np.float32)
    assert take_records(given, base, (0, 6), layout, form, (0, 1), out, room, (False, False)) == 3


def test_bfloat16_is_the_nearest() -> None:
    given = np.concatenate([_cells(50, 9).reshape(-1), np.float32([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 2.9e38])])
    layout = _layout(len(given), len(given))
    back = _there_and_back(given[np.newaxis], layout, BFLOAT16)
    np.testing.assert_array_equal(back[0], [twin.bfloat16_of(float(value)) for value in given])
    np.testing.assert_array_equal(_there_and_back(back, layout, BFLOAT16), back)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, np.finfo(np.float32).max])
def test_what_is_no_finite_bfloat16_is_found(bad: float) -> None:
    given = np.ones((2, 40), np.float32)
    given[1, 33] = bad
    body = (given.view(np.uint32) >> 16).astype(np.uint16).reshape(-1).view(np.uint8)
    assert sound_records(body, 2, _layout(40, 30), BFLOAT16) == bool(np.isfinite(bad))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("keeps", [False, True])
def test_only_what_changed_is_taken_and_only_once(form: int, keeps: bool) -> None:
    """Some columns do not add up: they are neither looked at nor sent. Rows go to their owners, by their numbers."""
    random = np.random.default_rng(2)
    columns = np.array([0, 2, 3, 6])
    layout = _layout(4, 3, columns)
    base = random.normal(size=(50, 7)).astype(np.float32)
    common, old = base.copy(), base.copy()
    some = np.flatnonzero(random.random(50) < 0.4)
    common[np.ix_(some, columns)] += random.normal(size=(len(some), 4)).astype(np.float32)
    common[:, 1] += 1
    before = common.copy()
    size = record_bytes(form, 3, 1)
    out = np.empty((3, 50), np.int64), np.empty((3, 50 * size), np.uint8), np.zeros(3, np.int64)
    room = np.empty(7, np.float32)
    assert take_records(common, base, (0, 50), layout, form, (4, 5), out, room, (False, keeps)) == -1
    found: dict[int, np.ndarray] = {}
    for owner, count in enumerate(out[2]):
        numbers = out[0][owner, :count]
        assert (numbers % 3 == owner).all()
        assert (np.diff(numbers) > 0).all()
        records = Records(numbers, out[1][owner, : count * size], form, 4, 5)
        back = _back(records, layout, 50, 7)
        for number in numbers.tolist():
            found[(number - 4) // 5] = back[(number - 4) // 5]
    assert sorted(found) == some.tolist()
    for row, sent in found.items():
        np.testing.assert_allclose(base[row, columns], old[row, columns] + sent[columns], rtol=1e-6, atol=1e-6)
        largest = np.abs(before[row] - old[row]).max()
        np.testing.assert_allclose(sent[columns], (before - old)[row, columns], atol=largest / 13)
    np.testing.assert_array_equal(common[:, 1], before[:, 1])
    np.testing.assert_array_equal(base[:, 1], old[:, 1])
    if keeps:
        np.testing.assert_array_equal(common, before)
    else:
        np.testing.assert_array_equal(common[:, columns], base[:, columns])
        out[2][:] = 0
        take_records(common, base, (0, 50), layout, form, (4, 5), out, room, (False, False))
        assert not out[2].any()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weights", [112, 60])
def test_what_came_takes_the_place_of_what_was_made(form: int, weights: int) -> None:
    random = np.random.default_rng(4)
    layout = _layout(112, weights)
    came, made = (np.flatnonzero(random.random(40) < 0.5) for _ in range(2))
    whole, mine = _cells(len(came), 112, 1), _cells(len(made), 112, 2)
    one, other = _records(whole, layout, form, came), _records(mine, layout, form, made)
    table = random.normal(size=(40, 112)).astype(np.float32)
    common, base = table.copy(), table.copy()
    common[::3] += 1  # what workers did since
    settle_records(common, base, one, other, layout, *np.empty((2, 112), np.float32))
    expected = table.astype(np.float64)
    expected[came] += _back(one._replace(numbers=np.arange(len(came))), layout, len(came), 112)
    expected[made] -= _back(other._replace(numbers=np.arange(len(made))), layout, len(made), 112)
    size = np.abs(expected).max(axis=1, keepdims=True) + 1
    assert (np.abs(base - expected) / size).max() < 1e-6
    expected[::3] += 1
    assert (np.abs(common - expected) / size).max() < 1e-6
    quiet = np.delete(np.arange(40), np.arange(0, 40, 3))
    np.testing.assert_array_equal(common[quiet], base[quiet])  # to the last bit: nothing is told that was heard


def _combined(
    many: list[tuple[np.ndarray, np.ndarray]], layout: Layout, how: int, forms: list[int], form: int = FLOAT32
) -> tuple[np.ndarray, np.ndarray]:
    cells = layout.weights + layout.others
    places, numbers, bodies = np.zeros((len(many), 4), np.int64), [np.zeros(0, np.int64)], [np.zeros(0, np.uint8)]
    number = began = 0
    for place, (ids, values), used in zip(places, many, forms, strict=True):
        records = _records(values, layout, used, ids)
        place[:] = number, number + len(ids), began, used
        numbers.append(ids)
        bodies.append(records.body)
        number, began = number + len(ids), began + len(records.body)
    size = record_bytes(form, layout.weights, layout.others)
    out = np.empty(number, np.int64), np.empty(number * size, np.uint8)
    room = np.empty((len(many), cells), np.float32), np.zeros(len(many), np.bool_)
    both = np.concatenate(numbers), np.concatenate(bodies)
    count = combine_records(both, places, layout, how, (*out, form), *room)
    assert count >= 0
    ids, body = out[0][:count], out[1][: count * size]
    return ids, _back(Records(np.arange(count), body, form, 0, 1), layout, count, cells)


@pytest.mark.parametrize(("rows", "other_rows"), [(0, 0), (0, 3), (4, 0), (30, 40), (50, 50)])
@pytest.mark.parametrize(("cells", "weights"), [(1, 1), (7, 5), (112, 112), (3, 0)])
@pytest.mark.parametrize("how", [PROJECT, SUM, MEAN])
def test_two_sets_of_rows_become_one(rows: int, other_rows: int, cells: int, weights: int, how: int) -> None:
    random = np.random.default_rng(rows + cells)
    sizes = rows, other_rows
    sets = [(np.sort(random.choice(50, size, replace=False)), _cells(size, cells, seed=size + 1)) for size in sizes]
    ids, found = _combined(sets, _layout(cells, weights), how, [FLOAT32] * 2)
    one, other = (dict(zip(ids.tolist(), cells.astype(float), strict=True)) for ids, cells in sets)
    np.testing.assert_array_equal(ids, sorted({*one, *other}))
    for row, values in zip(ids.tolist(), found, strict=True):
        a, b = one.get(row, np.zeros(cells)), other.get(row, np.zeros(cells))
        summed = (a + b)[:weights] / (2 if how == MEAN else 1)
        leading = twin.project(a[:weights], b[:weights]) if how == PROJECT else summed
        expected = np.concatenate([leading, (a + b)[weights:]])
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5 * max(abs(a).max(), abs(b).max()))


def test_forms_may_differ() -> None:
    """As at a parameter actor, which has others' changes exactly and a node's rounded."""
    ids, layout = np.arange(20), _layout(50, 40)
    one, other = _cells(20, 50, 1), _cells(20, 50, 2)
    for forms in ([FLOAT32, INT8], [INT4, BFLOAT16]):
        rounded = [_there_and_back(cells, layout, form) for cells, form in zip((one, other), forms, strict=True)]
        _, found = _combined([(ids, one), (ids, other)], layout, SUM, forms)
        np.testing.assert_array_equal(found, rounded[0] + rounded[1])


def test_a_row_with_itself_is_itself_and_with_another_direction_the_sum() -> None:
    ids, cells, layout = np.arange(8), _cells(8, 112), _layout(112, 112)
    np.testing.assert_allclose(_combined([(ids, cells)] * 2, layout, PROJECT, [FLOAT32] * 2)[1], cells, rtol=1e-5)
    left, right = cells.copy(), cells.copy()
    left[:, 50:], right[:, :50] = 0, 0
    found = _combined([(ids, left), (ids, right)], layout, PROJECT, [FLOAT32] * 2)[1]
    np.testing.assert_array_equal(found, cells)


def test_what_is_not_finite_stays_so() -> None:
    ids = np.arange(3)
    one, other = np.ones((3, 5), np.float32), np.ones((3, 5), np.float32)
    one[0, 2], other[1, 2] = np.nan, np.inf
    found = _combined([(ids, one), (ids, other)], _layout(5, 5), PROJECT, [FLOAT32] * 2)[1]
    assert not np.isfinite(found[:2, 2]).any()
    np.testing.assert_array_equal(found[2], 1)
