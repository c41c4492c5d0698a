"""Delimited text (CSV, TSV and their kin) as frames: our kernel finds the records, pyarrow reads their fields."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from hogwild.arrays import Offsets
from hogwild.errors import InputError
from hogwild.feeds.io.blocks import Block, check_utf8
from hogwild.feeds.io.source import Bytes
from hogwild.feeds.tables.columns import SAMPLE, Plan
from hogwild.feeds.tables.frames import Frame, WideCells
from hogwild.kernels.compiler.jit import ready
from hogwild.kernels.parse.tables import NO_QUOTE, Records, copy_fields, count_ends, find_records, make_records

QUOTE = '"'
DELIMITERS = (",", "\t", ";", "|")
WORDS = pa.dictionary(pa.int32(), pa.string())
_CELLS = 1 << 21   # fields of those rows, where there are very many columns,
_LEAST = 4         # and how many rows at the least
_SNIFFED = 50      # records whose number of fields must agree


class Dialect(NamedTuple):
    """What separates fields, and whether quotes around a field mean anything."""

    delimiter: str
    quoted: bool

    def records(self, text: Bytes) -> tuple[Records, int]:
        """The records of a text, and where the last one ends; what follows is inside an open quote."""
        room = make_records(ready(count_ends, len(text))(text))
        find = ready(find_records, len(text))
        count, end = find(text, ord(self.delimiter), ord(QUOTE) if self.quoted else NO_QUOTE, room)
        return Records(*(array[:count] for array in room)), int(end)


def sniff(head: str, form: str, inside: Collection[str] = ()) -> Dialect:
    """The dialect of a file that begins so; `form` is csv or tsv. inside: what stands between the values of a field.

    The delimiter is the one that divides the first lines into the same number of fields, the more the better.
    Tab-separated files know no quotes, unless every field that begins with one ends with one.
    """
    text = as_bytes(head)
    best, found = (False, 1), "\t" if form == "tsv" else ","
    for delimiter in DELIMITERS if form != "tsv" else ():
        if delimiter in inside:
            continue
        fields = Dialect(delimiter, True).records(text)[0].fields[:_SNIFFED]
        score = (bool(len(fields)) and bool((fields == fields[0]).all()), int(fields[0]) if len(fields) else 1)
        if score[1] > 1 and score > best:
            best, found = score, delimiter
    if found != "\t":
        return Dialect(found, True)
    begun = [field for line in head.splitlines()[:SAMPLE] for field in line.split("\t") if field.startswith(QUOTE)]
    return Dialect(found, bool(begun) and all(len(field) > 1 and field.endswith(QUOTE) for field in begun))


def as_bytes(text: str) -> Bytes:
    """Text as an array, with a newline at its end."""
    return np.frombuffer(bytearray(text.encode("utf-8", errors="replace") + b"\n"), np.uint8)


def sample_rows(head: str, dialect: Dialect) -> list[list[str]]:
    """The first records of a file, those with the same number of fields as the first; its header may be among them."""
    text = as_bytes(head)
    records, _ = dialect.records(text)
    if not len(records.fields):
        return []
    count = int(records.fields[0])
    few = min(SAMPLE + 1, max(_LEAST, _CELLS // count))
    starts = records.starts[:few][records.fields[:few] == count]
    cells = read_fields(text, starts, dialect, np.ones(count, np.bool_), pa.string()).fill_null("").to_pylist()
    return [cells[start : start + count] for start in range(0, len(cells), count)]


def header_lines(head: str, dialect: Dialect) -> int:
    """Lines up to the end of the first record: blank ones before it count, and it may have line ends in quotes."""
    text = as_bytes(head)
    return int(np.count_nonzero(text[: dialect.records(text)[0].ends[0]] == ord("\n")))


def whole_records(blocks: Iterator[Block], dialect: Dialect) -> Iterator[tuple[Block, Records | None]]:
    """The blocks, cut anew where a line end stands inside quotes; with the records where they were sought for that."""
    kept: Block | None = None
    for block in blocks:
        if kept is not None:
            block = kept._replace(text=np.concatenate((kept.text, block.text)))
            kept = None
        if not dialect.quoted or not (block.text == ord(QUOTE)).any():
            yield block, None
            continue
        records, end = dialect.records(block.text)
        if end < len(block.text):
            line = block.line + int(np.count_nonzero(block.text[:end] == ord("\n")))
            kept = block._replace(line=line, text=block.text[end:])
            if len(kept.text) > block.source.max_line:
                raise _open_quote(kept)
        if end:
            yield block._replace(text=block.text[:end]), records
    if kept is not None:
        raise _open_quote(kept)


def _open_quote(block: Block) -> InputError:
    place = block.source.place(block.line)
    return InputError(f"{place}: a quote is opened in this record and never closed; close it, or double it (\"\").")


class Shape(NamedTuple):
    """How the records of a file are read: their number of fields, where the wanted columns stand, and their types."""

    dialect: Dialect
    fields: int
    places: Mapping[str, int]
    numeric: Collection[str]
    texts: Collection[str]
    plain: bool = True  # whether Arrow may read the numbers; else they are strings

    @property
    def number(self) -> Any:
        """The type of columns of numbers."""
        return pa.float64() if self.plain else pa.string()

    def kind_of(self, name: str) -> Any:
        """The type of a column: numbers, texts, or else words."""
        if name in self.numeric:
            return self.number
        return pa.string() if name in self.texts else WORDS


class Found(NamedTuple):
    """The records of a block that have as many fields as they should; `lines` and `wrong` as in a frame."""

    text: Bytes
    starts: Offsets
    ends: Offsets
    lines: Offsets
    wrong: Mapping[int, str]
    replaced: int

    def frame(self, block: Block, arrays: Mapping[str, Any]) -> Frame:
        """Their fields, that were read."""
        seen = len(self.starts) + len(self.wrong)
        return Frame(block.source, block.file, self.lines, arrays, self.wrong, seen, self.replaced)

    def whole_text(self) -> Bytes:
        """The text of these records alone."""
        if not self.wrong and len(self.starts) and self.starts[0] == 0 and self.ends[-1] == len(self.text):
            return self.text
        bounds = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        parts = [self.text[start:end] for start, end in bounds]
        return np.concatenate(parts) if parts else self.text[:0]


def read_records(block: Block, shape: Shape, replace: bool, records: Records | None) -> Found:
    """Find the records of a block, if they are not known."""
    text, replaced = check_utf8(block, replace)  # what is replaced ends no field
    if records is None:
        records, _ = shape.dialect.records(text)
    good = records.fields == shape.fields
    lines = records.lines + block.line
    wrong = {
        int(lines[k]): f"expected {shape.fields} columns, found {int(records.fields[k])}" for k in np.flatnonzero(~good)
    }
    return Found(text, records.starts[good], records.ends[good], lines[good], wrong, replaced)


def read_block(block: Block, shape: Shape, replace: bool, records: Records | None = None) -> Frame:
    """Read the wanted columns of a block."""
    dialect, count, places, numeric = shape[:4]
    found = read_records(block, shape, replace, records)
    text = found.whole_text()
    types = {place: shape.kind_of(name) for name, place in places.items()}
    numbers = [places[name] for name in numeric if name in places]
    try:
        table = _parse(text, dialect, count, types)
    except pa.ArrowInvalid:  # some field is no number: read_numbers will find it
        table = _parse(text, dialect, count, {**types, **dict.fromkeys(numbers, pa.string())})
    if table.num_rows != len(found.lines):
        raise unclear_quotes(block)
    return found.frame(block, {name: _whole(table[str(place)]) for name, place in places.items()})


def unclear_quotes(block: Block) -> InputError:
    """Arrow found other fields in a block than we did."""
    place = block.source.place(block.line)
    return InputError(f"{place}: quotes in the lines from here on cannot be told apart.")


def read_fields(text: Bytes, starts: Offsets, dialect: Dialect, wanted: npt.NDArray[np.bool_], kind: Any) -> Any:
    """The fields k of all records for which wanted[k], one after another, as one array; empty ones are null.

    The records must have as many fields as there are in `wanted`.
    """
    if not len(starts) or not wanted.any():
        return pa.array([], kind)
    # A line that is left out again keeps Arrow from taking the first field's beginning for a byte-order mark.
    fields = np.empty(len(text) + 1, np.uint8)
    fields[0] = ord("\n")
    signs = np.array([ord(dialect.delimiter), ord(QUOTE) if dialect.quoted else NO_QUOTE])
    size = 1 + ready(copy_fields, len(text))(text, starts, signs, wanted, fields[1:])
    return _whole(_parse(fields[:size], dialect, 1, {0: kind}, blank=True)["0"])[1:]


def _parse(text: Bytes, dialect: Dialect, count: int, types: Mapping[int, Any], blank: bool = False) -> Any:
    """A table of the wanted columns, named by their numbers; empty fields are null. blank: an empty line is a row."""
    names = [str(k) for k in range(count)]
    if not len(text):
        return pa.table({str(k): pa.array([], kind) for k, kind in types.items()})
    csv = pyarrow.csv
    return csv.read_csv(
        pa.BufferReader(pa.py_buffer(text)),
        csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
        csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=QUOTE if dialect.quoted else False,
            newlines_in_values=dialect.quoted,
            ignore_empty_lines=not blank,
        ),
        csv.ConvertOptions(
            check_utf8=False, column_types={str(k): kind for k, kind in types.items()},
            include_columns=[str(k) for k in types], null_values=[""], strings_can_be_null=True,
        ),
    )


def _whole(column: Any) -> Any:
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.unify_dictionaries().combine_chunks() if column.num_chunks else pa.array([], column.type)


# -- very many columns: all fields of one kind are read as a single long column ---------------------------------------
# A column of Arrow takes some 10 kB and 100 microseconds a block, whatever it holds; here it takes what its fields do.

Places = npt.NDArray[np.int64]


class WideShape(NamedTuple):
    """The shape of the label and the text; and where the columns of numbers and of categories stand in a record."""

    shape: Shape
    numeric: Places
    categorical: Places


def wide_shape(shape: Shape, plan: Plan) -> WideShape:
    """For the columns of a plan, in its order."""
    numbers, words = (
        np.fromiter((shape.places[name] for name in names), np.int64, len(names))
        for names in (plan.numeric, plan.categorical)
    )
    others = {name: shape.places[name] for name in (plan.label, plan.text, *plan.multi) if name in shape.places}
    return WideShape(shape._replace(places=others), numbers, words)


def read_wide(block: Block, wide: WideShape, replace: bool, records: Records | None = None) -> Frame:
    """Read a block: label and text are columns of the frame, numbers and categories are its `cells`."""
    shape = wide.shape
    found = read_records(block, shape, replace, records)

    def read(places: Any, kind: Any) -> Any:
        wanted = np.zeros(shape.fields, np.bool_)
        wanted[places] = True
        try:
            return read_fields(found.text, found.starts, shape.dialect, wanted, kind)
        except pa.ArrowInvalid:  # some field is no number: read_numbers will find it
            return read_fields(found.text, found.starts, shape.dialect, wanted, pa.string())

    arrays = {name: read(place, shape.kind_of(name)) for name, place in shape.places.items()}
    numbers, words = read(wide.numeric, shape.number), read(wide.categorical, WORDS)
    fields = len(found.lines) * len(wide.numeric), len(found.lines) * len(wide.categorical)
    if (len(numbers), len(words)) != fields:
        raise unclear_quotes(block)
    cells = WideCells(numbers, words, (_ranks(wide.numeric), _ranks(wide.categorical)))
    return found.frame(block, arrays)._replace(cells=cells)


def _ranks(places: Places) -> npt.NDArray[np.intp]:
    """Of each place, the how manieth it is in the order of the file."""
    return np.argsort(np.argsort(places))
