"""Paragraph vectors: a text has a row of its own, by which its words are found.

DM: a word is told from random words, or found in the tree, by the mean or the sum of its neighbours and its document.
DBOW: by its document alone; there the window is 0, and inputs may have no rows. So both are CBOW with one more row, and
with `Alternating` words learn from each other too, by skip-gram on the same text.

A visit is a stretch of the text, which may begin in one document and end in another. Documents end at `ends`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import inner, open_kernel
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.simd.rows16 import copy_row, prefetch_row
from hogwild.kernels.word2vec import passes
from hogwild.kernels.word2vec.cbow import Cbow, gather, gather_near, rows_in
from hogwild.kernels.word2vec.passes import add, seen_by
from hogwild.kernels.word2vec.tree import CbowTree

_F = np.float32


class Dm(Cbow):
    """Tell a word from random words, by its neighbours and its document."""


class DmTree(CbowTree):
    """Find a word, by its neighbours and its document."""


class Dbow(Cbow):
    """Tell a word from random words, by its document."""


class DbowTree(CbowTree):
    """Find a word, by its document."""


ALL = (Dm, DmTree, Dbow, DbowTree)
WITH_WORDS, WITHOUT = (Dm, DmTree), (Dbow, DbowTree)


class DocumentText(NamedTuple):
    """As WiderText without n-grams, with where each document ends: behind its last word, or its end of a sentence."""

    ids: Any
    stay: Any
    chance: Any
    alias: Any
    forks: Any
    nodes: Any
    signs: Any
    ends: Any


class DocumentEmbeddings(NamedTuple):
    """As Embeddings, with a row for each document."""

    inputs: Any
    outputs: Any
    documents: Any


class DocumentInto(NamedTuple):
    """As Into, with a table for documents."""

    inputs: Any
    outputs: Any
    direct: bool
    factor: np.float32
    documents: Any


@gradient.of(*ALL)
def _gradient(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    into = DocumentInto(scratch.grads, scratch.grads, False, _F(-1), scratch.grads)
    return passes.learn(task, samples, visit, weights, scratch, into)


@fused.of(*ALL)
def _fused(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    into = DocumentInto(weights.inputs, weights.outputs, True, step.rate, weights.documents)
    return passes.learn(task, samples, visit, weights, scratch, into)


@apply.of(*ALL)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    passes.apply_to_three(task, weights, weights.documents, scratch, step)


# -- The row of a centre ----------------------------------------------------------------------------------------------


@inner
def document_at(ends: Any, position: int) -> int:
    """The document that a position of the text is in."""
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if position < ends[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@rows_in.of(*WITH_WORDS)
def _rows_in(task: Any, plan: Any, at: int, ints: Any) -> Any:
    return seen_by(plan, at, ints) + 1


@rows_in.of(*WITHOUT)
def _one_row(task: Any, plan: Any, at: int, ints: Any) -> Any:
    return 1


@passes.own_count.of(*ALL)
def _own_count(task: Any, plan: Any, i: int, each: int, ints: Any) -> Any:
    return each  # with or without neighbours: there is the document


@inner
def _share(task: Any, plan: Any, i: int, ints: Any) -> Any:
    """What the row of the document counts for in that of centre i."""
    return _F(1) if task.summed else _F(1) / _F(rows_in(task, plan, task.window + i, ints))


@inner
def _place_documents(task: Any, text: Any, plan: Any, place: Any, weights: Any, ints: Any) -> None:
    """For each centre, where its document's row begins, in place of where it stands in the text."""
    if place.centres == 0:
        return
    first = plan.near + task.window
    document = document_at(text.ends, ints[first])
    prefetch_row(task.lanes, task.blocks, weights.documents, document * task.cells)
    for at in range(first, first + place.centres):
        while ints[at] >= text.ends[document]:
            document += 1
        ints[at] = document * task.cells


_gather_near = inner(gather_near)


@gather.of(*WITH_WORDS)
def _gather(task: Any, text: Any, plan: Any, place: Any, weights: Any, scratch: Any) -> None:
    floats, ints = scratch.floats, scratch.ints
    _place_documents(task, text, plan, place, weights, ints)
    _gather_near(task, text, plan, place, weights, scratch)
    for i in range(place.centres):
        row, document = plan.row + i * task.cells, plan.near + task.window + i
        floats[plan.hit] = _share(task, plan, i, ints)
        add(task, floats, row, weights.documents, document, plan.hit, 0, 1, scratch)


@gather.of(*WITHOUT)
def _gather_documents(task: Any, text: Any, plan: Any, place: Any, weights: Any, scratch: Any) -> None:
    floats, ints, cells = scratch.floats, scratch.ints, task.cells
    _place_documents(task, text, plan, place, weights, ints)
    floats[plan.more : plan.more + place.centres * cells] = _F(0)
    for i in range(place.centres):
        row, document = plan.row + i * cells, ints[plan.near + task.window + i]
        ints[plan.own + i] = row
        copy_row(task.lanes, task.blocks, floats, row, weights.documents, document)


