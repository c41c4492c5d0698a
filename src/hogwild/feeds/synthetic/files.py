"""Made problems as files of every format that is read, and the description of slots that some of them need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from hogwild.config import ClicksConfig, SparseConfig
from hogwild.errors import ConfigError
from hogwild.feeds.synthetic import lines
from hogwild.feeds.synthetic.clicks import Clicks, MadeClicks
from hogwild.feeds.synthetic.sampling import UNITS
from hogwild.feeds.synthetic.sparse import MadeRows, make_rows
from hogwild.feeds.synthetic.truth import Truth
from hogwild.feeds.tfrecord.write import ExampleList, encode_examples

_ROW_GROUP = 1 << 16                   # rows of a group in Parquet
_SINGLE = ("csv", "criteo", "parquet")  # formats that hold one category a slot


def write_sparse(stream: BinaryIO, form: str, config: SparseConfig, truth: Truth) -> None:
    """Write a sparse problem to a stream, counted in `truth`."""
    runs = make_rows(config, truth)
    texts: dict[str, Callable[[MadeRows], bytes]] = {
        "svmlight": lambda rows: lines.svmlight(rows, config.classes),
        "multislot": lambda rows: lines.sparse_multislot(rows, config.binary),
        "tfrecord": lambda rows: encode_examples(_sparse_features(rows, config)).tobytes(),
    }
    if form == "parquet":
        _write_parquet(stream, (_sparse_table(rows, config) for rows in runs))
        return
    for rows in runs:
        stream.write(texts[form](rows))


def write_clicks(stream: BinaryIO, form: str, config: ClicksConfig, truth: Truth) -> None:
    """Write a problem of clicks to a stream, counted in `truth`."""
    check_clicks(form, config)
    runs = Clicks(config).rows(truth)
    texts: dict[str, Callable[[MadeClicks], bytes]] = {
        "multislot": lines.clicks_multislot,
        "csv": lines.csv,
        "criteo": lines.criteo,
        "libffm": lambda rows: lines.libffm(rows, config.features),
        "tfrecord": lambda rows: encode_examples(_clicks_features(rows, config)).tobytes(),
    }
    if form == "parquet":
        _write_parquet(stream, (_clicks_table(rows, config) for rows in runs))
        return
    stream.write(lines.csv_head(config) if form == "csv" else b"")
    for rows in runs:
        stream.write(texts[form](rows))


def check_clicks(form: str, config: ClicksConfig) -> None:
    """Raise ConfigError where a format cannot hold the problem."""
    if form in _SINGLE and config.lengths != (1, 1):
        raise ConfigError(
            f"nonzeros is {config.nonzeros!r}, but {form} holds one category a slot; use multislot, tfrecord or libffm."
        )
    if form == "criteo" and (config.slots, config.numbers) != (26, 13):
        raise ConfigError(
            f"criteo has 26 slots and 13 numbers, not {config.slots} and {config.numbers}; use csv or leave them out."
        )


# -- Parquet --------------------------------------------------------------------------------------------------------


def _write_parquet(stream: BinaryIO, tables: Iterator[Any]) -> None:
    import pyarrow.parquet  # late: only who writes such files needs it

    first = next(tables)
    with pyarrow.parquet.ParquetWriter(stream, first.schema) as writer:
        held = [first]
        for table in tables:
            held.append(table)
            if sum(len(part) for part in held) >= _ROW_GROUP:
                writer.write_table(pa.concat_tables(held), row_group_size=_ROW_GROUP)
                held = []
        if held:
            writer.write_table(pa.concat_tables(held), row_group_size=_ROW_GROUP)


def _sparse_table(rows: MadeRows, config: SparseConfig) -> Any:
    columns = {"label": pa.array(rows.labels), "nz_idx": pa.LargeListArray.from_arrays(rows.offsets, rows.ids)}
    if not config.binary:
        columns["nz_values"] = pa.LargeListArray.from_arrays(rows.offsets, (rows.values / UNITS).astype(np.float32))
    return pa.table(columns)


def _clicks_table(rows: MadeClicks, config: ClicksConfig) -> Any:
    import pyarrow.compute as pc

    numbers = (rows.numbers / UNITS).astype(np.float32).T
    ids = rows.ids.reshape(-1, config.slots).T + 1
    columns = {"label": pa.array(rows.labels)}
    columns |= dict(zip(lines.number_names(config), map(pa.array, numbers), strict=True))
    for name, column in zip(lines.slot_names(config), ids, strict=True):
        columns[name] = pc.binary_join_element_wise("v", pc.cast(pa.array(column), pa.string()), "")
    return pa.table(columns)


# -- TFRecord -------------------------------------------------------------------------------------------------------


def _sparse_features(rows: MadeRows, config: SparseConfig) -> list[ExampleList]:
    lists = [_one_each("label", rows.labels), ExampleList("nz_idx", rows.offsets, rows.ids)]
    if not config.binary:
        lists.append(ExampleList("nz_values", rows.offsets, (rows.values / UNITS).astype(np.float32)))
    return lists


def _clicks_features(rows: MadeClicks, config: ClicksConfig) -> list[ExampleList]:
    lists = [_one_each("label", rows.labels)]
    if config.numbers:
        ends = np.arange(len(rows.labels) + 1) * config.numbers
        lists.append(ExampleList("I", ends, (rows.numbers / UNITS).astype(np.float32).ravel()))
    slots = np.repeat(np.tile(np.arange(config.slots), len(rows.labels)), rows.lengths.ravel())
    for slot, name in enumerate(lines.slot_names(config)):
        offsets = np.concatenate([[0], np.cumsum(rows.lengths[:, slot])])
        lists.append(ExampleList(name, offsets, rows.ids[slots == slot] + 1))
    return lists


def _one_each(name: str, items: Any) -> ExampleList:
    return ExampleList(name, np.arange(len(items) + 1), items)


# -- descriptions of slots ------------------------------------------------------------------------------------------


def sparse_slots(config: SparseConfig) -> str:
    """The description of the slots of a sparse problem."""
    label = {"name": "label", "type": "uint64", "label": True if config.classes == 2 else "number"}
    ids: dict[str, Any] = {"name": "nz_idx", "type": "uint64"}
    if config.binary:
        return _toml([label, ids])
    return _toml([label, {**ids, "values": "nz_values"}, {"name": "nz_values", "type": "float"}])


def clicks_slots(config: ClicksConfig) -> str:
    """The description of the slots of clicks."""
    slots: list[dict[str, Any]] = [{"name": "label", "type": "uint64", "label": True}]
    if config.numbers:
        slots.append({"name": "I", "type": "float", "dense": True, "width": config.numbers})
    return _toml([*slots, {"name": "C", "type": "uint64", "repeat": config.slots}])


def _toml(slots: list[dict[str, Any]]) -> str:
    def shown(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool | int) else f'"{value}"'

    tables = ("".join(f"{key} = {shown(value)}\n" for key, value in slot.items()) for slot in slots)
    return "\n".join(f"[[slot]]\n{table}" for table in tables)
