"""An experiment: take the learning rate and the number of updates that the theorem gives, run, and compare."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from hogwild.errors import ConfigError
from hogwild.observe.logs import plain
from hogwild.observe.theory.bound import Recursion, largest_tau, learning_rate, smallest_epsilon, updates
from hogwild.observe.theory.estimates import Estimates, estimate
from hogwild.observe.theory.windows import Engine, Window, pool

_WINDOWS = 10
_SIGMAS = 2.0  # standard errors by which a measured mean may lie above its bound


@dataclass(frozen=True)
class BoundCheck:
    """Whether the bound held, and all that was measured.

    Where the condition of the theorem fails there is no learning rate: `problem` says why, and nothing was run.
    """

    label: str
    epsilon: float
    beta: float
    estimates: Estimates
    largest_tau: float
    smallest_epsilon: float
    gamma: float = 0.0
    updates: int = 0
    problem: str = ""
    windows: tuple[Window, ...] = ()
    """All runs put together."""
    bounds: tuple[float, ...] = ()
    """The bound on E |w - w*|^2 at the end of each window."""
    distances: tuple[tuple[float, ...], ...] = ()
    """|w - w*|^2 of each run at the end of each window."""
    gaps: tuple[tuple[float, ...], ...] = ()
    """f(w) - f(w*) of each run at the end of each window."""

    @property
    def checks(self) -> dict[str, bool]:
        """What was compared, by name; assumptions that the engine does not measure are left out.

        condition: tau < c epsilon / (2 q). distance: the mean |w - w*|^2 is below the bound at every window.
        gap: the mean f(w) - f(w*) is at most epsilon at the end. tau, kappa, region: the assumptions held in these runs
        too: the mean error of no window is above tau by more than its own standard error allows; no update term, and
        no root of a mean squared step, is above kappa; no update found weights outside of the ball.
        """
        found = {"condition": not self.problem}
        if self.windows:
            within = [window.distance <= bound for window, bound in zip(self.windows, self.bounds, strict=True)]
            found |= {"distance": all(within), "gap": self.windows[-1].gap <= self.epsilon}
        if any(window.counted for window in self.windows):
            known = self.estimates
            found["tau"] = all(w.error - _SIGMAS * w.uncertainty <= known.tau for w in self.windows)
            found["kappa"] = all(max(w.largest_term, w.step_square**0.5) <= known.kappa for w in self.windows)
            found["region"] = all(w.farthest <= known.radius**2 for w in self.windows)
        return found

    @property
    def holds(self) -> bool:
        """Whether everything that was compared is as the theorem says."""
        return all(self.checks.values())

    def record(self) -> dict[str, Any]:
        """All of it as JSON values."""
        whole: dict[str, Any] = plain({**asdict(self), "checks": self.checks, "holds": self.holds})
        return whole

    def __str__(self) -> str:
        known = self.estimates
        lines = [
            f"{self.label}: c {known.c:.4g}  q {known.q:.4g}  kappa {known.kappa:.4g}  tau {known.tau:.3g} "
            f"(must be below {self.largest_tau:.3g})",
            f"  {known.stale:.1%} of the updates used overwritten weights, {known.lost:.1%} wrote over another one",
        ]
        if self.windows and not any(window.counted for window in self.windows):
            lines[1] = "  not measured in these runs: the constants are those of others"
        if self.problem:
            return "\n".join([*lines, f"  {self.problem}"])
        last = self.windows[-1]
        slack = min(bound / window.distance for window, bound in zip(self.windows, self.bounds, strict=True))
        lines += [
            f"  learning rate {self.gamma:.4g}, {self.updates:,} updates, {len(self.gaps)} runs",
            f"  mean f(w) - f(w*) at the end {last.gap:.3g}, promised {self.epsilon:.3g}; "
            f"mean |w - w*|^2 at least {slack:.2f} times below its bound",
            "  " + "  ".join(f"{name}: {'holds' if held else 'FAILS'}" for name, held in self.checks.items()),
        ]
        return "\n".join(lines)


def experiment(
    engine: Engine, epsilon: float, estimates: Estimates | None = None, runs: int = 5, beta: float = 1.0,
    seed: int = 100,
) -> BoundCheck:  # fmt: skip
    """Train as the theorem says, several times, and compare with what it promises.

    Parameters
    ----------
    engine : `Measured`, `Trained` or `Simulated`.
    epsilon : the wanted f(w) - f(w*).
    estimates : what `estimate` found; None: it is asked first, with as many runs. `Trained` needs those of `Measured`.
    runs : runs of which the mean is taken, with seeds of their own, from `seed` on.
    beta : at least 1; see `learning_rate`.

    Examples
    --------
    >>> import hogwild
    >>> feed = hogwild.feed_of([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.5]], [0, 1, 0, 1])
    >>> objective = hogwild.theory.objective_of(hogwild.Linear(l2=0.5, bias=False), feed)
    >>> experiment(hogwild.theory.Simulated(objective, delay=2, stale=0.5), epsilon=2e-3, runs=1).checks["gap"]
    True
    """
    if runs < 1:
        raise ConfigError(f"runs is {runs}; it must be at least 1.")
    known = estimates or estimate(engine, epsilon, runs=runs, beta=beta)
    limit = largest_tau(known.c, known.q, epsilon)
    check = BoundCheck(engine.label, epsilon, beta, known, limit, smallest_epsilon(known.c, known.q, known.tau))
    constants = (known.c, known.q, known.kappa, epsilon, known.tau)
    if known.tau >= limit:
        why = f"The condition fails: tau is {known.tau:.3g}, and must be below {limit:.3g}. Use fewer workers, begin "
        why += f"nearer to the optimum (start), or an epsilon above {check.smallest_epsilon:.3g}."
        return replace(check, problem=why)
    gamma = learning_rate(*constants, beta)
    count = updates(*constants, known.a0, beta)
    first = engine.objective.on_the_way(known.gap0)
    found = [engine.run(first, gamma, count, _WINDOWS, seed + run) for run in range(runs)]
    windows = pool(found)
    recursion = Recursion(known.c, known.kappa, known.tau, gamma)
    return replace(
        check, gamma=gamma, updates=count, windows=tuple(windows),
        bounds=tuple(recursion.after(known.a0, window.end) for window in windows),
        distances=tuple(tuple(window.distance for window in run) for run in found),
        gaps=tuple(tuple(window.gap for window in run) for run in found),
    )  # fmt: skip
