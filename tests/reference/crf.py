"""Slow, obvious twins of linear-chain CRFs: float64, all paths of tags written out, one line of mathematics at a time.

`Paths` enumerates; `Recursion` gives the same numbers for sentences with too many paths, in logarithms. Nothing here is
shared with the package but the NamedTuples that name an update rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np

from reference import linear as reference

Cell = tuple[str, int, int]  # nodes: feature, tag; edges: former tag, tag; rich: feature, former * tags + tag


@dataclass(frozen=True)
class Chain:
    """A sentence: the features of each token with their values, and its tags."""

    features: list[list[tuple[int, float]]]
    tags: list[int]


@dataclass(frozen=True)
class Model:
    """nodes: (features, tags). edges: (tags, tags). rich: for each frequent feature the pairs that it weighs."""

    nodes: np.ndarray
    edges: np.ndarray
    rich: list[dict[int, float]]


def chains_of(samples: Any) -> list[Chain]:
    """The sentences of Chains or ValuedChains."""
    values = getattr(samples, "values", np.ones(len(samples.ids)))
    tokens = [[(int(samples.ids[e]), float(values[e])) for e in range(a, b)] for a, b in pairwise(samples.starts)]
    return [Chain(tokens[a:b], samples.tags[a:b].tolist()) for a, b in pairwise(samples.offsets)]


def model_of(arrays: Any) -> Model:
    """A model of its saved arrays."""
    starts, pairs, rich = (arrays[name].tolist() for name in ("rich_starts", "rich_pairs", "rich"))
    weighed = [dict(zip(pairs[a:b], rich[a:b], strict=True)) for a, b in pairwise(starts)]
    return Model(arrays["nodes"].astype(np.float64), arrays["edges"].astype(np.float64), weighed)


def scores_of(model: Model, chain: Chain) -> tuple[np.ndarray, np.ndarray]:
    """Scores (tokens, tags) of tags, and (tokens, tags, tags) of the pairs that end at each token but the first."""
    tokens, tags = len(chain.tags), len(model.edges)
    nodes, pairs = np.zeros((tokens, tags)), np.zeros((tokens, tags, tags))
    for i, features in enumerate(chain.features):
        if i > 0:
            pairs[i] = model.edges
        for feature, value in features:
            nodes[i] += value * model.nodes[feature]
            if i > 0 and feature < len(model.rich):
                for pair, weight in model.rich[feature].items():
                    pairs[i, pair // tags, pair % tags] += value * weight
    return nodes, pairs


# -- sums over paths ------------------------------------------------------------------------------------------------


@cache
def all_paths(tokens: int, tags: int) -> np.ndarray:
    """Every path, a row each."""
    return np.array(list(product(range(tags), repeat=tokens)))


class Paths:
    """All paths, with their scores."""

    def __init__(self, nodes: np.ndarray, pairs: np.ndarray) -> None:
        tokens, tags = nodes.shape
        self.shape = tokens, tags
        self.paths = all_paths(tokens, tags)
        self.scores = nodes[np.arange(tokens), self.paths].sum(axis=1)
        self.scores += pairs[np.arange(1, tokens), self.paths[:, :-1], self.paths[:, 1:]].sum(axis=1)
        top = self.scores.max()
        self.log_norm = float(top + np.log(np.exp(self.scores - top).sum()))
        self.chances = np.exp(self.scores - self.log_norm)

    def score(self, tags: Sequence[int]) -> float:
        """Score of one path."""
        return float(self.scores[(self.paths == tags).all(axis=1)].item())

    def marginals(self) -> np.ndarray:
        """(tokens, tags): chance of each tag."""
        tokens, tags = self.shape
        return np.array([np.bincount(self.paths[:, i], self.chances, tags) for i in range(tokens)])

    def pair_marginals(self) -> np.ndarray:
        """(tokens, tags, tags): chance of each pair of tags that ends at a token."""
        tokens, tags = self.shape
        found = np.zeros((tokens, tags, tags))
        for i in range(1, tokens):
            pairs = tags * self.paths[:, i - 1] + self.paths[:, i]
            found[i] = np.bincount(pairs, self.chances, tags * tags).reshape(tags, tags)
        return found

    def best(self, count: int) -> list[tuple[float, list[int]]]:
        """The best paths with their scores, the best first."""
        order = np.argsort(-self.scores, kind="stable")[:count]
        return [(float(self.scores[k]), self.paths[k].tolist()) for k in order]


class Recursion:
    """The same numbers in logarithms, token by token."""

    def __init__(self, nodes: np.ndarray, pairs: np.ndarray) -> None:
        self.nodes, self.pairs = nodes, pairs
        self.before, self.after = np.zeros_like(nodes), np.zeros_like(nodes)
        self.before[0] = nodes[0]
        for i in range(1, len(nodes)):
            self.before[i] = nodes[i] + _log_sums(self.before[i - 1][:, None] + pairs[i], 0)
        for i in range(len(nodes) - 1, 0, -1):
            self.after[i - 1] = _log_sums(pairs[i] + (nodes[i] + self.after[i])[None, :], 1)
        self.log_norm = float(_log_sums(self.before[-1], 0))

    def score(self, tags: Sequence[int]) -> float:
        """Score of one path."""
        single = sum(self.nodes[i, y] for i, y in enumerate(tags))
        return float(single + sum(self.pairs[i + 1, x, y] for i, (x, y) in enumerate(pairwise(tags))))

    def marginals(self) -> np.ndarray:
        """(tokens, tags): chance of each tag."""
        return np.exp(self.before + self.after - self.log_norm)

    def pair_marginals(self) -> np.ndarray:
        """(tokens, tags, tags): chance of each pair of tags that ends at a token."""
        found = np.zeros_like(self.pairs)
        both = self.before[:-1, :, None] + self.pairs[1:] + (self.nodes + self.after)[1:, None, :]
        found[1:] = np.exp(both - self.log_norm)
        return found

    def best(self) -> float:
        """The score of the best path."""
        best = self.nodes[0]
        for i in range(1, len(self.nodes)):
            best = self.nodes[i] + (best[:, None] + self.pairs[i]).max(axis=0)
        return float(best.max())


def _log_sums(logs: np.ndarray, axis: int) -> np.ndarray:
    top = logs.max(axis=axis, keepdims=True)
    return np.log(np.exp(logs - top).sum(axis=axis)) + top.squeeze(axis)


# -- the loss and its gradient --------------------------------------------------------------------------------------


def loss_of(model: Model, chain: Chain, cuts: Iterable[int] = (), sums: Any = Paths) -> float:
    """-log p(tags | sentence), summed over the pieces that begin at token 0 and at the tokens `cuts`."""
    nodes, pairs = scores_of(model, chain)
    total = 0.0
    for a, b in pairwise([0, *sorted(cuts), len(chain.tags)]):
        piece = sums(nodes[a:b], pairs[a:b])
        total += piece.log_norm - piece.score(chain.tags[a:b])
    return total


def touches_of(model: Model, chain: Chain, cuts: Iterable[int] = (), sums: Any = Paths) -> list[tuple[Cell, float]]:
    """The gradient, one entry for each time that a weight is touched, in the order in which a visit touches them.

    From the last token to the first: the features of the token, then their rich edges; in the end all transitions.
    """
    nodes, pairs = scores_of(model, chain)
    tags = len(model.edges)
    found: list[tuple[Cell, float]] = []
    edges = np.zeros((tags, tags))
    for a, b in reversed(list(pairwise([0, *sorted(cuts), len(chain.tags)]))):
        piece = sums(nodes[a:b], pairs[a:b])
        single, double = piece.marginals(), piece.pair_marginals()
        for i in range(b - 1, a - 1, -1):
            single[i - a, chain.tags[i]] -= 1
            for feature, value in chain.features[i]:
                found += [(("nodes", feature, y), value * single[i - a, y]) for y in range(tags)]
            if i == a:
                continue
            double[i - a, chain.tags[i - 1], chain.tags[i]] -= 1
            edges += double[i - a]
            for feature, value in chain.features[i]:
                for pair in model.rich[feature] if feature < len(model.rich) else ():
                    found.append((("rich", feature, pair), value * double[i - a, pair // tags, pair % tags]))
    found += [(("edges", x, y), edges[x, y]) for x in range(tags) for y in range(tags)]
    return found


@dataclass
class Gradient:
    """As Model: nodes (features, tags), edges (tags, tags); rich: a number a pair, feature by feature."""

    nodes: np.ndarray
    edges: np.ndarray
    rich: np.ndarray


def gradient_of(model: Model, chain: Chain, cuts: Iterable[int] = (), sums: Any = Paths) -> Gradient:
    """The gradient in all weights."""
    nodes, pairs = scores_of(model, chain)
    tags = len(model.edges)
    places = np.concatenate([[0], np.cumsum([len(weighed) for weighed in model.rich])]).astype(int)
    weighed = [np.array(list(pairs), int) for pairs in model.rich]
    found = Gradient(np.zeros_like(model.nodes), np.zeros_like(model.edges), np.zeros(places[-1]))
    for a, b in pairwise([0, *sorted(cuts), len(chain.tags)]):
        piece = sums(nodes[a:b], pairs[a:b])
        single, double = piece.marginals(), piece.pair_marginals()
        for i in range(a, b):
            single[i - a, chain.tags[i]] -= 1
            if i > a:
                double[i - a, chain.tags[i - 1], chain.tags[i]] -= 1
            for feature, value in chain.features[i]:
                found.nodes[feature] += value * single[i - a]
                if i > a and feature < len(weighed):
                    here = slice(places[feature], places[feature + 1])
                    found.rich[here] += value * double[i - a].reshape(tags * tags)[weighed[feature]]
        found.edges += double.sum(axis=0)
    return found


def add_up(touches: Iterable[tuple[Cell, float]]) -> dict[Cell, float]:
    """One entry for each weight."""
    found: dict[Cell, float] = {}
    for cell, gradient in touches:
        found[cell] = found.get(cell, 0.0) + gradient
    return found


# -- training -------------------------------------------------------------------------------------------------------


class CRFTwin:
    """A CRF trained one visit at a time: every touch moves a weight by the rule, every visit charges all weights.

    l1, l2: penalties a visit, at the pace of the rule.
    """

    def __init__(self, model: Model, rule: Any, l1: float = 0.0, l2: float = 0.0) -> None:
        self.rule, self.l1, self.l2 = rule, l1, l2
        self.shape = model.nodes.shape
        self.weights: dict[Cell, reference.Weight] = {}
        for name, matrix in (("nodes", model.nodes), ("edges", model.edges)):
            for (x, y), value in np.ndenumerate(matrix):
                self.weights[name, x, y] = reference.Weight(float(value))
        for feature, pairs in enumerate(model.rich):
            for pair, value in pairs.items():
                self.weights["rich", feature, pair] = reference.Weight(float(value))
        self._rich = [list(pairs) for pairs in model.rich]

    def model(self) -> Model:
        """The weights as they are."""
        nodes, edges = np.zeros(self.shape), np.zeros((self.shape[1],) * 2)
        for (name, x, y), weight in self.weights.items():
            if name != "rich":
                (nodes if name == "nodes" else edges)[x, y] = weight.value
        rich = [{pair: self.weights["rich", f, pair].value for pair in pairs} for f, pairs in enumerate(self._rich)]
        return Model(nodes, edges, rich)

    def visit(self, chain: Chain, rate: float, time: float, cuts: Iterable[int] = ()) -> float:
        """One sentence; returns its loss before the update."""
        model = self.model()
        self.apply(touches_of(model, chain, cuts), rate)
        self.pay(time)
        return loss_of(model, chain, cuts)

    def apply(self, touches: Iterable[tuple[Cell, float]], rate: float) -> None:
        """Move weights against gradients."""
        for cell, gradient in touches:
            reference.move(self.rule, self.weights[cell], gradient, rate)

    def pay(self, time: float) -> None:
        """Charge all weights for a time."""
        if self.l1 or self.l2:
            for weight in self.weights.values():
                due = time * reference.pace(self.rule, weight)
                weight.value = reference.shrink(weight.value, self.l1, self.l2, due)

    def run(self, chains: list[Chain], schedule: Any, order: Iterable[int], first: int = 0) -> float:
        """Visit sentences in an order, the first of them at a position of the schedule; the sum of losses."""
        return sum(
            self.visit(chains[k], reference.rate(schedule, p), reference.time_of(schedule, p))
            for p, k in enumerate(order, first)
        )

    def run_batches(self, chains: list[Chain], schedule: Any, order: list[int], batch: int) -> float:
        """Visit sentences in batches: the sum of their gradients moves each weight once, at the rate of the last."""
        total, touches = 0.0, []
        for p, k in enumerate(order):
            model = self.model()
            touches += touches_of(model, chains[k])
            total += loss_of(model, chains[k])
            if (p + 1) % batch == 0 or p + 1 == len(order):
                self.apply(add_up(touches).items(), reference.rate(schedule, p))
                touches = []
            self.pay(reference.time_of(schedule, p))
        return total

    def run_rounds(self, chains: list[Chain], schedule: Any, order: list[int], workers: int) -> float:
        """Visit sentences in rounds: gradients of one model, applied one after the other at rates of their own."""
        total = 0.0
        for first in range(0, len(order), workers):
            model = self.model()
            for p, k in enumerate(order[first : first + workers], first):
                self.apply(touches_of(model, chains[k]), reference.rate(schedule, p))
                total += loss_of(model, chains[k])
        return total
