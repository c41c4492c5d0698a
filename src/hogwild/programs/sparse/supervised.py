"""What programs that learn labels or quantities from rows have in common."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from hogwild.arrays import AnyRows, DenseRows, Floats
from hogwild.config.options import Config
from hogwild.config.training import ClassifierTrainConfig
from hogwild.errors import ConfigError, InputError, brief
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import RULES, Ftrl
from hogwild.programs.program import Metrics, Pair
from hogwild.programs.sparse import metrics
from hogwild.programs.sparse.metrics import chosen_classes, classifier_metrics, loss_values, probabilities
from hogwild.programs.sparse.multilabel import (
    Choice,
    ClassSets,
    Truth,
    chosen_labels,
    class_sets,
    label_metrics,
    sigmoid,
)
from hogwild.programs.sparse.quantities import QUANTITIES, check_quantities, costs, loss_of, predicted, quantity_metrics
from hogwild.programs.sparse.reading import ReadingProgram

# -- Labels in the user's terms and the class numbers that kernels see ------------------------------------------------


Label = str | int | float
ClassWeight = Mapping[Any, float] | Sequence[tuple[Any, float]] | Literal["balanced"] | None
Numbers = npt.NDArray[np.int64]

MOST = 1000  # distinct numbers that are still taken for classes
_SEVERAL, _MOSTLY = 30, 0.9  # rows, and share of them, from which on it means something that labels differ
_SHOWN = 10
_LARGEST = 2.0**53  # up to here float64 tells whole numbers apart


def find_classes(feed: Feed, loss: str) -> tuple[Label, ...]:
    """The classes of a feed, in order; empty when its targets are quantities.

    With `auto`, whole numbers of which there are at most a thousand different ones are classes. Quantities must be
    asked for: a wrong column must not become a regression.
    """
    if loss in QUANTITIES:
        check_quantities(loss, feed)
        return ()
    if feed.labels:
        found: tuple[Label, ...] = feed.labels
    else:
        distinct = np.unique(feed.samples.targets)
        whole = bool((distinct == np.round(distinct)).all())
        if loss == "auto" and (not whole or len(distinct) > MOST):
            example = ", ".join(f"{value:g}" for value in distinct[:3])
            raise InputError(
                f"{feed.source}: the labels are {len(distinct):,} different numbers ({example}, …), so quantities and"
                " no classes; for a regression ask for the squared loss (--loss squared, or hogwild train"
                " regressor), else choose the label (--label)."
            )
        if len(distinct) > MOST:
            raise InputError(
                f"{feed.source}: {len(distinct)} different targets are too many for classes (at most {MOST}); "
                "use the squared loss for quantities."
            )
        found = tuple(plain(value) for value in distinct)
    if len(feed) >= _SEVERAL and len(found) >= _MOSTLY * len(feed):
        remedy = ", or for quantities the squared loss (--loss squared, or hogwild train regressor)"
        quantities = "" if feed.labels else remedy
        raise InputError(
            f"{feed.source}: there are {len(found):,} different labels in {len(feed):,} rows, such as"
            f" {brief(found[0])}: nearly every row has its own, and nothing can be learnt from it. Choose another label"
            f" (--label){quantities}."
        )
    if len(found) < 2:
        only = f"only the class {brief(found[0])}" if found else "no class"
        raise InputError(f"{feed.source}: there is {only}; a classifier needs samples of at least two classes.")
    return found


def plain(value: Any) -> Label:
    """A label as a JSON value: whole numbers are written without a point."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)) or float(value).is_integer():
        return int(value)
    return float(value)


def check_classes(classes: Iterable[Any]) -> tuple[Label, ...]:
    """Classes that the user gave."""
    found = tuple(plain(value) for value in classes)
    words = sum(isinstance(label, str) for label in found)
    if words not in (0, len(found)) or not all(isinstance(label, str) or abs(label) <= _LARGEST for label in found):
        raise ConfigError(f"classes are {_shown(found)}; give texts, or numbers of at most 2^53.")
    if len(found) == 1 or len(set(found)) < len(found):
        raise ConfigError(f"classes are {_shown(found)}; give at least two, each once.")
    return found


