"""Scores of users and items, and the items that rank highest: exact, by BLAS, a block of users at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets, Ratings
from hogwild.feeds.io.parallel import in_parts
from hogwild.kernels.compiler.rng import seeds
from hogwild.kernels.sparse.factorization import best_of_rows, draw_unseen_items, hide_seen
from hogwild.machine import cores, one_blas_thread
from hogwild.programs.program import Metrics
from hogwild.programs.sparse.metrics import mae, mean, rmse

_PAIRS = 1 << 15        # pairs that are scored together
_BLOCK_BYTES = 1 << 24  # of the scores of a block of users
_EVALUATION = 0x5EED    # held-out loss draws the same negatives each time

Doubles = npt.NDArray[np.float64]


class Factors(NamedTuple):
    """What predicts: vectors (rows, dim) and biases (rows,) of users and of items, and what every score has."""

    user_vectors: Floats
    user_biases: Floats
    item_vectors: Floats
    item_biases: Floats
    mean: float


class Seen(NamedTuple):
    """Items that each user has in training: items[offsets[u]:offsets[u + 1]], in rising order, each once."""

    offsets: Offsets
    items: Ids


class Ranked(NamedTuple):
    """The best items of a block of users, the best first, with their scores; -1 where there are too few."""

    users: Ids
    items: Ids
    scores: Floats


def seen_in(samples: Ratings, users: int, items: int, earlier: Seen | None = None) -> Seen:
    """The items of each user, with those of earlier training."""
    import scipy.sparse as sparse  # late: prediction does without

    ones = np.ones(len(samples.users), bool)
    table = sparse.csr_matrix((ones, (samples.users, samples.items)), shape=(users, items))
    if earlier is not None and len(earlier.items):
        before = sparse.csr_matrix(
            (np.ones(len(earlier.items), bool), earlier.items, earlier.offsets), shape=(users, items)
        )
        table = table.maximum(before)
    table.sum_duplicates()
    return Seen(table.indptr.astype(np.int64), table.indices.astype(np.int32))


def turned(seen: Seen, items: int) -> Seen:
    """The users of each item, in rising order."""
    import scipy.sparse as sparse  # late: prediction does without

    shape = len(seen.offsets) - 1, items
    table = sparse.csr_matrix((np.ones(len(seen.items), bool), seen.items, seen.offsets), shape=shape).tocsc()
    table.sort_indices()
    return Seen(table.indptr.astype(np.int64), table.indices.astype(np.int32))


def pair_scores(factors: Factors, users: Ids, items: Ids, threads: int = 1) -> Floats:
    """The score of each pair; what is unknown (-1) adds nothing: the mean and the bias of the other are left."""
    scores = np.empty(len(users), np.float32)

    def score(first: int, end: int) -> None:
        for start in range(first, end, _PAIRS):
            part = slice(start, start + _PAIRS)
            user, item = users[part], items[part]
            both = (user >= 0) & (item >= 0)
            products = np.einsum("ij,ij->i", factors.user_vectors[user], factors.item_vectors[item])
            total = factors.mean + np.where(both, products, 0)
            total = total + np.where(user >= 0, factors.user_biases[user], 0)
            scores[part] = total + np.where(item >= 0, factors.item_biases[item], 0)

    in_parts(len(users), threads, score, _PAIRS)
    return scores


def best_items(factors: Factors, users: Ids, seen: Seen | None, count: int, threads: int = 0) -> Iterator[Ranked]:
    """The best items of each user (-1: one that is not known), without those of `seen`, a block at a time in order.

    threads: 0 for one a core.
    """
    items = len(factors.item_vectors)
    count = min(count, items)
    rows = max(1, _BLOCK_BYTES // (4 * max(1, items)))
    across = np.ascontiguousarray(factors.item_vectors.T)

    def rank(start: int) -> Ranked:
        mine = np.ascontiguousarray(users[start : start + rows], np.int32)
        vectors = np.where((mine >= 0)[:, None], factors.user_vectors[mine], np.float32(0))
        scores = vectors @ across
        scores += factors.item_biases
        if seen is not None:
            hide_seen(scores, mine, seen.offsets, seen.items)
        found, sizes = np.empty((len(mine), count), np.int32), np.empty((len(mine), count), np.float32)
        best_of_rows(scores, found, sizes)
        base = factors.mean + np.where(mine >= 0, factors.user_biases[mine], 0)
        return Ranked(mine, found, (sizes + base[:, None]).astype(np.float32))

    starts = range(0, len(users), rows)
    if (threads or cores()) == 1 or len(starts) == 1:
        yield from map(rank, starts)
        return
    with one_blas_thread(), ThreadPoolExecutor(threads or cores()) as pool:
        yield from pool.map(rank, starts)


class Relevant(NamedTuple):
    """Held-out items of users: keys (user * items + item, in rising order), and how many each user of `users` has."""

    users: Ids
    counts: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]


def relevant_in(samples: Ratings, seen: Seen, items: int) -> tuple[Relevant, int]:
    """What is to be found, and how many held-out pairs were in training already and are left out.

    An item that training has not seen cannot be recommended, but counts among those of its user.
    """
    known = samples.users >= 0
    users = samples.users[known].astype(np.int64)
    chosen = samples.items[known].astype(np.int64)
    strange = chosen < 0
    keys = np.unique(users[~strange] * items + chosen[~strange])
    owners = np.repeat(np.arange(len(seen.offsets) - 1, dtype=np.int64), np.diff(seen.offsets))
    old = np.isin(keys, owners * items + seen.items, assume_unique=True)
    keys = keys[~old]
    counts = np.bincount(keys // items, minlength=len(seen.offsets) - 1)
    counts += np.bincount(users[strange], minlength=len(counts))
    holders = np.flatnonzero(counts)
    return Relevant(holders.astype(np.int32), counts[holders], keys), int(old.sum())


def ranking_metrics(factors: Factors, seen: Seen, relevant: Relevant, top: int, threads: int = 0) -> Metrics:
    """Means over users of precision, recall, NDCG and hit rate of the `top` best items; NaN without users.

    NDCG: the sum of 1 / log2(rank + 1) over the items found, by that of a perfect list.
    """
    items = len(factors.item_vectors)
    gains = 1 / np.log2(np.arange(2, top + 2))
    ideal = np.concatenate([[0.0], np.cumsum(gains)])
    sums = np.zeros(4)
    done = 0
    with one_blas_thread():  # products may be rounded otherwise by several
        for block in best_items(factors, relevant.users, seen, top, threads):
            counts = relevant.counts[done : done + len(block.users)]
            done += len(block.users)
            keys = block.users[:, None].astype(np.int64) * items + block.items
            hits = _among(keys, relevant.keys) & (block.items >= 0)
            found = hits.sum(axis=1)
            gained = (hits * gains[: hits.shape[1]]).sum(axis=1)
            perfect = ideal[np.minimum(counts, top)]
            sums += (found.sum() / top, (found / counts).sum(), (gained / perfect).sum(), (found > 0).sum())
    means = sums / done if done else np.full(4, math.nan)
    names = (f"precision@{top}", f"recall@{top}", f"ndcg@{top}", f"hit@{top}")
    return dict(zip(names, means.tolist(), strict=True))


def _among(keys: npt.NDArray[np.int64], ordered: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(keys.shape, bool)
    places = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.asarray(ordered[places] == keys)


def sampled_loss(
    factors: Factors, samples: Ratings, seen: Seen, negatives: int, loss: str, threads: int = 1
) -> float:
    """The mean training loss a pair, against items that the user has not in training, always the same ones.

    weighted: the square of what the pair lacks to 1, and that of the score of an item drawn.
    """
    room = np.diff(seen.offsets) < len(factors.item_vectors)
    chosen = (samples.users >= 0) & (samples.items >= 0)
    chosen &= room[samples.users]
    users, items = samples.users[chosen], samples.items[chosen]
    if not len(users):
        return math.nan
    drawn = np.empty((negatives, len(users)), np.int32)
    draw_unseen_items(seen.offsets, seen.items, users, len(factors.item_vectors), seeds(_EVALUATION, 1), drawn)
    good = pair_scores(factors, users, items, threads).astype(np.float64)
    alone = np.logaddexp(0, -good) if loss == "logistic" else (1 - good) ** 2
    total = 0.0 if loss == "bpr" else float(alone.sum())
    for others in drawn:
        bad = pair_scores(factors, users, others, threads).astype(np.float64)
        each = bad**2 if loss == "weighted" else np.logaddexp(0, bad - good if loss == "bpr" else bad)
        total += float(each.sum())
    return total / len(users)


def rating_metrics(predicted: Floats, scores: Floats, true: Floats) -> Metrics:
    """loss (half the mean squared error of the scores), RMSE and MAE of the predicted ratings."""
    loss = mean((scores.astype(np.float64) - true) ** 2) / 2
    return {"loss": loss, "rmse": rmse(predicted, true), "mae": mae(predicted, true)}
