"""Hierarchical softmax: words hang in a tree by how often they occur, and are found by the way to them.

At every fork on the way there is a row of outputs, whose score tells left from right. The loss of a word is the sum
over its forks; there are no negatives. See windows.py for the plan: picks are places of forks, size says how many a
centre has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.arrays import Floats, Offsets
from hogwild.kernels.compiler.jit import choice, inner, kernel
from hogwild.kernels.simd.rows16 import LANES, move_rows, weigh
from hogwild.kernels.word2vec import passes
from hogwild.kernels.word2vec.cbow import Cbow, gather, rows_in
from hogwild.kernels.word2vec.passes import add, ask_for, name_rows, own_place, own_side, score
from hogwild.kernels.word2vec.skipgram import SkipGram
from hogwild.kernels.word2vec.windows import pick_windows, pick_words, plan_of

_F = np.float32


class SkipGramTree(SkipGram):
    """Find the neighbours of a word, by the word."""


class CbowTree(Cbow):
    """Find a word, by the mean or the sum of its neighbours."""


# -- The tree ---------------------------------------------------------------------------------------------------------


def hang_words(counts: Any) -> tuple[Offsets, Offsets, Floats]:
    """Huffman's tree of words: for word k the forks[starts[k]:starts[k + 1]], from the root (0) on, and a sign each.

    Ways are the shorter the more often a word occurs. Forks have numbers below that of words, the upper ones first.

    Examples
    --------
    >>> starts, forks, signs = hang_words(np.array([9, 4, 3]))
    >>> starts.tolist(), forks.tolist(), signs.tolist()
    ([0, 1, 3, 5], [0, 0, 1, 0, 1], [-1.0, 1.0, -1.0, 1.0, 1.0])
    """
    words = len(counts)
    rising = np.argsort(-counts, kind="stable")[::-1]  # of equal words the later is the rarer, in any order of rows
    weight = np.concatenate([counts[rising], np.zeros(max(0, words - 1), np.int64)]).astype(np.int64)
    parent, right = np.zeros(len(weight), np.int64), np.zeros(len(weight), np.bool_)
    _join(weight, parent, right, words)
    length = np.zeros(words, np.int64)
    row_of = np.empty(words, np.int64)
    row_of[:] = rising
    _measure(parent, row_of, length, words)
    starts = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    forks, signs = np.zeros(starts[-1], np.int64), np.zeros(starts[-1], np.float32)
    _trace(parent, right, row_of, starts, forks, signs)
    return starts, forks, signs


@kernel
def _join(weight: Any, parent: Any, right: Any, words: int) -> None:
    """Join the two lightest, again and again. Words come in rising order, and what is joined too: two queues."""
    leaf, fork = 0, words
    for made in range(words, len(weight)):
        for side in range(2):
            if leaf < words and (fork >= made or weight[leaf] <= weight[fork]):
                taken = leaf
                leaf += 1
            else:
                taken = fork
                fork += 1
            weight[made] += weight[taken]
            parent[taken] = made
            right[taken] = side == 1


@kernel
def _measure(parent: Any, row_of: Any, length: Any, words: int) -> None:
    root = len(parent) - 1
    for leaf in range(words):
        at = leaf
        while at != root:
            at = parent[at]
            length[row_of[leaf]] += 1


@kernel
def _trace(parent: Any, right: Any, row_of: Any, starts: Any, forks: Any, signs: Any) -> None:
    root = len(parent) - 1
    for leaf in range(len(row_of)):
        at, k = leaf, starts[row_of[leaf] + 1]
        while at != root:
            k -= 1
            signs[k] = _F(-1) if right[at] else _F(1)
            at = parent[at]
            forks[k] = root - at


# -- A visit ----------------------------------------------------------------------------------------------------------


@choice
def plan_tree(task: Any) -> Any:
    """Where a visit keeps its things: a centre has the forks of all its neighbours, or its own."""


def plan_skip_gram_tree(task: Any) -> Any:
    """That of skip-gram."""
    return plan_of(task.stretch, task.window, 2 * task.window * task.depth, True, task.cells)


def plan_cbow_tree(task: Any) -> Any:
    """That of CBOW."""
    return plan_of(task.stretch, task.window, task.depth, True, task.cells)


plan_tree.of(SkipGramTree)(plan_skip_gram_tree)
plan_tree.of(CbowTree)(plan_cbow_tree)


@inner
def _begin(task: Any, plan: Any, text: Any, visit: int, scratch: Any) -> Any:
    first, centres, end = pick_words(text, visit, task.stretch, task.window, task.cells, plan, scratch)
    if centres == 0:
        scratch.count[0] = 0
    else:
        pick_windows(centres, task.window, task.fixed, plan, scratch)
    return passes.Place(first, centres, end)


@inner
def _add_way(text: Any, plan: Any, i: int, size: int, word: int, scratch: Any) -> int:
    """The forks of a word behind those that centre i has; returns how many it has then."""
    picks, sign = plan.picks + i * plan.negatives, plan.sign + i * plan.negatives
    for k in range(text.forks[word], text.forks[word + 1]):
        scratch.ints[picks + size] = text.nodes[k]
        scratch.floats[sign + size] = text.signs[k]
        size += 1
    return size


@inner
def _end_ways(task: Any, plan: Any, weights: Any, i: int, size: int, scratch: Any) -> None:
    picks = plan.picks + i * plan.negatives
    scratch.ints[plan.size + i] = size
    for k in range(size, size + 3):  # four rows are looked at together
        scratch.ints[picks + k] = 0
    ask_for(task, weights.outputs, picks, picks + size, scratch)


@passes.look.of(SkipGramTree)
def _look_skip_gram(task: Any, text: Any, visit: int, weights: Any, scratch: Any, into: Any) -> Any:
    plan = plan_tree(task)
    ints, cells, window = scratch.ints, task.cells, task.window
    place = _begin(task, plan, text, visit, scratch)
    if not into.direct:
        name_rows(ints, scratch.rows, window, window + place.centres, cells, 0, 0)
        scratch.grads[: place.centres, :] = _F(0)
    for i in range(place.centres):
        at, size = window + i, 0
        for near in range(ints[plan.low + at], ints[plan.high + at] + 1):
            if near != at:
                size = _add_way(text, plan, i, size, ints[near] // cells, scratch)
        _end_ways(task, plan, weights, i, size, scratch)
        ints[plan.own + i] = plan.row + i * cells
        passes.fetch_own(task, text, plan, weights, i, scratch)
    return place


@passes.look.of(CbowTree)
def _look_cbow(task: Any, text: Any, visit: int, weights: Any, scratch: Any, into: Any) -> Any:
    plan = plan_tree(task)
    ints, cells, window = scratch.ints, task.cells, task.window
    place = _begin(task, plan, text, visit, scratch)
    if place.centres == 0:
        return place
    if not into.direct:
        number = name_rows(ints, scratch.rows, place.first, place.end, cells, 0, 0)
        scratch.grads[:number, :] = _F(0)
    for i in range(place.centres):
        size = 0
        if rows_in(task, plan, window + i, ints) > 0:  # a word without neighbours is not looked for
            size = _add_way(text, plan, i, size, ints[window + i] // cells, scratch)
        _end_ways(task, plan, weights, i, size, scratch)
    gather(task, text, plan, place, weights, scratch)
    return place


@passes.compare.of(SkipGramTree, CbowTree)
def _compare(task: Any, centres: int, weights: Any, scratch: Any) -> None:
    plan, ints = plan_tree(task), scratch.ints
    for i in range(centres):
        picks, to = plan.picks + i * plan.negatives, plan.negative + i * plan.negatives
        score(task, ints[plan.own + i], weights.outputs, picks, ints[plan.size + i], to, scratch)


@kernel
def _weigh_ways(plan: Any, centres: int, factor: Any, ints: Any, floats: Any) -> float:
    """Scores of forks become the factors of their rows; returns the loss."""
    loss = 0.0
    for i in range(centres):
        at, sign, size = plan.negative + i * plan.negatives, plan.sign + i * plan.negatives, ints[plan.size + i]
        for k in range(size):
            floats[at + k] *= floats[sign + k]
        for k in range(0, size, LANES):
            loss += np.float64(weigh(floats, at + k, 0, -1, size - 1 - k, _F(1), factor))
        for k in range(size):
            floats[at + k] *= floats[sign + k]
    return loss


@inner
def _spread_ways(task: Any, plan: Any, weights: Any, into: Any, centres: int, number: int, scratch: Any) -> None:
    """Add to the rows of forks what the centres' rows of scratch say."""
    floats, ints = scratch.floats, scratch.ints
    for i in range(centres):
        picks, at, size = plan.picks + i * plan.negatives, plan.negative + i * plan.negatives, ints[plan.size + i]
        if into.direct:
            row = ints[plan.own + i]
            move_rows(
                task.lanes, task.blocks, into.outputs, ints, picks, size, _F(1), floats, row, floats, at, 1
            )  # fmt: skip
        else:
            scratch.grads[number : number + size, :] = _F(0)
            name_rows(ints, scratch.rows, picks, picks + size, task.cells, len(weights.inputs), number)
            for k in range(size):
                to = number * task.cells
                add(task, into.outputs, to, floats, plan.own + i, at + k, 1, 1, scratch)
                number += 1
    scratch.count[0] = number


