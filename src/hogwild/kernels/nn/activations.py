"""What dense layers do to their sums, chosen by type; in place, over a run of cells."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import choice


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
def deactivate(activation: Any, cells: Any, pulls: Any) -> None:
    """Turn derivatives in what the layer gave (`cells`) into derivatives in its sums."""


@activate.of(Identity)
def _as_it_is(activation: Any, cells: Any) -> None:
    return


@deactivate.of(Identity)
def _as_they_are(activation: Any, cells: Any, pulls: Any) -> None:
    return


@activate.of(Relu)
def _relu(activation: Any, cells: Any) -> None:
    # Not max(0, x), which would make zeros of NaN: the loss must show them.
    for i in range(len(cells)):
        cells[i] = np.float32(0) if cells[i] < np.float32(0) else cells[i]


@deactivate.of(Relu)
def _relu_slope(activation: Any, cells: Any, pulls: Any) -> None:
    # Read in any case: a read under a condition would be a branch, which nothing can foretell and nothing vectorises.
    for i in range(len(cells)):
        pull = pulls[i]
        pulls[i] = pull if cells[i] > np.float32(0) else np.float32(0)


@activate.of(Tanh)
def _tanh(activation: Any, cells: Any) -> None:
    for i in range(len(cells)):
        cells[i] = np.float32(math.tanh(cells[i]))


@deactivate.of(Tanh)
def _tanh_slope(activation: Any, cells: Any, pulls: Any) -> None:
    for i in range(len(cells)):
        pulls[i] *= np.float32(1) - cells[i] * cells[i]
