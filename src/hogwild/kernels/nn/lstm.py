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
from hogwild.kernels.simd.panels import PANEL, STRIP, UNITS, WIDE, close_cells, dots, open_cells, tile

_STRIPS = (0,) * (2 if WIDE else 1)  # of tiles with many rows: sums for which there are registers
_ONE, _TWO, _FOUR = (0,), (0, 0), (0, 0, 0, 0)
_THREE, _FIVE, _SIX = (0,) * 3, (0,) * 5, (0,) * 6
KEPT, ANEW = (0,), ()  # whether a product is added to what stands there


class Full(NamedTuple):
    """Every unit reads what every unit gave at the token before."""


class Diagonal(NamedTuple):
    """A unit reads only what itself gave at the token before."""


class Batch(NamedTuple):
    """A packed batch: base[t] is the first row of time t; mirror: see above; tokens: rows; times: of the longest."""

    base: Any
    mirror: Any
    tokens: int
    times: int


class Layer(NamedTuple):
    """Weights and gradients of one layer and direction: both begin at `at`, with panels of `rows` rows."""

    values: Any
    at: int
    inputs: int
    rows: int
    units: int


class Memory(NamedTuple):
    """Where in `floats` one layer and direction has what it needs: gates (as panels), and a row a token of: cells;
    their tanh; what is given. before: a row of zeros for each sentence, the cells before the first token."""

    floats: Any
    gates: int
    cells: int
    curved: int
    given: int
    zeros: int


@choice
def recurrent_rows(recurrence: Any, units: int) -> Any:
    """Rows of a panel for the units of the token before."""


recurrent_rows.of(Full)(lambda recurrence, units: units)
recurrent_rows.of(Diagonal)(lambda recurrence, units: 1)


# -- products of a matrix with panels -------------------------------------------------------------------------------


@inner
def multiply_panels(keep: Any, size: Any, a: Any, a_places: Any, b: Any, b_places: Any, c: Any, c_places: Any) -> None:
    """c = (c +) a b, where b and c are panels. size: rows of c, numbers that each of its cells is a sum of, panels.

    a_places: beginning, cells from row to row and from column to column; b_places, c_places: beginning, cells from panel
    to panel.
    """
    rows, count, panels = size
    at, by_row, by_step = a_places
    for panel in range(panels):
        place, to = b_places[0] + panel * b_places[1], c_places[0] + panel * c_places[1]
        row = 0
        while row + 6 <= rows:
            for s in range(0, PANEL, STRIP * len(_STRIPS)):
                tile(_SIX, _STRIPS, keep, count, a, at + row * by_row, by_row, by_step, b, place + s, PANEL, c,
                     to + row * PANEL + s, PANEL)  # fmt: skip
            row += 6
        left, first, into = rows - row, at + row * by_row, to + row * PANEL
        if left == 5:
            for s in range(0, PANEL, STRIP * len(_STRIPS)):
                tile(_FIVE, _STRIPS, keep, count, a, first, by_row, by_step, b, place + s, PANEL, c, into + s, PANEL)
        elif left == 4:
            for s in range(0, PANEL, STRIP * len(_STRIPS)):
                tile(_FOUR, _STRIPS, keep, count, a, first, by_row, by_step, b, place + s, PANEL, c, into + s, PANEL)
        elif left == 3:
            for s in range(0, PANEL, STRIP * len(_TWO)):
                tile(_THREE, _TWO, keep, count, a, first, by_row, by_step, b, place + s, PANEL, c, into + s, PANEL)
        elif left == 2:
            for s in range(0, PANEL, STRIP * len(_TWO)):
                tile(_TWO, _TWO, keep, count, a, first, by_row, by_step, b, place + s, PANEL, c, into + s, PANEL)
        elif left == 1:
            tile(_ONE, _FOUR, keep, count, a, first, by_row, by_step, b, place, PANEL, c, into, PANEL)


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
        (memory.gates + batch.base[t] * PANEL, batch.tokens * PANEL),
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
            to = memory.gates + (panel * batch.tokens + batch.base[t] + s) * PANEL
            for gate in range(0, PANEL, UNITS):
                for u in range(UNITS):
                    floats[to + gate + u] += own[gate + u] * given[u]


