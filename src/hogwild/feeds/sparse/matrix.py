"""Data in memory: of what kind it is; sparse matrices, checked before compiled code follows what stands in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import InputError

_REALS = "biuf"  # kinds of NumPy numbers that are real


def are_texts(data: Any) -> bool:
    """Whether these are texts, one a row."""
    kind = getattr(data, "dtype", None)
    if getattr(data, "ndim", 1) != 1 or isinstance(data, str | bytes):
        return False
    if getattr(kind, "kind", "O") == "U":
        return True
    try:
        return len(data) > 0 and all(isinstance(text, str) for text in data)
    except TypeError:
        return False


def are_records(data: Any) -> bool:
    """Whether these are mappings of names to values, one a row."""
    return isinstance(data, list | tuple) and len(data) > 0 and all(isinstance(row, Mapping) for row in data)


def as_csr(data: Any) -> Any:
    """A sound matrix in CSR form, with its entries sorted and summed; the matrix itself if it is so already."""
    try:
        matrix = data.tocsr()
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise _broken(str(error).split("\n")[0]) from None
    if matrix is not data:
        _check_compressed(matrix, *matrix.shape)
    entries = int(matrix.indptr[-1])
    if len(matrix.indices) != entries:  # there is room for more, which belongs to no row
        matrix = type(matrix)((matrix.data[:entries], matrix.indices[:entries], matrix.indptr), matrix.shape)
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is data else matrix
        matrix.sum_duplicates()
    return matrix


def sound(data: Any) -> Any:
    """The matrix itself. Raises InputError if its indices lead outside of it, or it does not hold real numbers."""
    if len(data.shape) != 2:
        raise InputError(f"X has shape {data.shape}; give rows by features.")
    if data.dtype.kind not in _REALS:
        raise InputError(f"X holds {data.dtype} numbers; give real ones.")
    rows, columns = data.shape
    if data.format == "csr":
        _check_compressed(data, rows, columns)
    elif data.format == "csc":
        _check_compressed(data, columns, rows)
    elif data.format == "bsr":
        high, wide = data.blocksize
        if min(high, wide) < 1 or rows % high or columns % wide:
            raise _broken(f"its blocks of {high} by {wide} do not fit {rows} rows and {columns} columns")
        _check_compressed(data, rows // high, columns // wide)
    elif data.format == "coo":
        if not data.row.shape == data.col.shape == data.data.shape:
            raise _broken(f"it has {len(data.row)} row and {len(data.col)} column numbers for {len(data.data)} values")
        _check_within(data.row, rows, "row")
        _check_within(data.col, columns, "column")
    elif data.format == "dia":
        if data.data.ndim != 2 or data.offsets.shape != data.data.shape[:1] or data.offsets.dtype.kind not in "iu":
            raise _broken(f"it has {data.offsets.size} offsets for diagonals of shape {data.data.shape}")
    elif data.format == "lil":
        _check_lists(data, columns)
    return data


def _check_lists(data: Any, columns: int) -> None:
    lengths = [[len(cells) for cells in lists] for lists in (data.rows, data.data)]
    if lengths[0] != lengths[1] or len(lengths[0]) != data.shape[0]:
        raise _broken("its rows have not as many column numbers as values")
    try:
        numbers = np.array([number for cells in data.rows for number in cells], np.int64)
    except (ValueError, TypeError, OverflowError):
        raise _broken("its column numbers are not all whole numbers") from None
    _check_within(numbers, columns, "column")


def _check_compressed(data: Any, major: int, minor: int) -> None:
    """indptr divides the entries among `major` rows, and indices lie below `minor`; CSC: columns and rows."""
    starts, indices = data.indptr, data.indices
    if starts.shape != (major + 1,) or starts.dtype.kind not in "iu":
        raise _broken(f"indptr has shape {starts.shape} and type {starts.dtype}, not {major + 1} whole numbers")
    values = 3 if data.format == "bsr" else 1
    if indices.ndim != 1 or data.data.ndim != values or len(indices) != len(data.data):
        raise _broken(f"indices have shape {indices.shape} for {len(data.data)} values")
    if int(starts[0]) != 0 or int(starts[-1]) > len(indices) or bool((starts[1:] < starts[:-1]).any()):
        raise _broken(f"indptr must rise from 0 to at most {len(indices)}, the number of its entries")
    _check_within(indices[: int(starts[-1])], minor, "column" if data.format != "csc" else "row")


def _check_within(numbers: npt.NDArray[Any], limit: int, what: str) -> None:
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise _broken(f"its {what} numbers have type {numbers.dtype}, not whole numbers in one dimension")
    for number in (int(numbers.min()), int(numbers.max())) if len(numbers) else ():
        if not 0 <= number < limit:
            place = int(np.argmax(numbers == number))
            raise _broken(f"entry {place} has the {what} number {number}, outside 0 … {limit - 1}")


def _broken(why: str) -> InputError:
    return InputError(f"X is no sound sparse matrix: {why}; build it anew.")
