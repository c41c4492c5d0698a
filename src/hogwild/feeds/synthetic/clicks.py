"""Clicks that can be learned, made from a seed: categories in slots, numbers beside them, labels drawn from chances.

The problem: every category has a true weight and a short hidden vector, every column of numbers a weight. The score of
a row is the sum of its weights, plus, for some pairs of slots, the product of the hidden vectors of their categories:
main effects that a linear model learns, and pairs that only factorization machines and deeper models learn. Both parts
are scaled so that `pairs` is the share of the second in the variance. The chance of a click is
1 / (1 + exp(-(strength * score + bias))), where strength and bias give the AUC and the share of clicks asked for.

Sizes of slots grow by a constant factor from about ten categories to most of all. Numbers are log(1 + n) for counts n
that have a long tail. Another `part` has other rows of the same problem, for testing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hogwild.config import ClicksConfig
from hogwild.feeds.synthetic.sampling import UNITS, distinct, drawn_ranks, fading, normals, salt_of, stride_of
from hogwild.feeds.synthetic.truth import Doubles, Longs, Truth, drawn_labels

_CHUNK = 1 << 17    # cells made at a time
_PILOT = 4096       # rows that fix scales, strength and bias, the same for all parts
_HIDDEN = 3         # numbers in a hidden vector
_SMALLEST = 10      # categories of the smallest slot
_NUMBER_SHARE = 0.5  # weight of a column of numbers against that of a slot
_STRONGEST = 1e4


@dataclass(frozen=True)
class MadeClicks:
    """A run of rows. lengths: (rows, slots), how many categories; ids: their features, from 0, row by row and slot by
    slot; counts: (rows, columns), of which the numbers are logarithms; numbers: in units of 1 / UNITS; labels: 0, 1."""

    lengths: Longs
    ids: Longs
    counts: Longs
    numbers: Longs
    labels: Longs


class _Drawn(NamedTuple):
    lengths: Longs
    slots: Longs
    ranks: Longs
    counts: Longs
    numbers: Longs


class _Scale(NamedTuple):
    """Means and factors of main effects and of pairs; what makes chances of their sum."""

    means: tuple[float, float]
    factors: tuple[float, float]
    strength: float = 1.0
    bias: float = 0.0


class Clicks:
    """One problem.

    >>> problem = Clicks(ClicksConfig(slots=3, features=300))
    >>> problem.sizes.tolist()
    [10, 49, 241]
    """

    def __init__(self, config: ClicksConfig) -> None:
        self.config = config
        self.sizes = slot_sizes(config.slots, config.features)
        self._firsts = np.cumsum(self.sizes) - self.sizes
        self._strides = np.array([stride_of(int(size)) for size in self.sizes])
        self._shifts = config.seed % self.sizes
        random = np.random.default_rng([config.seed, 3])
        self._weights = random.normal(0.0, _NUMBER_SHARE, config.numbers)
        self.pairs = _chosen_pairs(config.slots, random) if config.pairs else np.zeros((0, 2), np.int64)
        self._scale = self._calibrate()

    def rows(self, truth: Truth) -> Iterator[MadeClicks]:
        """All rows, a run at a time, counted in `truth`."""
        config = self.config
        at_once = max(1, _CHUNK // (config.slots * max(1, config.lengths[1]) + config.numbers))
        for number, first in enumerate(range(0, config.rows, at_once)):
            random = np.random.default_rng([config.seed, 1, config.part, number])
            drawn = self._draw(min(at_once, config.rows - first), random)
            levels, labels = drawn_labels(_chances(self._score(drawn, self._scale), self._scale), random)
            truth.add(levels, labels, len(drawn.ranks))
            ids = self._firsts[drawn.slots] + self._ids_in_slot(drawn)
            yield MadeClicks(drawn.lengths, ids, drawn.counts, drawn.numbers, labels)

    def _draw(self, rows: int, random: np.random.Generator) -> _Drawn:
        config = self.config
        low, high = config.lengths
        lengths = random.integers(low, high, (rows, config.slots), endpoint=True)
        slots = np.repeat(np.tile(np.arange(config.slots), rows), lengths.ravel())

        def draw(cells: Longs) -> Longs:
            return drawn_ranks(config.distribution, self.sizes[cells % config.slots], random.random(len(cells)))

        ranks = distinct(lengths.ravel(), int(self.sizes.max()), draw)
        counts = np.expm1(random.exponential(1.0, (rows, config.numbers))).astype(np.int64)
        return _Drawn(lengths, slots, ranks, counts, np.rint(np.log1p(counts) * UNITS).astype(np.int64))

    def _ids_in_slot(self, drawn: _Drawn) -> Longs:
        """Frequent categories stand far from each other."""
        slots = drawn.slots
        return np.asarray((drawn.ranks * self._strides[slots] + self._shifts[slots]) % self.sizes[slots])

    def _score(self, drawn: _Drawn, scale: _Scale) -> Doubles:
        parts = zip(self._effects(drawn), scale.means, scale.factors, strict=True)
        return np.asarray(sum((part - mean) * factor for part, mean, factor in parts))

    def _effects(self, drawn: _Drawn) -> tuple[Doubles, Doubles]:
        """Of each row: the sum of weights, and the sum over pairs of slots of products of hidden vectors."""
        config = self.config
        rows = len(drawn.lengths)
        keys = self._firsts[drawn.slots] + drawn.ranks
        fade = fading(config.distribution, drawn.ranks)
        cells = np.repeat(np.arange(drawn.lengths.size), drawn.lengths.ravel())

        def by_slot(salt: int) -> Doubles:
            sums = np.bincount(cells, normals(keys, salt) * fade, drawn.lengths.size)
            return np.asarray(sums.reshape(rows, config.slots))

        main = by_slot(salt_of(config.seed, 4)).sum(axis=1)
        main += (drawn.numbers / UNITS - 0.6) @ self._weights
        pairs = np.zeros(rows)
        for k in range(_HIDDEN if len(self.pairs) else 0):
            vectors = by_slot(salt_of(config.seed, 5, k))
            pairs += (vectors[:, self.pairs[:, 0]] * vectors[:, self.pairs[:, 1]]).sum(axis=1)
        return main, pairs

    def _calibrate(self) -> _Scale:
        config = self.config
        drawn = self._draw(_PILOT, np.random.default_rng([config.seed, 0]))
        effects = self._effects(drawn)
        means = (float(effects[0].mean()), float(effects[1].mean()))
        shares = (math.sqrt(1 - config.pairs), math.sqrt(config.pairs))
        factors = tuple(share / max(float(part.std()), 1e-9) for share, part in zip(shares, effects, strict=True))
        plain = _Scale(means, (factors[0], factors[1]))
        score = self._score(drawn, plain)
        low, high = 1 / _STRONGEST, _STRONGEST
        for _ in range(30):
            middle = math.sqrt(low * high)
            scale = plain._replace(strength=middle, bias=_bias(middle * score, config.clicks))
            low, high = (middle, high) if _expected_auc(_chances(score, scale)) < config.auc else (low, middle)
        strength = 0.0 if config.auc == 0.5 else high
        return plain._replace(strength=strength, bias=_bias(strength * score, config.clicks))


def slot_sizes(slots: int, features: int) -> Longs:
    """Sizes that grow by a constant factor and sum to `features`."""
    least = min(_SMALLEST, features // slots)
    steps = np.arange(slots) / max(1, slots - 1)
    low, high = 0.0, math.log(features / least)
    for _ in range(100):
        middle = (low + high) / 2
        sizes = np.rint(least * np.exp(middle * steps)).astype(np.int64)
        low, high = (middle, high) if sizes.sum() < features else (low, middle)
    sizes = np.rint(least * np.exp(low * steps)).astype(np.int64)
    sizes[-1] += features - sizes.sum()
    return np.asarray(sizes)


def _chosen_pairs(slots: int, random: np.random.Generator) -> Longs:
    """As many pairs of slots as there are slots, or all if they are fewer; each once."""
    firsts, seconds = np.triu_indices(slots, 1)
    chosen = random.permutation(len(firsts))[:slots]
    return np.column_stack([firsts[chosen], seconds[chosen]]).astype(np.int64)


def _chances(scores: Doubles, scale: _Scale) -> Doubles:
    return _sigmoid(scale.strength * scores + scale.bias)


def _sigmoid(scores: Doubles) -> Doubles:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-scores)))


def _bias(scores: Doubles, share: float) -> float:
    """The bias that gives the share of clicks."""
    low, high = -_STRONGEST, _STRONGEST
    for _ in range(40):
        middle = (low + high) / 2
        found = float(_sigmoid(scores + middle).mean())
        low, high = (middle, high) if found < share else (low, middle)
    return (low + high) / 2


def _expected_auc(chances: Doubles) -> float:
    ups = np.sort(chances)
    below = np.cumsum(1 - ups) - 0.5 * (1 - ups)
    return float(ups @ below / (ups.sum() * (1 - ups).sum()))