def number_targets(feed: Feed, classes: tuple[Label, ...]) -> Numbers:
    """The class number of each row; InputError names the first row whose label is not among the classes."""
    targets = feed.samples.targets
    if feed.labels:
        known = _numbers_of(classes)
        of_label = np.array([known.get(_spelled(label), -1) for label in feed.labels], np.int64)
        found = of_label[targets.astype(np.int64)]
    else:
        found = _number_numbers(targets, classes)
    if len(found) and int(found.min()) < 0:
        row = int(np.argmin(found))
        label = feed.labels[int(targets[row])] if feed.labels else plain(targets[row])
        raise InputError(
            f"{feed.place(row)}: the label {brief(label)} is not one of the classes {_shown(classes)}; "
            "correct it, or train on data that holds all classes."
        )
    return found


def class_scale(feed: Feed, classes: tuple[Label, ...], weight: ClassWeight) -> Floats | None:
    """What the importance of the samples of each class is multiplied by; None for nothing.

    `balanced`: rows / (classes * rows of the class), so that every class weighs the same.
    """
    if not classes or weight is None or (not isinstance(weight, str) and len(weight) == 0):
        return None
    if isinstance(weight, str):
        counts = np.bincount(number_targets(feed, classes), minlength=len(classes))
        return (len(feed) / (len(classes) * np.maximum(counts, 1))).astype(np.float32)
    scale = np.ones(len(classes), np.float32)
    known = _numbers_of(classes)
    for label, factor in weight_pairs(weight):
        if _spelled(label) not in known:
            raise ConfigError(f"class_weight names {brief(label)}, which is not one of the classes {_shown(classes)}.")
        scale[known[_spelled(label)]] = factor
    return scale


def weight_pairs(weight: Mapping[Any, float] | Sequence[tuple[Any, float]]) -> list[tuple[Label, float]]:
    """Class weights as pairs, which unlike a mapping JSON can hold; checked."""
    items = weight.items() if isinstance(weight, Mapping) else weight
    pairs = [(plain(label), float(factor)) for label, factor in items]
    for label, factor in pairs:
        if not 0 <= factor <= 1e30:
            raise ConfigError(f"the weight of class {brief(label)} is {factor}; it must lie between 0 and 1e30.")
    return pairs


def _number_numbers(targets: Floats, classes: tuple[Label, ...]) -> Numbers:
    pairs = sorted((value, k) for k, name in enumerate(classes) if (value := _number(name)) is not None)
    if not pairs:
        return np.full(len(targets), -1, np.int64)
    values = np.array([value for value, _ in pairs], np.float32)
    place = np.minimum(np.searchsorted(values, targets), len(values) - 1)
    numbers = np.array([k for _, k in pairs], np.int64)[place]
    return np.where(values[place] == targets, numbers, -1)


def _number(label: Label) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None


def _numbers_of(classes: tuple[Label, ...]) -> dict[str, int]:
    return {_spelled(label): k for k, label in enumerate(classes)}


def _spelled(label: Any) -> str:
    """One spelling for 1, 1.0 and "1": the same class read from different kinds of file."""
    number = _number(label)
    return str(label) if number is None else repr(number)


def _shown(classes: Sequence[Label]) -> str:
    names = ", ".join(brief(label) for label in classes[:_SHOWN])
    return names + (f" … ({len(classes)} in all)" if len(classes) > _SHOWN else "")


