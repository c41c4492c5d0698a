"""Products of matrices with strips, of float32 or of pairs of bfloat16, and what they need made ready.

In bfloat16 (simd/pairs.py) a product reads copies of its matrices in which neighbours along the sum are one cell: of
weights, made once a visit, of what they are multiplied by, and of tokens for a gradient. Sums stay float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.simd.pairs import BFloat16, Float32, pair_columns, pair_rows, turn_strips
from hogwild.kernels.simd.strips import GATES, STRIP, WIDE, stack, tile, turn_block

_ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX = ((0,) * count for count in range(1, 7))
_SIDE = (0,) * (GATES if WIDE else 1)  # strips of tiles with many rows: sums for which there are registers
KEPT, ANEW = (0,), ()  # whether a product is added to what stands there
_BLOCK = 96  # rows that the next cache holds while they are multiplied by all strips


@choice
def cells_for(products: Any, numbers: int) -> Any:
    """Cells that so many numbers have along a sum."""


cells_for.of(Float32)(lambda products, numbers: numbers)
cells_for.of(BFloat16)(lambda products, numbers: (numbers + 1) // 2)


@inner
def next_rows(left: int) -> Any:
    """How many of the rows that are left make the next tile: six, but not so that one or two stay behind."""
    if left >= 6:
        return 4 if left == 7 or left == 8 else 6
    return left


@inner
def multiply_strips(products: Any, keep: Any, size: Any, a: Any, a_places: Any, b: Any, b_places: Any, c: Any, c_places: Any) -> None:  # noqa: E501
    """c = (c +) a b, where b and c are strips. size: rows of c, cells of a and b that each of its numbers is a sum of,
    strips, of which there are whole fours.

    a_places: beginning, cells from row to row and from column to column; b_places, c_places: beginning, cells from
    strip to strip.
    """
    rows, count, strips = size
    at, by_row, by_step = a_places
    b_apart, c_apart = b_places[1], c_places[1]
    for block in range(0, rows, _BLOCK):
        end = min(rows, block + _BLOCK)
        for four in range(0, strips, GATES):
            row = block
            while row < end:
                first, take = at + row * by_row, next_rows(end - row)
                place, into = b_places[0] + four * b_apart, c_places[0] + four * c_apart + row * STRIP
                if take == 6:
                    for s in range(0, GATES, len(_SIDE)):
                        tile(products, _SIX, _SIDE, keep, count, a, first, by_row, by_step, b, place + s * b_apart,
                             b_apart, c, into + s * c_apart, c_apart)  # fmt: skip
                elif take == 5:
                    for s in range(0, GATES, len(_SIDE)):
                        tile(products, _FIVE, _SIDE, keep, count, a, first, by_row, by_step, b, place + s * b_apart,
                             b_apart, c, into + s * c_apart, c_apart)  # fmt: skip
                elif take == 4:
                    for s in range(0, GATES, len(_SIDE)):
                        tile(products, _FOUR, _SIDE, keep, count, a, first, by_row, by_step, b, place + s * b_apart,
                             b_apart, c, into + s * c_apart, c_apart)  # fmt: skip
                elif take == 3:
                    for s in range(0, GATES, 2):
                        tile(products, _THREE, _TWO, keep, count, a, first, by_row, by_step, b, place + s * b_apart,
                             b_apart, c, into + s * c_apart, c_apart)  # fmt: skip
                elif take == 2:
                    for s in range(0, GATES, 2):
                        tile(products, _TWO, _TWO, keep, count, a, first, by_row, by_step, b, place + s * b_apart,
                             b_apart, c, into + s * c_apart, c_apart)  # fmt: skip
                else:
                    tile(products, _ONE, _FOUR, keep, count, a, first, by_row, by_step, b, place, b_apart, c, into,
                         c_apart)  # fmt: skip
                row += take


@choice
def flip(products: Any, rows: int, strips: int, b: Any, b_places: Any, floats: Any, to: int) -> None:
    """Turn rows of strips over: strips of 16 columns, one for each of the rows, with a row for each cell that the
    columns of the old ones become. b_places: beginning, cells from strip to strip. What fills up the last strip is
    zero."""


@flip.of(Float32)
def _flip_numbers(products: Any, rows: int, strips: int, b: Any, b_places: Any, floats: Any, to: int) -> None:
    for first in range(0, rows, STRIP):
        for strip in range(strips):
            at = b_places[0] + strip * b_places[1] + first * STRIP
            into = to + (first * strips + strip * STRIP) * STRIP
            if first + STRIP <= rows:
                turn_block(b, at, floats, into)
            else:
                for k in range(STRIP):
                    for column in range(STRIP):  # RACE(stale read): docs/races.md
                        cell = b[at + k * STRIP + column] if first + k < rows else np.float32(0)
                        floats[into + column * STRIP + k] = cell


@flip.of(BFloat16)
def _flip_pairs(products: Any, rows: int, strips: int, b: Any, b_places: Any, floats: Any, to: int) -> None:
    for first in range(0, rows, STRIP):
        for two in range(0, strips, 2):
            at, into = b_places[0] + two * b_places[1] + first * STRIP, to + (first * strips + two * STRIP) // 2 * STRIP
            turn_strips(b, at, b_places[1], rows - first, floats, into)


@inner
def multiply_flipped(products: Any, size: Any, a: Any, a_places: Any, floats: Any, flipped: int, c: Any, c_places: Any) -> None:  # noqa: E501
    """c += a b', where a are strips, and `flip` has turned b over. size: rows and columns of c, strips of a; a_places:
    beginning, cells from strip to strip; c_places: beginning, cells from row to row. Columns are filled up to whole
    strips, and so must c be."""
    rows, columns, strips = size
    apart, by_strip = c_places[1], a_places[1]
    for block in range(0, rows, _BLOCK):
        end = min(rows, block + _BLOCK)
        for first in range(0, columns, STRIP):
            place, row = flipped + first * strips * STRIP, block
            while row < end:
                at, into, take = a_places[0] + row * STRIP, c_places[0] + first + row * apart, next_rows(end - row)
                if take == 6:
                    stack(products, _SIX, strips, a, at, by_strip, floats, place, c, into, apart)
                elif take == 5:
                    stack(products, _FIVE, strips, a, at, by_strip, floats, place, c, into, apart)
                elif take == 4:
                    stack(products, _FOUR, strips, a, at, by_strip, floats, place, c, into, apart)
                elif take == 3:
                    stack(products, _THREE, strips, a, at, by_strip, floats, place, c, into, apart)
                elif take == 2:
                    stack(products, _TWO, strips, a, at, by_strip, floats, place, c, into, apart)
                else:
                    stack(products, _ONE, strips, a, at, by_strip, floats, place, c, into, apart)
                row += take


@inner
def flipped_cells(stride: int, units: int) -> int:
    """Cells for what is made ready of weights: those of inputs or of units turned over, or all of them in pairs."""
    return (max(stride, units) + 1) * GATES * units


# -- pairs ----------------------------------------------------------------------------------------------------------


@inner
def pair_strips(rows: int, strips: int, a: Any, a_places: Any, b: Any, b_places: Any) -> None:
    """So many rows of strips, in pairs; places: beginning, cells from strip to strip."""
    for strip in range(strips):
        at, to = a_places[0] + strip * a_places[1], b_places[0] + strip * b_places[1]
        pair_rows(a, at, STRIP, rows, b, to, STRIP)


@inner
def pair_tokens(tokens: int, stride: int, floats: Any, at: int, to: int) -> None:
    """Rows of a token each, two of which become one."""
    for column in range(0, stride, STRIP):
        pair_rows(floats, at + column, stride, tokens, floats, to + column, stride)


@inner
def wide_for(numbers: int) -> Any:
    """Cells of a row whose neighbours are pairs: whole rows of a strip."""
    return (numbers + 2 * STRIP - 1) // (2 * STRIP) * STRIP


@inner
def pair_neighbours(rows: int, numbers: int, floats: Any, at: int, stride: int, to: int) -> None:
    """Rows `stride` cells apart become rows of pairs of neighbours."""
    for row in range(rows):
        pair_columns(floats, at + row * stride, numbers, floats, to + row * wide_for(numbers))
