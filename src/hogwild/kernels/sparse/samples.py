"""One way to walk the features of a sample, whatever bundle holds it: compiled to plain indexing.

    entries = entries_of(samples, visit)
    for k in range(count_of(entries)):
        ... id_of(entries, k), value_of(entries, k)

A sample is taken out of its bundle as slices, and its loop begins at 0, for the sake of the compiler: in a loop from
offset to offset it has to allow for negative indices, and then vectorises nothing (twice as slow).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import BinaryRows, DenseRows, Rows, SlotRows, ValuedSlotRows
from hogwild.kernels.compiler.jit import choice
from hogwild.kernels.compiler.prefetch import prefetch

LINE = 16  # ids or values in one cache line


class Entries(NamedTuple):
    """Ids and values of one sample."""

    ids: Any
    values: Any


class BinaryEntries(NamedTuple):
    """Ids of one sample whose values are all 1."""

    ids: Any


class DenseEntries(NamedTuple):
    """Values of one sample that has all features."""

    values: Any


class SlotEntries(NamedTuple):
    """Ids and slots of one sample whose values are all 1."""

    ids: Any
    slots: Any


class ValuedSlotEntries(NamedTuple):
    """Ids, slots and values of one sample."""

    ids: Any
    slots: Any
    values: Any


@choice
def entries_of(samples: Any, visit: int) -> Any:
    """The features of one sample."""


@choice
def count_of(entries: Any) -> Any:
    """How many features there are."""


@choice
def id_of(entries: Any, k: int) -> Any:
    """Id of the k-th feature."""


@choice
def value_of(entries: Any, k: int) -> Any:
    """Value of the k-th feature."""


@choice
def prefetch_entries(samples: Any, visit: int, k: int) -> None:
    """Ask for the cache lines of the features from the k-th on of a sample that will be needed soon."""


@entries_of.of(Rows)
def _entries(samples: Any, visit: int) -> Any:
    first, last = samples.offsets[visit], samples.offsets[visit + 1]
    return Entries(samples.ids[first:last], samples.values[first:last])


@entries_of.of(BinaryRows)
def _binary_entries(samples: Any, visit: int) -> Any:
    return BinaryEntries(samples.ids[samples.offsets[visit] : samples.offsets[visit + 1]])


@entries_of.of(SlotRows)
def _slot_entries(samples: Any, visit: int) -> Any:
    first, last = samples.offsets[visit], samples.offsets[visit + 1]
    return SlotEntries(samples.ids[first:last], samples.slots[first:last])


@entries_of.of(ValuedSlotRows)
def _valued_slot_entries(samples: Any, visit: int) -> Any:
    first, last = samples.offsets[visit], samples.offsets[visit + 1]
    return ValuedSlotEntries(samples.ids[first:last], samples.slots[first:last], samples.values[first:last])


@id_of.of(Entries, BinaryEntries, SlotEntries, ValuedSlotEntries)
def _listed_id(entries: Any, k: int) -> Any:
    return np.int64(np.uint32(entries.ids[k]))  # by way of unsigned: the compiler then knows it is not negative


entries_of.of(DenseRows)(lambda samples, visit: DenseEntries(samples.matrix[visit]))
id_of.of(DenseEntries)(lambda entries, k: k)
count_of.of(Entries, BinaryEntries, SlotEntries, ValuedSlotEntries)(lambda entries: len(entries.ids))
count_of.of(DenseEntries)(lambda entries: len(entries.values))
value_of.of(Entries, DenseEntries, ValuedSlotEntries)(lambda entries, k: entries.values[k])
value_of.of(BinaryEntries, SlotEntries)(lambda entries, k: np.float32(1))


@prefetch_entries.of(Rows)
def _prefetch_pairs(samples: Any, visit: int, k: int) -> None:
    prefetch(samples.ids, samples.offsets[visit] + k)
    prefetch(samples.values, samples.offsets[visit] + k)


@prefetch_entries.of(SlotRows)
def _prefetch_slots(samples: Any, visit: int, k: int) -> None:
    prefetch(samples.ids, samples.offsets[visit] + k)
    prefetch(samples.slots, samples.offsets[visit] + k)


@prefetch_entries.of(ValuedSlotRows)
def _prefetch_all(samples: Any, visit: int, k: int) -> None:
    prefetch(samples.ids, samples.offsets[visit] + k)
    prefetch(samples.slots, samples.offsets[visit] + k)
    prefetch(samples.values, samples.offsets[visit] + k)


prefetch_entries.of(BinaryRows)(lambda samples, visit, k: prefetch(samples.ids, samples.offsets[visit] + k))
prefetch_entries.of(DenseRows)(lambda samples, visit, k: None)  # rows are long: the processor does it by itself
