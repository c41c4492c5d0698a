"""A visit of a Bi-LSTM tagger to a batch of sentences: look rows up, LSTM layers both ways, scores, and the way back.

The loss of a sentence is -log p of its tags; the gradient of a visit is that of the mean over its tokens. What is left
to chance (words taken for unknown, units that are left out) is drawn from the random state of the worker.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Chains, Scratch
from hogwild.kernels.compiler.jit import choice, inner, open_kernel
from hogwild.kernels.compiler.rng import draw
from hogwild.kernels.crf.gradient import begin_sentence, end_sentence, pair_gradients, tag_gradients
from hogwild.kernels.crf.task import ChainWeights, Tagged
from hogwild.kernels.crf.task import places_of as chain_places
from hogwild.kernels.loop.task import apply, gradient
from hogwild.kernels.nn.blas import Block, multiply, multiply_by_transposed, multiply_transposed
from hogwild.kernels.nn.letters import clear_letters, spell, unspell
from hogwild.kernels.nn.lstm import (
    Layer,
    Memory,
    keep_gradient,
    padded,
    read_back,
    read_forward,
    send_to_inputs,
    strip_rows,
    turn_over_inputs,
)
from hogwild.kernels.nn.lstm_batch import AsChain, EachAlone, TaggerTask, chance, draw_masks, mask, memory_cells, pack
from hogwild.kernels.optim.penalties import weight_at
from hogwild.kernels.optim.rules import begin_row, step_dense, stride, update
from hogwild.kernels.simd.strips import GATES

# -- the inputs -----------------------------------------------------------------------------------------------------


@inner
def look_up(task: Any, samples: Any, weights: Any, scratch: Any, batch: Any, places: Any, seed: Any) -> None:
    """The inputs of the first layer; which rows they are of is kept."""
    floats, ints, slots = scratch.floats, scratch.ints, task.slots
    wide, narrow = stride(task.rule, task.penalty, task.word_dim), stride(task.rule, task.penalty, task.feature_dim)
    words = len(weights.words) // wide
    for at in range(batch.tokens):
        token, to = ints[places.token + at], places.inputs + at * padded(task.inputs)
        for slot in range(slots):
            row = np.int64(samples.rows[token * slots + slot])
            drawn = chance(seed, at * slots + slot)
            rare = samples.rare[row] == 1 and drawn < task.unknown_share
            if rare or (slot == 0 and np.float32(1) - drawn <= task.word_dropout):
                row = np.int64(samples.unknown[slot])
            ints[places.rows + at * slots + slot] = row
            if slot == 0:
                read_row(task, weights.words, row * wide, wide, task.word_dim, floats, to, scratch.clock[0])
                to += task.word_dim
            else:
                first = (row - words) * narrow
                read_row(task, weights.features, first, narrow, task.feature_dim, floats, to, scratch.clock[0])
                to += task.feature_dim
        spell(task.spelling, samples, token, weights.values, floats, to, ints, places.best + at * task.filters)
        floats[places.inputs + at * padded(task.inputs) + task.inputs - 1] = np.float32(1)


@inner
def read_row(task: Any, table: Any, at: Any, cells: int, dim: int, floats: Any, to: int, elapsed: Any) -> None:
    """Copy a row, unpaid penalty deducted."""
    own, into = table[at : at + cells], floats[to : to + dim]
    for c in range(dim):  # RACE(stale read): docs/races.md
        into[c] = weight_at(task.penalty, task.rule, own, c, dim, cells - 1, elapsed)


@inner
def keep_rows(task: Any, samples: Any, weights: Any, scratch: Any, span: Any, places: Any) -> None:
    """The gradient in each distinct row, and in letters, from the derivatives in the inputs of some tokens; span: from
    which place to which among the sorted ones."""
    floats, ints, slots = scratch.floats, scratch.ints, task.slots
    found, bits = ints[places.found : places.found + task.places], task.places - 1
    found[:] = 0
    lines = 0
    clear_letters(task.spelling, scratch.dense)
    for number in range(span[0], span[1]):
        at = ints[places.sorted + number]
        slope = places.others + at * padded(task.inputs)
        for slot in range(slots):
            row = ints[places.rows + at * slots + slot]
            place = np.int64(np.uint32(row) * np.uint32(2654435761)) & bits
            while found[place] != 0 and scratch.rows[found[place] - 1] != row:
                place = (place + 1) & bits
            line = found[place] - 1
            if line < 0:
                line = lines
                lines += 1
                found[place] = lines
                scratch.rows[line] = row
                scratch.grads[line, :] = np.float32(0)
            dim = task.word_dim if slot == 0 else task.feature_dim
            total, own = scratch.grads[line], floats[slope : slope + dim]
            for c in range(dim):
                total[c] += own[c]
            slope += dim
        shift = slope - places.others
        unspell(
            task.spelling, samples, ints[places.token + at], weights.values, floats, places.inputs + shift, slope,
            ints, places.best + at * task.filters, scratch.dense,
        )  # fmt: skip
    scratch.count[0] = lines


# -- what becomes of gradients --------------------------------------------------------------------------------------


class Keeping(NamedTuple):
    """The gradient of the mean over all tokens goes to scratch.dense, for one step."""


@choice
def share_of(sink: Any, batch: Any, length: Any) -> Any:
    """By what the derivatives of a token are multiplied, in a sentence of so many."""


@choice
def settle_output(sink: Any, task: Any, weights: Any, scratch: Any, batch: Any, places: Any) -> None:
    """The gradient in the output, from the derivatives in the scores."""


@choice
def settle_pairs(sink: Any, task: Any, weights: Any, scratch: Any, places: Any, sentence: int) -> None:
    """The gradient in the pairs of tags of one sentence stands in scratch.dense."""


@choice
def settle_layer(sink: Any, task: Any, weights: Any, scratch: Any, batch: Any, places: Any, part: Any) -> None:
    """The gradient in a layer and direction, from the derivatives in its gates; part: the layer, its memory, and where
    its inputs stand."""


@share_of.of(Keeping)
def _share_of_all(sink: Any, batch: Any, length: Any) -> Any:
    return np.float32(1) / np.float32(batch.tokens)


@settle_output.of(Keeping)
def _keep_output(sink: Any, task: Any, weights: Any, scratch: Any, batch: Any, places: Any) -> None:
    given, width = 2 * task.units + 1, padded(2 * task.units + 1)
    multiply_transposed(
        Block(scratch.floats, places.outs + (task.layers - 1) * batch.tokens * width, width),
        Block(scratch.floats, places.scores, task.tags), Block(scratch.dense, task.output_at, task.tags), given,
        task.tags, batch.tokens, np.float32(1), np.float32(0),
    )  # fmt: skip


@settle_pairs.of(Keeping)
def _keep_pairs(sink: Any, task: Any, weights: Any, scratch: Any, places: Any, sentence: int) -> None:
    return  # they add up


@settle_layer.of(Keeping)
def _keep_layer(sink: Any, task: Any, weights: Any, scratch: Any, batch: Any, places: Any, part: Any) -> None:
    layer, memory, source = part
    keep_gradient(task.products, task.recurrence, layer, batch, memory, source, places.former, scratch.dense)


# -- the layers -----------------------------------------------------------------------------------------------------


@inner
def layer_of(task: Any, values: Any, number: int, direction: int) -> Any:
    """The weights of a layer in one direction."""
    width, cells = 2 * task.units + 1, GATES * task.units
    inputs = task.inputs if number == 0 else width
    rows, later = strip_rows(task.recurrence, inputs, task.units), strip_rows(task.recurrence, width, task.units)
    at = direction * rows * cells
    if number > 0:
        at += 2 * cells * (strip_rows(task.recurrence, task.inputs, task.units) + (number - 1) * later)
    return Layer(values, at, inputs, padded(inputs), rows, task.units)


@inner
def memory_of(task: Any, scratch: Any, batch: Any, places: Any, number: int, direction: int) -> Any:
    """The memory of a layer in one direction."""
    rows = batch.tokens * task.units
    at = places.memory + (2 * number + direction) * memory_cells(task, batch.tokens)
    cells = at + 4 * batch.apart * task.units
    given, rooms = cells + 2 * rows, (places.zeros, places.flipped, places.paired)
    return Memory(scratch.floats, at, cells, cells + rows, given, *rooms)


@inner
def turn(floats: Any, source: int, target: int, width: int, batch: Any) -> None:
    """Copy rows into the time of the other direction."""
    for row in range(batch.tokens):
        at, to = source + row * width, target + batch.mirror[row] * width
        for k in range(width):
            floats[to + k] = floats[at + k]


@inner
def run_layers(task: Any, weights: Any, scratch: Any, batch: Any, places: Any) -> None:
    """All layers, from the inputs on."""
    floats, units = scratch.floats, task.units
    width = padded(2 * units + 1)
    for u in range(units):
        floats[places.zeros + u] = np.float32(0)
    source, stride = places.inputs, padded(task.inputs)
    for number in range(task.layers):
        out = places.outs + number * batch.tokens * width
        for direction in range(2):
            layer = layer_of(task, weights.values, number, direction)
            memory = memory_of(task, scratch, batch, places, number, direction)
            begin = source
            if direction == 1:
                turn(floats, source, places.turned, stride, batch)
                begin = places.turned
            read_forward(task.products, task.recurrence, layer, batch, memory, begin)
            for row in range(batch.tokens):
                at = memory.given + (batch.mirror[row] if direction == 1 else row) * units
                to = out + row * width + direction * units
                for u in range(units):
                    floats[to + u] = floats[at + u]
        for row in range(batch.tokens):
            floats[out + row * width + 2 * units] = np.float32(1)
        mask(task, batch, scratch, places, out, 2 * units, task.inputs + number * 2 * units)
        source, stride = out, width


@inner
def give_scores(task: Any, weights: Any, scratch: Any, batch: Any, places: Any) -> None:
    """The score of each tag at each row."""
    inputs, width = 2 * task.units + 1, padded(2 * task.units + 1)
    out = places.outs + (task.layers - 1) * batch.tokens * width
    multiply(  # RACE(stale read): docs/races.md
        Block(scratch.floats, out, width), Block(weights.values, task.output_at, task.tags),
        Block(scratch.floats, places.scores, task.tags), batch.tokens, task.tags, inputs, np.float32(1), np.float32(0),
    )  # fmt: skip


@inner
def go_back(sink: Any, task: Any, weights: Any, scratch: Any, batch: Any, places: Any) -> None:
    """The gradient in all layers, from the derivatives in the scores; those in the inputs, to places.others."""
    floats, units, tokens = scratch.floats, task.units, batch.tokens
    given, width = 2 * units + 1, padded(2 * units + 1)
    multiply_by_transposed(
        Block(floats, places.scores, task.tags), Block(weights.values, task.output_at, task.tags),
        Block(floats, places.slopes, width), tokens, given, task.tags, np.float32(1), np.float32(0),
    )  # fmt: skip
    settle_output(sink, task, weights, scratch, batch, places)
    for number in range(task.layers - 1, -1, -1):
        source = places.inputs if number == 0 else places.outs + (number - 1) * tokens * width
        stride = padded(task.inputs) if number == 0 else width
        mask(task, batch, scratch, places, places.slopes, 2 * units, task.inputs + number * 2 * units)
        for direction in range(2):
            layer = layer_of(task, weights.values, number, direction)
            memory = memory_of(task, scratch, batch, places, number, direction)
            for row in range(tokens):
                at = places.slopes + row * width + direction * units
                to = places.own + (batch.mirror[row] if direction == 1 else row) * units
                for u in range(units):
                    floats[to + u] = floats[at + u]
            read_back(task.products, task.recurrence, layer, batch, memory, places.own, places.carried)
            begin = source
            if direction == 1:
                turn(floats, source, places.turned, stride, batch)
                begin = places.turned
            turn_over_inputs(task.products, layer, memory)  # before a step is made
            settle_layer(sink, task, weights, scratch, batch, places, (layer, memory, begin))
            send_to_inputs(task.products, layer, batch, memory, places.others if direction == 0 else places.turned)
        for row in range(tokens):
            to, at = places.others + row * stride, places.turned + batch.mirror[row] * stride
            for k in range(stride):
                floats[to + k] += floats[at + k]
        if number > 0:
            for k in range(tokens * stride):
                floats[places.slopes + k] = floats[places.others + k]


# -- the loss -------------------------------------------------------------------------------------------------------


@choice
def turn_scores(
    head: Any, sink: Any, task: Any, samples: Any, weights: Any, scratch: Any, batch: Any, places: Any
) -> Any:
    """Scores into derivatives of the mean over the tokens of a step; returns the sum of the losses of the sentences."""


@turn_scores.of(EachAlone)
def _each_alone(
    head: Any, sink: Any, task: Any, samples: Any, weights: Any, scratch: Any, batch: Any, places: Any
) -> Any:
    floats, ints = scratch.floats, scratch.ints
    loss = 0.0
    for row in range(batch.tokens):
        part = share_of(sink, batch, ints[places.lengths + ints[places.owner + row]])
        first = places.scores + row * task.tags
        scores = floats[first : first + task.tags]
        tag = samples.tags[scratch.ints[places.token + row]]
        top = scores[0]
        for k in range(1, task.tags):
            top = max(top, scores[k])
        gold, total = scores[tag] - top, np.float32(0)
        for k in range(task.tags):
            scores[k] = np.float32(math.exp(scores[k] - top))
            total += scores[k]
        loss += math.log(total) - gold
        for k in range(task.tags):
            scores[k] *= part / total
        scores[tag] -= part
    return loss


@turn_scores.of(AsChain)
def _as_chain(
    head: Any, sink: Any, task: Any, samples: Any, weights: Any, scratch: Any, batch: Any, places: Any
) -> Any:
    floats, ints, width = scratch.floats, scratch.ints, head.width
    chain = task.chain
    pairs = weights.values[task.pairs_at : task.pairs_at + task.tags * width]
    grads = scratch.dense[task.pairs_at : task.pairs_at + task.tags * width]
    grads[:] = np.float32(0)
    table = ChainWeights(floats[places.nodes : places.chain], pairs, pairs[:0])
    own = Scratch(
        scratch.count, scratch.rows, scratch.grads, scratch.clock, scratch.random, floats[places.chain :],
        ints[places.marks :], scratch.dense,
    )  # fmt: skip
    loss = 0.0
    for s in range(batch.base[1]):
        length, first = ints[places.lengths + s], samples.offsets[ints[places.chosen + s]]
        part = share_of(sink, batch, length)
        ints[places.ends], ints[places.ends + 1] = 0, length
        chains = Chains(
            ints[places.ends : places.ends + 2], samples.steps, samples.places, samples.tags[first : first + length]
        )
        for t in range(length):
            at, to = places.scores + (batch.base[t] + s) * task.tags, places.nodes + t * width
            for y in range(task.tags):
                floats[to + y] = floats[at + y]
            for y in range(task.tags, width):
                floats[to + y] = np.float32(0)
        found, near = begin_sentence(chain, Tagged(chains, samples.steps, samples.places), 0, table, own)
        loss += found
        inner_places = chain_places(chain, length)
        for t in range(length - 1, -1, -1):
            tag: Any = np.int64(chains.tags[t])
            tag_gradients(chain, length, t, near, tag, own, inner_places)
            to = places.scores + (batch.base[t] + s) * task.tags
            for y in range(task.tags):
                floats[to + y] = part * own.floats[inner_places.residual + y]
            if t > 0:
                pair_gradients(chain, t, near, np.int64(chains.tags[t - 1]) * width + tag, own, inner_places)
        end_sentence(chain, chains, 0, near, own, inner_places)
        for k in range(task.tags * width):
            grads[k] += part * own.floats[inner_places.totals + k]
        settle_pairs(sink, task, weights, scratch, places, s)
    return loss


# -- a visit --------------------------------------------------------------------------------------------------------


@gradient.of(TaggerTask)
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    batch, places = pack(task, samples, visit, scratch)
    loss = pass_through(Keeping(), task, samples, weights, scratch, batch, places)
    keep_rows(task, samples, weights, scratch, (0, batch.tokens), places)
    finish_gradient(task, weights, scratch)
    return loss / batch.base[1]


@inner
def pass_through(sink: Any, task: Any, samples: Any, weights: Any, scratch: Any, batch: Any, places: Any) -> Any:
    """All layers forth and back; returns the sum of the losses of the sentences. The derivatives in what was looked up
    are left at places.others."""
    look_up(task, samples, weights, scratch, batch, places, draw(scratch.random))
    if task.dropout > np.float32(0):
        draw_masks(task, batch.base[1], scratch, places, draw(scratch.random))
    mask(task, batch, scratch, places, places.inputs, task.inputs - 1, 0)
    run_layers(task, weights, scratch, batch, places)
    give_scores(task, weights, scratch, batch, places)
    loss = turn_scores(task.head, sink, task, samples, weights, scratch, batch, places)
    go_back(sink, task, weights, scratch, batch, places)
    mask(task, batch, scratch, places, places.others, task.inputs - 1, 0)
    return loss


@inner
def finish_gradient(task: Any, weights: Any, scratch: Any) -> None:
    """Add the penalty of the dense weights, and shorten the gradient to what is allowed."""
    grads, lines = scratch.dense, scratch.count[0]
    if task.l2 > np.float32(0):
        for k in range(len(grads)):
            grads[k] += task.l2 * weights.values[k]
    if task.clip > np.float32(0):
        total = 0.0
        for k in range(len(grads)):
            total += grads[k] * grads[k]
        for line in range(lines):
            for c in range(scratch.grads.shape[1]):
                total += scratch.grads[line, c] * scratch.grads[line, c]
        size = np.float32(math.sqrt(total))
        if size > task.clip:
            for k in range(len(grads)):
                grads[k] *= task.clip / size
            for line in range(lines):
                for c in range(scratch.grads.shape[1]):
                    scratch.grads[line, c] *= task.clip / size


@apply.of(TaggerTask)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    step_dense(task.rule, weights, scratch.dense, step.rate)
    move_rows(task, weights, scratch, step)


@inner
def move_rows(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    """Move the rows that were looked up."""
    words = len(weights.words) // stride(task.rule, task.penalty, task.word_dim)
    for line in range(scratch.count[0]):
        row = np.int64(scratch.rows[line])
        if row < words:
            move_row(task, weights.words, row, task.word_dim, scratch.grads[line], step)
        else:
            move_row(task, weights.features, row - words, task.feature_dim, scratch.grads[line], step)


@inner
def move_row(task: Any, table: Any, row: Any, dim: int, grads: Any, step: Any) -> None:
    """Move one row."""
    cells = stride(task.rule, task.penalty, dim)
    count = begin_row(task.rule, task.penalty, table, row, dim, step)
    own = table[row * cells : (row + 1) * cells]
    for c in range(dim):
        update(task.rule, own, c, dim, grads[c], step.rate, count)


@open_kernel
def score_sentences(task: Any, samples: Any, weights: Any, scratch: Any, span: Any, out: Any) -> None:
    """The scores of the tags of the visits span[0] … span[1] - 1, in the rows of `out` of their tokens. The task leaves
    nothing to chance, and the weights have paid their penalties."""
    for visit in range(span[0], span[1]):
        batch, places = pack(task, samples, visit, scratch)
        look_up(task, samples, weights, scratch, batch, places, np.uint64(0))
        run_layers(task, weights, scratch, batch, places)
        give_scores(task, weights, scratch, batch, places)
        for row in range(batch.tokens):
            token = scratch.ints[places.token + row]
            for k in range(task.tags):
                out[token, k] = scratch.floats[places.scores + row * task.tags + k]
