"""A convex objective of which everything is known: its optimum, and how it bends in a ball around it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import BinaryRows, DenseRows
from hogwild.errors import ConfigError
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.sparse.linear import Linear

Vector = npt.NDArray[np.float64]

_MOST_FEATURES = 2048  # a matrix of features by features is decomposed
_MOST_CELLS = 1 << 26  # of the dense matrix of samples
_STEPS = 100  # of Newton's method, which needs about ten
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Objective:
    """f(w) = mean over samples of importance times loss, plus l2 |w|^2 / 2: what `hogwild.Linear` minimises.

    Parameters
    ----------
    rows : the samples; targets are -1 and 1 with the logistic loss.
    loss : `logistic` or `squared`.
    l2 : as the compiled code has it, a float32.

    Attributes
    ----------
    optimum : w*, by Newton's method in float64.
    lowest : f(w*).
    """

    rows: DenseRows
    loss: str
    l2: float

    @cached_property
    def _matrix(self) -> Vector:
        return self.rows.matrix.astype(np.float64)

    @cached_property
    def _norms(self) -> Vector:
        return np.asarray(np.linalg.norm(self._matrix, axis=1))

    @property
    def features(self) -> int:
        """Weights that there are."""
        return int(self.rows.matrix.shape[1])

    # -- values -------------------------------------------------------------------------------------------------

    def value(self, weight: npt.ArrayLike) -> float:
        """f at a vector of weights."""
        weight = np.asarray(weight, np.float64)
        scores, targets = self._matrix @ weight, self.rows.targets.astype(np.float64)
        losses = np.logaddexp(0, -targets * scores) if self.loss == "logistic" else 0.5 * (scores - targets) ** 2
        return float(np.mean(self.rows.importance * losses) + 0.5 * self.l2 * weight @ weight)

    def gap(self, weight: npt.ArrayLike) -> float:
        """f(w) - f(w*)."""
        return self.value(weight) - self.lowest

    def distance(self, weight: npt.ArrayLike) -> float:
        """|w - w*|^2."""
        return float(np.sum((np.asarray(weight, np.float64) - self.optimum) ** 2))

    def gradient(self, weight: npt.ArrayLike) -> Vector:
        """The gradient of f."""
        weight = np.asarray(weight, np.float64)
        return self._matrix.T @ self.slopes(self._matrix @ weight) / len(self._matrix) + self.l2 * weight

    def slopes(self, scores: Vector, samples: Any = slice(None)) -> Vector:
        """Derivative of the loss of each sample in its score, times its importance."""
        targets = self.rows.targets[samples].astype(np.float64)
        if self.loss == "squared":
            return np.asarray(self.rows.importance[samples] * (scores - targets))
        return np.asarray(-self.rows.importance[samples] * targets * np.exp(-np.logaddexp(0, targets * scores)))

    def sample_gradients(self, samples: Any, weights: Vector) -> Vector:
        """Gradients of samples, penalty included, each at its own row of weights."""
        features = self._matrix[samples]
        slopes = self.slopes(np.einsum("ij,ij->i", features, weights), samples)
        return np.asarray(slopes[:, None] * features + self.l2 * weights)

    # -- the optimum --------------------------------------------------------------------------------------------

    @cached_property
    def optimum(self) -> Vector:
        """The least of f, by Newton's method with halved steps; at its end rounding is all that is left."""
        weight = np.zeros(self.features)
        for _ in range(_STEPS):
            slope = self.gradient(weight)
            try:
                step = np.linalg.solve(self._hessian(self._bends(weight)), slope)
            except np.linalg.LinAlgError:
                break
            decrease = float(slope @ step)
            value = self.value(weight)
            if decrease <= 1e-26 * max(1.0, abs(value)):
                if self._flat(weight):
                    break
                return np.asarray(weight - step)
            share = 1.0
            while share > 1e-6 and self.value(weight - share * step) > value - 0.25 * share * decrease:
                share /= 2
            # Where f no longer falls by more than it is rounded, Newton's step is still exact.
            weight = weight - (share if decrease > 1e-12 * max(1.0, abs(value)) else 1.0) * step
        raise ConfigError("no optimum was found: the loss can fall for ever, or in a direction not at all. Give an l2.")

    def _flat(self, weight: Vector) -> bool:
        """Whether f bends next to not at all in some direction: rounding alone then says where the optimum is."""
        least = np.linalg.eigvalsh(self._hessian(self._bends(weight)))[0]
        most = np.linalg.eigvalsh(self._hessian(self._bends(np.zeros(self.features))))[-1]
        return bool(least <= 1e-10 * most)

    @cached_property
    def lowest(self) -> float:
        """f(w*)."""
        return self.value(self.optimum)

    def on_the_way(self, gap: float) -> Vector:
        """The point between zero and the optimum where f(w) - f(w*) is `gap`; in float32 numbers."""
        if not 0 < gap < self.gap(np.zeros(self.features)):
            raise ConfigError(
                f"no point between zero and the optimum is {gap:.4g} above it: zero itself is "
                f"{self.gap(np.zeros(self.features)):.4g} above. Use a smaller epsilon."
            )
        near, far = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            near, far = (middle, far) if self.gap((1 - middle) * self.optimum) < gap else (near, middle)
        return ((1 - near) * self.optimum).astype(np.float32).astype(np.float64)

    # -- constants of the theorem -------------------------------------------------------------------------------

    def curvature(self, radius: float = 0.0) -> tuple[float, float]:
        """c and q: how much f bends at the least and at the most in the ball |w - w*| <= radius.

        Proved, not estimated: a score cannot move by more than |x| radius, and the logistic loss bends the less, the
        larger the score. With the squared loss they are the same everywhere.
        """
        scores = np.abs(self._matrix @ self.optimum)
        reach = self._norms * radius
        least = np.linalg.eigvalsh(self._hessian(self._bend(scores + reach)))[0]
        most = np.linalg.eigvalsh(self._hessian(self._bend(np.maximum(scores - reach, 0.0))))[-1]
        return float(least), float(most)

    def largest_term(self, radius: float = 0.0) -> float:
        """kappa: what the gradient of one sample, penalty included, can be at the most in the ball; proved likewise."""
        rest = self.sample_gradients(slice(None), np.broadcast_to(self.optimum, self._matrix.shape))
        steepest = self._bend(np.zeros(len(self._matrix))) * self._norms**2 + self.l2
        return float(np.max(np.linalg.norm(rest, axis=1) + steepest * radius))

    def _bends(self, weight: Vector) -> Vector:
        return self._bend(np.abs(self._matrix @ weight))

    def _bend(self, scores: Vector) -> Vector:
        """Second derivative of the loss of each sample at a score, times its importance; scores are not negative."""
        if self.loss == "squared":
            return self.rows.importance.astype(np.float64)
        rest = np.exp(-scores)
        return np.asarray(self.rows.importance * rest / (1 + rest) ** 2)

    def _hessian(self, bends: Vector) -> Vector:
        mean = (self._matrix * bends[:, None]).T @ self._matrix / len(self._matrix)
        return np.asarray(mean + self.l2 * np.eye(self.features))


