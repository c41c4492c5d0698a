"""Several sentences at once in one worker of a Bi-LSTM tagger, each with a step of its own.

One sentence at a time, the weights come from a far cache for every token, and a step reads and writes all of them and
what the update rule remembers. Together, sentences are read by the same weights and go through the layers as a batch
does, so that weights are fetched once for all. Then each makes its step, in turn: as if so many workers had read before
any of them wrote. That is asynchrony as between workers, not a batch: the steps are as many, and as long.

The gradient in a layer is not written anywhere: a tile of it is summed up and stepped against in registers, sentence by
sentence (simd/steps.py). For that the inputs stand in tiles of six columns, token by token (`places.read`), and of the
derivatives in the gates the strip at hand (`places.near`), sentence by sentence both; the factors by which Adam
corrects its averages in each step are in `places.fixes`. `places.rest` keeps gradients in pairs of tags and letters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner
from hogwild.kernels.loop.span import walk_free, walk_paced
from hogwild.kernels.loop.task import fused_group, visit_size
from hogwild.kernels.nn.blas import Block, multiply_transposed
from hogwild.kernels.nn.lstm import Diagonal, Full, padded
from hogwild.kernels.nn.lstm_batch import TaggerTask, lay_out
from hogwild.kernels.nn.lstm_tagger import (
    keep_rows,
    move_rows,
    pass_through,
    settle_layer,
    settle_output,
    settle_pairs,
    share_of,
)
from hogwild.kernels.optim.rules import move_dense, visits_of
from hogwild.kernels.simd.rules8 import fixes_of
from hogwild.kernels.simd.steps import FIXES, step_tile
from hogwild.kernels.simd.strips import GATES, STRIP

_ROWS = 6  # of a tile
_SIX, _ONE = (0,) * _ROWS, (0,)


class Stepping(NamedTuple):
    """Each sentence makes a step at this rate."""

    rate: np.float32


walk_free.of(TaggerTask)(walk_paced)


@visit_size.of(TaggerTask)
def _tokens(task: Any, samples: Any, visit: Any) -> Any:
    sentence = samples.order[samples.first[visit]]
    return samples.offsets[sentence + 1] - samples.offsets[sentence]


@fused_group.of(TaggerTask)
def _step_together(task: Any, samples: Any, visits: Any, weights: Any, scratch: Any, step: Any) -> Any:
    ints, count = scratch.ints, len(visits)
    for k in range(count):
        ints[len(ints) - count + k] = np.int64(samples.order[samples.first[visits[k]]])
    batch, places = lay_out(task, samples, count, scratch)
    for s in range(count):
        number = visits_of(task.rule, weights.steps, 0)
        at = places.fixes + FIXES * s
        scratch.floats[at], scratch.floats[at + 1] = fixes_of(task.rule, number)
        scratch.floats[at + 2] = number
    sink = Stepping(step.rate)
    loss = pass_through(sink, task, samples, weights, scratch, batch, places)
    for s in range(count):
        keep_rows(task, samples, weights, scratch, (ints[places.starts + s], ints[places.starts + s + 1]), places)
        put_by(task, scratch, places, s, (task.letters_at, task.cells))
        move_rows(task, weights, scratch, step)
    for s in range(count):
        first = places.rest + s * (task.cells - task.pairs_at)
        for k in range(task.cells - task.pairs_at):
            scratch.dense[task.pairs_at + k] = scratch.floats[first + k]
        move_part(sink, task, weights, scratch, places, s, (task.pairs_at, task.cells))
    return loss


@inner
def move_part(sink: Any, task: Any, weights: Any, scratch: Any, places: Any, sentence: int, span: Any) -> None:
    """The step of a sentence in some of the dense weights, whose gradient is in scratch.dense."""
    grads = scratch.dense
    if task.l2 > np.float32(0):
        for k in range(span[0], span[1]):
            grads[k] += task.l2 * weights.values[k]
    number = scratch.floats[places.fixes + FIXES * sentence + 2]
    move_dense(task.rule, weights, grads, span[0], span[1], sink.rate, number)


@share_of.of(Stepping)
def _share_of_own(sink: Any, batch: Any, length: Any) -> Any:
    return np.float32(1) / np.float32(length)


@settle_output.of(Stepping)
def _step_output(sink: Any, task: Any, weights: Any, scratch: Any, batch: Any, places: Any) -> None:
    floats, ints, tags = scratch.floats, scratch.ints, task.tags
    given, width = 2 * task.units + 1, padded(2 * task.units + 1)
    outs = places.outs + (task.layers - 1) * batch.tokens * width
    for k in range(batch.tokens):
        row = ints[places.sorted + k]
        for c in range(given):
            floats[places.read + k * width + c] = floats[outs + row * width + c]
        for y in range(tags):
            floats[places.near + k * tags + y] = floats[places.scores + row * tags + y]
    for s in range(batch.base[1]):
        first, length = ints[places.starts + s], ints[places.lengths + s]
        multiply_transposed(
            Block(floats, places.read + first * width, width), Block(floats, places.near + first * tags, tags),
            Block(scratch.dense, task.output_at, tags), given, tags, length, np.float32(1), np.float32(0),
        )  # fmt: skip
        move_part(sink, task, weights, scratch, places, s, (task.output_at, task.output_at + given * tags))


@settle_pairs.of(Stepping)
def _put_by_pairs(sink: Any, task: Any, weights: Any, scratch: Any, places: Any, sentence: int) -> None:
    put_by(task, scratch, places, sentence, (task.pairs_at, task.letters_at))


@inner
def put_by(task: Any, scratch: Any, places: Any, sentence: int, span: Any) -> None:
    """Keep the gradient of a sentence in some of the dense weights for later, when all have read them."""
    to = places.rest + sentence * (task.cells - task.pairs_at) - task.pairs_at
    for k in range(span[0], span[1]):
        scratch.floats[to + k] = scratch.dense[k]
        scratch.dense[k] = np.float32(0)


@settle_layer.of(Stepping)
def _step_layer(sink: Any, task: Any, weights: Any, scratch: Any, batch: Any, places: Any, part: Any) -> None:
    layer, memory, source = part
    floats, ints, tokens = scratch.floats, scratch.ints, batch.tokens
    columns = layer.inputs + further_columns(task.recurrence, layer.units)
    read_columns(layer, memory, source, ints, places, (columns, tokens))
    even = columns // _ROWS * _ROWS
    for strip in range(GATES * layer.units // STRIP):
        gates, to = memory.gates + strip * batch.apart * STRIP, layer.at + strip * layer.rows * STRIP
        for k in range(tokens):
            at, into = gates + ints[places.sorted + k] * STRIP, places.near + k * STRIP
            for u in range(STRIP):
                floats[into + u] = floats[at + u]
        for first in range(0, even, _ROWS):
            step_tile(task.rule, _SIX, batch.base[1], ints, places.starts, floats, places.read + first * tokens, floats,
                      places.near, weights.values, weights.first, weights.second, to + first * STRIP, places.fixes,
                      sink.rate, task.l2)  # fmt: skip
        for first in range(even, columns):
            step_tile(task.rule, _ONE, batch.base[1], ints, places.starts, floats, places.read + first * tokens, floats,
                      places.near, weights.values, weights.first, weights.second, to + first * STRIP, places.fixes,
                      sink.rate, task.l2)  # fmt: skip
    step_recurrent(task.recurrence, sink, task, weights, scratch, batch, places, part)


@choice
def further_columns(recurrence: Any, units: int) -> Any:
    """Columns after the inputs: what was given at the token before, where all units read it."""


further_columns.of(Full)(lambda recurrence, units: units)
further_columns.of(Diagonal)(lambda recurrence, units: 0)


@inner
def read_columns(layer: Any, memory: Any, source: int, ints: Any, places: Any, size: Any) -> None:
    """Inputs, and then what was given at the token before, in tiles of six columns, and the rest in tiles of one."""
    floats, (columns, tokens) = memory.floats, size
    even = columns // _ROWS * _ROWS
    for k in range(tokens):
        row = ints[places.sorted + k]
        former = ints[places.sorted + k - 1] if k > 0 else -1
        if row < ints[places.base + 1]:  # the first of its sentence
            former = -1
        for c in range(columns):
            if c < layer.inputs:
                value = floats[source + row * layer.stride + c]
            elif former >= 0:
                value = floats[memory.given + former * layer.units + c - layer.inputs]
            else:
                value = np.float32(0)
            into = c * tokens + k if c >= even else (c - c % _ROWS) * tokens + k * _ROWS + c % _ROWS
            floats[places.read + into] = value


@choice
def step_recurrent(recurrence: Any, sink: Any, task: Any, weights: Any, scratch: Any, batch: Any, places: Any, part: Any) -> None:  # noqa: E501
    """The steps of weights that are not among the columns."""


step_recurrent.of(Full)(lambda recurrence, sink, task, weights, scratch, batch, places, part: None)


@step_recurrent.of(Diagonal)
def _step_own(recurrence: Any, sink: Any, task: Any, weights: Any, scratch: Any, batch: Any, places: Any, part: Any) -> None:  # noqa: E501
    layer, memory, _ = part
    floats, ints, units = scratch.floats, scratch.ints, layer.units
    for strip in range(GATES * units // STRIP):
        first = layer.at + (strip * layer.rows + layer.inputs) * STRIP
        own, unit = scratch.dense[first : first + STRIP], strip // GATES * STRIP
        for s in range(batch.base[1]):
            own[:] = np.float32(0)
            for t in range(1, ints[places.lengths + s]):
                at = memory.gates + (strip * batch.apart + batch.base[t] + s) * STRIP
                read = memory.given + (batch.base[t - 1] + s) * units + unit
                for u in range(STRIP):
                    own[u] += floats[at + u] * floats[read + u]
            move_part(sink, task, weights, scratch, places, s, (first, first + STRIP))
