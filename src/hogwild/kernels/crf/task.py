"""What a linear-chain CRF is to compiled code: its samples, weights and task, and where its numbers are in scratch.

Places are numbers of cells in scratch.floats. Matrices of pairs have a row for each former tag, rows up to a multiple
of four, and a spare vector: the cell of pairs that fill lists up. What fills rows up scores -inf.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Chains, Ids, Offsets, ValuedChains
from hogwild.kernels.compiler.jit import choice, in_python, inner
from hogwild.kernels.simd.rows8 import LANES


class Tagged(NamedTuple):
    """What a CRF reads: chains, and for each feature below len(pair_starts) - 1 the pairs of tags that it weighs.

    pairs[8 k:8 k + 8] are the pairs of chunk k, as cells of a matrix of pairs; the feature f has the chunks
    pair_starts[f]:pair_starts[f + 1].
    """

    chains: Chains | ValuedChains
    pair_starts: Offsets
    pairs: Ids


class ChainWeights(NamedTuple):
    """nodes: a row a feature, of a number a tag. edges: a row a former tag. rich: chunks of 8 pairs."""

    nodes: Any
    edges: Any
    rich: Any


class PlainEdges(NamedTuple):
    """All pairs of neighbours have the same matrix of scores."""


class RichEdges(NamedTuple):
    """Each pair of neighbours has a matrix of its own."""


class Quick(NamedTuple):
    """Rows of weights and nothing else, with values that are all 1: whole vectors at a time."""


class Slow(NamedTuple):
    """Rows with what update rules remember or with penalties to pay, or values: a cell at a time."""


class ChainTask(NamedTuple):
    """A linear-chain CRF. edges: PlainEdges or RichEdges; rows: Quick or Slow; decay: L2 a visit that all weights
    pay by one common factor (see `scale_at`); pieces: how many a sentence is cut into, 0 for none."""

    lanes: tuple[int, ...]
    blocks: tuple[int, ...]
    tags: int
    edges: Any
    rows: Any
    rule: Any
    penalty: Any
    decay: np.float32
    pieces: int


class Places(NamedTuple):
    """Where in scratch.floats the numbers of a sentence are. ones, pads: rows of 1 and 0 for tags, of 0 and -inf for
    what fills them up."""

    width: int
    rows: int
    size: int
    nodes: int
    alphas: int
    tops: int
    base: int
    totals: int
    beta: int
    pull: int
    residual: int
    ones: int
    pads: int
    edges: int


@inner
def places_of(task: Any, tokens: int) -> Any:
    """The places of a sentence of so many tokens."""
    width = LANES * len(task.lanes) * len(task.blocks)
    rows = (task.tags + 3) // 4 * 4
    size = rows * width + LANES
    # Rounded up to whole vectors: rows begin at cache lines as scratch does.
    tops = 2 * tokens * width
    base = tops + (2 * tokens + 15) // 16 * 16
    beta = base + 2 * size
    return Places(
        width, rows, size, 0, tokens * width, tops, base, base + size, beta, beta + width, beta + 2 * width,
        beta + 3 * width, beta + 4 * width, beta + 5 * width,
    )  # fmt: skip


def floats_for(task: Any, tokens: int) -> int:
    """Cells of scratch for a sentence of so many tokens."""
    places = in_python(places_of)(task, tokens)
    matrices = tokens if isinstance(task.edges, RichEdges) else 1
    return int(places.edges + places.size * matrices)


@inner
def scale_at(task: Any, elapsed: Any) -> Any:
    """What the stored weights are multiplied by at a time: weights that all decay alike need not be written.

    The time is known to every worker, so that no scalar is shared. Past exp(-60) they stand still.
    """
    return np.float32(math.exp(-min(np.float64(task.decay) * elapsed, 60.0)))


@choice
def matrix_at(edges: Any, places: Any, i: int) -> Any:
    """Place of the matrix between tokens i - 1 and i."""


@matrix_at.of(PlainEdges)
def _only_matrix(edges: Any, places: Any, i: int) -> Any:
    return places.base


@matrix_at.of(RichEdges)
def _own_matrix(edges: Any, places: Any, i: int) -> Any:
    return places.edges + i * places.size