def objective_of(program: Linear, feed: Feed) -> Objective:
    """What a linear program minimises on a feed, if that is convex and smooth.

    Parameters
    ----------
    program : a `hogwild.Linear` of two classes with the logistic loss, or of the squared loss; without bias and l1.
        It need not be trained, and is left as it is.
    feed : the samples, dense or sparse; at most 2,048 features.

    Examples
    --------
    >>> import hogwild
    >>> feed = hogwild.feed_of([[1.0], [3.0]], [1.0, 3.5])
    >>> f = objective_of(hogwild.Linear("squared", l2=1.0, bias=False), feed)
    >>> f.optimum.round(4).tolist(), f.curvature()  # (1 + 10.5) / 2 / (5 + 1); bends by (1 + 9) / 2 + 1
    ([0.9583], (6.0, 6.0))
    """
    if not isinstance(program, Linear):
        raise ConfigError(f"the program is a {type(program).__name__}; an objective is made of a hogwild.Linear.")
    if program.config.bias:
        raise ConfigError("the penalty leaves the bias out; use bias=False, and a column of ones where one is needed.")
    if program.config.l1:
        l1 = program.config.l1
        raise ConfigError(f"l1 is {l1}: its objective has corners, and the theorem needs a smooth one; use l2.")
    twin = Linear(**program.options())
    twin.startup(feed, seed=0)
    if twin.loss not in ("logistic", "squared"):
        told = "has a corner" if twin.loss in ("hinge", "quantile") else "is not strongly convex everywhere"
        raise ConfigError(f"the {twin.loss} loss {told}, and the theorem needs logistic or squared; use one of them.")
    if twin.width > 1:
        raise ConfigError(f"the feed has {twin.width} classes; take two, or a quantity.")
    if feed.features > _MOST_FEATURES or len(feed) * feed.features > _MOST_CELLS:
        raise ConfigError(
            f"{len(feed):,} rows of {feed.features:,} features are too many for an exact optimum "
            f"(at most {_MOST_FEATURES:,} features, {_MOST_CELLS:,} cells); take a sample."
        )
    return Objective(_dense(twin.samples(feed), feed), twin.loss, float(np.float32(program.config.l2)))


def _dense(samples: Any, feed: Feed) -> DenseRows:
    """The samples as a matrix, with columns in the features' own order."""
    if isinstance(samples, DenseRows):
        return samples
    matrix = np.zeros((len(feed), feed.features), np.float32)
    ids = samples.ids if feed.original is None else feed.original[samples.ids]
    values = np.float32(1) if isinstance(samples, BinaryRows) else samples.values
    np.add.at(matrix, (np.repeat(np.arange(len(feed)), np.diff(samples.offsets)), ids), values)
    return DenseRows(matrix, samples.targets, samples.importance)
