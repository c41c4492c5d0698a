"""No exchange at all: each node learns from its part of the text, and the driver merges what they have at the end.

Vectors that were trained apart differ by a rotation, at least. Alternating regression: the merged vectors are the mean
of all sub-models turned towards them, each word weighed by how often the part had it; the turn of a sub-model is the
rotation that brings its words nearest to the merged ones. Words that a part had not come from those that had them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.cluster.strategies.strategy import Strategy
from hogwild.cluster.wire.rounds import Round

_TURNS = 10  # of the regression; the vectors move little after five
Numbers = npt.NDArray[np.float64]


class Merge(Strategy):
    """Alone."""

    in_step = False
    levels = False

    def exchange(self, here: Round, leading: int | None) -> None:
        """Nothing."""


def align(models: Sequence[Floats], weights: Sequence[Numbers]) -> list[Numbers]:
    """The rotation of each model that brings it nearest to the mean of all, rows weighed."""
    first = int(np.argmax([weight.sum() for weight in weights]))
    whole = np.maximum(np.sum(weights, axis=0), 1e-30)
    # All that a turn of the regression asks of the words: how two models go together, whatever their rotations.
    like = [
        [_likeness(one, other, weight * mass / whole) for other, mass in zip(models, weights, strict=True)]
        for one, weight in zip(models, weights, strict=True)
    ]
    both = weights[first] > 0
    turns = [_rotation(_likeness(one, models[first], w * both)) for one, w in zip(models, weights, strict=True)]
    for _ in range(_TURNS - 1):
        nearest = [sum(part @ turn for part, turn in zip(parts, turns, strict=True)) for parts in like]
        turns = [_rotation(product) for product in nearest]
    return turns


def _likeness(one: Floats, other: Floats, weight: Numbers) -> Numbers:
    """Products of all columns of two models, words weighed."""
    product: Numbers = ((one * weight.astype(np.float32)[:, None]).T @ other).astype(np.float64)
    return product


def _rotation(product: Any) -> Numbers:
    left, _, right = np.linalg.svd(product)
    turn: Numbers = left @ right
    return turn


def merged(models: Sequence[Floats], weights: Sequence[Numbers], turns: Sequence[Numbers]) -> Floats:
    """The mean of all models, each turned and each word weighed; a word that none has is as in the first."""
    whole = np.sum(weights, axis=0)
    shares = [(weight / np.maximum(whole, 1e-30)).astype(np.float32)[:, None] for weight in weights]
    total = sum(
        share * (model @ turn.astype(np.float32)) for model, share, turn in zip(models, shares, turns, strict=True)
    )
    mean: Floats = np.where(whole[:, None] > 0, total, models[0])
    return mean


def merge_words(program: Any, weights: Sequence[Sequence[Floats]], counts: Sequence[npt.NDArray[np.int64]]) -> None:
    """Give a Word2Vec the vectors of all nodes. weights: inputs and outputs of each; counts: of words in its part."""
    dim = program.config.dim
    often = [count.astype(np.float64) for count in counts]
    inputs, outputs = ([each[k].reshape(program.weights[k].shape)[:, :dim] for each in weights] for k in range(2))
    turns = align(inputs, often)
    program.weights.inputs[:, :dim] = merged(inputs, often, turns)
    program.weights.outputs[:, :dim] = merged(outputs, often, turns)
