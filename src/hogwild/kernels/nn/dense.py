"""Dense layers over a batch of rows, by BLAS: forward and backward.

`sizes` lists the inputs of the first layer and the outputs of each. `layers` holds, one layer after the other, a matrix
(inputs x outputs, in row order) and its biases. `floats` of scratch holds, for a batch of up to `batch` rows, the input
of the first layer and what each layer gives, one after the other, then two matrices of derivatives that take turns.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.nn.blas import Block, multiply, multiply_by_transposed, multiply_transposed

# -- What dense layers do to their sums, chosen by type; in place, over a run of cells --------------------------------


class Identity(NamedTuple):
    """x."""


class Relu(NamedTuple):
    """max(0, x)."""


class Tanh(NamedTuple):
    """tanh x."""


ACTIVATIONS: dict[str, Any] = {"none": Identity(), "relu": Relu(), "tanh": Tanh()}


@choice
def activate(activation: Any, cells: Any) -> None:
    """Replace sums by what the layer gives."""


@choice
def deactivate(activation: Any, cells: Any, grads: Any) -> None:
    """Turn derivatives in what the layer gave (`cells`) into derivatives in its sums."""


@activate.of(Identity)
def _as_it_is(activation: Any, cells: Any) -> None:
    return


@deactivate.of(Identity)
def _as_they_are(activation: Any, cells: Any, grads: Any) -> None:
    return


@activate.of(Relu)
def _relu(activation: Any, cells: Any) -> None:
    # Not max(0, x), which would make zeros of NaN: the loss must show them.
    for i in range(len(cells)):
        cells[i] = np.float32(0) if cells[i] < np.float32(0) else cells[i]


@deactivate.of(Relu)
def _relu_slope(activation: Any, cells: Any, grads: Any) -> None:
    # Read in any case: a read under a condition would be a branch, which nothing can foretell and nothing vectorises.
    for i in range(len(cells)):
        grad = grads[i]
        grads[i] = grad if cells[i] > np.float32(0) else np.float32(0)


@activate.of(Tanh)
def _tanh(activation: Any, cells: Any) -> None:
    for i in range(len(cells)):
        cells[i] = np.float32(math.tanh(cells[i]))


@deactivate.of(Tanh)
def _tanh_slope(activation: Any, cells: Any, grads: Any) -> None:
    for i in range(len(cells)):
        grads[i] *= np.float32(1) - cells[i] * cells[i]


def layer_cells(sizes: npt.NDArray[np.int64]) -> int:
    """Weights and biases of all layers."""
    return int(np.sum(sizes[:-1] * sizes[1:] + sizes[1:]))


def batch_floats(sizes: npt.NDArray[np.int64], batch: int) -> int:
    """Floats of scratch that a batch needs."""
    return int(batch * (sizes.sum() + 2 * sizes.max()))


@inner
def place_of(sizes: Any, batch: int, layer: int) -> int:
    """Where in `floats` stands what a layer gives; layer 0 is the input of the first."""
    place = 0
    for k in range(layer):
        place += batch * sizes[k]
    return place


@inner
def grads_at(sizes: Any, batch: int, layer: int) -> int:
    """Where in `floats` the derivatives in what a layer gives stand; the last layer's stand in place of its scores."""
    last = len(sizes) - 1
    if layer == last:
        return place_of(sizes, batch, last)
    widest = 0
    for k in range(len(sizes)):
        widest = max(widest, sizes[k])
    return place_of(sizes, batch, last + 1) + (layer & 1) * batch * widest


@inner
def forward(task: Any, layers: Any, floats: Any, rows: int) -> None:
    """Fill in what each layer gives, from the input of the first; the last one gives sums."""
    sizes, batch = task.sizes, task.batch
    last = len(sizes) - 1
    at = 0
    for layer in range(1, last + 1):
        before, after = sizes[layer - 1], sizes[layer]
        source, target = place_of(sizes, batch, layer - 1), place_of(sizes, batch, layer)
        multiply(  # RACE(stale read): docs/races.md
            Block(floats, source, before), Block(layers, at, after), Block(floats, target, after), rows, after,
            before, np.float32(1), np.float32(0),
        )  # fmt: skip
        bias = layers[at + before * after : at + before * after + after]
        for row in range(rows):
            sums = floats[target + row * after : target + (row + 1) * after]
            for k in range(after):
                sums[k] += bias[k]  # RACE(stale read): docs/races.md
            if layer < last:
                activate(task.activation, sums)
        at += before * after + after


@inner
def backward(task: Any, layers: Any, floats: Any, rows: int, out: Any, scale: Any, keep: Any) -> None:
    """From the derivatives in the last layer's sums, those in the input of the first, and in all weights.

    The derivatives in the weights of a layer, times `scale`, are added to `keep` times what stands in `out`. If that is
    `layers` itself this is a step of gradient descent, in place and layer by layer, each read before it is written.
    """
    sizes, batch = task.sizes, task.batch
    last = len(sizes) - 1
    at = task.cells - sizes[last]
    grads = grads_at(sizes, batch, last)
    for row in range(rows):
        add_biases(floats[grads + row * sizes[last] : grads + (row + 1) * sizes[last]], out, at, scale)
    for layer in range(last, 0, -1):
        before, after = sizes[layer - 1], sizes[layer]
        at -= before * after
        source, grads = place_of(sizes, batch, layer - 1), grads_at(sizes, batch, layer)
        lower = grads_at(sizes, batch, layer - 1)
        multiply_by_transposed(  # RACE(stale read): docs/races.md
            Block(floats, grads, after), Block(layers, at, after), Block(floats, lower, before), rows, before, after,
            np.float32(1), np.float32(0),
        )  # fmt: skip
        multiply_transposed(  # RACE(lost update): docs/races.md
            Block(floats, source, before), Block(floats, grads, after), Block(out, at, after), before, after, rows,
            scale, keep,
        )  # fmt: skip
        if layer > 1:
            at -= before
            for row in range(rows):
                own = floats[lower + row * before : lower + (row + 1) * before]
                deactivate(task.activation, floats[source + row * before : source + (row + 1) * before], own)
                add_biases(own, out, at, scale)


@inner
def add_biases(grads: Any, out: Any, at: int, scale: Any) -> None:
    """Add what one row gives to the derivatives in the biases of a layer, which pay no penalty."""
    bias = out[at : at + len(grads)]
    for k in range(len(grads)):
        bias[k] += scale * grads[k]  # RACE(lost update): docs/races.md
