"""Losses of quantities: which there are, what their scores mean, where they begin, and how good they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.errors import InputError
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.optim.losses import Huber, Poisson, Quantile, Squared
from hogwild.programs.program import Metrics
from hogwild.programs.sparse import metrics
from hogwild.programs.sparse.units import Unit

QUANTITIES = ("squared", "huber", "quantile", "poisson")
"""Losses whose targets are quantities."""
_DELTA, _LEVEL = 1.0, 0.5  # of huber and of quantile, where the user says nothing
_LARGEST = 88.0  # of a score whose exponential float32 still holds
_NOTHING = 1e-6  # the mean of counts that are all 0
_NORMAL = 1.349  # quartiles of a normal distribution are so many standard deviations apart


def loss_of(name: str, config: Any, unit: Unit | None = None) -> Any:
    """What selects the compiled code of a loss, by the options of a model; unit: in which targets are learnt."""
    if name == "huber":
        delta = _DELTA if config.huber_delta is None else config.huber_delta
        return Huber(np.float32(delta / (unit.spread if unit else 1.0)))
    if name == "quantile":
        return Quantile(np.float32(_LEVEL if config.quantile is None else config.quantile))
    return Poisson() if name == "poisson" else Squared()


def check_quantities(name: str, feed: Feed) -> None:
    """Raise InputError for words, and for a target that the loss knows no chance for."""
    if feed.labels:
        raise InputError(f"{feed.source}: the labels are words, and the {name} loss needs numbers; use logistic.")
    targets = feed.samples.targets
    if name == "poisson" and len(targets) and float(targets.min()) < 0:
        row = int(np.argmax(targets < 0))
        raise InputError(f"{feed.place(row)}: the target is {targets[row]:g}, and the poisson loss is for counts, which"
                         " are not negative; correct it, or use squared or huber.")  # fmt: skip


def predicted(name: str, scores: Floats) -> Floats:
    """The quantities that scores stand for: of poisson their exponentials, else themselves."""
    if name != "poisson":
        return scores
    return np.exp(np.minimum(scores.astype(np.float64), _LARGEST)).astype(np.float32)


def quantile_of(values: Floats, weight: Floats, level: float) -> float:
    """The least value that at least this share of the weight does not lie above.

    >>> quantile_of(np.array([3.0, 1.0, 2.0], np.float32), np.array([1.0, 1.0, 2.0], np.float32), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order], dtype=np.float64)
    return float(values[order[min(int(np.searchsorted(below, level * below[-1])), len(order) - 1)]])


def start_of(loss: Any, targets: Floats, importance: Floats) -> float:
    """The best score for all rows alike, at which the bias begins; 0 with the squared loss, which soon finds it."""
    if isinstance(loss, Squared) or not len(targets):
        return 0.0
    weight = importance if float(importance.sum()) > 0 else np.ones_like(importance)
    if isinstance(loss, Poisson):
        return math.log(max(metrics.mean(targets, weight), _NOTHING))
    return quantile_of(targets, weight, float(loss.level) if isinstance(loss, Quantile) else 0.5)


def unit_of(loss: Any, targets: Floats, importance: Floats) -> Unit:
    """The unit that dense layers learn a quantity in. Of scores: the user's are `spread` times those, plus `mean`.

    Mean and standard deviation of the targets; where outliers are to count little, the best constant and what would be
    a standard deviation by the quartiles; of poisson the logarithm of the mean.
    """
    if isinstance(loss, Squared):
        return Unit.of(targets, importance)
    middle = start_of(loss, targets, importance)
    if isinstance(loss, Poisson):
        return Unit(middle, 1.0)
    weight = importance if float(importance.sum()) > 0 else np.ones_like(importance)
    low, high = (quantile_of(targets, weight, share) for share in (0.25, 0.75))
    spread = (high - low) / _NORMAL
    return Unit(middle, spread if spread > 1e-30 else Unit.of(targets, importance).spread)


def inward(name: str, unit: Unit, targets: Floats) -> Floats:
    """Targets as the loss wants them where scores are in a unit: of poisson by their mean."""
    if name == "poisson":
        return (targets.astype(np.float64) / math.exp(unit.mean)).astype(np.float32)
    return unit.inward(targets)


def loss_scale(name: str, unit: Unit) -> float:
    """Losses of the user's quantities by those in a unit."""
    if name == "poisson":
        return math.exp(unit.mean)
    return unit.spread if name == "quantile" else unit.spread**2


def costs(loss: Any, scores: Floats, targets: Floats) -> npt.NDArray[np.float64]:
    """The training loss of each row, as the kernels define it."""
    wide, true = scores.astype(np.float64), targets.astype(np.float64)
    away = np.abs(wide - true)
    if isinstance(loss, Huber):
        near = np.minimum(away, float(loss.delta))
        return np.asarray(near * (away - 0.5 * near))
    if isinstance(loss, Quantile):
        return np.asarray(np.where(true > wide, float(loss.level), 1.0 - float(loss.level)) * away)
    if isinstance(loss, Poisson):
        entropy = true * np.log(np.where(true > 0, true, 1.0))
        return np.asarray(np.exp(np.minimum(wide, 700.0)) - true * wide + entropy - true)
    return np.asarray(0.5 * away**2)


def quantity_metrics(loss: Any, scores: Floats, targets: Floats, weight: Floats | None) -> Metrics:
    """rmse, mae and r2 of what is predicted; of quantile also pinball (its loss) and coverage (the share of targets
    that are not above what is predicted), of poisson the mean deviance. What cannot be computed is left out."""
    values = predicted("poisson" if isinstance(loss, Poisson) else "", scores)
    found: Metrics = {
        "rmse": metrics.rmse(values, targets, weight), "mae": metrics.mae(values, targets, weight),
        "r2": metrics.r2(values, targets, weight),
    }  # fmt: skip
    if isinstance(loss, Quantile):
        found["pinball"] = metrics.mean(costs(loss, scores, targets), weight)
        found["coverage"] = metrics.mean(targets <= values, weight)
    if isinstance(loss, Poisson):
        found["deviance"] = 2.0 * metrics.mean(costs(loss, scores, targets), weight)
    return {name: value for name, value in found.items() if not math.isnan(value)}