@inner
def _spread_documents(task: Any, plan: Any, weights: Any, into: Any, place: Any, scratch: Any) -> None:
    """To the row of each document add what the gradients of its centres say: all of one document at once."""
    floats, ints, first = scratch.floats, scratch.ints, plan.near + task.window
    offset = len(weights.inputs) + len(weights.outputs)
    for i in range(place.centres):
        floats[plan.hit + i] = _share(task, plan, i, ints)
    begin = 0
    for i in range(1, place.centres + 1):
        if i < place.centres and ints[first + i] == ints[first + begin]:
            continue
        to = ints[first + begin]
        if not into.direct:
            number = scratch.count[0]
            scratch.rows[number] = np.int32(offset + to // task.cells)
            scratch.grads[number, :] = _F(0)
            scratch.count[0] = number + 1
            to = number * task.cells
        add(task, into.documents, to, floats, plan.own + begin, plan.hit + begin, 1, i - begin, scratch)
        begin = i


@passes.spread_near.of(*WITH_WORDS)
def _spread_near(
    task: Any, text: Any, plan: Any, weights: Any, into: Any, place: Any, number: int, scratch: Any
) -> None:
    passes.spread_neighbours(task, plan, into.inputs, into, place, number, 0, scratch)
    _spread_documents(task, plan, weights, into, place, scratch)


@passes.spread_near.of(*WITHOUT)
def _spread_one(
    task: Any, text: Any, plan: Any, weights: Any, into: Any, place: Any, number: int, scratch: Any
) -> None:
    _spread_documents(task, plan, weights, into, place, scratch)


# -- Words and documents in turns -------------------------------------------------------------------------------------


class Alternating(NamedTuple):
    """Skip-gram and DBOW on the same text: a visit of words, then as many of documents as have the same stretch.

    words, documents: the tasks of both; each: visits of documents to one of words.
    """

    words: Any
    documents: Any
    each: int


@inner
def turn_of(visit: int, each: int) -> Any:
    """Whether a visit is one of words, and its number among those of its kind."""
    group, place = visit // (each + 1), visit % (each + 1)
    return (True, group) if place == 0 else (False, group * each + place - 1)


@inner
def _is_beyond(task: Any, text: Any, visit: int, scratch: Any) -> bool:
    """Whether a visit lies behind the end of the text, where there is nothing to do."""
    beyond = visit * task.stretch >= len(text.ids)
    if beyond:
        scratch.count[0] = 0
    return beyond


@gradient.of(Alternating)
def _gradient_in_turns(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any) -> Any:
    words, number = turn_of(visit, task.each)
    if words:
        return gradient(task.words, samples, number, weights, scratch)
    if _is_beyond(task.documents, samples, number, scratch):
        return 0.0
    return gradient(task.documents, samples, number, weights, scratch)


@fused.of(Alternating)
def _fused_in_turns(task: Any, samples: Any, visit: Any, weights: Any, scratch: Any, step: Any) -> Any:
    words, number = turn_of(visit, task.each)
    if words:
        return fused(task.words, samples, number, weights, scratch, step)
    if _is_beyond(task.documents, samples, number, scratch):
        return 0.0
    return fused(task.documents, samples, number, weights, scratch, step)


@apply.of(Alternating)
def _apply_in_turns(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    apply(task.documents, weights, scratch, step)


# -- Vectors of new texts ---------------------------------------------------------------------------------------------


@open_kernel
def infer_rows(task: Any, text: Any, weights: Any, scratch: Any, rates: Any, seed: Any) -> None:
    """Learn the rows of the documents of a text, and nothing else: rates[k] is the learning rate of epoch k.

    Each document is visited by itself with random numbers of its own, which are those of the seed: so its row does not
    depend on the others.
    """
    frozen = len(weights.inputs) + len(weights.outputs)
    begin = 0
    for document in range(len(text.ends)):
        end = text.ends[document]
        ids = text.ids[begin:end]
        own = text.ends[document : document + 1]  # not before the end of these ids, which are all of this document
        one = DocumentText(ids, text.stay, text.chance, text.alias, text.forks, text.nodes, text.signs, own)
        mine = DocumentEmbeddings(weights.inputs, weights.outputs, weights.documents[document : document + 1])
        scratch.random[0] = seed
        for rate in rates:
            for visit in range(-(-len(ids) // task.stretch)):
                gradient(task, one, visit, mine, scratch)
                for k in range(scratch.count[0]):
                    if scratch.rows[k] >= frozen:
                        for c in range(task.cells):
                            mine.documents[0, c] -= rate * scratch.grads[k, c]
        begin = end
