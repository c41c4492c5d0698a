"""The scores of a sentence, read from the weights into scratch: of the tags of each token, of pairs of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.arrays import Chains, ValuedChains
from hogwild.kernels.chains import PlainEdges, RichEdges, matrix_at, places_of
from hogwild.kernels.jit import choice, inner
from hogwild.kernels.octets import LANES, extent, sum_rows
from hogwild.kernels.penalties import Free, Penalty, weight_at
from hogwild.kernels.updates import Adagrad, Adam, Ftrl, Momentum, Sgd, stride

# -- matrices of pairs: one for all, or one a pair of neighbours -----------------------------------------------------


@choice
def read_matrix(edges: Any, task: Any, samples: Any, t: int, weights: Any, scratch: Any, places: Any, i: int, scale: Any) -> None:  # noqa: E501
    """Scores of all pairs of tags between tokens i - 1 and i, of which the second is token t of all."""


@read_matrix.of(PlainEdges)
def _is_read(edges: Any, task: Any, samples: Any, t: int, weights: Any, scratch: Any, places: Any, i: int, scale: Any) -> None:  # noqa: E501
    return


@read_matrix.of(RichEdges)
def _read_rich(edges: Any, task: Any, samples: Any, t: int, weights: Any, scratch: Any, places: Any, i: int, scale: Any) -> None:  # noqa: E501
    floats = scratch.floats
    at = matrix_at(edges, places, i)
    for c in range(places.size):
        floats[at + c] = floats[places.base + c]
    cells, now = stride(task.rule, task.penalty, LANES), scratch.clock[0]
    chains = samples.chains
    for e in range(chains.starts[t], chains.starts[t + 1]):
        feature = chains.ids[e]
        if feature >= len(samples.pair_starts) - 1:
            break  # ids rise: the rest is too rare for rich edges
        factor = scale * value_at(chains, e)
        for chunk in range(samples.pair_starts[feature], samples.pair_starts[feature + 1]):
            row = chunk * cells
            for k in range(LANES):  # RACE(stale read): docs/races.md
                weight = weight_at(task.penalty, task.rule, weights.rich, row + k, LANES, row + cells - 1, now)
                floats[at + samples.pairs[chunk * LANES + k]] += factor * weight


# -- scores of tokens ------------------------------------------------------------------------------------------------


@choice
def quick(kind: Any) -> Any:
    """Whether chains, a penalty or a rule need nothing but sums of rows. A compile-time constant."""


@quick.of(Chains, Free, Sgd)
def _is_quick(kind: Any) -> bool:
    return True


@quick.of(ValuedChains, Penalty, Momentum, Adagrad, Adam, Ftrl)
def _is_not(kind: Any) -> bool:
    return False


@choice
def value_at(chains: Any, entry: int) -> Any:
    """Value of a feature of a token."""


@value_at.of(Chains)
def _one(chains: Any, entry: int) -> Any:
    return np.float32(1)


@value_at.of(ValuedChains)
def _value(chains: Any, entry: int) -> Any:
    return chains.values[entry]


@inner
def read_nodes(task: Any, chains: Any, t: int, weights: Any, scratch: Any, to: int) -> None:
    """Sum the weights of the features of a token, one number a tag."""
    if quick(task.penalty) and quick(chains):
        cells = stride(task.rule, task.penalty, LANES * len(task.lanes) * len(task.blocks))
        first, last = chains.starts[t], chains.starts[t + 1]
        sum_rows(task.lanes, len(task.blocks), weights.nodes, cells, chains.ids, first, last, scratch.floats, to)
    else:
        add_slowly(task, chains, t, weights, scratch, to)


@inner
def add_slowly(task: Any, chains: Any, t: int, weights: Any, scratch: Any, to: int) -> None:
    """The sum of rows for every kind of chain and penalty."""
    width = LANES * len(task.lanes) * len(task.blocks)
    cells, now = stride(task.rule, task.penalty, width), scratch.clock[0]
    for y in range(width):
        scratch.floats[to + y] = np.float32(0)
    for e in range(chains.starts[t], chains.starts[t + 1]):
        row = np.int64(chains.ids[e]) * cells
        value = value_at(chains, e)
        for y in range(width):  # RACE(stale read): docs/races.md
            weight = weight_at(task.penalty, task.rule, weights.nodes, row + y, width, row + cells - 1, now)
            scratch.floats[to + y] += value * weight


# -- a sentence ------------------------------------------------------------------------------------------------------


@inner
def read_transitions(task: Any, weights: Any, scratch: Any, places: Any, scale: Any) -> None:
    """Scores of pairs of tags at places.base, and zeros at places.totals."""
    floats = scratch.floats
    cells, now = stride(task.rule, task.penalty, places.width), scratch.clock[0]
    none = np.float32(-np.inf)
    for x in range(places.rows):
        row, to = x * cells, places.base + x * places.width
        for y in range(places.width):
            floats[to + y] = none
        for y in range(task.tags if x < task.tags else 0):  # RACE(stale read): docs/races.md
            weight = weight_at(task.penalty, task.rule, weights.edges, row + y, places.width, row + cells - 1, now)
            floats[to + y] = scale * weight
    for c in range(places.size):
        floats[places.totals + c] = np.float32(0)
    for c in range(places.rows * places.width, places.size):
        floats[places.base + c] = np.float32(0)


@inner
def read_sentence(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, scale: Any) -> Any:
    """Scores of all tokens and pairs of a sentence, with their maxima at places.tops; returns their largest extent."""
    chains, floats = samples.chains, scratch.floats
    first = chains.offsets[visit]
    tokens = chains.offsets[visit + 1] - first
    places = places_of(task, tokens)
    read_transitions(task, weights, scratch, places, scale)
    least, top = extent(floats, places.base, places.rows * places.width // LANES)
    steep = np.float32(0)
    for i in range(tokens):
        to = places.nodes + i * places.width
        read_nodes(task, chains, first + i, weights, scratch, to)
        for y in range(places.width):
            floats[to + y] = scale * floats[to + y] if y < task.tags else np.float32(-np.inf)
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
