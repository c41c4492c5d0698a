"""Cosine similarity between vectors, and the rows of a matrix that are nearest to given ones: exact, by BLAS.

The matrix is used as it is, mapped perhaps; only its norms are kept besides. Scores are made a tile at a time, queries
by rows, so that memory is bounded whatever their number. A vector of zeros has the similarity 0 to everything.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.machine import cores, one_blas_thread

Rows = npt.NDArray[np.int64]

_ROWS = 1 << 14                 # whose norms are computed together
_QUERIES = 256                  # of a tile
_SCORES = 1 << 19               # of a tile: 2 MB, which stay in the cache
_WORTH = 1 << 22                # multiplications that are worth a thread
_FEW = 32                       # fewer queries than this divide their scores, more share rows of length 1
_TINY, _HUGE = 1e-20, 1e30      # squares outside are added up again in float64


class Nearest(NamedTuple):
    """For each query the nearest rows, the nearest first, with their similarities. Equal ones stand in row order."""

    rows: Rows
    similarities: Floats


def norms_of(matrix: Floats) -> Floats:
    """Length of each row in float32; not finite where a row is not, or is too long for float32."""
    found = np.empty(len(matrix), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(matrix), _ROWS):
            rows = matrix[start : start + _ROWS]
            squares = np.einsum("ij,ij->i", rows, rows)
            odd = np.flatnonzero(~((squares > _TINY) & (squares < _HUGE)))
            lengths = np.sqrt(squares)
            if len(odd):
                wide = rows[odd].astype(np.float64)
                lengths[odd] = np.sqrt(np.einsum("ij,ij->i", wide, wide))
            found[start : start + len(rows)] = lengths
    return found


def units(vectors: npt.NDArray[np.floating]) -> Floats:
    """The vectors at length 1; zeros stay zeros. In float64 on the way, so that no size is too large or too small."""
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    made = np.empty(vectors.shape, np.float32)  # a fresh array: BLAS is not used for odd strides
    np.divide(wide, np.where(lengths > 0, lengths, 1.0)[:, None], out=made, casting="same_kind")
    return made


def nearest(matrix: Floats, norms: Floats, queries: Floats, count: int) -> Nearest:
    """The `count` rows nearest to each query, which has length 1 or 0; fewer where there are fewer rows.

    Each core searches a part of the rows with one thread of BLAS: threads of BLAS that meet after every tile wait for
    each other for ever where other programs run.
    """
    parts = cores() if matrix.size * len(queries) >= _WORTH else 1
    bounds = np.linspace(0, len(matrix), parts + 1).astype(int).tolist()

    def search(part: int) -> Nearest:
        return _nearest(matrix, norms, queries, count, range(bounds[part], bounds[part + 1]))

    with one_blas_thread(), ThreadPoolExecutor(parts, "search") as pool:
        found = list(pool.map(search, range(parts)))
    rows = np.concatenate([part.rows for part in found], axis=1)
    similarities = np.concatenate([part.similarities for part in found], axis=1)
    order = np.lexsort((rows, -similarities), axis=1)[:, :count]
    return Nearest(np.take_along_axis(rows, order, axis=1), np.take_along_axis(similarities, order, axis=1))


def _nearest(matrix: Floats, norms: Floats, queries: Floats, count: int, span: range) -> Nearest:
    """As `nearest`, of a span of the rows, a tile after another."""
    shape = len(queries), min(count, len(span))
    best = Nearest(np.full(shape, len(matrix), np.int64), np.full(shape, -np.inf, np.float32))
    step = _SCORES // max(1, min(len(queries), _QUERIES))
    few = len(queries) < _FEW
    for start in span[::step]:
        tile = slice(start, min(start + step, span.stop))
        lengths = np.where(norms[tile] > 0, norms[tile], np.float32(np.inf)).astype(np.float32)
        rows: Floats = matrix[tile] if few else matrix[tile] / lengths[:, None]
        for first in range(0, len(queries), _QUERIES):
            some = slice(first, first + _QUERIES)
            scores = queries[some] @ rows.T
            if few:
                scores /= lengths
            _keep_best(Nearest(best.rows[some], best.similarities[some]), scores, start)
    return best


def _keep_best(best: Nearest, scores: Floats, start: int) -> None:
    """Put what is better than the worst that is kept in its place; the scores are of the rows from `start` on."""
    worst = best.similarities[:, -1]
    better = np.flatnonzero(scores.max(axis=1) > worst)
    if not len(better):
        return
    count, worst, scores = best.rows.shape[1], worst[better, None], scores[better]
    if worst.min() == -np.inf and count < scores.shape[1]:
        # At the beginning everything is better; only the best of the tile can stay.
        query, row = np.nonzero(scores >= np.partition(scores, -count, axis=1)[:, -count, None])
    else:
        query, row = np.nonzero(scores > worst)
    queries = np.concatenate([np.repeat(np.arange(len(better)), count), query])
    rows = np.concatenate([best.rows[better].reshape(-1), row + start])
    values = np.concatenate([best.similarities[better].reshape(-1), scores[query, row]])
    order = np.lexsort((rows, -values, queries))
    begins = np.searchsorted(queries[order], np.arange(len(better)))
    chosen = order[begins[:, None] + np.arange(count)]
    best.rows[better] = rows[chosen]
    best.similarities[better] = values[chosen]
