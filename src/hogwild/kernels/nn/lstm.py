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
from hogwild.kernels.nn.lstm_products import (
    ANEW,
    KEPT,
    cells_for,
    flip,
    multiply_flipped,
    multiply_strips,
    pair_neighbours,
    pair_strips,
    pair_tokens,
    wide_for,
)
from hogwild.kernels.simd.pairs import BFloat16, Float32, join_strips
from hogwild.kernels.simd.strips import GATES, STRIP, close_cells, open_cells

_STRETCH = 192  # cells of tokens whose gates and inputs the nearest cache holds while a gradient is summed up


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
    their tanh; what is given. zeros: the cells before the first token; flipped, paired: room for `flipped_cells`,
    `paired_cells`."""

    floats: Any
    gates: int
    cells: int
    curved: int
    given: int
    zeros: int
    flipped: int
    paired: int


@choice
def recurrent_rows(recurrence: Any, units: int) -> Any:
    """Rows of a strip for the units of the token before."""


recurrent_rows.of(Full)(lambda recurrence, units: units)
recurrent_rows.of(Diagonal)(lambda recurrence, units: 1)


@inner
def strip_rows(recurrence: Any, inputs: int, units: int) -> Any:
    """Rows of a strip; odd, see `apart_for`."""
    return (inputs + recurrent_rows(recurrence, units)) | 1


# -- what units read of the token before ----------------------------------------------------------------------------


@choice
def read_former(recurrence: Any, products: Any, layer: Any, batch: Any, memory: Any, t: int, unit: int) -> None:
    """Add to the gates of time t, of 16 units from `unit` on, what the units gave at the time before."""


@read_former.of(Full)
def _read_all(recurrence: Any, products: Any, layer: Any, batch: Any, memory: Any, t: int, unit: int) -> None:
    floats, first, c_apart = memory.floats, GATES * unit // STRIP, batch.apart * STRIP
    weights, (begin, b_apart) = weights_at(products, recurrence, layer, memory)
    begin += cells_for(products, layer.inputs) * STRIP + first * b_apart
    multiply_strips(
        products, KEPT, (batch.base[t + 1] - batch.base[t], cells_for(products, layer.units), GATES), floats,
        given_at(products, layer, batch, memory, t - 1), weights, (begin, b_apart), floats,
        (memory.gates + batch.base[t] * STRIP + first * c_apart, c_apart),
    )  # fmt: skip


@read_former.of(Diagonal)
def _read_own(recurrence: Any, products: Any, layer: Any, batch: Any, memory: Any, t: int, unit: int) -> None:
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
def send_back(recurrence: Any, products: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    """Add to the derivatives in what was given at time t - 1 those by way of the gates of time t."""


@send_back.of(Full)
def _send_all(recurrence: Any, products: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
    floats, strips = memory.floats, GATES * layer.units // STRIP
    if t == batch.times - 1:
        weights = (layer.at + layer.inputs * STRIP, layer.rows * STRIP)
        flip(products, layer.units, strips, layer.values, weights, floats, memory.flipped)
    multiply_flipped(
        products, (batch.base[t + 1] - batch.base[t], layer.units, cells_for(products, strips)), floats,
        (slopes_at(products, memory) + batch.base[t] * STRIP, batch.apart * STRIP), floats, memory.flipped, floats,
        (slopes + batch.base[t - 1] * layer.units, layer.units),
    )  # fmt: skip


@send_back.of(Diagonal)
def _send_own(recurrence: Any, products: Any, layer: Any, batch: Any, memory: Any, t: int, slopes: int) -> None:
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
def keep_recurrent(recurrence: Any, products: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:  # noqa: E501
    """The gradient in the weights of the token before. former: what was given then, a row a token."""


@keep_recurrent.of(Full)
def _keep_all(recurrence: Any, products: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
    first = layer.at + layer.inputs * STRIP
    sum_gradient(products, layer.units, first, layer, batch, memory, former, layer.units, grads)


@keep_recurrent.of(Diagonal)
def _keep_own(recurrence: Any, products: Any, layer: Any, batch: Any, memory: Any, former: int, grads: Any) -> None:
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
def sum_gradient(products: Any, rows: int, at: int, layer: Any, batch: Any, memory: Any, source: int, stride: int, grads: Any) -> None:  # noqa: E501
    """The gradient in so many rows of the strips of a layer, from `at` on: what was read, from `source` on with rows
    `stride` cells apart, times the derivatives in the gates; some tokens after the other."""
    cells = cells_for(products, batch.tokens)
    read, (gates, apart) = tokens_at(products, layer, batch, memory, source, stride)
    for first in range(0, cells, _STRETCH):
        size = (rows, min(_STRETCH, cells - first), GATES * layer.units // STRIP)
        left, right, to = (read + first * stride, 1, stride), (gates + first * STRIP, apart), (at, layer.rows * STRIP)
        if first == 0:
            multiply_strips(products, ANEW, size, memory.floats, left, memory.floats, right, grads, to)
        else:
            multiply_strips(products, KEPT, size, memory.floats, left, memory.floats, right, grads, to)


# -- what products read ---------------------------------------------------------------------------------------------
# Of float32 it is what there is. Of pairs it is copies: on the way forward of the weights (at `flipped`), of the inputs
# and of what was given at the token before; on the way back of the derivatives in the gates, two strips being one, and
# for the gradient, two tokens being one, of these derivatives and of what was read.


@choice
def paired_cells(products: Any, tokens: int, stride: int, units: int) -> Any:
    """Cells for copies in pairs of what so many tokens have, whose inputs are `stride` cells apart at the most."""


paired_cells.of(Float32)(lambda products, tokens, stride, units: 0)


@paired_cells.of(BFloat16)
def _paired_cells(products: Any, tokens: int, stride: int, units: int) -> Any:
    two = cells_for(products, tokens)
    return GATES * units * (apart_for(tokens) // 2 + 1 + apart_for(two)) + two * stride


@choice
def ready_forward(products: Any, recurrence: Any, layer: Any, batch: Any, memory: Any, source: int) -> None:
    """Make ready what the way forward reads."""


ready_forward.of(Float32)(lambda products, recurrence, layer, batch, memory, source: None)


@ready_forward.of(BFloat16)
def _pair_weights(products: Any, recurrence: Any, layer: Any, batch: Any, memory: Any, source: int) -> None:
    strips, apart = GATES * layer.units // STRIP, layer.rows * STRIP
    _, (begin, b_apart) = weights_at(products, recurrence, layer, memory)
    pair_strips(layer.inputs, strips, layer.values, (layer.at, apart), memory.floats, (begin, b_apart))
    begin += cells_for(products, layer.inputs) * STRIP
    rows = recurrent_rows(recurrence, layer.units)
    pair_strips(rows, strips, layer.values, (layer.at + layer.inputs * STRIP, apart), memory.floats, (begin, b_apart))
    pair_neighbours(batch.tokens, layer.inputs, memory.floats, source, layer.stride, memory.paired)


@choice
def weights_at(products: Any, recurrence: Any, layer: Any, memory: Any) -> Any:
    """Where the strips of the weights are: array, beginning, cells from strip to strip."""


@weights_at.of(Float32)
def _weights_themselves(products: Any, recurrence: Any, layer: Any, memory: Any) -> Any:
    return layer.values, (layer.at, layer.rows * STRIP)


@weights_at.of(BFloat16)
def _paired_weights(products: Any, recurrence: Any, layer: Any, memory: Any) -> Any:
    rows = cells_for(products, layer.inputs) + cells_for(products, recurrent_rows(recurrence, layer.units))
    return memory.floats, (memory.flipped, apart_for(rows) * STRIP)


@choice
def inputs_at(products: Any, layer: Any, memory: Any, source: int) -> Any:
    """Where the inputs are: beginning, cells from row to row and from column to column."""


inputs_at.of(Float32)(lambda products, layer, memory, source: (source, layer.stride, 1))
inputs_at.of(BFloat16)(lambda products, layer, memory, source: (memory.paired, wide_for(layer.inputs), 1))


@choice
def given_at(products: Any, layer: Any, batch: Any, memory: Any, t: int) -> Any:
    """Where what the units gave at a time is, likewise; of pairs it has been made ready."""


@given_at.of(Float32)
def _given_itself(products: Any, layer: Any, batch: Any, memory: Any, t: int) -> Any:
    return memory.given + batch.base[t] * layer.units, layer.units, 1


@given_at.of(BFloat16)
def _paired_given(products: Any, layer: Any, batch: Any, memory: Any, t: int) -> Any:
    return memory.paired + batch.tokens * wide_for(layer.inputs), wide_for(layer.units), 1


@choice
def ready_given(products: Any, layer: Any, batch: Any, memory: Any, t: int) -> None:
    """Make ready what was given at a time, for those who are at work at the next."""


ready_given.of(Float32)(lambda products, layer, batch, memory, t: None)


@ready_given.of(BFloat16)
def _pair_given(products: Any, layer: Any, batch: Any, memory: Any, t: int) -> None:
    rows, units = batch.base[t + 2] - batch.base[t + 1], layer.units
    to = memory.paired + batch.tokens * wide_for(layer.inputs)
    pair_neighbours(rows, units, memory.floats, memory.given + batch.base[t] * units, units, to)


@choice
def ready_slopes(products: Any, layer: Any, batch: Any, memory: Any, t: int) -> None:
    """Make ready the derivatives in the gates of a time."""


ready_slopes.of(Float32)(lambda products, layer, batch, memory, t: None)


@ready_slopes.of(BFloat16)
def _join_slopes(products: Any, layer: Any, batch: Any, memory: Any, t: int) -> None:
    row, apart = batch.base[t], batch.apart * STRIP
    for two in range(GATES * layer.units // STRIP // 2):
        at, to = memory.gates + 2 * two * apart + row * STRIP, memory.paired + two * apart + row * STRIP
        join_strips(memory.floats, at, apart, batch.base[t + 1] - row, memory.floats, to)


@choice
def slopes_at(products: Any, memory: Any) -> Any:
    """Where the derivatives in the gates are."""


slopes_at.of(Float32)(lambda products, memory: memory.gates)
slopes_at.of(BFloat16)(lambda products, memory: memory.paired)


@choice
def ready_tokens(products: Any, layer: Any, batch: Any, memory: Any) -> None:
    """Make ready the derivatives in the gates for the gradient."""


ready_tokens.of(Float32)(lambda products, layer, batch, memory: None)


@ready_tokens.of(BFloat16)
def _pair_slopes(products: Any, layer: Any, batch: Any, memory: Any) -> None:
    strips = GATES * layer.units // STRIP
    gates = (memory.gates, batch.apart * STRIP)
    pair_strips(batch.tokens, strips, memory.floats, gates, memory.floats, paired_slopes(layer, batch, memory))


@inner
def paired_slopes(layer: Any, batch: Any, memory: Any) -> Any:
    """Where the derivatives in the gates are of which two tokens are one: beginning, cells from strip to strip."""
    two = cells_for(BFloat16(), batch.tokens)
    return memory.paired + GATES * layer.units // 2 * batch.apart, apart_for(two) * STRIP


@choice
def tokens_at(products: Any, layer: Any, batch: Any, memory: Any, source: int, stride: int) -> Any:
    """Where that is of which a gradient is summed up: the beginning of what was read, and of the derivatives in the
    gates, with the cells from strip to strip."""


@tokens_at.of(Float32)
def _tokens_themselves(products: Any, layer: Any, batch: Any, memory: Any, source: int, stride: int) -> Any:
    return source, (memory.gates, batch.apart * STRIP)


@tokens_at.of(BFloat16)
def _paired_tokens(products: Any, layer: Any, batch: Any, memory: Any, source: int, stride: int) -> Any:
    gates, apart = paired_slopes(layer, batch, memory)
    read = gates + GATES * layer.units // STRIP * apart
    pair_tokens(batch.tokens, stride, memory.floats, source, read)
    return read, (gates, apart)


# -- one layer in one direction -------------------------------------------------------------------------------------


@inner
def read_forward(products: Any, recurrence: Any, layer: Any, batch: Any, memory: Any, source: int) -> None:
    """Fill the memory of a layer from its inputs, which stand from `source` on, a row a token, in its own time."""
    floats, units, apart = memory.floats, layer.units, batch.apart * STRIP
    ready_forward(products, recurrence, layer, batch, memory, source)
    weights, places = weights_at(products, recurrence, layer, memory)
    multiply_strips(
        products, ANEW, (batch.tokens, cells_for(products, layer.inputs), GATES * units // STRIP), floats,
        inputs_at(products, layer, memory, source), weights, places, floats, (memory.gates, apart),
    )  # fmt: skip
    for t in range(batch.times):
        row, rows = batch.base[t], batch.base[t + 1] - batch.base[t]
        former, by_former = memory.zeros, 0
        if t > 0:
            former, by_former = memory.cells + batch.base[t - 1] * units, units
            ready_given(products, layer, batch, memory, t - 1)
        for unit in range(0, units, STRIP):
            if t > 0:
                read_former(recurrence, products, layer, batch, memory, t, unit)
            own = row * units + unit
            open_cells(
                rows, floats, memory.gates + GATES * unit // STRIP * apart + row * STRIP, apart, floats, former + unit,
                by_former, memory.cells + own, memory.curved + own, memory.given + own, units,
            )  # fmt: skip


@inner
def read_back(products: Any, recurrence: Any, layer: Any, batch: Any, memory: Any, slopes: int, carried: int) -> None:
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
        ready_slopes(products, layer, batch, memory, t)
        if t > 0:
            send_back(recurrence, products, layer, batch, memory, t, slopes)


@inner
def keep_gradient(products: Any, recurrence: Any, layer: Any, batch: Any, memory: Any, source: int, former: int, grads: Any) -> None:  # noqa: E501
    """The gradient in the weights of a layer, from the derivatives in its gates; former: room for a row a token."""
    ready_tokens(products, layer, batch, memory)
    sum_gradient(products, layer.inputs, layer.at, layer, batch, memory, source, layer.stride, grads)
    copy_former(layer, batch, memory, former)
    keep_recurrent(recurrence, products, layer, batch, memory, former, grads)


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
def turn_over_inputs(products: Any, layer: Any, memory: Any) -> None:
    """Make the weights of the inputs ready for `send_to_inputs`."""
    strips, weights = GATES * layer.units // STRIP, (layer.at, layer.rows * STRIP)
    flip(products, layer.inputs - 1, strips, layer.values, weights, memory.floats, memory.flipped)


@inner
def send_to_inputs(products: Any, layer: Any, batch: Any, memory: Any, slopes: int) -> None:
    """The derivatives in the inputs, a row a token, to `slopes`."""
    floats, strips = memory.floats, GATES * layer.units // STRIP
    for k in range(batch.tokens * layer.stride):
        floats[slopes + k] = np.float32(0)
    multiply_flipped(
        products, (batch.tokens, layer.inputs - 1, cells_for(products, strips)), floats,
        (slopes_at(products, memory), batch.apart * STRIP), floats, memory.flipped, floats, (slopes, layer.stride),
    )  # fmt: skip
