"""The best entries of rows of scores: what to recommend."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.compiler.jit import kernel

NONE = -1       # in place of an entry where a row has too few
_BLOCK = 64     # scores that are looked at together: most blocks hold none that is good enough
_LEAST = np.float32(-np.inf)


@kernel
def hide_seen(scores: Any, users: Any, offsets: Any, seen: Any) -> None:
    """Take the items that each user has out of the ranking; row r is that of users[r], negative for nobody."""
    for r in range(len(users)):
        if users[r] >= 0:
            for k in range(offsets[users[r]], offsets[users[r] + 1]):
                scores[r, seen[k]] = _LEAST


@kernel
def best_of_rows(scores: Any, ids: Any, values: Any) -> None:
    """The largest scores of each row, as many as `ids` has columns, the best first; of equal ones the first.

    Minus infinity (and NaN) is never among them. Places that stay free have the id NONE.
    """
    count, width = ids.shape[1], scores.shape[1]
    for r in range(scores.shape[0]):
        row, mine, sizes = scores[r], ids[r], values[r]
        for k in range(count):
            mine[k] = NONE
            sizes[k] = _LEAST
        for first in range(0, width, _BLOCK):
            block = row[first : min(first + _BLOCK, width)]
            least = sizes[count - 1]
            better = 0
            for j in range(len(block)):
                better |= block[j] > least
            if better != 0:
                for j in range(len(block)):
                    _insert(mine, sizes, count, first + j, block[j])


@kernel
def _insert(mine: Any, sizes: Any, count: int, ident: int, score: Any) -> None:
    if not score > sizes[count - 1]:
        return
    place = count - 1
    while place > 0 and sizes[place - 1] < score:
        sizes[place] = sizes[place - 1]
        mine[place] = mine[place - 1]
        place -= 1
    sizes[place] = score
    mine[place] = ident
