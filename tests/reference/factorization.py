"""Slow, obvious twins of matrix factorization and of factorization machines: float64, one number at a time, all rows
charged at every visit, every pair of entries enumerated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference import linear as reference
from reference.linear import Weight, loss_of, move, pace, rate, shrink, slopes_of, time_of

_MASK = (1 << 64) - 1


class Random:
    """splitmix64 in whole numbers."""

    def __init__(self, state: int) -> None:
        self.state = int(state)

    def below(self, bound: int) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        z ^= z >> 31
        return ((z >> 32) * bound) >> 32


def solved(own: list[int], across: np.ndarray, weight: float, l2: float) -> tuple[np.ndarray, float]:
    """The row of a user with these items that has the least weighted squares, by solving for it; and its loss."""
    count, dim = across.shape
    due = l2 * (len(own) + weight * count)
    mine = across[own]
    row = np.linalg.solve(mine.T @ mine + weight * across.T @ across + due * np.eye(dim), mine.sum(axis=0))
    scores = across @ row
    return row, float(((1 - scores[own]) ** 2).sum() + weight * (scores**2).sum())


class FactorTwin:
    """Vectors and biases; `users` and `items` are matrices of reference.Weight."""

    def __init__(self, users: np.ndarray, items: np.ndarray, task: Any, seed: int = 1) -> None:
        self.users, self.items = ([[reference.Weight(float(x)) for x in row] for row in m] for m in (users, items))
        self.task, self.random = task, Random(seed)
        self.l2 = float(task.penalty.l2) if hasattr(task.penalty, "l2") else 0.0

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights as they are."""
        users, items = (np.array([[w.value for w in row] for row in rows]) for rows in (self.users, self.items))
        return users, items

    def score(self, user: np.ndarray, item: np.ndarray) -> float:
        """The score of a user's row and an item's."""
        dim = self.task.shape.dim
        return float(self.task.shape.mean) + float(user[:dim] @ item[:dim]) + float(user[dim:].sum() + item[dim:].sum())

    def pick(self, user: int, seen: list[int]) -> list[int]:
        """Items that the user has not, drawn as the kernel draws them."""
        others = [item for item in range(len(self.items)) if item not in seen]
        return [others[self.random.below(len(others))] for _ in range(self.task.shape.negatives)] if others else []

    def objective(self, kind: str, user: np.ndarray, rows: list[np.ndarray], value: float) -> float:
        """The loss of one visit, penalty of the visit apart."""
        scores = [self.score(user, row) for row in rows]
        if kind == "Rated":
            return (scores[0] - value) ** 2 / 2
        if kind == "Sampled":
            return float(np.logaddexp(0, -scores[0]) + sum(np.logaddexp(0, s) for s in scores[1:]))
        return float(sum(np.logaddexp(0, s - scores[0]) for s in scores[1:]))

    def gradients(self, kind: str, user: np.ndarray, rows: list[np.ndarray], value: float) -> list[np.ndarray]:
        """Derivatives of the objective and of the penalty in the user's row and all others, by differences."""
        everything = [user, *rows]
        found = []
        for place, row in enumerate(everything):
            slope = np.zeros(len(row))
            for c in range(len(row)):
                sides = []
                for step in (1e-6, -1e-6):
                    moved = [r.copy() for r in everything]
                    moved[place][c] += step
                    sides.append(self.objective(kind, moved[0], moved[1:], value))
                l2 = self.task.shape.item_l2 if place else self.task.shape.l2
                slope[c] = (sides[0] - sides[1]) / 2e-6 + float(l2) * row[c]
            if kind == "Pairwise" and place == 0 and len(row) > self.task.shape.dim:
                slope[-1] = float(self.task.shape.l2) * row[-1]  # exactly: no noise of differences
            found.append(slope)
        return found

    def visit(self, user: int, item: int, value: float, seen: list[int]) -> tuple[float, list[tuple[Any, np.ndarray]]]:
        """Loss and gradients of one visit, nothing written."""
        kind = type(self.task.kind).__name__
        chosen = [item]
        if kind != "Rated":
            drawn = self.pick(user, seen)
            if not drawn:
                return 0.0, []
            chosen += drawn
        users, items = self.matrices()
        rows = [items[k] for k in chosen]
        slopes = self.gradients(kind, users[user], rows, value)
        cells = [self.users[user], *(self.items[k] for k in chosen)]
        return self.objective(kind, users[user], rows, value), list(zip(cells, slopes, strict=True))

    def apply(self, touched: list[tuple[Any, np.ndarray]], rate: float, time: float) -> None:
        """Move what a visit touched, then charge everything for the time that it took."""
        for cells, slope in touched:
            for weight, gradient in zip(cells, slope, strict=True):
                reference.move(self.task.rule, weight, float(gradient), rate)
        if self.l2:
            for row in (*self.users, *self.items):
                for weight in row:
                    due = time * reference.pace(self.task.rule, weight)
                    weight.value = reference.shrink(weight.value, 0.0, self.l2, due)

    def run(self, samples: Any, seen: list[list[int]], schedule: Any, order: Any, first: int = 0) -> float:
        """Visit samples in an order; the sum of losses."""
        total = 0.0
        for p, k in enumerate(order, first):
            value = float(samples.values[k]) if hasattr(samples, "values") else 1.0
            user = int(samples.users[k])
            loss, touched = self.visit(user, int(samples.items[k]), value, seen[user])
            self.apply(touched, reference.rate(schedule, p), reference.time_of(schedule, p))
            total += loss
        return total


