"""Parquet and Arrow files as frames, a few thousand rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from hogwild.errors import InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.sparse.labels import shown
from hogwild.feeds.tables.arrowcheck import why_unsound
from hogwild.feeds.tables.arrowchild import open_arrow
from hogwild.feeds.tables.columns import CATEGORICAL, NUMERIC
from hogwild.feeds.tables.frames import Frame

_ROWS, _CELLS = 8192, 1 << 23  # of a frame at the most
_REASON = 200  # characters of a reason that messages show


class ArrowFile:
    """A Parquet file, or an Arrow (Feather, IPC) file or stream.

    names: its columns; types: of Arrow; kinds: numeric, categorical, or why the column cannot be a feature;
    label_kinds: what a label in that column would be, `numbers` or `words`.
    """

    def __init__(self, source: Source, form: str) -> None:
        self.source = source
        self.form = form
        with self._reading():
            schema = self._open()[0]
        self.names: tuple[str, ...] = tuple(schema.names)
        self.types = [field.type for field in schema]
        self.kinds = [_kind(field.type) for field in schema]
        self.label_kinds = [_label_kind(field.type) for field in schema]

    def frames(self, columns: Sequence[str], file: int) -> Iterator[Frame]:
        """The rows of these columns."""
        twice = next((name for name in columns if self.names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{self.source.name}: two columns are named `{shown(twice)}`; rename one of them.")
        row = 1
        with self._reading():
            for batch in self._open(columns)[1]:
                batch.validate(full=True)  # compiled code trusts offsets, and everyone that text is UTF-8
                for start in range(0, batch.num_rows, _rows(columns)):
                    part = batch.slice(start, _rows(columns))
                    lines = np.arange(row, row + part.num_rows)
                    arrays = {name: part.column(name) for name in columns}
                    yield Frame(self.source, file, lines, arrays, {}, part.num_rows)
                    row += part.num_rows

    def _open(self, columns: Sequence[str] = ()) -> tuple[Any, Iterator[Any]]:
        path = str(self.source.local())
        if self.form == "parquet":
            import pyarrow.parquet  # late: only who has such files needs it

            parquet = pyarrow.parquet.ParquetFile(pa.memory_map(os.fsencode(path)))  # bytes: not every name is UTF-8
            return parquet.schema_arrow, parquet.iter_batches(_rows(columns), columns=list(columns))
        reason = why_unsound(self.source)
        if reason:
            raise self._unreadable(reason)
        return open_arrow(path)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._unreadable(str(error)) from None

    def _unreadable(self, reason: str) -> InputError:
        name = "Parquet" if self.form == "parquet" else "Arrow"
        line = shown(reason.strip().split("\n")[0].rstrip("."), _REASON)
        return InputError(
            f"{self.source.name}: this is no readable {name} file ({line}); write it again, or check --format."
        )


def _rows(columns: Sequence[str]) -> int:
    return max(1, min(_ROWS, _CELLS // max(1, len(columns))))


def _kind(kind: Any) -> str:
    types, name = pa.types, shown(str(kind), _REASON)
    if types.is_dictionary(kind):
        return CATEGORICAL if _kind(kind.value_type) in (NUMERIC, CATEGORICAL) else _kind(kind.value_type)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind):
        return NUMERIC
    if types.is_null(kind):
        return NUMERIC
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return CATEGORICAL
    if types.is_nested(kind):
        return f"is of type {name}, not a single value a row; give each part a column of its own"
    if types.is_temporal(kind):
        return f"is of type {name}; turn it into numbers or strings first"
    return f"is of type {name}, which is neither number nor string; convert it first"


def _label_kind(kind: Any) -> str:
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "numbers" if numeric else "words"
