"""Linear models: two classes, many classes, or a quantity, from sparse or dense features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import AnyRows, Floats, Room, Table
from hogwild.config import LinearConfig
from hogwild.config.arguments import config_of, taking
from hogwild.errors import ConfigError, ModelError
from hogwild.feeds.io.parallel import in_parts
from hogwild.feeds.slots.flatten import Flattener
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.kernels.optim.losses import EachLabel, Hinge, Logistic
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.sparse.linear import ClassesTask, LinearTask, LinearWeights, score_class_rows, score_rows
from hogwild.kernels.sparse.one_text import TextTable
from hogwild.programs.saving.tensors import no_others
from hogwild.programs.sparse.multilabel import NO_SETS
from hogwild.programs.sparse.one_text import OneText, only_text
from hogwild.programs.sparse.quantities import QUANTITIES, loss_of
from hogwild.programs.sparse.supervised import ClassWeight, rule_and_penalty, unknown_entries
from hogwild.programs.sparse.tables import Tabled, named, put_together, take_apart, taken, whole_order


class _Served(NamedTuple):
    """Weights in the features' own order, of what they are and by which schema; for texts alone, what scores one, and
    the name of their column."""

    of: Any
    schema: Mapping[str, Any]
    weights: Floats
    bias: Floats
    text: OneText | None = None
    column: str = ""


_NO_SCHEMA: Mapping[str, Any] = {}
_LOSSES = {"logistic": Logistic(), "hinge": Hinge()}


@taking(LinearConfig)
class Linear(Tabled):
    """A linear model.

    Parameters
    ----------
    class_weight : weight of the samples of each class by label, or `balanced`: rows / (classes * rows of the class).
    features : least number of features; the model grows with the feeds that it is trained on.
    classes : all classes, when the first feed may not hold all of them.
    constants : constants of the update rule by name, such as {"beta1": 0.95, "beta2": 0.95} with adam.
    several : rows may have several labels, or none; a feed of such rows says so itself.

    Attributes
    ----------
    weights : what workers share, one row a feature with the update rule's memory; see `arrays` for plain numbers.
    order : feature of each row of `weights` while they are in the order of a feed; None for the features' own order.
    ignored : entries of the last scored feed whose feature the model does not know.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> feed = hogwild.feed_of(np.array([[0.0], [1.0]]), ["no", "yes"])
    >>> program = hogwild.train(hogwild.Linear(), feed, epochs=20, lr=0.5, threads=1, quiet=True)
    >>> program.predict(feed).tolist(), program.evaluate(feed)["accuracy"]
    (['no', 'yes'], 1.0)
    """

    name = "linear"
    config: LinearConfig
    unit = "nonzeros"
    learns_sets = True

    def __init__(
        self, *values: Any, class_weight: ClassWeight = None, features: int = 0, classes: Iterable[Any] | None = None,
        constants: Mapping[str, float] | None = None, several: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        config = config_of(self, LinearConfig, values, options)
        self.several = bool(several)
        self._begin(config, class_weight, features, classes, constants)
        self._sets = NO_SETS
        self._rule, self._penalty = rule_and_penalty(config.optimizer, self.constants, config.l1, config.l2)
        self._flat = Flattener()
        self._one: _Served | None = None

    # -- what the executor asks ---------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Outputs."""
        return self.outputs

    @property
    def task(self) -> LinearTask | ClassesTask:
        """Selects the compiled code."""
        loss: Any = loss_of(self.loss, self.config) if self.loss in QUANTITIES else _LOSSES[self.loss]
        loss = EachLabel(loss, *self._sets) if self.several else loss
        parts = (loss, self._rule, self._penalty, np.float32(self.config.bias))
        return LinearTask(*parts) if self.width == 1 else ClassesTask(*parts, self.width)

    def samples(self, feed: Feed) -> AnyRows:
        """Plain rows: slots make no difference here, and dense columns are features like others."""
        return super().samples(self._flat.of(feed))

    def startup(self, feed: Feed, seed: int) -> None:
        """Weights of zero, or the ones there are, in the feed's order of ids and with room for all its features."""
        self.meet(feed)
        feed = self._flat.of(feed)
        self.find_classes(feed)
        if self.several:
            self._sets = self.sets_of(feed)[0]
        rows = max(self.features, feed.features)
        order = whole_order(feed.original, feed.features, rows)
        if self.weights is None:
            table = np.zeros(rows * self.cells, np.float32)
            self.weights = LinearWeights(table, self.first_bias(feed))
        else:
            self.weights = LinearWeights(self.rearranged(rows, order), self.weights.bias)
        self.features, self.order = rows, order

    def room(self, feed: Feed) -> Room:
        """The features of the longest sample, and the bias; one score a class, or the rows of one sample."""
        longest = self._flat.of(feed).longest
        floats = self.width if self.width > 1 else self.cells * longest
        return Room(rows=longest + 1, width=self.width, floats=floats)

    def units(self, feed: Feed) -> int:
        """Nonzeros of the feed."""
        return self._flat.of(feed).nonzeros

    def tables(self) -> dict[str, Table]:
        """One row a feature, and one of biases that every visit writes."""
        return dict(zip(("table", "bias"), self._shared_as(1, self.width), strict=True))

    def watchable(self) -> Mapping[str, Any]:
        """weights: (features, outputs); bias: (outputs,); in the features' own order."""
        return {"weights": lambda: self.plain(None, self.features), "bias": self.trained().bias[: self.width]}

    # -- predicting ---------------------------------------------------------------------------------------------

    def score_feed(self, feed: Feed, threads: int) -> Floats:
        """One score a row (two classes: of the second; a quantity: itself), or one a class."""
        feed = self._flat.of(feed)
        weight = self.plain(feed.original, feed.features)
        bias = self.weights.bias[: self.width].copy() * np.float32(self.config.bias)
        self.ignored = unknown_entries(feed, self.features)
        found = np.empty((len(feed), self.width), np.float32)
        scores = found if self.width > 1 else found[:, 0]

        def score(first: int, end: int) -> None:
            if self.width > 1:
                score_class_rows(feed.samples, weight, bias, scores[first:end], first)
            else:
                score_rows(feed.samples, weight[:, 0], bias[0], scores[first:end], first)

        in_parts(len(feed), threads, score)
        return scores

    def predict_one(self, row: Any) -> Any:
        """The label of one row, or the quantity: some microseconds after the first call. Not while it trains.

        row: as the data of training has it: a dict of values by column or slot, or the values in their order; a text,
        for a model of texts; {feature: value}, or all values, where features are numbers.
        """
        return self.label_of(self.score_row(row))

    def score_row(self, row: Any) -> Floats:
        """The scores of one row."""
        if self.order is not None:
            raise ConfigError("this model is being trained; predict_one answers when training has ended.")
        one = self._served()
        if one.text is not None:
            text = row.get(one.column) if type(row) is dict else row
            if type(text) is str:
                return one.text(text)
        found = self.flat_row(row)
        picked = one.weights.take(found.ids, axis=0) if len(found.ids) else one.weights[:0]
        return np.asarray(np.asarray(found.values, np.float32) @ picked + one.bias, np.float32)

    def _served(self) -> _Served:
        """What answers for one row by the weights and the schema of now; kept for the next."""
        trained, schema = self.trained(), self.schema or _NO_SCHEMA
        one = self._one
        if one is not None and one.of is trained and one.schema is schema:
            return one
        texts = "slots" not in schema and only_text(schema)
        hashing = Hashing(**schema["hashing"]) if texts else None
        weights = self.plain(None, max(self.features, 1 << hashing.bits if hashing else 0))
        weights = weights[:, 0].copy() if self.width == 1 else weights
        bias = trained.bias[: self.width] * np.float32(self.config.bias)
        found = _Served(trained, schema, weights, bias)
        if hashing:
            table = TextTable(weights.reshape(-1, self.width), bias, counted=True, mean=False)
            found = found._replace(text=OneText(hashing, table), column=schema["text"])
        self._one = found
        return found

    # -- going on, saving ---------------------------------------------------------------------------------------

    def axes(self) -> dict[str, Sequence[Any]]:
        """Features and classes."""
        outputs = self.class_axis()
        return {"weight": (self.feature_names(), outputs), "bias": (outputs,)}

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """weight: (features,) or (features, classes); bias: (1,) or (classes,); in the features' own order.

        With `state` also what the update rule remembers of them: weight_ and bias_ followed by speed (momentum),
        squares (adagrad), mean, square, count (adam) or pull, squares (ftrl), and weight_stamp with a
        penalty: the time up to which it is paid. Without, penalties are paid.
        """
        trained = self.trained()
        if not state:
            weight, bias = self.plain(None, self.features), trained.bias[: self.width].copy()
            return {"weight": weight if self.width > 1 else weight[:, 0], "bias": bias}
        parts = take_apart(self._in_own_order(trained.table), self._rule, self._penalty, self.width)
        biases = take_apart(trained.bias, self._rule, Free(), self.width)
        return {
            **{named("weight", name): part for name, part in parts.items()},
            **{named("bias", name): part.reshape(-1) for name, part in biases.items()},
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `arrays` made, with or without state."""
        if self.classes is None:
            raise ModelError("the options of the model do not say its classes; it cannot be used.")
        if "weight" not in arrays or "bias" not in arrays or arrays["weight"].ndim < 1:
            raise ModelError(f"a linear model has the arrays weight and bias; these are {', '.join(arrays) or 'none'}.")
        rows = len(arrays["weight"])
        if self.features and rows != self.features:
            raise ModelError(f"the options say {self.features} features, but weight has {rows} rows.")
        left = dict(arrays)
        table = put_together(taken(left, "weight"), self._rule, self._penalty, self.width, rows)
        bias = put_together(taken(left, "bias"), self._rule, Free(), self.width, 1)
        no_others(left, (), "a linear model")
        self.weights, self.features, self.order = LinearWeights(table, bias), rows, None
