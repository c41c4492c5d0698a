"""Sums over all paths of a chain of tags in logarithms, for scores too far apart for chain.py: slow, and always right.

The same recursions with log-sum-exp: alphas and beta hold logarithms, shifted so that their largest is 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner, kernel
from hogwild.kernels.crf.task import PlainEdges, RichEdges, matrix_at


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
