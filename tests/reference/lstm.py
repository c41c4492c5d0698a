"""A Bi-LSTM tagger in float64, a token at a time, as the formulas are written: its loss, from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Real = npt.NDArray[np.float64]
EDGE = 0


def logistic(x: Real) -> Real:
    return 1 / (1 + np.exp(-x))


def read(inputs: Sequence[Real], weights: Mapping[str, Real], name: str, diagonal: bool) -> list[Real]:
    """What one layer gives in one direction, for the inputs of the tokens in the order in which it reads them."""
    parts = [weights[part] for part in weights if part.startswith(f"{name}_input")]
    into, bias, back = np.concatenate(parts), weights[f"{name}_bias"][0], weights[f"{name}_hidden"]
    units = into.shape[1] // 4
    given, cell, found = np.zeros(units), np.zeros(units), []
    for x in inputs:
        sums = x @ into + bias + (np.tile(given, 4) * back[0] if diagonal else given @ back)
        i, f, g, o = (sums[gate * units : (gate + 1) * units] for gate in range(4))
        cell = logistic(f) * cell + logistic(i) * np.tanh(g)
        given = logistic(o) * np.tanh(cell)
        found.append(given)
    return found


def look_into(letters: Sequence[int], weights: Mapping[str, Real]) -> Real:
    """What the filters make of a word."""
    rows = [weights["letters"][letter] for letter in (EDGE, *letters, EDGE)]
    found = [
        weights["filters"] @ np.concatenate(rows[k : k + 3]) + weights["filter_bias"] for k in range(len(letters))
    ]
    return np.asarray(np.tanh(np.max(found, axis=0)))


def scores(tokens: Sequence[tuple[Sequence[int], Sequence[int]]], weights: Mapping[str, Real], layers: int, diagonal: bool) -> Real:  # noqa: E501
    """The score of each tag at each token. tokens: of each its rows, numbered over words and features, and letters."""
    words = len(weights["words"])
    inputs: list[Real] = []
    for rows, letters in tokens:
        parts = [weights["words"][rows[0]], *(weights["features"][row - words] for row in rows[1:])]
        if "letters" in weights:
            parts.append(look_into(letters, weights))
        inputs.append(np.concatenate(parts))
    for layer in range(1, layers + 1):
        forward = read(inputs, weights, f"lstm_{layer}_forward", diagonal)
        backward = read(inputs[::-1], weights, f"lstm_{layer}_backward", diagonal)[::-1]
        inputs = [np.concatenate(pair) for pair in zip(forward, backward, strict=True)]
    output = np.concatenate([weights["output_forward"], weights["output_backward"]])
    return np.array(inputs) @ output + weights["output_bias"]


def _log_sum(x: Real, axis: int) -> Any:
    top = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=axis)) + top.squeeze(axis)


def loss(found: Real, tags: Sequence[int], pairs: Real | None) -> float:
    """-log p of the tags of a sentence."""
    if pairs is None:
        return float(sum(_log_sum(row, 0) - row[tag] for row, tag in zip(found, tags, strict=True)))
    alpha, gold = found[0], found[0][tags[0]]
    for t in range(1, len(found)):
        alpha = _log_sum(alpha[:, None] + pairs, 0) + found[t]
        gold = gold + pairs[tags[t - 1], tags[t]] + found[t][tags[t]]
    return float(_log_sum(alpha, 0) - gold)
