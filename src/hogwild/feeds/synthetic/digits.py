"""Numbers as text, many at a time: four characters are one word that is looked up in a table.

A token is a row of a matrix of such words; zero bytes stand for nothing and are dropped at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]

UNITS = 10_000  # decimals are multiples of 1 / UNITS


def words_of(texts: Iterable[str], left: bool = False, size: int = 4) -> Words:
    """Texts as words of four characters, filled with zero bytes on the right, or on the left."""
    fill = str.rjust if left else str.ljust
    return np.frombuffer("".join(fill(text, size, "\0") for text in texts).encode(), np.uint32)


def digits(numbers: Longs) -> Words:
    """Whole numbers, none negative: as many words a number as the largest needs."""
    groups = -(-len(str(int(numbers.max(initial=0)))) // 4)
    plain, lead = _digits()
    text = np.zeros((len(numbers), groups), np.uint32)
    higher = np.zeros(len(numbers), bool)
    for group in range(groups):
        part = numbers // 10_000 ** (groups - 1 - group) % 10_000
        text[:, group] = np.where(higher, plain[part], lead[part])
        higher |= part > 0
    text[~higher, -1] = words_of(["0"])[0]
    return text


def decimals(values: Longs) -> Words:
    """Numbers in units of 1 / UNITS, with four decimals: 0.0500; those without a rest as whole numbers: 1."""
    return np.hstack([digits(values // UNITS), _rests()[values % UNITS]])


def hexadecimals(numbers: npt.NDArray[np.uint32]) -> Words:
    """Eight hexadecimal digits a number."""
    return np.column_stack([_hexadecimals()[numbers >> np.uint32(16)], _hexadecimals()[numbers & np.uint32(0xFFFF)]])


def joined(text: Words) -> bytes:
    """All tokens in order, one string; the words are used up."""
    characters = text.view(np.uint8).ravel()
    return bytes(characters[characters != 0])


@cache
def _digits() -> tuple[Words, Words]:
    """Four digits, with leading zeros and without; 0 without is nothing."""
    plain = words_of(f"{n:04}" for n in range(10_000))
    return plain, words_of(["", *(str(n) for n in range(1, 10_000))], left=True)


@cache
def _rests() -> Words:
    return words_of(["", *(f".{n:04}" for n in range(1, UNITS))], size=8).reshape(-1, 2)


@cache
def _hexadecimals() -> Words:
    return words_of(f"{n:04x}" for n in range(1 << 16))
