"""What is read out of records of tf.train.Example, and where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets, Slots

Words = npt.NDArray[np.uint64]

HEADER, FOOTER = 12, 4  # bytes of a record before and after its data

# What can be wrong with a record.
FINE, CHECKSUM, MALFORMED, MISSING, WRONG_TYPE, UNEQUAL, NEGATIVE, PAST, NOT_FINITE, NOT_ONE = range(10)
WIDTH, NOT_BINARY, NOT_EXACT = range(10, 13)

# What a feature is for. VALUES are read with the feature of ids that they belong to.
VALUES, LABEL, DENSE, CATEGORIES = range(4)

# Kinds of lists.
NO_LIST, BYTES, FLOATS, INTEGERS = range(4)

# Places in `counts`.
ROWS, ENTRIES, UNLABELLED, ABSENT, VALUED, LARGEST, BAD, FEATURE, DETAIL, OTHER, SIZE = range(11)


class Wanted(NamedTuple):
    """The features that are read, those of categories in the order of their slots.

    names: all names, that of feature k from bounds[k] on; tails: its last eight bytes. roles, places: what it is for
    and its slot, or its first column; widths: columns; partners: the feature with the values of its ids, -1 if none.
    """

    names: npt.NDArray[np.uint8]
    bounds: Offsets
    tails: Words
    roles: Offsets
    places: Offsets
    widths: Offsets
    partners: Offsets


class Terms(NamedTuple):
    """How records are read. most: the largest id. columns: dense ones. keyed: samples have slots, and ids of any size.

    unlabelled: a record without a label is a row with label 0. binary: labels are 0 or 1. stop: a bad record ends it.
    """

    most: np.uint64
    columns: int
    keyed: bool
    unlabelled: bool
    binary: bool
    stop: bool


class Parsed(NamedTuple):
    """Where the rows of one block go. bits: the memory of `values`, as integers. records: the record of each row.

    errors: (code, record, place in the block, feature, two details) of bad records, the first few of them.
    """

    lengths: Offsets
    ids: Ids
    values: Floats
    bits: Ids
    targets: Floats
    records: Offsets
    errors: Offsets
    counts: Offsets


class Keyed(NamedTuple):
    """What there is besides where samples have slots: a key for each entry in place of its id.

    keys: numbers as they are, texts hashed (without slots: the integers of one list). dense: row after row; dense_bits:
    its memory as integers. found: (kind, first, last address) of the features of a record.
    """

    keys: Words
    slots: Slots
    dense: Floats
    dense_bits: Ids
    found: Offsets


def room_for(size: int, features: int, keyed: bool, errors: int = 64) -> tuple[Parsed, Keyed]:
    """Allocate what a block of `size` bytes can need at the most. Pages that are not touched take no memory."""
    rows, numbers = size // (HEADER + FOOTER) + 1, size + 1
    some = numbers if keyed else 1
    values, dense = np.empty(some if keyed else size // 4 + 1, np.float32), np.empty(some, np.float32)
    parsed = Parsed(
        lengths=np.empty(rows, np.int64),
        ids=np.empty(1 if keyed else numbers, np.int32),
        values=values,
        bits=values.view(np.int32),
        targets=np.empty(rows, np.float32),
        records=np.empty(rows, np.int64),
        errors=np.zeros((errors, 6), np.int64),
        counts=np.zeros(SIZE, np.int64),
    )
    beside = Keyed(
        keys=np.empty(numbers, np.uint64),
        slots=np.empty(some, np.uint16),
        dense=dense,
        dense_bits=dense.view(np.int32),
        found=np.zeros((features, 3), np.int64),
    )
    return parsed, beside


def make_wanted(
    names: Sequence[str], roles: Sequence[int], places: Sequence[int], widths: Sequence[int], partners: Sequence[int]
) -> Wanted:
    """Bundle what is known of the features, one item of each list for each of them."""
    texts = [name.encode() for name in names]
    return Wanted(
        names=np.frombuffer(bytearray(b"".join(texts) + b"\0"), np.uint8),
        bounds=np.cumsum([0, *map(len, texts)], dtype=np.int64),
        tails=np.array([int.from_bytes(text[-8:], "little") for text in texts], np.uint64),
        roles=np.array(roles, np.int64),
        places=np.array(places, np.int64),
        widths=np.array(widths, np.int64),
        partners=np.array(partners, np.int64),
    )
