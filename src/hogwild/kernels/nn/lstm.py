"""LSTM layers over a packed batch of sentences, both ways: forward, and the derivatives of all that goes in.

Sentences of a batch stand from the longest to the shortest, and token t of sentence s is row `base[t] + s` of all
matrices: what is at work at one time are rows one after the other, and nothing is filled up. The second direction reads
each sentence from its end: its rows are in its own time, and `mirror` of a row is the one of the same token in the
other's. Places are numbers of cells of an array.

A layer and direction has its weights in strips of 16 columns (simd/strips.py): 16 units have four, those of their input
gates, forget gates, candidates and output gates. A strip has a row for each input, of which the last is always 1, and
then a row for each unit of the token before (`Full`), or one row, each unit's own (`Diagonal`). Units are filled up to
whole strips by such as have weights of zero, which stay so. Gates have the same strips, with a row for each token.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.simd.strips import GATES, STRIP, WIDE, close_cells, open_cells, stack, tile, turn_block

_ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX = ((0,) * count for count in range(1, 7))
_SIDE = (0,) * (GATES if WIDE else 1)  # strips of tiles with many rows: sums for which there are registers
KEPT, ANEW = (0,), ()  # whether a product is added to what stands there
_STRETCH = 192  # tokens whose gates and inputs the nearest cache holds while a gradient is summed up
_BLOCK = 96  # rows that the next cache holds while they are multiplied by all strips


@inner
def apart_for(tokens: int) -> int:
    """Rows that a strip has room for: an odd number, so that those of several strips share no place of a cache."""
    return tokens | 1


@inner
def padded(cells: int) -> int:
    """So many cells filled up to whole strips."""
    return (cells + STRIP - 1) // STRIP * STRIP


class Full(NamedTuple):
    """Every unit reads what every unit gave at the token before."""


class Diagonal(NamedTuple):
    """A unit reads only what itself gave at the token before."""


class Batch(NamedTuple):
    """A packed batch: base[t] is the first row of time t; mirror: see above; tokens: rows; times: of the longest;
    apart: rows that a strip of gates has room for."""

    base: Any
    mirror: Any
    tokens: int
    times: int
    apart: int


class Layer(NamedTuple):
    """Weights and gradients of one layer and direction: both begin at `at`, with strips of `rows` rows. stride: cells
    from the inputs of one token to those of the next."""

    values: Any
    at: int
    inputs: int
    stride: int
    rows: int
    units: int


class Memory(NamedTuple):
    """Where in `floats` one layer and direction has what it needs: gates (as strips), and a row a token of: cells;
    their tanh; what is given. zeros: the cells before the first token; flipped: room for `flipped_cells`."""

    floats: Any
    gates: int
    cells: int
    curved: int
    given: int
    zeros: int
    flipped: int


@choice
def recurrent_rows(recurrence: Any, units: int) -> Any:
    """Rows of a strip for the units of the token before."""


recurrent_rows.of(Full)(lambda recurrence, units: units)
recurrent_rows.of(Diagonal)(lambda recurrence, units: 1)


@inner
def strip_rows(recurrence: Any, inputs: int, units: int) -> Any:
    """Rows of a strip; odd, see `apart_for`."""
    return (inputs + recurrent_rows(recurrence, units)) | 1


# -- products of a matrix with strips -------------------------------------------------------------------------------


@inner
def next_rows(left: int) -> Any:
    """How many of the rows that are left make the next tile: six, but not so that one or two stay behind."""
    if left >= 6:
        return 4 if left == 7 or left == 8 else 6
    return left


@inner
def multiply_strips(keep: Any, size: Any, a: Any, a_places: Any, b: Any, b_places: Any, c: Any, c_places: Any) -> None:
    """c = (c +) a b, where b and c are strips. size: rows of c, numbers that each of its cells is a sum of, strips, of
    which there are whole fours.

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
                        tile(_SIX, _SIDE, keep, count, a, first, by_row, by_step, b, place + s * b_apart, b_apart, c,
                             into + s * c_apart, c_apart)  # fmt: skip
                elif take == 5:
                    for s in range(0, GATES, len(_SIDE)):
                        tile(_FIVE, _SIDE, keep, count, a, first, by_row, by_step, b, place + s * b_apart, b_apart, c,
                             into + s * c_apart, c_apart)  # fmt: skip
                elif take == 4:
                    for s in range(0, GATES, len(_SIDE)):
                        tile(_FOUR, _SIDE, keep, count, a, first, by_row, by_step, b, place + s * b_apart, b_apart, c,
                             into + s * c_apart, c_apart)  # fmt: skip
                elif take == 3:
                    for s in range(0, GATES, 2):
                        tile(_THREE, _TWO, keep, count, a, first, by_row, by_step, b, place + s * b_apart, b_apart, c,
                             into + s * c_apart, c_apart)  # fmt: skip
                elif take == 2:
                    for s in range(0, GATES, 2):
                        tile(_TWO, _TWO, keep, count, a, first, by_row, by_step, b, place + s * b_apart, b_apart, c,
                             into + s * c_apart, c_apart)  # fmt: skip
                else:
                    tile(_ONE, _FOUR, keep, count, a, first, by_row, by_step, b, place, b_apart, c, into, c_apart)
                row += take


