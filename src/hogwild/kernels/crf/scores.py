"""The scores of a sentence, read from the weights into scratch: of the tags of each token, of pairs of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.arrays import Chains, ValuedChains
from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.crf.rows import add_row
from hogwild.kernels.crf.task import PlainEdges, Quick, RichEdges, Slow, matrix_at, places_of
from hogwild.kernels.simd.matrix8 import add_pairs
from hogwild.kernels.simd.rows8 import LANES, extent, score_rows


@choice
def value_at(chains: Any, entry: int) -> Any:
    """Value of a feature of a token."""


@value_at.of(Chains)
def _one(chains: Any, entry: int) -> Any:
    return np.float32(1)


@value_at.of(ValuedChains)
def _value(chains: Any, entry: int) -> Any:
    return chains.values[entry]


# -- tokens ---------------------------------------------------------------------------------------------------------


@choice
def read_nodes(rows: Any, task: Any, chains: Any, t: int, weights: Any, scratch: Any, places: Any, to: int, scale: Any) -> None:  # noqa: E501
    """Sum the weights of the features of a token, one number a tag, times the scale."""


@read_nodes.of(Quick)
def _read_rows(rows: Any, task: Any, chains: Any, t: int, weights: Any, scratch: Any, places: Any, to: int, scale: Any) -> None:  # noqa: E501
    score_rows(
        task.lanes, len(task.blocks), weights.nodes, places.width, chains.ids, chains.starts[t], chains.starts[t + 1],
        scale, scratch.floats, places.pads, to,
    )  # fmt: skip


@read_nodes.of(Slow)
def _read_cells(rows: Any, task: Any, chains: Any, t: int, weights: Any, scratch: Any, places: Any, to: int, scale: Any) -> None:  # noqa: E501
    width, now, floats = places.width, scratch.clock[0], scratch.floats
    for y in range(width):
        floats[to + y] = floats[places.pads + y]
    for e in range(chains.starts[t], chains.starts[t + 1]):
        row, value = np.int64(chains.ids[e]), scale * value_at(chains, e)
        add_row(task.penalty, task.rule, weights.nodes, row, width, value, now, floats, to, places.residual)


# -- pairs ----------------------------------------------------------------------------------------------------------


@choice
def read_transitions(rows: Any, task: Any, weights: Any, scratch: Any, places: Any, scale: Any) -> None:
    """Scores of pairs of tags, whatever the features, to places.base."""


@read_transitions.of(Quick)
def _read_all(rows: Any, task: Any, weights: Any, scratch: Any, places: Any, scale: Any) -> None:
    for c in range(task.tags * places.width):  # RACE(stale read): docs/races.md
        scratch.floats[places.base + c] = scale * weights.edges[c]


@read_transitions.of(Slow)
def _read_each(rows: Any, task: Any, weights: Any, scratch: Any, places: Any, scale: Any) -> None:
    width, now, floats = places.width, scratch.clock[0], scratch.floats
    for x in range(task.tags):
        to = places.base + x * width
        for y in range(width):
            floats[to + y] = np.float32(0)
        add_row(task.penalty, task.rule, weights.edges, x, width, scale, now, floats, to, places.residual)


@inner
def clear_matrices(task: Any, scratch: Any, places: Any) -> None:
    """-inf where the matrix at places.base has no pairs, 0 in its spare cells and at places.totals; ones and pads."""
    floats = scratch.floats
    none = np.float32(-np.inf)
    for x in range(task.tags):
        for y in range(task.tags, places.width):
            floats[places.base + x * places.width + y] = none
    for c in range(task.tags * places.width, places.rows * places.width):
        floats[places.base + c] = none
    for c in range(places.rows * places.width, places.size):
        floats[places.base + c] = np.float32(0)
    for c in range(places.size):
        floats[places.totals + c] = np.float32(0)
    for y in range(places.width):
        floats[places.ones + y] = np.float32(1 if y < task.tags else 0)
        floats[places.pads + y] = np.float32(0) if y < task.tags else none


@choice
def read_matrix(edges: Any, task: Any, samples: Any, t: int, weights: Any, scratch: Any, places: Any, i: int, scale: Any) -> None:  # noqa: E501
    """Scores of all pairs of tags between tokens i - 1 and i, of which the second is token t of all."""


@read_matrix.of(PlainEdges)
def _is_read(edges: Any, task: Any, samples: Any, t: int, weights: Any, scratch: Any, places: Any, i: int, scale: Any) -> None:  # noqa: E501
    return


@read_matrix.of(RichEdges)
def _read_rich(edges: Any, task: Any, samples: Any, t: int, weights: Any, scratch: Any, places: Any, i: int, scale: Any) -> None:  # noqa: E501
    chains, at = samples.chains, matrix_at(edges, places, i)
    for c in range(places.size):
        scratch.floats[at + c] = scratch.floats[places.base + c]
    for e in range(chains.starts[t], chains.starts[t + 1]):
        feature = chains.ids[e]
        if feature >= len(samples.pair_starts) - 1:
            break  # ids rise: the rest is too rare for rich edges
        factor = scale * value_at(chains, e)
        first, last = samples.pair_starts[feature], samples.pair_starts[feature + 1]
        add_chunks(task.rows, task, samples.pairs, first, last, weights, scratch, places, at, factor)


@choice
def add_chunks(rows: Any, task: Any, pairs: Any, first: int, last: int, weights: Any, scratch: Any, places: Any, at: int, factor: Any) -> None:  # noqa: E501
    """Add the weights of chunks of pairs to a matrix."""


@add_chunks.of(Quick)
def _add_quickly(rows: Any, task: Any, pairs: Any, first: int, last: int, weights: Any, scratch: Any, places: Any, at: int, factor: Any) -> None:  # noqa: E501
    add_pairs(scratch.floats, at, weights.rich, pairs, first * LANES, last * LANES, factor)


@add_chunks.of(Slow)
def _add_slowly(rows: Any, task: Any, pairs: Any, first: int, last: int, weights: Any, scratch: Any, places: Any, at: int, factor: Any) -> None:  # noqa: E501
    now, floats = scratch.clock[0], scratch.floats
    for chunk in range(first, last):
        for k in range(LANES):
            floats[places.beta + k] = np.float32(0)
        add_row(task.penalty, task.rule, weights.rich, chunk, LANES, factor, now, floats, places.beta, places.residual)
        for k in range(LANES):
            floats[at + pairs[chunk * LANES + k]] += floats[places.beta + k]


# -- a sentence -----------------------------------------------------------------------------------------------------


@inner
def read_sentence(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, scale: Any) -> Any:
    """Scores of all tokens and pairs of a sentence, with their maxima at places.tops; returns their largest extent."""
    chains, floats = samples.chains, scratch.floats
    first = chains.offsets[visit]
    tokens = chains.offsets[visit + 1] - first
    places = places_of(task, tokens)
    read_transitions(task.rows, task, weights, scratch, places, scale)
    clear_matrices(task, scratch, places)
    least, top = extent(floats, places.base, places.rows * places.width // LANES)
    steep = np.float32(0)
    for i in range(tokens):
        to = places.nodes + i * places.width
        read_nodes(task.rows, task, chains, first + i, weights, scratch, places, to, scale)
        low, high = extent(floats, to, places.width // LANES)
        floats[places.tops + 2 * i] = high
        if scratch.ints[i] == 0:
            read_matrix(task.edges, task, samples, first + i, weights, scratch, places, i, scale)
            at = matrix_at(task.edges, places, i)
            if at != places.base:
                least, top = extent(floats, at, places.rows * places.width // LANES)
            floats[places.tops + 2 * i + 1] = top
            low -= top - least
        steep = max(steep, high - low)
    return steep


@inner
def gold_score(task: Any, chains: Any, visit: int, scratch: Any, places: Any) -> Any:
    """Score of the tags that the sentence has."""
    first = chains.offsets[visit]
    score = 0.0
    for i in range(chains.offsets[visit + 1] - first):
        tag = chains.tags[first + i]
        score += scratch.floats[places.nodes + i * places.width + tag]
        if scratch.ints[i] == 0:
            pair = chains.tags[first + i - 1] * places.width + tag
            score += scratch.floats[matrix_at(task.edges, places, i) + pair]
    return score
