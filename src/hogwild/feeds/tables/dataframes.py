"""Frames, texts and rows in memory: those of numbers alone as a matrix, all others read like a table in a file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hogwild.arrays import Floats
from hogwild.config import FeedConfig
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.source import Source
from hogwild.feeds.io.workspace import drop_workspace, make_workspace, writing
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.feeds.sparse.labels import NAMES, TEXT_NAME
from hogwild.feeds.sparse.matrix import are_records, are_texts
from hogwild.feeds.sparse.store import make_feed
from hogwild.feeds.tables.arrowcheck import trust
from hogwild.feeds.tables.columns import Plan
from hogwild.feeds.tables.encoder import TableEncoder
from hogwild.feeds.tables.fields import FieldRules
from hogwild.messages import listed, shown

_LABELS = (*NAMES, "label column")
Words = npt.NDArray[Any]


def is_frame(data: Any) -> bool:
    """Whether this is a pandas or polars frame or an Arrow table; no library is imported for it."""
    home = type(data).__module__.partition(".")[0]
    return (type(data).__name__, home) in (
        ("DataFrame", "pandas"), ("DataFrame", "polars"), ("Table", "pyarrow"), ("RecordBatch", "pyarrow"),
    )  # fmt: skip


def is_numeric(frame: Any) -> bool:
    """Whether all columns of a frame hold numbers and none is missing; True and False count as 1 and 0."""
    if not hasattr(frame, "dtypes") or not all(_is_number(kind) for kind in frame.dtypes):
        return False
    if _home(frame) == "pandas":
        return not bool(frame.isna().to_numpy().any())
    return not any(frame.fill_nan(None).null_count().row(0))


def _is_number(kind: Any) -> bool:
    polars = hasattr(kind, "is_numeric") and (kind.is_numeric() or str(kind) == "Boolean")
    return polars or getattr(kind, "kind", "?") in "biuf"


def _home(frame: Any) -> str:
    return type(frame).__module__.partition(".")[0]


def names_of(frame: Any) -> tuple[str, ...]:
    """The names of the columns; none where pandas has numbered them, for want of names."""
    columns = frame.columns
    if type(columns).__name__ == "RangeIndex":
        return ()
    found = tuple(str(name) for name in columns)
    repeated, times = Counter(found).most_common(1)[0] if found else ("", 0)
    if times > 1:
        raise InputError(f"X: two columns are named `{shown(repeated)}`; rename one of them.")
    return found


def matrix_of(frame: Any) -> npt.NDArray[Any]:
    """A frame of numbers as a matrix, NaN where a value is missing."""
    if _home(frame) == "pandas":
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    import polars  # late: only who has such a frame has the library

    return np.asarray(frame.cast(polars.Float64).to_numpy())


def schema_of(names: Sequence[str], labels: Sequence[str], matrix: Floats) -> dict[str, Any]:
    """The schema of a matrix whose columns have names: that of a table of numbers as they are, of which none is
    missing."""
    if not names:
        return {}
    label = next(name for name in _LABELS if name not in names)
    plan = Plan((*names, label), True, label, numeric=tuple(names))
    return {
        "format": "table", **plan.schema(), "labels": {"kind": "words" if labels else "numbers", "names": list(labels)},
        "hashing": Hashing.of(FeedConfig(), {}).schema(), "categories": "enumerate", "vocabulary": [],
        "scales": [1.0] * len(names), **FieldRules().schema(), "missing_numbers": "mean",
        "means": matrix.mean(0, np.float64).astype(np.float32).tolist(),
    }  # fmt: skip


# -- data in memory as an Arrow table ---------------------------------------------------------------------------------


def table_of(data: Any, schema: Mapping[str, Any], text: str = "") -> pa.Table:
    """A frame, texts, records, or rows of values in the order of the columns, as an Arrow table without labels.

    text: the name of the column that texts make up, where the schema does not say it.
    """
    try:
        if is_frame(data):
            return _table_of_frame(data)
        if are_texts(data):
            return pa.table({schema.get("text") or text or TEXT_NAME: pa.array(list(data), pa.string())})
        if are_records(data):
            names = list(dict.fromkeys(str(name) for row in data for name in row))
            return pa.table({name: pa.array([row.get(name) for row in data], from_pandas=True) for name in names})
        return _table_of_rows(data, schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeEncodeError) as error:
        raise InputError(f"X cannot be read as a table: {str(error).splitlines()[0]}") from None


def _table_of_frame(frame: Any) -> pa.Table:
    if _home(frame) == "pyarrow":
        return frame if isinstance(frame, pa.Table) else pa.Table.from_batches([frame])
    if _home(frame) == "pandas":
        named = frame if all(isinstance(name, str) for name in frame.columns) else frame.rename(columns=str)
        return pa.Table.from_pandas(named, preserve_index=False)
    return frame.fill_nan(None).to_arrow()


def _table_of_rows(data: Any, schema: Mapping[str, Any]) -> pa.Table:
    rows = np.asarray(data, None if hasattr(data, "dtype") else object)
    if rows.ndim != 2:
        raise InputError("X is no table: give rows of as many values each, a frame, or a list of texts.")
    names = columns_for(rows.shape[1], schema) if schema else tuple(map(str, range(rows.shape[1])))
    return pa.table({name: pa.array(rows[:, k].tolist(), from_pandas=True) for k, name in enumerate(names)})


def columns_for(count: int, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns that so many values of a row stand for: those of the model in the order of its file, with or without
    those that it does not look at."""
    plan = Plan.known(schema)
    used = set(plan.features())
    known = [tuple(name for name in plan.columns if name in used),
             tuple(name for name in plan.columns if name != plan.label),
             tuple(name for name in plan.columns if name not in (plan.label, plan.weight))]  # fmt: skip
    for names in known:
        if len(names) == count:
            return names
    raise InputError(f"a row has {count} values, but the model has {len(known[0])} columns: {listed(known[0])}.")


