"""Factorization machines, plain and field-aware: two classes or a quantity, from sparse features and their pairs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.arrays import AnyRows, Floats, Ids, Room, Table, aligned_floats
from hogwild.config import FMConfig
from hogwild.config.arguments import config_of, taking
from hogwild.errors import ConfigError, InputError, ModelError, shorten
from hogwild.feeds.io.parallel import in_parts
from hogwild.feeds.slots.flatten import Flattener
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.optim.init import draw_rows
from hogwild.kernels.optim.losses import Logistic, Squared
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import Ftrl, Sgd, row_cells
from hogwild.kernels.simd.rules8 import EIGHT
from hogwild.kernels.sparse.fm import Fields, FMTask, FMWeights, OneField, score_one, score_rows
from hogwild.kernels.sparse.fm_rows import FactorPenalty, TouchedPenalty
from hogwild.kernels.sparse.samples import Entries, ValuedSlotEntries
from hogwild.programs.saving.tensors import no_others
from hogwild.programs.sparse.quantities import QUANTITIES, loss_of
from hogwild.programs.sparse.supervised import ClassWeight, Label, make_rule, unknown_entries
from hogwild.programs.sparse.tables import Tabled, make_table, named, put_together, take_apart, whole_order

# -- Rows of factorization machines: how they are made up, what they begin with, and the arrays they are saved as -----


Arrays = dict[str, npt.NDArray[Any]]
_REMEDY = "use fewer factors (--dim), fewer features (--hash-bits), or sgd, which remembers nothing."


class FMLayout(NamedTuple):
    """Update rule and penalty, fields (1 for a plain machine), factors of a feature for each field."""

    rule: Any
    penalty: Any
    fields: int
    dim: int

    @property
    def width(self) -> int:
        """Weights in a row: one, and the factors."""
        return 1 + self.fields * self.dim

    @property
    def cells(self) -> int:
        """Cells of a row: the weights, and what is remembered of them."""
        return row_cells(self.rule, self.penalty, self.width)

    def floats(self, longest: int) -> int:
        """Numbers that a visit to a sample of so many features works with: see kernels/sparse/fm.py."""
        return (self.fields + longest) * -(-self.fields * self.dim // EIGHT) * EIGHT

    def split(self, name: str, part: npt.NDArray[Any]) -> Arrays:
        """(rows, width) numbers as those of weights and those of factors."""
        rows = part.reshape(-1, self.width)
        found = {named("weight", name): rows[:, 0].copy()}
        if self.dim:
            shape = (len(rows), self.fields, self.dim) if self.fields > 1 else (len(rows), self.dim)
            found[named("factors", name)] = rows[:, 1:].reshape(shape).copy()
        return found


def start_factors(table: Floats, layout: FMLayout, order: Ids | None, known: int, seed: int, scale: float) -> None:
    """Random factors, of standard deviation `scale`, for features from `known` on; they depend on seed and feature."""
    rows = len(table) // layout.cells
    if known >= rows or not layout.dim:
        return
    features = np.zeros(0, np.int32) if order is None else order
    spread = np.float32(scale * 3**0.5)  # of the uniform distribution
    draw_rows(table, layout.cells, layout.width, features, np.array([known, rows]), np.uint64(seed), spread)
    weights = table.reshape(-1, layout.cells)[:, 0]
    weights[slice(known, None) if order is None else order >= known] = 0


def save_arrays(layout: FMLayout, table: Floats, bias: Floats) -> Arrays:
    """Named arrays of rows in the features' own order, with all that is remembered of them."""
    found: Arrays = {}
    for name, part in take_apart(table, layout.rule, layout.penalty, layout.width).items():
        found.update({f"weight_{name}": part} if name in ("count", "stamp") else layout.split(name, part))
    for name, part in take_apart(bias, layout.rule, Free(), 1).items():
        found[named("bias", name)] = part.reshape(-1)
    return found


