"""How good predictions are, as plain numbers. All take a weight a row; None stands for equal weights."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.programs.program import Metrics

Array = npt.NDArray[np.floating]
Classes = npt.NDArray[np.integer]
Doubles = npt.NDArray[np.float64]

_LEAST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this


def mean(values: npt.ArrayLike, weight: Array | None = None) -> float:
    """Weighted mean; NaN when there is nothing to weigh."""
    numbers = np.asarray(values, np.float64)
    total = float(len(numbers)) if weight is None else float(weight.sum(dtype=np.float64))
    if total <= 0:
        return math.nan
    return float((numbers.sum() if weight is None else numbers @ weight.astype(np.float64)) / total)


def accuracy(predicted: Classes, true: Classes, weight: Array | None = None) -> float:
    """Share of rows whose class is the predicted one."""
    return mean(predicted == true, weight)


def log_loss(probabilities: Array, true: Classes, weight: Array | None = None) -> float:
    """Mean of -log(probability of the true class), in float64; probabilities are (rows, classes)."""
    chosen = np.asarray(probabilities)[np.arange(len(true)), true].astype(np.float64)
    return mean(-np.log(np.clip(chosen, _LEAST, 1.0)), weight)


def auc(scores: Array, positive: npt.NDArray[np.bool_], weight: Array | None = None) -> float:
    """Area under the ROC curve, exactly: the share of (positive, negative) pairs in the right order, ties half.

    NaN when there are no positives or no negatives.

    Examples
    --------
    >>> import numpy as np
    >>> auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))
    0.875
    """
    if len(scores) == 0 or bool(np.isnan(scores).any()):
        return math.nan
    if scores.dtype == np.float32 and len(scores) < 1 << 32:
        ups, downs = _areas_of_keys(scores, positive, weight)
    else:
        order = np.argsort(scores)
        ups, downs = _areas_in_order(scores[order], positive[order], None if weight is None else weight[order])
    if ups[-1] <= 0 or downs[-1] <= 0:
        return math.nan
    # Positives of a run stand above all negatives of lower runs and beside half of their own.
    below = np.append(0.0, downs[:-1])
    return float(np.diff(ups, prepend=0.0) @ (below + downs) / (2.0 * ups[-1] * downs[-1]))


def _areas_of_keys(scores: Array, positive: npt.NDArray[np.bool_], weight: Array | None) -> tuple[Doubles, Doubles]:
    """The same as `_areas_in_order`, of float32 scores in any order.

    A score becomes 32 bits that are in the same order as whole numbers, with what belongs to it in the bits below:
    sorting such words is five times as fast as finding the order of floats and following it.
    """
    bits = (scores + np.float32(0)).view(np.int32)  # the sum turns -0.0 into 0.0
    keys = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64)
    if weight is None:
        words = (keys << 1) | positive
        words.sort()
        return _areas_in_order(words >> 1, (words & 1).astype(bool), None)
    words = (keys << 32) | np.arange(len(keys))
    words.sort()
    order = words & 0xFFFFFFFF
    return _areas_in_order(words >> 32, positive[order], weight[order])


def _areas_in_order(
    scores: npt.NDArray[np.number], positive: npt.NDArray[np.bool_], weight: Array | None
) -> tuple[Doubles, Doubles]:
    """Weight of all positives, and of all negatives, up to the end of each run of equal scores."""
    last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
    if weight is None:
        ups = np.cumsum(positive)[last].astype(np.float64)
        return ups, (last + 1).astype(np.float64) - ups
    heavy = weight.astype(np.float64)
    return np.cumsum(heavy * positive)[last], np.cumsum(heavy * ~positive)[last]


def macro_auc(scores: Array, true: Classes, weight: Array | None = None) -> float:
    """Mean over classes of the AUC of that class against the rest; classes that cannot be judged are left out."""
    areas = [auc(scores[:, k], true == k, weight) for k in range(scores.shape[1])]
    judged = [area for area in areas if not math.isnan(area)]
    return float(np.mean(judged)) if judged else math.nan


def precision_recall_f1(
    predicted: npt.NDArray[np.bool_], true: npt.NDArray[np.bool_], weight: Array | None = None
) -> tuple[float, float, float]:
    """Of the rows predicted positive the share that is; of the positive rows the share found; their harmonic mean.

    0 where nothing was predicted, or nothing was there to find.
    """
    heavy: Doubles = np.ones(len(true)) if weight is None else weight.astype(np.float64)
    hits, called, there = (float(heavy[rows].sum()) for rows in (predicted & true, predicted, true))
    precision = hits / called if called > 0 else 0.0
    recall = hits / there if there > 0 else 0.0
    return precision, recall, 2 * hits / (called + there) if called + there > 0 else 0.0


class Bin(NamedTuple):
    """Rows with predictions from `low` to `high`: what was predicted and what came, both as means."""

    low: float
    high: float
    rows: int
    weight: float
    predicted: float
    positive: float


def calibration(chances: Array, positive: npt.NDArray[np.bool_], weight: Array | None = None) -> float:
    """Mean prediction by the share of positives: above 1 the model promises too much. NaN without positives."""
    share = mean(positive, weight)
    return mean(chances, weight) / share if share > 0 else math.nan


def calibration_table(
    chances: Array, positive: npt.NDArray[np.bool_], weight: Array | None = None, bins: int = 10
) -> list[Bin]:
    """Predictions in bins of as many rows each, as far as equal ones allow it; bins without rows are left out.

    Examples
    --------
    >>> import numpy as np
    >>> table = calibration_table(np.array([0.1, 0.2, 0.7, 0.8]), np.array([False, False, True, True]), bins=2)
    >>> [(each.rows, round(each.predicted, 2), each.positive) for each in table]
    [(2, 0.15, 0.0), (2, 0.75, 1.0)]
    """
    if len(chances) == 0:
        return []
    wide = np.asarray(chances, np.float64)
    edges = np.quantile(wide, np.arange(bins + 1) / bins)
    places = np.searchsorted(edges[1:-1], wide)
    rows = np.bincount(places, minlength=bins)
    parts = (np.ones(len(wide)), wide, positive) if weight is None else (weight, wide * weight, positive * weight)
    weights, predicted, hits = (np.bincount(places, part, bins) for part in parts)
    return [
        Bin(float(edges[k]), float(edges[k + 1]), int(rows[k]), float(weights[k]), float(predicted[k] / weights[k]),
            float(hits[k] / weights[k]))
        for k in np.flatnonzero(weights > 0)
    ]  # fmt: skip


def calibration_error(table: list[Bin]) -> float:
    """Expected calibration error: how far predicted and real shares are apart, the mean over the rows of a table."""
    total = sum(each.weight for each in table)
    return sum(each.weight * abs(each.predicted - each.positive) for each in table) / total if total > 0 else math.nan


def rmse(predicted: Array, true: Array, weight: Array | None = None) -> float:
    """Root of the mean squared error."""
    return math.sqrt(mean((predicted.astype(np.float64) - true) ** 2, weight))


def mae(predicted: Array, true: Array, weight: Array | None = None) -> float:
    """Mean of the absolute errors."""
    return mean(np.abs(predicted.astype(np.float64) - true), weight)


def r2(predicted: Array, true: Array, weight: Array | None = None) -> float:
    """Share of the variance of the quantities that is explained: 1 is all, 0 what their mean does. NaN where all are
    the same."""
    wide = true.astype(np.float64)
    spread = mean((wide - mean(wide, weight)) ** 2, weight)
    return 1.0 - mean((predicted.astype(np.float64) - wide) ** 2, weight) / spread if spread > 0 else math.nan


# -- From scores to probabilities, losses and metrics; in float64 -----------------------------------------------------


def probabilities(scores: Floats) -> Doubles:
    """(rows, classes) from one score a row (of the second of two classes) or one a class."""
    wide = scores.astype(np.float64)
    if wide.ndim == 1:
        second = np.exp(-np.logaddexp(0.0, -wide))
        return np.column_stack([1.0 - second, second])
    odds = np.exp(wide - wide.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True), np.float64)


def loss_values(loss: str, scores: Floats, targets: Floats) -> Doubles:
    """The training loss of each row, as the kernels define it; targets as the kernels see them."""
    wide, true = scores.astype(np.float64), targets.astype(np.float64)
    if wide.ndim == 2:
        chosen = targets.astype(np.int64)
        if loss == "logistic":
            return np.asarray(np.logaddexp.reduce(wide, axis=1) - wide[np.arange(len(wide)), chosen], np.float64)
        sides = np.where(np.arange(wide.shape[1]) == chosen[:, None], 1.0, -1.0)
        return np.asarray(np.maximum(0.0, 1.0 - sides * wide).sum(axis=1), np.float64)
    if loss == "logistic":
        return np.asarray(np.logaddexp(0.0, -true * wide), np.float64)
    if loss == "hinge":
        return np.asarray(np.maximum(0.0, 1.0 - true * wide), np.float64)
    return np.asarray(0.5 * (wide - true) ** 2, np.float64)


def chosen_classes(scores: Floats) -> npt.NDArray[np.int64]:
    """The class number with the highest score."""
    return (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1).astype(np.int64)


def classifier_metrics(loss: str, scores: Floats, true: npt.NDArray[np.int64], weight: Floats | None) -> Metrics:
    """accuracy; logloss of a logistic model; auc (of several classes: the mean of each against the rest); for two
    classes precision, recall and f1 of the second, and of a logistic model its calibration (mean prediction by share of
    the second) and ece (expected calibration error). What cannot be computed is left out."""
    found: Metrics = {"accuracy": accuracy(chosen_classes(scores), true, weight)}
    ranking = scores
    if loss == "logistic":
        odds = probabilities(scores)
        found["logloss"] = log_loss(odds, true, weight)
        ranking = scores if scores.ndim == 1 else odds.astype(np.float32)
    if scores.ndim == 1:
        found["auc"] = auc(ranking, true == 1, weight)
        names = ("precision", "recall", "f1")
        values = precision_recall_f1(chosen_classes(scores) == 1, true == 1, weight)
        found.update(zip(names, values, strict=True))
        if loss == "logistic":
            found["calibration"] = calibration(odds[:, 1], true == 1, weight)
            found["ece"] = calibration_error(calibration_table(odds[:, 1], true == 1, weight))
    else:
        found["auc"] = macro_auc(ranking, true, weight)
    return {name: value for name, value in found.items() if not math.isnan(value)}
