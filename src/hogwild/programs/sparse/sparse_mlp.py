"""Embeddings of sparse features, looked up and put together, then dense layers."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import (
    CELL,
    DenseRows,
    Floats,
    Ids,
    Offsets,
    Room,
    SlotRows,
    Table,
    ValuedSlotRows,
    aligned_floats,
    make_scratch,
)
from hogwild.config import SparseMLPConfig, TrainConfig
from hogwild.config.arguments import config_of, taking
from hogwild.errors import ConfigError, InputError, ModelError, shorten
from hogwild.feeds.io.parallel import in_parts
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.compiler.clock import Untimed
from hogwild.kernels.compiler.jit import entry
from hogwild.kernels.nn.dense import ACTIVATIONS, batch_floats, layer_cells
from hogwild.kernels.nn.lookup import COMBINERS, ManySlots, OneSlot
from hogwild.kernels.nn.one_row import NO_FEATURE, NO_SLOT, NOT_FINITE, UNSORTED, GivenRow, RowRoom, score_row
from hogwild.kernels.nn.sparse_mlp import ClassScores, MlpTask, MlpWeights, OneScore, score_batches
from hogwild.kernels.optim.init import draw_rows
from hogwild.kernels.optim.losses import Logistic, Squared
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import Ftrl, Sgd, dense_tables, make_dense, row_table
from hogwild.machine import check_memory, one_blas_thread
from hogwild.programs.devices import DeviceProgram
from hogwild.programs.program import plain_constants
from hogwild.programs.saving.tensors import no_others, required
from hogwild.programs.sparse.metrics import probabilities
from hogwild.programs.sparse.quantities import QUANTITIES, inward, loss_of, loss_scale, unit_of
from hogwild.programs.sparse.slots import Aligner, slotted
from hogwild.programs.sparse.supervised import checked_weight, make_rule, unknown_entries
from hogwild.programs.sparse.tables import Tabled, make_table, natural, put_together, take_apart, whole_order
from hogwild.programs.sparse.units import Unit

# -- One row at a time through embeddings and dense layers, for serving -----------------------------------------------


_ENTRIES = 256  # of a row for which there is room from the beginning


class OneRow:
    """Scores one row by weights in the features' own order, in arrays that are made once. Threads take turns."""

    def __init__(self, of: Any, task: MlpTask, features: int, shape: tuple[int, int]) -> None:
        self.of = of
        self._task, self._features = task, features
        self._slots, self._numbers = shape
        self._lock = threading.Lock()
        self._make_room(_ENTRIES)
        none = np.zeros(0, np.float32), np.zeros(0, np.int64)
        self._call = entry(score_row, task, GivenRow(none[1], none[0], none[1], none[0]), of, self._room)

    def _make_room(self, entries: int) -> None:
        one, sizes = np.ones(1, np.float32), self._task.sizes
        row = ValuedSlotRows(
            np.zeros(2, np.int64), np.zeros(entries, np.int32), np.zeros(entries, np.uint16),
            np.zeros((1, self._numbers), np.float32), one, one, np.ones(entries, np.float32),
        )  # fmt: skip
        self._entries = entries
        self._room = RowRoom(
            row, aligned_floats(int(sizes.sum())), np.zeros(int(sizes.max()), np.int64),
            np.zeros(int(sizes[-1]), np.float32), self._features, max(1, self._slots),
        )  # fmt: skip

    def __call__(self, ids: Any, values: Any, slots: Any, dense: Any) -> Floats:
        """The scores of a row; features that are not known are left out."""
        own = np.ascontiguousarray(ids, np.int64).reshape(-1)
        count = len(own)
        given = np.ones(count, np.float32) if values is None else np.ascontiguousarray(values, np.float32)
        places = np.zeros(count, np.int64) if slots is None else np.ascontiguousarray(slots, np.int64)
        numbers = np.zeros(0, np.float32) if dense is None else np.ascontiguousarray(dense, np.float32)
        if given.shape != own.shape or places.shape != own.shape or numbers.shape != (self._numbers,):
            raise InputError(
                f"one row has ids with as many values and slots, and {self._numbers} dense numbers; here are "
                f"{len(own)} ids, {given.size} values, {places.size} slots and {numbers.size} numbers."
            )
        with self._lock:
            if count > self._entries:
                self._make_room(2 * count)
            found = self._call(self._task, GivenRow(own, given, places, numbers), self.of, self._room)
            if found < 0:
                raise InputError(self._explained(found, own))
            return self._room.scores.copy()

    def _explained(self, code: int, own: Any) -> str:
        return {
            NO_FEATURE: f"feature {int(own.min())} does not exist; features are numbered from 0.",
            NO_SLOT: f"a slot lies outside 0 … {self._slots - 1}; the model's `slots` has their order.",
            UNSORTED: "the slots of a row are not in rising order; sort its features by slot.",
            NOT_FINITE: "a value of the row is not a finite number.",
        }[code]


