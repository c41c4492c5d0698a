"""Field-aware factorization machines: a feature has factors for each field that a partner may be of.

With v_ig the factors of feature i for partners of field g, let s_fg be the sum of x v_ig over the entries of field f.
The sum over pairs of x_i x_j <v_ig, v_jf>, where i is of field f and j of field g, is half of the sum over all f, g of
<s_fg, s_gf>, less half of the entries with themselves; its derivative in v_ig is x (s_gf - x v_ig [f = g]). So the work
is that of entries times fields, however many entries a field has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import SlotRows, Slots, ValuedSlotRows
from hogwild.kernels.compiler.prefetch import prefetch
from hogwild.kernels.sparse.fieldvectors import dot_fields, pull_fields
from hogwild.kernels.sparse.fm import count_fields, field_of, place_of, product_of_pairs, pull_factors, room_of
from hogwild.kernels.sparse.samples import count_of, entries_of, id_of, prefetch_entries, value_of


class Fields(NamedTuple):
    """Features are of so many fields."""

    count: int  # type: ignore[assignment]  # not the method of tuples


class SlotEntries(NamedTuple):
    """Ids and slots of one sample whose values are all 1."""

    ids: Any
    slots: Slots


class ValuedSlotEntries(NamedTuple):
    """Ids, slots and values of one sample."""

    ids: Any
    slots: Slots
    values: Any


@entries_of.of(SlotRows)
def _slot_entries(samples: Any, visit: int) -> Any:
    first, last = samples.offsets[visit], samples.offsets[visit + 1]
    return SlotEntries(samples.ids[first:last], samples.slots[first:last])


@entries_of.of(ValuedSlotRows)
def _valued_slot_entries(samples: Any, visit: int) -> Any:
    first, last = samples.offsets[visit], samples.offsets[visit + 1]
    return ValuedSlotEntries(samples.ids[first:last], samples.slots[first:last], samples.values[first:last])


@count_of.of(SlotEntries, ValuedSlotEntries)
def _count_ids(entries: Any) -> Any:
    return len(entries.ids)


@id_of.of(SlotEntries, ValuedSlotEntries)
def _listed_id(entries: Any, k: int) -> Any:
    return np.int64(np.uint32(entries.ids[k]))


@value_of.of(SlotEntries)
def _one(entries: Any, k: int) -> Any:
    return np.float32(1)


@value_of.of(ValuedSlotEntries)
def _listed_value(entries: Any, k: int) -> Any:
    return entries.values[k]


@prefetch_entries.of(SlotRows)
def _prefetch_slots(samples: Any, visit: int, k: int) -> None:
    prefetch(samples.ids, samples.offsets[visit] + k)
    prefetch(samples.slots, samples.offsets[visit] + k)


@prefetch_entries.of(ValuedSlotRows)
def _prefetch_values(samples: Any, visit: int, k: int) -> None:
    prefetch(samples.ids, samples.offsets[visit] + k)
    prefetch(samples.slots, samples.offsets[visit] + k)
    prefetch(samples.values, samples.offsets[visit] + k)


@count_fields.of(Fields)
def _fields(fields: Any) -> Any:
    return fields.count


@field_of.of(Fields)
def _slot(fields: Any, entries: Any, k: int) -> Any:
    return np.int64(entries.slots[k])


@product_of_pairs.of(Fields)
def _product(fields: Any, task: Any, entries: Any, floats: Any) -> Any:
    dim, room = len(task.lanes), room_of(task)
    alone = np.float32(0)
    for f in range(fields.count):
        within = floats[f * room + f * dim :]
        for c in range(dim):
            alone += within[c] * within[c]
    for k in range(count_of(entries)):
        own = floats[place_of(task, k) + field_of(fields, entries, k) * dim :]
        for c in range(dim):
            alone -= own[c] * own[c]
    return dot_fields(task.lanes, floats, room, fields.count) + np.float32(0.5) * alone


@pull_factors.of(Fields)
def _pull(fields: Any, task: Any, floats: Any, place: int, field: int, pull: Any) -> None:
    dim, room = len(task.lanes), room_of(task)
    own, sums = place + field * dim, field * dim
    pull_fields(task.lanes, floats, place, sums, room, field, pull)
    for c in range(dim):
        floats[own + c] = pull * (floats[sums + field * room + c] - floats[own + c])
    after = field + 1
    pull_fields(task.lanes, floats, own + dim, sums + after * room, room, fields.count - after, pull)