def load_arrays(layout: FMLayout, arrays: Mapping[str, npt.NDArray[Any]], features: int) -> tuple[Floats, Floats]:
    """The inverse of `save_arrays`; what is remembered may be missing all together, and is then zero."""
    needed = ["weight", "bias", *["factors"] * bool(layout.dim)]
    if missing := [name for name in needed if name not in arrays]:
        raise ModelError(f"a factorization machine has the arrays {', '.join(needed)}; {missing[0]} is missing.")
    rows = len(arrays["weight"]) if arrays["weight"].ndim == 1 else 0
    if rows < 1 or (features and rows != features):
        raise ModelError(f"the options say {features} features, but weight is {arrays['weight'].shape}.")
    left = dict(arrays)
    owner = "factors_" if layout.dim else "weight_"
    slots = [key[len(owner) :] for key in arrays if key.startswith(owner)]
    names = ["", *(name for name in slots if name not in ("count", "stamp"))]
    parts = {name: _joined(layout, left, name, rows) for name in names}
    parts.update({key[7:]: left.pop(key) for key in list(left) if key.startswith("weight_")})
    biases = {key[5:]: left.pop(key) for key in list(left) if key == "bias" or key.startswith("bias_")}
    no_others(left, (), "a factorization machine")
    table = put_together(parts, layout.rule, layout.penalty, layout.width, rows)
    return table, put_together(biases, layout.rule, Free(), 1, 1)


def _joined(layout: FMLayout, left: Arrays, name: str, rows: int) -> npt.NDArray[Any]:
    """Weights and factors of one name as (rows, width)."""
    end = f"_{name}" if name else ""
    weight = left.pop(f"weight{end}", np.zeros(0, np.float32))
    if not layout.dim:
        return weight
    factors = left.pop(f"factors{end}")
    shape = (rows, layout.fields, layout.dim) if layout.fields > 1 else (rows, layout.dim)
    if weight.shape != (rows,) or factors.shape != shape or factors.dtype != np.float32 or weight.dtype != np.float32:
        raise ModelError(f"weight{end} is {weight.shape}, factors{end} {factors.shape}, not float32 of {rows} rows.")
    return np.concatenate([weight[:, None], factors.reshape(rows, -1)], axis=1)


# -- Scores of factorization machines: of a feed, and of one row at a time --------------------------------------------


_ENTRIES = 256  # of a row for which there is room from the beginning


def _plain_task(task: FMTask) -> FMTask:
    """The task for rows with nothing behind their weights: one compiled form for all update rules."""
    return task._replace(loss=Squared(), rule=Sgd(), factor_rule=Sgd(), penalty=Free())


def _layout(task: FMTask) -> FMLayout:
    fields = task.fields.count if isinstance(task.fields, Fields) else 1
    return FMLayout(Sgd(), Free(), fields, len(task.lanes))


def scores_of(task: FMTask, feed: Feed, plain: Floats, bias: Floats, threads: int) -> Floats:
    """One score a row, by (features, width) weights in the order of the feed."""
    scores = np.empty(len(feed), np.float32)
    weights, room = FMWeights(plain.reshape(-1), bias[:1].copy()), _layout(task).floats(feed.longest)

    def work(first: int, end: int) -> None:
        score_rows(_plain_task(task), feed.samples, weights, aligned_floats(room), scores[first:end], first)

    in_parts(len(feed), threads, work)
    return scores


