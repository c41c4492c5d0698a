"""What programs that learn labels or quantities from rows have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hogwild.arrays import AnyRows, DenseRows, Floats
from hogwild.config.options import Config
from hogwild.config.training import ClassifierTrainConfig
from hogwild.errors import ConfigError, InputError, brief
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import RULES, Ftrl
from hogwild.programs.program import Metrics
from hogwild.programs.sparse import metrics
from hogwild.programs.sparse.metrics import chosen_classes, classifier_metrics, loss_values, probabilities
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
    if loss == "squared":
        if feed.labels:
            raise InputError(f"{feed.source}: the labels are words, and the squared loss needs numbers; use logistic.")
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
                " no classes; for a regression ask for the squared loss (--loss squared), else choose the label"
                " (--label)."
            )
        if len(distinct) > MOST:
            raise InputError(
                f"{feed.source}: {len(distinct)} different targets are too many for classes (at most {MOST}); "
                "use the squared loss for quantities."
            )
        found = tuple(plain(value) for value in distinct)
    if len(feed) >= _SEVERAL and len(found) >= _MOSTLY * len(feed):
        raise InputError(
            f"{feed.source}: there are {len(found):,} different labels in {len(feed):,} rows, such as"
            f" {brief(found[0])}: nearly every row has its own, and nothing can be learnt from it. Choose another label"
            " (--label)"
            + ("." if feed.labels else ", or the squared loss (--loss squared) for quantities.")
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
    loss : `logistic`, `hinge` (if the program has it) or `squared`; `auto` until the first feed tells.
    classes : all labels in order, () for quantities, None before the first feed.
    """

    training = ClassifierTrainConfig
    config: Config
    loss: str = "auto"
    features: int
    constants: dict[str, float]
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

    def described(self) -> str:
        """Features, and what is predicted."""
        if self.weights is None:
            return super().described()
        what = f"{len(self.classes)} classes ({_shown(self.classes)})" if self.classes else "a quantity"
        return f"{self.features:,} features, {what}, {self.loss} loss"

    @property
    def outputs(self) -> int:
        """Scores of a row: one for each class when there are more than two, else one."""
        return len(self.classes) if self.classes and len(self.classes) > 2 else 1

    def options(self) -> dict[str, Any]:
        """The arguments of an equal program, as JSON values; the loss is the one that the first feed settled."""
        weight = self.class_weight
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self.config).items()}
        return {
            **given, **({"loss": self.loss} if "loss" in given else {}),
            "class_weight": weight if weight is None or isinstance(weight, str) else [list(pair) for pair in weight],
            "features": self.features, "classes": None if self.classes is None else list(self.classes),
            "constants": self.constants,
        }  # fmt: skip

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
    def score_feed(self, feed: Feed, threads: int) -> Floats:
        """What `scores` gives, of a feed that fits."""

    def scores(self, data: Any, threads: int = 1) -> Floats:
        """One score a row (two classes: of the second; a quantity: itself), or one a class: (rows, classes).

        data: a feed, or what `read` makes one of: a path, a frame, records, rows, texts, a matrix. The weights are read
        as they stand, in whatever order; features that the model does not know count as zero.
        """
        self.trained()
        return self.score_feed(self.read(data), threads)

    def predict(self, data: Any, threads: int = 1) -> npt.NDArray[Any]:
        """Labels in the user's terms, or quantities. data: as for `scores`."""
        scores = self.scores(data, threads)
        return np.array(self.classes)[chosen_classes(scores)] if self.classes else scores

    def predict_proba(self, data: Any, threads: int = 1) -> npt.NDArray[np.float64]:
        """(rows, classes) in the order of `classes`. data: as for `scores`."""
        if self.loss != "logistic":
            raise ConfigError(f"a model of the {self.loss} loss gives no probabilities; train one with logistic.")
        return probabilities(self.scores(data, threads))

    @abstractmethod
    def score_row(self, row: Any) -> Floats:
        """The scores of one row, as its data has it: one, or one a class."""

    def label_of(self, scores: Floats) -> Label:
        """The label of one row by its scores, or the quantity."""
        if not self.classes:
            return float(scores[0])
        return self.classes[int(scores.argmax()) if len(scores) > 1 else int(scores[0] > 0)]

    def predict_proba_one(self, row: Any) -> dict[Label, float]:
        """The chance of each class for one row, which is given as `predict_one` takes it."""
        if self.loss != "logistic":
            raise ConfigError(f"a model of the {self.loss} loss gives no probabilities; train one with logistic.")
        scores = self.score_row(row)
        found = probabilities(scores[None, :] if len(scores) > 1 else scores)[0]
        return dict(zip(self.classes or (), found.tolist(), strict=True))

    def evaluate(self, data: Any, threads: int = 1) -> Metrics:
        """loss (the training loss, without penalties) and those of `classifier_metrics`, or rmse and mae.

        data: as for `scores`, with labels; (X, y) for those that are apart. Rows count by their importance; in the loss
        by that times their class weight, as in training.
        """
        self.trained()
        feed = self.read(data, labels=True)
        samples = self.samples(feed)
        scores = self.score_feed(feed, threads)
        targets = samples.targets if self.classes else feed.samples.targets  # a quantity is in the user's unit
        found = {"loss": metrics.mean(loss_values(self.loss, scores, targets), samples.importance)}
        importance = feed.samples.importance
        weight = None if bool((importance == 1).all()) else importance
        if self.classes:
            return {**found, **classifier_metrics(self.loss, scores, number_targets(feed, self.classes), weight)}
        errors = {"rmse": metrics.rmse, "mae": metrics.mae}
        return {**found, **{name: error(scores, targets, weight) for name, error in errors.items()}}


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
