"""Records of delimited text: where they begin, on which line, and with how many fields.

The rules are those of the parser that reads the fields afterwards (pyarrow.csv): a quote counts at the beginning of a
field; inside quotes two quotes are one, and delimiters and line ends are text; after the closing quote the field
goes on unquoted; a line ends with LF, CR LF or CR; blank lines are no records.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets
from hogwild.kernels.compiler.jit import exact, kernel

# -- Cells of a table to sparse rows, in one pass ---------------------------------------------------------------------


class Cells(NamedTuple):
    """numbers[i, k]: row i of column k, NaN if missing; named[i, c]: id of a category, -1 if missing.

    scales[k]: factor of column k; fills[k]: what a missing number is; marks[k]: id of the feature that says that it is
    missing, -1 for none.
    """

    numbers: npt.NDArray[np.float64]
    named: Ids
    scales: Floats
    fills: Floats
    marks: Ids


class Filled(NamedTuple):
    """Features of the rows, one after another.

    For each column of numbers: the sum of squares, and how many are other than 0.
    """

    lengths: Offsets
    ids: Ids
    values: Floats
    squares: npt.NDArray[np.float64]
    present: Offsets


def make_filled(rows: int, columns: int, categories: int, missing: int) -> Filled:
    """Room for the features of so many rows, with so many missing numbers in them."""
    most = rows * (columns + categories) + missing
    ids, values = np.empty(most, np.int32), np.empty(most, np.float32)
    return Filled(np.zeros(rows, np.int64), ids, values, np.zeros(columns), np.zeros(columns, np.int64))


@exact
def fill_rows(cells: Any, filled: Any) -> int:
    """The features of every row: numbers other than 0 (after a missing one its mark), then categories; returns how
    many in all.

    The value is scaled in float32, after rounding, as it is where the factor is known only later.
    """
    numbers, named, scales = cells.numbers, cells.named, cells.scales
    lengths, ids, values = filled.lengths, filled.ids, filled.values
    total = 0
    for row in range(numbers.shape[0]):
        first = total
        for k in range(numbers.shape[1]):
            number = numbers[row, k]
            value = np.float32(number)
            if np.isnan(number):
                if cells.fills[k] != 0:
                    ids[total] = k
                    values[total] = cells.fills[k] * scales[k]
                    total += 1
                if cells.marks[k] >= 0:
                    ids[total] = cells.marks[k]
                    values[total] = np.float32(1)
                    total += 1
            elif value != 0:
                filled.squares[k] += number * number
                filled.present[k] += 1
                ids[total] = k
                values[total] = value * scales[k]
                total += 1
        for c in range(named.shape[1]):
            if named[row, c] >= 0:
                ids[total] = named[row, c]
                values[total] = np.float32(1)
                total += 1
        lengths[row] = total - first
    return total


NO_QUOTE = -1
_NEWLINE, _RETURN = 10, 13


class Records(NamedTuple):
    """One entry a record: where it begins and ends (with its line end), newlines before it, fields in it."""

    starts: Offsets
    ends: Offsets
    lines: Offsets
    fields: Offsets


def make_records(count: int) -> Records:
    """Room for so many records."""
    return Records(*(np.empty(count, np.int64) for _ in range(4)))


@kernel
def count_ends(data: Any) -> int:
    """Line ends in a block: no fewer than there are records."""
    count = 0
    for i in range(len(data)):
        count += (data[i] == _NEWLINE) | (data[i] == _RETURN)
    return count


@kernel
def find_records(data: Any, delimiter: int, quote: int, records: Any) -> Any:
    """Fill `records`; returns how many there are, and where the last one ends (what follows is an open quote)."""
    starts, ends, lines, fields = records.starts, records.ends, records.lines, records.fields
    size, count, line = len(data), 0, 0
    begin, begin_line, field, at_field, quoted = 0, 0, 1, True, False
    i = 0
    while i < size:
        byte = np.int64(data[i])
        i += 1
        if quoted:
            if byte == quote:
                if i < size and data[i] == quote:
                    i += 1
                else:
                    quoted = False
            elif byte == _NEWLINE:
                line += 1
        elif byte == delimiter:
            field += 1
            at_field = True
        elif byte in (_NEWLINE, _RETURN):
            blank = i - 1 == begin
            if byte == _RETURN and i < size and data[i] == _NEWLINE:
                i += 1
            line += data[i - 1] == _NEWLINE
            if not blank:
                starts[count] = begin
                ends[count] = i
                lines[count] = begin_line
                fields[count] = field
                count += 1
            begin, begin_line, field, at_field = i, line, 1, True
        else:
            quoted = at_field and byte == quote
            at_field = False
    return count, begin


@kernel
def copy_fields(data: Any, starts: Any, signs: Any, wanted: Any, out: Any) -> int:
    """Copy the fields k of each record for which wanted[k], as they are, each with a newline after it; returns bytes.

    starts: of records that all have len(wanted) fields; signs: the delimiter and the quote.
    """
    delimiter, quote = signs[0], signs[1]
    written = 0
    for record in range(len(starts)):
        i, field, at_field, quoted = starts[record], 0, True, False
        while field < len(wanted):
            byte = np.int64(data[i])
            i += 1
            if not quoted and byte in (delimiter, _NEWLINE, _RETURN):
                byte = np.int64(_NEWLINE)
            if wanted[field]:
                out[written] = byte
                written += 1
            if quoted:
                if byte == quote:
                    if data[i] == quote:  # a record ends outside quotes, so that there is a byte after this one
                        if wanted[field]:
                            out[written] = quote
                            written += 1
                        i += 1
                    else:
                        quoted = False
            elif byte == _NEWLINE:
                field += 1
                at_field = True
            else:
                quoted = at_field and byte == quote
                at_field = False
    return written
