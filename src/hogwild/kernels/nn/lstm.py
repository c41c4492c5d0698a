"""LSTM layers over a packed batch of sentences, both ways: forward, and the derivatives of all that goes in.

Sentences of a batch stand from the longest to the shortest, and token t of sentence s is row `base[t] + s` of all
matrices: what is at work at one time are rows one after the other, and nothing is filled up. The second direction reads
each sentence from its end: its rows are in its own time, and `mirror` of a row is the one of the same token in the
other's. Places are numbers of cells of an array.

A layer and direction has its weights in panels of 64 columns: 16 units, each with its input gate, forget gate,
candidate and output gate. A panel has a row for each input, of which the last is always 1, and then a row for each unit
of the token before (`Full`), or one row, each unit's own (`Diagonal`). Units are filled up to whole panels by such as
have weights of zero, which stay so. Gates have the same panels, with a row for each token.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.simd.panels import PANEL, STRIP, UNITS, WIDE, close_cells, dots, open_cells, stack, tile

_PARTS = (0,) * (2 if WIDE else 1)  # of tiles with many rows: sums for which there are registers
_ONE, _TWO, _FOUR = (0,), (0, 0), (0, 0, 0, 0)
_THREE, _FIVE, _SIX = (0,) * 3, (0,) * 5, (0,) * 6
KEPT, ANEW = (0,), ()  # whether a product is added to what stands there
_STRETCH = 192  # tokens whose gates and inputs the nearest cache holds while a gradient is summed up
MANY = 128  # tokens from which on it pays to turn the weights over for the way back


@inner
def apart_for(tokens: int) -> int:
    """Rows that a panel has room for: an odd number, so that those of several panels share no place of a cache."""
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
    apart: rows that a panel of gates has room for."""

    base: Any
    mirror: Any
    tokens: int
    times: int
    apart: int


class Layer(NamedTuple):
    """Weights and gradients of one layer and direction: both begin at `at`, with panels of `rows` rows. stride: cells
    from the inputs of one token to those of the next."""

    values: Any
    at: int
    inputs: int
    stride: int
    rows: int
    units: int


