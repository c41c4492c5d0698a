"""What programs with one row of weights a feature have in common: penalties paid late, and rows in a feed's order."""

from __future__ import annotations

import mmap
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.arrays import CELL, Floats, Ids, Table
from hogwild.config.options import Config
from hogwild.errors import InputError, ModelError
from hogwild.feeds.sparse.feed import Feed
from hogwild.kernels.optim.penalties import Free
from hogwild.kernels.optim.rules import cell_names, row_cells, row_table
from hogwild.machine import check_memory
from hogwild.programs.program import RowIds, plain_constants
from hogwild.programs.saving.cells import lightest
from hogwild.programs.sparse.quantities import QUANTITIES, loss_of, start_of
from hogwild.programs.sparse.supervised import ClassWeight, Supervised, checked_weight

# -- Rows of weights in a flat array: brought into an order of features and back, grown, taken apart for saving -------


Arrays = dict[str, npt.NDArray[Any]]
_BY_FEATURE = ("weight", "factors", "embedding", "wide")  # arrays with a row a feature


def ranked(table: Floats, cells: int, order: Ids | None) -> Floats:
    """Rows in the order of ranks: row r becomes that of feature order[r]."""
    return table if order is None else np.ascontiguousarray(table.reshape(-1, cells)[order]).reshape(-1)


def natural(table: Floats, cells: int, order: Ids | None) -> Floats:
    """The inverse of `ranked`: rows in the features' own order."""
    if order is None:
        return table
    rows = table.reshape(-1, cells)
    back = np.empty_like(rows)
    back[order] = rows
    return back.reshape(-1)


def whole_order(original: Ids | None, features: int, rows: int) -> Ids | None:
    """The order of a feed with `features` features, extended to a table of `rows` rows."""
    if original is None:
        return None
    if len(original) != features:
        raise InputError(f"the order of ids has {len(original)} entries for {features} features; the data is damaged.")
    if rows == features:
        return original
    return np.concatenate([original, np.arange(features, rows, dtype=np.int32)])


def grown(table: Floats, cells: int, rows: int) -> Floats:
    """The table with rows of zeros added up to `rows`."""
    missing = rows * cells - len(table)
    return table if missing <= 0 else np.concatenate([table, np.zeros(missing, np.float32)])


def named(owner: str, part: str) -> str:
    """The name of an array: what a part of a row, "" for its weights, is of."""
    return f"{owner}_{part}" if part else owner


def taken(left: Arrays, owner: str) -> Arrays:
    """The arrays of an owner by the parts that they are, taken out of what is left."""
    names = [name for name in left if name == owner or name.startswith(f"{owner}_")]
    return {name[len(owner) + 1 :]: left.pop(name) for name in names}


def take_apart(table: Floats, rule: Any, penalty: Any, width: int) -> Arrays:
    """Named arrays of a table: "" the weights, then what the update rule and the penalty remember, by name.

    Weights and slots are (rows,) or (rows, width), counts and stamps (rows,).
    """
    rows = table.reshape(-1, row_cells(rule, penalty, width))
    parts: Arrays = {}
    at = 0
    for name in ("", *cell_names(rule, penalty)):
        size = 1 if name in ("count", "stamp") else width
        part = rows[:, at : at + size]
        parts[name] = np.ascontiguousarray(part[:, 0] if size == 1 else part)
        at += size
    return parts


def put_together(parts: Mapping[str, npt.NDArray[Any]], rule: Any, penalty: Any, width: int, rows: int) -> Floats:
    """The inverse of `take_apart`; parts other than the weights may be missing all together, and are then zero."""
    table = np.zeros((rows, row_cells(rule, penalty, width)), np.float32)
    names = cell_names(rule, penalty)
    if len(parts) > 1 and set(parts) != {"", *names}:
        there = ", ".join(sorted(set(parts) - {""}))
        raise ModelError(f"this update rule remembers {', '.join(names) or 'nothing'}, but the arrays hold {there}.")
    at = 0
    for name in ("", *names):
        size = 1 if name in ("count", "stamp") else width
        if name in parts:
            part = parts[name]
            fits = part.shape in _shapes(rows, size)
            if not fits or part.dtype != np.float32 or not np.isfinite(part).all():
                shape = f"{rows} x {size}" if size > 1 else f"{rows}"
                raise ModelError(f"array {name or 'weight'} is {part.dtype} {part.shape}, not {shape} finite float32.")
            table[:, at : at + size] = part.reshape(rows, size)
        at += size
    return table.reshape(-1)


def _shapes(rows: int, size: int) -> list[tuple[int, ...]]:
    """A single row, and a single cell a row, are stored without that axis."""
    shapes: list[tuple[int, ...]] = [(rows, size)] if size > 1 else [(rows,)]
    return [*shapes, (size,)] if rows == 1 else shapes


