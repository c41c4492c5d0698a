"""How well the truth itself does on rows that were made from it: what no model beats, but by luck.

Chances are multiples of 1 / levels, and labels are drawn from these very chances. So counting rows by level is enough
for exact figures of any number of rows, in the same memory.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

_LEVELS = 1 << 20  # over all classes


def levels_for(classes: int) -> int:
    """Steps of the chance of one class: a power of two."""
    return _LEVELS if classes == 2 else _LEVELS >> (classes - 1).bit_length()


def drawn_labels(chances: Doubles, random: np.random.Generator) -> tuple[Longs, Longs]:
    """Levels and labels of rows: (rows, classes) in whole steps that sum to all, and a class each drawn from them.

    chances: of the second of two classes, one a row; or one a row and class.
    """
    classes = 2 if chances.ndim == 1 else chances.shape[1]
    steps = levels_for(classes)
    # Sums are rounded, not chances, so that those of a row make one.
    sums = (1.0 - chances)[:, None] if chances.ndim == 1 else np.cumsum(chances[:, :-1], axis=1)
    ends = np.full((len(chances), classes), steps, np.int64)
    ends[:, :-1] = np.rint(sums * steps)
    labels = (random.integers(0, steps, len(chances))[:, None] >= ends[:, :-1]).sum(axis=1)
    return np.diff(ends, axis=1, prepend=0), labels.astype(np.int64)


class Truth:
    """Figures of the rows made so far.

    Two of each: `bayes` is expected under the true chances of these rows, whatever labels come out; `reached` is of
    the labels that did. The expected AUC is the expected number of pairs in the right order by that of all pairs.
    """

    def __init__(self, classes: int = 2) -> None:
        self.rows = 0
        self.nonzeros = 0
        self.counts = np.zeros(classes, np.int64)
        """Rows of each class."""
        self.right = 0
        self.log_loss = 0.0
        # Of two classes one is enough.
        self._first = 1 if classes == 2 else 0
        shape = (classes - self._first, levels_for(classes) + 1)
        self._rows, self._hits = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._expected = np.zeros(2)  # right rows and log loss

    @property
    def positive(self) -> int:
        """Rows of the second of two classes."""
        return int(self.counts[1])

    def add(self, levels: Longs, labels: Longs, nonzeros: int) -> None:
        """Count a run of rows."""
        rows, classes = levels.shape
        chances = levels / (self._rows.shape[1] - 1)
        chosen = chances[np.arange(rows), labels]
        self.rows += rows
        self.nonzeros += nonzeros
        self.counts += np.bincount(labels, minlength=classes)
        self.right += int((chances.argmax(axis=1) == labels).sum())
        self.log_loss -= float(np.log(chosen).sum())
        self._expected += chances.max(axis=1).sum(), -(chances * np.log(np.maximum(chances, 1e-300))).sum()
        for k, (all_rows, hits) in enumerate(zip(self._rows, self._hits, strict=True), self._first):
            np.add.at(all_rows, levels[:, k], 1)
            np.add.at(hits, levels[labels == k, k], 1)

    def bayes(self) -> dict[str, float]:
        """The best accuracy, log loss and AUC to hope for: expected under the true chances of these rows."""
        right, loss = (float(total / self.rows) for total in self._expected)
        return _named(right, loss, np.array([_expected_auc(rows) for rows in self._rows]))

    def reached(self) -> dict[str, float]:
        """What the true chances reach on the labels that were drawn."""
        areas = [_auc(hits, rows - hits) for rows, hits in zip(self._rows, self._hits, strict=True)]
        return _named(self.right / self.rows, self.log_loss / self.rows, np.array(areas))


def _named(accuracy: float, loss: float, areas: Doubles) -> dict[str, float]:
    """Figures by name; the AUC of several classes is the mean of each against the rest, where there are both."""
    found = {"accuracy": accuracy, "logloss": loss}
    if not np.isnan(areas).all():
        found["auc"] = float(np.nanmean(areas))
    return found


def _expected_auc(rows: Longs) -> float:
    chances = np.arange(len(rows)) / (len(rows) - 1)
    ups, downs = rows * chances, rows * (1 - chances)
    own = float((ups * (1 - chances)).sum())  # a row is no pair with itself
    return _auc(ups, downs, own)


def _auc(ups: npt.NDArray[np.number], downs: npt.NDArray[np.number], own: float = 0.0) -> float:
    """Share of pairs in the right order, ties half; positives and negatives by level."""
    pairs = float(ups.sum()) * float(downs.sum()) - own
    if pairs <= 0:
        return math.nan
    below = np.cumsum(downs) - 0.5 * downs
    return float((ups @ below - 0.5 * own) / pairs)
