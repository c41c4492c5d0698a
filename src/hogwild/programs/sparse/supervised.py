"""What programs that learn labels or quantities from rows have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hogwild.arrays import AnyRows, DenseRows, Floats
from hogwild.errors import ConfigError, brief
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.optim.rules import RULES, Ftrl
from hogwild.programs.program import Metrics, Program
from hogwild.programs.sparse import metrics
from hogwild.programs.sparse.classes import (
    ClassWeight,
    Label,
    check_classes,
    class_scale,
    find_classes,
    number_targets,
    weight_pairs,
)
from hogwild.programs.sparse.evaluation import chosen_classes, classifier_metrics, loss_values, probabilities


class Supervised(Program):
    """A program over a Feed of rows with targets: two classes, many classes, or a quantity.

    Attributes
    ----------
    loss : `logistic`, `hinge` (if the program has it) or `squared`; `auto` until the first feed tells.
    classes : all labels in order, () for quantities, None before the first feed.
    """

    loss: str
    classes: tuple[Label, ...] | None = None
    class_weight: Literal["balanced"] | list[tuple[Label, float]] | None = None

    def take_classes(self, classes: Iterable[Any] | None) -> None:
        """Classes that the user names before any feed."""
        if classes is not None:
            self._learn_classes(check_classes(classes))

    def find_classes(self, feed: Feed) -> None:
        """Learn the classes from a feed, if they are not known."""
        if self.classes is None:
            self._learn_classes(find_classes(feed, self.loss))

    def _learn_classes(self, classes: tuple[Label, ...]) -> None:
        if self.loss == "auto":
            self.loss = "logistic" if classes else "squared"
        if (self.loss == "squared") != (not classes):
            raise ConfigError(f"the {self.loss} loss and {len(classes)} classes do not go together.")
        self.classes = classes

    @property
    def outputs(self) -> int:
        """Scores of a row: one for each class when there are more than two, else one."""
        return len(self.classes) if self.classes and len(self.classes) > 2 else 1

    def samples(self, feed: Feed) -> AnyRows:
        """The feed's rows; labels as -1 and 1, or as class numbers; importance times class weight."""
        if not self.classes:
            return feed.samples
        numbers = number_targets(feed, self.classes)
        targets = numbers if self.outputs > 1 else 2 * numbers - 1
        scale = class_scale(feed, self.classes, self.class_weight)
        importance = feed.samples.importance
        return feed.samples._replace(
            targets=targets.astype(np.float32), importance=importance if scale is None else importance * scale[numbers]
        )

    @abstractmethod
    def scores(self, feed: Feed, threads: int = 1) -> Floats:
        """One score a row (two classes: of the second; a quantity: itself), or one a class: (rows, classes)."""

    def predict(self, feed: Feed, threads: int = 1) -> npt.NDArray[Any]:
        """Labels in the user's terms, or quantities."""
        scores = self.scores(feed, threads)
        return np.array(self.classes)[chosen_classes(scores)] if self.classes else scores

    def predict_proba(self, feed: Feed, threads: int = 1) -> npt.NDArray[np.float64]:
        """(rows, classes) in the order of `classes`."""
        if self.loss != "logistic":
            raise ConfigError(f"a model of the {self.loss} loss gives no probabilities; train one with logistic.")
        return probabilities(self.scores(feed, threads))

    def evaluate(self, feed: Feed, threads: int = 1) -> Metrics:
        """loss (the training loss, without penalties) and those of `classifier_metrics`, or rmse and mae.

        Rows count by their importance; in the loss by that times their class weight, as in training.
        """
        samples = self.samples(feed)
        scores = self.scores(feed, threads)
        found = {"loss": metrics.mean(loss_values(self.loss, scores, samples.targets), samples.importance)}
        importance = feed.samples.importance
        weight = None if bool((importance == 1).all()) else importance
        if self.classes:
            return {**found, **classifier_metrics(self.loss, scores, number_targets(feed, self.classes), weight)}
        errors = {"rmse": metrics.rmse, "mae": metrics.mae}
        return {**found, **{name: error(scores, samples.targets, weight) for name, error in errors.items()}}


def make_rule(optimizer: str, constants: Mapping[str, float], l1: float = 0.0, l2: float = 0.0) -> Any:
    """An update rule with constants by name; penalties go into FTRL, which has its own way with them."""
    kind = RULES[optimizer]
    own = {name: np.float32(value) for name, value in constants.items()}
    known = [name for name in kind._fields if name not in ("l1", "l2")]  # type: ignore[attr-defined]
    for name in own:
        if name not in known:
            raise ConfigError(f"{optimizer} has no constant {brief(name)}; it has {', '.join(known) or 'none'}.")
    if kind is Ftrl:
        own.update(l1=np.float32(l1), l2=np.float32(l2))
    return kind(**own)


def checked_weight(weight: ClassWeight) -> Literal["balanced"] | list[tuple[Label, float]] | None:
    """Class weights that the user gave."""
    if isinstance(weight, str) and weight != "balanced":
        raise ConfigError(f"class_weight is {brief(weight)}; it must be 'balanced' or a weight for each class.")
    return weight if weight is None or isinstance(weight, str) else weight_pairs(weight)


def unknown_entries(feed: Feed, features: int) -> int:
    """Entries whose feature lies beyond the model's."""
    if feed.features <= features:
        return 0
    samples = feed.samples
    if isinstance(samples, DenseRows):
        return len(feed) * (feed.features - features)
    if feed.original is None:
        return int(np.count_nonzero(samples.ids >= features))
    return int(np.count_nonzero((feed.original >= features)[samples.ids]))
