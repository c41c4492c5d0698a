"""What a tf.train.Example has, read slowly: for finding out what its features are, and for messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hogwild.feeds.sparse.labels import shown
from hogwild.kernels.tfrecord import examples as kernel

KINDS = {kernel.NO_LIST: "no list", kernel.BYTES: "bytes", kernel.FLOATS: "floats", kernel.INTEGERS: "integers"}
LISTED = 12      # features that a message lists


class Seen(NamedTuple):
    """A feature in one record: its kind of list, and how many items that has."""

    kind: int
    count: int  # type: ignore[assignment]  # not the method of tuples


Record = dict[str, Seen]


def features_of(data: bytes) -> Record:
    """The features of an Example by name. Raises ValueError if it is malformed."""
    found: Record = {}
    for _, features in (field for field in _fields(data) if field[0] == 0x0A):
        for _, entry in (field for field in _fields(features) if field[0] == 0x0A):
            parts = dict(_fields(entry))
            kind, count = kernel.NO_LIST, 0
            for tag, items in _fields(parts.get(0x12, b"")):
                if tag in (0x0A, 0x12, 0x1A):
                    same = kind == tag >> 3
                    kind, count = tag >> 3, (count if same else 0) + _count(items, tag >> 3)
            found[parts.get(0x0A, b"").decode("utf-8", "backslashreplace")] = Seen(kind, count)
    return found


def _fields(data: bytes) -> Iterable[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        size, begin = {0: (0, at), 1: (8, at), 5: (4, at)}.get(tag & 7, (-1, at))
        if tag & 7 == 2:
            size, begin = _varint(data, at)
        elif tag & 7 == 0:
            _, end = _varint(data, at)
            size = end - at
        if size < 0 or begin + size > len(data):
            raise ValueError("no such field")
        yield tag, data[begin : begin + size]
        at = begin + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if at + place >= len(data):
            raise ValueError("cut off")
        value |= (data[at + place] & 127) << 7 * place
        if data[at + place] < 128:
            return value, at + place + 1
    raise ValueError("too long")


def _count(items: bytes, kind: int) -> int:
    count = 0
    for tag, part in _fields(items):
        if kind == kernel.BYTES:
            count += tag == 0x0A
        elif kind == kernel.FLOATS:
            count += len(part) // 4 if tag in (0x0A, 0x0D) else 0
        elif tag in (0x08, 0x0A):
            count += sum(byte < 128 for byte in part)
    return count


def listed(record: Mapping[str, Seen]) -> str:
    """The features of a record, for messages."""
    if not record:
        return "it has no features"
    parts = [f"`{shown(name)}` ({seen.count} {KINDS[seen.kind]})" for name, seen in sorted(record.items())]
    return f"it has {', '.join(parts[:LISTED])}{', …' if len(parts) > LISTED else ''}"
