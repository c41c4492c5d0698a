"""Words with subwords: the vector of a word is the mean of its own row and of those of its n-grams of letters.

n-grams are those of `<word>` as fastText takes them, of whole characters of UTF-8, by a hash that is FNV-1a with signed
bytes. Each of the rows moves by the whole gradient of the mean, as there: so the word's vector moves as far as it would
have done alone, and a rate means the same with subwords and without.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import inner, kernel
from hogwild.kernels.ids.hashing import FNV, push_fnv
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.simd.rows16 import add_rows, move_rows, prefetch_row
from hogwild.kernels.word2vec import passes
from hogwild.kernels.word2vec.cbow import Cbow
from hogwild.kernels.word2vec.passes import add
from hogwild.kernels.word2vec.skipgram import SkipGram
from hogwild.kernels.word2vec.tree import CbowTree, SkipGramTree

_F = np.float32


# -- n-grams of letters -----------------------------------------------------------------------------------------------


@kernel
def hash_grams(text: Any, edges: Any, shortest: int, longest: int, buckets: int, starts: Any, out: Any) -> None:
    """The buckets of the n-grams of words text[edges[k]:edges[k + 1]], which have their `<` and `>`, to
    out[starts[k]:starts[k + 1]]. Where `out` is empty `starts` is filled only."""
    number = 0
    for word in range(len(edges) - 1):
        first, last = edges[word], edges[word + 1]
        starts[word] = number
        for begin in range(first, last):
            if text[begin] & 0xC0 == 0x80:
                continue
            value, end, letters = FNV, begin, 0
            while end < last and letters < longest:
                letters += 1
                value = push_fnv(value, text[end])
                end += 1
                while end < last and text[end] & 0xC0 == 0x80:
                    value = push_fnv(value, text[end])
                    end += 1
                edge = letters == 1 and (begin == first or end == last)
                if letters >= shortest and not edge:
                    if len(out) > 0:
                        out[number] = np.int64(value) % buckets
                    number += 1
    starts[len(edges) - 1] = number


# -- A visit ----------------------------------------------------------------------------------------------------------


class SubwordSkipGram(SkipGram):
    """Skip-gram, by the mean of a word's rows."""


class SubwordCbow(Cbow):
    """CBOW, by the means of the rows of words."""


class SubwordSkipGramTree(SkipGramTree):
    """Skip-gram with a tree, by the mean of a word's rows."""


class SubwordCbowTree(CbowTree):
    """CBOW with a tree, by the means of the rows of words."""


ALL = (SubwordSkipGram, SubwordCbow, SubwordSkipGramTree, SubwordCbowTree)


class SubwordInto(NamedTuple):
    """As Into, with a table for n-grams."""

    inputs: Any
    outputs: Any
    direct: bool
    factor: np.float32
    grams: Any


class _Direct(NamedTuple):
    direct: bool


