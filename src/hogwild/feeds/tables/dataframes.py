"""pandas and polars frames: those of numbers as a matrix; with categories they are read like a table in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hogwild.arrays import BinaryRows, Floats, Rows
from hogwild.config import FeedConfig
from hogwild.errors import InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.io.workspace import drop_workspace, make_workspace, writing
from hogwild.feeds.sparse.encoder import Summary
from hogwild.feeds.sparse.features import settle
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.labels import NAMES
from hogwild.feeds.tables.arrowcheck import trust
from hogwild.feeds.tables.encoder import TableEncoder

_LABELS = (*NAMES, "label column")


def is_frame(data: Any) -> bool:
    """Whether this is a pandas or polars frame; neither library is imported for it."""
    return type(data).__name__ == "DataFrame" and type(data).__module__.partition(".")[0] in ("pandas", "polars")


def is_numeric(frame: Any) -> bool:
    """Whether all columns of a frame hold numbers; True and False count as 1 and 0."""
    return all(getattr(kind, "kind", "?") in "biuf" or _polars_number(kind) for kind in frame.dtypes)


def _polars_number(kind: Any) -> bool:
    return hasattr(kind, "is_numeric") and (kind.is_numeric() or str(kind) == "Boolean")


def names_of(frame: Any) -> tuple[str, ...]:
    """The names of the columns."""
    return tuple(str(name) for name in frame.columns)


def matrix_of(frame: Any) -> npt.NDArray[Any]:
    """A frame of numbers as a matrix, NaN where a value is missing."""
    if type(frame).__module__.startswith("pandas"):
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    import polars  # late: only who has such a frame has the library

    return np.asarray(frame.cast(polars.Float64).to_numpy())


def feed_of_frame(frame: Any, targets: Floats, labels: Sequence[str], schema: Mapping[str, Any]) -> Feed:
    """A frame with categories as a feed whose schema also fits files. Ids are not ranked.

    targets: numbers, or places in `labels` if there are any.
    """
    table, label = _table_of(frame, targets, labels)
    config = FeedConfig(label="" if schema else label, unlabelled=bool(schema))
    workspace = make_workspace("frame")
    try:
        path = workspace / "frame.arrow"
        with writing(path), pa.OSFile(os.fsencode(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        encoder = TableEncoder(config, schema, "arrow")
        # Copies, because the arrays of a chunk belong to the encoder.
        source = Source("X", path, config)
        trust(source)
        found = encoder.chunks([source])
        chunks = [tuple(np.array(array) for array in chunk[:4]) for chunk in found]
        return _joined(chunks, encoder.summary())
    finally:
        drop_workspace(workspace)


def _table_of(frame: Any, targets: Floats, labels: Sequence[str]) -> tuple[pa.Table, str]:
    """A frame and its labels as one Arrow table; the name of the label column."""
    pandas = type(frame).__module__.startswith("pandas")
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False) if pandas else frame.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"X cannot be read as a table: {str(error).splitlines()[0]}") from None
    name = next(name for name in _LABELS if name not in table.column_names)
    column = pa.array(np.array(labels)[targets.astype(np.int64)]) if labels else pa.array(targets)
    return table.append_column(name, column), name


def _joined(chunks: Sequence[tuple[npt.NDArray[Any], ...]], summary: Summary) -> Feed:
    lengths, ids, _, targets = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    values = np.concatenate([part[2] if len(part[2]) else np.ones(len(part[1]), np.float32) for part in chunks])
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
    importance = np.ones(len(targets), np.float32)
    settle(values, ids, np.asarray(summary.fills, np.float32), np.asarray(summary.scales, np.float32))
    if summary.relabel:
        targets = np.asarray(summary.relabel, np.float32)[targets.astype(np.int64)]
    if len(values) and bool((values == 1).all()):
        samples: Rows | BinaryRows = BinaryRows(offsets, ids, targets, importance)
    else:
        samples = Rows(offsets, ids, values, targets, importance)
    return Feed(samples, summary.features, None, summary.labels, summary.schema, summary.notes)