class Supervised(ReadingProgram):
    """A program over a Feed of rows with targets: two classes, many classes, or a quantity.

    Attributes
    ----------
    loss : `logistic`, `hinge` (if the program has it), or one of `QUANTITIES`; `auto` until the first feed tells.
    classes : all labels in order, () for quantities, None before the first feed.
    several : whether a row may have several of them, or none: then there is one score for each.
    learns_sets : whether the program can learn that.
    """

    training = ClassifierTrainConfig
    config: Config
    loss: str = "auto"
    features: int
    constants: dict[str, float]
    classes: tuple[Label, ...] | None = None
    several = False
    learns_sets = False
    class_weight: Literal["balanced"] | list[tuple[Label, float]] | None = None

    def take_classes(self, classes: Iterable[Any] | None) -> None:
        """Classes that the user names before any feed."""
        if classes is not None:
            self._learn_classes(check_classes(classes))

    def find_classes(self, feed: Feed) -> None:
        """Learn the classes from a feed, if they are not known, and whether rows have several."""
        if not self.learns_sets:
            feed.one_label(f"this model ({self.name.replace('_', ' ')})")
        if self.classes is None:
            found = find_classes(feed, self.loss)
            self.several = self.several or bool(feed.sets)
            self._learn_classes(found)
        elif feed.sets and not self.several:
            raise InputError(f"{feed.source}: rows have several labels, but the model was made for one a row; train a"
                             " new one.")  # fmt: skip
        if self.several and self.class_weight is not None:
            raise ConfigError("rows have several labels, and classes weigh the same then; leave out class_weight"
                              " (--class-weight, --balanced).")  # fmt: skip

    def for_part(self, feed: Feed) -> Supervised:
        """With weights of classes that are those of all rows."""
        known = copy.copy(self)
        if isinstance(self.class_weight, str) and self.classes:
            scale = class_scale(feed, self.classes, self.class_weight)
            assert scale is not None
            known.class_weight = list(zip(self.classes, map(float, scale), strict=True))
        return known

    def sets_of(self, feed: Feed) -> tuple[ClassSets, Numbers]:
        """The sets of labels that rows of a feed have, in the classes of the model, and the number of each row's."""
        assert self.classes is not None
        if feed.sets:
            spelled = {label: _spelled(label) for label in feed.labels}
            return class_sets(feed, _numbers_of(self.classes), spelled), feed.samples.targets.astype(np.int64)
        alone = np.arange(len(self.classes) + 1)
        return ClassSets(alone, alone[:-1].astype(np.int32)), number_targets(feed, self.classes)

    def _learn_classes(self, classes: tuple[Label, ...]) -> None:
        if self.loss == "auto":
            self.loss = "logistic" if classes else "squared"
        if (self.loss in QUANTITIES) != (not classes):
            raise ConfigError(f"the {self.loss} loss and {len(classes)} classes do not go together.")
        self.classes = classes

    def described(self) -> str:
        """Features, and what is predicted."""
        if self.weights is None:
            return super().described()
        noun = "labels, several a row," if self.several else "classes"
        what = f"{len(self.classes)} {noun} ({_shown(self.classes)})" if self.classes else "a quantity"
        return f"{self.features:,} features, {what}, {self.loss} loss"

    @property
    def outputs(self) -> int:
        """Scores of a row: one for each class when there are more than two, else one."""
        return len(self.classes) if self.classes and (len(self.classes) > 2 or self.several) else 1

    counted: ClassVar[Mapping[str, str]] = {"weight": "features", "embedding": "features"}

    def expect(self, old: Any, feed: Feed) -> None:
        """The classes of an old program, and after them those of the feed that are new."""
        self.loss = old.loss
        if not old.classes:
            self._learn_classes(())
            return
        there: tuple[Label, ...] = feed.labels or tuple(plain(value) for value in np.unique(feed.samples.targets))
        known = _numbers_of(old.classes)
        new = tuple(label for label in there if _spelled(label) not in known)
        if new and len(new) + len(old.classes) > MOST:
            raise InputError(f"{feed.source}: there are {len(new):,} labels that the model does not know, such as "
                             f"{brief(new[0])}; choose the label (--label).")  # fmt: skip
        self._learn_classes((*old.classes, *new))

    def class_axis(self) -> Any:
        """What the outputs are called."""
        classes = self.classes or ("",)
        return Pair(classes, 1.0 if self.loss == "hinge" else 0.5) if self.outputs == 1 else classes

    def options(self) -> dict[str, Any]:
        """The arguments of an equal program, as JSON values; the loss is the one that the first feed settled."""
        weight = self.class_weight
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self.config).items()}
        return {
            **given, **({"loss": self.loss} if "loss" in given else {}),
            "class_weight": weight if weight is None or isinstance(weight, str) else [list(pair) for pair in weight],
            "features": self.features, "classes": None if self.classes is None else list(self.classes),
            "constants": self.constants, **({"several": True} if self.several else {}),
        }  # fmt: skip

    def samples(self, feed: Feed) -> AnyRows:
        """The feed's rows; labels as -1 and 1, or as class numbers; importance times class weight."""
        if not self.classes:
            check_quantities(self.loss, feed)
            return feed.samples
        if self.several:
            return feed.samples._replace(targets=self.sets_of(feed)[1].astype(np.float32))
        numbers = number_targets(feed, self.classes)
        targets = numbers if self.outputs > 1 else 2 * numbers - 1
        scale = class_scale(feed, self.classes, self.class_weight)
        importance = feed.samples.importance
        return feed.samples._replace(
            targets=targets.astype(np.float32), importance=importance if scale is None else importance * scale[numbers]
        )

    @property
    def best_by(self) -> str:
        """Accuracy of classes; RMSE of quantities; the loss where it says something else than these: of weighed
        classes, and of quantities by another loss than the squared."""
        if self.loss in QUANTITIES:
            return "rmse" if self.loss == "squared" else "loss"
        return "loss" if self.class_weight else "accuracy"

    @property
    def judged_by(self) -> tuple[str, ...]:
        """Known with the classes."""
        if self.loss in QUANTITIES:
            return ("loss", "rmse")
        several = bool(self.classes) and self.outputs > 1
        return ("loss", "accuracy", "auc") if several else ("loss", "accuracy", "auc", "f1")

    @abstractmethod
    def score_feed(self, feed: Feed, threads: int) -> Floats:
        """What `scores` gives, of a feed that fits."""

    def scores(self, data: Any, threads: int = 1) -> Floats:
        """One score a row (two classes: of the second; a quantity: itself, with the poisson loss its logarithm), or one
        a class: (rows, classes).

        data: a feed, or what `read` makes one of: a path, a frame, records, rows, texts, a matrix. The weights are read
        as they stand, in whatever order; features that the model does not know count as zero.
        """
        self.trained()
        return self.score_feed(self.read(data), threads)

    def predict(self, data: Any, threads: int = 1) -> npt.NDArray[Any]:
        """Labels in the user's terms, or quantities; of several labels a row, tuples, the best first: see
        `predict_labels`. data: as for `scores`."""
        if self.several:
            found = np.empty(len(rows := self.predict_labels(data, threads=threads)), object)
            found[:] = [tuple(label for label, _ in row) for row in rows]
            return found
        scores = self.scores(data, threads)
        return np.array(self.classes)[chosen_classes(scores)] if self.classes else predicted(self.loss, scores)

    def predict_proba(self, data: Any, threads: int = 1) -> npt.NDArray[np.float64]:
        """(rows, classes) in the order of `classes`; several labels a row each for itself. data: as for `scores`."""
        self._check_chances()
        return self._chances(self.scores(data, threads))

    def _check_chances(self) -> None:
        if self.loss != "logistic":
            raise ConfigError(f"a model of the {self.loss} loss gives no probabilities; train one with logistic.")

    def _chances(self, scores: Floats) -> npt.NDArray[np.float64]:
        """What labels are chosen by: chances; of other losses numbers in the order of the scores, 0.5 for 0."""
        if self.loss == "logistic":
            return sigmoid(scores) if self.several else probabilities(scores)
        wide = (scores if scores.ndim == 2 else np.column_stack([-scores, scores])).astype(np.float64)
        return np.asarray(0.5 + 0.5 * wide / (1.0 + np.abs(wide)), np.float64)

    def predict_labels(
        self, data: Any, top: int = 0, threshold: float | None = None, threads: int = 1
    ) -> list[list[tuple[Label, float]]]:
        """Of each row the labels, with their chances, the best first. data: as for `scores`.

        top: so many at the most, 0 for any number; threshold: the least chance, by default 0.5, or 0 with `top`. Of
        the hinge loss there are no chances, but numbers in the order of the scores, 0.5 for a score of 0.
        """
        choice = Choice(top, threshold).check()
        if not self.classes:
            raise ConfigError("this model predicts quantities, which are no labels; use predict.")
        if threshold is not None:
            self._check_chances()
        chances = self._chances(self.scores(data, threads))
        found = zip(chances, chosen_labels(chances, choice), strict=True)
        return [[(self.classes[k], float(row[k])) for k in order.tolist()] for row, order in found]

    @abstractmethod
    def score_row(self, row: Any) -> Floats:
        """The scores of one row, as its data has it: one, or one a class."""

    def label_of(self, scores: Floats) -> Any:
        """The label of one row by its scores, or the quantity; of several labels a row, a tuple of them."""
        if not self.classes:
            return float(predicted(self.loss, scores)[0])
        if self.several:
            return tuple(self.classes[k] for k in np.argsort(-scores, kind="stable").tolist() if scores[k] >= 0)
        return self.classes[int(scores.argmax()) if len(scores) > 1 else int(scores[0] > 0)]

    def predict_proba_one(self, row: Any) -> dict[Label, float]:
        """The chance of each class for one row, which is given as `predict_one` takes it."""
        self._check_chances()
        scores = self.score_row(row)
        found = self._chances(scores[None, :] if len(scores) > 1 else scores)[0]
        return dict(zip(self.classes or (), found.tolist(), strict=True))

    def evaluate(self, data: Any, threads: int = 1, top: int = 0, threshold: float | None = None) -> Metrics:
        """loss (the training loss, without penalties) and those of `classifier_metrics`, or of `quantity_metrics`; of
        several labels a row those of `label_metrics`. top, threshold: as for `predict_labels`; p@K and r@K are of them.

        data: as for `scores`, with labels; (X, y) for those that are apart. Rows count by their importance; in the loss
        by that times their class weight, as in training.
        """
        self.trained()
        feed = self.read(data, labels=True)
        choice = Choice(top, threshold).check()
        if self.several:
            return self._evaluate_sets(feed, choice, self.score_feed(feed, threads))
        samples = self.samples(feed)
        scores = self.score_feed(feed, threads)
        importance = feed.samples.importance
        weight = None if bool((importance == 1).all()) else importance
        if self.classes:
            found = {"loss": metrics.mean(loss_values(self.loss, scores, samples.targets), samples.importance)}
            found |= classifier_metrics(self.loss, scores, number_targets(feed, self.classes), weight)
            if choice != Choice():
                more = self._evaluate_sets(feed, choice, scores)
                found |= {name: value for name, value in more.items() if "@" in name}
            return found
        if choice != Choice():
            raise ConfigError("top and threshold are for classes, and this model predicts quantities.")
        targets, loss = feed.samples.targets, loss_of(self.loss, self.config)  # in the user's unit
        found = {"loss": metrics.mean(costs(loss, scores, targets), samples.importance)}
        return {**found, **quantity_metrics(loss, scores, targets, weight)}

    def _evaluate_sets(self, feed: Feed, choice: Choice, scores: Floats) -> Metrics:
        """How good the labels of each row are that the scores promise."""
        if choice.threshold is not None:
            self._check_chances()
        sets, numbers = self.sets_of(feed)
        truth = Truth(numbers, sets, feed.samples.importance.astype(np.float64))
        chances = self._chances(scores)
        wide = scores if scores.ndim == 2 else chances.astype(np.float32)
        return label_metrics(self.loss, wide, truth, chances, choice)


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


def rule_and_penalty(optimizer: str, constants: Mapping[str, float], l1: float, l2: float) -> tuple[Any, Any]:
    """An update rule, and the penalty that rows pay late: none beside FTRL."""
    rule = make_rule(optimizer, constants, l1, l2)
    free = isinstance(rule, Ftrl) or not (l1 or l2)
    return rule, Free() if free else Penalty(np.float32(l1), np.float32(l2))


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
