"""Write samples as TFRecord files of tf.train.Example, which TensorFlow reads and so do we."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import BinaryRows, Floats, Offsets, Rows, SlotRows, ValuedSlotRows
from hogwild.errors import InputError
from hogwild.feeds.io.outfile import write_file
from hogwild.feeds.io.source import Bytes
from hogwild.feeds.tfrecord.plan import INDICES, LABEL, VALUES
from hogwild.kernels.tfrecord import write as kernel
from hogwild.kernels.tfrecord.protobuf import FIELD2, FIELD3

_AT_ONCE = 1 << 20   # entries that are encoded together, about
_EXACT = 1 << 24     # labels up to here are written as integers: float32 has all of them
AnySparse = Rows | BinaryRows | SlotRows | ValuedSlotRows


class ExampleList(NamedTuple):
    """One feature of a run of Examples: that of row i has items[offsets[i]:offsets[i + 1]], integers or floats."""

    name: str
    offsets: Offsets
    items: npt.NDArray[Any]


class ExampleNames(NamedTuple):
    """Names of the features that rows are written as. With slots: a feature of ids for each, and one of dense columns;
    values, where there are any, in the feature of the slot's name with `_values` after it."""

    indices: str = INDICES
    values: str = VALUES
    label: str = LABEL
    slots: tuple[str, ...] = ()
    dense: str = "dense"


def encode_examples(lists: Sequence[ExampleList]) -> Bytes:
    """Records of Examples with these features, checksums included.

    Examples
    --------
    >>> numbers = ExampleList("x", np.array([0, 2]), np.array([5, 300]))
    >>> encode_examples([numbers])[12:28].tobytes()
    b'\\n\\x0e\\n\\x0c\\n\\x01x\\x12\\x07\\x1a\\x05\\n\\x03\\x05\\xac\\x02'
    """
    rows = len(lists[0].offsets) - 1
    totals = np.zeros(rows, np.int64)
    items, sizes = [], []
    with np.errstate(over="ignore"):  # only the interpreter, with the compiler off, would say so
        for each in lists:
            if len(each.offsets) != rows + 1:
                raise InputError(f"feature `{each.name}` has {len(each.offsets) - 1} rows, but the first has {rows}.")
            floats = each.items.dtype.kind == "f"
            whole = np.ascontiguousarray(each.items, np.float32 if floats else np.int64)
            packed = 4 * np.diff(each.offsets)
            if not floats:
                kernel.integer_sizes(whole, each.offsets, packed)
            kernel.add_entries(packed, len(each.name.encode()), totals)
            items.append(whole)
            sizes.append(packed)
        starts, places = np.empty(rows + 1, np.int64), np.empty(rows, np.int64)
        kernel.begin_records(totals, starts)
        out = np.empty(int(starts[-1]) + 8, np.uint8)  # checksums may look at eight bytes more
        kernel.open_records(totals, starts, out, places)
        for each, whole, packed in zip(lists, items, sizes, strict=True):
            name = np.frombuffer(bytearray(each.name.encode()), np.uint8)
            floats = whole.dtype.kind == "f"
            kernel.put_entries(packed, name, FIELD2 if floats else FIELD3, out, places)
            if floats:
                kernel.put_floats(whole.view(np.uint8), each.offsets, out, places)
            else:
                kernel.put_integers(whole, each.offsets, out, places)
        kernel.close_records(starts, out)
    return out[:-8]


def write_tfrecord(path: str | os.PathLike[str], rows: AnySparse, names: ExampleNames | None = None) -> int:
    """Write samples to a TFRecord file; it stands under its name only when it is whole.

    Parameters
    ----------
    path
        The file; names that end in `.gz`, `.xz` or `.zst` are compressed.
    rows
        Samples, with ids that are written as they are. Those of a feed are ranks: `feed.original[rows.ids]` are the
        features' own.
    names
        Names of the features.

    Returns
    -------
    int
        Bytes of the records.

    Examples
    --------
    >>> write_tfrecord("train.tfrecord", feed.samples._replace(ids=feed.original[feed.samples.ids]))  # doctest: +SKIP
    """
    names = names or ExampleNames()
    if isinstance(rows, SlotRows | ValuedSlotRows):
        used = int(rows.slots.max()) + 1 if len(rows.slots) else 0
        if used > len(names.slots):
            raise InputError(f"samples have {used} slots, but {len(names.slots)} are named; name all of them.")
    labels = _labels(rows.targets)
    size = 0
    with write_file(os.fspath(path)) as stream:
        for first, last in _runs(rows.offsets):
            part = slice(first, last)
            entries = slice(int(rows.offsets[first]), int(rows.offsets[last]))
            offsets = rows.offsets[first : last + 1] - rows.offsets[first]
            label = ExampleList(names.label, np.arange(last - first + 1), labels[part])
            if isinstance(rows, SlotRows | ValuedSlotRows):
                lists = _slot_lists(rows, entries, part, names)
            else:
                lists = [ExampleList(names.indices, offsets, rows.ids[entries])]
                if isinstance(rows, Rows):
                    lists.append(ExampleList(names.values, offsets, rows.values[entries]))
            size += stream.write(encode_examples([label, *lists]).data)
    return size


def _labels(targets: Floats) -> npt.NDArray[Any]:
    """Labels as integers if all are whole."""
    whole = bool((np.abs(targets) <= _EXACT).all() and (targets == np.rint(targets)).all())
    return targets.astype(np.int64) if whole else targets


def _runs(offsets: Offsets) -> Iterator[tuple[int, int]]:
    """Runs of rows that are encoded together."""
    first, rows = 0, len(offsets) - 1
    while first < rows:
        last = int(np.searchsorted(offsets, offsets[first] + _AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), first + _AT_ONCE, rows)
        yield first, last
        first = last


def _slot_lists(rows: SlotRows | ValuedSlotRows, entries: slice, part: slice, names: ExampleNames) -> list[ExampleList]:
    ids, slots, dense = rows.ids[entries], rows.slots[entries], rows.dense[part]
    row = np.repeat(np.arange(len(dense)), np.diff(rows.offsets[part.start : part.stop + 1]))
    lists = []
    for slot, name in enumerate(names.slots):
        mine = slots == slot
        offsets = np.concatenate(([0], np.cumsum(np.bincount(row[mine], minlength=len(dense)))))
        lists.append(ExampleList(name, offsets, ids[mine]))
        if isinstance(rows, ValuedSlotRows):
            lists.append(ExampleList(f"{name}_values", offsets, rows.values[entries][mine]))
    if dense.shape[1]:
        lists.append(ExampleList(names.dense, np.arange(len(dense) + 1) * dense.shape[1], dense.reshape(-1)))
    return lists
