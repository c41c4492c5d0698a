"""Slow, obvious twin of the kernels of paragraph vectors, in float64: one word, one negative or fork at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reference.word2vec import Matrix, Pick, Way, chance_against, surprise


class Tables(NamedTuple):
    """Rows of words as they are seen from themselves and from their neighbours, and of documents; or gradients."""

    inputs: Matrix
    outputs: Matrix
    documents: Matrix


def document_of(ends: Sequence[int], position: int) -> int:
    """The document of a position of the text."""
    return next(k for k, end in enumerate(ends) if position < end)


def paragraphs(
    picks: Sequence[Pick], owners: Sequence[int], tables: Tables, ways: Sequence[Way] = (), summed: bool = False
) -> tuple[float, Tables]:
    """Each word is found by the mean, or the sum, of its neighbours and of its document; the loss and its gradient.

    ways: forks of each word in a tree; without, words are told from negatives.
    """
    loss, slopes = 0.0, Tables(*(np.zeros(table.shape) for table in tables))
    for (word, near, negatives, weight), owner in zip(picks, owners, strict=True):
        rows = [tables.inputs[n] for n in near] + [tables.documents[owner]]
        share = 1.0 if summed else 1 / len(rows)
        hidden = share * sum(rows)
        wanted = [(fork, sign, 1.0) for fork, sign in ways[word]] if ways else [(word, 1.0, 1.0)]
        for other, sign, counts in wanted + ([] if ways else [(n, -1.0, weight) for n in negatives]):
            score = sign * float(hidden @ tables.outputs[other])
            loss += counts * surprise(score)
            slope = -sign * counts * chance_against(score)
            slopes.outputs[other] += slope * hidden
            for n in near:
                slopes.inputs[n] += slope * share * tables.outputs[other]
            slopes.documents[owner] += slope * share * tables.outputs[other]
    return loss, slopes
