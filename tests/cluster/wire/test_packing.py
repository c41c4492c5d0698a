"""Changes as bytes and back; and bytes that are no changes."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.wire.exchange import read, written
from hogwild.arrays import Table
from hogwild.cluster.wire import packing
from hogwild.cluster.wire.packing import Packet
from hogwild.errors import InputError
from hogwild.executor.delta import RowDelta

FORMS = ["float32", "bfloat16", "int8", "int4"]
TABLES = {
    "words": Table(rows=5000, cells=9, kind="ranked"),
    "squares": Table(rows=3000, cells=14, kind="ranked", width=7),
    "mixed": Table(rows=70, cells=6, additive=(True, False, True, True, False, True), width=3),
    "own": Table(rows=10, cells=2, additive=(False, False)),
    "bias": Table(rows=1, cells=1, kind="scalar"),
    "none": Table(rows=0, cells=3),
}


def pack(changes: list[RowDelta], tables: dict[str, Table], form: Any) -> Packet:
    """Changes of floats as bytes."""
    return packing.pack(written(changes, tables, form), tables, form)


def unpack(packet: Packet, tables: dict[str, Table]) -> list[RowDelta]:
    """And back."""
    return read(packing.unpack(packet, tables), tables)


def make(rows: dict[str, Any], seed: int = 0) -> list[RowDelta]:
    """Random changes of the given rows."""
    random = np.random.default_rng(seed)
    changes = []
    for name, ids in rows.items():
        cells = random.normal(size=(len(ids), TABLES[name].cells)).astype(np.float32)
        changes.append(RowDelta(name, np.array(ids, np.int64), np.where(TABLES[name].mask(), cells, np.float32(0))))
    return changes


def same(one: list[RowDelta], other: list[RowDelta]) -> None:
    """Whether changes are the same to the last bit."""
    assert [change.table for change in one] == [change.table for change in other]
    for a, b in zip(one, other, strict=True):
        assert a.ids.dtype == b.ids.dtype == np.int64
        np.testing.assert_array_equal(a.ids, b.ids)
        assert a.cells.dtype == b.cells.dtype == np.float32
        assert a.cells.shape == b.cells.shape
        np.testing.assert_array_equal(a.cells.view(np.uint32), b.cells.view(np.uint32))


EVERY = make({"squares": [0, 1, 2, 9, 500, 2998, 2999], "words": range(300), "mixed": [69], "own": [3, 9], "bias": [0]})


@st.composite
def _changes(draw: st.DrawFn) -> list[RowDelta]:
    names = draw(st.lists(st.sampled_from(list(TABLES)), unique=True))
    return make({name: sorted(draw(st.sets(st.integers(0, TABLES[name].rows - 1), max_size=40)))
                 if TABLES[name].rows else [] for name in names}, seed=draw(st.integers(0, 99)))


@settings(max_examples=60, deadline=None)
@given(changes=_changes(), form=st.sampled_from(FORMS))
def test_there_and_back(changes: list[RowDelta], form: Any) -> None:
    packet = pack(changes, TABLES, form)
    assert packet.dtype == np.uint8
    assert packet.ndim == 1
    np.testing.assert_array_equal(packet, pack(changes, TABLES, form))
    back = unpack(packet, TABLES)
    if form == "float32":
        same(back, changes)
    assert [change.table for change in back] == [change.table for change in changes]
    for change, found in zip(changes, back, strict=True):
        table = TABLES[change.table]
        np.testing.assert_array_equal(found.ids, change.ids)
        assert found.cells.shape == change.cells.shape
        assert (found.cells[:, ~table.mask()] == 0).all()
        width = table.cells if table.width is None else table.width
        for part in (slice(0, width), slice(width, None)):
            before, after = change.cells[:, part].astype(float), found.cells[:, part]
            largest = np.abs(before).max(axis=1, keepdims=True, initial=0)
            bounds = {"float32": 0 * largest, "bfloat16": np.abs(before) / 256, "int8": largest / 127 / 2,
                      "int4": largest / (127 if part.start else 7) / 2}
            assert (np.abs(after - before) <= bounds[form] * (1 + 1e-4)).all()


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_a_few_bytes(form: Any) -> None:
    packet = pack([], TABLES, form)
    assert len(packet) < 16
    assert unpack(packet, TABLES) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e-42, np.finfo(np.float32).max])
def test_float32_takes_whatever_there_is(value: float) -> None:
    changes = make({"words": [1, 7]})
    changes[0].cells[1, 3] = value
    same(unpack(pack(changes, TABLES, "float32"), TABLES), changes)


@pytest.mark.parametrize("form", FORMS[1:])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, np.finfo(np.float32).max])
@pytest.mark.parametrize("cell", [0, 13])
def test_what_cannot_be_rounded_is_an_error(form: Any, value: float, cell: int) -> None:
    changes = make({"squares": [0, 1, 2]})
    changes[0].cells[1, cell] = value
    with pytest.raises(InputError, match="row 1 of table 'squares' is not finite"):
        pack(changes, TABLES, form)


@pytest.mark.parametrize(("ids", "most"), [
    (np.arange(3000), 0.2),                                                                    # a whole prefix
    (np.flatnonzero(np.random.default_rng(0).random(5000) < 0.6), 1.5),                        # most of one
    (np.sort(np.random.default_rng(0).choice(1 << 20, 3000, replace=False)), 4),               # a few of many
    (np.concatenate([np.arange(2000), 2000 + 997 * np.arange(900)]), 1.5),                     # a head and a tail
])
def test_numbers_of_rows_are_short(ids: np.ndarray, most: float) -> None:
    tables = {"t": Table(rows=1 << 20, cells=4)}
    packet = pack([RowDelta("t", ids, np.zeros((len(ids), 4), np.float32))], tables, "int8")
    assert len(packet) - 60 <= len(ids) * (4 + 4 + most)
    np.testing.assert_array_equal(unpack(packet, tables)[0].ids, ids)


@pytest.mark.parametrize("gap", [1, 127, 128, 129, 1 << 14, (1 << 14) + 1, 1 << 21, 1 << 40, (1 << 56) + 5])
def test_gaps_of_all_sizes(gap: int) -> None:
    tables = {"t": Table(rows=1 << 58, cells=1)}
    ids = np.array([3, 4, 4 + gap, 5 + gap], np.int64)
    changes = [RowDelta("t", ids, np.ones((4, 1), np.float32))]
    same(unpack(pack(changes, tables, "float32"), tables), changes)


@pytest.mark.parametrize("form", FORMS)
def test_arrays_of_other_processes_will_do(form: Any) -> None:
    packet = pack(EVERY, TABLES, form)
    shifted = np.frombuffer(b"x" + packet.tobytes(), np.uint8)[1:]
    assert not shifted.flags.writeable
    same(unpack(shifted, TABLES), unpack(packet, TABLES))


def test_a_table_has_changes_once() -> None:
    [bias] = written(make({"bias": [0]}), TABLES, "int8")
    with pytest.raises(InputError, match="twice"):
        packing.pack([bias, bias], TABLES, "int8")


@pytest.mark.parametrize(("form", "size"), [("float32", 56), ("bfloat16", 28), ("int8", 22), ("int4", 19)])
def test_records_are_short(form: Any, size: int) -> None:
    assert packing.record_size(TABLES["squares"], form) == size
    assert packing.record_size(TABLES["bias"], form) == (2 if form == "bfloat16" else 4)  # a cell for its step


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_packets_that_end_early_or_late(form: Any) -> None:
    packet = pack(make({"squares": [4, 5, 900], "mixed": [0, 3], "words": []}), TABLES, form)
    for size in range(len(packet)):
        with pytest.raises(InputError, match="damaged"):
            unpack(packet[:size], TABLES)
    with pytest.raises(InputError, match="belong to no table"):
        unpack(np.append(packet, np.uint8(0)), TABLES)


@pytest.mark.parametrize("form", FORMS)
def test_whatever_is_flipped_gives_changes_that_fit_or_an_error(form: Any) -> None:
    random = np.random.default_rng(0)
    packet = pack(make({"squares": [4, 5, 900, 2999], "mixed": [0, 3], "words": range(0, 40, 2)}), TABLES, form)
    heads = np.arange(min(len(packet), 150))  # half of the flips: there sizes and numbers of rows stand
    refused = 0
    unpack(packet, TABLES)  # compiled, or found
    tracemalloc.start()
    try:
        for case in range(300):
            broken = packet.copy()
            where = random.choice(heads if case % 2 else len(packet), random.integers(1, 4))
            broken[where] = random.integers(0, 256, len(where)) if case % 3 else broken[where] ^ 128
            try:
                found = unpack(broken, TABLES)
            except InputError:
                refused += 1
                continue
            for change in found:
                assert change.cells.shape == (len(change.ids), TABLES[change.table].cells)
                assert (np.diff(change.ids) > 0).all()
                assert len(change.ids) == 0 or 0 <= change.ids[0] <= change.ids[-1] < TABLES[change.table].rows
                assert form == "float32" or np.isfinite(change.cells).all()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert refused > 30


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200), head=st.booleans(), form=st.integers(0, 4))
def test_bytes_of_any_kind(data: bytes, head: bool, form: int) -> None:
    start = bytes(pack([], TABLES, "int8"))[:5] + struct.pack("<BH", form, 1) if head else b""
    try:
        found = unpack(np.frombuffer(start + data, np.uint8), TABLES)
    except InputError:
        return
    assert len(found) < 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("place", "kind", "value"), [
    (4, "B", 1), (5, "B", 4), (6, "H", 2), (6, "H", 0), (8, "H", 1), (8, "H", 900), (10, "B", 2), (10, "B", 1),
    (12, "I", 10), (16, "I", 1), (20, "Q", 1 << 63), (20, "Q", 299), (20, "Q", 0), (28, "Q", 4999), (28, "Q", 1 << 63),
    (36, "Q", 1 << 40), (36, "Q", 1), (44, "B", 0x7F), (44, "B", 0xFE),
])  # fmt: skip
def test_each_field_of_the_heads_is_checked(form: Any, place: int, kind: str, value: int) -> None:
    packet = pack(make({"words": range(300)}), TABLES, form).tobytes()
    broken = bytearray(packet)
    struct.pack_into("<" + kind, broken, place, value)
    assert broken != packet
    with pytest.raises(InputError, match="another version of hogwild"):
        unpack(np.frombuffer(broken, np.uint8), TABLES)


def test_row_numbers_past_the_end() -> None:
    packet = pack(make({"words": [0, 4000, 4990]}), TABLES, "int8")
    with pytest.raises(InputError, match="row 4,990"):
        unpack(packet, {**TABLES, "words": Table(rows=4900, cells=9)})
    with pytest.raises(InputError, match="too large"):
        unpack(packet, {**TABLES, "words": Table(rows=3000, cells=9)})


@pytest.mark.parametrize(("naming", "names", "message"), [
    (0, b"\x60", "bitmap"),                        # the first row of a bitmap is not in it
    (0, b"\xc0\x00", "bitmap"),                    # nor the last
    (0, b"", "bitmap"),
    (1, b"\x80" * 11 + b"\x00", "too long"),
    (1, b"\xff" * 8 + b"\x7f", "too large"),
    (1, b"\x80", "not as many"),
    (1, b"\x00\x00", "not as many"),
])  # fmt: skip
def test_names_of_rows_that_are_none(naming: int, names: bytes, message: str) -> None:
    section = struct.pack("<HBxIIQQQ", 0, naming, 9, 0, 2, 0, len(names)) + names + bytes(-len(names) % 4 + 2 * 9 * 4)
    packet = pack([], TABLES, "float32").tobytes()[:6] + struct.pack("<H", 1) + section
    with pytest.raises(InputError, match=message):
        unpack(np.frombuffer(packet, np.uint8), TABLES)


@pytest.mark.parametrize("form", FORMS)
def test_no_memory_is_taken_for_rows_that_are_not_there(form: Any) -> None:
    rows = 1 << 16
    tables = {"t": Table(rows=rows, cells=64)}
    packet = pack([RowDelta("t", np.arange(rows), np.zeros((rows, 64), np.float32))], tables, form)
    few = packet[: 52 + rows // 8].copy()  # heads and names
    unpack(packet, tables)  # compiled, or found
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="damaged"):
            unpack(few, tables)
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("scale", [np.nan, np.inf, -1.0, 3e38])
@pytest.mark.parametrize("form", ["int8", "int4"])
def test_steps_that_make_no_numbers(scale: float, form: Any) -> None:
    packet = pack(make({"words": [0]}), TABLES, form)
    packet[44:48] = np.array([scale], np.float32).view(np.uint8)
    with pytest.raises(InputError, match="size of a step"):
        unpack(packet, TABLES)


@pytest.mark.parametrize("packet", [np.zeros(4, np.int8), np.zeros((3, 4), np.uint8)])
def test_what_is_no_row_of_bytes(packet: np.ndarray) -> None:
    with pytest.raises(InputError, match="row of bytes"):
        unpack(packet, TABLES)  # type: ignore[arg-type]
