"""The best paths of tags through a sentence, one or several."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels.compiler.jit import inner, open_kernel
from hogwild.kernels.crf.forward_backward import STEEP, forward, log_forward
from hogwild.kernels.crf.scores import read_sentence
from hogwild.kernels.crf.task import matrix_at, places_of, scale_at

FORBIDDEN = -1e9  # what a step costs that the scheme of the tags forbids: more than any score, and not endless


class Rules(NamedTuple):
    """What steps cost besides their scores: 0, or FORBIDDEN. first, last: for each tag; pairs: former tag by tag."""

    first: npt.NDArray[np.float64]
    pairs: npt.NDArray[np.float64]
    last: npt.NDArray[np.float64]


class Trellis(NamedTuple):
    """scores: of the best paths to each tag of two tokens, (2, tags, paths); back: what stood before the last step of
    each, tag * paths + rank, (tokens, tags, paths)."""

    scores: npt.NDArray[np.float64]
    back: npt.NDArray[np.int32]


@open_kernel
def find_paths(task: Any, samples: Any, weights: Any, scratch: Any, rules: Rules, trellis: Any, span: Any, out: Any, found: Any) -> Any:  # noqa: E501
    """The best paths of sentences span[0] … span[1] - 1, the best first, as rows of `out` with a column for each token,
    and the logarithms of the chances of the last sentence's in `found`.

    Returns how many paths the last one has: fewer than asked for where there are fewer.
    """
    chains = samples.chains
    begin, count = chains.offsets[span[0]], 0
    for visit in range(span[0], span[1]):
        first = chains.offsets[visit] - begin
        tokens = chains.offsets[visit + 1] - chains.offsets[visit]
        places = places_of(task, tokens)
        scratch.ints[0] = 1
        for i in range(1, tokens):
            scratch.ints[i] = 0
        steep = read_sentence(task, samples, visit, weights, scratch, scale_at(task, scratch.clock[0]))
        for i in range(tokens):
            extend(task, tokens, i, scratch, places, rules, trellis)
            lower(task, trellis, i % 2)
        count = follow(task, tokens, scratch, places, trellis, out[:, first : first + tokens], found)
        norm = forward(task, tokens, scratch, places) if steep <= STEEP else log_forward(task, tokens, scratch, places)
        for rank in range(count):
            found[rank] -= norm
    return count


@inner
def extend(task: Any, tokens: int, i: int, scratch: Any, places: Any, rules: Any, trellis: Any) -> None:
    """The best paths to each tag of token i."""
    floats, paths = scratch.floats, trellis.scores.shape[2]
    before, now = trellis.scores[(i + 1) % 2], trellis.scores[i % 2]
    at, node = matrix_at(task.edges, places, i), places.nodes + i * places.width
    for y in range(task.tags):
        own = np.float64(floats[node + y]) + (rules.last[y] if i == tokens - 1 else 0.0)
        for rank in range(paths):
            now[y, rank] = -np.inf
        if i == 0:
            now[y, 0] = own + rules.first[y]
            continue
        for x in range(task.tags):
            step = own + np.float64(floats[at + x * places.width + y]) + rules.pairs[x, y]
            for rank in range(paths):
                score = before[x, rank] + step
                if not score > now[y, paths - 1]:
                    break  # the following ranks are no better
                k = paths - 1
                while k > 0 and score > now[y, k - 1]:
                    now[y, k] = now[y, k - 1]
                    trellis.back[i, y, k] = trellis.back[i, y, k - 1]
                    k -= 1
                now[y, k] = score
                trellis.back[i, y, k] = x * paths + rank


@inner
def lower(task: Any, trellis: Any, half: int) -> None:
    """Subtract the best score, so that long sentences lose no digits."""
    best = -np.inf
    for y in range(task.tags):
        best = max(best, trellis.scores[half, y, 0])
    for y in range(task.tags):
        for rank in range(trellis.scores.shape[2]):
            trellis.scores[half, y, rank] -= best


@inner
def follow(task: Any, tokens: int, scratch: Any, places: Any, trellis: Any, out: Any, found: Any) -> int:
    """Write the best paths, from their ends to their beginnings, and their scores without what rules cost."""
    floats, paths = scratch.floats, trellis.scores.shape[2]
    last = trellis.scores[(tokens - 1) % 2]
    for k in range(paths):
        best, place = -np.inf, -1
        for y in range(task.tags):
            for rank in range(paths):
                if last[y, rank] > best:
                    best, place = last[y, rank], y * paths + rank
        if place < 0:
            return k
        found[k] = 0.0
        last[place // paths, place % paths] = -np.inf
        for i in range(tokens - 1, -1, -1):
            tag = place // paths
            out[k, i] = tag
            found[k] += np.float64(floats[places.nodes + i * places.width + tag])
            if i > 0:
                place = int(trellis.back[i, tag, place % paths])
                pair = place // paths * places.width + tag
                found[k] += np.float64(floats[matrix_at(task.edges, places, i) + pair])
    return paths
