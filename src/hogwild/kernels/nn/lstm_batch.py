"""What a Bi-LSTM tagger is to compiled code: its samples, weights and task; and the sentences of a visit, packed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import ORDER_KEY, Floats, Ids, Offsets
from hogwild.kernels.compiler.jit import in_python, inner
from hogwild.kernels.compiler.rng import mix
from hogwild.kernels.crf.task import ChainTask, floats_for
from hogwild.kernels.crf.task import places_of as chain_places
from hogwild.kernels.loop.order import row_at
from hogwild.kernels.nn.lstm import Batch, apart_for, padded, paired_cells
from hogwild.kernels.nn.lstm_products import flipped_cells
from hogwild.kernels.simd.strips import STRIP

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


class Sentences(NamedTuple):
    """What a Bi-LSTM reads. Token t has the rows rows[t slots:(t + 1) slots], numbered over both tables; slot 0 is that
    of the words. Of a visit v the sentences are `order` at the places first[v] … first[v] + count[v] - 1,
    shuffled anew in every epoch among `block_size` of them from block[v] on, which are of similar length.

    rare: 1 for rows that occur once in training. unknown: the row of each slot for what is not known.
    words: the number of each token's word, whose letters are letters[word_starts[w]:word_starts[w + 1]].
    steps, places: numbers from 0 on.
    """

    offsets: Offsets
    tags: Ids
    rows: Ids
    order: Ids
    first: Offsets
    count: Offsets  # type: ignore[assignment]  # not the method of tuples
    block: Offsets
    block_size: Offsets
    rare: npt.NDArray[np.uint8]
    unknown: Ids
    words: Ids
    word_starts: Offsets
    letters: Ids
    steps: Offsets
    places: Ids


class TaggerWeights(NamedTuple):
    """words, features: a row each, with what the update rule remembers of it; then DenseParameters, whose values are
    the layers (see lstm.py), the output (a row an input, the last one 1; a column a tag), the pairs of tags of a CRF (a
    row a former tag), and what letters.py has."""

    words: Floats
    features: Floats
    values: Floats
    first: Floats
    second: Floats
    steps: Floats


class EachAlone(NamedTuple):
    """Tags do not depend on each other: a softmax for each token."""


class AsChain(NamedTuple):
    """Tags are a chain, with a score for each pair of neighbours. width: of the rows of pairs."""

    width: int


class TaggerTask(NamedTuple):
    """What selects the code (rule, penalty, head, recurrence, products, spelling, chain, pace) and sizes.

    slots: rows a token; inputs: numbers a token, the last one 1; units: of a layer and direction, whole strips;
    output_at, pairs_at, letters_at: places in the dense values, of which there are `cells`; places: size of the table
    that finds rows again (a power of two).
    pace: how many sentences a worker reads at once, each with a step of its own, and tokens of all of them at the most.
    """

    rule: Any
    penalty: Any
    head: Any
    recurrence: Any
    products: Any
    spelling: Any
    chain: ChainTask
    word_dim: int
    feature_dim: int
    slots: int
    inputs: int
    units: int
    layers: int
    tags: int
    output_at: int
    pairs_at: int
    filters: int
    places: int
    pace: Any
    letters_at: int
    cells: int
    dropout: np.float32
    word_dropout: np.float32
    unknown_share: np.float32
    clip: np.float32
    l2: np.float32


class Places(NamedTuple):
    """Where in scratch.floats and scratch.ints a visit has its numbers. sorted: the rows of each sentence, one sentence
    after the other; starts: where there each begins. read, near, fixes, rest: see lstm_together.py."""

    inputs: int
    outs: int
    memory: int
    flipped: int
    paired: int
    turned: int
    former: int
    slopes: int
    others: int
    own: int
    scores: int
    carried: int
    zeros: int
    masks: int
    read: int
    near: int
    fixes: int
    rest: int
    nodes: int
    chain: int
    base: int
    lengths: int
    chosen: int
    token: int
    mirror: int
    owner: int
    sorted: int
    starts: int
    rows: int
    best: int
    found: int
    ends: int
    marks: int


@inner
def memory_cells(task: Any, tokens: int) -> Any:
    """Cells of the memory of one layer and direction."""
    return (4 * apart_for(tokens) + 3 * tokens) * task.units


@inner
def places_of(task: Any, tokens: int, sentences: int, times: int) -> Any:
    """The places of a visit to so many tokens of so many sentences, of which the longest has so many tokens."""
    stride, width = padded(task.inputs), padded(2 * task.units + 1)
    widest = max(stride, width)
    outs = tokens * stride
    memory = outs + task.layers * tokens * width
    flipped = memory + 2 * task.layers * memory_cells(task, tokens)
    paired = flipped + flipped_cells(widest, task.units)
    turned = paired + paired_cells(task.products, tokens, widest, task.units)
    former = turned + tokens * widest
    slopes = former + tokens * task.units
    others = slopes + tokens * widest
    own = others + tokens * widest
    scores = own + tokens * task.units
    carried = scores + tokens * task.tags
    zeros = carried + sentences * task.units
    masks = zeros + task.units
    read = padded(masks + sentences * (task.inputs + task.layers * 2 * task.units))
    near = read + (tokens * (widest + task.units) if task.pace.visits > 1 else 0)
    fixes = near + (tokens * max(STRIP, task.tags) if task.pace.visits > 1 else 0)
    rest = fixes + 3 * sentences
    nodes = padded(rest + (sentences * (task.cells - task.pairs_at) if task.pace.visits > 1 else 0))
    chain = nodes + padded(times * chain_places(task.chain, times).width)
    lengths = times + 1
    chosen = lengths + sentences
    token = chosen + sentences
    mirror = token + tokens
    owner = mirror + tokens
    sorted = owner + tokens
    starts = sorted + tokens
    rows = starts + sentences + 1
    best = rows + tokens * task.slots
    found = best + tokens * task.filters
    ends = found + task.places
    return Places(
        0, outs, memory, flipped, paired, turned, former, slopes, others, own, scores, carried, zeros, masks, read,
        near, fixes, rest, nodes, chain, 0, lengths, chosen, token, mirror, owner, sorted, starts, rows, best, found,
        ends, ends + 2,
    )  # fmt: skip


def room_for(task: Any, tokens: int, sentences: int, times: int) -> tuple[int, int]:
    """Floats and ints of scratch that a visit needs."""
    places = in_python(places_of)(task, tokens, sentences, times)
    return int(places.chain) + floats_for(task.chain, times), int(places.marks) + times + sentences + task.pace.window


# -- packing --------------------------------------------------------------------------------------------------------


@inner
def pack(task: Any, samples: Any, visit: int, scratch: Any) -> Any:
    """Choose the sentences of a visit, and lay out their rows; returns the batch and its places."""
    ints, count = scratch.ints, samples.count[visit]
    key, size = scratch.count[ORDER_KEY], samples.block_size[visit]
    for k in range(count):
        place = samples.first[visit] - samples.block[visit] + k
        sentence = samples.order[samples.block[visit] + row_at(place, size, size, key)]
        ints[len(ints) - count + k] = np.int64(sentence)
    return lay_out(task, samples, count, scratch)


@inner
def lay_out(task: Any, samples: Any, count: int, scratch: Any) -> Any:
    """The rows of some sentences, whose numbers are the last of scratch.ints; the longest first."""
    ints = scratch.ints
    chosen = ints[len(ints) - count :]  # until it is known where it goes
    tokens = 0
    for k in range(count):
        sentence = chosen[k]
        length = samples.offsets[sentence + 1] - samples.offsets[sentence]
        tokens += length
        at = k
        while at > 0 and length > samples.offsets[chosen[at - 1] + 1] - samples.offsets[chosen[at - 1]]:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = sentence
    times = samples.offsets[chosen[0] + 1] - samples.offsets[chosen[0]]
    places = places_of(task, tokens, count, times)
    start = 0
    for k in range(count):
        ints[places.chosen + k] = chosen[k]
        ints[places.lengths + k] = samples.offsets[chosen[k] + 1] - samples.offsets[chosen[k]]
        ints[places.starts + k] = start
        start += ints[places.lengths + k]
    ints[places.starts + count] = start
    active, row = count, 0
    for t in range(times):
        while ints[places.lengths + active - 1] <= t:
            active -= 1
        ints[places.base + t] = row
        row += active
    ints[places.base + times] = row
    for t in range(times):
        for row in range(ints[places.base + t], ints[places.base + t + 1]):
            s = row - ints[places.base + t]
            ints[places.token + row] = samples.offsets[ints[places.chosen + s]] + t
            ints[places.mirror + row] = ints[places.base + ints[places.lengths + s] - 1 - t] + s
            ints[places.owner + row] = s
            ints[places.sorted + ints[places.starts + s] + t] = row
    base = ints[places.base : places.base + times + 1]
    mirror = ints[places.mirror : places.mirror + tokens]
    return Batch(base, mirror, tokens, times, apart_for(tokens)), places


@inner
def chance(seed: Any, number: int) -> Any:
    """A number from 0 to below 1."""
    return np.float32(np.int64(mix(seed + np.uint64(number) * _GAMMA) >> np.uint64(40))) * np.float32(2.0**-24)


@inner
def draw_masks(task: Any, sentences: int, scratch: Any, places: Any, seed: Any) -> None:
    """For each sentence what its inputs and the outputs of its layers are multiplied by: 0, or more than 1."""
    width = task.inputs + task.layers * 2 * task.units
    kept = np.float32(1) / (np.float32(1) - task.dropout)
    for k in range(sentences * width):
        off = chance(seed, k) < task.dropout
        scratch.floats[places.masks + k] = np.float32(0) if off else kept


@inner
def mask(task: Any, batch: Any, scratch: Any, places: Any, cells: int, size: int, shift: int) -> None:
    """Multiply the first `size` numbers of each row, or the derivatives in them, by the masks of its sentence from
    `shift` on. The last number of a row is always 1."""
    if task.dropout == np.float32(0):
        return
    floats, all_masks = scratch.floats, task.inputs + task.layers * 2 * task.units
    for row in range(batch.tokens):
        own = places.masks + scratch.ints[places.owner + row] * all_masks + shift
        for k in range(size):
            floats[cells + row * padded(size + 1) + k] *= floats[own + k]
