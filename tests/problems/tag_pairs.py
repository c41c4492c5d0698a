"""True and guessed tags to score."""

from __future__ import annotations

import numpy as np

CHUNKS = ["O", "O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("NP", "VP", "PP"))]


def random_pair(tags, sentences, noise=0.2, seed=0):
    """True and guessed tags; a share of the guesses is random."""
    rng = np.random.default_rng(seed)
    gold = [rng.choice(tags, rng.integers(1, 15)).tolist() for _ in range(sentences)]
    guess = [[str(rng.choice(tags)) if rng.random() < noise else tag for tag in sentence] for sentence in gold]
    return gold, guess


def flat(sentences):
    return [tag for sentence in sentences for tag in sentence]