# -- Weights of embeddings with dense layers: made, and named for saving ----------------------------------------------


Arrays = dict[str, npt.NDArray[Any]]
REMEDY = "use a smaller --dim, fewer features (--hash-bits), or sgd."
_UNIT, _LARGE = "unit", 1e39  # array of a checkpoint; beyond float32
_REMEMBERED = {"layers_first": "first", "layers_second": "second", "layers_count": "steps"}  # saved where there is some


def new_weights(program: SparseMLP, rows: int, seed: int) -> MlpWeights:
    """A table of zeros, and dense layers of random numbers: He's for relu, Glorot's for tanh.

    The last layer of a quantity begins as zeros, so that its mean is what is predicted first.
    """
    task = program.task
    layers = np.zeros(task.cells, np.float32)
    random = np.random.default_rng(np.random.SeedSequence((seed, 4242)))
    at = 0
    for before, after in zip(task.sizes[:-1].tolist(), task.sizes[1:].tolist(), strict=True):
        total = before if program.config.activation == "relu" else (before + after) / 2
        spread = np.sqrt((2 if program.config.activation == "relu" else 1) / max(total, 1))
        layers[at : at + before * after] = random.standard_normal(before * after, np.float32) * np.float32(spread)
        at += before * after + after
    if program.loss in QUANTITIES:
        layers[-1 - int(task.sizes[-2]) :] = 0
    return MlpWeights(make_table(rows, program.cells, REMEDY), *make_dense(task.rule, layers))


def named_arrays(program: SparseMLP, weights: MlpWeights, state: bool) -> Arrays:
    """Arrays by name; the table is in the features' own order. Without state, quantities are in the user's unit."""
    task = program.task
    dim = program.config.dim
    parts = take_apart(weights.table, program._rule, program._penalty, program.width)
    table = parts.pop("").reshape(-1, program.width)
    found: Arrays = {"embedding": np.ascontiguousarray(table[:, :dim])}
    if program.config.wide:
        found["wide"] = np.ascontiguousarray(table[:, dim:])
    found.update({name: layer.copy() for name, layer in _layers(task, weights.values).items()})
    unit = program.own_unit or Unit()
    if not state:
        found[f"layer_{len(task.sizes) - 1}_weight"] *= np.float32(unit.spread)
        found[f"layer_{len(task.sizes) - 1}_bias"] = unit.outward(weights.values[-program.outputs :])
        if program.config.wide:
            found["wide"] *= np.float32(unit.spread)
    else:
        if program.own_unit is not None:
            found[_UNIT] = np.array(unit, np.float64)
        found.update({f"table_{name}": part for name, part in parts.items()})
        remembered = {name: getattr(weights, field) for name, field in _REMEMBERED.items()}
        found.update({name: array.copy() for name, array in remembered.items() if array.size})
    return found


def in_unit(program: SparseMLP, weights: MlpWeights, unit: Unit) -> MlpWeights:
    """Weights that gave quantities in the user's unit, to give them in this one; what is remembered of them is left."""
    values, table = weights.values.copy(), weights.table.copy()
    last = values[-1 - int(program.sizes[-2]) :]
    last[:-1] /= np.float32(unit.spread)
    last[-1:] = unit.inward(last[-1:])
    if program.config.wide:
        table.reshape(-1, program.cells)[:, program.config.dim] /= np.float32(unit.spread)
    return weights._replace(values=values, table=table)


