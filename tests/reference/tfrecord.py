"""Slow, obvious twins of TFRecord reading and writing: bit by bit, byte by byte, as the formats are described."""

from __future__ import annotations

import struct

Value = list[int] | list[float] | list[bytes] | None


def crc32c(data: bytes) -> int:
    """CRC-32C one bit at a time."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    """The masked CRC of data, as it is stored."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15) + (crc << 17) + 0xA282EAD8) % 2**32)


def record(data: bytes) -> bytes:
    """One record."""
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(number: int) -> bytes:
    """A number of up to 64 bits, negative ones as two's complement."""
    number %= 2**64
    out = bytearray()
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    return bytes([*out, number])


def field(number: int, content: bytes) -> bytes:
    """A field with a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(values: Value, packed: bool = True) -> bytes:
    """A Feature message; None is one without a list. The type of the first value says which list it is."""
    if values is None:
        return b""
    if values and isinstance(values[0], bytes):
        return field(1, b"".join(field(1, value) for value in values))  # type: ignore[arg-type]
    if values and isinstance(values[0], float):
        cells = [struct.pack("<f", value) for value in values]
        return field(2, field(1, b"".join(cells)) if packed else b"".join(b"\x0d" + cell for cell in cells))
    cells = [varint(value) for value in values]  # type: ignore[arg-type]
    return field(3, field(1, b"".join(cells)) if packed and cells else b"".join(b"\x08" + cell for cell in cells))


def entry(name: str, content: bytes, swapped: bool = False) -> bytes:
    """An entry of the map; `swapped` has its value before its key."""
    parts = [field(1, name.encode()), field(2, content)]
    return field(1, b"".join(reversed(parts) if swapped else parts))


def example(features: dict[str, Value], packed: bool = True, swapped: bool = False) -> bytes:
    """An Example message."""
    entries = (entry(name, feature(values, packed), swapped) for name, values in features.items())
    return field(1, b"".join(entries))


def records_of(content: bytes) -> list[bytes]:
    """The data of all records of a file; AssertionError where one is damaged."""
    found = []
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        assert content[8:12] == masked(content[:8])
        data = content[12 : 12 + length]
        assert content[12 + length : 16 + length] == masked(data)
        found.append(data)
        content = content[16 + length :]
    return found


def fields_of(data: bytes) -> list[tuple[int, bytes]]:
    """Number and content of each field of a message; varints as their bytes."""
    found, at = [], 0

    def read() -> int:
        nonlocal at
        begin = at
        while data[at] >= 128:
            at += 1
        at += 1
        return sum((byte & 127) << 7 * k for k, byte in enumerate(data[begin:at]))

    while at < len(data):
        tag = read()
        begin = at
        if tag & 7 == 0:
            read()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or read()
            begin, at = at, at + size
        found.append((tag >> 3, data[begin:at]))
    return found


def features_of(data: bytes) -> dict[str, Value]:
    """The features of an Example."""
    found: dict[str, Value] = {}
    for _, features in fields_of(data):
        for _, whole in fields_of(features):
            parts = dict(fields_of(whole))
            values: Value = None
            for kind, content in fields_of(parts.get(2, b"")):
                items = [item for _, item in fields_of(content)]
                if kind == 1:
                    values = items
                elif kind == 2:
                    joined = b"".join(items)
                    values = list(struct.unpack(f"<{len(joined) // 4}f", joined))
                else:
                    values = integers_of(b"".join(items))
            found[parts[1].decode()] = values
    return found


def integers_of(data: bytes) -> list[int]:
    """Varints as signed numbers of 64 bits."""
    found, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            number %= 2**64
            found.append(number - 2**64 if number >= 2**63 else number)
            number = shift = 0
    return found
