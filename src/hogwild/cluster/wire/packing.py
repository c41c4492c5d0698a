"""Changes of rows as one run of bytes, to be sent, and back.

A packet is a head and one section a table. A section is a head of its own, the numbers of the rows, one scale a row for
each part that has been counted in steps, then the cells: first the weights of all rows, then what an update rule
remembers of them. Cells that do not add up are not sent. All numbers are little-endian, and nothing is aligned.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Table
from hogwild.errors import InputError, brief
from hogwild.executor.delta import RowDelta, RowIds
from hogwild.kernels.loop import combine as kernels

Form = Literal["float32", "bfloat16", "int8", "int4"]
Packet = npt.NDArray[np.uint8]

_FORMS: tuple[Form, ...] = get_args(Form)
_MAGIC, _VERSION = b"hwCH", 1
_HEAD = struct.Struct("<4sBBH")         # magic, version, form, sections
_SECTION = struct.Struct("<HBxIIQQQ")   # table, naming, weights and others of a row, rows, first row, bytes of names
_BITMAP, _GAPS = range(2)
_LONGEST = 9                            # bytes of a gap: 63 bits

Kind = TypeVar("Kind", bound=np.generic)


def pack(changes: Sequence[RowDelta], tables: Mapping[str, Table], form: Form) -> Packet:
    """Changes of rows, at most one of each table, as bytes that `unpack` reads.

    Their ids are row numbers, rising. With `float32` they come back bit for bit, whatever they are; with any other form
    each cell has to be a finite number.

    Examples
    --------
    >>> table = Table(rows=100, cells=2)
    >>> change = RowDelta("weights", np.array([3, 5]), np.array([[1, 0.5], [0, 0]], np.float32))
    >>> packet = pack([change], {"weights": table}, "int8")
    >>> len(packet), unpack(packet, {"weights": table})[0].ids
    (57, array([3, 5]))
    """
    if form not in _FORMS:
        raise InputError(f"changes cannot be sent as {brief(form)}, but as one of {', '.join(_FORMS)}.")
    if len({change.table for change in changes}) < len(changes):
        raise InputError("a table has changes twice; add them up first.")
    pieces = [_bytes_of(_HEAD.pack(_MAGIC, _VERSION, _FORMS.index(form), len(changes)))]
    places = {name: place for place, name in enumerate(tables)}
    for given in changes:
        change = checked(given, tables)
        layout = _Layout.of(tables[change.table], form)
        naming, first, names = _name_rows(change.ids)
        sizes = layout.weights, layout.others, len(change.ids), first, len(names)
        pieces += [_bytes_of(_SECTION.pack(places[change.table], naming, *sizes)), names]
        pieces += _shrink(change, layout)
    return np.concatenate(pieces)


def unpack(packet: Packet, tables: Mapping[str, Table]) -> list[RowDelta]:
    """Changes of rows out of the bytes of a packet, which may come from anywhere."""
    if packet.dtype != np.uint8 or packet.ndim != 1:
        raise InputError(f"a packet of changes is a row of bytes, not {packet.dtype} of shape {brief(packet.shape)}.")
    reader = _Reader(packet)
    magic, version, form, sections = reader.read(_HEAD)
    if magic != _MAGIC or version != _VERSION or form >= len(_FORMS):
        raise _damaged("it begins with none of our heads")
    changes = [_read_section(reader, tables, _FORMS[form]) for _ in range(sections)]
    if reader.left:
        raise _damaged(f"{reader.left:,} bytes belong to no table")
    if len({change.table for change in changes}) < len(changes):
        raise _damaged("a table has changes twice")
    return changes


def checked(change: RowDelta, tables: Mapping[str, Table]) -> RowDelta:
    """A change of one of these tables, of its shape, rows rising, in arrays as all kernels take them.

    What came from another process may be read-only: that is another type, for which kernels would be compiled anew.
    """
    if change.table not in tables:
        raise InputError(f"there is no table {brief(change.table)} here, but {', '.join(tables)}.")
    table = tables[change.table]
    expected = len(change.ids), table.cells
    if change.cells.shape != expected:
        raise InputError(f"changes of {change.table!r} are {change.cells.shape}; expected {expected}.")
    ids = np.require(change.ids, np.int64, ["C", "A", "W"])
    if len(ids) and (ids[0] < 0 or ids[-1] >= table.rows or (ids[1:] <= ids[:-1]).any()):
        raise InputError(f"row numbers of {change.table!r} have to rise, from 0 to {table.rows - 1} at the most.")
    return RowDelta(change.table, ids, np.require(change.cells, np.float32, ["C", "A", "W"]))


def _damaged(what: str) -> InputError:
    return InputError(
        f"a packet of changes is damaged, or of another version of hogwild: {what}; "
        "run the same version on all nodes, with the same options."
    )


def _bytes_of(array: npt.NDArray[np.generic] | bytes) -> Packet:
    if isinstance(array, bytes):
        return np.frombuffer(array, np.uint8)
    return array.reshape(-1).view(np.uint8)


# -- numbers of rows --------------------------------------------------------------------------------------------------


def _name_rows(ids: RowIds) -> tuple[int, int, Packet]:
    """How rows are named, the first of them, and the others: one bit a row of their range, or how far on each is."""
    if not len(ids):
        return _BITMAP, 0, np.zeros(0, np.uint8)
    first, steps = int(ids[0]), np.diff(ids) - 1
    lengths = np.ones(len(steps), np.int64)
    for size in range(1, _LONGEST):
        longer = steps >> 7 * size > 0
        if not longer.any():
            break
        lengths += longer
    if int(lengths.sum()) >= (int(ids[-1]) - first) // 8 + 1:
        flags = np.zeros(int(ids[-1]) - first + 1, np.uint8)
        flags[ids - first] = 1
        return _BITMAP, first, np.packbits(flags)
    ends = np.cumsum(lengths)
    gaps = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    for size in range(int(lengths.max(initial=0))):
        some = lengths > size
        more = (lengths[some] > size + 1) << 7
        gaps[(ends - lengths)[some] + size] = (steps[some] >> 7 * size) & 127 | more
    return _GAPS, first, gaps


def _read_bitmap(names: Packet, count: int, first: int, rows: int) -> RowIds:
    # No more bits than there are rows are unpacked, whatever the packet says.
    if not count or first >= rows or len(names) > (rows - first) // 8 + 1:
        raise _damaged("a bitmap is longer than its table")
    found = np.flatnonzero(np.unpackbits(names))
    if len(found) != count or found[0] != 0 or found[-1] // 8 != len(names) - 1:
        raise _damaged("a bitmap has not as many rows as it should")
    return found.astype(np.int64, copy=False) + first


def _read_gaps(names: Packet, count: int, first: int, rows: int) -> RowIds:
    ends = np.flatnonzero(names < 128)
    if len(ends) != count - 1 or (len(names) and names[-1] >= 128) or first >= rows:
        raise _damaged("there are not as many row numbers as there should be")
    ids = np.full(count, first, np.int64)
    if count > 1:
        starts = np.concatenate(([0], ends[:-1] + 1))
        lengths = ends - starts + 1
        if lengths.max() > _LONGEST:
            raise _damaged("a row number is too long")
        digits = np.arange(len(names)) - np.repeat(starts, lengths)
        steps = np.add.reduceat((names & 127).astype(np.int64) << 7 * digits, starts)
        if steps.max() >= rows:  # before they are summed, which could overflow
            raise _damaged("a row number is too large")
        ids[1:] += np.cumsum(steps + 1)
    return ids


# -- cells ------------------------------------------------------------------------------------------------------------


class _Layout(NamedTuple):
    """How the cells of a table are sent. weights, others: sent cells of a row, before and after `Table.width`."""

    form: Form
    kept: npt.NDArray[np.bool_]
    weights: int
    others: int

    @classmethod
    def of(cls, table: Table, form: Form) -> _Layout:
        kept = table.mask()
        width = table.cells if table.width is None else table.width
        return cls(form, kept, int(kept[:width].sum()), int(kept[width:].sum()))

    @property
    def cells(self) -> int:
        return self.weights + self.others

    @property
    def leading(self) -> bool:
        """Whether what is sent is the beginning of a row, of weights alone: then rows need not be made anew for it."""
        return self.others == 0 and bool(self.kept[: self.weights].all())

    def parts(self) -> list[_Part]:
        """Parts of a row that have a scale each."""
        first, last = _Part((0, self.weights), self.form == "int4"), _Part((self.weights, self.cells), False)
        return [part for part in (first, last) if part.bounds[0] < part.bounds[1]]

    def bytes_of_row(self) -> int:
        """Bytes of the cells of a row, with its scales."""
        if self.form in ("float32", "bfloat16"):
            return self.cells * (CELL if self.form == "float32" else 2)
        return sum(CELL + part.bytes_of_row for part in self.parts())


class _Part(NamedTuple):
    """Cells of a row that have one scale. halved: two of them are a byte."""

    bounds: tuple[int, int]
    halved: bool

    @property
    def bytes_of_row(self) -> int:
        cells = self.bounds[1] - self.bounds[0]
        return (cells + 1) // 2 if self.halved else cells


def _shrink(change: RowDelta, layout: _Layout) -> list[Packet]:
    """The cells that are sent, in their form."""
    cells = change.cells
    if not layout.kept.all() and (layout.form in ("float32", "bfloat16") or not layout.leading):
        cells = cells[:, : layout.cells] if layout.leading else cells.compress(layout.kept, axis=1)
        cells = np.ascontiguousarray(cells)
    if layout.form == "float32":
        return [_bytes_of(cells)]
    if layout.form == "bfloat16":
        halves = np.empty(cells.size, np.uint16)
        if not kernels.round_cells(cells.reshape(-1), halves):
            raise _not_finite(change, int(np.argmin((np.abs(cells) <= np.float32(kernels.LARGEST)).all(axis=1))))
        return [_bytes_of(halves)]
    pieces = []
    for part in layout.parts():
        scales = np.empty(len(cells), np.float32)
        steps = np.empty((len(cells), part.bytes_of_row), np.uint8 if part.halved else np.int8)
        count = kernels.count_steps4 if part.halved else kernels.count_steps8
        done = count(cells, part.bounds, scales, steps)
        if done < len(cells):
            raise _not_finite(change, done)
        pieces += [_bytes_of(scales), _bytes_of(steps)]
    return pieces


def _not_finite(change: RowDelta, place: int) -> InputError:
    return InputError(
        f"the change of row {change.ids[place]} of table {change.table!r} is not finite; lower the learning rate."
    )


def _read_section(reader: _Reader, tables: Mapping[str, Table], form: Form) -> RowDelta:
    """The changes of one table; no memory is taken for more rows than the packet has bytes for."""
    place, naming, weights, others, count, first, named = reader.read(_SECTION)
    if place >= len(tables):
        raise _damaged(f"it has changes of table {place}, of {len(tables)}")
    name, table = list(tables.items())[place]
    layout = _Layout.of(table, form)
    if (weights, others) != (layout.weights, layout.others):
        raise _damaged(f"rows of {name!r} have {weights} + {others} cells, not {layout.weights} + {layout.others}")
    if count > table.rows or named + count * layout.bytes_of_row() > reader.left or naming not in (_BITMAP, _GAPS):
        raise _damaged(f"it has not the {count:,} rows of {name!r}")
    names = reader.take(named)
    ids = np.zeros(0, np.int64)
    if count:
        ids = (_read_bitmap if naming == _BITMAP else _read_gaps)(names, count, first, table.rows)
        if ids[-1] >= table.rows:
            raise _damaged(f"it has row {ids[-1]:,} of {name!r}, which has {table.rows:,}")
    elif named or first or naming != _BITMAP:
        raise _damaged(f"no row of {name!r} has a name")
    if layout.leading:
        cells = np.empty((count, table.cells), np.float32)
        cells[:, layout.cells :] = 0
        found = _grow(reader, count, layout, cells)
        if found is not cells:
            cells[:, : layout.cells] = found
        return RowDelta(name, ids, cells)
    cells = np.zeros((count, table.cells), np.float32)
    cells[:, layout.kept] = _grow(reader, count, layout, np.empty((count, layout.cells), np.float32))
    return RowDelta(name, ids, cells)


def _grow(reader: _Reader, count: int, layout: _Layout, cells: Floats) -> Floats:
    """Cells as they were sent; written to the beginning of the rows of `cells` where that can be."""
    if layout.form == "float32":
        return reader.copy(np.float32, (count, layout.cells))
    if layout.form == "bfloat16" and cells.shape[1] != layout.cells:
        cells = np.empty((count, layout.cells), np.float32)
    if layout.form == "bfloat16":
        if not kernels.widen_cells(reader.copy(np.uint16, (cells.size,)), cells.reshape(-1)):
            raise _damaged("a cell is not finite")
        return cells
    for part in layout.parts():
        scales = reader.copy(np.float32, (count,))
        largest = np.float32(kernels.LARGEST / (kernels.STEPS4 if part.halved else kernels.STEPS8))
        if not ((scales >= 0) & (scales <= largest)).all():
            raise _damaged("a scale is no finite number above 0")
        weigh = kernels.weigh_steps4 if part.halved else kernels.weigh_steps8
        weigh(reader.copy(np.uint8 if part.halved else np.int8, (count, part.bytes_of_row)), scales, part.bounds, cells)
    return cells


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

    def copy(self, dtype: type[Kind], shape: tuple[int, ...]) -> npt.NDArray[Kind]:
        """An array of its own: what is in a packet may be read-only, and anywhere in memory."""
        array = np.empty(shape, dtype)
        array.reshape(-1).view(np.uint8)[:] = self.take(array.nbytes)
        return array
