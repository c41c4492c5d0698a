"""What made problems are drawn with: ranks by frequency, distinct ones, ids far from each other, weights from hashes.

Weights come from a hash of their number: a problem with 2^31 features takes no more memory than one with ten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

from hogwild.feeds.synthetic.truth import Doubles, Longs

# -- numbers as text --------------------------------------------------------------------------------------------------
# Many at a time: four characters are one word that is looked up in a table. A token is a row of a matrix of such words;
# zero bytes stand for nothing and are dropped at the end.

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


def salt_of(*numbers: int) -> int:
    """64 bits that tell one set of weights from another."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def normals(keys: Longs, salt: int) -> Doubles:
    """Nearly normal numbers, the same for the same key: the sum of four 16-bit pieces of a hash (splitmix64)."""
    with np.errstate(over="ignore"):
        bits = (keys.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(salt)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    pieces = np.zeros(len(keys), np.int64)
    for shift in (0, 16, 32, 48):
        pieces += (bits >> np.uint64(shift)).astype(np.uint16)
    # The sum of four uniform numbers on [0, 65536) has the mean 2 * 65535 and the variance 4 * 65536^2 / 12.
    return np.asarray((pieces - 131070) / (65536 / math.sqrt(3)))


def fading(distribution: str, ranks: Longs) -> Doubles:
    """Factor of true weights: with zipf they fall with the fourth root of the rank.

    What nearly never occurs decides little, so that the rest can be learned.
    """
    return np.asarray((1.0 + ranks) ** -0.25) if distribution == "zipf" else np.ones(len(ranks))


def drawn_ranks(distribution: str, sizes: int | Longs, uniform: Doubles) -> Longs:
    """Ranks from 0. Zipf: rank k has the probability log((k + 2) / (k + 1)) / log(size + 1), about 1 / (k + 1)."""
    drawn = uniform * sizes if distribution == "uniform" else np.expm1(uniform * np.log(np.asarray(sizes) + 1))
    return np.asarray(np.minimum(drawn.astype(np.int64), np.asarray(sizes) - 1))


def distinct(lengths: Longs, room: int, draw: Callable[[Longs], Longs]) -> Longs:
    """So many different numbers a cell, in rising order; all cells one after the other.

    draw: a number below `room` for each of the given cells. Repeats are dropped, and drawn again where some lack.
    """
    kept = np.zeros(0, np.int64)
    starts = np.arange(len(lengths) + 1) * room
    lacking = lengths
    while int(lacking.sum()) > 0:
        cells = np.repeat(np.arange(len(lengths)), lacking)
        kept = np.concatenate([kept, starts[cells] + draw(cells)])
        kept.sort()
        fresh = np.ones(len(kept), bool)
        np.not_equal(kept[1:], kept[:-1], out=fresh[1:])
        kept = kept[fresh]
        lacking = lengths - np.diff(np.searchsorted(kept, starts))
    return kept - np.repeat(starts[:-1], lengths)


def stride_of(size: int) -> int:
    """A number near the golden section of `size` that shares no divisor with it: rank * stride is a permutation.

    So frequent features get ids far from each other, as in data that nobody has sorted.
    """
    stride = max(1, int(size * 0.6180339887))
    while math.gcd(stride, size) != 1:
        stride += 1
    return stride
