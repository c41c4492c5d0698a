"""What one visit to running text looks at: the words that stay, the window of each, the negatives.

A visit is a stretch of the text. Words at its ends have neighbours beyond them, which are looked at too. All of it
goes to places in the worker's own arrays, which `Plan` names.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import Ids
from hogwild.kernels.compiler.jit import kernel
from hogwild.kernels.compiler.rng import below, draw, mix
from hogwild.kernels.simd.rows16 import LANES

# -- Random words: which are left out because they are frequent, and which are drawn as negatives ---------------------


_ALL = np.float64(2**32 - 1)
_HALF, _S32 = np.uint64(0xFFFFFFFF), np.uint64(32)


def chances_to_stay(counts: Any, sample: float) -> Any:
    """For each word the chance of an occurrence to stay, in 2^32ths: sqrt(t / f) + t / f, where f is its share."""
    share = counts / max(1, counts.sum())
    with np.errstate(divide="ignore"):
        rarity = sample / share if sample else np.full(len(counts), np.inf)
    return (np.minimum(1.0, np.sqrt(rarity) + rarity) * _ALL).astype(np.uint32)


def alias_table(counts: Any, power: float = 0.75) -> tuple[Any, Ids]:
    """Walker's table of the words by count^power: draw a column, keep it with its chance (in 2^32ths), else its alias.

    Examples
    --------
    >>> chance, alias = alias_table(np.array([16, 1]), power=1.0)
    >>> (chance / 2**32).round(3).tolist(), alias.tolist()
    ([1.0, 0.118], [0, 0])
    """
    weight = counts.astype(np.float64) ** power
    weight *= len(weight) / weight.sum()
    chance = np.full(len(weight), 2**32 - 1, np.uint32)
    alias = np.arange(len(weight), dtype=np.int32)
    fill_aliases(weight, chance, alias)
    return chance, alias


@kernel
def fill_aliases(weight: Any, chance: Any, alias: Any) -> None:
    """Give what each column has too little of to one that has too much; weights have mean 1 and are used up."""
    size = len(weight)
    rich = 0
    while rich < size and weight[rich] < 1.0:
        rich += 1
    scan = 0  # columns before it are settled, or rich
    poor = 0
    while rich < size:
        while scan < size and weight[scan] >= 1.0:
            scan += 1
        if scan == size:
            return
        poor = scan
        scan += 1
        while poor >= 0 and rich < size:
            chance[poor] = np.uint32(weight[poor] * _ALL)
            alias[poor] = np.int32(rich)
            weight[rich] -= 1.0 - weight[poor]
            giver = rich
            poor = -1
            if weight[giver] < 1.0:
                while rich < size and (rich <= giver or weight[rich] < 1.0):
                    rich += 1
                if giver < scan:
                    poor = giver  # it has become poor itself, and the scan is past it


@kernel
def draw_word(state: Any, chance: Any, alias: Any) -> int:
    """The word that these 64 random bits name."""
    column = np.int64(((state >> _S32) * np.uint64(len(chance))) >> _S32)
    return column if (state & _HALF) < np.uint64(chance[column]) else np.int64(alias[column])


@kernel
def stays(seed: Any, position: Any, chance: Any) -> Any:
    """Whether the occurrence at a position of the text is visited."""
    return (mix(seed + np.uint64(position)) & _HALF) <= np.uint64(chance)


FARTHEST = 64  # words that are looked at for each of a window, where nearly all are left out


class Text(NamedTuple):
    """Samples: the ids of running text (-1 ends a sentence), and by id the chance to stay and the alias table."""

    ids: Any
    stay: Any
    chance: Any
    alias: Any


class WiderText(NamedTuple):
    """As Text, with what words are made of and where they hang in a tree: word k has the n-grams grams[starts[k]:
    starts[k + 1]] and the forks nodes[forks[k]:forks[k + 1]], from the root on, at which it goes the way of `signs`.
    Both are first cells of rows."""

    ids: Any
    stay: Any
    chance: Any
    alias: Any
    starts: Any
    grams: Any
    forks: Any
    nodes: Any
    signs: Any


class Embeddings(NamedTuple):
    """Weights: a row for each word as it is seen from itself, and one as it is seen from its neighbours."""

    inputs: Any
    outputs: Any


class SubwordEmbeddings(NamedTuple):
    """As Embeddings, with a row for each n-gram of letters: for all that have one hash."""

    inputs: Any
    outputs: Any
    grams: Any


class Plan(NamedTuple):
    """Where things stand in `scratch.ints` and `scratch.floats`, and their sizes.

    Positions are those of the words that stay: up to `window` before the stretch, then its own (the centres, from
    position `window` on), then up to `window` after it.
    ints: places (the first cell of the row of each position), low and high (the window of each centre, itself
    included; before that: its sentence), own (places in floats of a centre's row), picks (places of negatives).
    With more than words to look at: near (where in the text a centre stands, then places in floats of a position's row,
    or the place of its document) and size (forks of a centre).
    floats: band[i, q - p + window] belongs to centre i at position p and its neighbour q; negatives[i] to its
    negatives; hits[i] to centre i itself; rows and more have a row for each centre, far one for each position; signs
    beside negatives, where these are forks.
    """

    most: int
    low: int
    high: int
    own: int
    picks: int
    band: int
    bands: int
    negative: int
    negatives: int
    hit: int
    row: int
    more: int
    ints: int
    floats: int
    near: int
    size: int
    far: int
    sign: int


@kernel
def _up(number: int, unit: int) -> int:
    return (number + unit - 1) // unit * unit


@kernel
def plan_of(stretch: int, window: int, picks: int, own: bool, cells: int) -> Any:
    """The plan for stretches of so many words; picks: negatives of the visit or, with `own`, of each centre."""
    most = stretch + 2 * window + 4
    bands = _up(2 * window + 4, LANES)
    negatives = _up(picks + 4, LANES)
    negative = most * bands
    hit = negative + most * negatives
    row = hit + _up(most, LANES)
    more = row + most * cells
    near = 4 * most + (most * negatives if own else negatives)
    size = near + most
    far = more + most * cells
    sign = far + most * cells
    floats = sign + (most * negatives if own else 0)
    return Plan(
        most, most, 2 * most, 3 * most, 4 * most, 0, bands, negative, negatives, hit, row, more, size + most, floats,
        near, size, far, sign,
    )  # fmt: skip


@kernel
def pick_words(text: Any, visit: int, stretch: int, window: int, cells: int, plan: Any, scratch: Any) -> Any:
    """The words that stay, and where the sentence of each begins and ends; returns (first, centres, end) positions.

    Of centres also where they stand in the text, for who asks. With a window of 0 there are no neighbours.
    """
    ids, ints = text.ids, scratch.ints
    start = visit * stretch
    stop = min(start + stretch, len(ids))
    seed = draw(scratch.random)
    first = window
    for position in range(start - 1, max(-1, start - 1 - FARTHEST * window), -1):
        word = ids[position]
        if word < 0 or first == 0:
            break
        if stays(seed, position, text.stay[word]):
            first -= 1
            ints[first] = np.int64(word) * cells
    sentence = first
    for at in range(first, window):
        ints[plan.low + at] = sentence
    at = window
    for position in range(start, stop):
        word = ids[position]
        if word < 0:
            sentence = at
        else:
            # Written in any case, kept only if the word stays: no branch that nobody can foresee.
            ints[at] = np.int64(word) * cells
            ints[plan.low + at] = sentence
            ints[plan.near + at] = position
            at += int(stays(seed, position, text.stay[word]))
    centres = at - window
    last = at + window
    for position in range(stop, min(len(ids), stop + FARTHEST * window)):
        word = ids[position]
        if word < 0 or at == last or centres == 0:
            break
        if stays(seed, position, text.stay[word]):
            ints[at] = np.int64(word) * cells
            ints[plan.low + at] = sentence
            at += 1
    end = at
    for beyond in range(4):
        ints[end + beyond] = 0  # four rows are looked at together
    for at in range(end - 1, first - 1, -1):
        same = at + 1 < end and ints[plan.low + at + 1] == ints[plan.low + at]
        ints[plan.high + at] = ints[plan.high + at + 1] if same else at
    return first, centres, end if window > 0 else first


@kernel
def pick_windows(centres: int, window: int, fixed: bool, plan: Any, scratch: Any) -> None:
    """Each centre draws how far it sees, within its sentence; fixed: all see as far as there is."""
    for at in range(window, window + centres):
        far = window if fixed else below(scratch.random, window) + 1
        scratch.ints[plan.low + at] = max(scratch.ints[plan.low + at], at - far)
        scratch.ints[plan.high + at] = min(scratch.ints[plan.high + at], at + far)


@kernel
def pick_negatives(text: Any, first: int, count: int, cells: int, scratch: Any) -> None:
    """Random words, to scratch.ints[first:first + count]; the three after them are looked at, too."""
    for k in range(count):
        scratch.ints[first + k] = draw_word(draw(scratch.random), text.chance, text.alias) * cells
    for k in range(count, count + 3):
        scratch.ints[first + k] = 0
