"""The constants of the theorem for one problem and one way to run it: c, q and kappa by proof, tau by measuring."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hogwild.errors import ConfigError
from hogwild.observe.theory.bound import learning_rate, updates
from hogwild.observe.theory.windows import Engine, Window, mean_of, pool

_MARGIN = 1.5  # radius of the region, in distances of the beginning from the optimum
_SIGMAS = 2.0  # standard errors that are added to a measured mean
_WINDOWS = 5  # few and long: a mean over a short one is mostly chance


@dataclass(frozen=True)
class Estimates:
    """c, q, kappa and tau in the ball |w - w*| <= radius around the optimum; units as in `learning_rate`."""

    c: float
    """Modulus of strong convexity, proved for the ball."""
    q: float
    """Lipschitz constant of the gradient, proved for the ball."""
    kappa: float
    """Bound on an update term, proved for the ball; or what was seen, if that is larger."""
    tau: float
    """Largest mean over a window of (gradient of the sample - step made) (w - w*), and twice its standard error."""
    radius: float
    gap0: float
    """f(w_0) - f(w*) where the runs began."""
    a0: float
    """|w_0 - w*|^2 there."""
    mean_error: float
    """Of the window that tau comes from, before the standard error."""
    uncertainty: float
    """Standard error of that mean."""
    kappa_seen: float
    """Largest norm of an update term as a worker computed it."""
    kappa_rms: float
    """Root of the mean |s|^2 of the steps that were really made, in the window where it is largest."""
    stale: float
    """Share of updates with a weight that was overwritten after it was read."""
    lost: float
    """Share of updates that wrote over another one in some weight."""
    gamma: float
    """Learning rate of the measured runs: what the theorem would allow were there no errors."""
    measured: int
    """Updates that were measured."""


def estimate(
    engine: Engine, epsilon: float, start: float = 4.0, runs: int = 5, beta: float = 1.0, seed: int = 1
) -> Estimates:
    """Measure the constants of the theorem on runs near the optimum.

    The runs begin on the way from zero to the optimum, where f is `start` times epsilon above its least, at the rate
    that the theorem would allow were there no errors: the largest that can come of it. They make the updates that the
    theorem asks for at that rate, in five windows. (`experiment` measures again, at the rate that it uses.)

    Parameters
    ----------
    engine : `Measured` (the executor) or `Simulated`.
    epsilon : the wanted f(w) - f(w*).
    start : where the final region begins, in epsilons. The errors grow with the distance from the optimum: far from
        it tau is too large for any theorem, and near it small.
    runs : runs with seeds of their own, which are put together.

    Examples
    --------
    >>> import hogwild
    >>> feed = hogwild.feed_of([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.5]], [0, 1, 0, 1])
    >>> objective = hogwild.theory.objective_of(hogwild.Linear(l2=0.5, bias=False), feed)
    >>> found = estimate(hogwild.theory.Simulated(objective, delay=0), epsilon=1e-3)
    >>> found.tau < 1e-12, found.c >= 0.5, found.kappa_seen <= found.kappa
    (True, True, True)
    """
    if not start > 0 or runs < 1:
        raise ConfigError(f"start is {start} and runs is {runs}; the first must be above 0, the second at least 1.")
    objective = engine.objective
    first = objective.on_the_way(start * epsilon)
    a0 = objective.distance(first)
    radius = _MARGIN * math.sqrt(a0)
    c, q = objective.curvature(radius)
    kappa = objective.largest_term(radius)
    gamma = learning_rate(c, q, kappa, epsilon, 0.0, beta)
    count = updates(c, q, kappa, epsilon, 0.0, a0, beta)
    windows = pool([engine.run(first, gamma, count, _WINDOWS, seed + run) for run in range(runs)])
    counted = sum(window.counted for window in windows)
    if not counted:
        raise ConfigError(f"{type(engine).__name__} measures no errors; take the estimates of Measured or Simulated.")
    worst = max(windows, key=_upper)
    seen = max(window.largest_term for window in windows)
    rms = math.sqrt(max(window.step_square for window in windows))
    return Estimates(
        c, q, max(kappa, seen, rms), max(0.0, _upper(worst)), radius, objective.gap(first), a0, worst.error,
        worst.uncertainty, seen, rms, mean_of(windows, "stale"), mean_of(windows, "lost"), gamma, counted,
    )  # fmt: skip


def _upper(window: Window) -> float:
    return window.error + _SIGMAS * window.uncertainty