@gradient.of(*ALL)
def _gradient(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    into = SubwordInto(scratch.grads, scratch.grads, False, _F(-1), scratch.grads)
    return passes.learn(task, samples, visit, weights, scratch, into)


@fused.of(*ALL)
def _fused(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    into = SubwordInto(weights.inputs, weights.outputs, True, step.rate, weights.grams)
    return passes.learn(task, samples, visit, weights, scratch, into)


@apply.of(*ALL)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    passes.apply_to_three(task, weights, weights.grams, scratch, step)


@inner
def _ask_for_grams(task: Any, text: Any, weights: Any, place: int) -> None:
    word = place // task.cells
    for k in range(text.starts[word], text.starts[word + 1]):
        prefetch_row(task.lanes, task.blocks, weights.grams, text.grams[k])


@inner
def _compose(task: Any, text: Any, plan: Any, weights: Any, at: int, row: int, scratch: Any) -> None:
    """The mean of the rows of the word at a position, to a row of scratch."""
    floats, cell = scratch.floats, plan.hit
    word = scratch.ints[at] // task.cells
    first, count = text.starts[word], text.starts[word + 1] - text.starts[word]
    floats[row : row + task.cells] = _F(0)
    floats[cell] = _F(1) / _F(count + 1)
    add(task, floats, row, weights.inputs, at, cell, 0, 1, scratch)
    add_rows(
        task.lanes, task.blocks, floats, (row,), weights.grams, text.grams, first, floats, (cell,), 0, count
    )  # fmt: skip


@inner
def _spread(
    task: Any, text: Any, plan: Any, weights: Any, into: Any, at: int, number: int, row: int, scratch: Any
) -> None:
    """Change the rows of the word at a position by a row of scratch; number: that of the word's own row there."""
    floats, cells = scratch.floats, task.cells
    word = scratch.ints[at] // cells
    first, count = text.starts[word], text.starts[word + 1] - text.starts[word]
    floats[plan.hit] = _F(1)
    if into.direct:
        move_rows(
            task.lanes, task.blocks, into.inputs, scratch.ints, at, 1, _F(1), floats, row, floats, plan.hit, 0
        )  # fmt: skip
        move_rows(
            task.lanes, task.blocks, into.grams, text.grams, first, count, _F(1), floats, row, floats, plan.hit, 0
        )  # fmt: skip
        return
    for c in range(cells):
        scratch.grads[number, c] += floats[row + c]
    offset, last = len(weights.inputs) + len(weights.outputs), scratch.count[0]
    for k in range(count):
        scratch.rows[last + k] = np.int32(offset + text.grams[first + k] // cells)
        for c in range(cells):
            scratch.grads[last + k, c] = floats[row + c]
    scratch.count[0] = last + count


@passes.fetch_own.of(*ALL)
def _fetch_own(task: Any, text: Any, plan: Any, weights: Any, i: int, scratch: Any) -> None:
    at, more = task.window + i, plan.more + i * task.cells
    _ask_for_grams(task, text, weights, scratch.ints[at + 1])  # behind the last is another position, or row 0
    _compose(task, text, plan, weights, at, plan.row + i * task.cells, scratch)
    scratch.floats[more : more + task.cells] = _F(0)


@passes.own_side.of(*ALL)
def _own_side(task: Any, inputs: Any, floats: Any) -> Any:
    return floats


@passes.own_place.of(*ALL)
def _own_place(task: Any, plan: Any, into: Any, i: int, scratch: Any) -> Any:
    return plan.more + i * task.cells


@passes.spread_own.of(*ALL)
def _spread_own(task: Any, text: Any, plan: Any, weights: Any, into: Any, centres: int, scratch: Any) -> None:
    for i in range(centres):
        _spread(task, text, plan, weights, into, task.window + i, i, plan.more + i * task.cells, scratch)


@passes.fetch_near.of(*ALL)
def _fetch_near(task: Any, text: Any, plan: Any, weights: Any, place: Any, scratch: Any) -> None:
    for at in range(place.first, place.end):
        row = plan.far + at * task.cells
        _ask_for_grams(task, text, weights, scratch.ints[at + 1])
        _compose(task, text, plan, weights, at, row, scratch)
        scratch.ints[plan.near + at] = row


@passes.near_side.of(*ALL)
def _near_side(task: Any, inputs: Any, floats: Any) -> Any:
    return floats


@passes.near_first.of(*ALL)
def _near_first(task: Any, plan: Any) -> Any:
    return plan.near


@passes.spread_near.of(*ALL)
def _spread_near(
    task: Any, text: Any, plan: Any, weights: Any, into: Any, place: Any, number: int, scratch: Any
) -> None:
    """The rows of positions are not needed any more; their changes stand there instead."""
    low, high = plan.far + place.first * task.cells, plan.far + place.end * task.cells
    scratch.floats[low:high] = _F(0)
    passes.spread_neighbours(task, plan, scratch.floats, _Direct(True), place, number, plan.near, scratch)
    for at in range(place.first, place.end):
        row = plan.far + at * task.cells
        _spread(task, text, plan, weights, into, at, number + at - place.first, row, scratch)


# -- Whole vectors, once they are learnt ------------------------------------------------------------------------------


@kernel
def mean_rows(own: Any, table: Any, starts: Any, grams: Any, out: Any) -> None:
    """out[k] becomes the mean of own[k], where there are rows of their own, and of the rows of its n-grams."""
    for word in range(len(out)):
        first, last = starts[word], starts[word + 1]
        alone = len(own) > 0
        for c in range(out.shape[1]):
            out[word, c] = own[word, c] if alone else _F(0)
        for k in range(first, last):
            for c in range(out.shape[1]):
                out[word, c] += table[grams[k], c]
        share = _F(1) / _F(max(1, last - first + int(alone)))
        for c in range(out.shape[1]):
            out[word, c] *= share