class Memory(NamedTuple):
    """Where in `floats` one layer and direction has what it needs: gates (as panels), and a row a token of: cells;
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
    """Rows of a panel for the units of the token before."""


recurrent_rows.of(Full)(lambda recurrence, units: units)
recurrent_rows.of(Diagonal)(lambda recurrence, units: 1)


@inner
def panel_rows(recurrence: Any, inputs: int, units: int) -> Any:
    """Rows of a panel; odd, see `apart_for`."""
    return (inputs + recurrent_rows(recurrence, units)) | 1


# -- products of a matrix with panels -------------------------------------------------------------------------------


@inner
def next_rows(left: int) -> Any:
    """How many of the rows that are left make the next tile: six, but not so that one or two stay behind."""
    if left >= 6:
        return 4 if left == 7 or left == 8 else 6
    return left


@inner
def multiply_panels(keep: Any, size: Any, a: Any, a_places: Any, b: Any, b_places: Any, c: Any, c_places: Any) -> None:
    """c = (c +) a b, where b and c are panels. size: rows of c, numbers that each of its cells is a sum of, panels.

    a_places: beginning, cells from row to row and from column to column; b_places, c_places: beginning, cells from
    panel to panel.
    """
    rows, count, panels = size
    at, by_row, by_step = a_places
    for panel in range(panels):
        place, to = b_places[0] + panel * b_places[1], c_places[0] + panel * c_places[1]
        row = 0
        while row < rows:
            first, into, take = at + row * by_row, to + row * PANEL, next_rows(rows - row)
            if take == 6:
                for s in range(0, PANEL, STRIP * len(_PARTS)):
                    tile(_SIX, _PARTS, keep, count, a, first, by_row, by_step, b, place + s, PANEL, c, into + s, PANEL)
            elif take == 5:
                for s in range(0, PANEL, STRIP * len(_PARTS)):
                    tile(_FIVE, _PARTS, keep, count, a, first, by_row, by_step, b, place + s, PANEL, c, into + s, PANEL)
            elif take == 4:
                for s in range(0, PANEL, STRIP * len(_PARTS)):
                    tile(_FOUR, _PARTS, keep, count, a, first, by_row, by_step, b, place + s, PANEL, c, into + s, PANEL)
            elif take == 3:
                for s in range(0, PANEL, STRIP * len(_TWO)):
                    tile(_THREE, _TWO, keep, count, a, first, by_row, by_step, b, place + s, PANEL, c, into + s, PANEL)
            elif take == 2:
                for s in range(0, PANEL, STRIP * len(_TWO)):
                    tile(_TWO, _TWO, keep, count, a, first, by_row, by_step, b, place + s, PANEL, c, into + s, PANEL)
            else:
                tile(_ONE, _FOUR, keep, count, a, first, by_row, by_step, b, place, PANEL, c, into, PANEL)
            row += take


@inner
def multiply_back(size: Any, a: Any, a_places: Any, b: Any, b_places: Any, c: Any, c_places: Any) -> None:
    """c += a b', where a and b are panels. size: rows and columns of c, panels; a_places, b_places: beginning, cells
    from panel to panel; c_places: beginning, cells from row to row."""
    rows, columns, panels = size
    column = 0
    while column < columns:
        take = 3 if column + 3 <= columns else 1
        b_at, to = b_places[0] + column * PANEL, c_places[0] + column
        row = 0
        while row < rows:
            at, into = a_places[0] + row * PANEL, to + row * c_places[1]
            if take == 1:
                dots(_ONE, _ONE, panels, a, at, PANEL, a_places[1], b, b_at, PANEL, b_places[1], c, into, c_places[1])
                row += 1
            elif row + 4 <= rows:
                dots(_FOUR, _THREE, panels, a, at, PANEL, a_places[1], b, b_at, PANEL, b_places[1], c, into,
                     c_places[1])  # fmt: skip
                row += 4
            elif row + 2 <= rows:
                dots(_TWO, _THREE, panels, a, at, PANEL, a_places[1], b, b_at, PANEL, b_places[1], c, into,
                     c_places[1])  # fmt: skip
                row += 2
            else:
                dots(_ONE, _THREE, panels, a, at, PANEL, a_places[1], b, b_at, PANEL, b_places[1], c, into,
                     c_places[1])  # fmt: skip
                row += 1
        column += take


@inner
def flip(size: Any, b: Any, b_places: Any, floats: Any, to: int) -> None:
    """Turn rows of panels over: strips of 16 columns, one for each of the rows, with a row for each column of the
    panels. size: rows, panels; b_places: beginning, cells from panel to panel. What fills up the last strip is zero."""
    rows, panels = size
    for strip in range(padded(rows) // STRIP):
        first, count = strip * STRIP, min(STRIP, rows - strip * STRIP)
        for panel in range(panels):
            at = b_places[0] + panel * b_places[1] + first * PANEL
            into = to + (strip * panels + panel) * PANEL * STRIP
            for k in range(STRIP):
                for column in range(PANEL):  # RACE(stale read): docs/races.md
                    cell = b[at + k * PANEL + column] if k < count else np.float32(0)
                    floats[into + column * STRIP + k] = cell


@inner
def multiply_flipped(size: Any, a: Any, a_places: Any, floats: Any, flipped: int, c: Any, c_places: Any) -> None:
    """As `multiply_back`, with what `flip` made of b; columns are filled up to whole strips, and so must c be."""
    rows, columns, panels = size
    apart, by_panel = c_places[1], a_places[1]
    for strip in range(padded(columns) // STRIP):
        place, to = flipped + strip * panels * PANEL * STRIP, c_places[0] + strip * STRIP
        row = 0
        while row < rows:
            at, into, take = a_places[0] + row * PANEL, to + row * apart, next_rows(rows - row)
            if take == 6:
                stack(_SIX, panels, a, at, by_panel, floats, place, c, into, apart)
            elif take == 5:
                stack(_FIVE, panels, a, at, by_panel, floats, place, c, into, apart)
            elif take == 4:
                stack(_FOUR, panels, a, at, by_panel, floats, place, c, into, apart)
            elif take == 3:
                stack(_THREE, panels, a, at, by_panel, floats, place, c, into, apart)
            elif take == 2:
                stack(_TWO, panels, a, at, by_panel, floats, place, c, into, apart)
            else:
                stack(_ONE, panels, a, at, by_panel, floats, place, c, into, apart)
            row += take


@inner
def flipped_cells(stride: int, units: int) -> int:
    """Cells that weights turned over need, of inputs or of units."""
    return max(stride, padded(units)) * 4 * units


# -- what units read of the token before ----------------------------------------------------------------------------


@choice
def read_former(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int) -> None:
    """Add to the gates of time t what the units gave at the time before."""


@read_former.of(Full)
def _read_all(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int) -> None:
    panels, floats = layer.units // UNITS, memory.floats
    rows = batch.base[t + 1] - batch.base[t]
    multiply_panels(
        KEPT, (rows, layer.units, panels), floats, (memory.given + batch.base[t - 1] * layer.units, layer.units, 1),
        layer.values, (layer.at + layer.inputs * PANEL, layer.rows * PANEL), floats,
        (memory.gates + batch.base[t] * PANEL, batch.apart * PANEL),
    )  # fmt: skip


@read_former.of(Diagonal)
def _read_own(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int) -> None:
    floats, units = memory.floats, layer.units
    for panel in range(units // UNITS):
        first = layer.at + (panel * layer.rows + layer.inputs) * PANEL
        own = layer.values[first : first + PANEL]  # RACE(stale read): docs/races.md
        for s in range(batch.base[t + 1] - batch.base[t]):
            at = memory.given + (batch.base[t - 1] + s) * units + panel * UNITS
            given = floats[at : at + UNITS]
            to = memory.gates + (panel * batch.apart + batch.base[t] + s) * PANEL
            for gate in range(0, PANEL, UNITS):
                for u in range(UNITS):
                    floats[to + gate + u] += own[gate + u] * given[u]


@choice
def send_back(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    """Add to the derivatives in what was given at time t - 1 those by way of the gates of time t."""


@send_back.of(Full)
def _send_all(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    floats, panels = memory.floats, layer.units // UNITS
    size = (batch.base[t + 1] - batch.base[t], layer.units, panels)
    gates = (memory.gates + batch.base[t] * PANEL, batch.apart * PANEL)
    weights = (layer.at + layer.inputs * PANEL, layer.rows * PANEL)
    target = (slopes + batch.base[t - 1] * layer.units, layer.units)
    if batch.tokens >= MANY:
        if t == batch.times - 1:
            flip((layer.units, panels), layer.values, weights, floats, memory.flipped)
        multiply_flipped(size, floats, gates, floats, memory.flipped, floats, target)
    else:
        multiply_back(size, floats, gates, layer.values, weights, floats, target)


@send_back.of(Diagonal)
def _send_own(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    floats, units = memory.floats, layer.units
    for panel in range(units // UNITS):
        first = layer.at + (panel * layer.rows + layer.inputs) * PANEL
        own = layer.values[first : first + PANEL]  # RACE(stale read): docs/races.md
        for s in range(batch.base[t + 1] - batch.base[t]):
            at = memory.gates + (panel * batch.apart + batch.base[t] + s) * PANEL
            to = slopes + (batch.base[t - 1] + s) * units + panel * UNITS
            for gate in range(0, PANEL, UNITS):
                for u in range(UNITS):
                    floats[to + u] += own[gate + u] * floats[at + gate + u]


@choice
def keep_recurrent(recurrence: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
    """The gradient in the weights of the token before. former: what was given then, a row a token."""


@keep_recurrent.of(Full)
def _keep_all(recurrence: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
    first = layer.at + layer.inputs * PANEL
    sum_gradient(layer.units, first, layer, batch, memory, former, layer.units, grads)


@keep_recurrent.of(Diagonal)
def _keep_own(recurrence: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
    floats = memory.floats
    for panel in range(layer.units // UNITS):
        first = layer.at + (panel * layer.rows + layer.inputs) * PANEL
        own = grads[first : first + PANEL]
        own[:] = np.float32(0)
        for row in range(batch.tokens):
            at = memory.gates + (panel * batch.apart + row) * PANEL
            read = former + row * layer.units + panel * UNITS
            given = floats[read : read + UNITS]
            for gate in range(0, PANEL, UNITS):
                for u in range(UNITS):
                    own[gate + u] += floats[at + gate + u] * given[u]


@inner
def sum_gradient(rows: int, at: int, layer: Any, batch: Any, memory: Any, source: int, stride: int, grads: Any) -> None:
    """The gradient in so many rows of the panels of a layer, from `at` on: what was read, from `source` on with rows
    `stride` cells apart, times the derivatives in the gates; some tokens after the other."""
    for first in range(0, batch.tokens, _STRETCH):
        size = (rows, min(_STRETCH, batch.tokens - first), layer.units // UNITS)
        read, gates = (source + first * stride, 1, stride), (memory.gates + first * PANEL, batch.apart * PANEL)
        if first == 0:
            multiply_panels(ANEW, size, memory.floats, read, memory.floats, gates, grads, (at, layer.rows * PANEL))
        else:
            multiply_panels(KEPT, size, memory.floats, read, memory.floats, gates, grads, (at, layer.rows * PANEL))


# -- one layer in one direction -------------------------------------------------------------------------------------


@inner
def read_forward(recurrence: Any, layer: Any, batch: Any, memory: Any, source: int) -> None:
    """Fill the memory of a layer from its inputs, which stand from `source` on, a row a token, in its own time."""
    floats, units, panels = memory.floats, layer.units, layer.units // UNITS
    multiply_panels(
        ANEW, (batch.tokens, layer.inputs, panels), floats, (source, layer.stride, 1), layer.values,
        (layer.at, layer.rows * PANEL), floats, (memory.gates, batch.apart * PANEL),
    )  # fmt: skip
    for t in range(batch.times):
        if t > 0:
            read_former(recurrence, layer, batch, memory, t)
        for row in range(batch.base[t], batch.base[t + 1]):
            former = memory.zeros
            if t > 0:
                former = memory.cells + (batch.base[t - 1] + row - batch.base[t]) * units
            open_cells(
                panels, floats, memory.gates + row * PANEL, batch.apart * PANEL, floats, former,
                memory.cells + row * units, memory.curved + row * units, memory.given + row * units,
            )  # fmt: skip


@inner
def read_back(recurrence: Any, layer: Any, batch: Any, memory: Any, slopes: int, carried: int) -> None:
    """Turn the gates into derivatives in their sums. slopes: those in what was given, to which those by way of later
    tokens are added; carried: a row a sentence."""
    floats, units, panels = memory.floats, layer.units, layer.units // UNITS
    for k in range((batch.base[1] - batch.base[0]) * units):
        floats[carried + k] = np.float32(0)
    for t in range(batch.times - 1, -1, -1):
        for row in range(batch.base[t], batch.base[t + 1]):
            sentence = row - batch.base[t]
            former = memory.zeros if t == 0 else memory.cells + (batch.base[t - 1] + sentence) * units
            close_cells(
                panels, floats, memory.gates + row * PANEL, batch.apart * PANEL, floats, former,
                memory.curved + row * units, slopes + row * units, carried + sentence * units,
            )  # fmt: skip
        if t > 0:
            send_back(recurrence, layer, batch, memory, t, slopes)


@inner
def keep_gradient(recurrence: Any, layer: Any, batch: Any, memory: Any, source: int, former: int, grads: Any) -> None:
    """The gradient in the weights of a layer, from the derivatives in its gates; former: room for a row a token."""
    floats, units = memory.floats, layer.units
    sum_gradient(layer.inputs, layer.at, layer, batch, memory, source, layer.stride, grads)
    for t in range(batch.times):
        for row in range(batch.base[t], batch.base[t + 1]):
            to = former + row * units
            if t == 0:
                for u in range(units):
                    floats[to + u] = np.float32(0)
            else:
                at = memory.given + (batch.base[t - 1] + row - batch.base[t]) * units
                for u in range(units):
                    floats[to + u] = floats[at + u]
    keep_recurrent(recurrence, layer, batch, memory, former, grads)


@inner
def send_to_inputs(layer: Any, batch: Any, memory: Any, slopes: int) -> None:
    """The derivatives in the inputs, a row a token, to `slopes`."""
    floats, panels = memory.floats, layer.units // UNITS
    for k in range(batch.tokens * layer.stride):
        floats[slopes + k] = np.float32(0)
    size, weights = (batch.tokens, layer.inputs - 1, panels), (layer.at, layer.rows * PANEL)
    gates, target = (memory.gates, batch.apart * PANEL), (slopes, layer.stride)
    if batch.tokens >= MANY:
        flip((layer.inputs - 1, panels), layer.values, weights, floats, memory.flipped)
        multiply_flipped(size, floats, gates, floats, memory.flipped, floats, target)
    else:
        multiply_back(size, floats, gates, layer.values, weights, floats, target)
