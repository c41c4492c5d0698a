"""Sparse problems that can be learned, made from a seed: rows, labels, and how well the truth itself does.

The problem: every feature k has a true weight w_k, a row's score is s = scale * (sum(w_k x_k) - centre), and its label
is +1 with probability 1 / (1 + exp(-strength * s)). So a logistic model with a bias can reach the truth. `noise`, the
share of labels against the sign of the score, fixes `strength`; `centre` makes both classes about as frequent.

Weights come from a hash of (seed, k): a problem with 2^31 features takes no more memory than one with ten. Another
`part` has other rows of the same problem, for testing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Offsets
from hogwild.config import SparseConfig

_CHUNK = 1 << 17    # nonzeros made at a time
_PILOT = 1024       # rows that fix scale and strength, the same for all parts
_VALUES = 10_000    # values are multiples of 1 / _VALUES

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """A run of rows. Ids start at 0 and ascend in a row; values are in units of 1 / 10000; labels are +1 and -1."""

    offsets: Offsets
    ids: Longs
    values: Longs
    labels: Longs
    chances: Doubles
    """Probability of +1 under the truth."""


@dataclass
class Truth:
    """How well the true weights do on the rows made so far."""

    rows: int = 0
    nonzeros: int = 0
    positive: int = 0
    right: int = 0
    log_loss: float = 0.0

    def add(self, rows: Rows) -> None:
        """Count a run of rows."""
        self.rows += len(rows.labels)
        self.nonzeros += len(rows.ids)
        self.positive += int((rows.labels > 0).sum())
        self.right += int(((rows.chances >= 0.5) == (rows.labels > 0)).sum())
        true = np.where(rows.labels > 0, rows.chances, 1 - rows.chances)
        self.log_loss -= float(np.log(np.maximum(true, 1e-300)).sum())


def make_rows(config: SparseConfig, truth: Truth) -> Iterator[Rows]:
    """The rows of a problem, a run at a time, counted in `truth`."""
    centre, scale, strength = _calibrate(config)
    at_once = max(1, _CHUNK // config.lengths[1])
    for number, first in enumerate(range(0, config.rows, at_once)):
        random = np.random.default_rng([config.seed, 1, config.part, number])
        offsets, ids, values = _draw(config, min(at_once, config.rows - first), random)
        scores = scale * (_scores(config, offsets, ids, values) - centre)
        with np.errstate(over="ignore"):
            chances = 1 / (1 + np.exp(-strength * scores)) if config.noise else (scores >= 0).astype(np.float64)
        labels = np.where(random.random(len(chances)) < chances, 1, -1)
        rows = Rows(offsets, ids, values, labels, chances)
        truth.add(rows)
        yield rows


def _calibrate(config: SparseConfig) -> tuple[float, float, float]:
    """Centre and scale to scores of mean 0 and variance 1, and the strength at which `noise` is what it should be."""
    random = np.random.default_rng([config.seed, 0])
    scores = _scores(config, *_draw(config, min(_PILOT, max(16, (1 << 22) // config.lengths[1])), random))
    centre, scale = float(np.median(scores)), 1 / max(float(scores.std()), 1e-12)
    if not config.noise:
        return centre, scale, math.inf
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        with np.errstate(over="ignore"):
            wrong = float(np.mean(1 / (1 + np.exp(middle * scale * np.abs(scores - centre)))))
        low, high = (middle, high) if wrong > config.noise else (low, middle)
    return centre, scale, high


def _scores(config: SparseConfig, offsets: Offsets, ids: Longs, values: Longs) -> Doubles:
    products = true_weights(config, ids) * (values / _VALUES)
    return np.asarray(np.add.reduceat(products, offsets[:-1]))


def true_weights(config: SparseConfig, ids: Longs) -> Doubles:
    """Nearly normal weights: the sum of four 16-bit pieces of a hash (splitmix64) of seed and id.

    With zipf they fall with the fourth root of the rank: what nearly never occurs decides little, and can be learned.
    """
    with np.errstate(over="ignore"):
        bits = (ids.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(_mixed(config.seed))
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    pieces = np.zeros(len(ids), np.int64)
    for shift in (0, 16, 32, 48):
        pieces += (bits >> np.uint64(shift)).astype(np.uint16)
    # The sum of four uniform numbers on [0, 65536) has the mean 2 * 65535 and the variance 4 * 65536^2 / 12.
    weights = (pieces - 131070) / (65536 / math.sqrt(3))
    if config.distribution == "zipf":
        back = pow(_stride(config.features), -1, config.features)
        ranks = (ids - config.seed % config.features) * back % config.features
        weights *= (1.0 + ranks) ** -0.25
    return np.asarray(weights)


def _mixed(seed: int) -> int:
    return int(np.random.SeedSequence([seed, 2]).generate_state(1, np.uint64)[0])


# -- which features a row has --

def _draw(config: SparseConfig, rows: int, random: np.random.Generator) -> tuple[Offsets, Longs, Longs]:
    low, high = config.lengths
    lengths = random.integers(low, high, rows, endpoint=True)
    ids = _many_ids(config, lengths, random) if 4 * high > config.features else _few_ids(config, lengths, random)
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    values = np.full(len(ids), _VALUES) if config.binary else random.integers(1, _VALUES, len(ids))
    return offsets, ids, values


def _ids_of(config: SparseConfig, ranks: Longs) -> Longs:
    """Frequent features get ids far from each other, as in data that nobody has sorted."""
    return (ranks * _stride(config.features) + config.seed % config.features) % config.features


def _stride(features: int) -> int:
    """A number near the golden section of `features` that shares no divisor with it, so that ids are a permutation."""
    stride = max(1, int(features * 0.6180339887))
    while math.gcd(stride, features) != 1:
        stride += 1
    return stride


def _few_ids(config: SparseConfig, lengths: Longs, random: np.random.Generator) -> Longs:
    """Distinct ids a row: draw, drop repeats, and draw again for the rows that lack some."""
    kept = np.zeros(0, np.int64)
    starts = np.arange(len(lengths) + 1) * config.features
    lacking = lengths
    while (count := int(lacking.sum())) > 0:
        drawn = np.repeat(starts[:-1], lacking) + _ids_of(config, _ranks(config, count, random))
        kept = np.concatenate([kept, drawn])
        kept.sort()
        fresh = np.ones(len(kept), bool)
        np.not_equal(kept[1:], kept[:-1], out=fresh[1:])
        kept = kept[fresh]
        lacking = lengths - np.diff(np.searchsorted(kept, starts))
    return kept - np.repeat(starts[:-1], lengths)


def _ranks(config: SparseConfig, count: int, random: np.random.Generator) -> Longs:
    """Ranks from 0. Zipf: rank k has the probability log((k + 2) / (k + 1)) / log(features + 1), about 1 / (k + 1)."""
    uniform = random.random(count)
    if config.distribution == "uniform":
        drawn = uniform * config.features
    else:
        drawn = np.expm1(uniform * math.log(config.features + 1))
    return np.minimum(drawn.astype(np.int64), config.features - 1)


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


# -- text --

def svmlight(rows: Rows) -> bytes:
    """The rows as svmlight lines, ids from 1.

    A token (a label, or a feature with its value) is a few words of four characters looked up in tables; zero bytes
    stand for nothing and are dropped at the end.
    """
    numbers = rows.ids + 1
    groups = -(-len(str(int(numbers.max(initial=0)))) // 4)
    heads = rows.offsets[:-1] + np.arange(len(rows.labels))     # places of labels among all tokens
    text = np.zeros((len(numbers) + len(heads), 1 + groups + 2), np.uint32)
    is_feature = np.ones(len(text), bool)
    is_feature[heads] = False
    features = np.zeros((len(numbers), text.shape[1]), np.uint32)
    features[:, 0] = _words([" "])[0]
    plain, lead, values = _tables()
    higher = np.zeros(len(numbers), bool)
    for group in range(groups):
        part = numbers // 10_000 ** (groups - 1 - group) % 10_000
        features[:, 1 + group] = np.where(higher, plain[part], lead[part])
        higher |= part > 0
    features[:, 1 + groups :] = values[rows.values]
    text[is_feature] = features
    text[heads, 0] = _words(["\n-1", "\n+1"])[(rows.labels > 0).astype(np.int64)]
    characters = text.view(np.uint8).ravel()
    return bytes(characters[characters != 0])[1:] + b"\n"


@cache
def _tables() -> tuple[Words, Words, Words]:
    """Four digits with and without leading zeros; values with their colon."""
    plain = _words(f"{n:04}" for n in range(10_000))
    lead = _words(["", *(str(n) for n in range(1, 10_000))], left=True)
    return plain, lead, _words([*(f":0.{n:04}" for n in range(_VALUES)), ":1"], size=8).reshape(-1, 2)


def _words(texts: Iterable[str], left: bool = False, size: int = 4) -> Words:
    """Texts as words of four characters, filled with zero bytes on the right, or on the left."""
    fill = str.rjust if left else str.ljust
    return np.frombuffer("".join(fill(text, size, "\0") for text in texts).encode(), np.uint32)
