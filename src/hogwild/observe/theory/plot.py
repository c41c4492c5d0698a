"""A picture of the experiment: what was measured beneath what the theorem allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hogwild.errors import ConfigError, SaveError
from hogwild.observe.theory.bound import Recursion, gap_bound
from hogwild.observe.theory.check import BoundCheck
from hogwild.observe.theory.windows import mean_of

_BOUND, _MEASURED = "#b2432f", "#1f5a8c"
_POINTS = 200  # of a bound's curve
_THOUSAND = 1000


def draw(checks: BoundCheck | Sequence[BoundCheck], path: str | Path) -> None:
    """Draw experiments side by side: above |w - w*|^2, below f(w) - f(w*), each with its bound.

    Parameters
    ----------
    checks : what `experiment` returned; those whose condition failed have nothing to draw, and are left out.
    path : where the picture goes; its ending says the format (.png, .svg, .pdf).
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # late: slow to import, and needed only here
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("pictures need matplotlib, which is missing: pip install 'hogwild[report]'") from None

    shown = [check for check in ([checks] if isinstance(checks, BoundCheck) else checks) if check.windows]
    if not shown:
        raise ConfigError("there is nothing to draw: the condition of the theorem failed. `problem` says why.")
    figure = Figure(figsize=(1.2 + 3.4 * len(shown), 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, len(shown), sharex="col", sharey="row", squeeze=False)
    for (above, below), check in zip(axes.T, shown, strict=True):
        _curves(above, below, check)
        above.set_title(f"{check.label}\n{_about(check)}", fontsize=9)
        below.set_xlabel("updates, in thousands")
    axes[0, 0].set_ylabel("squared distance from the optimum\n|w − w*|²")
    axes[1, 0].set_ylabel("loss above its least\nf(w) − f(w*)")
    for row in axes:
        row[0].legend(fontsize=8, frameon=False, loc="lower left")
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:  # an ending that matplotlib does not know is a ValueError
        raise SaveError(f"{path}: {error}; choose another place, or an ending such as .png.") from error


def _about(check: BoundCheck) -> str:
    if not any(window.counted for window in check.windows):
        return "errors not measured"
    stale, lost = (mean_of(check.windows, name) for name in ("stale", "lost"))
    return f"updates: {stale:.0%} from stale weights, {lost:.0%} over others"


def _curves(above: Any, below: Any, check: BoundCheck) -> None:
    """Distances and gaps beneath their bounds."""
    known = check.estimates
    recursion = Recursion(known.c, known.kappa, known.tau, check.gamma)
    times = [check.windows[-1].end * k / _POINTS for k in range(_POINTS + 1)]
    bounds = [recursion.after(known.a0, time) for time in times]
    gaps = [gap_bound(known.q, bound) for bound in bounds]
    for axis, curve in ((above, bounds), (below, gaps)):
        axis.plot([t / _THOUSAND for t in times], curve, color=_BOUND, linewidth=1.6, label="bound on the mean")
    above.axhline(recursion.steady, color=_BOUND, linewidth=0.8, linestyle=":", label="where the bound ends")
    below.axhline(check.epsilon, color="black", linewidth=0.8, linestyle="--", label="wanted: ε")
    _runs(above, check, known.a0, check.distances, [window.distance for window in check.windows])
    _runs(below, check, known.gap0, check.gaps, [window.gap for window in check.windows])


def _runs(axis: Any, check: BoundCheck, first: float, runs: Sequence[Sequence[float]], mean: Sequence[float]) -> None:
    times = [0.0, *(window.end / _THOUSAND for window in check.windows)]
    for run in runs:
        axis.plot(times, [first, *run], color=_MEASURED, linewidth=0.6, alpha=0.35)
    axis.plot(
        times, [first, *mean], color=_MEASURED, linewidth=1.6, marker="o", markersize=3,
        label=f"measured, mean of {len(runs)}",
    )  # fmt: skip
    axis.set_yscale("log")
    axis.yaxis.set_minor_formatter("")
    axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)