@inner
def flip(rows: int, strips: int, b: Any, b_places: Any, floats: Any, to: int) -> None:
    """Turn rows of strips over: strips of 16 columns, one for each of the rows, with a row for each column of the old
    ones. b_places: beginning, cells from strip to strip. What fills up the last strip is zero."""
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


@inner
def multiply_flipped(size: Any, a: Any, a_places: Any, floats: Any, flipped: int, c: Any, c_places: Any) -> None:
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
                    stack(_SIX, strips, a, at, by_strip, floats, place, c, into, apart)
                elif take == 5:
                    stack(_FIVE, strips, a, at, by_strip, floats, place, c, into, apart)
                elif take == 4:
                    stack(_FOUR, strips, a, at, by_strip, floats, place, c, into, apart)
                elif take == 3:
                    stack(_THREE, strips, a, at, by_strip, floats, place, c, into, apart)
                elif take == 2:
                    stack(_TWO, strips, a, at, by_strip, floats, place, c, into, apart)
                else:
                    stack(_ONE, strips, a, at, by_strip, floats, place, c, into, apart)
                row += take


@inner
def flipped_cells(stride: int, units: int) -> int:
    """Cells that weights turned over need, of inputs or of units."""
    return max(stride, units) * GATES * units


# -- what units read of the token before ----------------------------------------------------------------------------


@choice
def read_former(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, unit: int) -> None:
    """Add to the gates of time t, of 16 units from `unit` on, what the units gave at the time before."""


@read_former.of(Full)
def _read_all(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, unit: int) -> None:
    floats, first = memory.floats, GATES * unit // STRIP
    b_apart, c_apart = layer.rows * STRIP, batch.apart * STRIP
    multiply_strips(
        KEPT, (batch.base[t + 1] - batch.base[t], layer.units, GATES), floats,
        (memory.given + batch.base[t - 1] * layer.units, layer.units, 1),
        layer.values, (layer.at + layer.inputs * STRIP + first * b_apart, b_apart), floats,
        (memory.gates + batch.base[t] * STRIP + first * c_apart, c_apart),
    )  # fmt: skip


@read_former.of(Diagonal)
def _read_own(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, unit: int) -> None:
    floats, units = memory.floats, layer.units
    for gate in range(GATES):
        strip = GATES * unit // STRIP + gate
        first = layer.at + (strip * layer.rows + layer.inputs) * STRIP
        own = layer.values[first : first + STRIP]  # RACE(stale read): docs/races.md
        for s in range(batch.base[t + 1] - batch.base[t]):
            at = memory.given + (batch.base[t - 1] + s) * units + unit
            given = floats[at : at + STRIP]
            to = memory.gates + (strip * batch.apart + batch.base[t] + s) * STRIP
            for u in range(STRIP):
                floats[to + u] += own[u] * given[u]