class Tabled(Supervised):
    """A supervised program whose first weights are `table`, one row a feature with the update rule's memory.

    Attributes
    ----------
    order : feature of each row of `table` while it is in the order of a feed; None for the features' own order.
    features : rows of the table.
    ignored : entries of the last scored feed whose feature the model does not know.
    """

    order: Ids | None = None
    features: int
    ignored = 0

    def _begin(
        self, config: Config, class_weight: ClassWeight, features: int, classes: Iterable[Any] | None,
        constants: Mapping[str, float] | None,
    ) -> None:  # fmt: skip
        """Take over the arguments that all such programs have."""
        self.config = config
        self.loss = getattr(config, "loss", self.loss)
        self.class_weight = checked_weight(class_weight)
        self.features, self.constants = int(features), plain_constants(constants)
        self.take_classes(classes)

    @property
    @abstractmethod
    def width(self) -> int:
        """Weights of a row."""

    def first_bias(self, feed: Feed) -> Floats:
        """The row of biases: zeros, or for a quantity whose loss may be far from them the best score for all rows."""
        width = self.outputs
        bias = np.zeros(row_cells(self._rule, Free(), width), np.float32)
        if self.loss in QUANTITIES and getattr(self.config, "bias", False):
            bias[0] = start_of(loss_of(self.loss, self.config), feed.samples.targets, feed.samples.importance)
        return bias

    @property
    def cells(self) -> int:
        """Cells of a row: weights, and what the update rule and the penalty remember."""
        return row_cells(self._rule, self._penalty, self.width)

    def penalized(self, weights: Any) -> Sequence[tuple[Floats, int]]:
        """The table."""
        return ((weights.table, self.width),)

    def _shared_as(self, rows: int, width: int) -> tuple[Table, Table]:
        """How the table is shared, and how a few rows of so many weights are, which every visit writes."""
        few = row_table(self._rule, Free(), rows, width, "scalar")
        return row_table(self._rule, self._penalty, self.features, self.width), few

    def finish(self, feed: Feed) -> None:
        """Weights in the features' own order again, in memory of their own."""
        if self.weights is not None:
            table, *others = self.weights
            own = table.copy() if self.order is None else self._in_own_order(table)
            self.weights, self.order = type(self.weights)(own, *(array.copy() for array in others)), None

    def row_ids(self, table: str) -> RowIds | None:
        """Of the table the features' own ids."""
        if table == "table" and self.order is not None:
            return self.order.astype(np.int64)
        return super().row_ids(table)

    def paid(self) -> Floats:
        """The table as it stands, penalties paid: the very one if nothing is owed."""
        table: Floats = self.paid_weights().table
        return table

    def plain(self, original: Ids | None, features: int) -> Floats:
        """(features, width): the weights alone, penalties paid, in an order of ids; unknown features weigh nothing."""
        return self.in_order(self.paid().reshape(-1, self.cells)[:, : self.width], original, features)

    def in_order(self, rows: Floats, original: Ids | None, features: int) -> Floats:
        """What stands row by row as `table` does, in an order of ids; zeros for unknown features."""
        width = rows.shape[1]
        flat = np.ascontiguousarray(rows).reshape(-1)
        if original is None or original is not self.order:
            flat = grown(natural(flat, width, self.order), width, features)
            flat = ranked(flat[: features * width], width, original)
        return flat.reshape(-1, width)

    def rearranged(self, rows: int, order: Ids | None) -> Floats:
        """The table with room for so many rows, in another order of features."""
        return ranked(grown(self._in_own_order(self.weights.table), self.cells, rows), self.cells, order)

    def _in_own_order(self, table: Floats) -> Floats:
        """What stands as `table` does, in the features' own order."""
        return natural(table, self.cells, self.order)

    def compact(self, pruned: float) -> tuple[dict[str, Any], Arrays]:
        """Rows of zeros for the features that weigh least, by the length of their rows."""
        options, arrays = self.saved()
        if not pruned:
            return options, arrays
        rows = {name: arrays[name].copy() for name in _BY_FEATURE if name in arrays}
        squares = [(part.reshape(len(part), -1).astype(np.float64) ** 2).sum(axis=1) for part in rows.values()]
        gone = lightest(np.sum(squares, axis=0), pruned, "features")
        for part in rows.values():
            part[gone] = 0
        return options, {**arrays, **rows}


# -- Memory for tables of weights: asked of the system page by page, in large pages where it allows them --------------


def make_table(rows: int, cells: int, remedy: str) -> Floats:
    """Zeros, flat, for so many rows; they begin at a page, and take memory once they are touched.

    Raises ConfigError, before anything is allocated, for a table that is larger than the memory of this machine.
    """
    size = rows * cells * CELL
    check_memory(size, f"a table of {rows:,} rows of {cells} cells needs", remedy)
    room = mmap.mmap(-1, max(size, mmap.PAGESIZE), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        room.madvise(mmap.MADV_HUGEPAGE)  # random rows of a large table: a page of 4 kB each would miss every time
    return np.frombuffer(room, np.float32, rows * cells)
