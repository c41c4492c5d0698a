"""From scores to probabilities, losses and metrics; in float64."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats
from hogwild.programs.program import Metrics
from hogwild.programs.sparse import metrics

Doubles = npt.NDArray[np.float64]


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


def classifier_metrics(
    loss: str, scores: Floats, true: npt.NDArray[np.int64], weight: Floats | None
) -> Metrics:
    """accuracy; logloss of a logistic model; auc (of several classes: the mean of each against the rest); for two
    classes precision, recall and f1 of the second, and of a logistic model its calibration (mean prediction by share of
    the second) and ece (expected calibration error). What cannot be computed is left out."""
    found: Metrics = {"accuracy": metrics.accuracy(chosen_classes(scores), true, weight)}
    ranking = scores
    if loss == "logistic":
        odds = probabilities(scores)
        found["logloss"] = metrics.log_loss(odds, true, weight)
        ranking = scores if scores.ndim == 1 else odds.astype(np.float32)
    if scores.ndim == 1:
        found["auc"] = metrics.auc(ranking, true == 1, weight)
        names = ("precision", "recall", "f1")
        values = metrics.precision_recall_f1(chosen_classes(scores) == 1, true == 1, weight)
        found.update(zip(names, values, strict=True))
        if loss == "logistic":
            found["calibration"] = metrics.calibration(odds[:, 1], true == 1, weight)
            found["ece"] = metrics.calibration_error(metrics.calibration_table(odds[:, 1], true == 1, weight))
    else:
        found["auc"] = metrics.macro_auc(ranking, true, weight)
    return {name: value for name, value in found.items() if not math.isnan(value)}
