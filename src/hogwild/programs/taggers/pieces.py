"""Structure regularization as Sun (2014) has it: sentences are cut at random into mini-samples, before training."""

from __future__ import annotations

import numpy as np

from hogwild.arrays import Offsets


def count_pieces(offsets: Offsets, pieces: int) -> int:
    """How many pieces there are of all sentences: of each so many, or one a token where it has fewer.

    >>> count_pieces(np.array([0, 1, 6, 9]), 4)
    8
    """
    return int(np.minimum(np.diff(offsets), pieces).sum())


def cut_pieces(offsets: Offsets, pieces: int, seed: int) -> Offsets:
    """Where pieces begin, and the end of the last; all ways to cut a sentence into so many are equally likely.

    >>> cut_pieces(np.array([0, 1, 4]), 3, seed=1).tolist()
    [0, 1, 2, 3, 4]
    """
    lengths, tokens = np.diff(offsets), int(offsets[-1])
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    keys = np.random.default_rng([seed, 0x5241]).random(tokens)
    keys[offsets[:-1]] = -1.0  # the first token of a sentence begins a piece
    order = np.lexsort((keys, sentence))
    place = np.arange(tokens) - np.repeat(offsets[:-1], lengths)  # of a token among those of its sentence, by its key
    begins = np.sort(order[place < pieces])
    return np.append(begins, tokens).astype(offsets.dtype)
