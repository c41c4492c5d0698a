"""The weights of a Bi-LSTM as plain arrays: taken out of the strips that compiled code reads, put back, drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hogwild.arrays import Floats
from hogwild.kernels.nn.letters import letter_cells
from hogwild.kernels.nn.lstm import Diagonal, Full, strip_rows
from hogwild.kernels.simd.rows8 import LANES, layout
from hogwild.kernels.simd.strips import GATES, STRIP
from hogwild.programs.saving.tensors import Arrays, required

_DIRECTIONS = ("forward", "backward")
_KEEP = 1.0  # bias of forget gates at first: what is in a cell stays


@dataclass(frozen=True)
class Shape:
    """Sizes of a Bi-LSTM. inputs: numbers a token; letters: rows of the table of letters, 0 without one."""

    inputs: int
    hidden: int
    layers: int
    diagonal: bool
    tags: int
    chained: bool
    letters: int = 0
    letter_dim: int = 0
    filters: int = 0

    @property
    def units(self) -> int:
        """Units filled up to whole strips."""
        return -(-self.hidden // STRIP) * STRIP

    @property
    def pair_width(self) -> int:
        """Cells of a row of pairs of tags."""
        lanes, blocks = layout(self.tags)
        return LANES * len(lanes) * len(blocks)

    def rows(self, layer: int) -> int:
        """Rows of a strip: inputs, of which the last is 1, what is read of the token before, and what fills it up."""
        return int(strip_rows(Diagonal() if self.diagonal else Full(), self.width(layer), self.units))

    def width(self, layer: int) -> int:
        """Inputs of a layer, with the one that is always 1."""
        return (self.inputs if layer == 0 else 2 * self.units) + 1

    @property
    def output_at(self) -> int:
        """Where the output begins among the dense weights."""
        return sum(2 * self.rows(layer) * GATES * self.units for layer in range(self.layers))

    @property
    def pairs_at(self) -> int:
        """Where the pairs of tags begin."""
        return self.output_at + (2 * self.units + 1) * self.tags

    @property
    def letters_at(self) -> int:
        """Where the letters begin."""
        return self.pairs_at + (self.tags * self.pair_width if self.chained else 0)

    @property
    def cells(self) -> int:
        """All dense weights."""
        return self.letters_at + (letter_cells(self.letters, self.letter_dim, self.filters) if self.letters else 0)


def _parts(shape: Shape, values: Floats) -> Iterator[tuple[str, Floats]]:
    """Views of all dense weights by name, without what fills them up."""
    at, hidden, units = 0, shape.hidden, shape.units
    for layer in range(shape.layers):
        rows, width = shape.rows(layer), shape.width(layer)
        for direction in _DIRECTIONS:
            size = rows * GATES * units
            strips = values[at : at + size].reshape(-1, GATES, rows, STRIP).transpose(0, 2, 1, 3)  # a row an input
            name = f"lstm_{layer + 1}_{direction}"
            if layer == 0:
                yield f"{name}_input", strips[:, : width - 1]
            else:
                yield f"{name}_input_forward", strips[:, :hidden]
                yield f"{name}_input_backward", strips[:, units : units + hidden]
            yield f"{name}_bias", strips[:, width - 1 : width]
            yield f"{name}_hidden", strips[:, width : width + (1 if shape.diagonal else hidden)]
            at += size
    output = values[at : at + (2 * units + 1) * shape.tags].reshape(-1, shape.tags)
    yield "output_forward", output[:hidden]
    yield "output_backward", output[units : units + hidden]
    yield "output_bias", output[-1]
    if shape.chained:
        yield "pairs", values[shape.pairs_at : shape.letters_at].reshape(shape.tags, -1)[:, : shape.tags]
    if shape.letters:
        at, dim = shape.letters_at, shape.letter_dim
        yield "letters", values[at : at + shape.letters * dim].reshape(-1, dim)
        filters = values[at + shape.letters * dim : shape.cells].reshape(shape.filters, -1)
        yield "filters", filters[:, :-1]
        yield "filter_bias", filters[:, -1]


def plain_of(shape: Shape, values: Floats) -> dict[str, Floats]:
    """Copies of all dense weights by name. Those of gates have `hidden` columns each for input, forget, candidate and
    output."""
    return {name: _unfolded(shape, part) if part.ndim == 4 else part.copy() for name, part in _parts(shape, values)}


def put_plain(shape: Shape, arrays: Arrays, values: Floats) -> None:
    """The inverse of `plain_of`, into weights of zero; checks shapes and kinds."""
    for name, part in _parts(shape, values):
        if part.ndim == 4:
            found = required(arrays, name, (part.shape[1], GATES * shape.hidden))
            _fold(shape, found, part)
        else:
            part[...] = required(arrays, name, part.shape)


def _unfolded(shape: Shape, part: Floats) -> Floats:
    """Strips as a matrix: a row an input, all units of the first gate, of the second, …"""
    rows = part.shape[1]
    whole = part.transpose(1, 2, 0, 3).reshape(rows, GATES, shape.units)
    return np.ascontiguousarray(whole[:, :, : shape.hidden].reshape(rows, -1))


def _fold(shape: Shape, found: Floats, part: Floats) -> None:
    rows = len(found)
    whole = np.zeros((rows, GATES, shape.units), np.float32)
    whole[:, :, : shape.hidden] = found.reshape(rows, GATES, shape.hidden)
    part[...] = whole.reshape(rows, GATES, -1, STRIP).transpose(2, 0, 1, 3)


def names_of(shape: Shape) -> list[str]:
    """Names of all dense weights."""
    return [name for name, _ in _parts(shape, np.zeros(shape.cells, np.float32))]


def draw(shape: Shape, random: np.random.Generator) -> dict[str, Floats]:
    """Random dense weights, by name, to begin with."""
    found = plain_of(shape, np.zeros(shape.cells, np.float32))
    for name, part in found.items():
        if name.endswith("_hidden") and not shape.diagonal:
            for gate in range(GATES):  # turns of space: nothing grows or fades on its way through time
                turned = np.linalg.qr(random.normal(size=(shape.hidden, shape.hidden)))[0]
                part[:, gate * shape.hidden : (gate + 1) * shape.hidden] = turned
        elif name.endswith("_bias"):
            if name.startswith("lstm"):
                part[:, shape.hidden : 2 * shape.hidden] = _KEEP
        elif name != "pairs":
            ways = (len(part) if part.ndim > 1 else 1, shape.hidden if name.startswith("lstm") else part.shape[-1])
            reach = math.sqrt(6 / sum(ways)) if name != "letters" else math.sqrt(3 / shape.letter_dim)
            part[...] = random.uniform(-reach, reach, part.shape)
    return found
