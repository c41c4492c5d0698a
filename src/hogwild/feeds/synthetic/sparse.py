"""Sparse problems that can be learned, made from a seed: rows, labels, and how well the truth itself does.

The problem: every feature k has a true weight w_k, a row's score is s = scale * (sum(w_k x_k) - centre), and its label
is +1 with probability 1 / (1 + exp(-strength * s)). So a logistic model with a bias can reach the truth. `noise`, the
share of labels against the sign of the score, fixes `strength`; `centre` makes both classes about as frequent.
With more classes each has weights and a score of its own, and the probabilities are the softmax of strength * s.

Another `part` has other rows of the same problem, for testing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hogwild.arrays import Offsets
from hogwild.config import SparseConfig
from hogwild.feeds.synthetic.sampling import UNITS, distinct, drawn_ranks, fading, normals, salt_of, stride_of
from hogwild.feeds.synthetic.truth import Doubles, Longs, Truth, drawn_labels

_CHUNK = 1 << 17    # nonzeros made at a time
_PILOT = 1024       # rows that fix scale and strength, the same for all parts
_STRONGEST = 1e6


@dataclass(frozen=True)
class MadeRows:
    """A run of rows. Ids start at 0 and ascend in a row; values are in units of 1 / UNITS; labels are class numbers."""

    offsets: Offsets
    ids: Longs
    values: Longs
    labels: Longs


class _Scale(NamedTuple):
    """What turns sums of weights into chances; an infinite strength leaves no doubt."""

    centre: Doubles
    factor: float
    strength: float


def make_rows(config: SparseConfig, truth: Truth) -> Iterator[MadeRows]:
    """The rows of a problem, a run at a time, counted in `truth`."""
    scale = _calibrate(config)
    at_once = max(1, _CHUNK // config.lengths[1] // (config.classes if config.classes > 2 else 1))
    for number, first in enumerate(range(0, config.rows, at_once)):
        random = np.random.default_rng([config.seed, 1, config.part, number])
        offsets, ids, values = _draw(config, min(at_once, config.rows - first), random)
        chances = _chances(_scores(config, offsets, ids, values), scale)
        levels, labels = drawn_labels(chances if config.classes > 2 else chances[:, 1], random)
        truth.add(levels, labels, len(ids))
        yield MadeRows(offsets, ids, values, labels)


def _calibrate(config: SparseConfig) -> _Scale:
    """Centre and scale to scores of mean 0 and variance 1, and the strength at which `noise` is what it should be."""
    random = np.random.default_rng([config.seed, 0])
    scores = _scores(config, *_draw(config, min(_PILOT, max(16, (1 << 22) // config.lengths[1])), random))
    centre = np.median(scores, axis=0)
    factor = 1 / max(float(scores.std(axis=0).mean()), 1e-12)
    if not config.noise:
        return _Scale(centre, factor, np.inf)
    low, high = 0.0, _STRONGEST
    for _ in range(100):
        middle = (low + high) / 2
        wrong = float(1 - _chances(scores, _Scale(centre, factor, middle)).max(axis=1).mean())
        low, high = (middle, high) if wrong > config.noise else (low, middle)
    return _Scale(centre, factor, high)


def _chances(scores: Doubles, scale: _Scale) -> Doubles:
    """(rows, classes); scores are of the second of two classes, or of each."""
    scaled = scale.factor * (scores - scale.centre)
    if scaled.shape[1] == 1:
        scaled = np.column_stack([np.zeros(len(scaled)), scaled])
    if scale.strength == np.inf:
        # A tie goes to the last, as a score of 0 to +1.
        best = scaled.shape[1] - 1 - scaled[:, ::-1].argmax(axis=1)
        return np.asarray(np.eye(scaled.shape[1])[best])
    odds = np.exp(scale.strength * (scaled - scaled.max(axis=1, keepdims=True)))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _scores(config: SparseConfig, offsets: Offsets, ids: Longs, values: Longs) -> Doubles:
    classes = range(1) if config.classes == 2 else range(config.classes)
    numbers = values / UNITS
    columns = [np.add.reduceat(true_weights(config, ids, k) * numbers, offsets[:-1]) for k in classes]
    return np.column_stack(columns)


def true_weights(config: SparseConfig, ids: Longs, klass: int = 0) -> Doubles:
    """Nearly normal weights; with zipf they fall with the fourth root of the rank."""
    weights = normals(ids, salt_of(config.seed, 2, *([klass] if klass else [])))
    back = pow(stride_of(config.features), -1, config.features)
    ranks = (ids - config.seed % config.features) * back % config.features
    return weights * fading(config.distribution, ranks)


# -- which features a row has -----------------------------------------------------------------------------------------

def _draw(config: SparseConfig, rows: int, random: np.random.Generator) -> tuple[Offsets, Longs, Longs]:
    low, high = config.lengths
    lengths = random.integers(low, high, rows, endpoint=True)
    ids = _many_ids(config, lengths, random) if 4 * high > config.features else _few_ids(config, lengths, random)
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    values = np.full(len(ids), UNITS) if config.binary else random.integers(1, UNITS, len(ids))
    return offsets, ids, values


def _ids_of(config: SparseConfig, ranks: Longs) -> Longs:
    return (ranks * stride_of(config.features) + config.seed % config.features) % config.features


def _few_ids(config: SparseConfig, lengths: Longs, random: np.random.Generator) -> Longs:
    def draw(cells: Longs) -> Longs:
        return _ids_of(config, drawn_ranks(config.distribution, config.features, random.random(len(cells))))

    return distinct(lengths, config.features, draw)


def _many_ids(config: SparseConfig, lengths: Longs, random: np.random.Generator) -> Longs:
    """The same law where a row has many of all features: the n smallest of exponential times, rate = probability."""
    rates = np.ones(config.features)
    if config.distribution == "zipf":
        rates = np.diff(np.log(np.arange(1, config.features + 2)))
    rows: list[Longs] = []
    for length in lengths:
        times = random.standard_exponential(config.features) / rates
        rows.append(np.sort(_ids_of(config, np.argpartition(times, length - 1)[:length].astype(np.int64))))
    return np.concatenate(rows)