def _layers(task: Any, values: Floats) -> Arrays:
    """Matrices and biases of the dense layers by name: views."""
    found: Arrays = {}
    at = 0
    for layer, (before, after) in enumerate(zip(task.sizes[:-1].tolist(), task.sizes[1:].tolist(), strict=True), 1):
        end = at + before * after
        found[f"layer_{layer}_weight"] = values[at:end].reshape(before, after)
        found[f"layer_{layer}_bias"] = values[end : end + after]
        at = end + after
    return found


def restored(program: SparseMLP, arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[MlpWeights, int, Unit | None]:
    """Weights from named arrays, the number of features, and the unit of quantities if they are in one of their own."""
    if program.classes is None or program.slots is None:
        raise ModelError("the options of the model do not say its classes and slots; it cannot be used.")
    task = program.task
    left = dict(arrays)
    unit = _unit_of(left)
    shapes = _shapes(program, task)
    for name in shapes:
        if name not in left:
            raise ModelError(f"the model has no array {name!r}.")
    rows = len(left["embedding"])
    if rows != program.features or rows < 1:
        raise ModelError(f"the options say {program.features} features, but embedding has {rows} rows.")
    for name, shape in shapes.items():
        required(left, name, shape)
    main = [left.pop("embedding")] + ([left.pop("wide")] if program.config.wide else [])
    parts = {"": np.concatenate(main, axis=1).reshape((rows, -1) if program.width > 1 else (rows,))}
    parts.update({name[6:]: left.pop(name) for name in list(left) if name.startswith("table_")})
    table = put_together(parts, program._rule, program._penalty, program.width, rows)
    weights = _layers_from(task, table, left)
    no_others(left, (), "a model of this kind")
    return weights, rows, unit


def _unit_of(left: Arrays) -> Unit | None:
    if _UNIT not in left:
        return None
    mean, spread = (float(value) for value in required(left, _UNIT, (2,), np.float64))
    del left[_UNIT]
    if not (abs(mean) < _LARGE and 0 < spread < _LARGE):
        raise ModelError(f"array {_UNIT} is no mean and spread of quantities; copy the model again.")
    return Unit(mean, spread)


def _shapes(program: SparseMLP, task: MlpTask) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"embedding": (program.features, program.config.dim)}
    if program.config.wide:
        shapes["wide"] = (program.features, program.outputs)
    for layer, (before, after) in enumerate(zip(task.sizes[:-1].tolist(), task.sizes[1:].tolist(), strict=True), 1):
        shapes[f"layer_{layer}_weight"] = (before, after)
        shapes[f"layer_{layer}_bias"] = (after,)
    return shapes


def _layers_from(task: MlpTask, table: Floats, left: Arrays) -> MlpWeights:
    names = [f"layer_{layer}_{part}" for layer in range(1, len(task.sizes)) for part in ("weight", "bias")]
    layers = np.concatenate([left.pop(name).reshape(-1) for name in names])
    weights = MlpWeights(table, *make_dense(task.rule, layers))
    for name, field in _REMEMBERED.items():
        own = getattr(weights, field)
        if own.size and name in left:
            own[:] = _finite(left.pop(name), name, own.size)
    return weights


def _finite(array: npt.NDArray[Any], name: str, size: int) -> Floats:
    if array.shape != (size,) or array.dtype != np.float32 or not np.isfinite(array).all():
        raise ModelError(f"array {name} is {array.dtype} {array.shape}, not ({size},) finite float32.")
    return array


_RATES = {"sgd": 0.1, "momentum": 0.01, "adagrad": 0.02, "adam": 0.001, "ftrl": 0.05}
_ENOUGH, _FASTER = 100_000, 10.0  # rows of a quantity for which adam's rate is that; for fewer up to so many times that
_ROWS, _FAST = 20_000, 2.0  # of classes too: rows for which the rate is that, for a run of which we say how long it is
_BATCHES, _LEAST_BATCH, _LARGEST_BATCH = 40, 32, 256  # batches of an epoch, and samples of one, where we choose them
_EPOCHS, _FEWEST, _MOST = 1500.0, 5, 100  # epochs times the root of the rows, and their bounds, where we choose them
_L2, _SHARED_L2 = 0.01, 15.0  # of classes, where we choose it: at the most, and what all rows have together
_SCORED = 256  # rows that are scored at once
_LEAST_PART = 64  # samples of a visit where workers share a batch: BLAS is slow with fewer


