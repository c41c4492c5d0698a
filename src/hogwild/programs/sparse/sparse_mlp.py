"""Embeddings of sparse features, looked up and put together, then dense layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Ids, Offsets, Room, SlotRows, Table, ValuedSlotRows, make_scratch
from hogwild.blas import one_blas_thread
from hogwild.config import Optimizer, SparseMLPConfig
from hogwild.errors import ConfigError, InputError, shorten
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.compiler.clock import Untimed
from hogwild.kernels.nn.dense import ACTIVATIONS, batch_floats, layer_cells
from hogwild.kernels.nn.lookup import COMBINERS, ManySlots, OneSlot
from hogwild.kernels.nn.sparse_mlp import ClassScores, MlpTask, OneScore, score_batches
from hogwild.kernels.optim.init import draw_rows
from hogwild.kernels.optim.losses import Logistic, Squared
from hogwild.kernels.optim.penalties import Free, Penalty
from hogwild.kernels.optim.rules import Ftrl, Sgd, additive_cells
from hogwild.machine import memory
from hogwild.programs.program import plain_constants
from hogwild.programs.sparse.evaluation import probabilities
from hogwild.programs.sparse.mlparrays import REMEDY, layer_rows, layer_tables, named_arrays, new_weights, restored
from hogwild.programs.sparse.mlpone import OneRow
from hogwild.programs.sparse.rowtable import grown, natural, ranked, whole_order
from hogwild.programs.sparse.slots import Aligner, slotted
from hogwild.programs.sparse.supervised import checked_weight, make_rule, unknown_entries
from hogwild.programs.sparse.tables import Tabled, in_parts

_RATES = {"sgd": 0.1, "momentum": 0.01, "adagrad": 0.02, "adam": 0.001, "ftrl": 0.05}
_SCORED = 256  # rows that are scored at once
_LEAST_PART = 64  # samples of a visit where workers share a batch: BLAS is slow with fewer


class SparseMLP(Tabled):
    """An embedding lookup over sparse features, dense features beside it, dense layers, and one output or one a class.

    Parameters
    ----------
    dim : numbers in the embedding of a feature.
    hidden : outputs of each dense layer before the last; () for none.
    activation, lookup_activation : `relu` or `tanh` after dense layers; `none`, `relu` or `tanh` after the lookup.
    combiner : how the embeddings of one slot are put together: `sum`, `mean` or `sqrtn`.
    wide : add a linear model of the same features to the outputs.
    loss : `logistic` (two classes: sigmoid; more: softmax), `squared`, or `auto`.
    optimizer : update rule; an embedding moves at the batches in which its feature occurs only.
    l1, l2 : penalties; l1 on embeddings only, paid lazily; l2 also on dense weights, at every step.
    batch_size : samples of a step; with `sgd`, workers that do not wait for each other share a batch.
    init : embeddings begin between -init and init; 0: chosen by dim.
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
    unit = "samples"
    tells_units = True
    sharing = "all"

    def __init__(
        self, dim: int = 16, hidden: Sequence[int] = (128, 64), activation: str = "relu",
        lookup_activation: str = "none", combiner: str = "sum", wide: bool = False, loss: str = "auto",
        optimizer: Optimizer = "adam", l1: float = 0.0, l2: float = 0.0, batch_size: int = 256, init: float = 0.0,
        class_weight: Any = None, *, features: int = 0, classes: Iterable[Any] | None = None,
        constants: Mapping[str, float] | None = None, slots: Sequence[str] | None = None, dense: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.config = SparseMLPConfig(
            int(dim), tuple(int(size) for size in hidden), activation, lookup_activation, combiner, bool(wide), loss,  # type: ignore[arg-type]
            optimizer, float(l1), float(l2), int(batch_size), float(init),
        )  # fmt: skip
        self.loss = loss
        self.class_weight = checked_weight(class_weight)
        self.features = int(features)
        self.constants = plain_constants(constants)
        self.take_classes(classes)
        self.slots = None if slots is None else tuple(str(name) for name in slots)
        self.dense = tuple(str(name) for name in dense)
        self.order: Ids | None = None
        self.ignored = 0
        self.timer: Any = Untimed()
        self._rule = make_rule(optimizer, self.constants, l1, l2)
        free = isinstance(self._rule, Ftrl) or not (l1 or l2)
        self._penalty = Free() if free else Penalty(np.float32(l1), np.float32(l2))
        self._aligner = Aligner()
        self._one: OneRow | None = None
        self._trained_from: Any = None
        self._batch = self.config.batch_size  # samples of a visit
        self._lines = 1  # distinct rows of a batch at the most

    @property
    def rate(self) -> float | None:
        """Learning rate where the user gives none."""
        return _RATES[self.config.optimizer]

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
        one = Squared() if self.loss == "squared" else Logistic()
        return MlpTask(
            head=OneScore(one) if self.outputs == 1 else ClassScores(Logistic()), rule=self._rule,
            penalty=self._penalty, activation=ACTIVATIONS[config.activation],
            lookup_activation=ACTIVATIONS[config.lookup_activation], combiner=COMBINERS[config.combiner],
            layout=OneSlot() if len(self.slots or ()) <= 1 else ManySlots(), timer=self.timer, sizes=sizes,
            batch=batch, dim=config.dim, width=self.width, cells=layer_cells(sizes),
            places=1 << (2 * self._lines - 1).bit_length(),
        )  # fmt: skip

    # -- what the executor asks ---------------------------------------------------------------------------------

    def divide(self, workers: int) -> float:
        """With sgd each worker takes its part of a batch. The steps of other rules do not shrink with the gradient."""
        whole = self.config.batch_size
        self._batch = max(-(-whole // workers), min(whole, _LEAST_PART)) if isinstance(self._rule, Sgd) else whole
        return self._batch / whole

    def startup(self, feed: Feed, seed: int) -> None:
        """Random weights, or the ones there are, in the feed's order of ids and with room for all its features."""
        self.find_classes(feed)
        self._check_slots(feed)
        rows = max(self.features, feed.features, 1)
        self._check_memory(rows, feed)
        order = whole_order(feed.original, feed.features, rows) if feed.features else None
        known = self.features if self.weights is not None else 0
        if self.weights is None:
            self.weights = new_weights(self, rows, seed)
        else:
            table = grown(natural(self.weights.table, self.cells, self.order), self.cells, rows)
            self.weights = self.weights._replace(table=ranked(table, self.cells, order))
        self.features, self.order = rows, order
        self._start_rows(known, rows, seed)
        self._lines = max(1, min(self._batch * feed.longest, rows))

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
        need = copies * rows * self.cells * CELL
        layers = layer_cells(self.sizes) * CELL
        if layers > memory():
            raise ConfigError(f"the dense layers need {layers / 1e9:.1f} GB, more than there is; use smaller ones.")
        if need > memory():
            raise ConfigError(
                f"a table of {rows:,} features with {self.cells} numbers each takes {need / 1e9:.1f} GB "
                f"({'once' if copies == 1 else 'twice its size, to sort it'}), and there are {memory() / 1e9:.1f} GB; "
                f"{REMEDY}"
            )

    def samples(self, feed: Feed) -> SlotRows | ValuedSlotRows:
        """Rows as slots, with targets as the loss wants them."""
        return slotted(super().samples(feed))

    def visits(self, feed: Feed) -> int:
        """Batches of an epoch, or parts of batches."""
        return -(-len(feed) // self._batch)

    def units(self, feed: Feed) -> int:
        """Samples."""
        return len(feed)

    def room(self, feed: Feed) -> Room:
        """Gradients of the dense layers and of all distinct rows; what the layers give; the rows of a batch."""
        batch, task = self._batch, self.task
        lines = layer_rows(task) + self._lines
        return Room(lines, self.width, batch_floats(task.sizes, batch), batch + task.places)

    def tables(self) -> dict[str, Table]:
        """One row a feature; the dense layers, cut into rows of the same width."""
        mask = additive_cells(self._rule, self._penalty, self.width)
        return {"table": Table(self.features, self.cells, "ranked", mask), **layer_tables(self)}

    # -- predicting ---------------------------------------------------------------------------------------------

    def scores(self, feed: Feed, threads: int = 1) -> Floats:
        """One score a row, or one a class; features that the model does not know count as absent."""
        weights = self.trained()._replace(table=self.paid())
        self._check_slots(feed)
        self.ignored = unknown_entries(feed, self.features)
        samples = slotted(self._aligner.align(feed, self.order, self.features))
        found = np.empty((len(feed), self.outputs), np.float32)
        task = self._scoring(_SCORED)
        room = Room(1, 1, batch_floats(task.sizes, _SCORED), _SCORED)

        def score(first: int, end: int) -> None:
            score_batches(task, samples, weights, make_scratch(room, np.uint64(0)), found[first:end], first)

        with one_blas_thread():
            in_parts(len(feed), threads, score, _SCORED)
        return found if self.outputs > 1 else found[:, 0]

    def predict_one(
        self, ids: npt.ArrayLike, values: npt.ArrayLike | None = None, slots: npt.ArrayLike | None = None,
        dense: npt.ArrayLike | None = None,
    ) -> float | list[float]:  # fmt: skip
        """For one row, the chance of the second class, those of all classes, or the quantity. Not while it trains.

        ids: features by their own numbers, unknown ones left out; values: 1 by default; slots: the place of each
        feature's slot in `slots`, in rising order; dense: the numbers of the dense columns.
        """
        if self.order is not None:
            raise ConfigError("this model is being trained; predict_one answers when training has ended.")
        if self._one is None or self._trained_from is not self.weights:
            shape = (len(self.slots or ()), len(self.dense))
            weights = self.trained()._replace(table=self.paid())
            self._one, self._trained_from = OneRow(weights, self._scoring(1), self.features, shape), self.weights
        scores = self._one(ids, values, slots, dense)
        if not self.classes:
            return float(scores[0])
        if self.outputs > 1:
            return [float(chance) for chance in probabilities(scores[None, :])[0]]
        return float(1 / (1 + np.exp(-float(scores[0]))))

    # -- saving -------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """The arguments of an equal program, as JSON values."""
        weight, config = self.class_weight, self.config
        return {
            "dim": config.dim, "hidden": list(config.hidden), "activation": config.activation,
            "lookup_activation": config.lookup_activation, "combiner": config.combiner, "wide": config.wide,
            "loss": self.loss, "optimizer": config.optimizer, "l1": config.l1, "l2": config.l2,
            "batch_size": config.batch_size, "init": config.init,
            "class_weight": weight if weight is None or isinstance(weight, str) else [list(pair) for pair in weight],
            "features": self.features, "classes": None if self.classes is None else list(self.classes),
            "constants": self.constants, "slots": None if self.slots is None else list(self.slots),
            "dense": list(self.dense),
        }  # fmt: skip

    def arrays(self, state: bool = False) -> dict[str, npt.NDArray[Any]]:
        """embedding: (features, dim); wide: (features, outputs); layer_1_weight: (inputs, outputs), layer_1_bias, …

        With `state` also what the update rule remembers.
        """
        weights = self.trained()._replace(table=self.paid()) if not state else self.weights
        table = natural(weights.table, self.cells, self.order)
        return named_arrays(self, weights._replace(table=table), state)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what `arrays` made, with or without state."""
        self.weights, self.features = restored(self, arrays)
        self.order = None
