"""What single features do in a model of dense layers, where no weight says it: rows that differ in one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hogwild.arrays import DenseRows, Floats, Ids, SlotRows, ValuedSlotRows
from hogwild.feeds.sparse.feed import Feed
from hogwild.machine import cores
from hogwild.programs.inspecting.names import Named, Names, holding
from hogwild.programs.inspecting.strongest import (
    Asked,
    Columns,
    Found,
    Strongest,
    by_column,
    lengths,
    no_tags,
    place_of,
    strongest,
)
from hogwild.programs.sparse.slots import slotted

_AT_ONCE = 1 << 16  # rows that are scored together


def of_layers(program: Any, schema: Mapping[str, Any], asked: Asked) -> Found:
    """What a row with one category scores more than the empty row, one with a number a unit larger than one without,
    and how long the embeddings are.

    The empty row has no category, and numbers of 0: of centred columns their mean. A category says something else in
    the company of others; this is what it says alone.
    """
    names, features = Names(schema), 0 if _of_matrix(program) else program.features
    columns = [name for name in program.dense if asked.feature in name]
    rows = names.find(asked.feature, features)
    if not len(rows) and not columns:
        holding(program.dense, asked.feature)  # says so
    called, slots = Named(names, rows), names.slots(features)
    placed = rows[slots[rows] >= 0]
    found: Found = []
    if len(placed):
        effects = _alone(program, placed, slots[placed])
        found.append(_listed("categories", program, effects, asked, lambda at: names[int(placed[at])]))
    if columns:
        places = [list(program.dense).index(name) for name in columns]
        found.append(_listed("numbers", program, _raised(program, places), asked, lambda at: columns[at]))
    if not asked.tag and len(rows):
        found.append(lengths("embeddings", called, program.arrays()["embedding"][rows], asked.top))
    return found


def _of_matrix(program: Any) -> bool:
    """Whether all that it knows are columns of numbers, without names."""
    return bool(program.dense) and not program.has_columns


def _listed(kind: str, program: Any, effects: Floats, asked: Asked, name: Any) -> Strongest:
    classes = [str(label) for label in program.classes or ()]
    if effects.ndim == 2:
        columns = Columns("class", classes, place_of(asked.tag, classes, "class"))
        return by_column(kind, effects, columns, asked.top, name)
    no_tags(asked, "a model with one score")
    return strongest(kind, ("feature",), effects, asked.top, lambda at: (name(at),))


def _alone(program: Any, features: Any, slots: Ids) -> Floats:
    """The score of a row of each feature alone, less that of the empty row."""
    parts = []
    for start in range(0, len(features), _AT_ONCE):
        some = features[start : start + _AT_ONCE].astype(np.int32)
        own = slots[start : start + _AT_ONCE].astype(np.uint16)
        parts.append(program.scores(_feed(program, np.arange(len(some) + 1), some, own), cores()))
    return np.concatenate(parts) - empty_score(program)


def _raised(program: Any, columns: list[int]) -> Floats:
    dense = np.zeros((len(columns), len(program.dense)), np.float32)
    dense[np.arange(len(columns)), columns] = 1
    none = np.zeros(len(columns) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint16)
    found: Floats = program.scores(_feed(program, *none, dense), cores()) - empty_score(program)
    return found


def empty_score(program: Any) -> Floats:
    """Of the row with no category, and numbers of 0: one score, or one a class."""
    none = np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint16)
    found: Floats = program.scores(_feed(program, *none))[0]
    return found


def _feed(program: Any, offsets: Any, ids: Ids, slots: Any, dense: Floats | None = None) -> Feed:
    rows = len(offsets) - 1
    columns = np.zeros((rows, len(program.dense)), np.float32) if dense is None else dense
    ends = np.zeros(rows, np.float32), np.ones(rows, np.float32)
    if _of_matrix(program):
        return Feed(DenseRows(columns, *ends), columns.shape[1], schema=dict(program.schema or {}))
    several = slots if len(program.slots or ()) > 1 else slots[:0]
    return Feed(SlotRows(offsets, ids, several, columns, *ends), program.features, schema=dict(program.schema or {}))


def without_each(feed: Feed) -> tuple[Feed, int, int]:
    """Of one row: rows that lack one of its entries each, then rows that have 0 in one of its dense columns each; and
    how many of both there are."""
    if isinstance(feed.samples, DenseRows):
        matrix = np.repeat(feed.samples.matrix, feed.samples.matrix.shape[1], axis=0)
        np.fill_diagonal(matrix, 0)
        targets, importance = (np.repeat(part, len(matrix)) for part in feed.samples[1:])
        return replace(feed, samples=DenseRows(matrix, targets, importance), lines=None, files=()), 0, len(matrix)
    row = slotted(feed.samples)
    entries, columns = len(row.ids), row.dense.shape[1]
    keep = [*(np.delete(np.arange(entries), k) for k in range(entries)), *[np.arange(entries)] * columns]
    chosen = np.concatenate(keep) if keep else np.zeros(0, np.int64)
    dense = np.repeat(row.dense, len(keep), axis=0)
    for k in range(columns):
        dense[entries + k, k] = 0
    offsets = np.concatenate(([0], np.cumsum([len(part) for part in keep]))).astype(np.int64)
    ends = np.repeat(row.targets, len(keep)), np.repeat(row.importance, len(keep))
    slots = row.slots[chosen] if len(row.slots) else row.slots
    parts = (offsets, row.ids[chosen], slots, dense, *ends)
    samples = ValuedSlotRows(*parts, row.values[chosen]) if isinstance(row, ValuedSlotRows) else SlotRows(*parts)
    return replace(feed, samples=samples, lines=None, files=()), entries, columns
