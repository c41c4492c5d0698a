"""Parquet and Arrow files whose rows are lists: a column of lists of ids, one of lists of values beside it, a label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hogwild.config import FeedConfig
from hogwild.config.options import nearest
from hogwild.errors import ConfigError, InputError
from hogwild.feeds.io.badlines import BadLines
from hogwild.feeds.io.parallel import in_order
from hogwild.feeds.io.source import Source
from hogwild.feeds.sparse.encoder import Chunk, Summary, left_out_notes, reading_schema
from hogwild.feeds.sparse.labels import NAMES
from hogwild.feeds.tables.columns import list_columns, split_names
from hogwild.feeds.tables.frames import ArrowFile, Frame, is_list
from hogwild.messages import listed, shown

INDICES, VALUES, LABEL = "nz_idx", "nz_values", "label"
FORM = "lists"
_LAST_ID = 2**31 - 1
_REMEDY = "Correct the row, or skip such rows with --bad-lines skip."

Flags = npt.NDArray[np.bool_]


class ListPlan(NamedTuple):
    """Names of the columns; `values` is empty where all are 1."""

    indices: str
    values: str
    label: str


class _Lists(NamedTuple):
    """One column: row i has items[offsets[i]:offsets[i + 1]]; holes: rows with an empty place inside their list."""

    offsets: npt.NDArray[np.int64]
    items: npt.NDArray[Any]
    holes: Flags


def holds_lists(sources: Sequence[Source], form: str, config: FeedConfig) -> bool:
    """Whether these files are read as lists: if there are lists of ids and nothing but values and a label beside them,
    or the user names the column of ids; not if they are said to be values of a column (--multi)."""
    file = ArrowFile(sources[0], form)
    kinds = _kinds_of(file, config).values()
    ids = sum(is_list(kind, pa.types.is_integer) for kind in kinds) - _has_label_list(file, config)
    others = sum(not is_list(kind, pa.types.is_integer) and not is_list(kind, pa.types.is_floating) for kind in kinds)
    return ids > 0 and not config.multi and (bool(config.indices) or others <= 1)


def _has_label_list(file: ArrowFile, config: FeedConfig) -> bool:
    """Whether the label is a list: of several labels, which may be numbers."""
    kinds = dict(zip(file.names, file.types, strict=True))
    usual = (name for each in NAMES for name in file.names if name.lower() == each)
    label = config.label or next(usual, "")
    return label in kinds and label != config.indices and is_list(kinds[label], pa.types.is_integer)


def _kinds_of(file: ArrowFile, config: FeedConfig) -> dict[str, Any]:
    """The types of the columns that are not to be left out."""
    ignored = split_names(config.ignore, file.names)
    return {name: kind for name, kind in zip(file.names, file.types, strict=True) if name not in ignored}


class ListEncoder:
    """Reads lists into chunks; ids stay as they are in the file, from 0. The line of a row is its number."""

    options = (
        "features", "indices", "values", "label", "ignore", "binary", "bad_lines", "bad_share", "pipe", "unlabelled",
    )  # fmt: skip

    def __init__(
        self, config: FeedConfig, schema: Mapping[str, Any] | None = None, form: str = "parquet", threads: int = 0
    ) -> None:
        # Only a model can do without labels.
        self.config = config if schema else replace(config, unlabelled=False)
        self.schema = dict(schema or {})
        self.form, self.threads = form, threads
        self.bad = BadLines(config, "rows")
        self.plan: ListPlan | None = None
        self.unread: list[str] = []
        self.largest, self.left_out, self.known = -1, 0, 0
        with reading_schema(self.schema, FORM):
            if self.schema:
                plan = ListPlan(*(str(self.schema[name]) for name in ListPlan._fields))
                self.plan = plan._replace(label=config.label or plan.label)
                self.known = int(self.schema["features"])

    def chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """All rows of all sources, in order."""
        for frame, (chunk, wrong) in in_order(self._take, self._frames(sources), self.threads):
            for row, what in wrong:
                self.bad.report(f"{frame.source.place(row)}: {what}", _REMEDY)
            self.bad.seen(frame.seen)
            if len(chunk.targets):
                self.largest = max(self.largest, int(chunk.ids.max(initial=-1)))
                known = chunk.below(self.known) if self.schema else chunk
                self.left_out += len(chunk.ids) - len(known.ids)
                yield known

    def summary(self) -> Summary:
        """What holds for all rows that were yielded."""
        notes = [*self.bad.notes()]
        if self.plan is None:
            return Summary(1, notes=tuple(notes))
        notes += left_out_notes(self.left_out, self.known)
        if not self.schema:
            beside = f"values in `{shown(self.plan.values)}`" if self.plan.values else "all values 1"
            notes.insert(0, f"Ids are in column `{shown(self.plan.indices)}`, {beside}, the label in"
                            f" `{shown(self.plan.label)}` (--indices, --values and --label choose others).")
        if self.unread:
            notes.append(f"Columns that are not read: {listed(self.unread)}.")
        features = self.known if self.schema else self.config.features or max(self.largest + 1, 1)
        return Summary(features, (), {"format": FORM, **self.plan._asdict(), "features": features}, tuple(notes))

    def _frames(self, sources: Sequence[Source]) -> Iterator[Frame]:
        for number, source in enumerate(sources):
            file = ArrowFile(source, self.form)
            if self.plan is None:
                self.plan = find_plan(file, self.config)
                self.unread = [name for name in file.names if name not in self.plan]
            absent = [name for name in self.plan if name and name not in file.names]
            if self.config.unlabelled and self.plan.label in absent:
                absent.remove(self.plan.label)
            if absent:
                near = nearest(absent[0], file.names)
                raise InputError(f"{source.name}: there is no column `{shown(absent[0])}`{near};"
                                 f" {list_columns(file.names)}.")
            _check_lists(file, self.plan)
            yield from file.frames([name for name in self.plan if name in file.names], number)

    def _take(self, frame: Frame) -> tuple[Chunk, list[tuple[int, str]]]:
        """The rows of a frame that are right, and what is wrong with the others."""
        assert self.plan is not None
        ids = _lists_of(frame.arrays[self.plan.indices], np.int64)
        wrong: dict[str, Flags] = {f"`{shown(self.plan.indices)}` has an empty place inside its list": ids.holes}
        wrong["an id is below 0"] = _rows_with(ids, ids.items < 0)
        limit = self.config.features if self.config.features and not self.schema else _LAST_ID + 1
        wrong[f"an id lies past the {limit} features that there can be"] = _rows_with(ids, ids.items >= limit)
        values = None
        if self.plan.values:
            values = _lists_of(frame.arrays[self.plan.values], np.float32)
            wrong["the lists of ids and of values differ in length"] = np.diff(ids.offsets) != np.diff(values.offsets)
            wrong["a value is not a finite number"] = _rows_with(values, ~np.isfinite(values.items)) | values.holes
        targets = np.zeros(len(frame.lines), np.float32)
        if self.plan.label in frame.arrays:
            targets = _numbers_of(frame.arrays[self.plan.label], self.plan.label, frame.source)
            unknown = ~np.isfinite(targets)
            if self.config.unlabelled:
                targets[unknown] = 0
            else:
                wrong["the label is missing or not finite"] = unknown
        bad = np.logical_or.reduce(list(wrong.values()))
        told = [
            (int(frame.lines[row]), next(what for what, rows in wrong.items() if rows[row]))
            for row in np.flatnonzero(bad)
        ]  # fmt: skip
        good = ~bad
        kept = np.repeat(good, np.diff(ids.offsets))
        numbers = np.zeros(0, np.float32) if values is None else values.items[np.repeat(good, np.diff(values.offsets))]
        return Chunk(
            np.diff(ids.offsets)[good], ids.items[kept].astype(np.int32), numbers, targets[good], frame.lines[good],
            frame.file,
        ), told  # fmt: skip


def find_plan(file: ArrowFile, config: FeedConfig) -> ListPlan:
    """Which columns are what: as the user says, else by their usual names, else the only one of its kind."""
    if config.binary and config.values:
        raise ConfigError("--binary says that values are not read, but --values names them; leave out one of the two.")
    kinds = _kinds_of(file, config)
    where = file.source.name

    def choose(asked: str, usual: tuple[str, ...], fits: Any, option: str, what: str) -> str:
        if asked:
            if asked not in kinds or not fits(kinds[asked]):
                raise InputError(f"{where}: column `{shown(asked)}` ({option}) does not hold {what};"
                                 f" {list_columns(file.names)}.")
            return asked
        able = [name for name, kind in kinds.items() if fits(kind)]
        found = next((name for name in usual if name in able), able[0] if len(able) == 1 else "")
        if not found and (able or option != "--values"):
            raise InputError(f"{where}: which column holds {what}? It could be {listed(able) or 'none'};"
                             f" say {option} NAME.")
        return found

    indices = choose(config.indices, (INDICES,), lambda kind: is_list(kind, pa.types.is_integer), "--indices",
                     "lists of ids")  # fmt: skip
    values = "" if config.binary else choose(
        config.values, (VALUES,), lambda kind: is_list(kind, pa.types.is_floating), "--values", "lists of values"
    )  # fmt: skip
    label = choose(config.label, NAMES, lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind)
                   or pa.types.is_boolean(kind), "--label", "numbers as labels")  # fmt: skip
    return ListPlan(indices, values, label)


def _check_lists(file: ArrowFile, plan: ListPlan) -> None:
    """Raise InputError where a further file, or one for a model, has columns of these names but of other kinds."""
    kinds = dict(zip(file.names, file.types, strict=True))
    whole, null = pa.types.is_integer, pa.types.is_null  # null: all lists are empty
    for name, fits, what in (
        (plan.indices, lambda kind: whole(kind) or null(kind), "lists of ids"),
        (plan.values, lambda kind: whole(kind) or null(kind) or pa.types.is_floating(kind), "lists of values"),
    ):
        if name and not is_list(kinds[name], fits):
            found = f"`{shown(name)}` is of type {shown(str(kinds[name]))}"
            raise InputError(f"{file.source.name}: column {found}, where {what} are needed; write it as such.")


def _lists_of(column: Any, dtype: Any) -> _Lists:
    """The lists of a column; a missing one is empty."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0), np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    flat = pc.list_flatten(column)
    flat = flat.cast(pa.int64()) if pa.types.is_null(flat.type) else flat
    empty = np.asarray(flat.is_null())
    with np.errstate(over="ignore"):  # an infinite value is found by the checks
        items = flat.fill_null(0).to_numpy(zero_copy_only=False).astype(dtype)
    return _Lists(offsets, items, _rows_with(_Lists(offsets, items, empty), empty))


def _rows_with(lists: _Lists, flags: Flags) -> Flags:
    """Rows with an entry that is flagged."""
    sums = np.concatenate(([0], np.cumsum(flags)))
    return np.asarray(np.diff(sums[lists.offsets]) > 0)


def _numbers_of(column: Any, name: str, source: Source) -> npt.NDArray[np.float32]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        found = shown(str(kind))
        raise InputError(f"{source.name}: the label column `{shown(name)}` is of type {found}, not of numbers.")
    whole = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):  # what does not fit is not finite, which the caller tells
        return np.asarray(whole, np.float32)