def ranking(scores: np.ndarray, seen: list[int], held_out: list[int], top: int) -> tuple[float, float, float, float]:
    """Precision, recall, NDCG and hit of one user, by sorting all items."""
    order = [item for item in np.argsort(-scores, kind="stable") if item not in seen][:top]
    hits = [item in held_out for item in order]
    gain = sum(hit / np.log2(rank + 2) for rank, hit in enumerate(hits))
    ideal = sum(1 / np.log2(rank + 2) for rank in range(min(top, len(held_out))))
    return sum(hits) / top, sum(hits) / len(held_out), gain / ideal, float(any(hits))


Entry = tuple[int, int, float]


def entries(samples: Any, row: int) -> list[Entry]:
    """(feature, field, value) of one sample of any bundle; field 0 where there are no slots."""
    if hasattr(samples, "matrix"):
        return [(j, 0, float(v)) for j, v in enumerate(samples.matrix[row])]
    return [
        (
            int(samples.ids[k]),
            int(samples.slots[k]) if hasattr(samples, "slots") else 0,
            float(samples.values[k]) if hasattr(samples, "values") else 1.0,
        )
        for k in range(samples.offsets[row], samples.offsets[row + 1])
    ]


def score(weight: np.ndarray, factors: np.ndarray, bias: float, row: list[Entry]) -> float:
    """bias + the sum of w x + the sum over pairs of <v of one for the other's field, and the reverse> x x.

    weight: (features,); factors: (features, fields, dim).
    """
    total = bias + sum(weight[i] * x for i, _, x in row)
    for a, (i, f, x) in enumerate(row):
        for j, g, y in row[a + 1 :]:
            total += float(factors[i, g] @ factors[j, f]) * x * y
    return total


class FMTwin:
    """A factorization machine trained one visit at a time; the penalty is paid by every weight at every visit, or by
    those of a sample's entries, entry by entry, as part of their gradients."""

    def __init__(self, task: Any, weight: np.ndarray, factors: np.ndarray) -> None:
        self.task = task
        self.weights = [Weight(float(w)) for w in weight]
        self.shape = factors.shape
        self.factors = [Weight(float(v)) for v in factors.reshape(-1)]
        self.bias = Weight()

    def plain(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and factors as numbers."""
        factors = np.array([v.value for v in self.factors]).reshape(self.shape)
        return np.array([w.value for w in self.weights]), factors

    def visit(self, samples: Any, row: int, learning_rate: float, time: float) -> float:
        """One visit: the gradient at the weights as they are, entry by entry; then the penalty for all."""
        name, (weight, factors) = type(self.task.loss).__name__, self.plain()
        listed = entries(samples, row)
        at = np.array([score(weight, factors, float(self.task.bias) * self.bias.value, listed)])
        target, importance = float(samples.targets[row]), float(samples.importance[row])
        pull = float(slopes_of(name, at, target)[0]) * importance
        of = np.arange(factors.size).reshape(self.shape)
        touched = type(self.task.penalty).__name__ == "TouchedPenalty"
        weight_l2, factor_l2 = map(float, self.task.penalty) if touched else (0.0, 0.0)
        for a, (i, f, x) in enumerate(listed):
            slope = np.zeros(self.shape[1:])
            for b, (j, g, y) in enumerate(listed):
                if b != a:
                    slope[g] += pull * x * y * factors[j, f]
            own = self.weights[i]
            move(self.task.rule, own, pull * x + weight_l2 * own.value, learning_rate)
            for place, gradient in zip(of[i].reshape(-1), slope.reshape(-1), strict=True):
                factor = self.factors[place]
                move(self.task.factor_rule, factor, float(gradient) + factor_l2 * factor.value, learning_rate)
        move(self.task.rule, self.bias, pull * float(self.task.bias), learning_rate, bias=True)
        if type(self.task.penalty).__name__ == "FactorPenalty":
            self._pay(self.weights, float(self.task.penalty.weight.l2), time)
            self._pay(self.factors, float(self.task.penalty.factors.l2), time)
        return loss_of(name, at, target) * importance

    def _pay(self, weights: list[Weight], l2: float, time: float) -> None:
        for weight in weights:
            weight.value = shrink(weight.value, 0.0, l2, time * pace(self.task.rule, weight), 1)

    def run(self, samples: Any, schedule: Any, order: np.ndarray) -> float:
        """Visit the samples in an order; the sum of losses."""
        return sum(
            self.visit(samples, int(row), rate(schedule, position), time_of(schedule, position))
            for position, row in enumerate(order)
        )
