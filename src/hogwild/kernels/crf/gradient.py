"""Linear-chain CRFs: the gradient of the log-likelihood of a sentence, and what a visit does with it.

The gradient of -log p(y | x) in the weight of (feature, tag) is the sum over tokens with the feature of the chance of
the tag, minus 1 where the token has it; in the weight of a pair the same over neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner, open_kernel
from hogwild.kernels.crf.forward_backward import (
    STEEP,
    chances,
    cut,
    finish_totals,
    forward,
    log_chances,
    log_forward,
    log_step_back,
    step_back,
)
from hogwild.kernels.crf.rows import move_row
from hogwild.kernels.crf.scores import gold_score, read_sentence, value_at
from hogwild.kernels.crf.task import ChainTask, PlainEdges, Quick, RichEdges, Slow, matrix_at, places_of, scale_at
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.optim.rules import stride
from hogwild.kernels.simd.matrix8 import take_pairs
from hogwild.kernels.simd.rows8 import LANES, scale_row, take_from_rows


@inner
def begin_sentence(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    """Scores and forward sums of a sentence; its loss, and whether its scores lie near enough for plain weights."""
    chains = samples.chains
    tokens = chains.offsets[visit + 1] - chains.offsets[visit]
    places = places_of(task, tokens)
    cut(task, tokens, scratch)
    near = read_sentence(task, samples, visit, weights, scratch, scale_at(task, scratch.clock[0])) <= STEEP
    gold = gold_score(task, chains, visit, scratch, places)
    if near:
        return forward(task, tokens, scratch, places) - gold, near
    return log_forward(task, tokens, scratch, places) - gold, near


@inner
def tag_gradients(task: Any, tokens: int, i: int, near: Any, tag: int, scratch: Any, places: Any) -> None:
    """The gradient in the score of each tag of token i, to places.residual."""
    if near:
        chances(task, tokens, i, scratch, places)
    else:
        log_chances(task, tokens, i, scratch, places)
    scratch.floats[places.residual + tag] -= np.float32(1)


@inner
def pair_gradients(task: Any, i: int, near: Any, pair: int, scratch: Any, places: Any) -> None:
    """Go from token i to the one before it; with rich edges the gradient in the score of each pair is in its matrix."""
    if near:
        step_back(task, i, scratch, places)
    else:
        log_step_back(task, i, scratch, places)
    take_pair(task.edges, scratch, matrix_at(task.edges, places, i) + pair)


@choice
def take_pair(edges: Any, scratch: Any, cell: int) -> None:
    """The pair that the sentence has."""


@take_pair.of(PlainEdges)
def _in_the_end(edges: Any, scratch: Any, cell: int) -> None:
    return


@take_pair.of(RichEdges)
def _take_pair(edges: Any, scratch: Any, cell: int) -> None:
    scratch.floats[cell] -= np.float32(1)


@inner
def end_sentence(task: Any, chains: Any, visit: int, near: Any, scratch: Any, places: Any) -> None:
    """The gradient in the scores that all pairs of neighbours have in common, to places.totals."""
    if near:
        finish_totals(task.edges, scratch, places)
    first = chains.offsets[visit]
    for i in range(1, chains.offsets[visit + 1] - first):
        if scratch.ints[i] == 0:
            pair = chains.tags[first + i - 1] * places.width + chains.tags[first + i]
            scratch.floats[places.totals + pair] -= np.float32(1)


# -- in two steps ----------------------------------------------------------------------------------------------------


@gradient.of(ChainTask)
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    chains = samples.chains
    first = chains.offsets[visit]
    tokens = chains.offsets[visit + 1] - first
    places = places_of(task, tokens)
    loss, near = begin_sentence(task, samples, visit, weights, scratch)
    edges = len(weights.nodes) // stride(task.rule, task.penalty, places.width)
    scratch.count[0] = 0
    for i in range(tokens - 1, -1, -1):
        t, tag = first + i, chains.tags[first + i]
        tag_gradients(task, tokens, i, near, tag, scratch, places)
        for e in range(chains.starts[t], chains.starts[t + 1]):
            keep_row(scratch, np.int64(chains.ids[e]), places.residual, places.width, value_at(chains, e))
        if scratch.ints[i] == 0:
            pair_gradients(task, i, near, chains.tags[t - 1] * places.width + tag, scratch, places)
            keep_rich(task.edges, samples, t, scratch, matrix_at(task.edges, places, i), edges + task.tags)
    end_sentence(task, chains, visit, near, scratch, places)
    for x in range(task.tags):
        keep_row(scratch, edges + x, places.totals + x * places.width, places.width, np.float32(1))
    return loss


@inner
def keep_row(scratch: Any, row: Any, at: int, width: int, value: Any) -> None:
    """One more row of the gradient, from `at` on in scratch.floats times a value."""
    k = scratch.count[0]
    scratch.count[0] = k + 1
    scratch.rows[k] = row
    for y in range(width):
        scratch.grads[k, y] = value * scratch.floats[at + y]


@choice
def keep_rich(edges: Any, samples: Any, t: int, scratch: Any, at: int, first: int) -> None:
    """Rows of the gradient in the rich edges of token t, numbered from `first` on."""


@keep_rich.of(PlainEdges)
def _none_rich(edges: Any, samples: Any, t: int, scratch: Any, at: int, first: int) -> None:
    return


@keep_rich.of(RichEdges)
def _keep_rich(edges: Any, samples: Any, t: int, scratch: Any, at: int, first: int) -> None:
    chains = samples.chains
    for e in range(chains.starts[t], chains.starts[t + 1]):
        feature = chains.ids[e]
        if feature >= len(samples.pair_starts) - 1:
            break
        value = value_at(chains, e)
        for chunk in range(samples.pair_starts[feature], samples.pair_starts[feature + 1]):
            k = scratch.count[0]
            scratch.count[0] = k + 1
            scratch.rows[k] = first + chunk
            for c in range(LANES):
                scratch.grads[k, c] = value * scratch.floats[at + samples.pairs[chunk * LANES + c]]
            for c in range(LANES, scratch.grads.shape[1]):
                scratch.grads[k, c] = np.float32(0)


@apply.of(ChainTask)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    width = LANES * len(task.lanes) * len(task.blocks)
    edges = len(weights.nodes) // stride(task.rule, task.penalty, width)
    rich = edges + task.tags
    rate = step.rate / scale_at(task, step.elapsed)
    one = np.float32(1)
    for k in range(scratch.count[0]):
        row = np.int64(scratch.rows[k])
        grads = scratch.grads[k]
        if row < edges:
            move_row(task, weights.nodes, row, width, grads, 0, one, rate, step)
        elif row < rich:
            move_row(task, weights.edges, row - edges, width, grads, 0, one, rate, step)
        else:
            move_row(task, weights.rich, row - rich, LANES, grads, 0, one, rate, step)


# -- in one ----------------------------------------------------------------------------------------------------------


@fused.of(ChainTask)
def _fused(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    chains = samples.chains
    first = chains.offsets[visit]
    tokens = chains.offsets[visit + 1] - first
    places = places_of(task, tokens)
    loss, near = begin_sentence(task, samples, visit, weights, scratch)
    rate = step.rate / scale_at(task, step.elapsed)
    for i in range(tokens - 1, -1, -1):
        t, tag = first + i, chains.tags[first + i]
        tag_gradients(task, tokens, i, near, tag, scratch, places)
        move_nodes(task.rows, task, chains, t, weights, scratch, places, rate, step)
        if scratch.ints[i] == 0:
            pair_gradients(task, i, near, chains.tags[t - 1] * places.width + tag, scratch, places)
            move_rich(task.edges, task, samples, t, weights, scratch, places, i, rate, step)
    end_sentence(task, chains, visit, near, scratch, places)
    move_edges(task.rows, task, weights, scratch, places, rate, step)
    return loss


@choice
def move_nodes(rows: Any, task: Any, chains: Any, t: int, weights: Any, scratch: Any, places: Any, rate: Any, step: Any) -> None:  # noqa: E501
    """Update the rows of the features of a token against places.residual."""


@move_nodes.of(Quick)
def _move_rows(rows: Any, task: Any, chains: Any, t: int, weights: Any, scratch: Any, places: Any, rate: Any, step: Any) -> None:  # noqa: E501
    scale_row(task.lanes, len(task.blocks), scratch.floats, places.residual, places.residual, rate)
    first, last = chains.starts[t], chains.starts[t + 1]
    take_from_rows(
        task.lanes, len(task.blocks), weights.nodes, places.width, chains.ids, first, last, scratch.floats,
        places.residual,
    )  # fmt: skip


@move_nodes.of(Slow)
def _move_cells(rows: Any, task: Any, chains: Any, t: int, weights: Any, scratch: Any, places: Any, rate: Any, step: Any) -> None:  # noqa: E501
    for e in range(chains.starts[t], chains.starts[t + 1]):
        row, value = np.int64(chains.ids[e]), value_at(chains, e)
        move_row(task, weights.nodes, row, places.width, scratch.floats, places.residual, value, rate, step)


@choice
def move_rich(edges: Any, task: Any, samples: Any, t: int, weights: Any, scratch: Any, places: Any, i: int, rate: Any, step: Any) -> None:  # noqa: E501
    """Update the rich edges of token i of a sentence, t of all, against its matrix."""


@move_rich.of(PlainEdges)
def _move_none(edges: Any, task: Any, samples: Any, t: int, weights: Any, scratch: Any, places: Any, i: int, rate: Any, step: Any) -> None:  # noqa: E501
    return


@move_rich.of(RichEdges)
def _move_rich(edges: Any, task: Any, samples: Any, t: int, weights: Any, scratch: Any, places: Any, i: int, rate: Any, step: Any) -> None:  # noqa: E501
    chains, at = samples.chains, matrix_at(edges, places, i)
    for e in range(chains.starts[t], chains.starts[t + 1]):
        feature = chains.ids[e]
        if feature >= len(samples.pair_starts) - 1:
            break
        first, last, value = samples.pair_starts[feature], samples.pair_starts[feature + 1], value_at(chains, e)
        move_chunks(task.rows, task, samples.pairs, first, last, weights, scratch, places, at, value, rate, step)


@choice
def move_chunks(rows: Any, task: Any, pairs: Any, first: int, last: int, weights: Any, scratch: Any, places: Any, at: int, value: Any, rate: Any, step: Any) -> None:  # noqa: E501
    """Update chunks of pairs against a value times the matrix at `at`."""


@move_chunks.of(Quick)
def _move_quickly(rows: Any, task: Any, pairs: Any, first: int, last: int, weights: Any, scratch: Any, places: Any, at: int, value: Any, rate: Any, step: Any) -> None:  # noqa: E501
    take_pairs(scratch.floats, at, weights.rich, pairs, first * LANES, last * LANES, rate)


@move_chunks.of(Slow)
def _move_slowly(rows: Any, task: Any, pairs: Any, first: int, last: int, weights: Any, scratch: Any, places: Any, at: int, value: Any, rate: Any, step: Any) -> None:  # noqa: E501
    floats, one = scratch.floats, np.float32(1)
    for chunk in range(first, last):
        for k in range(LANES):  # the residual of this token is used up
            floats[places.residual + k] = value * floats[at + pairs[chunk * LANES + k]]
        move_row(task, weights.rich, chunk, LANES, floats, places.residual, one, rate, step)


@choice
def move_edges(rows: Any, task: Any, weights: Any, scratch: Any, places: Any, rate: Any, step: Any) -> None:
    """Update the scores that all pairs of neighbours have in common against places.totals."""


@move_edges.of(Quick)
def _move_all(rows: Any, task: Any, weights: Any, scratch: Any, places: Any, rate: Any, step: Any) -> None:
    for c in range(task.tags * places.width):
        weights.edges[c] -= rate * scratch.floats[places.totals + c]  # RACE(lost update): docs/races.md


@move_edges.of(Slow)
def _move_each(rows: Any, task: Any, weights: Any, scratch: Any, places: Any, rate: Any, step: Any) -> None:
    for x in range(task.tags):
        at = places.totals + x * places.width
        move_row(task, weights.edges, x, places.width, scratch.floats, at, np.float32(1), rate, step)


# -- the gradient of many sentences ----------------------------------------------------------------------------------


@open_kernel
def sum_gradients(task: Any, samples: Any, weights: Any, scratch: Any, span: Any, step: Any, sums: Any) -> Any:
    """Add the gradients of sentences span[0] … span[1] - 1 to tables like the weights; returns the sum of their losses.

    A visit that moves tables of its own: step.rate is -1, so that what it would take away is added. The rule is Sgd,
    and nothing is penalized.
    """
    chains = samples.chains
    total = 0.0
    for visit in range(span[0], span[1]):
        first = chains.offsets[visit]
        tokens = chains.offsets[visit + 1] - first
        places = places_of(task, tokens)
        loss, near = begin_sentence(task, samples, visit, weights, scratch)
        total += loss
        for i in range(tokens - 1, -1, -1):
            t, tag = first + i, chains.tags[first + i]
            tag_gradients(task, tokens, i, near, tag, scratch, places)
            move_nodes(task.rows, task, chains, t, sums, scratch, places, step.rate, step)
            if scratch.ints[i] == 0:
                pair_gradients(task, i, near, chains.tags[t - 1] * places.width + tag, scratch, places)
                move_rich(task.edges, task, samples, t, sums, scratch, places, i, step.rate, step)
        end_sentence(task, chains, visit, near, scratch, places)
        move_edges(task.rows, task, sums, scratch, places, step.rate, step)
    return total


# -- looking at a sentence -------------------------------------------------------------------------------------------


@open_kernel
def fill_losses(task: Any, samples: Any, weights: Any, scratch: Any, first: int, losses: Any) -> int:
    """The losses of the sentences from `first` on, 0 where a tag is not known; returns how many have all known."""
    chains = samples.chains
    known = 0
    for k in range(len(losses)):
        visit = first + k
        whole = True
        for t in range(chains.offsets[visit], chains.offsets[visit + 1]):
            whole &= chains.tags[t] >= 0
        losses[k] = begin_sentence(task, samples, visit, weights, scratch)[0] if whole else 0.0
        known += whole
    return known


@open_kernel
def fill_marginals(task: Any, samples: Any, weights: Any, scratch: Any, span: Any, out: Any) -> None:
    """The chances of the tags of the tokens of sentences span[0] … span[1] - 1, a row of `out` for each token."""
    chains = samples.chains
    begin = chains.offsets[span[0]]
    for visit in range(span[0], span[1]):
        first = chains.offsets[visit]
        tokens = chains.offsets[visit + 1] - first
        places = places_of(task, tokens)
        _, near = begin_sentence(task, samples, visit, weights, scratch)
        for i in range(tokens - 1, -1, -1):
            tag_gradients(task, tokens, i, near, 0, scratch, places)
            scratch.floats[places.residual] += np.float32(1)
            for y in range(task.tags):
                out[first + i - begin, y] = scratch.floats[places.residual + y]
            if scratch.ints[i] == 0:
                pair_gradients(task, i, near, 0, scratch, places)
