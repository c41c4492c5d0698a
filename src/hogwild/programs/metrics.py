"""How good predictions are, as plain numbers. All take a weight a row; None stands for equal weights."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

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
    if len(scores) == 0:
        return math.nan
    order = np.argsort(scores)
    ordered = scores[order]
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))  # of each run of equal scores
    if weight is None:
        ups = np.cumsum(positive[order])[last].astype(np.float64)
        downs = (last + 1).astype(np.float64) - ups
    else:
        heavy = weight[order].astype(np.float64)
        is_up = positive[order]
        ups = np.cumsum(heavy * is_up)[last]
        downs = np.cumsum(heavy * ~is_up)[last]
    if ups[-1] <= 0 or downs[-1] <= 0:
        return math.nan
    # Positives of a run stand above all negatives of lower runs and beside half of their own.
    below = np.append(0.0, downs[:-1])
    return float(np.diff(ups, prepend=0.0) @ (below + downs) / (2.0 * ups[-1] * downs[-1]))


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


def rmse(predicted: Array, true: Array, weight: Array | None = None) -> float:
    """Root of the mean squared error."""
    return math.sqrt(mean((predicted.astype(np.float64) - true) ** 2, weight))
