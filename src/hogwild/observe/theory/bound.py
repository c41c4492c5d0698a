"""The convergence theorem of AsynGrad as numbers: what learning rate, how many updates, and how much error is too much.

For update terms s_z(w) that are the gradient of one sample but for errors, with s(w) their mean over samples z:

* f is strongly convex with modulus c: f(v) >= f(w) + (v - w) grad f(w) + c / 2 |v - w|^2;
* its gradient is Lipschitz with the constant q: |grad f(v) - grad f(w)| <= q |v - w|;
* |s_z(w)| <= kappa;
* (grad f(w) - s(w)) (w - w*) <= tau for all w that training passes through.

Then a_t = E |w_t - w*|^2 obeys a_{t+1} <= (1 - c gamma) a_t + 2 gamma tau + gamma^2 kappa^2 for gamma c < 1, and with
the `learning_rate` below, E f(w_t) - f(w*) <= epsilon after `updates` updates, if tau < `largest_tau`.

Units: f, epsilon and tau are losses (of one sample: f is the mean over samples, penalty included); c and q are losses a
squared weight; kappa is a loss a weight; gamma is a squared weight a loss; a is a squared weight.
Theorem 1 of AsynGrad (Sun, COLING 2016).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hogwild.errors import ConfigError

_ROUNDING = 1e-9  # by which c, computed beside q, may seem to be larger


def largest_tau(c: float, q: float, epsilon: float) -> float:
    """The gradient errors that a target allows: tau must stay below c epsilon / (2 q), a loss.

    At the limit itself, which the paper allows, the learning rate would be 0 and no number of updates enough.

    Parameters
    ----------
    c, q : modulus of strong convexity and Lipschitz constant of the gradient, 0 < c <= q; losses a squared weight.
    epsilon : the wanted f(w) - f(w*) above 0; a loss.

    Examples
    --------
    >>> largest_tau(c=0.5, q=1.0, epsilon=0.02)
    0.005
    """
    _check_curvature(c, q)
    _check("epsilon", epsilon, epsilon > 0, "it is the wanted distance of the loss from its least: above 0. Try 1e-3")
    return c * epsilon / (2 * q)


def smallest_epsilon(c: float, q: float, tau: float) -> float:
    """What can be reached in spite of gradient errors: every epsilon above 2 q tau / c, a loss.

    Parameters
    ----------
    c, q : as for `largest_tau`.
    tau : bound on (grad f(w) - s(w)) (w - w*), not negative; a loss.

    Examples
    --------
    >>> smallest_epsilon(c=0.5, q=1.0, tau=0.005)
    0.02
    """
    _check_curvature(c, q)
    _check_tau(tau)
    return 2 * q * tau / c


def learning_rate(c: float, q: float, kappa: float, epsilon: float, tau: float, beta: float = 1.0) -> float:
    """The constant learning rate gamma = (c epsilon - 2 tau q) / (beta q kappa^2), a squared weight a loss.

    It is `lr` with `schedule="constant"` and `optimizer="sgd"`, where each visit applies the gradient of one sample.

    Parameters
    ----------
    c, q, epsilon : as for `largest_tau`.
    kappa : bound on the norm of an update term, penalty included, above 0; a loss a weight.
    tau : bound on (grad f(w) - s(w)) (w - w*), not negative and below `largest_tau`; a loss.
    beta : at least 1; a larger one takes smaller steps, and more of them. gamma c < 1 may ask for one.

    Examples
    --------
    >>> round(learning_rate(c=0.5, q=1.0, kappa=2.0, epsilon=0.1, tau=0.005), 6)
    0.01
    """
    limit = largest_tau(c, q, epsilon)
    _check("kappa", kappa, kappa > 0, "update terms that are all zero change nothing; it must be above 0")
    _check_tau(tau)
    _check("beta", beta, beta >= 1, "it must be at least 1. Try 1")
    if tau >= limit:
        raise ConfigError(
            f"tau is {tau:.4g}; to come within {epsilon:.4g} of the optimum it must be below {limit:.4g}. "
            f"Use fewer workers, or an epsilon above {smallest_epsilon(c, q, tau):.4g}."
        )
    most = (c * epsilon - 2 * tau * q) / q / kappa / kappa
    gamma = most / beta
    if not 0 < gamma < math.inf:
        raise ConfigError(f"the learning rate would be {gamma}; a unit is off, or tau next to its limit {limit:.4g}.")
    if gamma * c >= 1:
        raise ConfigError(
            f"gamma c would be {gamma * c:.4g}; it must be below 1. Use a beta above {most * c:.4g}, or a smaller "
            "epsilon."
        )
    return gamma


def updates(c: float, q: float, kappa: float, epsilon: float, tau: float, a0: float, beta: float = 1.0) -> int:
    """The number of updates ceil(beta q kappa^2 log(q a0 / epsilon) / (c (c epsilon - 2 tau q))), of one sample each.

    0 where q a0 / epsilon <= 1: the loss is within epsilon / 2 already, and stays within epsilon.

    Parameters
    ----------
    a0 : |w_0 - w*|^2, not negative; a squared weight.
    c, q, kappa, epsilon, tau, beta : as for `learning_rate`.

    Examples
    --------
    >>> updates(c=0.5, q=1.0, kappa=2.0, epsilon=0.1, tau=0.005, a0=4.0)
    738
    """
    gamma = learning_rate(c, q, kappa, epsilon, tau, beta)
    _check("a0", a0, a0 >= 0, "it is a squared distance")
    if a0 == 0:
        return 0
    folds = math.log(q) + math.log(a0) - math.log(epsilon)
    return math.ceil(folds / (c * gamma)) if folds > 0 else 0


def gap_bound(q: float, a: float) -> float:
    """What f(w) - f(w*) can be at the most where |w - w*|^2 is a: q a / 2, a loss."""
    _check("q", q, q > 0, "it must be above 0")
    _check("a", a, a >= 0, "it is a squared distance")
    return q * a / 2


@dataclass(frozen=True)
class Recursion:
    """a_{t+1} <= (1 - c gamma) a_t + 2 gamma tau + gamma^2 kappa^2, for the mean squared distance from the optimum.

    Parameters
    ----------
    c, kappa, tau, gamma : as for `learning_rate`; gamma c < 1.

    Examples
    --------
    >>> recursion = Recursion(c=0.5, kappa=2.0, tau=0.005, gamma=0.01)
    >>> round(recursion.next(4.0), 6), round(recursion.steady, 6), round(recursion.after(4.0, 738), 4)
    (3.9805, 0.1, 0.1965)
    """

    c: float
    kappa: float
    tau: float
    gamma: float

    def __post_init__(self) -> None:
        _check("c", self.c, self.c > 0, "f must be strongly convex: above 0. Use an l2 penalty")
        _check("kappa", self.kappa, self.kappa >= 0, "it must not be negative")
        _check_tau(self.tau)
        _check("gamma", self.gamma, self.gamma > 0, "a learning rate is above 0")
        _check("gamma c", self.gamma * self.c, self.gamma * self.c < 1, "it must be below 1. Use a smaller gamma")

    def next(self, a: float) -> float:
        """The bound after one more update."""
        return (1 - self.c * self.gamma) * a + 2 * self.gamma * self.tau + self.gamma**2 * self.kappa**2

    @property
    def steady(self) -> float:
        """Where the bound no longer falls: (2 tau + gamma kappa^2) / c."""
        return (2 * self.tau + self.gamma * self.kappa**2) / self.c

    def after(self, a0: float, t: float) -> float:
        """The bound after t updates from a0: (1 - c gamma)^t (a0 - steady) + steady."""
        _check("a0", a0, a0 >= 0, "it is a squared distance")
        _check("t", t, t >= 0, "it is a number of updates")
        return math.exp(t * math.log1p(-self.c * self.gamma)) * (a0 - self.steady) + self.steady


def _check_curvature(c: float, q: float) -> None:
    _check("c", c, c > 0, "f must be strongly convex: above 0. Use an l2 penalty")
    _check("q", q, q > 0, "it must be above 0")
    if c > q * (1 + _ROUNDING):
        raise ConfigError(
            f"c is {c:.6g} and q is {q:.6g}, but no function bends more at the least than at the most; "
            "take both of the same objective, the mean over samples."
        )


def _check_tau(tau: float) -> None:
    _check("tau", tau, tau >= 0, "it must not be negative; a mean error below 0 does no harm: use 0")


def _check(name: str, value: float, fits: bool, why: str) -> None:
    if not (fits and math.isfinite(value)):
        raise ConfigError(f"{name} is {value}; {why}{', and finite' if not math.isfinite(value) else ''}.")
