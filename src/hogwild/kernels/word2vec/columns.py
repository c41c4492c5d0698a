"""Visits in two halves, for nodes that each have some columns of all rows: scores of these, and learning from the sums.

A score is a sum over columns. Each node has its part of it; only these parts are sent, and every node moves its own
columns by their sums. The sums are of weights as they were some visits ago. What a node's own part of a score has
changed by since then it knows, and takes the parts of others to have changed likewise: else rows of frequent words
would be carried too far, and vectors run away. Both halves of a visit, on every node, draw the same windows and
negatives: its random numbers come from the key of the epoch and its own number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner, kernel, open_kernel
from hogwild.kernels.compiler.rng import mix
from hogwild.kernels.loop.schedule import rate_at
from hogwild.kernels.word2vec import passes
from hogwild.kernels.word2vec.cbow import Cbow, plan_cbow
from hogwild.kernels.word2vec.passes import own_count, seen_by
from hogwild.kernels.word2vec.skipgram import SkipGram, plan_skip_gram

_F = np.float32
_KEY = 15485863


class Block(NamedTuple):
    """Visits first … stop - 1 of an epoch. key: of its random numbers; before: visits of the epochs before it."""

    key: np.uint64
    first: int
    stop: int
    before: int


def key_of(seed: int, epoch: int) -> np.uint64:
    """What the random numbers of an epoch come from."""
    return np.random.SeedSequence((seed, _KEY, epoch)).generate_state(1, np.uint64)[0]


def most_scores(task: Any) -> int:
    """Scores that a visit has at the most."""
    if isinstance(task, Cbow):
        return int(task.stretch * (1 + (task.shared or task.negatives)))
    return int(task.stretch * 2 * task.window + task.stretch * (task.shared or 2 * task.window * task.negatives))


@choice
def hand(task: Any, centres: int, scratch: Any, scores: Any, at: int, times: Any) -> Any:
    """Copy the scores of a visit from scratch to `scores`, from `at` on; or, where `times` is not 0, take so many times
    those in scratch and add to them. Returns where they end."""


@kernel
def _copy(floats: Any, place: int, count: int, scores: Any, at: int, times: Any) -> int:
    if times == 0:
        for k in range(count):
            scores[at + k] = floats[place + k]
    else:
        for k in range(count):
            floats[place + k] = times * floats[place + k] + scores[at + k]
    return at + count


_skip_gram_plan = inner(plan_skip_gram)
_cbow_plan = inner(plan_cbow)


@hand.of(SkipGram)
def _hand_skip_gram(task: Any, centres: int, scratch: Any, scores: Any, at: int, times: Any) -> Any:
    """Of its neighbours, without the centre itself, and of negatives."""
    plan = _skip_gram_plan(task)
    floats, ints, window, each = scratch.floats, scratch.ints, task.window, 2 * task.window * task.negatives
    for i in range(centres):
        band, low = plan.band + i * plan.bands, ints[plan.low + window + i] - i
        after = low + seen_by(plan, window + i, ints) - window
        at = _copy(floats, band + low, window - low, scores, at, times)
        at = _copy(floats, band + window + 1, after, scores, at, times)
        count = task.shared if task.shared > 0 else own_count(task, plan, i, each, ints)
        at = _copy(floats, plan.negative + i * plan.negatives, count, scores, at, times)
    return at


@hand.of(Cbow)
def _hand_cbow(task: Any, centres: int, scratch: Any, scores: Any, at: int, times: Any) -> Any:
    """Of the word itself, and of negatives."""
    plan = _cbow_plan(task)
    count, skip = (task.shared, 2) if task.shared > 0 else (task.negatives, 1)
    for i in range(centres):
        negative = plan.negative + i * plan.negatives
        at = _copy(scratch.floats, negative + i % skip, 1, scores, at, times)
        at = _copy(scratch.floats, negative + skip, count, scores, at, times)
    return at


@inner
def _look_again(task: Any, text: Any, visit: int, weights: Any, scratch: Any, block: Any, into: Any) -> Any:
    scratch.random[0] = mix(block.key + np.uint64(visit))
    return passes.look(task, text, visit, weights, scratch, into)


@open_kernel
def score_block(task: Any, text: Any, weights: Any, scratch: Any, block: Any, scores: Any, ends: Any) -> None:
    """The scores of these columns, one visit's after another's; ends: where those of each visit end."""
    at = 0
    into = passes.Into(weights.inputs, weights.outputs, True, _F(0))
    for visit in range(block.first, block.stop):
        place = _look_again(task, text, visit, weights, scratch, block, into)
        if place.centres > 0:
            passes.compare(task, place.centres, weights, scratch)
            at = hand(task, place.centres, scratch, scores, at, _F(0))
        ends[visit - block.first] = at


@open_kernel
def learn_block(
    task: Any, text: Any, weights: Any, scratch: Any, block: Any, scores: Any, times: Any, schedule: Any
) -> float:
    """Move these columns. scores: those of all columns less `times` those of these, from the block's first visit on;
    what these change by counts so many times.

    Returns the loss, by what scores are taken to be.
    """
    at, loss = 0, 0.0
    for visit in range(block.first, block.stop):
        rate = rate_at(schedule, float(block.before + visit))
        into = passes.Into(weights.inputs, weights.outputs, True, rate)
        place = _look_again(task, text, visit, weights, scratch, block, into)
        if place.centres > 0:
            passes.compare(task, place.centres, weights, scratch)
            at = hand(task, place.centres, scratch, scores, at, times)
            loss += passes.move(task, text, place, weights, scratch, into)
    return loss
