"""Messages of tf.train.Example to rows.

An Example is a message of one field 1, Features; that has a field 1 for each feature: a message of the name (1) and a
Feature (2), which is a list of bytes (1), floats (2) or integers (3). Lists of numbers may be packed or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets, Slots
from hogwild.kernels.compiler.bytes import byte_at, load_word
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.ids.hashing import hash_bytes
from hogwild.kernels.tfrecord.protobuf import (
    FIELD1,
    FIELD2,
    FIELD3,
    FLOAT1,
    INTEGER1,
    copy_floats,
    field_at,
    move_down,
    odd_floats,
    unpack_integers,
)

# -- What is read out of records of tf.train.Example, and where it goes -----------------------------------------------


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
ROWS, ENTRIES, UNLABELLED, ABSENT, VALUED, LARGEST, BAD, FEATURE, DETAIL, OTHER, COUNTS = range(11)


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
    """Where the rows of one block go. bits: the memory of `values`, as integers. lines: the record of each row.

    errors: (code, record, place in the block, feature, two details) of bad records, the first few of them.
    """

    lengths: Offsets
    ids: Ids
    values: Floats
    bits: Ids
    targets: Floats
    lines: Offsets
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
        lines=np.empty(rows, np.int64),
        errors=np.zeros((errors, 6), np.int64),
        counts=np.zeros(COUNTS, np.int64),
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


_IN_EXAMPLE, _IN_FEATURES, _IN_ENTRY, _IN_FEATURE, _IN_LIST = range(5)
_EIGHT = np.uint64(8)
_SEED = np.uint64(0x5EED)
_EXACT = 1 << 24        # whole numbers up to here are float32 without rounding
_UNIT = 0x3F800000      # the bits of 1.0


@kernel
def find_features(text: Any, at: int, end: int, wanted: Any, found: Any) -> bool:
    """Find the lists of the wanted features: (kind, first, last address) of each; whether all is well formed.

    Of two features with one name the last counts. The parts of a list of numbers that is not packed are moved together.
    """
    start: Any = np.int64(text.ctypes.data)
    for k in range(len(found)):
        found[k, 0] = NO_LIST
    level, stop = _IN_EXAMPLE, end
    features_end, entry_end, feature_end = end, end, end
    name, name_end, value, value_end = end, end, end, end
    k = -1
    while True:
        while at == stop:  # a message ends
            if level == _IN_EXAMPLE:
                return True
            if level == _IN_FEATURES:
                level, stop = _IN_EXAMPLE, end
            elif level == _IN_LIST:
                level, stop = _IN_FEATURE, feature_end
            else:
                k = place_of(name, name_end, wanted) if level == _IN_ENTRY else -1
                level, at, stop = _IN_FEATURES, entry_end, features_end
                if k >= 0:
                    found[k, 0] = NO_LIST
                    level, at, stop, feature_end = _IN_FEATURE, value, value_end, value_end
        tag, first, after = field_at(at, stop)
        if after == 0:
            return False
        at = after
        if level == _IN_EXAMPLE and tag == FIELD1:
            level, at, stop, features_end = _IN_FEATURES, first, after, after
        elif level == _IN_FEATURES and tag == FIELD1:
            level, at, stop, entry_end = _IN_ENTRY, first, after, after
            name, name_end, value, value_end = first, first, first, first
        elif level == _IN_ENTRY and tag == FIELD1:
            name, name_end = first, after
        elif level == _IN_ENTRY and tag == FIELD2:
            value, value_end = first, after
        elif level == _IN_FEATURE and tag == FIELD1:
            if found[k, 0] == BYTES:
                return False  # two parts of one list: nobody writes that
            found[k, 0], found[k, 1], found[k, 2] = BYTES, first, after
        elif level == _IN_FEATURE and tag in (FIELD2, FIELD3):
            kind = FLOATS if tag == FIELD2 else INTEGERS
            if found[k, 0] != kind:
                found[k, 0], found[k, 1], found[k, 2] = kind, first, first
            level, at, stop = _IN_LIST, first, after
        elif level == _IN_LIST and (tag == FIELD1 or tag == (FLOAT1 if found[k, 0] == FLOATS else INTEGER1)):
            if found[k, 1] == found[k, 2]:
                found[k, 1], found[k, 2] = first, after
            else:
                move_down(text, first - start, after - start, found[k, 2] - start)
                found[k, 2] += after - first


@kernel
def place_of(name: int, end: int, wanted: Any) -> int:
    """The number of the wanted feature with the name at an address, or -1."""
    size = end - name
    tail = load_word(end - 8)
    if size < 8:
        tail = np.uint64(0) if size == 0 else tail >> (_EIGHT * np.uint64(8 - size))
    for k in range(len(wanted.tails)):
        first = wanted.bounds[k]
        if wanted.tails[k] == tail and wanted.bounds[k + 1] - first == size:
            same = True
            for j in range(size - 8):
                same &= byte_at(name + j) == wanted.names[first + j]
            if same:
                return k
    return -1


@kernel
def take_row(text: Any, wanted: Any, terms: Any, out: Any, beside: Any) -> int:
    """One row of the features that were found; returns what is wrong."""
    counts, found = out.counts, beside.found
    for k in range(len(wanted.roles)):
        role, kind = wanted.roles[k], found[k, 0]
        if role == VALUES:
            continue
        counts[FEATURE] = k
        if kind == NO_LIST:
            if role == LABEL and terms.unlabelled:
                out.targets[counts[ROWS]] = 0
                counts[UNLABELLED] += 1
            elif role in (LABEL, DENSE) or not terms.keyed:
                return MISSING
            else:
                counts[ABSENT] += 1
            continue
        counts[DETAIL] = kind
        if kind == BYTES and (role in (LABEL, DENSE) or not terms.keyed):
            return WRONG_TYPE
        if kind == FLOATS and role not in (LABEL, DENSE):
            return WRONG_TYPE
        # Where entries go with slots, and a place to put integers without.
        entry = counts[ENTRIES] if terms.keyed else 0
        if kind == INTEGERS:
            after = unpack_integers(found[k, 1], found[k, 2], beside.keys, entry)
        elif kind == FLOATS:
            size = found[k, 2] - found[k, 1]
            after = entry + (size >> 2) if size & 3 == 0 else -1
        else:
            after = read_texts(text, found[k, 1], found[k, 2], beside.keys, entry)
        if after < 0:
            return MALFORMED
        if role == LABEL:
            code = take_label(found[k], after - entry, entry, terms, out, beside.keys)
        elif role == DENSE:
            code = take_dense(found[k], after - entry, entry, (wanted.widths[k], wanted.places[k]), terms, out, beside)
        else:
            code = take_ids(after - entry, wanted.places[k], terms, out, beside)
            if code == FINE and wanted.partners[k] >= 0:
                code = take_values(found[wanted.partners[k]], after - entry, wanted.partners[k], out)
        if code != FINE:
            return code
    return FINE


@kernel
def take_label(found: Any, count: int, entry: int, terms: Any, out: Any, keys: Any) -> int:
    """The label of a row."""
    counts, row = out.counts, out.counts[ROWS]
    counts[DETAIL] = count
    if count == 0 and terms.unlabelled:
        out.targets[row] = 0
        counts[UNLABELLED] += 1
        return FINE
    if count != 1:
        return NOT_ONE
    if found[0] == FLOATS:
        copy_floats(out.targets, row, found[1], 4)
    else:
        number = np.int64(keys[entry])
        counts[DETAIL] = number
        if number > _EXACT or number < -_EXACT:
            return NOT_EXACT
        out.targets[row] = number
    if not np.isfinite(out.targets[row]):
        return NOT_FINITE
    if terms.binary and out.targets[row] != 0 and out.targets[row] != 1:
        return NOT_BINARY
    return FINE


@kernel
def take_dense(found: Any, count: int, entry: int, where: Any, terms: Any, out: Any, beside: Any) -> int:
    """Dense columns of a row. where: how many they are, and the first of them."""
    width, column = where
    counts = out.counts
    counts[DETAIL], counts[OTHER] = count, width
    if count != width:
        return WIDTH
    place = counts[ROWS] * terms.columns + column
    if found[0] == FLOATS:
        copy_floats(beside.dense, place, found[1], 4 * count)
    else:
        for k in range(count):
            beside.dense[place + k] = np.int64(beside.keys[entry + k])
    infinite, _ = odd_floats(beside.dense_bits, place, place + count)
    return NOT_FINITE if infinite else FINE


@kernel
def take_ids(count: int, slot: int, terms: Any, out: Any, beside: Any) -> int:
    """The entries of one feature."""
    counts = out.counts
    first = counts[ENTRIES]
    counts[ENTRIES] = first + count
    if terms.keyed:
        for k in range(first, first + count):
            beside.slots[k] = slot
            out.bits[k] = _UNIT
        return FINE
    largest = np.uint64(0)
    for k in range(count):
        largest = max(largest, beside.keys[k])
        out.ids[first + k] = np.int32(beside.keys[k])
    if largest > terms.most:
        for k in range(count):
            if beside.keys[k] > terms.most:
                counts[DETAIL] = np.int64(beside.keys[k])
                return NEGATIVE if counts[DETAIL] < 0 else PAST
    if count > 0:
        counts[LARGEST] = max(counts[LARGEST], np.int64(largest))
    return FINE


@kernel
def take_values(found: Any, count: int, feature: int, out: Any) -> int:
    """The values of the last `count` entries."""
    counts = out.counts
    size = found[2] - found[1]
    if found[0] == FLOATS and (size != 4 * count):
        counts[DETAIL], counts[OTHER] = count, size >> 2
        return UNEQUAL if size & 3 == 0 else MALFORMED
    counts[FEATURE], counts[DETAIL] = feature, found[0]
    if found[0] != FLOATS:
        return MISSING if found[0] == NO_LIST else WRONG_TYPE
    last = counts[ENTRIES]
    copy_floats(out.values, last - count, found[1], size)
    infinite, other = odd_floats(out.bits, last - count, last)
    counts[VALUED] |= 1 if other else 0
    return NOT_FINITE if infinite else FINE


@kernel
def read_texts(text: Any, at: int, end: int, keys: Any, entry: int) -> int:
    """Write hashes of the texts of a list from `entry` on; returns the entry after them, -1 if it is malformed."""
    start: Any = np.int64(text.ctypes.data)
    while at < end:
        tag, first, after = field_at(at, end)
        if after == 0:
            return -1
        if tag == FIELD1:
            keys[entry] = hash_bytes(text, first - start, after - start, _SEED)
            entry += 1
        at = after
    return entry
