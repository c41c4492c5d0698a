"""Slow, obvious twins of the kernels that read text: words by a regular expression, hashes by Python's integers."""

from __future__ import annotations

import math
import re
from collections import Counter

from reference.word2vec import grams

_MASK = (1 << 64) - 1
_LETTER = "[A-Za-z0-9\u00c0-\u1fff\u2070-\u2fff\u3040-\U0010ffff]"
_WORD = re.compile(f"{_LETTER}+(?:['\u2019]{_LETTER}+)*")


def lower_ascii(text: str) -> str:
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def words_of(text: str, lowercase: bool = True) -> list[bytes]:
    found = [word.replace("\u2019", "'") for word in _WORD.findall(text)]
    return [(lower_ascii(word) if lowercase else word).encode() for word in found]


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def fold(state: int, word: int) -> int:
    return mix(((state * 0xD6E8FEB86659FD93) & _MASK) ^ word)


def hash_bytes(data: bytes, seed: int) -> int:
    state = seed
    whole = len(data) // 8 * 8
    for start in range(0, whole, 8):
        state = fold(state, int.from_bytes(data[start : start + 8], "big"))
    return fold(state, int.from_bytes(data[whole:], "big") ^ ((len(data) & 255) << 56))


def hash_gram(words: list[bytes], seed: int) -> int:
    state, *rest = (hash_bytes(word, seed) for word in words)
    for word in rest:
        state = fold(state, word)
    return state


def bag_of(
    words: list[bytes], seed: int, bits: int, ngrams: int, normalize: bool, letters: tuple[int, int] = (0, 0)
) -> dict[int, float]:
    """Value of each id. letters: of the shortest and longest part of a word, which are features too."""
    counts: Counter[int] = Counter()
    for word in words if letters[1] else []:
        for gram in grams(word.decode(), *letters, 1 << 32):
            counts[fold(seed, gram) >> (64 - bits)] += 1
    for last in range(1, len(words) + 1):
        for first in range(max(0, last - ngrams), last):
            counts[hash_gram(words[first:last], seed) >> (64 - bits)] += 1
    length = math.sqrt(sum(count * count for count in counts.values())) if normalize else 1.0
    return {ident: count / length for ident, count in counts.items()}