class OneRow:
    """Scores one row at a time by (features, width) weights in the features' own order. Threads take turns."""

    def __init__(self, of: Any, task: FMTask, plain: Floats) -> None:
        self.of = of
        self._features, self._fields = len(plain), _layout(task).fields if isinstance(task.fields, Fields) else 0
        self._task = _plain_task(task)
        self._weights = FMWeights(plain.reshape(-1), of.bias[:1].copy())
        self._lock = threading.Lock()
        self._make_room(_ENTRIES)
        self._call = entry(score_one, self._task, self._entries(0), self._weights, self._floats)

    def _make_room(self, entries: int) -> None:
        self._floats = aligned_floats(_layout(self._task).floats(entries))
        self._ids, self._values = np.zeros(entries, np.int32), np.ones(entries, np.float32)
        self._slots = np.zeros(entries, np.uint16)

    def _entries(self, count: int) -> Any:
        if self._fields:
            return ValuedSlotEntries(self._ids[:count], self._slots[:count], self._values[:count])
        return Entries(self._ids[:count], self._values[:count])

    def __call__(self, ids: npt.ArrayLike, values: npt.ArrayLike | None, slots: npt.ArrayLike | None) -> float:
        """The score of a row; features that are not known are left out."""
        own = np.asarray(ids, np.int64).reshape(-1)
        count = len(own)
        numbers = np.ones(count, np.float32) if values is None else np.asarray(values, np.float32)
        fields = np.zeros(count, np.int64) if slots is None else np.asarray(slots, np.int64)
        if bool(self._fields) != (slots is not None) or numbers.shape != own.shape or fields.shape != own.shape:
            what = "ids, values and slots" if self._fields else "ids and values, and no slots"
            raise InputError(f"one row of this machine has {what}, as many of each; see predict_one.")
        if count and own.min() < 0:
            raise InputError(f"feature {int(own.min())} does not exist; features are numbered from 0.")
        if count and own.max() >= self._features:
            known = own < self._features
            own, numbers, fields = own[known], numbers[known], fields[known]
            count = len(own)
        if count and self._fields and not 0 <= int(fields.min()) <= int(fields.max()) < self._fields:
            raise InputError(f"a slot lies outside 0 … {self._fields - 1}; the model's `slots` has their order.")
        with self._lock:
            if count > len(self._ids):
                self._make_room(2 * count)
            self._ids[:count], self._values[:count], self._slots[:count] = own, numbers, fields
            return float(self._call(self._task, self._entries(count), self._weights, self._floats))