# -- as a feed --------------------------------------------------------------------------------------------------------


def feed_of_table(table: pa.Table, labels: Words | None, config: FeedConfig, schema: Mapping[str, Any]) -> Feed:
    """A table as a feed whose schema also fits files.

    labels: a word or a number for each row; None: they stand in a column of the table, or there are none.
    """
    named = config.label if config.label in table.column_names else str(schema.get("label", ""))
    labelled = labels is not None or named in table.column_names
    if labels is not None:
        if config.label:
            raise ConfigError(f"labels are given twice, by y and by the label {config.label!r} of config; keep one.")
        table, named = _labelled(table, labels, schema)
    elif not labelled and not schema:
        if config.label:
            raise ConfigError(f"there is no column `{shown(config.label)}` for the label; the columns are"
                              f" {listed(table.column_names)}.")
        table, named = _labelled(table, np.zeros(len(table), np.float32), schema)
    labelled = labelled and not config.unlabelled
    config = replace(config, label=named if not schema or labelled else "", unlabelled=not labelled)
    workspace = make_workspace("frame")
    try:
        path = workspace / "frame.arrow"
        with writing(path), pa.OSFile(os.fsencode(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        source = Source("X", path, config)
        trust(source)
        feed = make_feed(TableEncoder(config, schema, "arrow"), [source], "", keep=False)
    finally:
        drop_workspace(workspace)
    return replace(feed, labelled=labelled, schema=dict(schema) or feed.schema)


def _labelled(table: pa.Table, labels: Words, schema: Mapping[str, Any]) -> tuple[pa.Table, str]:
    """The table with a column of labels, and its name."""
    name = schema.get("label") or next(name for name in _LABELS if name not in table.column_names)
    if name in table.column_names:
        table = table.drop_columns([name])
    if isinstance(labels, list):
        return table.append_column(name, pa.array(labels, pa.list_(pa.string()))), name
    if schema.get("labels", {}).get("kind") in ("words", "sets") and labels.dtype.kind == "f":
        labels = np.array([f"{label:g}" for label in labels.tolist()])
    return table.append_column(name, pa.array(labels)), name