@passes.move.of(SkipGramTree)
def _move_skip_gram(task: Any, text: Any, place: Any, weights: Any, scratch: Any, into: Any) -> Any:
    plan = plan_tree(task)
    loss = _weigh_ways(plan, place.centres, into.factor, scratch.ints, scratch.floats)
    target = own_side(task, into.inputs, scratch.floats)
    for i in range(place.centres):
        to, size = own_place(task, plan, into, i, scratch), scratch.ints[plan.size + i]
        picks, at = plan.picks + i * plan.negatives, plan.negative + i * plan.negatives
        add(task, target, to, weights.outputs, picks, at, 1, size, scratch)
    _spread_ways(task, plan, weights, into, place.centres, place.centres, scratch)
    passes.spread_own(task, text, plan, weights, into, place.centres, scratch)
    return task.scale * loss


@passes.move.of(CbowTree)
def _move_cbow(task: Any, text: Any, place: Any, weights: Any, scratch: Any, into: Any) -> Any:
    plan, floats, ints, cells = plan_tree(task), scratch.floats, scratch.ints, task.cells
    loss = _weigh_ways(plan, place.centres, into.factor, ints, floats)
    for i in range(place.centres):
        picks, at = plan.picks + i * plan.negatives, plan.negative + i * plan.negatives
        add(task, floats, plan.more + i * cells, weights.outputs, picks, at, 1, ints[plan.size + i], scratch)
    _spread_ways(task, plan, weights, into, place.centres, place.end - place.first, scratch)
    for i in range(place.centres):
        ints[plan.own + i] += plan.more - plan.row  # from here on the gradients of the means
    passes.spread_near(task, text, plan, weights, into, place, 0, scratch)
    return task.scale * loss
