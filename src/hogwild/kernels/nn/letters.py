"""What a word looks like, from its letters: a convolution over each letter with its neighbours, the largest of each
filter over the word, and its tanh.

Letters are numbers: EDGE stands before and after a word, STRANGE for letters that training has not seen. `values`
has a row of `dim` numbers for each letter, then for each filter 3 dim numbers and its bias.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compiler.jit import choice, inner

EDGE, STRANGE, KNOWN = 0, 1, 2  # the first letter of the vocabulary is number KNOWN
LONGEST = 32  # letters of a word that are looked at: of a longer one the first and the last 16
_WINDOW = 3


class NoLetters(NamedTuple):
    """Words are not looked into."""


class Convolution(NamedTuple):
    """letters: rows of the table; dim: numbers a letter; filters; at: where the table begins in `values`."""

    letters: int
    dim: int
    filters: int
    at: int


def letter_cells(letters: int, dim: int, filters: int) -> int:
    """Weights of a convolution."""
    return letters * dim + filters * (_WINDOW * dim + 1)


@choice
def spell(spelling: Any, samples: Any, token: int, values: Any, floats: Any, to: int, best: Any, place: int) -> None:
    """What the filters make of the word of a token, to floats[to:], and to best[place:] where each was largest."""


@choice
def unspell(spelling: Any, samples: Any, token: int, values: Any, floats: Any, at: int, slopes: int, best: Any, place: int, grads: Any) -> None:  # noqa: E501
    """Add to the gradient: `slopes` are the derivatives in what stands at floats[at:]."""


@choice
def clear_letters(spelling: Any, grads: Any) -> None:
    """A gradient of zero."""


spell.of(NoLetters)(lambda spelling, samples, token, values, floats, to, best, place: None)
unspell.of(NoLetters)(
    lambda spelling, samples, token, values, floats, at, slopes, best, place, grads: None
)
clear_letters.of(NoLetters)(lambda spelling, grads: None)


@inner
def _letter_row(spelling: Any, samples: Any, first: int, last: int, letter: int) -> Any:
    """The beginning of the row of the letter at a place, or of what stands before the first and after the last."""
    inside = first <= letter < last
    number = samples.letters[letter] if inside else EDGE
    return spelling.at + np.int64(number) * spelling.dim


@inner
def _filter_at(spelling: Any, filter: int) -> Any:
    return spelling.at + spelling.letters * spelling.dim + filter * (_WINDOW * spelling.dim + 1)


@spell.of(Convolution)
def _spell(spelling: Any, samples: Any, token: int, values: Any, floats: Any, to: int, best: Any, place: int) -> None:
    dim = spelling.dim
    word = samples.words[token]
    first, last = samples.word_starts[word], samples.word_starts[word + 1]
    for f in range(spelling.filters):
        own = _filter_at(spelling, f)
        top, where = np.float32(-np.inf), first
        for letter in range(first, last):
            total = values[own + _WINDOW * dim]  # RACE(stale read): docs/races.md
            for k in range(_WINDOW):
                row = _letter_row(spelling, samples, first, last, letter + k - 1)
                weights, letters = values[own + k * dim : own + (k + 1) * dim], values[row : row + dim]
                part = np.float32(0)
                for c in range(dim):
                    part += weights[c] * letters[c]
                total += part
            if not total <= top:
                top, where = total, letter
        floats[to + f] = np.float32(math.tanh(top))
        best[place + f] = where


@unspell.of(Convolution)
def _unspell(spelling: Any, samples: Any, token: int, values: Any, floats: Any, at: int, slopes: int, best: Any, place: int, grads: Any) -> None:  # noqa: E501
    dim = spelling.dim
    word = samples.words[token]
    first, last = samples.word_starts[word], samples.word_starts[word + 1]
    for f in range(spelling.filters):
        given = floats[at + f]
        slope = floats[slopes + f] * (np.float32(1) - given * given)
        own = _filter_at(spelling, f)
        grads[own + _WINDOW * dim] += slope
        for k in range(_WINDOW):
            row = _letter_row(spelling, samples, first, last, best[place + f] + k - 1)
            filter_grads, letter_grads = grads[own + k * dim : own + (k + 1) * dim], grads[row : row + dim]
            weights, letters = values[own + k * dim : own + (k + 1) * dim], values[row : row + dim]
            for c in range(dim):
                filter_grads[c] += slope * letters[c]
                letter_grads[c] += slope * weights[c]


@clear_letters.of(Convolution)
def _clear(spelling: Any, grads: Any) -> None:
    for k in range(spelling.at, _filter_at(spelling, spelling.filters)):
        grads[k] = np.float32(0)
