"""Cosine similarity between vectors, and the rows of a matrix that are nearest to given ones: exact, by BLAS.

The matrix is used as it is, mapped perhaps; only its norms are kept besides. Scores are made a tile at a time, queries
by rows, so that memory is bounded whatever their number. A vector of zeros has the similarity 0 to everything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats

Rows = npt.NDArray[np.int64]

_QUERIES, _ROWS = 512, 1 << 14  # of a tile: 32 MB of scores
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


def units(vectors: Floats) -> Floats:
    """The vectors at length 1; zeros stay zeros. In float64 on the way, so that no size is too large or too small."""
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return (wide / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)


def scores_of(queries: Floats, matrix: Floats, norms: Floats) -> Floats:
    """Similarity of each query, which has length 1 or 0, to each row; norms are those of the rows."""
    scores = queries @ matrix.T
    scores /= np.where(norms > 0, norms, np.float32(np.inf))
    return scores


def nearest(matrix: Floats, norms: Floats, queries: Floats, count: int) -> Nearest:
    """The `count` rows nearest to each query, which has length 1 or 0; fewer where there are fewer rows."""
    count = min(count, len(matrix))
    rows = np.empty((len(queries), count), np.int64)
    similarities = np.empty((len(queries), count), np.float32)
    for first in range(0, len(queries), _QUERIES):
        some = slice(first, min(first + _QUERIES, len(queries)))
        rows[some], similarities[some] = _nearest(matrix, norms, queries[some], count)
    return Nearest(rows, similarities)


def _nearest(matrix: Floats, norms: Floats, queries: Floats, count: int) -> Nearest:
    """As `nearest`, for one group of queries. What is left of each tile is what beats the worst that is kept."""
    best = Nearest(np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0), np.float32))
    for start in range(0, len(matrix), _ROWS):
        tile = slice(start, min(start + _ROWS, len(matrix)))
        scores = scores_of(queries, matrix[tile], norms[tile])
        if best.rows.shape[1] < count:
            keep = min(count, scores.shape[1])
            worst = np.partition(scores, scores.shape[1] - keep, axis=1)[:, -keep, None]
            query, row = np.nonzero(scores >= worst)
        else:
            query, row = np.nonzero(scores > best.similarities[:, -1:])
        if len(query):
            best = _merge(best, query, row + start, scores[query, row], count)
    return best


def _merge(best: Nearest, query: Rows, row: Rows, score: Floats, count: int) -> Nearest:
    """The best of those kept and of the candidates, `count` a query or as many as there are for each."""
    queries, kept = best.rows.shape
    all_queries = np.concatenate([np.repeat(np.arange(queries), kept), query])
    all_rows = np.concatenate([best.rows.reshape(-1), row])
    all_scores = np.concatenate([best.similarities.reshape(-1), score])
    order = np.lexsort((all_rows, -all_scores, all_queries))
    ends = np.searchsorted(all_queries[order], np.arange(queries), side="left")
    width = min(count, int(np.bincount(all_queries, minlength=queries).min()))
    chosen = order[ends[:, None] + np.arange(width)]
    return Nearest(all_rows[chosen], all_scores[chosen])