@choice
def send_back(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    """Add to the derivatives in what was given at time t - 1 those by way of the gates of time t."""


@send_back.of(Full)
def _send_all(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    floats, strips = memory.floats, GATES * layer.units // STRIP
    if t == batch.times - 1:
        weights = (layer.at + layer.inputs * STRIP, layer.rows * STRIP)
        flip(layer.units, strips, layer.values, weights, floats, memory.flipped)
    multiply_flipped(
        (batch.base[t + 1] - batch.base[t], layer.units, strips), floats,
        (memory.gates + batch.base[t] * STRIP, batch.apart * STRIP), floats, memory.flipped, floats,
        (slopes + batch.base[t - 1] * layer.units, layer.units),
    )  # fmt: skip


@send_back.of(Diagonal)
def _send_own(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    floats, units = memory.floats, layer.units
    for strip in range(GATES * units // STRIP):
        unit = strip // GATES * STRIP
        first = layer.at + (strip * layer.rows + layer.inputs) * STRIP
        own = layer.values[first : first + STRIP]  # RACE(stale read): docs/races.md
        for s in range(batch.base[t + 1] - batch.base[t]):
            at = memory.gates + (strip * batch.apart + batch.base[t] + s) * STRIP
            to = slopes + (batch.base[t - 1] + s) * units + unit
            for u in range(STRIP):
                floats[to + u] += own[u] * floats[at + u]


@choice
def keep_recurrent(recurrence: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
    """The gradient in the weights of the token before. former: what was given then, a row a token."""


@keep_recurrent.of(Full)
def _keep_all(recurrence: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
    first = layer.at + layer.inputs * STRIP
    sum_gradient(layer.units, first, layer, batch, memory, former, layer.units, grads)


@keep_recurrent.of(Diagonal)
def _keep_own(recurrence: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
    floats = memory.floats
    for strip in range(GATES * layer.units // STRIP):
        first = layer.at + (strip * layer.rows + layer.inputs) * STRIP
        own = grads[first : first + STRIP]
        own[:] = np.float32(0)
        for row in range(batch.tokens):
            at = memory.gates + (strip * batch.apart + row) * STRIP
            read = former + row * layer.units + strip // GATES * STRIP
            given = floats[read : read + STRIP]
            for u in range(STRIP):
                own[u] += floats[at + u] * given[u]


@inner
def sum_gradient(rows: int, at: int, layer: Any, batch: Any, memory: Any, source: int, stride: int, grads: Any) -> None:
    """The gradient in so many rows of the strips of a layer, from `at` on: what was read, from `source` on with rows
    `stride` cells apart, times the derivatives in the gates; some tokens after the other."""
    for first in range(0, batch.tokens, _STRETCH):
        size = (rows, min(_STRETCH, batch.tokens - first), GATES * layer.units // STRIP)
        read, gates = (source + first * stride, 1, stride), (memory.gates + first * STRIP, batch.apart * STRIP)
        if first == 0:
            multiply_strips(ANEW, size, memory.floats, read, memory.floats, gates, grads, (at, layer.rows * STRIP))
        else:
            multiply_strips(KEPT, size, memory.floats, read, memory.floats, gates, grads, (at, layer.rows * STRIP))


# -- one layer in one direction -------------------------------------------------------------------------------------


@inner
def read_forward(recurrence: Any, layer: Any, batch: Any, memory: Any, source: int) -> None:
    """Fill the memory of a layer from its inputs, which stand from `source` on, a row a token, in its own time."""
    floats, units, apart = memory.floats, layer.units, batch.apart * STRIP
    multiply_strips(
        ANEW, (batch.tokens, layer.inputs, GATES * units // STRIP), floats, (source, layer.stride, 1), layer.values,
        (layer.at, layer.rows * STRIP), floats, (memory.gates, apart),
    )  # fmt: skip
    for t in range(batch.times):
        row, rows = batch.base[t], batch.base[t + 1] - batch.base[t]
        former, by_former = memory.zeros, 0
        if t > 0:
            former, by_former = memory.cells + batch.base[t - 1] * units, units
        for unit in range(0, units, STRIP):
            if t > 0:
                read_former(recurrence, layer, batch, memory, t, unit)
            own = row * units + unit
            open_cells(
                rows, floats, memory.gates + GATES * unit // STRIP * apart + row * STRIP, apart, floats, former + unit,
                by_former, memory.cells + own, memory.curved + own, memory.given + own, units,
            )  # fmt: skip


@inner
def read_back(recurrence: Any, layer: Any, batch: Any, memory: Any, slopes: int, carried: int) -> None:
    """Turn the gates into derivatives in their sums. slopes: those in what was given, to which those by way of later
    tokens are added; carried: a row a sentence."""
    floats, units, apart = memory.floats, layer.units, batch.apart * STRIP
    for k in range((batch.base[1] - batch.base[0]) * units):
        floats[carried + k] = np.float32(0)
    for t in range(batch.times - 1, -1, -1):
        row, rows = batch.base[t], batch.base[t + 1] - batch.base[t]
        former, by_former = memory.zeros, 0
        if t > 0:
            former, by_former = memory.cells + batch.base[t - 1] * units, units
        for unit in range(0, units, STRIP):
            own = row * units + unit
            close_cells(
                rows, floats, memory.gates + GATES * unit // STRIP * apart + row * STRIP, apart, floats, former + unit,
                by_former, memory.curved + own, slopes + own, carried + unit, units,
            )  # fmt: skip
        if t > 0:
            send_back(recurrence, layer, batch, memory, t, slopes)


@inner
def keep_gradient(recurrence: Any, layer: Any, batch: Any, memory: Any, source: int, former: int, grads: Any) -> None:
    """The gradient in the weights of a layer, from the derivatives in its gates; former: room for a row a token."""
    sum_gradient(layer.inputs, layer.at, layer, batch, memory, source, layer.stride, grads)
    copy_former(layer, batch, memory, former)
    keep_recurrent(recurrence, layer, batch, memory, former, grads)


@inner
def copy_former(layer: Any, batch: Any, memory: Any, to: int) -> None:
    """What was given at the token before, a row a token."""
    floats, units = memory.floats, layer.units
    for k in range(batch.base[1] * units):
        floats[to + k] = np.float32(0)
    for t in range(1, batch.times):
        at, into = memory.given + batch.base[t - 1] * units, to + batch.base[t] * units
        for k in range((batch.base[t + 1] - batch.base[t]) * units):
            floats[into + k] = floats[at + k]


@inner
def turn_over_inputs(layer: Any, memory: Any) -> None:
    """Make the weights of the inputs ready for `send_to_inputs`."""
    strips, weights = GATES * layer.units // STRIP, (layer.at, layer.rows * STRIP)
    flip(layer.inputs - 1, strips, layer.values, weights, memory.floats, memory.flipped)


@inner
def send_to_inputs(layer: Any, batch: Any, memory: Any, slopes: int) -> None:
    """The derivatives in the inputs, a row a token, to `slopes`."""
    floats, strips = memory.floats, GATES * layer.units // STRIP
    for k in range(batch.tokens * layer.stride):
        floats[slopes + k] = np.float32(0)
    multiply_flipped(
        (batch.tokens, layer.inputs - 1, strips), floats, (memory.gates, batch.apart * STRIP), floats, memory.flipped,
        floats, (slopes, layer.stride),
    )  # fmt: skip
