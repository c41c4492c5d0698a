"""Changes of rows as one run of bytes, to be sent, and back.

A packet is a head and one section a table. A section is a head of its own, the numbers of the rows, then a record a
row: the weights, then what an update rule remembers of them, each in the form that is asked for. Cells that do not add
up are not sent. All numbers are little-endian; records begin at a multiple of four bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Table
from hogwild.errors import InputError, brief
from hogwild.executor.delta import RowIds
from hogwild.kernels.loop.names import (
    TOO_LARGE,
    TOO_LONG,
    gap_bytes,
    read_bitmap,
    read_gaps,
    write_bitmap,
    write_gaps,
)
from hogwild.kernels.loop.records import Layout, record_bytes, sound_records

Form = Literal["float32", "bfloat16", "int8", "int4"]
Packet = npt.NDArray[np.uint8]

FORMS: tuple[Form, ...] = get_args(Form)
_MAGIC, _VERSION = b"hwCH", 2
_HEAD = struct.Struct("<4sBBH")         # magic, version, form, sections
_SECTION = struct.Struct("<HBxIIQQQ")   # table, naming, weights and others of a row, rows, first row, bytes of names
_BITMAP, _GAPS = range(2)
_ALIGNED = 4


class Rows(NamedTuple):
    """Changes of some rows of a table, as they are sent. numbers: of the rows, rising; body: a record for each."""

    table: str
    numbers: RowIds
    body: Packet
    form: Form

    def kept(self) -> Rows:
        """A copy, of what was only lent."""
        return self._replace(numbers=self.numbers.copy(), body=self.body.copy())


@lru_cache(maxsize=256)
def layout_of(table: Table) -> Layout:
    """The cells of a row that are sent: those that add up."""
    kept = table.mask()
    width = table.cells if table.width is None else table.width
    weights, others = int(kept[:width].sum()), int(kept[width:].sum())
    straight = others == 0 and bool(kept[:weights].all())
    return Layout(weights, others, straight, np.flatnonzero(kept).astype(np.int64))


@lru_cache(maxsize=256)
def record_size(table: Table, form: Form) -> int:
    """Bytes of a record."""
    layout = layout_of(table)
    return int(record_bytes(FORMS.index(form), layout.weights, layout.others))


def pack(changes: Sequence[Rows], tables: Mapping[str, Table], form: Form) -> Packet:
    """Changes of rows, of which a table has one at the most, all of this form, as bytes that `unpack` reads."""
    if len({change.table for change in changes}) < len(changes):
        raise InputError("a table has changes twice; add them up first.")
    pieces = [_bytes_of(_HEAD.pack(_MAGIC, _VERSION, FORMS.index(form), len(changes)))]
    places = {name: place for place, name in enumerate(tables)}
    for change in changes:
        layout = layout_of(tables[change.table])
        naming, first, names = _name_rows(change.numbers)
        head = _SECTION.pack(
            places[change.table], naming, layout.weights, layout.others, len(change.numbers), first, len(names)
        )
        pieces += [_bytes_of(head), names, _padding(len(names)), change.body, _padding(len(change.body))]
    return np.concatenate(pieces)


def unpack(packet: Packet, tables: Mapping[str, Table]) -> list[Rows]:
    """Changes of rows out of the bytes of a packet, which may come from anywhere."""
    if packet.dtype != np.uint8 or packet.ndim != 1:
        raise InputError(f"a packet of changes is a row of bytes, not {packet.dtype} of shape {brief(packet.shape)}.")
    # What came from another process may be read-only: that is another type, for which kernels would be compiled anew.
    reader = _Reader(np.require(packet, requirements=["C", "A", "W"]))
    magic, version, form, sections = reader.read(_HEAD)
    if magic != _MAGIC or version != _VERSION or form >= len(FORMS):
        raise _damaged("it begins with none of our heads")
    changes = [_read_section(reader, tables, FORMS[form]) for _ in range(sections)]
    if reader.left:
        raise _damaged(f"{reader.left:,} bytes belong to no table")
    if len({change.table for change in changes}) < len(changes):
        raise _damaged("a table has changes twice")
    return changes


def _damaged(what: str) -> InputError:
    return InputError(
        f"a packet of changes is damaged, or of another version of hogwild: {what}; "
        "run the same version on all nodes, with the same options."
    )


def _bytes_of(data: bytes) -> Packet:
    return np.frombuffer(data, np.uint8)


def _padding(size: int) -> Packet:
    return np.zeros(-size % _ALIGNED, np.uint8)


# -- numbers of rows --------------------------------------------------------------------------------------------------


def _name_rows(numbers: RowIds) -> tuple[int, int, Packet]:
    """How rows are named, the first of them, and the others: one bit a row of their range, or how far on each is."""
    if not len(numbers):
        return _BITMAP, 0, np.zeros(0, np.uint8)
    first, size = int(numbers[0]), gap_bytes(numbers)
    bits = (int(numbers[-1]) - first) // 8 + 1
    if size >= bits:
        names = np.zeros(bits, np.uint8)
        write_bitmap(numbers, names)
        return _BITMAP, first, names
    names = np.empty(size, np.uint8)
    write_gaps(numbers, names)
    return _GAPS, first, names


def _read_bitmap(names: Packet, count: int, first: int, rows: int) -> RowIds:
    # No more bits than there are rows are read, whatever the packet says.
    if not count or first >= rows or len(names) > (rows - first) // 8 + 1:
        raise _damaged("a bitmap is longer than its table")
    numbers = np.empty(count, np.int64)
    found = read_bitmap(names, first, numbers)
    if found != count or numbers[0] != first or (numbers[-1] - first) // 8 != len(names) - 1:
        raise _damaged("a bitmap has not as many rows as it should")
    return numbers


def _read_gaps(names: Packet, count: int, first: int, rows: int) -> RowIds:
    if first >= rows:
        raise _damaged("a row number is too large")
    numbers = np.full(count, first, np.int64)
    found = read_gaps(names, numbers, rows)
    if found in (TOO_LONG, TOO_LARGE):
        raise _damaged(f"a row number is too {'long' if found == TOO_LONG else 'large'}")
    if found != count:
        raise _damaged("there are not as many row numbers as there should be")
    return numbers


# -- sections ---------------------------------------------------------------------------------------------------------


def _read_section(reader: _Reader, tables: Mapping[str, Table], form: Form) -> Rows:
    """The changes of one table; no memory is taken for more rows than the packet has bytes for."""
    place, naming, weights, others, count, first, named = reader.read(_SECTION)
    if place >= len(tables):
        raise _damaged(f"it has changes of table {place}, of {len(tables)}")
    name, table = list(tables.items())[place]
    layout = layout_of(table)
    if (weights, others) != (layout.weights, layout.others):
        raise _damaged(f"rows of {name!r} have {weights} + {others} cells, not {layout.weights} + {layout.others}")
    size = record_size(table, form)
    if count > table.rows or named + count * size > reader.left or naming not in (_BITMAP, _GAPS):
        raise _damaged(f"it has not the {count:,} rows of {name!r}")
    names = reader.take(named)
    reader.skip_padding(named)
    numbers = np.zeros(0, np.int64)
    if count:
        numbers = (_read_bitmap if naming == _BITMAP else _read_gaps)(names, count, first, table.rows)
        if numbers[-1] >= table.rows:
            raise _damaged(f"it has row {numbers[-1]:,} of {name!r}, which has {table.rows:,}")
    elif named or first or naming != _BITMAP:
        raise _damaged(f"no row of {name!r} has a name")
    body = reader.take(count * size)
    reader.skip_padding(len(body))
    if not sound_records(body, count, layout, FORMS.index(form)):
        raise _damaged("a cell, or the size of a step, is no finite number")
    return Rows(name, numbers, body, form)


class _Reader:
    """Bytes of a packet, from its beginning on."""

    def __init__(self, packet: Packet) -> None:
        self._packet, self._at = packet, 0

    @property
    def left(self) -> int:
        return len(self._packet) - self._at

    def read(self, head: struct.Struct) -> tuple[Any, ...]:
        return head.unpack(self.take(head.size).tobytes())

    def take(self, size: int) -> Packet:
        if size > self.left:
            raise _damaged(f"{size - self.left:,} bytes are missing")
        self._at += size
        return self._packet[self._at - size : self._at]

    def skip_padding(self, size: int) -> None:
        if self.take(-size % _ALIGNED).any():
            raise _damaged("what fills it up is not 0")