@taking(FMConfig)
class FactorizationMachine(Tabled):
    """A factorization machine: a linear model, plus the product of the factors of each pair of a sample's features.

    Parameters
    ----------
    class_weight : weight of the samples of each class by label, or `balanced`: rows / (classes * rows of the class).
    features : least number of features; the model grows with the feeds that it is trained on.
    slots : names of the fields of a field-aware machine; default: those of the first feed.
    classes : both classes, when the first feed may not hold both.
    constants : constants of the update rule by name, such as {"beta1": 0.95, "beta2": 0.95} with adam.

    Attributes
    ----------
    weights : what workers share, one row a feature with the update rule's memory; see `arrays` for plain numbers.
    order : feature of each row of `weights` while they are in the order of a feed; None for the features' own order.
    ignored : entries of the last scored feed whose feature the model does not know.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> pairs = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
    >>> feed = hogwild.feed_of(pairs, ["same", "same", "other", "other"])      # no weight for each column tells them
    >>> machine = hogwild.FactorizationMachine(dim=2, init_scale=0.1)
    >>> program = hogwild.train(machine, feed, epochs=200, lr=0.2, mode="serial", quiet=True)
    >>> program.predict(feed).tolist()
    ['same', 'same', 'other', 'other']
    """

    name = "fm"
    config: FMConfig
    unit = "nonzeros"
    hot_rows = 1024  # few, merged often: copies of factors that drift apart learn other things, and do not add up
    merge_every = 200

    def __init__(
        self, *values: Any, class_weight: ClassWeight = None, features: int = 0, slots: Iterable[str] = (),
        classes: Iterable[Any] | None = None, constants: Mapping[str, float] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        config = config_of(self, FMConfig, values, options)
        if config.field_aware:
            self.sharing = "all"  # rows are wide: merging private ones takes longer than a second worker saves
        self._begin(config, class_weight, features, classes, constants)
        self.slots = tuple(str(name) for name in slots)
        self._flat = Flattener(keep_slots=config.field_aware)
        self._one: OneRow | None = None
        rates = config.l2, config.l2_factors
        self._rule, self._factor_rule = (make_rule(config.optimizer, self.constants, 0.0, rate) for rate in rates)
        self._penalty = Free() if isinstance(self._rule, Ftrl) else _penalty_of(config)

    def _learn_classes(self, classes: tuple[Label, ...]) -> None:
        if len(classes) > 2:
            raise InputError(
                f"there are {len(classes)} classes, and a factorization machine tells two apart; use a linear "
                "model, or a loss for quantities."
            )
        super()._learn_classes(classes)

    # -- what the executor asks ---------------------------------------------------------------------------------

    @property
    def layout(self) -> FMLayout:
        """How a row of weights is made up."""
        fields = len(self.slots) if self.config.field_aware else 1
        return FMLayout(self._rule, self._penalty, fields, self.config.dim)

    @property
    def task(self) -> FMTask:
        """Selects the compiled code."""
        fields = Fields(len(self.slots)) if self.config.field_aware else OneField()
        loss = loss_of(self.loss, self.config) if self.loss in QUANTITIES else Logistic()
        return FMTask(
            loss, self._rule, self._factor_rule, self._penalty, np.float32(self.config.bias), fields,
            (0,) * self.config.dim,
        )  # fmt: skip

    def rows(self, feed: Feed) -> Feed:
        """The feed as rows of features, dense columns among them; a field-aware machine keeps the slots."""
        if self.config.field_aware and not feed.slots:
            raise InputError(
                f"{feed.source}: its features have no fields; a field-aware machine needs data with slots, such as "
                "libffm files or tables with categorical columns."
            )
        return self._flat.of(feed)

    def _learn_slots(self, feed: Feed) -> None:
        if not self.slots:
            self.slots = feed.slots
        if feed.slots != self.slots[: len(feed.slots)]:
            raise InputError(
                f"{feed.source}: its fields are {_shown(feed.slots)}, those of the model {_shown(self.slots)}; read it "
                "with the schema of the training data."
            )

    @property
    def width(self) -> int:
        """Weights of a row: its own, and its factors."""
        return self.layout.width

    def startup(self, feed: Feed, seed: int) -> None:
        """Weights of zero and random factors, or those there are, in the feed's order of ids and with room for it."""
        self.meet(feed)
        self.find_classes(feed)
        flat = self.rows(feed)
        if self.config.field_aware:
            self._learn_slots(flat)
        rows, cells = max(self.features, flat.features), self.layout.cells
        order = whole_order(flat.original, flat.features, rows)
        table, known = make_table(rows, cells, _REMEDY), 0
        bias = self.first_bias(feed)
        if self.weights is not None:
            known, bias = self.features, self.weights.bias
            table[:] = self.rearranged(rows, order)
        start_factors(table, self.layout, order, known, seed, self.config.init_scale)
        self.weights, self.features, self.order = FMWeights(table, bias), rows, order

    def samples(self, feed: Feed) -> AnyRows:
        """The feed's rows, dense columns among them; labels as -1 and 1; importance times class weight."""
        return super().samples(self.rows(feed))

    def room(self, feed: Feed) -> Room:
        """The features of the longest sample, and the bias; their factors, and sums of them for each field."""
        layout, longest = self.layout, self.rows(feed).longest
        return Room(rows=longest + 1, width=layout.width, floats=layout.floats(longest))

    def units(self, feed: Feed) -> int:
        """Nonzeros of the feed."""
        return self.rows(feed).nonzeros

    def tables(self) -> dict[str, Table]:
        """One row a feature, and one of the bias that every visit writes."""
        return dict(zip(("table", "bias"), self._shared_as(1, 1), strict=True))

    def watchable(self) -> Mapping[str, Any]:
        """weights: (features,); factors: (features, factors of a feature); bias: (1,); in the features' own order."""
        return {
            "weights": lambda: self.plain(None, self.features)[:, 0],
            "factors": lambda: self.plain(None, self.features)[:, 1:],
            "bias": self.trained().bias[:1],
        }

    # -- predicting ---------------------------------------------------------------------------------------------

    def score_feed(self, feed: Feed, threads: int) -> Floats:
        """One score a row: of the second class, or the quantity."""
        flat = self.rows(feed)
        if self.config.field_aware:
            self._learn_slots(flat)
        self.ignored = unknown_entries(flat, self.features)
        return scores_of(self.task, flat, self.plain(flat.original, flat.features), self.weights.bias, threads)

    def predict_one(
        self, row: Any = None, values: npt.ArrayLike | None = None, slots: npt.ArrayLike | None = None,
        ids: npt.ArrayLike | None = None,
    ) -> float:  # fmt: skip
        """The chance of the second class, or the quantity, of one row. Not while it trains.

        row: as the data of training has it: a dict of values by column or slot, or the values in their order. Or its
        features by their own numbers, unknown ones left out, with `values` (1 by default) and, for a field-aware
        machine, `slots`; `ids` alone says the same where the model has columns.
        """
        score = self._score_one(row, (ids, values, slots))
        return float(1 / (1 + np.exp(-score))) if self.classes else float(self.label_of(np.array([score], np.float32)))

    def score_row(self, row: Any) -> Floats:
        """The score of one row."""
        return np.array([self._score_one(row, (None, None, None))], np.float32)

    def _score_one(self, row: Any, given: tuple[Any, Any, Any]) -> float:
        ids, values, slots = given
        if ids is None and (any(part is not None for part in given) or self.are_ids(row)):
            ids = row
        trained = self.trained()
        if ids is None:
            ids, values, slots, _ = self.flat_row(row)
            slots = slots if self.config.field_aware else None
        if self.order is not None:
            raise ConfigError("this model is being trained; predict_one answers when training has ended.")
        if self._one is None or self._one.of is not trained:
            self._one = OneRow(trained, self.task, self.plain(None, self.features))
        return self._one(ids, values, slots)

    # -- going on, saving ---------------------------------------------------------------------------------------

    def axes(self) -> dict[str, Sequence[Any]]:
        """Features, and fields of a field-aware machine."""
        names = self.feature_names()
        factors = (names, self.slots, None) if self.config.field_aware else (names, None)
        return {"weight": (names,), "factors": factors, "bias": (None,)}

    def options(self) -> dict[str, Any]:
        """The arguments of an equal program, as JSON values."""
        return {**super().options(), "slots": list(self.slots)}

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """weight: (features,); factors: (features, dim), of a field-aware machine (features, fields, dim); bias: (1,);
        in the features' own order.

        With `state` also what the update rule remembers of them: weight_, factors_ and bias_ followed by the name, and
        weight_stamp with a penalty: the time up to which a row has paid. Without, penalties are paid.
        """
        trained, layout = self.trained(), self.layout
        if not state:
            plain = self.plain(None, self.features)
            return {**layout.split("", plain), "bias": trained.bias[:1].copy()}
        return save_arrays(layout, self._in_own_order(trained.table), trained.bias)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `arrays` made, with or without state."""
        if self.classes is None or (self.config.field_aware and not self.slots):
            raise ModelError("the options of the model do not say its classes and slots; it cannot be used.")
        table, bias = load_arrays(self.layout, arrays, self.features)
        self.weights, self.features, self.order = FMWeights(table, bias), len(table) // self.layout.cells, None


def _penalty_of(config: FMConfig) -> Any:
    weight, factors = np.float32(config.l2), np.float32(config.l2_factors)
    if not weight and not factors:
        return Free()
    if config.l2_form == "touched":
        return TouchedPenalty(weight, factors)
    return FactorPenalty(Penalty(np.float32(0), weight), Penalty(np.float32(0), factors))


def _shown(names: tuple[str, ...]) -> str:
    return shorten(", ".join(names[:8])) + (f" … ({len(names)} in all)" if len(names) > 8 else "")