def _batch_for(rows: int) -> int:
    """A power of two that makes about as many batches of an epoch as we like, in bounds."""
    return min(_LARGEST_BATCH, max(_LEAST_BATCH, 1 << round(math.log2(max(1, rows / _BATCHES)))))


def _told(epochs: int, rows: int, batch: int) -> str:
    updates = epochs * -(-rows // batch)
    return f"{epochs} epochs of {rows:,} rows in batches of {batch}: {updates:,} updates (--epochs, --batch-size)."


@taking(SparseMLPConfig)
class SparseMLP(DeviceProgram, Tabled):
    """An embedding lookup over sparse features, dense features beside it, dense layers, and one output or one a class.

    Parameters
    ----------
    class_weight, features, classes, constants : as in Linear.
    slots, dense : names of the slots and dense columns; those of the first feed by default.

    Examples
    --------
    >>> import numpy as np, hogwild
    >>> feed = hogwild.feed_of(np.eye(4)[[0, 1, 2, 3] * 8], ["no", "yes", "no", "yes"] * 8)
    >>> program = hogwild.SparseMLP(dim=4, hidden=(8,), batch_size=4)
    >>> program = hogwild.train(program, feed, epochs=40, lr=0.02, threads=1, quiet=True)
    >>> program.predict(feed)[:4].tolist()
    ['no', 'yes', 'no', 'yes']
    """

    name = "sparse_mlp"
    config: SparseMLPConfig
    unit = "samples"
    tells_units = True
    sharing = "all"
    sums_visits = False

    def __init__(
        self, *values: Any, class_weight: Any = None, features: int = 0, classes: Iterable[Any] | None = None,
        constants: Mapping[str, float] | None = None, slots: Sequence[str] | None = None, dense: Sequence[str] = (),
        **options: Any,
    ) -> None:  # fmt: skip
        self.config = config = config_of(self, SparseMLPConfig, values, options)
        self.loss = config.loss
        self.class_weight = checked_weight(class_weight)
        self.features = int(features)
        self.constants = plain_constants(constants)
        self.take_classes(classes)
        self.slots = None if slots is None else tuple(str(name) for name in slots)
        self.dense = tuple(str(name) for name in dense)
        self.order: Ids | None = None
        self.ignored = 0
        self.timer: Any = Untimed()
        self._rule = make_rule(config.optimizer, self.constants, config.l1, config.l2 or 0.0)
        self._take_l2(config.l2 or 0.0)
        self._aligner = Aligner()
        self.own_unit: Unit | None = None  # in which quantities are learnt; None: in that of the user
        self._one: OneRow | None = None
        self._trained_from: Any = None
        self._whole = self._batch = config.batch_size or _LARGEST_BATCH  # samples of a step, and of a visit
        self._paced = ""  # how long the run is, where we say it
        self._lines = 1  # distinct rows of a batch at the most
        self._rows = _ENOUGH  # samples of the feed

    @property
    def rate(self) -> float | None:
        """Learning rate where the user gives none; of adam for a quantity the larger, the fewer rows there are."""
        rate = _RATES[self.config.optimizer]
        if self._paced and self.config.optimizer == "adam":
            return rate * min(_FAST, max(1.0, math.sqrt(_ROWS / max(1, self._rows))))
        if self.loss not in QUANTITIES or self.config.optimizer != "adam":
            return rate
        return rate * min(_FASTER, max(1.0, math.sqrt(_ENOUGH / max(1, self._rows))))

    # -- shape --------------------------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Cells of a row of the table: embedding, and one for each output with a wide part."""
        return self.config.dim + self.config.wide * self.outputs

    @property
    def sizes(self) -> Offsets:
        """Inputs of the first dense layer, then the outputs of each."""
        inputs = len(self.slots or ()) * self.config.dim + len(self.dense)
        return np.array([inputs, *self.config.hidden, self.outputs], np.int64)

    @property
    def task(self) -> MlpTask:
        """Selects the compiled code."""
        return self._task(self._batch)

    def _scoring(self, batch: int) -> MlpTask:
        """The task for scores alone: one compiled form for all losses, timed or not."""
        return self._task(batch)._replace(head=OneScore(Squared()), timer=Untimed())

    def _task(self, batch: int) -> MlpTask:
        config, sizes = self.config, self.sizes
        one = loss_of(self.loss, config, self.own_unit) if self.loss in QUANTITIES else Logistic()
        return MlpTask(
            head=OneScore(one) if self.outputs == 1 else ClassScores(Logistic()), rule=self._rule,
            penalty=self._penalty, activation=ACTIVATIONS[config.activation],
            lookup_activation=ACTIVATIONS[config.lookup_activation], combiner=COMBINERS[config.combiner],
            layout=OneSlot() if len(self.slots or ()) <= 1 else ManySlots(), timer=self.timer, sizes=sizes,
            batch=batch, dim=config.dim, width=self.width, cells=layer_cells(sizes),
            places=1 << (2 * self._lines - 1).bit_length(),
        )  # fmt: skip

    # -- what the executor asks ---------------------------------------------------------------------------------

    def adapted(self, config: TrainConfig, feed: Any) -> TrainConfig:
        """Batches, penalty and epochs by the number of rows, where the user gives none."""
        if not isinstance(feed, Feed):
            return super().adapted(config, feed)
        rows = max(1, len(feed))
        self._whole = self.config.batch_size or _batch_for(rows)
        if self.weights is None:  # what there is has its own
            classes = self.loss == "logistic" or (self.loss == "auto" and bool(self.classes is None or self.classes))
            ours = classes and rows <= _ROWS and not config.epochs and not isinstance(self._rule, Ftrl)
            chosen = min(_L2, _SHARED_L2 / rows) if ours else 0.0
            self._take_l2(chosen if self.config.l2 is None else self.config.l2)
        epochs = config.epochs or round(min(_MOST, max(_FEWEST, _EPOCHS / math.sqrt(rows))))
        self._paced = "" if config.epochs else _told(epochs, rows, self._whole)
        return replace(config, epochs=epochs)

    def _take_l2(self, l2: float) -> None:
        self._l2, l1 = l2, self.config.l1
        free = isinstance(self._rule, Ftrl) or not (l1 or l2)
        self._penalty = Free() if free else Penalty(np.float32(l1), np.float32(l2))

    def started_notes(self) -> list[str]:
        """How long the run is, where the user does not say it, and the penalty."""
        chosen = self.config.l2 is None and self._l2 > 0
        return [*super().started_notes(), *([self._paced] if self._paced else ()),
                *([f"l2 {self._l2:g}, as there are few rows (--l2 0: none)."] if chosen else ())]  # fmt: skip

    def recall(self, options: Mapping[str, Any]) -> None:
        """The penalty by which the weights were trained that are restored next: what is remembered depends on it."""
        super().recall(options)
        if self.config.l2 is None and isinstance(options.get("l2"), int | float):
            self._take_l2(float(options["l2"]))

    def divide(self, workers: int) -> float:
        """With sgd each worker takes its part of a batch. The steps of other rules do not shrink with the gradient."""
        whole = self._whole
        self._batch = max(-(-whole // workers), min(whole, _LEAST_PART)) if isinstance(self._rule, Sgd) else whole
        return self._batch / whole

    def startup(self, feed: Feed, seed: int) -> None:
        """Random weights, or the ones there are, in the feed's order of ids and with room for all its features."""
        self.meet(feed)
        self.find_classes(feed)
        self._check_slots(feed)
        rows = max(self.features, feed.features, 1)
        self._check_memory(rows, feed)
        order = whole_order(feed.original, feed.features, rows) if feed.features else None
        known = self.features if self.weights is not None else 0
        if self.weights is None:
            self.own_unit, self.weights = self._unit_of(feed), new_weights(self, rows, seed)
        else:
            if self.own_unit is None and (unit := self._unit_of(feed)) is not None:  # saved, or of an older version
                self.own_unit, self.weights = unit, in_unit(self, self.weights, unit)
            self.weights = self.weights._replace(table=self.rearranged(rows, order))
        self.features, self.order, self._rows = rows, order, len(feed)
        self._start_rows(known, rows, seed)
        self._lines = max(1, min(self._batch * feed.longest, rows))

    def for_part(self, feed: Feed) -> SparseMLP:
        """With the batches that are chosen for all rows."""
        known = super().for_part(feed)
        assert isinstance(known, SparseMLP)
        known.config = replace(self.config, batch_size=self._whole)
        return known

    def schema_of(self, feed: Feed) -> dict[str, Any]:
        """That of the feed; a matrix is columns of numbers beside slots of which there are none."""
        matrix = feed.schema and isinstance(feed.samples, DenseRows)
        return {**feed.schema, "slots": [], "dense": list(feed.dense)} if matrix else dict(feed.schema)

    def _unit_of(self, feed: Feed) -> Unit | None:
        if self.loss not in QUANTITIES:
            return None
        return unit_of(loss_of(self.loss, self.config), feed.samples.targets, feed.samples.importance)

    @property
    def loss_scale(self) -> float:
        """Losses in the user's unit by those that are learnt."""
        return loss_scale(self.loss, self.own_unit) if self.own_unit else 1.0

    def _start_rows(self, first: int, last: int, seed: int) -> None:
        scale = self.config.init or 0.25 / np.sqrt(self.config.dim)
        order = np.zeros(0, np.int32) if self.order is None else self.order
        bounds = np.array([first, last], np.int64)
        draw_rows(self.weights.table, self.cells, self.config.dim, order, bounds, np.uint64(seed), np.float32(scale))

    def _check_slots(self, feed: Feed) -> None:
        slots, dense = feed.slots or ("features",), feed.dense
        if self.slots is None:
            self.slots, self.dense = slots, dense
        if (slots, dense) != (self.slots, self.dense):
            raise InputError(
                f"{feed.source} has the slots {shorten(', '.join(slots))} and {len(dense)} dense columns, but the "
                f"model has {shorten(', '.join(self.slots))} and {len(self.dense)}; read the data as the model's was."
            )

    def _check_memory(self, rows: int, feed: Feed) -> None:
        copies = 1 if feed.original is None else 2  # to bring it into the order of the data, and back
        check_memory(layer_cells(self.sizes) * CELL, "the dense layers need", "use smaller ones.")
        twice = " (twice, to sort it)" if copies > 1 else ""
        what = f"a table{twice} of {rows:,} features with {self.cells} numbers each takes"
        check_memory(copies * rows * self.cells * CELL, what, REMEDY)

    def samples(self, feed: Feed) -> SlotRows | ValuedSlotRows:
        """Rows as slots, with targets as the loss wants them."""
        samples = slotted(super().samples(feed))
        return samples._replace(targets=inward(self.loss, self.own_unit, samples.targets)) if self.own_unit else samples

    def visits(self, feed: Feed) -> int:
        """Batches of an epoch, or parts of batches."""
        return -(-len(feed) // self._batch)

    def epoch_samples(self, feed: Feed) -> int:
        """Samples of all batches."""
        return len(feed)

    def units(self, feed: Feed) -> int:
        """Samples."""
        return len(feed)

    def room(self, feed: Feed) -> Room:
        """Gradients of the dense layers and of all distinct rows; what the layers give; the rows of a batch."""
        batch, task = self._batch, self.task
        floats = batch_floats(task.sizes, batch)
        return Room(self._lines, self.width, task.cells, floats, batch + task.places)

    def tables(self) -> dict[str, Table]:
        """One row a feature; the dense layers."""
        table = row_table(self._rule, self._penalty, self.features, self.width)
        return {"table": table, **dense_tables(self._rule, layer_cells(self.sizes))}

    def watchable(self) -> Mapping[str, Any]:
        """What `arrays` has, without the update rule's memory: embedding, wide, layer_1_weight, layer_1_bias, …"""
        dim = self.config.dim
        table = {"embedding": lambda: self.plain(None, self.features)[:, :dim]}
        wide = {"wide": lambda: self.plain(None, self.features)[:, dim:]} if self.config.wide else {}
        return {**table, **wide, **_layers(self.task, self.trained().values)}

    # -- predicting ---------------------------------------------------------------------------------------------

    def score_feed(self, feed: Feed, threads: int) -> Floats:
        """One score a row, or one a class; features that the model does not know count as absent."""
        weights = self.trained()._replace(table=self.paid())
        self._check_slots(feed)
        self.ignored = unknown_entries(feed, self.features)
        samples = slotted(self._aligner.align(feed, self.order, self.features))
        found = np.empty((len(feed), self.outputs), np.float32)
        task = self._scoring(_SCORED)
        room = Room(1, floats=batch_floats(task.sizes, _SCORED), ints=_SCORED)

        def score(first: int, end: int) -> None:
            score_batches(task, samples, weights, make_scratch(room, np.uint64(0)), found[first:end], first)

        with one_blas_thread():
            in_parts(len(feed), threads, score, _SCORED)
        if self.own_unit:
            found = self.own_unit.outward(found)
        return found if self.outputs > 1 else found[:, 0]

    def predict_one(
        self, row: Any = None, values: npt.ArrayLike | None = None, slots: npt.ArrayLike | None = None,
        dense: npt.ArrayLike | None = None, ids: npt.ArrayLike | None = None,
    ) -> float | list[float]:  # fmt: skip
        """For one row, the chance of the second class, those of all classes, or the quantity. Not while it trains.

        row: as the data of training has it: a dict of values by column or slot, or the values in their order. Or its
        features by their own numbers, unknown ones left out, with `values` (1 by default), `slots` (the place of each
        feature's slot in `slots`, in rising order) and `dense`, the numbers of the dense columns; `ids` alone says the
        same where the model has columns.
        """
        scores = self._score_one(row, (ids, values, slots, dense))
        if not self.classes:
            return float(self.label_of(scores))
        if self.outputs > 1:
            return [float(chance) for chance in probabilities(scores[None, :])[0]]
        return float(1 / (1 + np.exp(-float(scores[0]))))

    def score_row(self, row: Any) -> Floats:
        """The scores of one row."""
        return self._score_one(row, (None, None, None, None))

    def _score_one(self, row: Any, given: tuple[Any, Any, Any, Any]) -> Floats:
        ids, values, slots, dense = given
        matrix = bool(self.dense) and not self.has_columns
        if ids is None and (any(part is not None for part in given) or (not matrix and self.are_ids(row))):
            ids = row
        if ids is None:
            ids, values, slots, dense = self.one_row(row, matrix)
        if self.order is not None:
            raise ConfigError("this model is being trained; predict_one answers when training has ended.")
        if self._one is None or self._trained_from is not self.weights:
            shape = (len(self.slots or ()), len(self.dense))
            weights = self.trained()._replace(table=self.paid())
            self._one, self._trained_from = OneRow(weights, self._scoring(1), self.features, shape), self.weights
        scores = self._one(ids, values, slots, dense)
        return self.own_unit.outward(scores) if self.own_unit else scores

    # -- going on, saving ---------------------------------------------------------------------------------------

    def axes(self) -> dict[str, Sequence[Any]]:
        """Features and classes; layers are alike."""
        names, outputs = self.feature_names(), self.class_axis()
        found: dict[str, Sequence[Any]] = {"embedding": (names, None)}
        found |= {"wide": (names, outputs)} if self.config.wide else {}
        last = len(self.sizes) - 1
        for layer in range(1, last + 1):
            after = outputs if layer == last else None
            found |= {f"layer_{layer}_weight": (None, after), f"layer_{layer}_bias": (after,)}
        return found

    def options(self) -> dict[str, Any]:
        """The arguments of an equal program, as JSON values."""
        slots = None if self.slots is None else list(self.slots)
        settled = {"l2": self._l2} if self.weights is not None else {}
        return {**super().options(), **settled, "slots": slots, "dense": list(self.dense)}

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """embedding: (features, dim); wide: (features, outputs); layer_1_weight: (inputs, outputs), layer_1_bias, …

        With `state` also what the update rule remembers, and of quantities `unit`, the mean and the standard deviation
        by which all that is learnt is measured; without, all is in the user's unit.
        """
        weights = self.trained()._replace(table=self.paid()) if not state else self.weights
        table = natural(weights.table, self.cells, self.order)
        return named_arrays(self, weights._replace(table=table), state)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `arrays` made, with or without state."""
        self.weights, self.features, self.own_unit = restored(self, arrays)
        self.order = None
