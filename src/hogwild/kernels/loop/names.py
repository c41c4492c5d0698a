"""Rising numbers of rows in few bytes: one bit a row of their range, or how far on each is."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import inlined, kernel

LONGEST = 9  # bytes of a gap: 63 bits
TOO_FEW, TOO_LONG, TOO_LARGE = -1, -2, -3


@kernel
def gap_bytes(numbers: Any) -> int:
    """Bytes of what `write_gaps` writes."""
    count = 0
    for k in range(1, len(numbers)):
        gap = numbers[k] - numbers[k - 1] - 1
        count += 1
        while gap >= 128:
            gap >>= 7
            count += 1
    return count


@kernel
def write_gaps(numbers: Any, names: Any) -> None:
    """How far each number is from the next possible one: seven bits a byte, the eighth says that more follow."""
    at = 0
    for k in range(1, len(numbers)):
        gap = numbers[k] - numbers[k - 1] - 1
        while gap >= 128:
            names[at] = np.uint8((gap & 127) | 128)
            gap >>= 7
            at += 1
        names[at] = np.uint8(gap)
        at += 1


@kernel
def read_gaps(names: Any, numbers: Any, rows: int) -> int:
    """Numbers after the first, which is there. Returns how many, or below 0 what is wrong."""
    at, count = 0, 1
    while at < len(names):
        gap, shift = np.int64(0), np.int64(0)
        more = True
        while more:
            if shift == 7 * LONGEST:
                return TOO_LONG
            if at == len(names):
                return TOO_FEW
            gap |= np.int64(names[at] & np.uint8(127)) << shift
            more = names[at] >= np.uint8(128)
            shift += 7
            at += 1
        if gap >= rows:  # before it is added, which could overflow
            return TOO_LARGE
        if count == len(numbers):
            return TOO_FEW
        numbers[count] = numbers[count - 1] + gap + 1
        if numbers[count] >= 2 * rows:
            return TOO_LARGE
        count += 1
    return count


@kernel
def write_bitmap(numbers: Any, names: Any) -> None:
    """A bit for each row from the first on, in bytes of zeros."""
    for k in range(len(numbers)):
        place = numbers[k] - numbers[0]
        names[place >> 3] |= np.uint8(128 >> (place & 7))


@inlined
def _bit(byte: Any, place: int) -> bool:
    return (np.int64(byte) >> (7 - place)) & 1 != 0


@kernel
def read_bitmap(names: Any, first: int, numbers: Any) -> int:
    """Numbers of the rows whose bits are set. Returns how many; more than there is room for are not written."""
    count = 0
    for at in range(len(names)):
        byte = names[at]
        if byte == 0:
            continue
        for place in range(8):
            if _bit(byte, place):
                if count < len(numbers):
                    numbers[count] = first + 8 * at + place
                count += 1
    return count
