"""Matrix factorization: the score of a user and an item is a mean, their biases and the product of their vectors.

A visit is one rating, or one item that a user has with items drawn from those that the user has not. All rows of a
visit are read before any of them is written: a negative that is drawn twice has two gradients of the same weights.

Parts of a visit take the few arrays that they need, not the bundles: a call that hands on all of scratch, samples and
weights copies more than it computes (five of them took four fifths of the time).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hogwild.arrays import NEXT, Floats
from hogwild.kernels.compiler.jit import choice, inner, kernel
from hogwild.kernels.compiler.prefetch import prefetch
from hogwild.kernels.compiler.rng import below
from hogwild.kernels.loop.task import apply, fused, gradient
from hogwild.kernels.optim.losses import Logistic, cost, slope
from hogwild.kernels.optim.penalties import Free, Penalty, flow, pace
from hogwild.kernels.optim.rules import begin_row, stride, update
from hogwild.kernels.simd.rules8 import EIGHT, fixes_of, move_eight
from hogwild.kernels.sparse.samples import LINE

_F = np.float32


class Rated(NamedTuple):
    """Ratings as they are given: a loss of the score against the rating."""

    loss: Any


class Sampled(NamedTuple):
    """Log loss: the item that the user has is a success, each of the items drawn is a failure."""


class Pairwise(NamedTuple):
    """BPR: log(1 + exp(-d)) of the difference d between the score of the user's item and that of each item drawn."""


class Shape(NamedTuple):
    """Sizes of a factorization.

    width: numbers of a row, the vector of `dim` and, where they are learnt, the bias after it; mean: added to every
    score; l2: each visit adds l2 / 2 times the square of every number of users that it reads to its loss; item_l2: so
    for those of items.
    """

    dim: int
    width: int
    users: int
    items: int
    negatives: int
    mean: np.float32
    l2: np.float32
    item_l2: np.float32


class FactorTask(NamedTuple):
    """Kind of feedback, update rule, penalty and sizes of a factorization."""

    kind: Any
    rule: Any
    penalty: Any
    shape: Shape


class FactorWeights(NamedTuple):
    """Rows of `users` and of `items`, each with the slots of the update rule; flat."""

    users: Floats
    items: Floats


@kernel
def draw_unseen(offsets: Any, seen: Any, user: int, items: int, random: Any) -> int:
    """An item that the user has not, each with the same chance. There must be one.

    The j-th item of the user, seen[j], has seen[j] - j others below it. So the r-th of the others is r + j, where j is
    the first place with more than r below it: one search, and no draw is ever in vain.
    """
    first = offsets[user]
    low, high = 0, offsets[user + 1] - first
    number = below(random, items - high)
    while low < high:
        middle = (low + high) >> 1
        if seen[first + middle] - middle > number:
            high = middle
        else:
            low = middle + 1
    return number + low


@kernel
def draw_unseen_items(offsets: Any, seen: Any, users: Any, items: int, random: Any, drawn: Any) -> None:
    """For each user k, an item in each of drawn[:, k]."""
    for n in range(drawn.shape[0]):
        for k in range(len(users)):
            drawn[n, k] = draw_unseen(offsets, seen, users[k], items, random)


# -- which rows a visit has -----------------------------------------------------------------------------------------


@choice
def pick_rows(kind: Any, samples: Any, visit: int, shape: Any, rows: Any, random: Any) -> Any:
    """Name the rows of a visit: the user, the item, the items drawn; returns how many, 0 for none."""


@pick_rows.of(Rated)
def _pick_pair(kind: Any, samples: Any, visit: int, shape: Any, rows: Any, random: Any) -> Any:
    rows[0] = samples.users[visit]
    rows[1] = shape.users + samples.items[visit]
    return 2


@pick_rows.of(Sampled, Pairwise)
def _pick_negatives(kind: Any, samples: Any, visit: int, shape: Any, rows: Any, random: Any) -> Any:
    user = samples.users[visit]
    if samples.offsets[user + 1] - samples.offsets[user] >= shape.items:
        return 0  # the user has every item: there is nothing to set against it
    rows[0] = user
    rows[1] = shape.users + samples.items[visit]
    for k in range(shape.negatives):
        rows[2 + k] = shape.users + draw_unseen(samples.offsets, samples.seen, user, shape.items, random)
    return 2 + shape.negatives


