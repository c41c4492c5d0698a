"""Text classifiers: averaged rows of words and hashed n-grams, and a linear layer above them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import BinaryRows, Floats, Ids, Room, Rows, Table
from hogwild.config import TextConfig
from hogwild.config.arguments import config_of, taking
from hogwild.errors import ConfigError, InputError, ModelError
from hogwild.feeds.io.parallel import in_parts
from hogwild.feeds.sparse.feed import Feed
from hogwild.feeds.sparse.hashing import Hashing
from hogwild.kernels.optim.losses import EachLabel, Logistic
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import cell_names, row_cells
from hogwild.kernels.simd.rows16 import LANES, layout
from hogwild.kernels.sparse.one_text import TextTable
from hogwild.kernels.sparse.text_classifier import TextTask, TextWeights, mean_rows
from hogwild.programs.devices import DeviceProgram
from hogwild.programs.saving.tensors import no_others, required
from hogwild.programs.sparse.multilabel import NO_SETS
from hogwild.programs.sparse.one_text import OneText, only_text
from hogwild.programs.sparse.supervised import ClassWeight, rule_and_penalty, unknown_entries
from hogwild.programs.sparse.tables import Tabled, make_table, named, put_together, take_apart, whole_order

# -- The arrays of a text classifier as they are saved: without the cells that only fill cache lines, and back --------


Arrays = dict[str, npt.NDArray[Any]]
_ONE_A_ROW = ("count", "stamp")


def split_arrays(program: TextClassifier, weights: TextWeights, state: bool) -> Arrays:
    """embedding, output and bias by name; with `state` what the update rule remembers of each, after its name."""
    task, width, dim = program.task, program.width, program.config.dim
    found: Arrays = {}
    for name, part in take_apart(weights.table, task.rule, task.penalty, width).items():
        if state or not name:
            found[named("embedding", name)] = part if name in _ONE_A_ROW else np.ascontiguousarray(part[:, :dim])
    for name, part in take_apart(weights.outputs, task.rule, Free(), width + 1).items():
        if name in _ONE_A_ROW and state:
            found[named("output", name)] = part
        elif state or not name:
            found[named("output", name)] = np.ascontiguousarray(part[:, :dim])
            found[named("bias", name)] = np.ascontiguousarray(part[:, width])
    return found


def join_arrays(program: TextClassifier, arrays: Mapping[str, npt.NDArray[Any]]) -> TextWeights:
    """The inverse of `split_arrays`, checked; without state, the update rule remembers nothing."""
    if program.classes is None:
        raise ModelError("the options of the model do not say its classes; it cannot be used.")
    if missing := [name for name in ("embedding", "output", "bias") if name not in arrays]:
        raise ModelError(f"a text classifier has the array {missing[0]}; these are {', '.join(arrays) or 'none'}.")
    task, width, dim, outputs = program.task, program.width, program.config.dim, program.outputs
    rows = len(arrays["embedding"]) if arrays["embedding"].ndim else 0
    if program.features and rows != program.features:
        raise ModelError(f"the options say {program.features} features, but embedding has {rows} rows.")
    saved = [name for name in cell_names(task.rule, task.penalty) if named("embedding", name) in arrays]
    used: set[str] = set()

    def take(owner: str, name: str, shape: tuple[int, ...]) -> Floats:
        used.add(named(owner, name))
        return required(arrays, named(owner, name), shape)

    table: Arrays = {}
    for name in ("", *saved):
        plain = name in _ONE_A_ROW
        part = take("embedding", name, (rows,) if plain else (rows, dim))
        table[name] = part if plain else _padded(part, width)
    layer: Arrays = {}
    for name in ("", *(name for name in saved if name != "stamp")):
        if name in _ONE_A_ROW:
            layer[name] = take("output", name, (outputs,))
        else:
            layer[name] = _padded(take("output", name, (outputs, dim)), width + 1)
            layer[name][:, width] = take("bias", name, (outputs,))
    no_others(arrays, used, "a text classifier of these options")
    return TextWeights(
        put_together(table, task.rule, task.penalty, width, rows),
        put_together(layer, task.rule, Free(), width + 1, outputs),
    )


def _padded(part: Floats, width: int) -> Floats:
    """With zeros up to so many columns."""
    wide = np.zeros((len(part), width), np.float32)
    wide[:, : part.shape[1]] = part
    return wide


_UNIT = 32.0  # n-grams of a text whose rows count as in their mean; see `TextConfig.pooling`
_DECAY, _MOST_DECAY, _DECAY_OF_SEVERAL = 2.0, 0.1, 0.005  # of rows: of two classes for a text of one n-gram; of more
_TRIED, _TRIED_ENTRIES, _FEWEST = 8000, 1_000_000, 1000  # texts and entries of tried runs; least texts


@taking(TextConfig)
class TextClassifier(DeviceProgram, Tabled):
    """A classifier of texts: the mean of the rows of a text's words and n-grams, and a linear layer above it.

    Parameters
    ----------
    class_weight : weight of the samples of each class by label, or `balanced`: rows / (classes * rows of the class).
    features : least number of features; the model grows with the feeds that it is trained on.
    classes : all classes, when the first feed may not hold all of them.
    constants : constants of the update rule by name, such as {"beta": 0.95} with momentum.
    hashing : how text becomes features, as a feed's schema has it; taken from the first feed of text.
    several : rows may have several labels, or none; a feed of such rows says so itself.

    Attributes
    ----------
    weights : what workers share, one row a feature and one an output, with the update rule's memory; see `arrays` for
        plain numbers.
    order : feature of each row of `weights`; None for the features' own order.
    ignored : entries of the last scored feed whose feature the model does not know.

    Examples
    --------
    >>> import hogwild
    >>> from scipy.sparse import csr_array
    >>> feed = hogwild.feed_of(csr_array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]), ["no", "yes"])
    >>> program = hogwild.train(hogwild.TextClassifier(), feed, epochs=20, lr=1.0, threads=1, quiet=True)
    >>> program.predict(feed).tolist(), program.evaluate(feed)["accuracy"]
    (['no', 'yes'], 1.0)
    """

    name = "text_classifier"
    config: TextConfig
    unit = "nonzeros"
    learns_sets = True
    loss = "logistic"
    sharing = "all"

    def __init__(
        self, *values: Any, class_weight: ClassWeight = None, features: int = 0, classes: Iterable[Any] | None = None,
        constants: Mapping[str, float] | None = None, hashing: Mapping[str, Any] | None = None, several: bool = False,
        **options: Any,
    ) -> None:  # fmt: skip
        config = config_of(self, TextConfig, values, options)
        self.several = bool(several)
        self._begin(config, class_weight, features, classes, constants)
        self._sets = NO_SETS
        self.hashing = None if hashing is None else _checked_hashing(hashing)
        self._rule, self._penalty = rule_and_penalty(config.optimizer, self.constants, 0.0, config.l2)
        self._one: OneText | None = None
        self._above: tuple[Floats, Floats] | None = None  # what is left to do after it
        self._length = 1.0  # entries of a text, on average

    # -- what the executor asks ---------------------------------------------------------------------------------

    @property
    def rate(self) -> float | None:
        """Calibrated, by whole runs."""
        return None

    @property
    def whole_tries(self) -> int:
        """Whole runs: rows of n-grams that occur in one text are learnt by heart, which one pass does not show."""
        return max(_FEWEST, min(_TRIED, int(_TRIED_ENTRIES / self._length)))

    def rate_of_run(self, rate: float, share: float) -> float:
        """Of sgd, the smaller the more texts there are; adagrad and the others see to that themselves."""
        return rate * math.sqrt(share) if self.config.optimizer == "sgd" else rate

    @property
    def _unit(self) -> np.float32:
        return np.float32(_UNIT if self.config.pooling == "root" else 0.0)

    @property
    def unit_of_pooling(self) -> float:
        """For other forms of the model: 0 for the mean; else see TextTask in kernels/sparse/text_classifier.py."""
        return float(self._unit)

    @property
    def _decay(self) -> float:
        """The penalty on rows. Of two classes in proportion to what a row is of a text, by which it is learnt too."""
        if self.config.row_decay is not None:
            return self.config.row_decay
        return min(_MOST_DECAY, _DECAY / self._length) if self.outputs == 1 else _DECAY_OF_SEVERAL

    @classmethod
    def earlier(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Models that say nothing of pooling are of before there was a choice."""
        return {"pooling": "mean", **options}

    @property
    def task(self) -> TextTask:
        """Selects the compiled code."""
        lanes, blocks = layout(self.config.dim)
        loss = EachLabel(Logistic(), *self._sets) if self.several else Logistic()
        decay = np.float32(self._decay)
        return TextTask(self._rule, self._penalty, lanes, blocks, self.outputs, decay, self._unit, loss)

    @property
    def width(self) -> int:
        """Weights in a row: `dim`, and zeros up to whole cache lines."""
        lanes, blocks = layout(self.config.dim)
        return LANES * len(lanes) * blocks

    def startup(self, feed: Feed, seed: int) -> None:
        """Rows of zero under outputs drawn at random, or the ones there are, in the feed's order of ids."""
        self.meet(feed)
        self._check_feed(feed)
        self.find_classes(feed)
        if self.several:
            self._sets = self.sets_of(feed)[0]
        if self.hashing is None and only_text(feed.schema):
            self.hashing = _checked_hashing(feed.schema["hashing"])
        self._length = max(1.0, feed.nonzeros / max(1, len(feed)))
        rows = max(self.features, feed.features)
        order = whole_order(feed.original, feed.features, rows)
        if self.weights is None:
            table = make_table(rows, self.cells, "use fewer hash bits (--hash-bits) or a smaller --dim.")
            self.weights = TextWeights(table, self._first_outputs(seed))
        elif order is not self.order or rows != self.features:
            self.weights = TextWeights(self.rearranged(rows, order), self.weights.outputs)
        self.features, self.order, self._one = rows, order, None

    def _first_outputs(self, seed: int) -> Floats:
        # Rows begin as zeros, so that n-grams which training never sees say nothing; the outputs must not, then. A text
        # moves its own score by rate |output|^2 times the sum of its squared shares: with this length by the rate,
        # however long texts are.
        outputs = np.zeros((self.outputs, row_cells(self._rule, Free(), self.width + 1)), np.float32)
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (self.outputs, self.config.dim))
        each = float(self._unit) or self._length
        outputs[:, : self.config.dim] = signs * math.sqrt(each / self.config.dim)
        return outputs.reshape(-1)

    def samples(self, feed: Feed) -> Any:
        """The feed's rows; labels as -1 and 1, or as class numbers; importance times class weight."""
        return self._rows(super().samples(feed))

    def _rows(self, samples: Any) -> Any:
        if self.config.counts or isinstance(samples, BinaryRows):
            return samples
        return BinaryRows(samples.offsets, samples.ids, samples.targets, samples.importance)

    def _check_feed(self, feed: Feed) -> None:
        if not isinstance(feed.samples, Rows | BinaryRows):
            raise InputError(f"{feed.source}: a text classifier takes text or sparse rows, not dense ones or slots.")
        if isinstance(feed.samples, Rows) and not self.config.counts and not only_text(feed.schema):
            raise InputError(
                f"{feed.source}: the features have values, which this model would not look at; "
                "weigh by them with counts=True (--counts)."
            )

    def room(self, feed: Feed) -> Room:
        """The rows of the longest text and of the outputs; see kernels/sparse/text_classifier.py."""
        width = self.width
        floats = 3 * width + self.outputs + feed.longest + 1
        return Room(feed.longest + self.outputs, width + 1, floats=floats, ints=feed.longest + 1)

    def units(self, feed: Feed) -> int:
        """Nonzeros of the feed."""
        return feed.nonzeros

    def tables(self) -> dict[str, Table]:
        """One row a feature, and few rows of outputs that every visit writes."""
        return dict(zip(("table", "outputs"), self._shared_as(self.outputs, self.width + 1), strict=True))

    def watchable(self) -> Mapping[str, Any]:
        """embedding: (features, dim); output: (outputs, dim); bias: (outputs,); in the features' own order."""
        output, bias = self._layer()
        return {"embedding": lambda: self.arrays()["embedding"], "output": output[:, : self.config.dim], "bias": bias}

    # -- predicting ---------------------------------------------------------------------------------------------

    def score_feed(self, feed: Feed, threads: int) -> Floats:
        """One score a row (two classes: of the second), or one a class."""
        table = self._projected(feed.original, feed.features)
        self._check_feed(feed)
        self.ignored = unknown_entries(feed, self.features)
        samples = self._rows(feed.samples)
        means = np.empty((len(feed), table.shape[1]), np.float32)

        def work(first: int, end: int) -> None:
            mean_rows(samples, table, means[first:end], first, self._unit)

        in_parts(len(feed), threads, work)
        output, bias = self._layer()
        scores = means + bias if self._folds else means @ output.T + bias
        return scores[:, 0] if self.outputs == 1 else scores

    def predict_one(self, text: Any) -> Any:
        """The label of one text, for serving: some 15 microseconds for 200 words, after the first call.

        It may stand in a dict, under the name of its column.

        The weights are those of the first call after training; `serve` takes them anew.
        """
        return self.label_of(self.score_row(text))

    def serve(self) -> None:
        """Get ready for `predict_one`: compile it, and take the weights as they are now."""
        if self.hashing is None:
            raise ConfigError("this model was not trained on text alone, so it cannot read one; predict takes a feed.")
        rows = self._projected(None, max(self.features, 1 << self.hashing["bits"]))
        output, bias = (part.copy() for part in self._layer())
        self._above = None if self._folds else (output, bias)
        start = bias if self._folds else np.zeros(rows.shape[1], np.float32)
        self._one = OneText(Hashing(**self.hashing), TextTable(rows, start, bool(self.config.counts), True, self._unit))

    def score_row(self, row: Any) -> Floats:
        """The scores of one text, which may stand in a dict under the name of its column."""
        if isinstance(row, Mapping) and self._table:
            name = self._table["text"]
            if name not in row:
                raise InputError(f"column `{name}` is missing in the row; it holds the text.")
            row = row[name]
        if self._one is None:
            self.serve()
        assert self._one is not None
        found = self._one(row)
        if self._above is None:
            return found
        output, bias = self._above
        return output @ found + bias

    @property
    def _folds(self) -> bool:
        """Whether the layer above is taken into the rows for prediction: then a row has one number an output."""
        return self.outputs <= self.width

    def _layer(self) -> tuple[Floats, Floats]:
        """Weights (outputs, width) and biases of the linear layer."""
        outputs = self.trained().outputs.reshape(self.outputs, -1)
        return outputs[:, : self.width], outputs[:, self.width]

    def _projected(self, original: Ids | None, features: int) -> Floats:
        """(features, n): the rows in an order of ids, penalties paid; times the layer above them where that is less."""
        rows = self.paid().reshape(-1, self.cells)[:, : self.width]
        if self._folds:
            rows = rows @ self._layer()[0].T
        return self.in_order(rows, original, features)

    # -- going on, saving ---------------------------------------------------------------------------------------

    def axes(self) -> dict[str, Sequence[Any]]:
        """Features and classes."""
        outputs = self.class_axis()
        return {"embedding": (self.feature_names(), None), "output": (outputs, None), "bias": (outputs,)}

    def options(self) -> dict[str, Any]:
        """The arguments of an equal program, as JSON values."""
        return {**super().options(), "hashing": self.hashing}

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """embedding: (features, dim); output: (outputs, dim); bias: (outputs,); in the features' own order.

        With `state` also what the update rule remembers of them: embedding_, output_ and bias_ followed by speed
        (momentum), squares (adagrad), mean, square (adam) or pull, squares (ftrl); embedding_count and output_count
        (adam), and embedding_stamp with l2: the time up to which it is paid. Without, penalties are paid.
        """
        table = self._in_own_order(self.trained().table if state else self.paid())
        return split_arrays(self, TextWeights(table, self.weights.outputs), state)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `arrays` made, with or without state."""
        self.weights = join_arrays(self, arrays)
        self.features, self.order, self._one = len(arrays["embedding"]), None, None


def _checked_hashing(hashing: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return Hashing(**hashing).schema()
    except (TypeError, ValueError):
        raise ConfigError(f"hashing is {dict(hashing)}; give that of a feed's schema.") from None
