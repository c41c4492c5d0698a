"""Sub-models of words, each trained on a part of a text, brought into one space and merged.

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

_TURNS = 10  # of the regression; the vectors move little after five


def align(models: Sequence[Floats], weights: Sequence[npt.NDArray[np.float64]]) -> list[npt.NDArray[np.float64]]:
    """The rotation of each model that brings it nearest to the mean of all, rows weighed."""
    first = int(np.argmax([weight.sum() for weight in weights]))
    target = models[first].astype(np.float64)
    known = weights[first] > 0
    turns = [np.eye(models[0].shape[1]) for _ in models]
    for _ in range(_TURNS):
        for number, (model, weight) in enumerate(zip(models, weights, strict=True)):
            both = np.flatnonzero((weight > 0) & known)
            left, _, right = np.linalg.svd((model[both] * weight[both, None]).T @ target[both])
            turns[number] = left @ right
        target = merged(models, weights, turns)
        known = np.sum(weights, axis=0) > 0
    return turns


def merged(
    models: Sequence[Floats], weights: Sequence[npt.NDArray[np.float64]], turns: Sequence[npt.NDArray[np.float64]]
) -> npt.NDArray[np.float64]:
    """The mean of all models, each turned and each word weighed; a word that none has is as in the first."""
    whole = np.sum(weights, axis=0)
    total = sum(weight[:, None] * (model @ turn) for model, weight, turn in zip(models, weights, turns, strict=True))
    mean: npt.NDArray[np.float64] = np.where(whole[:, None] > 0, total / np.maximum(whole, 1e-30)[:, None], models[0])
    return mean


def merge_words(program: Any, weights: Sequence[Sequence[Floats]], counts: Sequence[npt.NDArray[np.int64]]) -> None:
    """Give a Word2Vec the vectors of all nodes. weights: inputs and outputs of each; counts: of words in its part."""
    dim = program.config.dim
    often = [count.astype(np.float64) for count in counts]
    inputs, outputs = ([each[k].reshape(program.weights[k].shape)[:, :dim] for each in weights] for k in range(2))
    turns = align(inputs, often)
    program.weights.inputs[:, :dim] = merged(inputs, often, turns)
    program.weights.outputs[:, :dim] = merged(outputs, often, turns)
