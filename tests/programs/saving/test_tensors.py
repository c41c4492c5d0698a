"""Safetensors: files exchanged with the library in both directions, and every lie in a header refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from hogwild.errors import ModelError, SaveError
from hogwild.programs.saving.sealed import decode_entries, encode_entries
from hogwild.programs.saving.tensors import HEADER_LIMIT, decode, encode

ARRAYS = {
    "f32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "f64": np.array([np.nan, np.inf, -0.0, 5e-324]),
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 4), np.float32),
    "ids": np.array([-1, 2**31 - 1], np.int32),
    "offsets": np.array([2**62], np.int64),
    "states": np.array([2**64 - 1, 1], np.uint64),
    "bytes": np.arange(3, dtype=np.uint8),
    "flags": np.array([True, False, True]),
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "strided": np.arange(10, dtype=np.int64)[::3],
}


def file_of(arrays: Any) -> bytes:
    return b"".join(bytes(part) for part in encode(arrays))


def same(found: Any, expected: Any) -> None:
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_there_and_back() -> None:
    same(decode(file_of(ARRAYS), "f"), ARRAYS)
    assert decode(file_of({}), "f") == {}


def test_big_endian_arrays_come_back_little() -> None:
    found = decode(file_of({"a": np.arange(3, dtype=">f4")}), "f")["a"]
    assert found.dtype == np.dtype("<f4")
    assert found.tolist() == [0, 1, 2]


def test_the_library_reads_ours_and_we_read_the_librarys(tmp_path: Path) -> None:
    (tmp_path / "ours").write_bytes(file_of(ARRAYS))
    same(load_file(tmp_path / "ours"), ARRAYS)
    plain = {name: np.asarray(array, order="C") for name, array in ARRAYS.items()}
    save_file(plain, tmp_path / "theirs", metadata={"format": "np"})
    same(decode((tmp_path / "theirs").read_bytes(), "f"), plain)


def test_arrays_are_aligned_views_not_copies() -> None:
    content = bytearray(file_of(ARRAYS))
    found = decode(content, "f")
    assert all(array.flags.aligned for array in found.values())
    content[:] = bytes(len(content))
    assert not any(array.any() for array in found.values())


def test_other_kinds_of_cells_are_refused() -> None:
    for array in (np.array([1j]), np.array(["a"]), np.array([None])):
        with pytest.raises(SaveError, match="plain integers, floats and truth values"):
            file_of({"a": array})


def test_what_is_neither_true_nor_false_is_damage() -> None:
    content = file_of({"a": np.array([True, False])})
    with pytest.raises(ModelError, match="neither true nor false"):
        decode(content[:-1] + b"\x02", "f")


def make(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(shape: Any = (2,), offsets: Any = (0, 8), dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


EIGHT = bytes(8)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x02\x00\x00",
        (1 << 63).to_bytes(8, "little") + b"{}",
        (3).to_bytes(8, "little") + b"{}",
        (HEADER_LIMIT + 1).to_bytes(8, "little") + b"{}" + b" " * HEADER_LIMIT,
        make(b"\xff\xff"),
        make(b"[]"),
        make(b"{" * 100),
        make(b'{"a":' * 100_000),
        make({}, EIGHT),
        make({"a": entry()}),
        make({"a": entry()}, EIGHT + b"x"),
        make({"a": entry(offsets=[0, 4])}, EIGHT),
        make({"a": entry(offsets=[8, 0])}, EIGHT),
        make({"a": entry(offsets=[-8, 0])}, EIGHT),
        make({"a": entry(offsets=[0, 8, 16])}, EIGHT),
        make({"a": entry(offsets=[0.0, 8.0])}, EIGHT),
        make({"a": entry(offsets=[False, 8])}, EIGHT),
        make({"a": entry(offsets="08")}, EIGHT),
        make({"a": entry(offsets=[2**63, 2**63 + 8])}, EIGHT),
        make({"a": entry(shape=[-2])}, EIGHT),
        make({"a": entry(shape=[-1, -2])}, EIGHT),
        make({"a": entry(shape=2)}, EIGHT),
        make({"a": entry(shape=[2.0])}, EIGHT),
        make({"a": entry(shape=[True, 2])}, EIGHT),
        make({"a": entry(shape=[1] * 40 + [2])}, EIGHT),
        make({"a": entry(shape=[2**62])}, EIGHT),
        make({"a": entry(shape=[2**32, 2**32])}, EIGHT),
        make({"a": entry(shape=[0, 2**62, 2**62], offsets=[0, 0])}),
        make({"a": entry(dtype="PICKLE")}, EIGHT),
        make({"a": entry(dtype="object")}, EIGHT),
        make({"a": entry(dtype=None)}, EIGHT),
        make({"a": entry(dtype=["F32"])}, EIGHT),
        make({"a": {**entry(), "code": "x"}}, EIGHT),
        make({"a": {"dtype": "F32"}}, EIGHT),
        make({"a": [1]}, EIGHT),
        make({"a": entry(), "b": entry()}, EIGHT),
        make({"a": entry(), "b": entry(offsets=[4, 12])}, bytes(12)),
        make({"a": entry(), "b": entry(offsets=[12, 20])}, bytes(20)),
        make(b'{"a":' + json.dumps(entry()).encode() + b',"a":' + json.dumps(entry()).encode() + b"}", EIGHT),
    ],
)
def test_lies_are_refused(content: bytes) -> None:
    with pytest.raises(ModelError, match=r"^weights\.safetensors"):
        decode(content, "weights.safetensors")


def test_random_damage_never_does_more_than_raise_a_model_error() -> None:
    random = np.random.default_rng(3)
    whole = file_of(ARRAYS)
    for _ in range(3000):
        damaged = bytearray(whole)
        for place in random.integers(0, len(whole) // 2, random.integers(1, 4)):
            damaged[place] = random.integers(0, 256)
        try:
            found = decode(bytes(damaged), "f")
        except ModelError:
            continue
        assert sum(array.nbytes for array in found.values()) < len(whole)


def test_words_of_all_kinds_come_back() -> None:
    words = ["", " ", "\\", "\\n", "\n", "\r\n", "\\\n", "a\tb", "☃"]
    words += ["\udc80x", "\\udc80", "\x00", "\x85\u2028\x1c", "u0041"]
    assert decode_entries(encode_entries(words), "f") == words
    assert encode_entries(words).count(b"\n") == len(words)
    assert decode_entries(encode_entries([]), "f") == []
