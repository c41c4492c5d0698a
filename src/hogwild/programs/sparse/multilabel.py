"""Rows with several labels: sets in the classes of a model, the labels that scores promise, and how good those are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import Floats, Ids, Offsets
from hogwild.errors import ConfigError, InputError, brief
from hogwild.feeds.sparse.feed import Feed
from hogwild.programs.program import Metrics

Flags = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]

_CELLS = 1 << 22  # scores that are looked at together


class Choice(NamedTuple):
    """Which labels of a row are meant: of the `top` best (0: of all) those whose chance is at least `threshold`; by
    default 0.5 where any number may be, and 0 of the best ones."""

    top: int = 0
    threshold: float | None = None

    @property
    def least(self) -> float:
        """The chance that is needed."""
        return (0.0 if self.top else 0.5) if self.threshold is None else self.threshold

    def check(self) -> Choice:
        """ConfigError for a choice that cannot be."""
        if self.top < 0:
            raise ConfigError(f"top is {self.top}; it must be at least 1, or 0 for any number of labels.")
        if not 0 <= self.least <= 1:
            raise ConfigError(f"threshold is {self.threshold}; it is a chance between 0 and 1.")
        return self


class ClassSets(NamedTuple):
    """Sets of classes: the classes of set s are labels[offsets[s]:offsets[s + 1]], in rising order."""

    offsets: Offsets
    labels: Ids

    def flags(self, numbers: npt.NDArray[np.int64], classes: int) -> Flags:
        """(rows, classes): whether a row, whose set has this number, has the class."""
        found = np.zeros((len(numbers), classes), np.bool_)
        lengths = np.diff(self.offsets)[numbers]
        rows = np.repeat(np.arange(len(numbers)), lengths)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found[rows, self.labels[np.repeat(self.offsets[numbers], lengths) + within]] = True
        return found


NO_SETS = ClassSets(np.zeros(1, np.int64), np.zeros(0, np.int32))


def class_sets(feed: Feed, known: Mapping[str, int], spelled: Mapping[str, str]) -> ClassSets:
    """The sets of a feed in the classes of a model. known: number of each class; spelled: that of each label there."""
    numbers = [known.get(spelled[label], -1) for label in feed.labels]
    sets = [sorted(numbers[place] for place in each) for each in feed.sets]
    if any(each and each[0] < 0 for each in sets):
        label = next(name for name, number in zip(feed.labels, numbers, strict=True) if number < 0)
        raise InputError(f"{feed.source}: the label {brief(label)} is not one of the model's; train on data that holds"
                         " all labels.")  # fmt: skip
    offsets = np.concatenate(([0], np.cumsum([len(each) for each in sets]))).astype(np.int64)
    return ClassSets(offsets, np.array([label for each in sets for label in each], np.int32))


def sigmoid(scores: Floats) -> Doubles:
    """The chance of each label for itself."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -scores.astype(np.float64))), np.float64)


def chosen_labels(chances: Doubles, choice: Choice) -> Iterator[npt.NDArray[np.intp]]:
    """The labels of each row that a choice means, the best first; of equal ones the first."""
    for row in chances:
        order = np.argsort(-row, kind="stable")[: choice.top or None]
        yield order[row[order] >= choice.least]


def set_losses(loss: str, scores: Floats, there: Flags) -> Doubles:
    """The training loss of each row: the sum over labels of each for itself."""
    margins = np.where(there, 1.0, -1.0) * scores.astype(np.float64)
    each = np.logaddexp(0.0, -margins) if loss == "logistic" else np.maximum(0.0, 1.0 - margins)
    return np.asarray(each.sum(axis=1), np.float64)


class Truth(NamedTuple):
    """What rows really have: the number of the set of each, the sets, and how much a row weighs."""

    numbers: npt.NDArray[np.int64]
    sets: ClassSets
    weight: Doubles


def label_metrics(loss: str, scores: Floats, truth: Truth, chances: Doubles, choice: Choice) -> Metrics:
    """loss; accuracy (rows whose labels are all right, and no others); precision, recall and f1 over all labels of all
    rows (micro), and the means of those of each label (macro_…), 0 for labels of which there is nothing to tell; p@K
    and r@K of the K best labels of rows that have labels, as fastText's `test` has them.

    chances: what labels are chosen by.
    """
    classes = scores.shape[1]
    free = choice._replace(top=0)
    sums = np.zeros((3, classes))  # right, predicted, there
    total = exact = 0.0
    top = _Top(choice)
    for first in range(0, len(scores), max(1, _CELLS // classes)):
        part = slice(first, first + max(1, _CELLS // classes))
        there, weight = truth.sets.flags(truth.numbers[part], classes), truth.weight[part]
        predicted = chances[part] >= free.least
        sums += [weight @ (predicted & there), weight @ predicted, weight @ there]
        total += float(weight @ set_losses(loss, scores[part], there))
        exact += float(weight @ (predicted == there).all(axis=1))
        top.add(chances[part], there, weight)
    heavy = float(truth.weight.sum()) or np.nan
    micro = _shares(sums.sum(axis=1)[:, None])
    macro = _shares(sums)
    names = ("precision", "recall", "f1")
    found: Metrics = {"loss": total / heavy, "accuracy": exact / heavy}
    found |= {name: float(value[0]) for name, value in zip(names, micro, strict=True)}
    found |= {f"macro_{name}": float(value.mean()) for name, value in zip(names, macro, strict=True)}
    return {**found, **top.metrics()}


def _shares(sums: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Precision, recall and F of right, predicted and real ones; 0 where there are none."""
    right, predicted, there = sums

    def share(part: Doubles, whole: Doubles) -> Doubles:
        return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)

    return share(right, predicted), share(right, there), share(2 * right, predicted + there)


class _Top:
    """Precision and recall of the best labels, over rows that have labels."""

    def __init__(self, choice: Choice) -> None:
        self._choice = Choice(choice.top or 1, choice.threshold)
        self._sums = np.zeros(3)

    def add(self, chances: Doubles, there: Flags, weight: Doubles) -> None:
        """Some rows."""
        most = min(self._choice.top, chances.shape[1])
        best = np.argsort(-chances, axis=1, kind="stable")[:, :most]
        some: Flags = np.any(there, axis=1)
        called = (np.take_along_axis(chances, best, 1) >= self._choice.least) & some[:, None]
        right = np.take_along_axis(there, best, 1) & called
        self._sums += [weight @ right.sum(axis=1), weight @ called.sum(axis=1), weight @ there.sum(axis=1)]

    def metrics(self) -> Metrics:
        """By name."""
        precision, recall, _ = _shares(self._sums[:, None])
        return {f"p@{self._choice.top}": float(precision[0]), f"r@{self._choice.top}": float(recall[0])}
