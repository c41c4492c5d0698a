"""CRC-32C: check values of RFC 3720, and both ways to compute it against bit-by-bit division."""

from __future__ import annotations

import numpy as np
import pytest

from hogwild.kernels.ids.crc32c import crc32c, crc_by_tables, crc_of, has_instruction, masked, masked_crc
from reference.tfrecord import crc32c as slow
from reference.tfrecord import masked as slow_masked

# RFC 3720, B.4; the first is the usual check value.
KNOWN = [
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


def both(data: bytes) -> tuple[int, int]:
    # Eight bytes after the data may be read, and must not count.
    room = np.frombuffer(bytearray(data + b"\xa5" * 8), np.uint8)
    with np.errstate(over="ignore"):
        return int(crc32c(room.ctypes.data, len(data))), int(crc_by_tables(room.ctypes.data, len(data)))


@pytest.mark.parametrize(("data", "crc"), KNOWN)
def test_check_values(data: bytes, crc: int) -> None:
    assert both(data) == (crc, crc)
    assert crc_of(data) == crc


def test_random_bytes_of_all_lengths() -> None:
    rng = np.random.default_rng(3)
    for size in (*range(20), 63, 64, 65, 200):
        data = rng.bytes(size)
        assert both(data) == (slow(data),) * 2
        assert crc_of(data) == slow(data)


def test_masks() -> None:
    data = bytearray(b"a record and what comes after it")
    room = np.frombuffer(data, np.uint8)
    with np.errstate(over="ignore"):
        found = int(masked_crc(room.ctypes.data, 8))
    assert found == masked(slow(data[:8])) == int.from_bytes(slow_masked(bytes(data[:8])), "little")


def test_the_instruction_is_used_only_if_code_is_made_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import config

    monkeypatch.setattr(config, "CPU_NAME", "generic")
    monkeypatch.setattr(config, "CPU_FEATURES", None)
    assert not has_instruction()
    monkeypatch.setattr(config, "CPU_FEATURES", "+avx,+sse4.2")
    assert has_instruction()
    monkeypatch.setattr(config, "CPU_FEATURES", "+sse4.1")
    assert not has_instruction()