@inner
def ask_for_row(table: Any, number: Any, cells: int) -> None:
    """Ask for the cache lines of a row."""
    base = np.int64(number) * cells
    for c in range(0, cells, LINE):
        prefetch(table, base + c)
    prefetch(table, base + cells - 1)


@choice
def ask_for_seen(kind: Any, samples: Any, user: Any) -> None:
    """Ask for where the search for an item that the user has not will begin."""


ask_for_seen.of(Rated)(lambda kind, samples, user: None)


@ask_for_seen.of(Sampled, Pairwise)
def _ask_for_middle(kind: Any, samples: Any, user: Any) -> None:
    prefetch(samples.seen, (samples.offsets[user] + samples.offsets[user + 1]) >> 1)


@inner
def ask_for_rows(task: Any, samples: Any, coming: Any, weights: Any, rows: Any, count: int) -> None:
    """Ask for the items that were just drawn, and for the user and the item of the visit that comes next."""
    cells = stride(task.rule, task.penalty, task.shape.width)
    for k in range(2, count):
        ask_for_row(weights.items, rows[k] - task.shape.users, cells)
    user = samples.users[coming]
    ask_for_row(weights.users, user, cells)
    ask_for_row(weights.items, samples.items[coming], cells)
    ask_for_seen(task.kind, samples, user)


@choice
def target_of(kind: Any, samples: Any, visit: int) -> Any:
    """The rating, if there is one."""


target_of.of(Rated)(lambda kind, samples, visit: samples.values[visit])
target_of.of(Sampled, Pairwise)(lambda kind, samples, visit: _F(1))


# -- what they hold -------------------------------------------------------------------------------------------------


@choice
def read_row(penalty: Any, rule: Any, row: Any, width: int, elapsed: Any, out: Any) -> None:
    """Copy the weights of a row, unpaid penalty deducted."""


@inner
def _copy(row: Any, width: int, out: Any) -> None:
    for c in range(width):
        out[c] = row[c]  # RACE(stale read): docs/races.md


@read_row.of(Free)
def _read_plain(penalty: Any, rule: Any, row: Any, width: int, elapsed: Any, out: Any) -> None:
    _copy(row, width, out)


@read_row.of(Penalty)
def _read_paid(penalty: Any, rule: Any, row: Any, width: int, elapsed: Any, out: Any) -> None:
    last = len(row) - 1
    due = elapsed - row[last]  # RACE(stale read): docs/races.md
    if due <= _F(0):
        _copy(row, width, out)
        return
    for c in range(width):
        speed = pace(rule, row, c, width, last - 1)
        out[c] = flow(penalty, row[c], due * speed)  # RACE(stale read): docs/races.md


@inner
def read_rows(task: Any, weights: Any, rows: Any, floats: Any, elapsed: Any, count: int) -> None:
    """The weights of all rows of a visit, one after another."""
    width = task.shape.width
    cells = stride(task.rule, task.penalty, width)
    base = np.int64(rows[0]) * cells
    read_row(task.penalty, task.rule, weights.users[base : base + cells], width, elapsed, floats[:width])
    for k in range(1, count):
        base = (np.int64(rows[k]) - task.shape.users) * cells
        out = floats[k * width : (k + 1) * width]
        read_row(task.penalty, task.rule, weights.items[base : base + cells], width, elapsed, out)


@inner
def score_of(shape: Any, floats: Any, k: int) -> Any:
    """The score of the user and the k-th row of a visit."""
    width, dim = shape.width, shape.dim
    user, item = floats[:width], floats[k * width : (k + 1) * width]
    total = _F(0)
    for c in range(dim):
        total += user[c] * item[c]
    if width > dim:
        total += user[dim] + item[dim]
    return total + shape.mean


# -- gradients ------------------------------------------------------------------------------------------------------


@choice
def weigh(kind: Any, shape: Any, target: Any, floats: Any, count: int) -> Any:
    """The loss of a visit; the derivatives of it in the scores of rows stand after their weights then."""


@weigh.of(Rated)
def _weigh_rating(kind: Any, shape: Any, target: Any, floats: Any, count: int) -> Any:
    score = score_of(shape, floats, 1)
    floats[count * shape.width + 1] = slope(kind.loss, score, target)
    return cost(kind.loss, score, target)


