"""Slow, obvious twins of the word-vector kernels, in float64: one word, one neighbour, one negative at a time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]


class Pick(NamedTuple):
    """A word of the text, its neighbours, the negatives set against it, and what each of those counts for."""

    word: int
    near: list[int]
    negatives: list[int]
    weight: float


class Outcome(NamedTuple):
    """The loss, and its gradient by the rows of both tables."""

    loss: float
    inputs: Matrix
    outputs: Matrix


def surprise(score: float) -> float:
    """log(1 + exp(-score)) without overflow."""
    return math.log1p(math.exp(-abs(score))) + max(-score, 0.0)


def chance_against(score: float) -> float:
    """1 / (1 + exp(score)) without overflow."""
    return 1 / (1 + math.exp(score)) if score < 0 else math.exp(-score) / (1 + math.exp(-score))


def skip_gram(picks: Sequence[Pick], inputs: Matrix, outputs: Matrix) -> Outcome:
    """Each word tells its neighbours (weight 1) from its negatives."""
    loss, by_inputs, by_outputs = 0.0, np.zeros(inputs.shape), np.zeros(outputs.shape)
    for word, near, negatives, weight in picks:
        for other, sign, counts in [(n, 1.0, 1.0) for n in near] + [(n, -1.0, weight) for n in negatives]:
            score = sign * float(inputs[word] @ outputs[other])
            loss += counts * surprise(score)
            slope = -sign * counts * chance_against(score)
            by_inputs[word] += slope * outputs[other]
            by_outputs[other] += slope * inputs[word]
    return Outcome(loss, by_inputs, by_outputs)


def cbow(picks: Sequence[Pick], inputs: Matrix, outputs: Matrix) -> Outcome:
    """The mean of the neighbours tells the word (weight 1) from its negatives; a word alone has no loss."""
    loss, by_inputs, by_outputs = 0.0, np.zeros(inputs.shape), np.zeros(outputs.shape)
    for word, near, negatives, weight in picks:
        if not near:
            continue
        mean = sum(inputs[n] for n in near) / len(near)
        by_mean = np.zeros(inputs.shape[1])
        for other, sign, counts in [(word, 1.0, 1.0)] + [(n, -1.0, weight) for n in negatives]:
            score = sign * float(mean @ outputs[other])
            loss += counts * surprise(score)
            slope = -sign * counts * chance_against(score)
            by_mean += slope * outputs[other]
            by_outputs[other] += slope * mean
        for n in near:
            by_inputs[n] += by_mean / len(near)
    return Outcome(loss, by_inputs, by_outputs)


def numeric(
    model: Callable[[Sequence[Pick], Matrix, Matrix], Outcome], picks: Sequence[Pick], inputs: Matrix, outputs: Matrix
) -> tuple[Matrix, Matrix]:
    """The same gradients from differences of the loss."""
    found = []
    for table in (inputs, outputs):
        slopes = np.zeros(table.shape)
        for cell in np.ndindex(table.shape):
            kept = table[cell]
            table[cell] = kept + 1e-5
            above = model(picks, inputs, outputs).loss
            table[cell] = kept - 1e-5
            slopes[cell] = (above - model(picks, inputs, outputs).loss) / 2e-5
            table[cell] = kept
        found.append(slopes)
    return found[0], found[1]


def neighbours(ids: Sequence[int], position: int, far: int, stays: Sequence[bool]) -> list[int]:
    """Up to `far` words that stay to either side of a position, in the order of the text, in its sentence."""
    found: list[list[int]] = []
    for step in (-1, 1):
        side: list[int] = []
        at = position + step
        while 0 <= at < len(ids) and ids[at] >= 0 and len(side) < far:
            if stays[ids[at]]:
                side.append(ids[at])
            at += step
        found.append(side)
    return found[0][::-1] + found[1]


def noise(counts: Sequence[int]) -> Matrix:
    """The share of each word among the negatives."""
    weights = np.array([count**0.75 for count in counts])
    return weights / weights.sum()


# -- words of parts, and words in a tree --


def grams(word: str, shortest: int, longest: int, buckets: int) -> list[int]:
    """The buckets of a word's n-grams, in the order of fastText; those of one letter are not the brackets."""
    spelt = f"<{word}>"
    found = []
    for first in range(len(spelt)):
        for length in range(1, longest + 1):
            gram = spelt[first : first + length]
            if len(gram) == length and length >= shortest and gram not in ("<", ">"):
                found.append(fnv(gram) % buckets)
    return found


def fnv(text: str) -> int:
    """FNV-1a of 32 bits, where bytes are signed."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619 % 2**32
    return value


class Made(NamedTuple):
    """The loss, and its gradient by the rows of all tables."""

    loss: float
    inputs: Matrix
    outputs: Matrix
    grams: Matrix


def by_parts(
    model: Callable[[Matrix, Matrix], Outcome], parts: Sequence[Sequence[int]], inputs: Matrix, outputs: Matrix,
    table: Matrix,
) -> Made:  # fmt: skip
    """A model of words that are means of rows; each of the rows has the whole gradient of the mean."""
    means = np.array([
        (inputs[word] + sum(table[gram] for gram in mine)) / (1 + len(mine)) for word, mine in enumerate(parts)
    ])  # fmt: skip
    outcome = model(means, outputs)
    by_grams = np.zeros(table.shape)
    for word, mine in enumerate(parts):
        for gram in mine:
            by_grams[gram] += outcome.inputs[word]
    return Made(*outcome, by_grams)


Way = list[tuple[int, float]]


def tree(cbow: bool, picks: Sequence[Pick], ways: Sequence[Way], inputs: Matrix, outputs: Matrix) -> Outcome:
    """Every word looked for is found by its forks, left and right; a word without neighbours costs nothing."""
    loss, by_inputs, by_outputs = 0.0, np.zeros(inputs.shape), np.zeros(outputs.shape)
    for word, near, _, _ in picks:
        if not near:
            continue
        sources, wanted = (near, [word]) if cbow else ([word], near)
        hidden = sum(inputs[n] for n in sources) / len(sources)
        for target in wanted:
            for fork, sign in ways[target]:
                score = sign * float(hidden @ outputs[fork])
                loss += surprise(score)
                slope = -sign * chance_against(score)
                by_outputs[fork] += slope * hidden
                for n in sources:
                    by_inputs[n] += slope * outputs[fork] / len(sources)
    return Outcome(loss, by_inputs, by_outputs)


def least_length(counts: Sequence[int]) -> int:
    """The length of all ways together, each as often as its word, that no tree can go below."""
    heap = list(counts)
    heapq.heapify(heap)
    total = 0
    while len(heap) > 1:
        both = heapq.heappop(heap) + heapq.heappop(heap)
        total += both
        heapq.heappush(heap, both)
    return total


# -- words found by their document too --


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
