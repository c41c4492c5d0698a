"""Names to numbers: a 64-bit hash of bytes, eight at a time, whose leading bits are a feature id."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.compiler.rng import mix

_SPREAD = np.uint64(0xD6E8FEB86659FD93)  # odd, so that multiplying loses nothing
_BYTE, _TOP = np.uint64(8), np.uint64(56)
_BITS = 64


@kernel
def fold(state: Any, word: Any) -> Any:
    """Take 64 more bits into a hash. The order matters: fold(fold(s, a), b) is not fold(fold(s, b), a)."""
    return mix((state * _SPREAD) ^ word)


FNV = np.uint32(2166136261)
_PRIME, _SIGN = np.uint32(16777619), np.uint32(0xFFFFFF00)


@kernel
def push_fnv(value: Any, byte: Any) -> Any:
    """FNV-1a of 32 bits as fastText has it: a byte of 128 and more counts as a negative number, with all upper bits."""
    wide = np.uint32(byte) | (_SIGN if byte >= 128 else np.uint32(0))
    return np.uint32((value ^ wide) * _PRIME)


@kernel
def push(word: Any, byte: Any) -> Any:
    """Append one byte to a word of up to eight that waits to be folded."""
    return (word << _BYTE) | np.uint64(byte)


@kernel
def finish(state: Any, word: Any, size: int) -> Any:
    """Fold what is left of a string of `size` bytes; the top byte tells apart strings that differ by leading NULs."""
    return fold(state, word ^ (np.uint64(size & 255) << _TOP))


@kernel
def hash_bytes(data: Any, first: int, last: int, seed: Any) -> Any:
    """Hash of data[first:last]."""
    state, word = seed, np.uint64(0)
    for i in range(first, last):
        word = push(word, data[i])
        if (i - first) & 7 == 7:
            state = fold(state, word)
            word = np.uint64(0)
    return finish(state, word, last - first)


@kernel
def to_id(state: Any, bits: int) -> Any:
    """The leading `bits` bits of a hash, as a feature id."""
    return np.int32(state >> np.uint64(_BITS - bits))


@kernel
def hash_strings(data: Any, offsets: Any, seed: Any, hashes: Any) -> None:
    """Hash of each string data[offsets[k]:offsets[k + 1]]."""
    for k in range(len(hashes)):
        hashes[k] = hash_bytes(data, offsets[k], offsets[k + 1], seed)


@kernel
def hash_fields(data: Any, bounds: Any, seed: Any, hashes: Any) -> None:
    """Hash of each field data[bounds[k, 0]:bounds[k, 1]]."""
    for k in range(len(hashes)):
        hashes[k] = hash_bytes(data, bounds[k, 0], bounds[k, 1], seed)


@kernel
def hash_seeded(data: Any, offsets: Any, seeds: Any, hashes: Any) -> None:
    """Hash of each string data[offsets[k]:offsets[k + 1]] with a seed of its own."""
    for k in range(len(hashes)):
        hashes[k] = hash_bytes(data, offsets[k], offsets[k + 1], seeds[k])