@weigh.of(Sampled)
def _weigh_sampled(kind: Any, shape: Any, target: Any, floats: Any, count: int) -> Any:
    loss = _F(0)
    for k in range(1, count):
        score = score_of(shape, floats, k)
        floats[count * shape.width + k] = slope(Logistic(), score, target)
        loss += cost(Logistic(), score, target)
        target = _F(-1)
    return loss


@weigh.of(Pairwise)
def _weigh_pairs(kind: Any, shape: Any, target: Any, floats: Any, count: int) -> Any:
    grads = count * shape.width
    score = score_of(shape, floats, 1)
    loss = total = _F(0)
    for k in range(2, count):
        apart = score - score_of(shape, floats, k)
        grad = slope(Logistic(), apart, _F(1))
        loss += cost(Logistic(), apart, _F(1))
        floats[grads + k] = -grad
        total += grad
    floats[grads + 1] = total
    return loss


@choice
def moves_users(kind: Any) -> Any:
    """1 where the bias of a user matters; the difference of two scores of one user does not have it."""


moves_users.of(Rated, Sampled)(lambda kind: _F(1))
moves_users.of(Pairwise)(lambda kind: _F(0))


@inner
def spread(kind: Any, shape: Any, floats: Any, grads: Any, count: int) -> None:
    """The gradient of every row: the user's is the sum over items of grad times item, an item's is grad times user."""
    width, dim, l2 = shape.width, shape.dim, shape.item_l2
    user, mine = floats[:width], grads[0]
    for c in range(width):
        mine[c] = shape.l2 * user[c]
    bias = _F(0)
    for k in range(1, count):
        item, own, grad = floats[k * width : (k + 1) * width], grads[k], floats[count * width + k]
        for c in range(dim):
            mine[c] += grad * item[c]
            own[c] = grad * user[c] + l2 * item[c]
        if width > dim:
            own[dim] = grad + l2 * item[dim]
            bias += grad
    if width > dim:
        mine[dim] += moves_users(kind) * bias


@inner
def move_row(task: Any, table: Any, number: Any, grad: Any, step: Any) -> None:
    """Update the weights of one user or item."""
    width = task.shape.width
    count = begin_row(task.rule, task.penalty, table, number, width, step)
    base = number * stride(task.rule, task.penalty, width)
    fixes, whole = fixes_of(task.rule, count), width // EIGHT * EIGHT
    for c in range(0, whole, EIGHT):
        move_eight(task.rule, (), table, base + c, width, grad, c, step.rate, fixes)
    for c in range(whole, width):
        update(task.rule, table, base + c, width, grad[c], step.rate, count)


@gradient.of(FactorTask)
def _gradient(task: Any, samples: Any, visit: int, weights: Any, scratch: Any) -> Any:
    kind, shape, floats = task.kind, task.shape, scratch.floats
    count = pick_rows(kind, samples, visit, shape, scratch.rows, scratch.random)
    scratch.count[0] = count
    if count == 0:
        return _F(0)
    read_rows(task, weights, scratch.rows, floats, scratch.clock[0], count)
    loss = weigh(kind, shape, target_of(kind, samples, visit), floats, count)
    spread(kind, shape, floats, scratch.grads, count)
    return loss


@apply.of(FactorTask)
def _apply(task: Any, weights: Any, scratch: Any, step: Any) -> None:
    for k in range(scratch.count[0]):
        row = np.int64(scratch.rows[k])
        if row < task.shape.users:
            move_row(task, weights.users, row, scratch.grads[k], step)
        else:
            move_row(task, weights.items, row - task.shape.users, scratch.grads[k], step)


@fused.of(FactorTask)
def _fused(task: Any, samples: Any, visit: int, weights: Any, scratch: Any, step: Any) -> Any:
    kind, shape, floats, grads = task.kind, task.shape, scratch.floats, scratch.grads
    count = pick_rows(kind, samples, visit, shape, scratch.rows, scratch.random)
    if count == 0:
        return _F(0)
    ask_for_rows(task, samples, scratch.count[NEXT], weights, scratch.rows, count)
    read_rows(task, weights, scratch.rows, floats, step.elapsed, count)
    loss = weigh(kind, shape, target_of(kind, samples, visit), floats, count)
    spread(kind, shape, floats, grads, count)
    move_row(task, weights.users, np.int64(scratch.rows[0]), grads[0], step)
    for k in range(1, count):
        move_row(task, weights.items, np.int64(scratch.rows[k]) - shape.users, grads[k], step)
    return loss


# -- The best entries of rows of scores: what to recommend ------------------------------------------------------------


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