@choice
def send_back(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    """Add to the derivatives in what was given at time t - 1 those by way of the gates of time t."""


@send_back.of(Full)
def _send_all(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    rows, floats = batch.base[t + 1] - batch.base[t], memory.floats
    multiply_back(
        (rows, layer.units, layer.units // UNITS), floats,
        (memory.gates + batch.base[t] * PANEL, batch.tokens * PANEL), layer.values,
        (layer.at + layer.inputs * PANEL, layer.rows * PANEL), floats,
        (slopes + batch.base[t - 1] * layer.units, layer.units),
    )  # fmt: skip


@send_back.of(Diagonal)
def _send_own(recurrence: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    floats, units = memory.floats, layer.units
    for panel in range(units // UNITS):
        first = layer.at + (panel * layer.rows + layer.inputs) * PANEL
        own = layer.values[first : first + PANEL]  # RACE(stale read): docs/races.md
        for s in range(batch.base[t + 1] - batch.base[t]):
            at = memory.gates + (panel * batch.tokens + batch.base[t] + s) * PANEL
            to = slopes + (batch.base[t - 1] + s) * units + panel * UNITS
            for gate in range(0, PANEL, UNITS):
                for u in range(UNITS):
                    floats[to + u] += own[gate + u] * floats[at + gate + u]


@choice
def keep_recurrent(recurrence: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
    """The gradient in the weights of the token before. former: what was given then, a row a token."""


@keep_recurrent.of(Full)
def _keep_all(recurrence: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
    multiply_panels(
        ANEW, (layer.units, batch.tokens, layer.units // UNITS), memory.floats, (former, 1, layer.units),
        memory.floats, (memory.gates, batch.tokens * PANEL), grads,
        (layer.at + layer.inputs * PANEL, layer.rows * PANEL),
    )  # fmt: skip


@keep_recurrent.of(Diagonal)
def _keep_own(recurrence: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
    floats = memory.floats
    for panel in range(layer.units // UNITS):
        first = layer.at + (panel * layer.rows + layer.inputs) * PANEL
        own = grads[first : first + PANEL]
        own[:] = np.float32(0)
        for row in range(batch.tokens):
            at = memory.gates + (panel * batch.tokens + row) * PANEL
            given = floats[former + row * layer.units + panel * UNITS : former + row * layer.units + panel * UNITS + UNITS]
            for gate in range(0, PANEL, UNITS):
                for u in range(UNITS):
                    own[gate + u] += floats[at + gate + u] * given[u]


# -- one layer in one direction -------------------------------------------------------------------------------------


@inner
def read_forward(recurrence: Any, layer: Any, batch: Any, memory: Any, source: int) -> None:
    """Fill the memory of a layer from its inputs, which stand from `source` on, a row a token, in its own time."""
    floats, units, panels = memory.floats, layer.units, layer.units // UNITS
    multiply_panels(
        ANEW, (batch.tokens, layer.inputs, panels), floats, (source, layer.inputs, 1), layer.values,
        (layer.at, layer.rows * PANEL), floats, (memory.gates, batch.tokens * PANEL),
    )  # fmt: skip
    for t in range(batch.times):
        if t > 0:
            read_former(recurrence, layer, batch, memory, t)
        for row in range(batch.base[t], batch.base[t + 1]):
            former = memory.zeros
            if t > 0:
                former = memory.cells + (batch.base[t - 1] + row - batch.base[t]) * units
            open_cells(
                panels, floats, memory.gates + row * PANEL, batch.tokens * PANEL, floats, former,
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
                panels, floats, memory.gates + row * PANEL, batch.tokens * PANEL, floats, former,
                memory.curved + row * units, slopes + row * units, carried + sentence * units,
            )  # fmt: skip
        if t > 0:
            send_back(recurrence, layer, batch, memory, t, slopes)


@inner
def keep_gradient(recurrence: Any, layer: Any, batch: Any, memory: Any, source: int, former: int, grads: Any) -> None:
    """The gradient in the weights of a layer, from the derivatives in its gates; former: room for a row a token."""
    floats, units = memory.floats, layer.units
    multiply_panels(
        ANEW, (layer.inputs, batch.tokens, units // UNITS), floats, (source, 1, layer.inputs), floats,
        (memory.gates, batch.tokens * PANEL), grads, (layer.at, layer.rows * PANEL),
    )  # fmt: skip
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
    floats = memory.floats
    for k in range(batch.tokens * layer.inputs):
        floats[slopes + k] = np.float32(0)
    multiply_back(
        (batch.tokens, layer.inputs - 1, layer.units // UNITS), floats, (memory.gates, batch.tokens * PANEL),
        layer.values, (layer.at, layer.rows * PANEL), floats, (slopes, layer.inputs),
    )  # fmt: skip
