"""Sums over all paths of a chain of tags, in float32 that neither over- nor underflows.

Sentence x with tags y has the score sum_i n_i[y_i] + sum_i e_i[y_{i-1}, y_i] and the probability exp(score) / Z. With
weights p_i = exp(n_i - max n_i) and m_i = exp(e_i - max e_i) the forward recursion a_i = p_i (m_i^T a_{i-1}) / c_i,
where c_i makes a_i sum to 1, gives log Z = sum_i log c_i + the maxima; backwards b_{i-1} = m_i (p_i b_i) / d_i, where
d_i makes sum_y a_{i-1}[y] b_{i-1}[y] = 1, gives the chances a_i b_i of tags, and those of pairs: a_{i-1}[x] m_i[x, y]
p_i[y] b_i[y] / d_i. All a_i[y] lie within exp(-extent of n_i - extent of e_i) of the largest one, whatever the length:
where that is a normal number for every i nothing is lost. Sentences with larger extents go through logarithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner, kernel
from hogwild.kernels.compiler.rng import below
from hogwild.kernels.crf.task import PlainEdges, RichEdges, matrix_at
from hogwild.kernels.simd.matrix8 import add_outer, combine, row_products, times_outer
from hogwild.kernels.simd.rows8 import LANES, exps, extent, multiply, scale_row

STEEP = np.float32(70)  # largest sum of extents: exp(70), once for each of 100 million tokens, is a float32


@inner
def cut(task: Any, tokens: int, scratch: Any) -> None:
    """Mark in scratch.ints the tokens that begin a piece: the first, and others drawn at random."""
    scratch.ints[0] = 1
    wanted = min(task.pieces, tokens) - 1
    for i in range(1, tokens):
        scratch.ints[i] = 0
        if wanted > 0 and below(scratch.random, tokens - i) < wanted:
            scratch.ints[i] = 1
            wanted -= 1


# -- forward --------------------------------------------------------------------------------------------------------


@choice
def weigh_common(edges: Any, scratch: Any, places: Any) -> None:
    """Turn the scores of pairs that all neighbours have in common into weights."""


@choice
def weigh_matrix(edges: Any, scratch: Any, places: Any, i: int, top: Any) -> None:
    """Turn the scores of pairs between tokens i - 1 and i into weights."""


@weigh_common.of(PlainEdges)
def _weigh_once(edges: Any, scratch: Any, places: Any) -> None:
    vectors = places.rows * places.width // LANES
    _, top = extent(scratch.floats, places.base, vectors)
    exps(scratch.floats, places.base, vectors, top)


@weigh_common.of(RichEdges)
def _nothing_common(edges: Any, scratch: Any, places: Any) -> None:
    return


@weigh_matrix.of(PlainEdges)
def _is_weighed(edges: Any, scratch: Any, places: Any, i: int, top: Any) -> None:
    return


@weigh_matrix.of(RichEdges)
def _weigh_own(edges: Any, scratch: Any, places: Any, i: int, top: Any) -> None:
    exps(scratch.floats, matrix_at(edges, places, i), places.rows * places.width // LANES, top)


@inner
def forward(task: Any, tokens: int, scratch: Any, places: Any) -> Any:
    """Turn scores into weights and fill the alphas; returns log Z, summed over pieces."""
    floats, width, lanes, blocks = scratch.floats, places.width, task.lanes, len(task.blocks)
    total = 0.0
    weigh_common(task.edges, scratch, places)
    for i in range(tokens):
        node, alpha = places.nodes + i * width, places.alphas + i * width
        top = floats[places.tops + 2 * i]
        exps(floats, node, width // LANES, top)
        total += top
        if scratch.ints[i] == 1:
            norm = multiply(lanes, blocks, floats, alpha, node, places.ones)
        else:
            top = floats[places.tops + 2 * i + 1]
            weigh_matrix(task.edges, scratch, places, i, top)
            total += top
            at = matrix_at(task.edges, places, i)
            combine(lanes, blocks, floats, at, task.tags, floats, alpha - width, floats, alpha)
            norm = multiply(lanes, blocks, floats, alpha, alpha, node)
        total += math.log(norm)
        scale_row(lanes, blocks, floats, alpha, alpha, np.float32(1) / norm)
    return total


# -- backward -------------------------------------------------------------------------------------------------------


@inner
def chances(task: Any, tokens: int, i: int, scratch: Any, places: Any) -> None:
    """The chances of the tags of token i, to places.residual; for tokens from the last one on."""
    floats, lanes, blocks = scratch.floats, task.lanes, len(task.blocks)
    if i == tokens - 1 or scratch.ints[i + 1] == 1:
        scale_row(lanes, blocks, floats, places.beta, places.ones, np.float32(1))
    multiply(lanes, blocks, floats, places.residual, places.alphas + i * places.width, places.beta)


@inner
def step_back(task: Any, i: int, scratch: Any, places: Any) -> None:
    """From token i to the one before it: the chances of their pairs are added to places.totals.

    With rich edges they stand in the matrix of the pair too; with plain ones the weights of the matrix, by which the
    totals are multiplied in the end, are left out.
    """
    floats, width, lanes, blocks = scratch.floats, places.width, task.lanes, len(task.blocks)
    at, alpha = matrix_at(task.edges, places, i), places.alphas + (i - 1) * width
    multiply(lanes, blocks, floats, places.pull, places.nodes + i * width, places.beta)
    row_products(lanes, blocks, floats, at, places.rows, floats, places.pull, floats, places.beta)
    scaled = np.float32(1) / multiply(lanes, blocks, floats, places.residual, alpha, places.beta)
    scale_row(lanes, blocks, floats, places.beta, places.beta, scaled)
    scale_row(lanes, blocks, floats, places.pull, places.pull, scaled)
    add_pairs(task.edges, task, scratch, places, at, alpha)


@choice
def add_pairs(edges: Any, task: Any, scratch: Any, places: Any, at: int, alpha: int) -> None:
    """Add the chances of the pairs of two neighbours to the totals."""


@add_pairs.of(PlainEdges)
def _add_outer(edges: Any, task: Any, scratch: Any, places: Any, at: int, alpha: int) -> None:
    floats = scratch.floats
    add_outer(task.lanes, len(task.blocks), floats, places.totals, task.tags, floats, alpha, floats, places.pull)


@add_pairs.of(RichEdges)
def _times_outer(edges: Any, task: Any, scratch: Any, places: Any, at: int, alpha: int) -> None:
    floats = scratch.floats
    times_outer(
        task.lanes, len(task.blocks), floats, at, task.tags, floats, alpha, floats, places.pull, floats, places.totals
    )


@choice
def finish_totals(edges: Any, scratch: Any, places: Any) -> None:
    """At the beginning of the sentence: make the totals sums of chances."""


@finish_totals.of(PlainEdges)
def _multiply(edges: Any, scratch: Any, places: Any) -> None:
    for c in range(places.rows * places.width):
        scratch.floats[places.totals + c] *= scratch.floats[places.base + c]


@finish_totals.of(RichEdges)
def _are_sums(edges: Any, scratch: Any, places: Any) -> None:
    return


# -- The same sums in logarithms, for scores too far apart for the scaled ones: slow, and always right -----------------
# The same recursions with log-sum-exp: alphas and beta hold logarithms, shifted so that their largest is 0.


@kernel
def shift_down(floats: Any, at: int, tags: int) -> Any:
    """Subtract the largest of so many numbers from each; returns it."""
    top = floats[at]
    for y in range(1, tags):
        top = max(top, floats[at + y])
    for y in range(tags):
        floats[at + y] -= top
    return top


@inner
def log_forward(task: Any, tokens: int, scratch: Any, places: Any) -> Any:
    """Fill the alphas; returns log Z, summed over pieces."""
    floats, width, tags = scratch.floats, places.width, task.tags
    total = 0.0
    for i in range(tokens):
        node, alpha = places.nodes + i * width, places.alphas + i * width
        at = matrix_at(task.edges, places, i)
        for y in range(tags):
            floats[alpha + y] = floats[node + y]
            if scratch.ints[i] == 0:
                top = floats[alpha - width] + floats[at + y]
                for x in range(1, tags):
                    top = max(top, floats[alpha - width + x] + floats[at + x * width + y])
                norm = 0.0
                for x in range(tags):
                    norm += math.exp(floats[alpha - width + x] + floats[at + x * width + y] - top)
                floats[alpha + y] += top + np.float32(math.log(norm))
        total += shift_down(floats, alpha, tags)
        if i == tokens - 1 or scratch.ints[i + 1] == 1:
            norm = 0.0
            for y in range(tags):
                norm += math.exp(floats[alpha + y])
            total += math.log(norm)
    return total


@inner
def log_chances(task: Any, tokens: int, i: int, scratch: Any, places: Any) -> None:
    """The chances of the tags of token i, to places.residual; for tokens from the last one on."""
    floats, tags = scratch.floats, task.tags
    if i == tokens - 1 or scratch.ints[i + 1] == 1:
        for y in range(tags):
            floats[places.beta + y] = np.float32(0)
    alpha = places.alphas + i * places.width
    for y in range(places.width):
        floats[places.residual + y] = np.float32(0)
    for y in range(tags):
        floats[places.residual + y] = floats[alpha + y] + floats[places.beta + y]
    shift_down(floats, places.residual, tags)
    norm = 0.0
    for y in range(tags):
        norm += math.exp(floats[places.residual + y])
    for y in range(tags):
        floats[places.residual + y] = np.float32(math.exp(floats[places.residual + y]) / norm)


@inner
def log_step_back(task: Any, i: int, scratch: Any, places: Any) -> None:
    """From token i to the one before it: the chances of their pairs are added to places.totals."""
    floats, width, tags = scratch.floats, places.width, task.tags
    at, alpha = matrix_at(task.edges, places, i), places.alphas + (i - 1) * width
    for y in range(tags):
        floats[places.pull + y] = floats[places.nodes + i * width + y] + floats[places.beta + y]
    shift_down(floats, places.pull, tags)  # or one huge score of a token would drown those of pairs
    best = np.float32(-np.inf)
    for x in range(tags):
        row = at + x * width
        top = floats[row] + floats[places.pull]
        for y in range(1, tags):
            top = max(top, floats[row + y] + floats[places.pull + y])
        norm = 0.0
        for y in range(tags):
            norm += math.exp(floats[row + y] + floats[places.pull + y] - top)
        floats[places.beta + x] = top + np.float32(math.log(norm))
        best = max(best, top + floats[alpha + x])
    shift_down(floats, places.beta, tags)
    norm = 0.0
    for x in range(tags):
        for y in range(tags):
            norm += math.exp(floats[alpha + x] + floats[at + x * width + y] + floats[places.pull + y] - best)
    for x in range(tags):
        for y in range(tags):
            cell = x * width + y
            score = floats[alpha + x] + floats[at + cell] + floats[places.pull + y] - best
            keep_chance(task.edges, scratch, places, at, cell, np.float32(math.exp(score) / norm))
    clear_rest(task.edges, task, scratch, places, at)


@choice
def keep_chance(edges: Any, scratch: Any, places: Any, at: int, cell: int, chance: Any) -> None:
    """Add the chance of a pair to the totals; with rich edges it stands in the pair's matrix too."""


@keep_chance.of(PlainEdges)
def _add(edges: Any, scratch: Any, places: Any, at: int, cell: int, chance: Any) -> None:
    scratch.floats[places.totals + cell] += chance


@keep_chance.of(RichEdges)
def _add_and_keep(edges: Any, scratch: Any, places: Any, at: int, cell: int, chance: Any) -> None:
    scratch.floats[places.totals + cell] += chance
    scratch.floats[at + cell] = chance


@choice
def clear_rest(edges: Any, task: Any, scratch: Any, places: Any, at: int) -> None:
    """With rich edges: what fills the rows of a matrix up has no chance."""


@clear_rest.of(PlainEdges)
def _nothing_to_clear(edges: Any, task: Any, scratch: Any, places: Any, at: int) -> None:
    return


@clear_rest.of(RichEdges)
def _clear(edges: Any, task: Any, scratch: Any, places: Any, at: int) -> None:
    for x in range(places.rows):
        for y in range(task.tags if x < task.tags else 0, places.width):
            scratch.floats[at + x * places.width + y] = np.float32(0)
